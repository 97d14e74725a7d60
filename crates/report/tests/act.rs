//! ACT compared with results computed by hand: arrivals and queues on a RAM disk, rates, scores, logs.

use lab::act::{ActResult, ActTest, Reason, at_load, at_share, score, tested};
use lab::{Lab, Machine, Scenario, Work};
use model::Span;
use model::host::{HostConfig, ProgramCosts};
use model::media::Precondition;
use model::media::ram::RamConfig;
use report::act as report;
use tier::DriveConfig;
use workload::act::{Config, Generation, RequestKind, StopReason};

/// Returns a plan with a RAM disk in a host without costs, and an ACT program without costs.
fn plan(config: Config, per_command: Span, picoseconds_per_byte: u64) -> Scenario {
    let drive = DriveConfig::Ram(RamConfig {
        bytes: 1 << 30,
        per_command,
        picoseconds_per_byte,
        memory_bus: None,
        spread: 0.0,
    });
    let host = HostConfig {
        cores: 64,
        ..HostConfig::default()
    };
    let test = ActTest {
        config,
        warm_up: Span::from_ms(100),
        slice: Span::from_ms(3_600_000),
        latency_only: false,
    };
    let machine = Machine::from_configs("ram", drive, host).with_costs(ProgramCosts::default());
    Scenario::new(machine, Precondition::Fresh, Work::Act(test), 7)
}

/// Returns the plan with other costs of the program.
fn costing(plan: Scenario, change: impl FnOnce(&mut ProgramCosts)) -> Scenario {
    let mut costs = plan.machine.costs().expect("they are given");
    change(&mut costs);
    Scenario {
        machine: plan.machine.with_costs(costs),
        ..plan
    }
}

/// Returns the plan with other rules of judgement.
fn judged(mut plan: Scenario, change: impl FnOnce(&mut ActTest)) -> Scenario {
    match &mut plan.work {
        Work::Act(test) => change(test),
        other => panic!("{other:?}"),
    }
    plan
}

/// Returns the plan with this time to reap an I/O.
fn reaping(plan: Scenario, reap: Span) -> Scenario {
    let machine = plan.machine.with_host(|host| host.engines[0].reap = reap);
    Scenario { machine, ..plan }
}

/// Returns a configuration with reads only, at a rate.
fn reads(rate: u32, generation: Generation, seconds: u64) -> Config {
    Config {
        reads_per_second: rate,
        writes_per_second: 0,
        ..Config::load(1.0, generation, Span::from_ms(seconds * 1_000))
    }
}

fn run(plan: &Scenario) -> ActResult {
    tested(&Lab::new(), plan).expect("the plan fits the drive")
}

const fn queues(queues: u16, threads_per_queue: u16) -> Generation {
    Generation::Queues {
        queues,
        threads_per_queue,
    }
}

fn near(got: f64, expected: f64, tolerance: f64, what: &str) {
    assert!(
        (got / expected - 1.0).abs() <= tolerance,
        "{what}: {got} for {expected}"
    );
}

#[test]
fn requests_at_even_intervals_never_wait_below_saturation() {
    // D/D/1: one request every 100 us, 99 us of service.
    let service = Span::from_us(99);
    let tested = run(&plan(reads(10_000, queues(1, 1), 2), service, 0));
    let latency = tested.latency(RequestKind::Read);
    assert_eq!(
        (latency.min(), latency.max()),
        (Some(service), Some(service))
    );
    near(
        tested.rate(RequestKind::Read),
        10_000.0,
        1e-3,
        "reads a second",
    );
    assert!(tested.passes());
}

#[test]
fn requests_spread_over_queues_wait_as_a_slotted_queue_does() {
    // A request every 10 us, for each of four queues with probability 1/4. The RAM disk is one server for all four, so
    // the only slow resource of each queue's thread is its own: the host's time to reap. Geo/D/1 with m slots of
    // service and p per slot: mean wait p m (m - 1) / (2 (1 - p m)) slots.
    let (slot_us, queues_of, m) = (10.0, 4.0, 3.0);
    let mut plan = plan(reads(100_000, queues(4, 1), 20), Span::ZERO, 0);
    plan = reaping(plan, Span::from_us(30));
    let tested = run(&plan);
    let p = 1.0 / queues_of;
    let wait = p * m * (m - 1.0) / (2.0 * (1.0 - p * m)) * slot_us;
    let mean = tested.latency(RequestKind::Read).mean_ns() / 1e3;
    near(mean, 30.0 + wait, 0.01, "mean latency from the queue, us");
    // The device's own part has no waiting time.
    let raw = tested.latency(RequestKind::RawRead);
    assert_eq!(raw.min(), raw.max());
}

