//! Power states of an idle drive: Linux' selection of states, waits, energy, and the laws of a device.

use model::conformance::Suite;
use model::host::{PowerManaged, PowerPolicy, PowerState, PowerTransition};
use model::media::ram::{Ram, RamConfig};
use model::{Command, Completion, Device, Gauge, Gauges, Part, Span, Time};

const SERVICE: Span = Span::from_us(100);

/// Linux' defaults.
const LINUX: PowerPolicy = PowerPolicy {
    max_exit: Span::from_ms(100),
    after: [Span::from_ms(100), Span::from_ms(2000)],
    tolerance: [Span::from_ms(15), Span::from_ms(100)],
};

fn ram() -> Ram {
    Ram::new(RamConfig {
        bytes: 1 << 30,
        per_command: SERVICE,
        picoseconds_per_byte: 0,
        memory_bus: None,
        spread: 0.0,
    })
}

fn state(microwatts: u64, entry_ms: u64, exit_ms: u64) -> PowerState {
    PowerState {
        microwatts,
        entry: Span::from_ms(entry_ms),
        exit: Span::from_ms(exit_ms),
    }
}

/// A drive with a state of 100 mW for 1 W of idle power (entry 4 ms, exit 10 ms), and one of 10 mW (5 ms, 45 ms).
fn two_states() -> PowerManaged<Ram> {
    let states = [state(100_000, 4, 10), state(10_000, 5, 45)];
    PowerManaged::new(ram(), LINUX.transitions(&states, 1.0))
}

/// Submits a read at `at` and returns its completion.
fn read(drive: &mut impl Device, at: Time) -> Completion {
    let mut done = Vec::new();
    drive.submit(at, Command::read(0, 0, 4096));
    while done.is_empty() {
        let next = drive.next_event();
        drive.advance(next, next, &mut done);
    }
    done[0]
}

/// Latencies of reads at these times, in milliseconds since the start.
fn latencies(drive: &mut impl Device, at: &[u64]) -> Vec<Span> {
    let at = at.iter().map(|&ms| Time::ZERO + Span::from_ms(ms));
    at.map(|at| read(drive, at).at.since(at)).collect()
}

#[derive(Default)]
struct Reported {
    joules: f64,
    asleep: f64,
    wakes: f64,
}

impl Gauges for Reported {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        match gauge {
            Gauge::EnergyJoules => self.joules += value,
            Gauge::LowPowerSeconds => self.asleep += value,
            Gauge::WakeUps => self.wakes += value,
            _ => {}
        }
    }
}

fn reported(drive: &impl Device, at: Time) -> Reported {
    let mut reported = Reported::default();
    drive.inspect(at, &mut reported);
    reported
}

/// The table that `nvme_configure_apst` computes: states, with the idle time before each.
#[test]
fn linux_selects_states_by_the_sum_of_both_latencies() {
    let after = |states: &[PowerState]| -> Vec<(u64, u64)> {
        let all = LINUX.transitions(states, 1.0);
        let numbers = |it: &PowerTransition| (it.after.ns() / 1_000_000, it.exit.ns() / 1_000_000);
        all.iter().map(numbers).collect()
    };
    // Both within the primary tolerance: only the deeper one is used.
    assert_eq!(after(&[state(40, 1, 2), state(5, 2, 8)]), [(100, 8)]);
    // The deeper one only within the secondary tolerance: one after the other.
    let both = [(100, 10), (2000, 45)];
    assert_eq!(after(&[state(30, 4, 10), state(4, 5, 45)]), both);
    // Beyond every tolerance, by the sum or by the exit alone.
    assert_eq!(after(&[state(30, 4, 10), state(4, 90, 45)]), [(100, 10)]);
    assert_eq!(after(&[state(4, 0, 101)]), []);
    // No state within the primary tolerance.
    assert_eq!(after(&[state(30, 10, 10), state(4, 5, 45)]), [(2000, 45)]);
    let none = PowerPolicy {
        max_exit: Span::ZERO,
        ..LINUX
    };
    assert_eq!(none.transitions(&[state(40, 1, 2)], 1.0), []);
}

