//! Management operations of a drive, tested through the public interface.

use model::engine::{Workload, run};
use model::host::PowerTransition;
use model::management::{
    LbaFormat, Lifetime, ManagedDrive, Management, OperationKind, Refusal, RelativePerformance,
    SanitizeStatus, Thermal,
};
use model::media::ram::RamConfig;
use model::media::xpoint::{
    Levelling, Recovery, Wear, XPoint, XPointConfig, XPointPower, XPointRefresh, XPointTiming,
};
use model::media::{Medium, MediumDrive, Precondition};
use model::{Command, Completion, Device, Gauge, Gauges, Op, Part, Span, Stream, Time};

/// A small XPoint drive: 2.6 GB/s of reads, 2 GB/s of writes; 5 W idle, 13 W when it writes at full speed.
fn xpoint() -> XPointConfig {
    XPointConfig {
        bytes: 1 << 34,
        block: 512,
        channels: 7,
        dies_per_channel: 4,
        die_bytes: 1 << 32,
        max_transfer: 128 << 10,
        timing: XPointTiming {
            link: Span::from_ns(1_000),
            link_ps_per_byte: 250,
            data_fetch: Span::from_ns(300),
            controller: Span::from_ns(2_000),
            further_block: Span::from_ns(8),
            controller_interval: Span::from_ns(500),
            controller_slots: 128,
            write_buffers: 32,
            table_places: 16,
            read_path_ps_per_byte: 384,
            read_part: 4096,
            read_completion: Span::ZERO,
            read_spread: Span::ZERO,
            write_path_ps_per_byte: 500,
            turnaround: Span::from_ns(300),
            duplex: false,
            die_read: Span::from_ns(4_200),
            decode: Span::ZERO,
            die_write: Span::from_ns(28_000),
        },
        refresh: XPointRefresh {
            batch_units: 12,
            period: Span::from_seconds(864_000.0),
            after_power_on: Span::from_seconds(1_000.0),
            uptime_at_start: Span::from_seconds(86_400.0),
        },
        levelling: Levelling {
            writes_per_move: 0,
            batch_units: 0,
        },
        recovery: Recovery {
            reads_per_recovery: 0,
            time: Span::ZERO,
        },
        power: XPointPower {
            idle_watts: 5.0,
            read_joules_per_byte: 1.2e-9,
            write_joules_per_byte: 4e-9,
            limit_watts: 18.0,
            governor_window: Span::from_ms(10),
        },
        wear: Wear {
            endurance_bytes: 100_000_000_000,
            percentage_used_at_start: 0.0,
            factor: 1.0,
            protect_at_percent: 105.0,
            protected_bytes_per_second: 30_000_000,
        },
        format_die_bytes_per_second: 50_000_000,
    }
}

fn format(data: u32, metadata: u16) -> LbaFormat {
    LbaFormat {
        data,
        metadata,
        performance: RelativePerformance::Best,
    }
}

fn management() -> Management {
    Management {
        lba_formats: vec![
            format(512, 0),
            format(512, 8),
            format(4096, 0),
            format(4096, 128),
        ],
        power_limits_watts: vec![18.0, 12.0],
        thermal: Thermal {
            ambient_celsius: 30.0,
            kelvin_per_watt: 2.5,
            time_constant: Span::from_seconds(12.0),
            warning_celsius: 70.0,
            critical_celsius: 80.0,
        },
        retention: None,
    }
}

fn managed<M: Medium>(config: &M) -> ManagedDrive<M::Drive> {
    let lifetime = Lifetime::of_new(config);
    ManagedDrive::new(config, &management(), Precondition::Steady, 7, lifetime)
        .expect("its first format is there")
}

/// A closed loop of 4 KiB or larger I/Os, or an open loop if `every` is not zero, for a time.
struct Load {
    stream: Stream,
    op: Op,
    bytes: u32,
    free: Vec<u32>,
    due: Time,
    until: Time,
    every: Span,
    log: Vec<Completion>,
}

