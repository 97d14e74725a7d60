//! The formula over three numbers of a data sheet: rated latency `L` at QD1, random IOPS `M`, sequential bandwidth `W`.
//!
//! For one kind of I/O alone, `x = min(depth / (L + (bs - 4 KiB) / W), M, W / bs)`, and the latency is `depth / x`.
//!
//! For a load of several jobs, each direction has the limit `most = min(M, W / bs)`. Below this limit, a rate-limited job
//! has its rate and the latency `L + (bs - 4 KiB) / W`: a sheet does not state how one direction slows the other. At or
//! above the limit, and next to a job without a rate, the outstanding I/Os of this direction share `most` (Little's law).
//! A job without a rate has what rate-limited jobs leave of `most`.
//!
//! Not covered: mixes without a rate, think times, syncs, several block sizes, blocks below 4 KiB.

use super::super::expression::ExpressionError;
use super::super::figure::{FigureDirection, FigureQuantity, RunFigure};
use super::{LoadKind, no};
use catalogue::{DriveSheet, RatedQuantity};
use workload::job::{BlockSizes, Job, Mix, Rate, SyncMode};

/// Reason for a drive without the three numbers.
pub(super) const NO_SHEET: &str =
    "the drive's file has no latency, IOPS and bandwidth of a data sheet";
const NOT_COVERED: &str = "neither one kind of I/O nor rate-limited reads and writes";

/// Index of reads, and of writes.
const DIRECTIONS: [usize; 2] = [0, 1];

/// A job as the formula sees it.
#[derive(Clone, Copy)]
struct FormulaJob {
    /// Bytes of each I/O.
    bytes: u32,
    /// Outstanding I/Os of all copies.
    depth: f64,
    /// By direction, `None` if unused: rate of all copies in I/Os per second, `None` without a limit.
    rates: [Option<Option<f64>>; 2],
}

impl FormulaJob {
    /// Returns the job if the formula covers it.
    fn from_job(job: &Job) -> Option<FormulaJob> {
        let used = match job.mix {
            Mix::Read => [true, false],
            Mix::Write => [false, true],
            Mix::ReadWrite => [true, true],
            _ => return None,
        };
        let synced = job.fsync > 0 || job.fdatasync > 0 || job.sync != SyncMode::None;
        let other = job.records.is_some() || job.iolog.is_some() || !job.direct;
        if synced || other || job.think.is_some() {
            return None;
        }
        let sizes = DIRECTIONS.iter().filter(|&&one| used[one]);
        let sizes = sizes.map(|&one| match job.block_sizes[one] {
            BlockSizes::Fixed(bytes) => Some(bytes),
            _ => None,
        });
        let sizes: Option<Vec<u32>> = sizes.collect();
        let sizes = sizes?;
        let bytes = *sizes.first()?;
        if bytes < 4096 || sizes.iter().any(|size| *size != bytes) {
            return None;
        }
        let copies = f64::from(job.numjobs);
        let rate = |one: usize| {
            job.rate[one].map(|rate| match rate {
                Rate::Bytes(rate) => rate as f64 / f64::from(bytes) * copies,
                other => other.iops().unwrap_or(0.0) * copies,
            })
        };
        let rates = DIRECTIONS.map(|one| used[one].then(|| rate(one)));
        if job.mix == Mix::ReadWrite && rates.contains(&Some(None)) {
            return None;
        }
        let each = match job.engine.asynchronous() {
            true => job.iodepth,
            false => 1,
        };
        Some(FormulaJob {
            bytes,
            depth: f64::from(each) * copies,
            rates,
        })
    }
}

