//! Faults of drives in a run: nothing changes before a fault, a pool continues as its tiers guarantee, and phases
//! show the effect.

use lab::faults::RunFault;
use lab::{Lab, Machine, Outcome, Phase, Scenario, Work};
use model::Span;
use model::media::Precondition;
use workload::faults::{ScheduledFault, script};
use workload::job::{Extent, Job, Mix};

/// Returns a scenario with reads and writes at QD8 for this time, with these faults: `MEMBER LINE` or `- LINE`.
fn scenario(drive: &str, ms: u64, faults: &[(Option<u16>, &str)]) -> Scenario {
    let sheet = catalogue::drive(drive).unwrap_or_else(|problems| panic!("{problems}"));
    let host = catalogue::host("xeon-2017").expect("built in");
    let job = Job {
        mix: Mix::ReadWrite,
        random: true,
        norandommap: true,
        iodepth: 8,
        size: Some(Extent::Bytes(256 << 20)),
        runtime: Some(Span::from_ms(ms)),
        time_based: true,
        ..Job::default()
    };
    let machine = Machine::new(&sheet, &host);
    let mut scenario = Scenario::jobs(machine, Precondition::Steady, vec![job], 3);
    scenario.series_every = Span::from_ms(50);
    scenario.faults = faults
        .iter()
        .flat_map(|(member, line)| befalls(&sheet.config, *member, line).expect(line))
        .collect();
    scenario
}

fn befalls(
    drive: &tier::DriveConfig,
    member: Option<u16>,
    line: &str,
) -> Result<Vec<RunFault>, String> {
    let (_, planned): (usize, ScheduledFault) = script(line).expect(line).remove(0);
    RunFault::resolve(&planned, drive, member)
}

fn run(scenario: &Scenario) -> Outcome {
    Lab::new().run(scenario).expect("it fits")
}

fn iops(phase: &Phase) -> f64 {
    let ios: u64 = phase.ways.iter().map(|way| way.latency.count()).sum();
    ios as f64 / phase.length().seconds()
}

#[test]
fn a_fault_that_never_comes_changes_nothing() {
    let one = "mirror(2*p4801x-100)";
    let log = "intent-log(main=stripe(2*950pro-256), log=p4801x-100)";
    let cache = "write-back-cache(cache=p4801x-100, capacity=950pro-256)";
    for (drive, member) in [
        ("p4801x-100", None),
        ("950pro-256", None),
        (one, Some(0)),
        (log, Some(0)),
        (cache, Some(1)),
    ] {
        let plain = run(&scenario(drive, 60, &[]));
        let never = run(&scenario(drive, 60, &[(member, "at 1h slow 1ms")]));
        assert_eq!(never.phases.len(), 1, "{drive}");
        let with = Outcome {
            phases: Vec::new(),
            ..never.clone()
        };
        assert!(plain == with, "{drive}");
        // The only phase is the whole run.
        let phase = &never.phases[0];
        let [read, write] = &phase.ways;
        let threads = &plain.threads;
        let counted: u64 = threads.iter().map(|it| it.read.ios + it.write.ios).sum();
        assert_eq!(
            read.latency.count() + write.latency.count(),
            counted,
            "{drive}"
        );
        assert_eq!((phase.from.ns(), phase.to), (0, plain.end), "{drive}");
    }
}

#[test]
fn a_mirror_goes_on_without_a_leg_and_copies_to_it_when_it_is_back() {
    let scenario = scenario(
        "mirror(2*p4801x-100)",
        300,
        &[
            (Some(0), "at 100ms a: dies"),
            (Some(0), "at 200ms a: returns"),
        ],
    );
    let outcome = run(&scenario);
    assert!(outcome == run(&scenario), "the same again");
    let [before, without, back] = &outcome.phases[..] else {
        panic!("three phases: {:?}", outcome.phases.len());
    };
    assert_eq!(without.after, "a: dies");
    assert_eq!(before.failed + without.failed + back.failed, 0);
    assert_eq!(outcome.threads[0].read.errors, 0);
    // The resync takes a share of both drives.
    assert!(iops(back) < 0.9 * iops(before), "{}", iops(back));
    // The slowest writes wait for the resync.
    let slowest = |phase: &Phase| phase.ways[1].latency.quantile(99.0);
    assert!(slowest(back) > slowest(before));
}

