//! Starting values for the fit of a volume, and whether the measurements determine its limits.
//!
//! Volumes differ by more than the factor that a parameter may move. A disk of a hypervisor has a latency of tens of
//! microseconds, one of a cloud hundreds, and the limits are those that the user bought. The store's time therefore
//! begins at the shortest measured mean latency minus the other parts, if the base's value is only assumed and less
//! than half of that. A limit is visible if a deeper run is no faster than a shallower run of the same kind: the
//! limit begins at that rate. If no limit is visible, it keeps the base's value; a limit below the measured rate is
//! raised. A figure set on the command line is kept.
//!
//! Not modelled: several block sizes (the largest counts), credits, and limits of the instance.

use catalogue::{Change, DriveSheet, FigureKind};
use model::media::volume::VolumeConfig;
use tier::DriveConfig;
use workload::job::Job;

use super::{FitRequest, MeasuredFigure, MeasuredRun, Quantity};

const IOPS: &str = "volume.limits.iops";
const RATE: &str = "volume.limits.rate";

/// Two rates are equal if they differ by less than this share.
const SAME: f64 = 0.03;
/// A run is deeper than another if it has at least this factor more I/Os in flight.
const DEEPER: u32 = 2;
/// Factor above the measured rate to which a limit is raised.
const ABOVE: f64 = 1.1;

/// Returns the request with the starting values of this base for a fit to these runs, and the keys of default
/// parameters that these runs do not determine.
pub(super) fn begun(
    request: &FitRequest,
    base: &DriveSheet,
    fitted: &[&MeasuredRun],
) -> (FitRequest, Vec<&'static str>) {
    let mut begun = request.clone();
    let DriveConfig::Volume(config) = &base.config else {
        return (begun, Vec::new());
    };
    let free = |key: &str| match request.free.is_empty() {
        true => base.free.contains(&key),
        false => request.free.iter().any(|free| free == key),
    };
    let set = |key: &str| {
        request
            .settings
            .figures
            .iter()
            .any(|(known, _)| known == key)
    };
    let (limits, unseen) = limits(config, fitted);
    let begins = limits.into_iter().chain(times(base, config, fitted));
    let begins = begins.filter(|(key, _)| free(key) && !set(key));
    begun.settings.figures.extend(begins);
    (begun, unseen)
}

/// Returns the rates of a run in both directions: IOPS, and bytes per second.
fn rates(run: &MeasuredRun) -> [f64; 2] {
    let iops = |target: &&MeasuredFigure| target.quantity == Quantity::Iops;
    let values = run.targets.iter().filter(iops).map(|target| target.value);
    let ios: f64 = values.sum();
    let blocks = run.jobs.iter().map(crate::ledger::largest_block);
    [ios, ios * f64::from(blocks.max().unwrap_or(4096))]
}

fn depth(run: &MeasuredRun) -> u32 {
    run.jobs.iter().map(|job| job.iodepth * job.numjobs).sum()
}

/// Checks whether two runs have the same load, apart from the depth.
fn alike(one: &MeasuredRun, other: &MeasuredRun) -> bool {
    let kind = |run: &MeasuredRun| {
        let of = |job: &Job| (job.mix, job.random, crate::ledger::largest_block(job));
        run.jobs.iter().map(of).collect::<Vec<_>>()
    };
    kind(one) == kind(other)
}

/// Returns the highest measured rate of one kind, and whether it shows a limit: a run that reaches nearly the highest
/// rate, and a deeper run of the same kind that is no faster.
fn most(runs: &[&MeasuredRun], of: usize) -> (f64, bool) {
    let rate = |run: &MeasuredRun| rates(run)[of];
    let most = runs.iter().map(|run| rate(run)).fold(0.0, f64::max);
    let top: Vec<&MeasuredRun> = runs
        .iter()
        .filter(|run| rate(run) >= most * (1.0 - SAME))
        .copied()
        .collect();
    let deeper = |one: &MeasuredRun| {
        let others = top.iter();
        others
            .filter(|other| alike(one, other))
            .any(|other| depth(other) >= DEEPER * depth(one))
    };
    (most, top.iter().any(|one| deeper(one)))
}

