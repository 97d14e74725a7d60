//! SLC caches under sequential writes: a load that fills the cache is measured after that, and one that does not is
//! marked.
//!
//! Size of the cache and the rate after it are those of `super::fill`, in the initial state of the run. A load fills the
//! cache if it writes more than its size, either in the run or in the time that its jobs have before a run is shortened.
//! The rates after the cache are those of a smaller drive with the same behaviour (`Medium::shrunk`), as in `fill`. Not
//! covered: random and mixed loads, the state `steady`, pools, and jobs with addresses in bytes, which are only marked.

use catalogue::DriveSheet;
use lab::{Lab, Outcome, ProgressCallback};
use model::media::Precondition;
use model::{Span, Time};
use serde::Serialize;
use text::problem::Problems;
use tier::DriveConfig;
use workload::job::Job;

use super::fill;
use super::smaller;
use super::tally::Tally;
use super::work::{Conditions, Load};
use crate::review::results::rounded;

/// A run is faster than the rate after the cache if it exceeds that rate by this factor.
const FASTER: f64 = 1.1;
/// Maximum percentage of the drive in use for which the cache is measured: `fill` begins after the used part.
const MOST_USED: f64 = 98.0;
/// Share of the capacity that is written after the cache is full before a run counts.
const TRANSITION: f64 = 0.02;
/// Bytes and number of the writes by which the cache is measured.
const WRITES: (u32, u32) = (1 << 20, 32);

/// SLC cache of a drive that a run of sequential writes began in.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct SlcUse {
    /// Host data that the cache accepts at this share in use, 10^9 bytes.
    pub gb: f64,
    /// Write rate after the cache is full, 10^6 bytes per second.
    pub after_mb_s: f64,
    /// Whether the run ended within the cache (true), or was counted after the cache was full.
    pub is_within: bool,
}

/// Runs the load. If the load fills the drive's SLC cache, the run counts from when the cache is full.
///
/// # Errors
/// The load does not fit the drive.
pub(super) fn run(
    load: &Load,
    drive: &DriveSheet,
    conditions: &Conditions,
    lab: &Lab,
    go_on: ProgressCallback<'_>,
) -> Result<(Vec<Outcome>, Option<SlcUse>), Problems> {
    let outcomes = load.run(drive, conditions, lab, go_on)?;
    if load.is_brief() {
        return Ok((outcomes, None));
    }
    let Some(jobs) = load.sequential_writes() else {
        return Ok((outcomes, None));
    };
    let Some(cache) = cache(drive, conditions, lab)? else {
        return Ok((outcomes, None));
    };
    let rates = outcomes
        .iter()
        .map(|one| (Tally::from_runs(&[one]).written_bytes_a_second(), one));
    let rate = rates
        .clone()
        .fold(0.0, |most: f64, (rate, _)| most.max(rate));
    if rate < FASTER * cache.after_mb_s * 1e6 {
        return Ok((outcomes, None));
    }
    let in_run = rates.map(|(rate, one)| rate * one.end.since(Time::ZERO).seconds());
    let in_run = in_run.fold(0.0, f64::max);
    let fills = in_run.max(rate * own_seconds(jobs)) >= cache.gb * 1e9;
    if !fills || !smaller::is_relative(jobs) {
        let within = SlcUse {
            is_within: true,
            ..cache
        };
        return Ok((outcomes, Some(within)));
    }
    let small = smaller::shrunk(drive);
    let share = small.capacity as f64 / drive.capacity as f64;
    let filling = cache.gb * 1e9 * share / rate;
    let transition = TRANSITION * small.capacity as f64 / (cache.after_mb_s * 1e6);
    let ramp = Span::from_seconds(filling + transition);
    let outcomes = load.run_after(ramp, &small, conditions, lab, go_on)?;
    Ok((outcomes, Some(cache)))
}

/// Returns the seconds that the jobs themselves write for; infinite if a job has no run time.
fn own_seconds(jobs: &[Job]) -> f64 {
    let own = jobs.iter().map(|job| {
        let runtime = job.runtime.map_or(f64::INFINITY, Span::seconds);
        runtime + job.ramp_time.seconds()
    });
    own.fold(0.0, f64::max)
}

/// Returns the drive's SLC cache in its initial state; `None` if it has none, or if its rate does not drop.
fn cache(
    drive: &DriveSheet,
    conditions: &Conditions,
    lab: &Lab,
) -> Result<Option<SlcUse>, Problems> {
    let DriveConfig::Nand(config) = &drive.config else {
        return Ok(None);
    };
    let used = match conditions.state {
        Precondition::Fresh => 0.0,
        Precondition::Filled => (100.0 * config.filled).clamp(1.0, MOST_USED),
        Precondition::Steady => return Ok(None),
    };
    let (block, depth) = WRITES;
    let request = fill::FillRequest {
        random: false,
        block,
        depth,
        used: vec![used as u32],
        host: conditions.host.clone(),
        seed: conditions.seed,
        seeds: 1,
    };
    if config.slc.is_none() || fill::check(&request, drive).is_err() {
        return Ok(None);
    }
    let measured = fill::measure(&request, drive, lab, &|_| ())?;
    let drop = measured.at.first().and_then(|at| at.falls_off.as_ref());
    Ok(drop.map(|drop| SlcUse {
        gb: rounded(drop.gb[0]),
        after_mb_s: rounded(drop.slow_mb_s[0]),
        is_within: false,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::named;
    use super::*;

    fn measured(drive: &str, load: &Load) -> (f64, Option<SlcUse>) {
        let sheet = catalogue::drive(drive).expect("built in");
        let conditions = Conditions {
            host: catalogue::host(catalogue::TYPICAL_HOST).expect("built in"),
            state: Precondition::Filled,
            seed: 1,
            seeds: 1,
        };
        let (outcomes, cache) =
            run(load, &sheet, &conditions, &Lab::new(), &lab::to_the_end).expect("it runs");
        (
            Tally::from_runs(&[&outcomes[0]]).written_bytes_a_second() * 1e-6,
            cache,
        )
    }

    /// The 990 PRO writes 1,400 MB/s after its SLC cache by its data sheet.
    #[test]
    fn a_load_that_fills_the_cache_is_measured_after_it() {
        let text = named::text("checkpoint-save")
            .expect("a named load")
            .to_owned();
        let load = Load::of_text("checkpoint-save", text).expect("fio's words");
        let load = load.at_most(Span::from_ms(200));
        let (rate, cache) = measured("990pro-2000", &load);
        let cache = cache.expect("it has an SLC cache");
        assert!(!cache.is_within);
        assert!((1200.0..1600.0).contains(&rate), "{rate}");
        assert!(
            (rate / cache.after_mb_s - 1.0).abs() < 0.15,
            "{rate} {cache:?}"
        );
        assert_eq!(measured("d7-p5600-1600", &load).1, None);
    }

    #[test]
    fn a_load_that_ends_within_the_cache_is_marked() {
        let text = "[a]\nrw=write\nbs=1m\niodepth=32\nioengine=libaio\ndirect=1\nruntime=200ms\ntime_based=1\n";
        let load = Load::of_text("a.fio", text.to_owned()).expect("fio's words");
        let (rate, cache) = measured("990pro-2000", &load);
        let cache = cache.expect("it has an SLC cache");
        assert!(cache.is_within && cache.gb > 10.0, "{cache:?}");
        assert!(rate > 3.0 * cache.after_mb_s, "{rate} {cache:?}");
    }
}
