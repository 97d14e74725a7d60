//! Heat of a drive in a run: the drive's power warms it up, and a drive that is too hot throttles itself.
//!
//! The thermal model is that of served drives: one mass and one resistance ([`Thermal`]). The run starts at the
//! temperature of an idle drive. Every 10 ms of virtual time with commands in flight, the temperature follows the mean
//! power since the last look. At the critical temperature the drive throttles itself, until it is 5 degrees cooler.
//!
//! A drive with a power governor may then use a quarter of its power above idle, as a served drive. The governor
//! limits watts, so reads and writes slow down by their own energy. Another drive admits a quarter of the mean bytes
//! per second of the last seconds before. The quarter, the 5 degrees and the interval are assumed; S4 only says that
//! drives throttle. Not modelled: pools and RAID 0, whose members have temperatures of their own; hot spots; light
//! throttling below the critical temperature (NVMe's TMT1).
//!
//! A drive that is critical without load is refused. A drive that is 10 degrees above its critical temperature although
//! it throttles itself shuts down, and the run fails; the 10 degrees are assumed.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use model::management::Thermal;
use model::media::{Medium, MediumDrive};
use model::{Capacity, Command, Completion, Device, Gauge, Gauges, Part, Range, Span, Time};
use text::digits::duration;
use tier::{Drive, DriveConfig};

/// Interval between two looks at the temperature.
const EVERY: Span = Span::from_ms(10);
/// A throttled drive may use this share of its limit's margin above idle power, or of its rate before.
const SHARE: f64 = 0.25;
/// Throttling ends at this distance below the critical temperature.
const HYSTERESIS_CELSIUS: f64 = 5.0;
/// A throttled drive shuts down at this distance above the critical temperature.
const SHUTDOWN_CELSIUS: f64 = 10.0;
/// Time over which the rate before throttling is averaged.
const AVERAGED_SECONDS: f64 = 2.0;

/// Sums that a look needs.
#[derive(Clone, Copy, Default)]
struct Reading {
    joules: f64,
    bytes: f64,
}

impl Gauges for Reading {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        match gauge {
            Gauge::EnergyJoules => self.joules += value,
            Gauge::HostBytesRead | Gauge::HostBytesWritten => self.bytes += value,
            _ => {}
        }
    }
}

/// Method by which a drive throttles itself.
#[derive(Clone, Debug)]
enum Throttle {
    /// The governor's limit in watts, and the limit while the drive is too hot.
    Governor { limit: f64, hot: f64 },
    /// Commands enter at this rate.
    Rate(Gate),
}

/// Entry of commands at a limited rate, first in, first out.
#[derive(Clone, Debug, Default)]
struct Gate {
    /// Mean bytes per second while the drive was not throttled.
    mean: f64,
    /// Limit in bytes per second; `None` if the drive is not throttled.
    limit: Option<f64>,
    /// When the bytes that have entered are paid for.
    free_at: Time,
    /// Commands that wait, with the times at which they arrived.
    waiting: VecDeque<(Time, Command)>,
}

/// A drive that became too hot although it throttled itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shutdown {
    at: Time,
    /// Temperature in degrees Celsius at which the drive shut down.
    celsius: f64,
    /// Temperature that the drive approached.
    target: f64,
}

impl Shutdown {
    /// Returns why the run failed.
    pub(crate) fn words(self, thermal: &Thermal) -> String {
        format!(
            "shuts down at {:.0} C after {}: throttled at {:.0} C, it still approaches {:.0} C in air of {:.0} C at {:.1} K/W, so it cannot do this work there",
            self.celsius,
            duration(self.at.since(Time::ZERO).seconds()),
            thermal.critical_celsius,
            self.target,
            thermal.ambient_celsius,
            thermal.kelvin_per_watt,
        )
    }
}

/// A drive that warms up. See the head of this file.
#[derive(Clone, Debug)]
pub(crate) struct HeatedDrive {
    drive: Drive,
    thermal: Thermal,
    throttle: Throttle,
    celsius: f64,
    throttled: bool,
    /// Time throttled before the last look.
    hot: Span,
    observed: Time,
    before: (f64, f64),
    in_flight: u32,
    next_look: Time,
    /// By command id: how long the command has waited to enter.
    waited: Vec<Span>,
    /// First shutdown, for the run.
    shutdown: Arc<OnceLock<Shutdown>>,
}