/// Returns the starting values of limits, and the limits that the runs do not determine.
fn limits(config: &VolumeConfig, runs: &[&MeasuredRun]) -> (Vec<Change>, Vec<&'static str>) {
    let (mut begin, mut unseen) = (Vec::new(), Vec::new());
    let words = |key: &str, value: f64| match key {
        IOPS => format!("{value:.0}"),
        _ => format!("{:.4} MB/s", value * 1e-6),
    };
    let all = [(IOPS, config.limits.iops), (RATE, config.limits.bytes)];
    for (of, (key, limit)) in all.into_iter().enumerate() {
        let (measured, shows) = most(runs, of);
        let below = limit.is_some_and(|limit| ABOVE * measured > limit.rate as f64);
        match (shows, below) {
            (true, _) if measured >= 1.0 => begin.push((key.to_owned(), words(key, measured))),
            (_, true) => begin.push((key.to_owned(), words(key, ABOVE * measured))),
            _ if limit.is_some() => unseen.push(key),
            _ => {}
        }
    }
    begin.retain(|(key, _)| match &**key {
        IOPS => config.limits.iops.is_some(),
        _ => config.limits.bytes.is_some(),
    });
    (begin, unseen)
}

fn times(base: &DriveSheet, config: &VolumeConfig, runs: &[&MeasuredRun]) -> Vec<Change> {
    let path = (config.path.round + config.path.each).us();
    let shortest = |read: bool| {
        let means = runs.iter().flat_map(|run| &run.targets);
        let means = means.filter(|it| it.read == read && it.quantity == Quantity::Mean);
        means.map(|it| it.value).fold(f64::INFINITY, f64::min)
    };
    let assumed = |key: &str| {
        base.figure(key)
            .is_some_and(|figure| figure.kind == FigureKind::Assumed)
    };
    let sides = [
        ("volume.store.read", config.store.read, true),
        ("volume.store.write", config.store.write, false),
    ];
    let begins = sides.into_iter().filter_map(|(key, has, read)| {
        let left = shortest(read) - path;
        let far = left.is_finite() && left > 2.0 * (path + has.us());
        (far && assumed(key)).then(|| (key.to_owned(), format!("{left:.3} us")))
    });
    begins.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::job::Mix;

    fn run(mix: Mix, iodepth: u32, iops: f64) -> MeasuredRun {
        let job = Job {
            mix,
            iodepth,
            ..Job::default()
        };
        let target = MeasuredFigure {
            read: mix == Mix::Read,
            quantity: Quantity::Iops,
            value: iops,
            weight: 1.0,
        };
        MeasuredRun {
            name: format!("{mix:?}-{iodepth}"),
            jobs: vec![job],
            targets: vec![target],
            unlike: Vec::new(),
        }
    }

    #[test]
    fn a_limit_shows_where_a_deeper_run_does_no_more() {
        let seen = |runs: &[MeasuredRun]| most(&runs.iter().collect::<Vec<_>>(), 0);
        let rising = [
            run(Mix::Read, 1, 1_000.0),
            run(Mix::Read, 8, 5_000.0),
            run(Mix::Read, 64, 9_000.0),
        ];
        assert_eq!(seen(&rising), (9_000.0, false));
        let flat = [
            run(Mix::Read, 1, 1_000.0),
            run(Mix::Read, 8, 2_950.0),
            run(Mix::Read, 64, 3_000.0),
        ];
        assert_eq!(seen(&flat), (3_000.0, true));
        // Writes that are as fast as deeper reads do not show a limit.
        let chance = [run(Mix::Write, 1, 2_990.0), run(Mix::Read, 8, 3_000.0)];
        assert_eq!(seen(&chance), (3_000.0, false));
        // A flat rate far below the highest one does not show a limit either.
        let slow = [
            run(Mix::Write, 8, 1_000.0),
            run(Mix::Write, 64, 1_000.0),
            run(Mix::Read, 8, 3_000.0),
        ];
        assert_eq!(seen(&slow), (3_000.0, false));
    }
}
