//! Log in ACT's own format, for its `act_latency.py` and other readers of such logs.
//!
//! The layout is that of the program's output: version, configuration, and after each report interval the counts so
//! far, as powers of two with at most four per line. Seconds count from the end of the warm-up.

use std::fmt::Write as _;

use model::Span;

use lab::Scenario;
use lab::act::ActResult;
use workload::act::{Buckets, Generation, Interval, KINDS, RequestKind, StopReason};

/// Returns the log of a run.
pub fn log(scenario: &Scenario, tested: &ActResult) -> String {
    let mut log = String::new();
    match tested.config.generation {
        Generation::Queues { .. } => head_3(&mut log, scenario, tested),
        Generation::Service { .. } => head_6(&mut log, scenario, tested),
    }
    let mut sums: [Buckets; KINDS] = Default::default();
    let every = tested.config.report_interval.ns() / 1_000_000_000;
    let whole = (tested.counted.ns() / tested.config.report_interval.ns().max(1)) as usize;
    let nothing = Interval::default();
    for index in 0..whole {
        let interval = tested.intervals.get(index).unwrap_or(&nothing);
        for (sum, kind) in sums.iter_mut().zip(&interval.kinds) {
            sum.merge(kind);
        }
        let second = (index as u64 + 1) * every;
        let names = match tested.config.generation {
            Generation::Queues { .. } => {
                let _ = writeln!(log, "After {second} sec:");
                let _ = writeln!(log, "read-reqs queued: {}", interval.queued);
                names_3(tested)
            }
            Generation::Service { .. } => {
                let _ = writeln!(log, "after {second} sec:");
                names_6(tested)
            }
        };
        for (name, kind) in names {
            let sum = &sums[kind as usize];
            histogram(&mut log, &name, sum, tested.config.microseconds);
        }
        log.push('\n');
    }
    if let Some((_, stop)) = tested.stopped {
        log.push_str(match stop {
            StopReason::TooManyQueued => "ERROR: too many read reqs queued\n",
            StopReason::RequestsLag => "ERROR: service thread can't keep up\n",
            StopReason::LargeReadsLag => "ERROR: large block reads can't keep up\n",
            StopReason::LargeWritesLag => "ERROR: large block writes can't keep up\n",
        });
        log.push_str("drive(s) can't keep up - test stopped\n");
    }
    log
}

fn histogram(log: &mut String, name: &str, buckets: &Buckets, microseconds: bool) {
    let counts = if microseconds {
        &buckets.microseconds
    } else {
        &buckets.milliseconds
    };
    let _ = writeln!(log, "{name} ({} total)", buckets.total());
    let filled: Vec<(usize, u64)> = counts
        .iter()
        .copied()
        .enumerate()
        .filter(|&(_, count)| count > 0)
        .collect();
    for line in filled.chunks(4) {
        for (bucket, count) in line {
            let _ = write!(log, " ({bucket:02}: {count:010})");
        }
        log.push('\n');
    }
}

fn names_3(tested: &ActResult) -> Vec<(String, RequestKind)> {
    vec![
        ("LARGE BLOCK READS ".into(), RequestKind::LargeRead),
        ("LARGE BLOCK WRITES".into(), RequestKind::LargeWrite),
        ("RAW READS         ".into(), RequestKind::RawRead),
        (
            format!("{:<18}", tested.config.device),
            RequestKind::RawRead,
        ),
        ("READS             ".into(), RequestKind::Read),
    ]
}

fn names_6(tested: &ActResult) -> Vec<(String, RequestKind)> {
    let config = &tested.config;
    let mut names = Vec::new();
    if config.reads_per_second > 0 {
        names.push(("reads".into(), RequestKind::Read));
        names.push((format!("{}-reads", config.device), RequestKind::Read));
    }
    if config.writes_per_second > 0 {
        names.push(("large-block-reads".into(), RequestKind::LargeRead));
        names.push(("large-block-writes".into(), RequestKind::LargeWrite));
    }
    if config.record_writes_per_second() > 0 {
        names.push(("writes".into(), RequestKind::Write));
        names.push((format!("{}-writes", config.device), RequestKind::Write));
    }
    names
}

const fn yes(flag: bool) -> &'static str {
    if flag { "yes" } else { "no" }
}

/// Appends `key: value` lines.
fn keys(log: &mut String, keys: &[(&str, String)]) {
    for (key, value) in keys {
        let _ = writeln!(log, "{key}: {value}");
    }
}

/// Returns a time in whole seconds, as ACT prints it.
fn whole_seconds(span: Span) -> String {
    (span.ns() / 1_000_000_000).to_string()
}

