//! Trace replay: issue times, addresses, and results.

#[path = "../../workload/tests/trace/write.rs"]
#[allow(dead_code, reason = "shared with the tests of the readers")]
mod write;

use std::io::Write as _;
use std::path::PathBuf;

use lab::{Lab, Machine, Outcome, Scenario, TraceReplay, Work};
use model::engine::Workload;
use model::host::HostConfig;
use model::media::Precondition;
use model::media::ram::RamConfig;
use model::{Capacity, Command, Completion, Op, Part, Span, Time};
use proptest::prelude::*;
use std::sync::Arc;
use text::problem::Problems;
use tier::DriveConfig;
use workload::replay::{Layout, OutOfRangePolicy, Pace, Replay};
use workload::trace::{self, Options, Trace};
use write::Io;

/// Prints that a test is skipped, to a stream that the test harness does not capture (it captures `eprintln!`).
macro_rules! skip {
    ($($what:tt)*) => {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {}", format_args!($($what)*));
    };
}

/// Returns a RAM disk with 2 µs per command and 1 ns per 10 bytes: one FIFO server.
fn machine(bytes: u64) -> Machine {
    let drive = DriveConfig::Ram(RamConfig {
        bytes,
        per_command: Span::from_us(2),
        picoseconds_per_byte: 100,
        memory_bus: None,
        spread: 0.0,
    });
    let host = HostConfig {
        cores: 4,
        ..HostConfig::default()
    };
    Machine::from_configs("ram", drive, host)
}

/// Settings of a replay.
#[derive(Clone)]
struct Plan {
    machine: Machine,
    state: Precondition,
    pace: Pace,
    beyond: OutOfRangePolicy,
    threads: Option<u16>,
}

fn plan(bytes: u64, pace: Pace) -> Plan {
    Plan {
        machine: machine(bytes),
        state: Precondition::Fresh,
        pace,
        beyond: OutOfRangePolicy::Refuse,
        threads: None,
    }
}

fn run(trace: &Trace, plan: &Plan) -> Result<Outcome, Problems> {
    let replay = TraceReplay {
        pace: plan.pace,
        beyond: plan.beyond,
        threads: plan.threads,
        ..TraceReplay::new(Arc::new(trace.clone()))
    };
    let work = Work::Trace(replay);
    Lab::new().run(&Scenario::new(plan.machine.clone(), plan.state, work, 1))
}

fn trace_of(ios: &[Io]) -> Trace {
    trace::read_from(&write::msr(ios)[..], "t.csv", &Options::default()).unwrap()
}

fn io(at_us: u64, sector: u64, sectors: u32) -> Io {
    Io {
        at_us,
        write: false,
        sector,
        sectors,
        volume: 0,
        latency_us: 100,
    }
}

fn ios() -> impl Strategy<Value = Vec<Io>> {
    let one = (0u64..200, any::<bool>(), 0u64..1 << 20, 1u32..300);
    prop::collection::vec(one, 1..200).prop_map(|ios| {
        let mut now = 0;
        ios.into_iter()
            .map(|(gap, write, sector, sectors)| {
                now += gap;
                Io {
                    write,
                    ..io(now, sector, sectors)
                }
            })
            .collect()
    })
}

/// Returns the sample traces; none if they are not next to the checkout.
fn samples() -> Vec<PathBuf> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces");
    let Ok(files) = std::fs::read_dir(dir) else {
        skip!("no sample traces at {dir}");
        return Vec::new();
    };
    let files = files.map(|file| file.unwrap().path());
    let files: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|extension| extension == "xz"))
        .collect();
    assert!(files.len() >= 8, "only {} traces in {dir}", files.len());
    files
}

fn replays_completely(trace: &Trace, plan: &Plan) {
    let mut plan = plan.clone();
    plan.beyond = OutOfRangePolicy::Wrap;
    let replayed = run(trace, &plan).unwrap_or_else(|error| panic!("{error}"));
    let thread = &replayed.threads[0];
    let done = thread.read.ios + thread.write.ios + replayed.replayed().expect("a trace").empty;
    let what = format!("{} on {}", trace.origin, plan.machine.name());
    assert_eq!(done, trace.records.len() as u64, "{what}");
    assert_eq!(thread.read.errors + thread.write.errors, 0, "{what}");
}