/// Returns the formula's figure of jobs that run together, and the kind of their load. The first reporting group is
/// measured; the others compete with it.
pub(super) fn of_jobs(
    jobs: &[Job],
    sheet: &DriveSheet,
    figure: RunFigure,
) -> Result<(LoadKind, f64), ExpressionError> {
    let RunFigure::Of(asked, what) = figure else {
        return Err(no("the formula has no such figure"));
    };
    let covered: Option<Vec<FormulaJob>> = jobs.iter().map(FormulaJob::from_job).collect();
    let all = covered.ok_or_else(|| no(NOT_COVERED))?;
    let groups = jobs.iter().skip(1).position(|job| job.new_group);
    let load = FormulaLoad::new(&all, groups.map_or(all.len(), |at| at + 1))?;
    let direction = load.direction(asked)?;
    let numbers = SheetNumbers::from_sheet(sheet, direction).ok_or_else(|| no(NO_SHEET))?;
    let (rate, latency) = load.rate_and_latency(direction, numbers);
    let bytes = f64::from(load.bytes);
    let value = match what {
        FigureQuantity::Iops => rate,
        FigureQuantity::MbPerSecond => rate * bytes / 1e6,
        FigureQuantity::MibPerSecond => rate * bytes / 1_048_576.0,
        FigureQuantity::Latency(..) => latency * 1e6,
        _ => return Err(no("the formula has no such figure")),
    };
    Ok((load.kind(direction), value))
}

/// Jobs that run together.
struct FormulaLoad<'a> {
    all: &'a [FormulaJob],
    /// Number of measured jobs, which come first.
    measured: usize,
    bytes: u32,
}

impl FormulaLoad<'_> {
    fn new(all: &[FormulaJob], measured: usize) -> Result<FormulaLoad<'_>, ExpressionError> {
        let bytes = all.first().map(|job| job.bytes);
        let bytes = bytes.filter(|bytes| all.iter().all(|job| job.bytes == *bytes));
        Ok(FormulaLoad {
            all,
            measured,
            bytes: bytes.ok_or_else(|| no(NOT_COVERED))?,
        })
    }

    fn uses(&self, jobs: &[FormulaJob], direction: usize) -> bool {
        jobs.iter().any(|job| job.rates[direction].is_some())
    }

    /// Returns the direction that a figure counts.
    fn direction(&self, asked: FigureDirection) -> Result<usize, ExpressionError> {
        let measured = &self.all[..self.measured];
        let used = DIRECTIONS.map(|one| self.uses(measured, one));
        match (asked, used) {
            (FigureDirection::Read, [true, _]) | (FigureDirection::Total, [true, false]) => Ok(0),
            (FigureDirection::Write, [_, true]) | (FigureDirection::Total, [false, true]) => Ok(1),
            _ => Err(no("the formula has no such figure")),
        }
    }

    fn kind(&self, direction: usize) -> LoadKind {
        let alone = self.measured == self.all.len() && !self.uses(self.all, 1 - direction);
        match (direction, alone) {
            (0, true) => LoadKind::ReadsAlone,
            (0, false) => LoadKind::ReadsUnderLoad,
            (_, true) => LoadKind::WritesAlone,
            (_, false) => LoadKind::WritesUnderLoad,
        }
    }

    /// Returns the measured jobs' I/Os per second, and the latency in seconds.
    fn rate_and_latency(&self, direction: usize, numbers: SheetNumbers) -> (f64, f64) {
        let most = numbers.most(self.bytes.into());
        let alone = numbers.alone(self.bytes.into());
        let of = |jobs: &[FormulaJob]| -> Vec<(f64, Option<f64>)> {
            let used = jobs
                .iter()
                .filter_map(|job| Some((job.depth, job.rates[direction]?)));
            used.collect()
        };
        let (measured, all) = (of(&self.all[..self.measured]), of(self.all));
        let paced: f64 = all.iter().filter_map(|(_, rate)| *rate).sum();
        let free: f64 = all
            .iter()
            .filter(|(_, rate)| rate.is_none())
            .map(|(depth, _)| depth)
            .sum();
        let left = (most - paced).max(0.0);
        let free_rate = (free / alone).min(left);
        // Jobs without a rate saturate the drive only if their depth suffices.
        let saturated = paced >= most || (free > 0.0 && free / alone >= left);
        let depth: f64 = all.iter().map(|(depth, _)| depth).sum();
        let latency = match (saturated, paced > 0.0) {
            (true, true) => depth / most,
            (true, false) => free / most,
            (false, _) => alone,
        };
        let share = if paced > most { most / paced } else { 1.0 };
        let rate = measured.iter().map(|(depth, rate)| match rate {
            Some(rate) => rate * share,
            None => free_rate * depth / free,
        });
        (rate.sum(), latency)
    }
}

/// Three numbers of a data sheet, for one direction.
#[derive(Clone, Copy, PartialEq, Debug)]
struct SheetNumbers {
    /// Latency of a 4 KiB I/O at QD1, in seconds.
    latency: f64,
    /// Maximum random IOPS.
    iops: f64,
    /// Sequential bandwidth in bytes per second.
    width: f64,
}