impl Load {
    fn new(op: Op, bytes: u32, depth: u32, from: Time, seconds: f64) -> Load {
        Load {
            stream: Stream::new(3, "load"),
            op,
            bytes,
            free: (0..depth).collect(),
            due: from,
            until: from + Span::from_seconds(seconds),
            every: Span::ZERO,
            log: Vec::new(),
        }
    }

    /// Runs the load; returns bytes per second, and the end.
    fn on<D: Device>(mut self, device: &mut D, from: Time) -> Done {
        let end = run(device, &mut self, from, Time::NEVER);
        let bytes = self.log.len() as f64 * f64::from(self.bytes);
        Done {
            bytes_per_second: bytes / end.since(from).seconds(),
            log: self.log,
            end,
        }
    }
}

struct Done {
    bytes_per_second: f64,
    log: Vec<Completion>,
    end: Time,
}

impl Done {
    fn mean_ns(&self) -> f64 {
        let all: u64 = self.log.iter().map(|it| it.anatomy.total().ns()).sum();
        all as f64 / self.log.len() as f64
    }

    fn behind_refresh(&self) -> usize {
        let behind = |it: &&Completion| it.anatomy.get(Part::BehindRefresh) > Span::ZERO;
        self.log.iter().filter(behind).count()
    }
}

impl Workload for Load {
    fn next_arrival(&self) -> Time {
        self.due
    }

    fn arrive(&mut self, now: Time, submit: &mut impl FnMut(Command)) {
        self.due = Time::NEVER;
        while now < self.until
            && let Some(id) = self.free.pop()
        {
            let places = (1u64 << 34) / u64::from(self.bytes);
            let offset = self.stream.uniform_below(places) * u64::from(self.bytes);
            submit(Command::new(id, self.op, offset, self.bytes));
            if self.every > Span::ZERO {
                self.due = now + self.every;
                return;
            }
        }
    }

    fn complete(&mut self, now: Time, completion: &Completion) {
        self.log.push(*completion);
        self.free.push(completion.id);
        if now < self.until && self.every == Span::ZERO {
            self.due = now;
        }
    }
}

#[derive(Default)]
struct Joules(f64);

impl Gauges for Joules {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        if gauge == Gauge::EnergyJoules {
            self.0 += value;
        }
    }
}

fn joules<D: Device>(device: &D, now: Time) -> f64 {
    let mut joules = Joules::default();
    device.inspect(now, &mut joules);
    joules.0
}

fn close_to(measured: f64, expected: f64, share: f64, what: &str) {
    assert!(
        (measured - expected).abs() <= share * expected.abs(),
        "{what}: {measured} instead of {expected}"
    );
}

#[test]
fn a_managed_drive_keeps_the_laws() {
    model::conformance::check_drive(|seed| {
        let lifetime = Lifetime::default();
        let mut small = xpoint();
        small.bytes = 256 << 20;
        ManagedDrive::<XPoint>::new(&small, &management(), Precondition::Steady, seed, lifetime)
            .expect("its first format is there")
    });
}

#[test]
fn a_format_takes_as_long_as_its_dies_and_then_the_other_format_is_in_use() {
    let mut drive = managed(&xpoint());
    // Dies of 2^32 bytes at 50 MB/s, all at once.
    let duration = Span::from_seconds(f64::from(u32::MAX) / 50e6);
    close_to(
        drive.format_duration().seconds(),
        duration.seconds(),
        1e-6,
        "duration",
    );
    let now = Time::from_ns(5_000_000);
    let operation = drive.format(now, 2).expect("nothing hinders it");
    assert_eq!(
        (operation.kind, operation.since),
        (OperationKind::Format, now)
    );
    assert_eq!(operation.until, now + drive.format_duration());
    let half = now + Span::from_ns(drive.format_duration().ns() / 2);
    close_to(operation.progress(half), 0.5, 1e-6, "progress");
    assert_eq!(drive.format(half, 0), Err(Refusal::Busy));
    assert_eq!(drive.sanitize(half), Err(Refusal::Busy));
    assert_eq!(drive.operation(operation.until), None);
    assert_eq!(drive.capacity().block, 4096);
    assert_eq!(drive.lifetime(half).lba_format, 2);
    assert!(matches!(
        drive.format(operation.until, 9),
        Err(Refusal::Invalid(_))
    ));
}