#[test]
fn every_sample_replays_completely() {
    for file in samples() {
        let trace =
            trace::read(&file, &Options::default()).unwrap_or_else(|error| panic!("{error}"));
        replays_completely(&trace, &plan(1 << 38, Pace::Recorded(1.0)));
        replays_completely(&trace, &plan(1 << 38, Pace::Depth(32)));
    }
}

#[test]
fn every_sample_begins_on_drives_of_each_medium() {
    for name in ["p4800x-375", "p3700-1600", "950pro-256", "p3608-1600"] {
        let sheet = catalogue::drive(name).unwrap_or_else(|error| panic!("{error}"));
        for file in samples() {
            let options = Options {
                first: Some(1_000),
                ..Options::default()
            };
            let trace = trace::read(&file, &options).unwrap_or_else(|error| panic!("{error}"));
            for pace in [Pace::Recorded(1.0), Pace::Depth(32)] {
                let host = catalogue::host("xeon-2017").unwrap();
                let plan = Plan {
                    machine: Machine::new(&sheet, &host),
                    ..plan(0, pace)
                };
                replays_completely(&trace, &plan);
            }
        }
    }
}

/// Returns the commands of a replay, on a device that answers each after `service`, any number at once.
fn arrivals(trace: &Trace, pace: Pace, service: Span) -> Vec<(Time, Command)> {
    let capacity = Capacity {
        bytes: 1 << 40,
        block: 512,
    };
    let layout = Layout::new(trace, "d", capacity, OutOfRangePolicy::Refuse).unwrap();
    let mut replay = Replay::new(trace, &layout, pace, 1, Span::ZERO);
    let mut seen = Vec::new();
    let mut inside: Vec<(Time, u32)> = Vec::new();
    while !replay.finished() {
        let completes = inside
            .iter()
            .map(|&(at, _)| at)
            .min()
            .unwrap_or(Time::NEVER);
        let now = completes.min(replay.next_arrival());
        assert_ne!(now, Time::NEVER);
        while let Some(index) = inside.iter().position(|&(at, _)| at == now) {
            let (at, id) = inside.remove(index);
            let completion = Completion {
                id,
                at,
                status: Default::default(),
                anatomy: Default::default(),
            };
            replay.complete(now, &completion);
        }
        if replay.next_arrival() == now {
            replay.arrive(now, &mut |command| {
                assert!(
                    inside.iter().all(|&(_, id)| id != command.id),
                    "an id is used twice at once"
                );
                inside.push((now + service, command.id));
                seen.push((now, command));
            });
            assert!(replay.next_arrival() > now);
        }
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests_arrive_as_recorded_and_twice_as_fast_at_speed_2(ios in ios()) {
        let trace = trace_of(&ios);
        let service = Span::from_us(30);
        let recorded = arrivals(&trace, Pace::Recorded(1.0), service);
        let faster = arrivals(&trace, Pace::Recorded(2.0), service);
        prop_assert_eq!(recorded.len(), ios.len());
        for (io, ((at, command), (sooner, _))) in ios.iter().zip(recorded.iter().zip(&faster)) {
            prop_assert_eq!(at.ns(), (io.at_us - ios[0].at_us) * 1_000);
            prop_assert_eq!(sooner.ns(), at.ns() / 2);
            prop_assert_eq!(command.offset, io.sector * 512);
            prop_assert_eq!(command.bytes, io.sectors * 512);
            prop_assert_eq!(command.op, if io.write { Op::Write } else { Op::Read });
        }
    }

    #[test]
    fn a_depth_is_kept_full_and_ids_are_dense(ios in ios(), depth in 1u32..20) {
        let trace = trace_of(&ios);
        let service = Span::from_us(30);
        let seen = arrivals(&trace, Pace::Depth(depth), service);
        for (index, (at, command)) in seen.iter().enumerate() {
            prop_assert_eq!(at.ns(), service.ns() * (index as u64 / u64::from(depth)));
            prop_assert!(command.id < depth);
        }
    }

    /// Each command has its own service time on the RAM disk's one server, so throughput cannot fall with depth.
    #[test]
    fn throughput_does_not_fall_with_depth(ios in ios()) {
        let trace = trace_of(&ios);
        let mut last = Time::NEVER;
        for depth in [1, 2, 4, 16, 64] {
            let end = run(&trace, &plan(1 << 40, Pace::Depth(depth))).unwrap().end;
            prop_assert!(end <= last);
            last = end;
        }
    }

    #[test]
    fn the_same_plan_gives_the_same_result(ios in ios(), speed in 0.1f64..10.0) {
        let trace = trace_of(&ios);
        let plan = plan(1 << 40, Pace::Recorded(speed));
        prop_assert_eq!(run(&trace, &plan).unwrap(), run(&trace, &plan).unwrap());
    }

    #[test]
    fn folded_requests_lie_within_the_drive(ios in ios(), blocks in 300u64..4_000, block in prop::sample::select(vec![512u32, 4096])) {
        let trace = trace_of(&ios);
        let capacity = Capacity { bytes: blocks * 4096, block };
        let layout = Layout::new(&trace, "d", capacity, OutOfRangePolicy::Wrap).unwrap();
        let mut replay = Replay::new(&trace, &layout, Pace::Depth(1_000), 1, Span::ZERO);
        let mut commands = Vec::new();
        replay.arrive(Time::ZERO, &mut |command| commands.push(command));
        prop_assert_eq!(commands.len(), ios.len());
        for (io, command) in ios.iter().zip(commands) {
            prop_assert!(command.end() <= capacity.bytes);
            prop_assert!(command.offset.is_multiple_of(u64::from(block)) && command.bytes.is_multiple_of(block));
            prop_assert!(u64::from(command.bytes) >= u64::from(io.sectors) * 512);
            let end = (io.sector + u64::from(io.sectors)) * 512;
            if end.next_multiple_of(4096) <= capacity.bytes {
                prop_assert!(command.offset <= io.sector * 512 && command.end() >= end);
            }
        }
    }
}

#[test]
fn latency_counts_from_the_recorded_arrival() {
    // Ten simultaneous requests on one server of 2 µs + 51.2 ns: the last waits for nine.
    let trace = trace_of(&[io(0, 0, 1); 10]);
    let replayed = run(&trace, &plan(1 << 20, Pace::Recorded(1.0))).unwrap();
    let read = &replayed.threads[0].read;
    assert_eq!(read.latency.max(), Some(Span::from_ns(10 * 2_051)));
    assert_eq!(read.latency.min(), Some(Span::from_ns(2_051)));
    assert_eq!(
        replayed.replayed().expect("a trace").recorded[0].mean_ns(),
        100_000.0
    );
    // At depth 1, no request waits for another.
    let replayed = run(&trace, &plan(1 << 20, Pace::Depth(1))).unwrap();
    assert_eq!(
        replayed.threads[0].read.latency.max(),
        Some(Span::from_ns(2_051))
    );
    assert_eq!(replayed.end, Time::from_ns(10 * 2_051));
}

#[test]
fn what_finds_no_place_waits_and_that_is_in_its_latency() {
    let many = 40_000;
    let trace = trace_of(&vec![io(0, 0, 1); many]);
    let replayed = run(&trace, &plan(1 << 20, Pace::Recorded(1.0))).unwrap();
    let read = &replayed.threads[0].read;
    assert_eq!(read.ios, many as u64);
    assert_eq!(read.latency.max(), Some(Span::from_ns(many as u64 * 2_051)));
    let slowest = read.bands.percentile_bands(&[90.0, 100.0]);
    assert!(slowest[0].mean_ns[Part::QueueSlot as usize] > 0.0);
    // The mean parts of all I/Os sum to the mean latency.
    let all = &read.bands.percentile_bands(&[0.0, 100.0])[0];
    let sum: f64 = all.mean_ns.iter().sum();
    assert!((sum / read.latency.mean_ns() - 1.0).abs() < 1e-12, "{sum}");
}

#[test]
fn volumes_lie_side_by_side() {
    let on = |volume: u8, sector: u64| Io {
        volume,
        ..io(0, sector, 8)
    };
    let trace = trace_of(&[on(3, 4_000), on(1, 0), on(3, 0), on(1, 16)]);
    assert_eq!(trace.volumes, ["h_3", "h_1"]);
    let offsets: Vec<u64> = arrivals(&trace, Pace::Depth(9), Span::from_us(1))
        .iter()
        .map(|(_, command)| command.offset)
        .collect();
    // The first volume ends at sector 4,008, so the second starts at 2 MiB.
    assert_eq!(offsets, [4_000 * 512, 2 << 20, 0, (2 << 20) + 16 * 512]);
}

#[test]
fn requests_of_no_bytes_are_left_out_and_odd_ones_widened() {
    let rows = b"0,0.1,W,0,100,0\n0,0.1,R,0,100,600\n0,0.1,W,0,4096,0\n";
    let trace = trace::read_from(
        &rows[..],
        "t",
        &Options {
            format: trace::Format::named("systor"),
            ..Options::default()
        },
    )
    .unwrap();
    let replayed = run(&trace, &plan(1 << 20, Pace::Recorded(1.0))).unwrap();
    let thread = &replayed.threads[0];
    let own = replayed.replayed().expect("a trace");
    assert_eq!((own.empty, own.widened), (2, 1));
    assert_eq!(
        (thread.read.ios, thread.read.bytes, thread.write.ios),
        (1, 1_024, 0)
    );
}

#[test]
fn what_does_not_fit_is_refused_with_its_line() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let ios = [io(5, 0, 8), io(7, 3_000, 8), io(9, 2_040, 16)];
    std::fs::write(file.path(), write::msr(&ios)).unwrap();
    let trace = trace::read(file.path(), &Options::default()).unwrap();
    let told = |trace: &Trace, plan: &Plan| {
        let message = run(trace, plan).map(|_| ()).unwrap_err().to_string();
        message.replace(&file.path().display().to_string(), "t.csv")
    };
    insta::assert_snapshot!(told(&trace, &plan(1 << 20, Pace::Recorded(1.0))), @r#"
error: t.csv:2: 2 of 3 requests: beyond the end of ram (1048576 bytes); the first is 4096 bytes at 1536000
  help: --beyond wrap folds addresses into the drive
"#);
    let mut small = plan(6 << 10, Pace::Depth(1));
    small.beyond = OutOfRangePolicy::Wrap;
    insta::assert_snapshot!(told(&trace, &small), @"error: t.csv:3: 1 of 3 requests: longer than all of ram (6144 bytes); the first is 8192 bytes at 1044480");
    insta::assert_snapshot!(told(&trace, &plan(1 << 30, Pace::Recorded(1e-30))), @"error: replay: the speed is 0.000000000000000000000000000001; it must be from 1e-6 to 1e6");

    let two = [
        io(5, 0, 8),
        Io {
            volume: 1,
            ..io(6, 3_000, 8)
        },
    ];
    std::fs::write(file.path(), write::mqsim(&two)).unwrap();
    let trace = trace::read(file.path(), &Options::default()).unwrap();
    insta::assert_snapshot!(told(&trace, &plan(1 << 20, Pace::Recorded(1.0))), @r#"
error: t.csv:2: 1 of 2 requests: beyond the end of ram (1048576 bytes); the first is 4096 bytes at 1536000 of volume 1, which is byte 2584576 of the drive
  help: --beyond wrap folds addresses into the drive; --volume NAME replays one volume alone
"#);
}

#[test]
fn a_job_plays_an_iolog() {
    use workload::job::{IoLog, Job};
    let ios = [
        io(0, 0, 8),
        Io {
            write: true,
            ..io(70, 64, 16)
        },
        io(90, 8, 0),
        Io {
            volume: 1,
            ..io(95, 0, 8)
        },
    ];
    for writer in [write::iolog_2, write::iolog_3, write::blktrace] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), writer(&ios)).unwrap();
        let iolog = IoLog {
            path: file.path().into(),
            no_stall: false,
            time_scale: 100,
        };
        let mut jobs = [Job {
            iolog: Some(iolog),
            ..Job::default()
        }];
        workload::replay::read_iologs(&mut jobs).unwrap();
        let got: Vec<_> = jobs[0]
            .records
            .as_ref()
            .unwrap()
            .iter()
            .map(|io| (io.at.us(), io.op, io.offset, io.bytes))
            .collect();
        let expected = [
            (0.0, Op::Read, 0, 4_096),
            (70.0, Op::Write, 32_768, 8_192),
            (95.0, Op::Read, 1 << 20, 4_096),
        ];
        assert_eq!(got, expected);
    }
    let iolog = IoLog {
        path: "no/such/log".into(),
        no_stall: false,
        time_scale: 100,
    };
    let problems = workload::replay::read_iologs(&mut [Job {
        iolog: Some(iolog),
        ..Job::default()
    }])
    .unwrap_err();
    assert!(
        problems
            .to_string()
            .starts_with("error: no/such/log: cannot be read"),
        "{problems}"
    );
}