impl SheetNumbers {
    fn from_sheet(sheet: &DriveSheet, direction: usize) -> Option<SheetNumbers> {
        let ratings = sheet.ratings.as_ref()?;
        let (latency, at_one, iops, width) = match direction {
            0 => (
                RatedQuantity::ReadLatency,
                RatedQuantity::ReadsAtOne,
                RatedQuantity::RandomRead,
                RatedQuantity::SequentialRead,
            ),
            _ => (
                RatedQuantity::WriteLatency,
                RatedQuantity::WritesAtOne,
                RatedQuantity::RandomWrite,
                RatedQuantity::SequentialWrite,
            ),
        };
        let at_one = ratings.value(at_one).map(|rate| 1.0 / rate);
        Some(SheetNumbers {
            latency: ratings.value(latency).or(at_one)?,
            iops: ratings.value(iops)?,
            width: ratings.value(width)?,
        })
    }

    /// Returns the maximum rate of I/Os of `bytes` bytes.
    fn most(self, bytes: f64) -> f64 {
        self.iops.min(self.width / bytes)
    }

    /// Returns the latency in seconds of an I/O of `bytes` bytes at QD1.
    fn alone(self, bytes: f64) -> f64 {
        self.latency + (bytes - 4096.0) / self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: SheetNumbers = SheetNumbers {
        latency: 100e-6,
        iops: 200e3,
        width: 1e9,
    };

    fn near(found: f64, expected: f64) {
        assert!(
            (found / expected - 1.0).abs() < 1e-9,
            "{found}, not {expected}"
        );
    }

    fn job(bytes: u32, depth: f64, rates: [Option<Option<f64>>; 2]) -> FormulaJob {
        FormulaJob {
            bytes,
            depth,
            rates,
        }
    }

    const FREE: Option<Option<f64>> = Some(None);

    #[test]
    fn one_kind_of_io_is_bound_by_latency_then_iops_or_bandwidth() {
        let of = |depth: f64, bytes: u32| {
            let all = [job(bytes, depth, [FREE, None])];
            let load = FormulaLoad::new(&all, 1).expect("one size");
            assert_eq!(load.kind(0), LoadKind::ReadsAlone);
            let (rate, latency) = load.rate_and_latency(0, NUMBERS);
            near(latency, depth / rate);
            rate
        };
        near(of(1.0, 4096), 10e3);
        near(of(64.0, 4096), 200e3);
        near(of(64.0, 131_072), 1e9 / 131_072.0);
        near(of(1.0, 131_072), 1.0 / (100e-6 + 126_976e-9));
    }

    #[test]
    fn rate_limited_jobs_have_the_rated_latency_until_the_drive_is_saturated() {
        let paced = |rate: f64| Some(Some(rate));
        let probe = job(4096, 64.0, [paced(5e3), paced(5e3)]);
        let beside = |writes| job(4096, 384.0, [None, writes]);
        let of = |all: &[FormulaJob], direction| {
            let load = FormulaLoad::new(all, 1).expect("one size");
            (
                load.kind(direction),
                load.rate_and_latency(direction, NUMBERS),
            )
        };
        let (kind, (rate, latency)) = of(&[probe, beside(paced(45e3))], 1);
        assert_eq!(kind, LoadKind::WritesUnderLoad);
        near(rate, 5e3);
        near(latency, 100e-6);
        let (kind, (_, latency)) = of(&[probe, beside(paced(300e3))], 0);
        assert_eq!(kind, LoadKind::ReadsUnderLoad);
        near(latency, 100e-6);
        // 448 outstanding writes share 200 thousand IOPS.
        near(of(&[probe, beside(paced(300e3))], 1).1.1, 448.0 / 200e3);
        near(of(&[probe, beside(FREE)], 1).1.1, 448.0 / 200e3);
        // Writers without a rate have what the probe leaves.
        near(of(&[beside(FREE), probe], 1).1.0, 195e3);
    }

    #[test]
    fn several_sizes_are_not_covered() {
        let all = [job(4096, 1.0, [FREE, None]), job(8192, 1.0, [FREE, None])];
        assert!(FormulaLoad::new(&all, 2).is_err());
    }
}
