//! What the jobs of a published run come to together, for the chapters to say whether they run the same.

use super::results::Settings;
use workload::job::{BlockSizes, Job, Mix};

/// One workload over a drive.
pub(crate) struct Shape {
    /// Reads, writes or both.
    pub(crate) mix: Mix,
    /// At random, or in order.
    pub(crate) random: bool,
    /// Bytes of an I/O.
    pub(crate) bytes: u64,
    /// Bytes that offsets are a multiple of.
    pub(crate) align: u64,
    /// Percent of reads.
    pub(crate) read_percent: u32,
    /// In flight over all threads.
    pub(crate) depth: u32,
    /// Threads that issue them.
    pub(crate) threads: u32,
}

/// Less of a drive than this, and it is no workload over the drive.
const LEAST_SPAN: u64 = 64 << 20;

impl Shape {
    /// `None` where they are unlike each other, paced, or keep to a few places.
    pub(crate) fn of(jobs: &[Job]) -> Option<Shape> {
        let first = jobs.first()?;
        let way = usize::from(first.mix == Mix::Write);
        let BlockSizes::Fixed(bytes) = first.block_sizes[way] else {
            return None;
        };
        let like = |job: &Job| {
            let small = match job.size {
                Some(workload::job::Extent::Bytes(size)) => size < LEAST_SPAN,
                _ => false,
            };
            job.mix == first.mix
                && job.random == first.random
                && job.block_sizes == first.block_sizes
                && job.rate.iter().all(Option::is_none)
                && !small
        };
        jobs.iter().all(like).then(|| Shape {
            mix: first.mix,
            random: first.random,
            bytes: u64::from(bytes),
            align: u64::from(first.block_align[way]),
            read_percent: first.read_percent,
            depth: jobs.iter().map(|job| job.iodepth * job.numjobs).sum(),
            threads: jobs.iter().map(|job| job.numjobs).sum(),
        })
    }

    /// Whether it is 4 KiB at random.
    pub(crate) fn is_small(&self) -> bool {
        self.random && self.bytes == 4096
    }

    /// Whether it has reads only or writes only.
    pub(crate) fn is_one_way(&self) -> bool {
        matches!(self.mix, Mix::Read | Mix::Write)
    }

    /// The settings of a point that runs it; `None` of trims.
    pub(crate) fn settings(&self) -> Option<Settings> {
        let direction = match self.mix {
            Mix::Read => "read",
            Mix::Write => "write",
            Mix::ReadWrite => "mix",
            Mix::Trim | Mix::TrimWrite => return None,
        };
        Some(Settings {
            direction: Some(direction),
            pattern: Some(if self.random { "random" } else { "sequential" }),
            block_bytes: Some(self.bytes),
            queue_depth: Some(self.depth),
            threads: Some(self.threads),
            ..Settings::default()
        })
    }
}