impl HeatedDrive {
    /// Creates a drive that is as warm as after a long time without commands.
    pub(crate) fn new(drive: Drive, config: &DriveConfig, thermal: &Thermal) -> HeatedDrive {
        let idle = config.idle_watts();
        let throttle = match config.power_limit_watts() {
            Some(limit) => Throttle::Governor {
                limit,
                hot: idle + (limit - idle) * SHARE,
            },
            None => Throttle::Rate(Gate::default()),
        };
        HeatedDrive {
            drive,
            throttle,
            celsius: thermal.equilibrium(idle),
            thermal: thermal.clone(),
            throttled: false,
            hot: Span::ZERO,
            observed: Time::ZERO,
            before: (0.0, 0.0),
            in_flight: 0,
            next_look: Time::NEVER,
            waited: Vec::new(),
            shutdown: Arc::default(),
        }
    }

    /// Returns the cell that contains the first shutdown of this drive.
    pub(crate) fn shutdown(&self) -> Arc<OnceLock<Shutdown>> {
        Arc::clone(&self.shutdown)
    }

    /// Advances the temperature to `now`, and starts or ends throttling.
    fn look(&mut self, now: Time) {
        let over = now.since(self.observed);
        if over == Span::ZERO {
            return;
        }
        let mut reading = Reading::default();
        self.drive.inspect(now, &mut reading);
        let watts = (reading.joules - self.before.0) / over.seconds();
        let rate = (reading.bytes - self.before.1) / over.seconds();
        self.before = (reading.joules, reading.bytes);
        self.observed = now;
        if self.throttled {
            self.hot += self.throttled_for(watts, over);
        }
        self.celsius = self.thermal.temperature_after(self.celsius, watts, over);
        if self.throttled && self.celsius >= self.thermal.critical_celsius + SHUTDOWN_CELSIUS {
            self.shutdown.get_or_init(|| Shutdown {
                at: now,
                celsius: self.celsius,
                target: self.thermal.equilibrium(watts),
            });
        }
        if let (Throttle::Rate(gate), false) = (&mut self.throttle, self.throttled) {
            let weight = 1.0 - libm::exp(-over.seconds() / AVERAGED_SECONDS);
            // The first look has no mean before it.
            let first = gate.mean == 0.0;
            gate.mean = if first {
                rate
            } else {
                gate.mean + (rate - gate.mean) * weight
            };
        }
        let limit = match self.throttled {
            true => self.thermal.critical_celsius - HYSTERESIS_CELSIUS,
            false => self.thermal.critical_celsius,
        };
        let too_hot = self.celsius >= limit;
        if too_hot != self.throttled {
            self.set_throttled(now, too_hot);
        }
    }

    /// Returns the part of the time since the last look in which a throttled drive was throttled. With commands in
    /// flight, throttling ends at a look; an idle drive is not looked at, and its throttling ends when it is cool.
    fn throttled_for(&self, watts: f64, over: Span) -> Span {
        let limit = self.thermal.critical_celsius - HYSTERESIS_CELSIUS;
        let target = self.thermal.equilibrium(watts);
        if self.in_flight > 0 || target >= limit {
            return over;
        }
        let ratio = (self.celsius - target) / (limit - target);
        let seconds = self.thermal.time_constant.seconds() * libm::log(ratio.max(1.0));
        Span::from_seconds(seconds).min(over)
    }

    #[cold]
    fn set_throttled(&mut self, now: Time, throttled: bool) {
        match &mut self.throttle {
            Throttle::Governor { limit, hot } => {
                let watts = if throttled { *hot } else { *limit };
                // The drive has a governor, and the limit is above idle power.
                let _ = self.drive.set_power_limit(watts);
            }
            Throttle::Rate(gate) => {
                if throttled && gate.mean == 0.0 {
                    // Nothing was transferred: there is no rate to reduce.
                    return;
                }
                gate.limit = throttled.then_some(gate.mean * SHARE);
                gate.free_at = gate.free_at.max(now);
            }
        }
        self.throttled = throttled;
    }

    /// Returns when the first waiting command may enter.
    fn next_entry(&self) -> Time {
        match &self.throttle {
            Throttle::Rate(gate) if !gate.waiting.is_empty() => gate.free_at,
            _ => Time::NEVER,
        }
    }

    /// Returns the next event other than those of the drive.
    fn next_own(&self) -> Time {
        self.next_look.min(self.next_entry())
    }

    /// Admits waiting commands as far as the rate allows.
    fn admit(&mut self, now: Time) {
        loop {
            let Throttle::Rate(gate) = &mut self.throttle else {
                return;
            };
            let may = gate.limit.is_none() || gate.free_at <= now;
            if !may {
                return;
            }
            let Some((arrived, command)) = gate.waiting.pop_front() else {
                return;
            };
            gate.pay(now, command.bytes);
            self.waited[command.id as usize] = now.since(arrived);
            self.drive.submit(now, command);
        }
    }
}