#[test]
fn a_format_waits_for_nobody_but_refuses_while_commands_are_inside() {
    let mut drive = managed(&xpoint());
    drive.submit(Time::ZERO, Command::read(0, 0, 4096));
    assert_eq!(drive.format(Time::ZERO, 2), Err(Refusal::Busy));
    let mut done = Vec::new();
    while done.is_empty() {
        let next = drive.next_event();
        drive.advance(next, next, &mut done);
    }
    assert!(drive.format(done[0].at, 2).is_ok());
}

#[test]
fn counters_go_on_over_a_format_and_a_restart() {
    let mut drive = managed(&xpoint());
    let load = Load::new(Op::Write, 65_536, 4, Time::ZERO, 1.0).on(&mut drive, Time::ZERO);
    let writes = load.log.len() as u64;
    let before = drive.health(load.end);
    let energy = joules(&drive, load.end);
    let operation = drive.format(load.end, 2).expect("nothing hinders it");
    close_to(joules(&drive, load.end), energy, 1e-9, "joules");
    let after = drive.health(load.end);
    assert_eq!(before.lifetime.host_bytes_written, writes * 65_536);
    assert_eq!(after.lifetime.host_bytes_written, writes * 65_536);
    assert_eq!(
        after.data_units_written(),
        (writes * 65_536).div_ceil(512_000)
    );
    close_to(
        after.lifetime.percentage_used,
        before.lifetime.percentage_used,
        1e-9,
        "percentage used",
    );
    let again = Load::new(Op::Write, 65_536, 4, operation.until, 0.5);
    let again = again.on(&mut drive, operation.until);
    let kept = drive.lifetime(again.end);
    let all = writes + again.log.len() as u64;
    assert_eq!(
        (kept.host_write_commands, kept.host_bytes_written),
        (all, all * 65_536)
    );
    assert_eq!(kept.power_on, again.end.since(Time::ZERO));
    close_to(kept.busy.seconds(), 1.5, 0.01, "busy");

    let mut next = ManagedDrive::<XPoint>::new(
        &xpoint(),
        &management(),
        Precondition::Steady,
        7,
        kept.clone(),
    )
    .expect("its format is there");
    assert_eq!(next.capacity().block, 4096);
    let health = next.health(Time::ZERO);
    assert_eq!(health.lifetime.host_bytes_written, all * 65_536);
    assert_eq!(health.lifetime.power_cycles, 2);
    close_to(
        health.lifetime.percentage_used,
        kept.percentage_used,
        1e-9,
        "used",
    );
    let mut unknown = kept;
    unknown.lba_format = 44;
    assert!(
        ManagedDrive::<XPoint>::new(&xpoint(), &management(), Precondition::Steady, 7, unknown)
            .is_err()
    );
}

#[test]
fn a_lower_power_limit_keeps_watts_below_it_and_costs_throughput() {
    let writes = |watts: f64| {
        let mut config = xpoint();
        config.set_power_limit(watts).expect("it has a governor");
        let mut drive = config.build(Precondition::Steady, 1);
        let done = Load::new(Op::Write, 65_536, 8, Time::ZERO, 2.0).on(&mut drive, Time::ZERO);
        (
            done.bytes_per_second,
            joules(&drive, done.end) / done.end.seconds(),
        )
    };
    let (full, watts) = writes(18.0);
    close_to(full, 2e9, 0.01, "unlimited");
    close_to(watts, 13.0, 0.01, "its watts");
    let (governed, watts) = writes(10.0);
    // 5 W above idle at 4 nJ a byte.
    close_to(governed, 1.25e9, 0.02, "governed");
    assert!(watts < 10.1, "{watts} W");
    // Changed during a run, it has the same effect as set before.
    let mut drive = managed(&xpoint());
    assert_eq!(drive.power_limit(), Some(18.0));
    drive.set_power_limit(10.0).expect("it has a governor");
    let done = Load::new(Op::Write, 65_536, 8, Time::ZERO, 2.0).on(&mut drive, Time::ZERO);
    close_to(
        done.bytes_per_second,
        governed,
        1e-9,
        "set on a running drive",
    );
    assert!(matches!(
        drive.set_power_limit(4.0),
        Err(Refusal::Invalid(_))
    ));
    assert!(matches!(
        drive.set_power_limit(f64::NAN),
        Err(Refusal::Invalid(_))
    ));
}