#[test]
fn more_threads_take_more_from_a_queue() {
    // Two requests at a time need 60 us every 20 us: three threads are just enough, two are not.
    let of = |threads| {
        let mut plan = plan(reads(50_000, queues(1, threads), 3), Span::ZERO, 0);
        plan = reaping(plan, Span::from_us(59));
        run(&plan)
    };
    assert!(of(3).passes());
    let two = of(2);
    near(
        two.rate(RequestKind::Read),
        2.0 / 59e-6,
        0.01,
        "two threads",
    );
    assert!(!two.passes());
}

#[test]
fn version_3_gives_up_when_too_much_waits() {
    let tested = run(&plan(
        reads(200_000, queues(8, 8), 30),
        Span::from_us(10),
        0,
    ));
    let (at, stop) = tested.stopped.expect("the queues fill");
    assert_eq!(stop, StopReason::TooManyQueued);
    // 100,000 more per second arrive than complete; counting began after 0.1 s.
    near(at.seconds(), 0.9, 0.01, "seconds until the queues are full");
    assert!(tested.fails().contains(&Reason::Stopped(stop)));
}

#[test]
fn large_blocks_come_at_their_rate_and_a_drive_too_slow_for_them_fails() {
    let config = Config::load(100.0, Generation::version_6(8), Span::from_ms(5_000));
    let fast = run(&plan(config.clone(), Span::ZERO, 10));
    for kind in [RequestKind::LargeRead, RequestKind::LargeWrite] {
        near(fast.rate(kind), 2352.9, 0.002, "large blocks a second");
    }
    near(
        fast.rate(RequestKind::Read),
        200_000.0,
        0.002,
        "reads a second",
    );
    assert!(fast.passes());
    // 4 ns per byte: 131 MB of the possible 250 MB are reads.
    let mut slow = plan(config, Span::ZERO, 4_000);
    let behind = |tested: &ActResult| {
        let reasons = tested.fails().into_iter();
        reasons
            .filter(|reason| {
                matches!(
                    reason,
                    Reason::Behind {
                        kind: RequestKind::LargeRead,
                        ..
                    }
                )
            })
            .count()
    };
    assert_eq!(behind(&run(&slow)), 1);
    // Version 3.0 would not have detected it.
    slow = judged(slow, |test| test.latency_only = true);
    assert_eq!(behind(&run(&slow)), 0);
}

#[test]
fn a_service_thread_reads_one_at_a_time() {
    // Ten threads, each of which waits a millisecond per read: at most 10,000 reads per second.
    let of = |rate| {
        let mut plan = plan(
            reads(rate, Generation::Service { threads: 10 }, 3),
            Span::ZERO,
            0,
        );
        plan = reaping(plan, Span::from_us(900));
        run(&plan)
    };
    let possible = of(10_000);
    near(
        possible.rate(RequestKind::Read),
        10_000.0,
        0.002,
        "reads a second",
    );
    assert!(possible.passes());
    // Latency begins with the issue, so a late thread does not affect latencies, only the rate.
    let too_much = of(20_000);
    near(
        too_much.rate(RequestKind::Read),
        10.0 / 900e-6,
        0.002,
        "reads a second",
    );
    assert_eq!(too_much.percent_over(0), 0.0);
    assert!(!too_much.passes());
}

#[test]
fn service_threads_make_whole_requests_a_second_each() {
    // 12 per second each, not 12.5: the program requests no more, so the drive is not behind. All are due at once.
    let tested = run(&plan(
        reads(2_000, Generation::Service { threads: 160 }, 5),
        Span::from_us(1),
        0,
    ));
    near(
        tested.rate(RequestKind::Read),
        1_920.0,
        1e-3,
        "reads a second",
    );
    assert_eq!(tested.fails(), []);
}

