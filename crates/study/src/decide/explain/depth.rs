//! The smallest queue depth at which a drive reaches 95 % of its rating (or of its model's maximum), found by
//! simulation.
//!
//! For 1, 2, 4 ... threads the depth is bisected. The smallest product wins; of equal products, the one with fewer
//! threads. The search assumes that a deeper queue is never slower. Not searched: depths between powers of two, where
//! a smaller one may suffice.

use catalogue::HostSheet;
use model::media::Precondition;
use serde::Serialize;
use text::problem::Problems;
use workload::job::{Job, Mix};

use super::causes::{DEEPEST, unhindered};
use super::runs::{CaseRunner, ExplainCase};
use crate::review::results::rounded;

/// Settings that reach the rated figure.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DepthAdvice {
    /// Number of threads (fio's numjobs).
    pub numjobs: u32,
    /// Queue depth of each thread.
    pub iodepth: u32,
    /// IOPS of the model with these settings.
    pub iops: f64,
    /// Required IOPS: 95 % of the rating, or of the maximum.
    pub wanted: f64,
    /// Whether the required rate is reached.
    pub reached: bool,
    /// State in which it is reached.
    pub state: &'static str,
    /// The job for fio.
    pub job: String,
}

/// Share of the rating that counts as reached.
pub const SEEN: f64 = 0.95;
/// Depths of a thread.
const DEPTHS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// Returns the smallest total depth at which this case reaches the rating, in the first of these states in which it
/// does; without a rating, 95 % of its maximum.
///
/// # Errors
/// The job does not fit the drive.
pub fn smallest(
    base: &ExplainCase,
    rating: Option<f64>,
    states: &[Precondition],
    host: &HostSheet,
    runs: &CaseRunner<'_>,
) -> Result<Option<DepthAdvice>, Problems> {
    let Some(job) = base.jobs.first() else {
        return Ok(None);
    };
    let cores = u32::from(host.config.cores.max(1)).min(256);
    let mut best: Option<DepthAdvice> = None;
    for &state in states {
        let search = RatedDepthSearch {
            runs,
            base,
            job,
            state,
            expected: rating.unwrap_or(base.expected * 8.0),
        };
        let deep = (DEEPEST / 2 / cores).max(1);
        let most = search.iops(cores, deep)?;
        let wanted = SEEN * rating.unwrap_or(most);
        if most < wanted {
            let advice = search.advice(cores, deep, most, wanted);
            best = best.or(Some(advice));
            continue;
        }
        return search.smallest(cores, wanted).map(Some);
    }
    Ok(best)
}

struct RatedDepthSearch<'a> {
    runs: &'a CaseRunner<'a>,
    base: &'a ExplainCase,
    job: &'a Job,
    state: Precondition,
    expected: f64,
}

impl RatedDepthSearch<'_> {
    fn iops(&self, threads: u32, depth: u32) -> Result<f64, Problems> {
        let case = ExplainCase {
            jobs: vec![unhindered(self.job, threads, depth)],
            state: self.state,
            expected: self.expected,
            ..self.base.clone()
        };
        Ok(self.runs.run_one(&case)?.iops())
    }

    fn smallest(&self, cores: u32, wanted: f64) -> Result<DepthAdvice, Problems> {
        let mut best: Option<(u32, u32, f64)> = None;
        let mut threads = 1;
        while threads <= cores {
            let less = best.map_or(DEEPEST, |(n, d, _)| n * d - 1);
            let depths: Vec<u32> = DEPTHS
                .into_iter()
                .filter(|depth| depth * threads <= less)
                .collect();
            if let Some((depth, iops)) = self.first(&depths, threads, wanted)? {
                best = Some((threads, depth, iops));
            }
            threads *= 2;
        }
        Ok(match best {
            Some((threads, depth, iops)) => self.advice(threads, depth, iops, wanted),
            None => {
                let depth = (DEEPEST / 2 / cores).max(1);
                self.advice(cores, depth, self.iops(cores, depth)?, wanted)
            }
        })
    }

    /// Returns the first of these depths that is fast enough, by bisection.
    fn first(
        &self,
        depths: &[u32],
        threads: u32,
        wanted: f64,
    ) -> Result<Option<(u32, f64)>, Problems> {
        let (mut low, mut high) = (0, depths.len());
        let mut found = None;
        // The deepest first: if that is too slow, no other depth need be tried.
        let mut at = high.saturating_sub(1);
        while low < high {
            let iops = self.iops(threads, depths[at])?;
            match iops >= wanted {
                true => {
                    found = Some((depths[at], iops));
                    high = at;
                }
                false => low = at + 1,
            }
            at = low + (high - low) / 2;
        }
        Ok(found)
    }

    fn advice(&self, numjobs: u32, iodepth: u32, iops: f64, wanted: f64) -> DepthAdvice {
        DepthAdvice {
            numjobs,
            iodepth,
            iops: rounded(iops),
            wanted: rounded(wanted),
            reached: iops >= wanted,
            state: self.state.name(),
            job: text(&unhindered(self.job, numjobs, iodepth)),
        }
    }
}

/// Returns a job with one pattern as fio reads it.
fn text(job: &Job) -> String {
    let random = if job.random { "rand" } else { "" };
    let rw = match job.mix {
        Mix::Read => format!("rw={random}read"),
        Mix::Write => format!("rw={random}write"),
        _ => format!("rw={random}rw\nrwmixread={}", job.read_percent),
    };
    let way = usize::from(job.mix == Mix::Write);
    let block = match job.block_sizes[way] {
        workload::job::BlockSizes::Fixed(bytes) => bytes,
        _ => 4096,
    };
    format!(
        "[rated]\nioengine=libaio\ndirect=1\n{rw}\nbs={block}\niodepth={}\nnumjobs={}\n\
         norandommap=1\ntime_based=1\nruntime=60s\ngroup_reporting=1\n",
        job.iodepth, job.numjobs
    )
}