#[test]
fn an_idle_drive_wakes_late_and_a_busy_one_does_not() {
    let mut drive = two_states();
    // The first command; 99 ms after its end; after 99 ms again; in the first state; in the second one.
    let waits = latencies(&mut drive, &[0, 144, 243, 843, 4000]);
    let expected = [45, 0, 0, 10, 45].map(|ms| SERVICE + Span::from_ms(ms));
    assert_eq!(waits, expected);
    // 90 ms between two commands, for 20 s: never idle for long enough.
    let busy: Vec<u64> = (0..220).map(|index| 4100 + index * 90).collect();
    assert!(latencies(&mut drive, &busy).iter().all(|it| *it == SERVICE));
}

/// A command during an entry waits until the state has been entered and left.
#[test]
fn an_entry_is_completed_before_the_exit() {
    let mut drive = two_states();
    latencies(&mut drive, &[0]);
    let idle_since = Time::ZERO + Span::from_ms(45) + SERVICE;
    let at = idle_since + Span::from_ms(101);
    let completion = read(&mut drive, at);
    // 3 ms of entry are left.
    assert_eq!(completion.at.since(at), SERVICE + Span::from_ms(3 + 10));
    let waited = completion.anatomy.get(Part::Controller);
    assert!(waited >= Span::from_ms(13), "{waited:?}");
    assert_eq!(completion.anatomy.total(), completion.at.since(at));
}

#[test]
fn commands_that_arrive_while_it_wakes_wait_with_the_first() {
    let mut drive = two_states();
    let late = Time::ZERO + Span::from_ms(30);
    drive.submit(Time::ZERO, Command::read(0, 0, 4096));
    drive.submit(late, Command::read(1, 8192, 4096));
    let mut done = Vec::new();
    while done.len() < 2 {
        let next = drive.next_event();
        drive.advance(next, next, &mut done);
    }
    let mut latencies = [Span::ZERO; 2];
    for completion in &done {
        let submitted = [Time::ZERO, late][completion.id as usize];
        latencies[completion.id as usize] = completion.at.since(submitted);
        assert_eq!(completion.anatomy.total(), completion.at.since(submitted));
    }
    assert_eq!(latencies[0], SERVICE + Span::from_ms(45));
    assert!(latencies[1] >= SERVICE + Span::from_ms(15), "{latencies:?}");
    assert_eq!(reported(&drive, done[1].at).wakes, 1.0);
}

/// Idle power of 1 W, less what each state saves for its time.
#[test]
fn energy_and_time_in_low_power_are_accounted() {
    let mut drive = two_states();
    latencies(&mut drive, &[0]);
    let idle_since = Time::ZERO + Span::from_ms(45) + SERVICE;
    let before = reported(&drive, idle_since);
    // The first state from 104 ms to 2104 ms, the second one from 2109 ms.
    let look = idle_since + Span::from_ms(10_000);
    let after = reported(&drive, look);
    let expected = 2.0 + 10.0 - 2.109;
    assert!((after.asleep - before.asleep - expected).abs() < 1e-9);
    let saved = 2.0 * 0.9 + (10.0 - 2.109) * 0.99;
    let ram_joules = before.joules - after.joules;
    assert!((ram_joules - saved).abs() < 1e-9, "{ram_joules}");
    // The sums stay when the drive has woken.
    let woken = read(&mut drive, look);
    let later = reported(&drive, woken.at);
    assert!((later.asleep - after.asleep).abs() < 1e-9);
    assert!((later.joules - after.joules).abs() < 1e-9);
    assert_eq!((before.wakes, later.wakes), (1.0, 2.0));
}

#[test]
fn without_states_nothing_changes() {
    let mut plain = ram();
    let mut managed = PowerManaged::new(ram(), Vec::new());
    let at = [0, 3000, 9000];
    assert_eq!(latencies(&mut plain, &at), latencies(&mut managed, &at));
    let end = Time::ZERO + Span::from_ms(10_000);
    assert_eq!(reported(&managed, end).wakes, 0.0);
}

/// Also with states that are entered within the pauses of the suite.
#[test]
fn a_drive_with_power_states_keeps_the_laws() {
    let quick = PowerTransition {
        after: Span::from_us(30),
        entry: Span::from_us(20),
        exit: Span::from_us(50),
        saved_microwatts: 0,
    };
    for transitions in [vec![], vec![quick], vec![quick, quick]] {
        let suite = Suite {
            queues: 3,
            ..Suite::default()
        };
        suite.check(|_| PowerManaged::new(ram(), transitions.clone()));
    }
}