#[test]
fn timers_fire_late_by_the_slack_and_do_not_fall_behind() {
    let mut plan = plan(reads(1_000, queues(1, 1), 5), Span::from_us(10), 0);
    plan = costing(plan, |costs| costs.timer_slack = Span::from_us(50));
    plan = costing(plan, |costs| costs.wake = Span::from_us(3));
    let tested = run(&plan);
    near(
        tested.rate(RequestKind::Read),
        1_000.0,
        1e-3,
        "reads a second",
    );
    let latency = tested.latency(RequestKind::Read);
    assert_eq!(latency.max(), Some(Span::from_us(13)));
}

#[test]
fn generating_costs_bound_the_load_and_are_told_from_the_drive() {
    let mut plan = plan(reads(200_000, queues(8, 8), 2), Span::from_us(1), 0);
    plan = costing(plan, |costs| costs.generate = Span::from_us(10));
    let tested = run(&plan);
    near(
        tested.rate(RequestKind::Read),
        100_000.0,
        0.01,
        "what the generator can do",
    );
    assert!(matches!(tested.fails()[..], [Reason::Generator { .. }]));
}

#[test]
fn an_open_load_near_what_a_server_can_do_has_slow_reads_or_none() {
    // 312,500 reads per second are possible. Above that, lateness grows, so nearly all reads of a second wait.
    let over = |rate| {
        let plan = plan(reads(rate, queues(8, 8), 1), Span::from_ns(3_200), 0);
        run(&plan).percent_over(0)
    };
    assert_eq!(over(303_000), 0.0);
    assert!(over(322_000) > 90.0);
}

#[test]
fn a_generator_that_is_the_limit_leaves_no_read_slow() {
    // The drive can do 312,500 per second and twice as much is requested, but 5 us per request allow only 200,000.
    let mut plan = plan(reads(625_000, queues(8, 8), 1), Span::from_ns(3_200), 0);
    plan = costing(plan, |costs| costs.generate = Span::from_us(1));
    plan = costing(plan, |costs| costs.signal = Span::from_us(4));
    let tested = run(&plan);
    near(
        tested.rate(RequestKind::Read),
        200_000.0,
        0.01,
        "reads a second",
    );
    assert_eq!(tested.percent_over(0), 0.0);
    assert!(matches!(tested.fails()[..], [Reason::Generator { .. }]));
}

#[test]
fn large_blocks_are_written_no_faster_than_they_are_filled() {
    // Filling at 2 GB/s takes 65.5 us for 128 KiB: at most 15,259 per second, even on a drive with zero latency.
    let config = Config::load(800.0, Generation::version_6(8), Span::from_ms(1_000));
    let mut plan = plan(config, Span::ZERO, 0);
    plan = costing(plan, |costs| costs.fill_picoseconds_per_byte = 500);
    let tested = run(&plan);
    let possible = 1e12 / (500.0 * 131_072.0);
    near(
        tested.rate(RequestKind::LargeWrite),
        possible,
        0.002,
        "large writes a second",
    );
    near(
        tested.rate(RequestKind::LargeRead),
        800.0 * 23.529,
        0.002,
        "large reads a second",
    );
    assert!(!tested.passes());
}

#[test]
fn the_score_is_where_the_server_is_full() {
    // One server with 2 us per command and 100 ps per byte. At load x its utilisation is x times this value:
    let read = 2e-6 + 1_536.0 * 1e-10;
    let large = 2e-6 + 131_072.0 * 1e-10;
    let one = 2_000.0 * read + 2.0 * 23.529 * large;
    for generation in [Generation::VERSION_3, Generation::version_6(8)] {
        let config = Config::load(1.0, generation, Span::from_ms(1_000));
        let plan = plan(config, Span::from_us(2), 100);
        let found = score(&Lab::new(), &plan, &|_, _| {}).expect("the plan fits");
        near(f64::from(found.load), 1.0 / one, 0.02, generation.version());
        // The shown run equals a single run at that load, and the next load fails.
        assert_eq!(
            found.tested,
            run(&at_load(&plan, f64::from(found.load)).expect("a test"))
        );
        let (next, failing) = found.fails.expect("a server can be filled");
        assert_eq!(next, found.load + 1);
        assert!(found.tested.passes() && !failing.passes());
        for (load, passed) in found.tried {
            assert_eq!(passed, load <= found.load, "{load}");
        }
    }
}