#[test]
fn past_105_percent_it_writes_30_megabytes_a_second_and_says_so() {
    let mut drive = managed(&xpoint());
    drive.set_percentage_used(104.9).expect("it wears");
    // 0.1 % of 100 GB is 100 MB.
    let last = Load::new(Op::Write, 65_536, 4, Time::ZERO, 0.02).on(&mut drive, Time::ZERO);
    assert!(last.bytes_per_second > 1.5e9, "{}", last.bytes_per_second);
    let health = drive.health(last.end);
    assert!(health.warning.reliability && health.warning.bits() == 4);
    assert_eq!(health.percentage_used(), 104);
    assert!(!drive.write_protected(last.end));
    drive.set_percentage_used(105.0).expect("it wears");
    assert!(drive.write_protected(last.end));
    let after = Load::new(Op::Write, 65_536, 4, last.end, 1.0).on(&mut drive, last.end);
    close_to(after.bytes_per_second, 30e6, 0.05, "protected");
    // Wear is reset, as when a fault is cleared.
    drive.set_percentage_used(3.0).expect("it wears");
    let mended = Load::new(Op::Write, 65_536, 4, after.end, 0.1).on(&mut drive, after.end);
    assert!(
        mended.bytes_per_second > 1.5e9,
        "{}",
        mended.bytes_per_second
    );
}

#[test]
fn after_power_on_more_reads_meet_a_refresh() {
    let mut drive = managed(&xpoint());
    let paced = |from: Time| Load {
        every: Span::from_us(50),
        ..Load::new(Op::Read, 4096, 64, from, 5.0)
    };
    let settled = paced(Time::ZERO).on(&mut drive, Time::ZERO);
    let mut lost = Vec::new();
    let back = drive.power_cut(settled.end, &mut lost);
    assert_eq!(
        (back, lost),
        (settled.end, Vec::new()),
        "no buffer, no loss"
    );
    let fresh = paced(settled.end).on(&mut drive, settled.end);
    let (few, many) = (settled.behind_refresh(), fresh.behind_refresh());
    assert!(many > 10 * (few + 1), "{few} before, {many} after power-on");
    let lifetime = drive.lifetime(fresh.end);
    assert_eq!((lifetime.power_cycles, lifetime.unsafe_shutdowns), (2, 1));
    // When the pass is done, the rate is as before.
    let later = fresh.end + Span::from_seconds(1_001.0);
    let rested = paced(later).on(&mut drive, later);
    assert!(
        rested.behind_refresh() <= few + 3,
        "{}",
        rested.behind_refresh()
    );
}

#[test]
fn formats_cost_a_little() {
    let mean = |format: LbaFormat| {
        let mut config = xpoint();
        config.set_lba_format(format);
        let mut drive = config.build(Precondition::Steady, 1);
        assert_eq!(drive.capacity().block, format.data);
        Load::new(Op::Read, 4096, 1, Time::ZERO, 0.2)
            .on(&mut drive, Time::ZERO)
            .mean_ns()
    };
    let (large, small) = (mean(format(4096, 0)), mean(format(512, 0)));
    // Seven further blocks of 8 ns.
    close_to(small - large, 56.0, 0.01, "512 B blocks");
    // 3 % more bytes on the data path of 1573 ns.
    close_to(
        mean(format(4096, 128)) - large,
        1_638.0 / 32.0,
        0.05,
        "metadata",
    );
    assert!(small < 1.02 * large, "a little only: {small} and {large}");
}