fn head_3(log: &mut String, scenario: &Scenario, tested: &ActResult) {
    let config = &tested.config;
    let (queues, threads) = match config.generation {
        Generation::Queues {
            queues,
            threads_per_queue,
        } => (queues, threads_per_queue),
        Generation::Service { .. } => (0, 0),
    };
    let _ = writeln!(log, "\nAerospike act version 3.0 - device IO test");
    simulated(log, scenario);
    log.push_str("ACT CONFIGURATION\n");
    keys(
        log,
        &[
            ("device-names", config.device.clone()),
            ("num-devices", "1".into()),
            ("queue-per-device", "no".into()),
            ("num-queues", queues.to_string()),
            ("threads-per-queue", threads.to_string()),
            ("test-duration-sec", whole_seconds(config.duration)),
            ("report-interval-sec", whole_seconds(config.report_interval)),
            ("microsecond-histograms", yes(config.microseconds).into()),
            ("read-reqs-per-sec", config.reads_per_second.to_string()),
            ("write-reqs-per-sec", config.writes_per_second.to_string()),
            ("record-bytes", config.record_bytes.to_string()),
            (
                "large-block-op-kbytes",
                (config.large_block_bytes >> 10).to_string(),
            ),
            ("use-valloc", "no".into()),
            ("scheduler-mode", "noop".into()),
        ],
    );
    log.push('\n');
    keys(
        log,
        &[
            (
                "bytes per stored record",
                config.stored_bytes().0.to_string(),
            ),
            (
                "large block ops per sec",
                format!("{:.2}", config.large_reads_per_second()),
            ),
        ],
    );
    log.push('\n');
}

fn head_6(log: &mut String, scenario: &Scenario, tested: &ActResult) {
    let config = &tested.config;
    let _ = writeln!(log, "\nACT version {}", config.generation.version());
    log.push_str("Storage device IO test\n");
    simulated(log, scenario);
    log.push_str("ACT-STORAGE CONFIGURATION\n");
    keys(
        log,
        &[
            ("device-names", config.device.clone()),
            ("num-devices", "1".into()),
            ("service-threads", config.generation.readers().to_string()),
            ("test-duration-sec", whole_seconds(config.duration)),
            ("report-interval-sec", whole_seconds(config.report_interval)),
            ("microsecond-histograms", yes(config.microseconds).into()),
            ("read-reqs-per-sec", config.reads_per_second.to_string()),
            ("write-reqs-per-sec", config.writes_per_second.to_string()),
            ("record-bytes", config.record_bytes.to_string()),
            (
                "record-bytes-range-max",
                config.record_bytes_range_max.to_string(),
            ),
            (
                "large-block-op-kbytes",
                (config.large_block_bytes >> 10).to_string(),
            ),
            ("replication-factor", config.replication_factor.to_string()),
            ("update-pct", config.update_percent.to_string()),
            (
                "defrag-lwm-pct",
                config.defrag_low_water_percent.to_string(),
            ),
            ("no-defrag-reads", yes(config.no_defrag_reads).into()),
            ("compress-pct", config.compress_percent.to_string()),
            ("disable-odsync", yes(config.disable_odsync).into()),
            ("commit-to-device", yes(config.commit_to_device).into()),
            ("tomb-raider", "no".into()),
            ("tomb-raider-sleep-usec", "0".into()),
            ("max-lag-sec", whole_seconds(config.max_lag)),
        ],
    );
    derived_6(log, tested);
}

/// Appends the values that version 6 derives, and the names of its histograms.
fn derived_6(log: &mut String, tested: &ActResult) {
    let config = &tested.config;
    log.push_str("\nDERIVED CONFIGURATION\n");
    let (smallest, largest) = config.stored_bytes();
    keys(
        log,
        &[
            ("record-stored-bytes", format!("{smallest} ... {largest}")),
            (
                "internal-read-reqs-per-sec",
                config.record_reads_per_second().to_string(),
            ),
            (
                "internal-write-reqs-per-sec",
                config.record_writes_per_second().to_string(),
            ),
            (
                "large-block-reads-per-sec",
                format!("{:.2}", config.large_reads_per_second()),
            ),
            (
                "large-block-writes-per-sec",
                format!("{:.2}", config.large_writes_per_second()),
            ),
        ],
    );
    log.push_str("\nHISTOGRAM NAMES\n");
    for (name, _) in names_6(tested) {
        let _ = writeln!(log, "{name}");
    }
    log.push('\n');
}

fn simulated(log: &mut String, scenario: &Scenario) {
    let (name, seed) = (scenario.machine.name(), scenario.seed);
    let _ = writeln!(
        log,
        "Simulated by {}: {name}, seed {seed}.\n",
        version::PROGRAM
    );
}