#[test]
fn a_share_of_slow_reads_has_its_load_and_the_score_lies_above() {
    let config = Config::load(1.0, Generation::VERSION_3, Span::from_ms(1_000));
    let plan = plan(config, Span::from_us(2), 100);
    let found = score(&Lab::new(), &plan, &|_, _| {}).expect("the plan fits");
    let loads: Vec<f64> = [0.5, 2.0, 20.0]
        .into_iter()
        .map(|percent| {
            let tested = at_share(&Lab::new(), &plan, percent).expect("a server can be filled");
            near(tested.percent_over(0), percent, 0.2, "percent over 1 ms");
            tested.config.load_factor()
        })
        .collect();
    assert!(loads.is_sorted() && loads[0] < loads[2], "{loads:?}");
    let (passes, fails) = (f64::from(found.load), f64::from(found.load + 1));
    assert!(loads[1] < fails && loads[2] > passes, "{loads:?} {passes}");
    assert_eq!(
        at_share(&Lab::new(), &plan, 2.0),
        at_share(&Lab::new(), &plan, 2.0)
    );
}

#[test]
fn a_share_that_no_load_has_is_told() {
    let config = Config::load(1.0, Generation::VERSION_3, Span::from_ms(50));
    let mut plan = plan(config, Span::ZERO, 0);
    plan = costing(plan, |costs| costs.generate = Span::from_us(50));
    let problems =
        at_share(&Lab::new(), &plan, 1.0).expect_err("the thread that makes requests is the limit");
    assert!(problems.to_string().contains("no load"), "{problems}");
}

