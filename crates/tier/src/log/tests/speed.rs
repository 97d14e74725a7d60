//! Sustained write throughput.

use super::*;

/// A closed loop of writes of one size at a fixed queue depth: returns completions per second over the second half.
fn rate<L: Device>(pool: &mut Pool<L>, depth: u32, command: Command, span: Span) -> f64 {
    let blocks = pool.capacity().bytes / u64::from(command.bytes);
    let mut sent = 0;
    let mut send = |pool: &mut Pool<L>, now, id| {
        let offset = sent % blocks * u64::from(command.bytes);
        sent += 1;
        pool.submit(
            now,
            Command {
                id,
                offset,
                ..command
            },
        );
    };
    for id in 0..depth {
        send(pool, Time::ZERO, id);
    }
    let (half, end) = (span.ns() / 2, span.ns());
    let mut count = 0;
    let mut done = Vec::new();
    loop {
        let now = pool.next_event();
        if now.ns() > end {
            return count as f64 / (Span::from_ns(end - half).seconds());
        }
        pool.advance(now, now, &mut done);
        for completion in done.drain(..) {
            count += u64::from(now.ns() > half);
            send(pool, now, completion.id);
        }
    }
}

#[derive(Default)]
struct Seen {
    dirty: f64,
    busy: f64,
}

impl Gauges for Seen {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        match gauge {
            Gauge::DirtyBytes => self.dirty += value,
            Gauge::ControllerBusySeconds => self.busy += value,
            _ => {}
        }
    }
}

#[test]
fn writes_go_as_fast_as_main_takes_them_and_memory_stays_between_delay_and_full() {
    let tier = IntentLogConfig {
        cpu: LogCpu::default(),
        ..config()
    };
    let mut pool = pool(&tier, 0).build(Precondition::Fresh, 1);
    let rate = rate(
        &mut pool,
        4,
        Command::write(0, 0, 131072),
        Span::from_ms(2000),
    );
    let now = pool.next_event();
    let mut seen = Seen::default();
    pool.inspect(now, &mut seen);
    // The main pool is the bottleneck: it is idle only while delayed writes are still to come.
    assert!(seen.busy > 0.9 * now.seconds(), "{} of {now:?}", seen.busy);
    // A record alone, or aggregated with others.
    let alone = 1.0 / (Span::from_us(30) + Span::per_bytes(100, 131072)).seconds();
    assert!(rate > 0.6 * alone && rate < 3.0 * alone, "{rate}");
    let share = seen.dirty / tier.dirty_max() as f64;
    assert!(share > 0.6 && share <= 1.0, "{share}");
}

/// A main pool that is never the bottleneck, and a log that is faster with many commands than with two: eight disks in
/// a stripe, which together reach 1.3 GB/s and write a block of 128 KiB in 0.8 ms. Each of `threads` threads writes 1
/// MiB and waits for it. Returns MiB/s.
fn bulk_rate(slog_bulk: u64, threads: u32) -> f64 {
    let tier = IntentLogConfig {
        size: 4 << 30,
        ram: 64 << 30,
        slog_bulk,
        filled: false,
        ..config()
    };
    let disk = |bytes, us, picoseconds_per_byte| {
        DriveConfig::Ram(RamConfig {
            bytes,
            per_command: Span::from_us(us),
            picoseconds_per_byte,
            memory_bus: None,
            spread: 0.0,
        })
    };
    let mut drives = vec![disk(64 << 30, 1, 20)];
    drives.resize(9, disk(2 << 30, 10, 6150));
    let striped = Kind::Stripe(StripeConfig { chunk: 128 << 10 });
    let disks: Vec<_> = (1..9).map(|it| slice(&drives, it)).collect();
    let kinds = [
        (striped, disks),
        (
            Kind::IntentLog(tier),
            vec![slice(&drives, 0), Target::Tier(0)],
        ),
    ];
    let tiers = kinds.into_iter().map(|(kind, children)| TierConfig {
        name: String::from(kind.word()),
        kind,
        children,
    });
    let config = PoolConfig {
        members: members(&drives),
        tiers: tiers.collect(),
        volumes: vec![1],
        label_bytes: 0,
    };
    assert_eq!(config.problems(), [""; 0]);
    let mut pool = config.build(Precondition::Fresh, 1);
    rate(&mut pool, threads, sync(0, MIB), Span::from_ms(8000))
}

/// The shape of the table in openzfs#14378: 32 threads, and the share of a burst of commits that is urgent. Its
/// hardware is not known, so the disks here are chosen to match both ends; the curve between them, and its end, are
/// tested.
#[test]
fn slog_shape() {
    let rates = [1, 4, 16, 32, 64, 96, 128].map(|bulk| bulk_rate(bulk * MIB, 32));
    assert!(
        rates.windows(2).all(|two| two[1] > 0.98 * two[0]),
        "{rates:?}"
    );
    let rise = rates[4] / rates[0];
    assert!((2.5..4.0).contains(&rise), "{rates:?}");
    for beyond in &rates[5..] {
        assert!((beyond / rates[4] - 1.0).abs() < 0.02, "{rates:?}");
    }
    // The middle value is between the ends, not at one of them.
    assert!(rates[2] > 1.1 * rates[0] && rates[2] < 0.9 * rates[4]);
}