#[test]
fn a_stripe_without_a_member_fails_what_needs_it_until_it_returns() {
    let outcome = run(&scenario(
        "stripe(2*p4801x-100)",
        300,
        &[
            (Some(1), "at 100ms a: power-cut"),
            (Some(0), "at 50ms a: slow 200us for 40ms"),
        ],
    ));
    let after: Vec<&str> = outcome.phases.iter().map(|it| it.after.as_str()).collect();
    assert_eq!(
        after,
        ["", "a: 200 us slower", "a: as before", "a: loses its power"]
    );
    let [before, slow, _, dead] = &outcome.phases[..] else {
        unreachable!()
    };
    assert_eq!(before.failed, 0);
    assert!(iops(slow) < 0.4 * iops(before));
    let done: u64 = dead.ways.iter().map(|way| way.latency.count()).sum();
    let share = dead.failed as f64 / (done + dead.failed) as f64;
    // Failing I/Os are answered at once, so there are more of them.
    assert!((0.45..0.9).contains(&share), "{share}");
    let errors = |it: &lab::ThreadOutcome| it.read.errors + it.write.errors;
    let errors: u64 = outcome.threads.iter().map(errors).sum();
    assert_eq!(errors, dead.failed, "fio's own count of errors");
}

#[test]
fn one_drive_is_slow_and_worn() {
    let outcome = run(&scenario(
        "p4801x-100",
        100,
        &[(None, "wear 40"), (None, "at 50ms slow 1ms")],
    ));
    let [before, slow] = &outcome.phases[..] else {
        panic!("two phases");
    };
    assert_eq!(before.after, "the drive: 40 % used");
    let fastest = slow.ways[0].latency.min().expect("reads");
    // Commands that were outstanding when the phase started complete earlier.
    assert!(fastest.us() > 1.0 && slow.ways[0].latency.quantile(50.0) > Some(Span::from_us(1000)));
    let used = outcome.gauge(model::Gauge::PercentageUsed).expect("told");
    assert!((40.0..40.1).contains(&used), "{used}");
}

#[test]
fn what_a_run_cannot_have_is_refused_with_words() {
    let drive = |name| catalogue::drive(name).expect("built in").config;
    let (one, pool) = (drive("p4801x-100"), drive("mirror(2*p4801x-100)"));
    let why = |drive, member, line| befalls(drive, member, line).expect_err(line);
    for line in ["rots 5", "lies", "medium-error 1 2", "loses-write"] {
        assert!(
            why(&pool, Some(0), line).contains("a run has no data"),
            "{line}"
        );
    }
    for line in ["dies", "at write 5: power-cut", "write-fault", "clear"] {
        assert!(why(&pool, None, line).contains("name it"), "{line}");
    }
    let beyond = "unrecovered-read range 0..1000TB";
    assert!(why(&one, None, beyond).contains("beyond the end"));
    assert!(why(&pool, Some(1), beyond).contains("beyond the end"));
    assert!(why(&one, None, "stuck").contains("use `serve`"));
    assert!(!why(&one, None, "wear -1").is_empty());
}

/// Returns the failed and the completed I/Os after the last fault.
fn since_last(outcome: &Outcome) -> (u64, u64) {
    let last = outcome.phases.last().expect("a phase");
    let done = last.ways.iter().map(|way| way.latency.count()).sum();
    (last.failed, done)
}

#[test]
fn a_count_that_is_not_reached_changes_nothing() {
    let cache = "write-back-cache(cache=p4801x-100, capacity=950pro-256)";
    for (drive, member) in [
        ("p4801x-100", None),
        ("mirror(2*p4801x-100)", Some(0)),
        (cache, Some(1)),
    ] {
        let plain = run(&scenario(drive, 60, &[]));
        let never = "at write 1000000000: slow 1ms";
        let never = run(&scenario(drive, 60, &[(member, never)]));
        let with = Outcome {
            phases: Vec::new(),
            ..never
        };
        assert!(plain == with, "{drive}");
    }
}

#[test]
fn the_write_of_a_number_fails_and_no_other() {
    for line in [
        "at write 100: fails-write",
        "at write 100: write-fault for 1 command",
    ] {
        let outcome = run(&scenario("p4801x-100", 60, &[(None, line)]));
        let [before, after] = &outcome.phases[..] else {
            panic!("{line}: {} phases", outcome.phases.len());
        };
        assert_eq!((before.failed, after.failed), (0, 1), "{line}");
        // At most eight are outstanding.
        let written = before.ways[1].latency.count();
        assert!((92..100).contains(&written), "{line}: {written}");
        assert_eq!(outcome.threads[0].write.errors, 1, "{line}");
    }
}

#[test]
fn a_member_that_dies_after_a_count_of_writes_has_done_them() {
    let faults = [
        (Some(0), "after 500 writes a: dies"),
        (Some(1), "at read 5000000 a: dies"),
    ];
    let scenario = scenario("mirror(2*p4801x-100)", 60, &faults);
    let outcome = run(&scenario);
    assert!(outcome == run(&scenario), "the same again");
    let after: Vec<&str> = outcome.phases.iter().map(|it| it.after.as_str()).collect();
    assert_eq!(after, ["", "a: dies"]);
    let before = outcome.phases[0].ways[1].latency.count();
    assert!((492..=500).contains(&before), "{before}");
    assert_eq!(since_last(&outcome).0, 0, "the other leg goes on");
}