#[test]
fn it_warms_up_and_too_hot_it_throttles() {
    let mut hardy = xpoint();
    hardy.wear.endurance_bytes = 1 << 50;
    let mut drive = managed(&hardy);
    let mut now = Time::ZERO;
    let mut second = |drive: &mut ManagedDrive<XPoint>| {
        let done = Load::new(Op::Write, 131_072, 8, now, 1.0).on(drive, now);
        now = done.end;
        let health = drive.health(now);
        (done.bytes_per_second, health)
    };
    let (speed, first) = second(&mut drive);
    close_to(first.watts, 13.0, 0.02, "watts");
    assert!(
        first.celsius > 30.0 && first.celsius < 33.0,
        "{}",
        first.celsius
    );
    // At this air temperature, 13 W would heat the drive to 84.5 degrees.
    drive.set_ambient_celsius(Time::ZERO, 52.0);
    let mut slow = speed;
    let mut hottest: f64 = 0.0;
    for _ in 0..60 {
        let (speed, health) = second(&mut drive);
        slow = slow.min(speed);
        hottest = hottest.max(health.celsius);
    }
    let (_, health) = second(&mut drive);
    assert!(slow < 0.5 * speed, "{slow} of {speed}");
    assert!(hottest < 81.0, "{hottest}");
    assert!(health.warning.temperature, "{health:?}");
    assert!(health.lifetime.warm.seconds() > 20.0, "{health:?}");
    assert_eq!(
        f64::from(health.kelvin()),
        (health.celsius + 273.15).round()
    );
}

#[test]
fn a_sanitize_is_logged() {
    let mut drive = managed(&xpoint());
    assert_eq!(drive.sanitize_status(Time::ZERO), SanitizeStatus::Never);
    let operation = drive.sanitize(Time::ZERO).expect("nothing hinders it");
    assert_eq!(operation.kind, OperationKind::Sanitize);
    let status = drive.sanitize_status(Time::from_ns(operation.until.ns() / 4));
    assert!(matches!(status, SanitizeStatus::InProgress(done) if (0.2..0.3).contains(&done)));
    assert_eq!(drive.sanitize_status(operation.until), SanitizeStatus::Done);
    assert_eq!(drive.lba_format_number(), 0);
}

#[test]
fn what_a_drive_does_not_have_is_refused() {
    let mut ram = RamConfig {
        bytes: 1 << 30,
        per_command: Span::from_us(1),
        picoseconds_per_byte: 100,
        memory_bus: None,
        spread: 0.0,
    };
    let refused = |result| matches!(result, Err(Refusal::Unsupported(_)));
    assert!(refused(ram.set_power_limit(9.0)));
    assert!(refused(ram.set_percentage_used(9.0)));
    assert!(refused(ram.set_uptime(Span::ZERO)));
    let mut drive = ram.build(Precondition::Steady, 1);
    assert!(refused(drive.set_power_limit(9.0)));
    assert!(matches!(
        xpoint().set_percentage_used(-1.0),
        Err(Refusal::Invalid(_))
    ));
}

/// A served drive wakes late: before its first command, and after an idle time; a format changes nothing about it.
#[test]
fn a_managed_drive_enters_power_states() {
    let mut drive = managed(&RamConfig {
        bytes: 1 << 30,
        per_command: Span::from_us(100),
        picoseconds_per_byte: 0,
        memory_bus: None,
        spread: 0.0,
    });
    drive.set_power_transitions(vec![PowerTransition {
        after: Span::from_ms(100),
        entry: Span::from_ms(2),
        exit: Span::from_ms(8),
        saved_microwatts: 0,
    }]);
    let mut latency = |at_ms| {
        let at = Time::ZERO + Span::from_ms(at_ms);
        drive.submit(at, Command::read(0, 0, 4096));
        let mut done = Vec::new();
        while done.is_empty() {
            let next = drive.next_event();
            drive.advance(next, next, &mut done);
        }
        if at_ms == 50 {
            drive.format(done[0].at, 0).expect("it is idle");
        }
        done[0].at.since(at)
    };
    let latencies = [0, 50, 100, 1000].map(&mut latency);
    assert_eq!(latencies, [8_100, 100, 100, 8_100].map(Span::from_us));
}