impl Gate {
    /// Books the time of a command that enters at `now`.
    fn pay(&mut self, now: Time, bytes: u32) {
        if let Some(limit) = self.limit {
            let span = Span::from_seconds(f64::from(bytes) / limit.max(1.0));
            self.free_at = self.free_at.max(now) + span;
        }
    }
}

impl Device for HeatedDrive {
    fn capacity(&self) -> Capacity {
        self.drive.capacity()
    }

    fn submit(&mut self, now: Time, command: Command) {
        if self.in_flight == 0 {
            self.look(now);
            self.next_look = now + EVERY;
        }
        self.in_flight += 1;
        let id = command.id as usize;
        if self.waited.len() <= id {
            self.waited.resize(id + 1, Span::ZERO);
        }
        if let Throttle::Rate(gate) = &mut self.throttle
            && gate.limit.is_some()
            && command.op.transfers()
        {
            gate.waiting.push_back((now, command));
            self.admit(now);
            return;
        }
        self.drive.submit(now, command);
    }

    fn next_event(&self) -> Time {
        self.drive.next_event().min(self.next_own())
    }

    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        let mut reached = now;
        let mut until = horizon.min(self.next_own());
        loop {
            let before = done.len();
            if self.drive.next_event() == reached {
                reached = self.drive.advance(reached, until, done);
            }
            for completion in done.iter_mut().skip(before) {
                let waited = core::mem::take(&mut self.waited[completion.id as usize]);
                completion.anatomy.add(Part::Throttle, waited);
                self.in_flight -= 1;
            }
            if self.next_look <= reached {
                self.look(reached);
                self.next_look = reached + EVERY;
            }
            self.admit(reached);
            // A command that has entered may have an event at once.
            if self.drive.next_event() > reached {
                break;
            }
            until = reached;
        }
        if self.in_flight == 0 {
            self.next_look = Time::NEVER;
        }
        reached
    }

    fn at_risk(&self, ranges: &mut Vec<Range>) {
        self.drive.at_risk(ranges);
    }

    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        if let Throttle::Rate(gate) = &mut self.throttle {
            gate.waiting.clear();
        }
        self.waited.fill(Span::ZERO);
        self.in_flight = 0;
        self.next_look = Time::NEVER;
        self.drive.power_cut(now, lost)
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.drive.inspect(now, gauges);
        let mut reading = Reading::default();
        self.drive.inspect(now, &mut reading);
        let over = now.since(self.observed);
        let (mut celsius, mut hot) = (self.celsius, self.hot);
        if over > Span::ZERO {
            let watts = (reading.joules - self.before.0) / over.seconds();
            celsius = self.thermal.temperature_after(celsius, watts, over);
            if self.throttled {
                hot += self.throttled_for(watts, over);
            }
        }
        gauges.gauge(Gauge::Celsius, celsius);
        gauges.gauge(Gauge::ThermalThrottleSeconds, hot.seconds());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::tests::at_random;
    use crate::{Lab, Machine, Outcome, Scenario};
    use model::conformance::check;
    use model::media::Precondition;
    use workload::job::{BlockSizes, Job, Mix};

    /// Returns the thermal model of a drive with a time constant of 1 s, in air of this temperature.
    fn thermal(drive: &str, air: f64) -> Thermal {
        Thermal {
            ambient_celsius: air,
            time_constant: Span::from_ms(1000),
            ..catalogue::drive(drive)
                .expect("built in")
                .management
                .thermal
        }
    }

    /// Writes 128 KiB sequentially at QD8 for 8 s.
    fn outcome(drive: &str, air: Option<f64>) -> Outcome {
        let sheet = catalogue::drive(drive).expect("built in");
        let host = catalogue::host("xeon-2017").expect("built in");
        let job = Job {
            mix: Mix::Write,
            block_sizes: std::array::from_fn(|_| BlockSizes::Fixed(128 << 10)),
            random: false,
            iodepth: 8,
            number_ios: Some(400_000),
            ..at_random(Mix::Write, 0)
        };
        let scenario = Scenario {
            heat: air.map(|air| thermal(drive, air)),
            series_every: Span::from_ms(100),
            ..Scenario::jobs(
                Machine::new(&sheet, &host),
                Precondition::Filled,
                vec![job],
                1,
            )
        };
        Lab::new().run(&scenario).expect("it runs")
    }

    /// Reported seconds of throttling.
    #[derive(Default)]
    struct Throttled(f64);

    impl Gauges for Throttled {
        fn gauge(&mut self, gauge: Gauge, value: f64) {
            if gauge == Gauge::ThermalThrottleSeconds {
                self.0 = value;
            }
        }
    }

    fn seconds(outcome: &Outcome) -> f64 {
        outcome.end.seconds()
    }

    #[test]
    fn a_hot_drive_throttles_and_a_cool_one_does_not() {
        for (drive, air) in [("p4800x-375", 60.0), ("p3700-1600", 74.0)] {
            let plain = outcome(drive, None);
            let cool = outcome(drive, Some(25.0));
            assert_eq!(cool.end, plain.end, "{drive}");
            assert_eq!(cool.gauge(Gauge::ThermalThrottleSeconds), Some(0.0));
            assert_eq!(plain.gauge(Gauge::Celsius), None);
            // Air in which the power of this load, but not idle power, leads above 85 degrees.
            let hot = outcome(drive, Some(air));
            let throttled = hot.gauge(Gauge::ThermalThrottleSeconds).expect("a gauge");
            assert!(throttled > 0.2 * seconds(&hot), "{drive}: {throttled}");
            assert!(seconds(&hot) > 1.2 * seconds(&plain), "{drive}");
            let highest = hot.over_time.series(Gauge::Celsius).expect("a series");
            let highest = highest.iter().copied().fold(0.0, f64::max);
            assert!((84.0..86.0).contains(&highest), "{drive}: {highest}");
        }
    }

    /// A drive whose quarter of power is too much for its air shuts down, and a drive that is critical when idle is
    /// refused; both name figures that help.
    #[test]
    fn a_drive_that_no_throttling_cools_fails() {
        let sheet = catalogue::drive("p4800x-375").expect("built in");
        let host = catalogue::host("xeon-2017").expect("built in");
        let problem = |resistance: f64| {
            let scenario = Scenario {
                heat: Some(Thermal {
                    kelvin_per_watt: resistance,
                    ..thermal("p4800x-375", 30.0)
                }),
                ..Scenario::jobs(
                    Machine::new(&sheet, &host),
                    Precondition::Fresh,
                    vec![at_random(Mix::Write, 400_000)],
                    1,
                )
            };
            let problems = Lab::new().run(&scenario).expect_err("too hot").0;
            let help = problems[0].help.clone().unwrap_or_default();
            assert!(help.contains("thermal.airflow"), "{help}");
            problems[0].what.clone()
        };
        let idle = sheet.config.idle_watts();
        // Idle at 84 C, and at 86 C.
        let why = problem(54.0 / idle);
        assert!(why.starts_with("shuts down at 9"), "{why}");
        let why = problem(56.0 / idle);
        assert!(why.starts_with("would reach 86 C without load"), "{why}");
    }

    /// Throttling of an idle drive ends when it is cool, as if it had been looked at every 10 ms.
    #[test]
    fn idle_time_below_the_limit_is_not_throttled() {
        let sheet = catalogue::drive("p4800x-750").expect("built in");
        let drive = Drive::new(&sheet.config, Precondition::Fresh, 1);
        let mut hot = HeatedDrive::new(drive, &sheet.config, &thermal("p4800x-750", 60.0));
        hot.celsius = 85.0;
        hot.set_throttled(Time::ZERO, true);
        assert!(hot.throttled);
        let mut often = hot.clone();
        let mut now = Time::ZERO;
        while often.throttled {
            now += EVERY;
            often.look(now);
        }
        let expected = often.hot.seconds();
        assert!((0.1..2.0).contains(&expected), "{expected}");

        let end = Time::ZERO + Span::from_ms(60_000);
        let soon = Span::from_ms(1);
        let mut seen = Throttled::default();
        hot.inspect(Time::ZERO + soon, &mut seen);
        assert!((seen.0 - soon.seconds()).abs() < 1e-9, "{}", seen.0);
        hot.inspect(end, &mut seen);
        hot.look(end);
        assert!(!hot.throttled);
        for seconds in [seen.0, hot.hot.seconds()] {
            assert!((seconds - expected).abs() < 0.011, "{seconds} {expected}");
        }
    }

    #[test]
    fn laws_of_devices_hold_while_it_throttles() {
        for name in ["p4801x-100", "950pro-256"] {
            let sheet = catalogue::drive(name).expect("built in");
            let config = sheet.config.shrunk(1 << 30);
            // Idle is just too cool to throttle, and every work too hot.
            let idle = config.idle_watts() * sheet.management.thermal.kelvin_per_watt;
            let hot = Thermal {
                time_constant: Span::from_ms(5),
                ..thermal(name, 84.99 - idle)
            };
            check(|seed| {
                let drive = Drive::new(&config, Precondition::Fresh, seed);
                HeatedDrive::new(drive, &config, &hot)
            });
        }
    }
}