#[test]
fn a_power_cut_by_count_ends_a_second_later_also_of_a_drive_alone() {
    let cut = |drive, member| {
        let faults = [(member, "at write 100 a: power-cut")];
        let outcome = run(&scenario(drive, 1_100, &faults));
        let [before, without, back] = &outcome.phases[..] else {
            panic!("{drive}: {} phases", outcome.phases.len());
        };
        assert_eq!(without.length(), Span::from_ms(1000), "{drive}");
        // The drive's last refusals are reported after it is back.
        assert!(before.failed == 0 && back.failed <= 8, "{drive}");
        assert!(iops(back) > 1000.0, "{drive}");
        without.failed
    };
    assert!(cut("p4801x-100", None) > 8, "nobody answers");
    assert_eq!(cut("mirror(2*p4801x-100)", Some(1)), 0);
}

#[test]
fn a_rate_of_errors_is_that_and_follows_the_seed() {
    let rate = |seed| {
        let faults = [(None, "error-rate reads 0.05"), (None, "at 30ms clear")];
        let scenario = Scenario {
            seed,
            ..scenario("p4801x-100", 60, &faults)
        };
        let outcome = run(&scenario);
        assert!(outcome == run(&scenario), "the same again");
        assert_eq!(since_last(&outcome).0 / 8, 0, "those in flight at most");
        outcome
    };
    let failed = |outcome: &Outcome| outcome.threads[0].read.errors;
    let (one, two) = (rate(3), rate(4));
    let reads = one.phases[0].ways[0].latency.count() as f64;
    let share = failed(&one) as f64 / reads;
    assert!((0.04..0.06).contains(&share), "{share} of {reads}");
    assert_ne!(failed(&one), failed(&two));
    assert_eq!(one.threads[0].write.errors, 0);
}

#[test]
fn a_range_is_slow_or_fails_and_the_rest_is_as_before() {
    // Half of the job's address range.
    let half = |words: &str| {
        let line = format!("{words} range 0..128MiB");
        run(&scenario("p4801x-100", 60, &[(None, &line)]))
    };
    let failing = half("unrecovered-read");
    let read = &failing.threads[0].read;
    let share = read.errors as f64 / (read.errors + read.ios) as f64;
    assert!((0.45..0.55).contains(&share), "{share}");
    let slow = half("delay 2ms reads");
    let reads = &slow.phases[0].ways[0].latency;
    assert!(reads.quantile(40.0) < Some(Span::from_ms(1)));
    assert!(reads.quantile(60.0) > Some(Span::from_ms(2)));
    let writes = &slow.phases[0].ways[1].latency;
    assert!(writes.quantile(99.0) < Some(Span::from_ms(1)));
}

/// If one member cannot read data, the mirror reads it from the other.
#[test]
fn a_mirror_hides_the_read_errors_of_one_member() {
    let faults = [(Some(0), "a: error-rate reads 0.2")];
    let outcome = run(&scenario("mirror(2*p4801x-100)", 60, &faults));
    assert_eq!(outcome.threads[0].read.errors, 0);
    let faults = [(Some(0), "a: error-rate reads 0.2")];
    let outcome = run(&scenario("stripe(2*p4801x-100)", 60, &faults));
    assert!(outcome.threads[0].read.errors > 0);
}

/// Runs this number of sequential I/Os at QD1: the same commands for every seed.
fn in_order(mix: Mix, ios: u64, line: &str, seed: u64) -> Outcome {
    let mut scenario = scenario("p4801x-100", 60, &[(None, line)]);
    scenario.seed = seed;
    let job = Job {
        mix,
        number_ios: Some(ios),
        size: Some(Extent::Bytes(256 << 20)),
        ..Job::default()
    };
    scenario.work = Work::Jobs(vec![job]);
    run(&scenario)
}

#[test]
fn a_write_that_is_counted_is_the_one_that_fails() {
    for line in ["at write 100: fails-write", "at write 100: write-fault"] {
        let errors = |ios| in_order(Mix::Write, ios, line, 3).threads[0].write.errors;
        assert_eq!([errors(99), errors(100)], [0, 1], "{line}");
    }
}

#[test]
fn draws_of_the_same_commands_follow_the_seed() {
    let errors = |seed| {
        let outcome = in_order(Mix::Read, 2000, "error-rate reads 0.1", seed);
        outcome.threads[0].read.errors
    };
    assert_eq!(errors(3), errors(3));
    assert_ne!(errors(3), errors(4));
}