#[test]
fn the_number_of_cores_that_simulate_changes_nothing() {
    let config = Config::load(1.0, Generation::VERSION_3, Span::from_ms(500));
    let plan = plan(config, Span::from_us(5), 100);
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build()
            .expect("a pool")
            .install(|| score(&Lab::new(), &plan, &|_, _| {}).expect("the plan fits"))
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn a_slice_is_judged_by_itself() {
    let mut plan = plan(
        Config::load(10.0, Generation::VERSION_3, Span::from_ms(6_000)),
        Span::from_us(2),
        100,
    );
    plan = judged(plan, |test| test.slice = Span::from_ms(2_000));
    let tested = run(&plan);
    assert_eq!(tested.slices().len(), 3);
    assert_eq!(tested.intervals.len(), 6);
    plan = judged(plan, |test| test.slice = Span::from_ms(4_000));
    // An unfinished slice at the end is omitted.
    assert_eq!(run(&plan).slices().len(), 1);
}

#[test]
fn records_of_several_sizes_and_committed_writes() {
    let config = Config {
        record_bytes_range_max: 4_096,
        commit_to_device: true,
        update_percent: 50,
        ..Config::load(10.0, Generation::version_6(8), Span::from_ms(2_000))
    };
    let tested = run(&plan(config, Span::from_us(1), 10));
    near(
        tested.rate(RequestKind::Read),
        25_000.0,
        0.02,
        "reads with those of updates",
    );
    near(
        tested.rate(RequestKind::Write),
        10_000.0,
        0.02,
        "writes of records",
    );
    let rate = tested.config.large_writes_per_second();
    near(
        tested.rate(RequestKind::LargeWrite),
        rate,
        0.01,
        "what defragmentation moves",
    );
    assert_eq!(tested.errors, 0);
}

/// Returns small runs with short logs.
fn logged(generation: Generation) -> (Scenario, ActResult) {
    let config = Config {
        duration: Span::from_ms(3_000),
        ..Config::load(1.0, generation, Span::ZERO)
    };
    let mut plan = plan(config, Span::from_us(300), 100);
    plan.seed = 1;
    let tested = run(&plan);
    (plan, tested)
}

#[test]
fn logs_are_written_as_act_writes_them() {
    for (name, generation) in [
        ("log_3", Generation::VERSION_3),
        ("log_6", Generation::version_6(8)),
    ] {
        let (plan, tested) = logged(generation);
        insta::assert_snapshot!(name, report::log(&plan, &tested));
    }
}

#[test]
fn the_table_on_the_terminal() {
    let (plan, tested) = logged(Generation::VERSION_3);
    let scored = score(&Lab::new(), &plan, &|_, _| {}).expect("the plan fits");
    let rows = [
        report::ActRow {
            scenario: plan.clone(),
            tested,
            score: None,
        },
        report::ActRow {
            scenario: plan,
            tested: scored.tested.clone(),
            score: Some(scored),
        },
    ];
    let text = format!(
        "{}\n\n{}\n\n{}\n{}",
        report::conditions(&rows[0]),
        report::table(&rows, None),
        report::verdicts(&rows, None),
        report::anatomy(&rows, None)
    );
    insta::assert_snapshot!(text);
}

/// Returns the value of `name` in the last interval of a log, summed over its buckets starting with `bucket`.
fn last_count(log: &str, name: &str, bucket: usize) -> u64 {
    let at = log
        .rfind(&format!("\n{name} ("))
        .expect("the histogram is there");
    let lines = log[at + 1..].lines().skip(1);
    let buckets = lines.take_while(|line| line.starts_with(" ("));
    let parts = buckets.flat_map(|line| line.split(" (").skip(1));
    let parts = parts.map(|part| {
        part.trim_end_matches(')')
            .split_once(": ")
            .expect("a bucket")
    });
    let parts = parts.map(|(index, count)| {
        let index: usize = index.parse().expect("a number");
        (index, count.parse::<u64>().expect("a number"))
    });
    parts
        .filter(|&(index, _)| index >= bucket)
        .map(|(_, count)| count)
        .sum()
}

#[test]
fn a_log_holds_what_the_verdict_saw() {
    let (plan, tested) = logged(Generation::version_6(8));
    let log = report::log(&plan, &tested);
    let (all, over) = (last_count(&log, "reads", 0), last_count(&log, "reads", 1));
    let percent = over as f64 * 100.0 / all as f64;
    assert!(over > 0, "the run is slow enough to have some");
    assert!((percent - tested.worst()[0]).abs() < 0.01, "{percent}");
}

/// Runs ACT's own analysis on a log of version 6, if available: from a checkout named by `ACT_REPOSITORY`, or from
/// GitHub. ACT's repository is not part of this one.
#[test]
fn act_latency_reads_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(script) = act_latency(folder.path()) else {
        eprintln!(
            "skipped: act_latency.py is not at hand (no network, no git, or no python3); \
             name a checkout of github.com/aerospike/act in ACT_REPOSITORY"
        );
        return;
    };
    let (plan, tested) = logged(Generation::version_6(8));
    let path = folder.path().join("act.log");
    std::fs::write(&path, report::log(&plan, &tested)).expect("a log");
    let output = std::process::Command::new("python3")
        .arg(script)
        .args(["-t", "3", "-n", "7", "-l"])
        .arg(&path)
        .output()
        .expect("python3 runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let max = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("max "))
        .expect("a line of maxima");
    let read: Vec<f64> = max
        .split_whitespace()
        .map(|cell| cell.parse().expect("a number"))
        .collect();
    for (read, ours) in read.iter().zip(tested.worst()) {
        assert!((read - ours).abs() < 0.011, "{read} {ours}");
    }
}

fn act_latency(folder: &std::path::Path) -> Option<std::path::PathBuf> {
    let runs = |command: &mut std::process::Command| {
        command.output().is_ok_and(|output| output.status.success())
    };
    if !runs(std::process::Command::new("python3").arg("--version")) {
        return None;
    }
    let checkout = match std::env::var_os("ACT_REPOSITORY") {
        Some(checkout) => checkout.into(),
        None => {
            let checkout = folder.join("act");
            let mut git = std::process::Command::new("git");
            git.env("GIT_TERMINAL_PROMPT", "0")
                .args([
                    "-c",
                    "http.lowSpeedLimit=1000",
                    "-c",
                    "http.lowSpeedTime=10",
                ])
                .args(["clone", "--quiet", "--depth", "1"])
                .arg("https://github.com/aerospike/act")
                .arg(&checkout);
            if !runs(&mut git) {
                return None;
            }
            checkout
        }
    };
    let script = checkout.join("analysis").join("act_latency.py");
    script.is_file().then_some(script)
}
