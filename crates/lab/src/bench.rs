//! A drive on a test bench: preconditioned once, then used for several plans in turn.
//!
//! Preconditioning a large NAND drive takes longer than most measurements, so a review does it once per chapter. Each
//! run finds the state that the previous run left (a partly filled write buffer, moved pages). Each run has its own
//! clock and host. The drive's clock continues, which [`ShiftedDevice`] hides.

use model::media::Precondition;
use model::{Capacity, Command, Completion, Device, Gauges, Range, Span, Time};
use text::problem::Problems;
use tier::Drive;

use crate::lab::Lab;
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::progress::{ProgressCallback, to_the_end};
use crate::scenario::{Scenario, Work};
use crate::work::run_on;

/// A drive with the time on its clock.
#[derive(Debug)]
pub struct Bench<'a> {
    lab: &'a Lab,
    number: u64,
    machine: Machine,
    state: Precondition,
    seed: u64,
    /// Created when it is first needed.
    drive: Option<Box<Drive>>,
    now: Span,
}

impl<'a> Bench<'a> {
    /// Creates a bench with a drive in this state; `seed` feeds its random streams. The drive is created in the first
    /// run.
    pub fn new(lab: &'a Lab, machine: &Machine, state: Precondition, seed: u64) -> Bench<'a> {
        Bench {
            lab,
            number: lab.next_bench(),
            machine: machine.clone(),
            state,
            seed,
            drive: None,
            now: Span::ZERO,
        }
    }

    /// Runs this work on the drive, in the state that the last run left. `seed` feeds the random streams of the work
    /// and its host; `series_every` is as in [`Scenario::series_every`].
    ///
    /// # Errors
    /// As [`Lab::run`].
    pub fn run(&mut self, work: Work, seed: u64, series_every: Span) -> Result<Outcome, Problems> {
        self.run_until(work, seed, series_every, &to_the_end)
    }

    /// As `run`, until `go_on` stops it; then returns the results so far. At this point the drive still has
    /// outstanding I/Os, so it is discarded, and the next run starts on a new drive in the initial state.
    ///
    /// # Errors
    /// As [`Lab::run`].
    pub fn run_until(
        &mut self,
        work: Work,
        seed: u64,
        series_every: Span,
        go_on: ProgressCallback<'_>,
    ) -> Result<Outcome, Problems> {
        let scenario = Scenario {
            machine: self.machine.clone(),
            state: self.state,
            work,
            seed,
            warm_seed: Some(self.seed),
            series_every,
            faults: Vec::new(),
            heat: None,
        };
        let lab = self.lab;
        lab.stood_in(&scenario, Some(self.number), || {
            self.simulate(&scenario, go_on)
        })
    }

    fn take_away(&mut self) {
        self.now = Span::ZERO;
        if let Some(drive) = self.drive.take() {
            self.lab.put_back(self.machine.drive(), *drive);
        }
    }

    fn simulate(
        &mut self,
        scenario: &Scenario,
        go_on: ProgressCallback<'_>,
    ) -> Result<Outcome, Problems> {
        let config = self.machine.drive();
        let (lab, state, seeds) = (self.lab, self.state, self.seed.into());
        let lent = || Box::new(lab.lend(config, state, seeds, false));
        let drive = self.drive.get_or_insert_with(lent);
        let shifted = ShiftedDevice {
            device: &mut **drive,
            by: self.now,
        };
        let outcome = run_on(shifted, scenario, go_on)?;
        self.now += outcome.end.since(Time::ZERO);
        if outcome.stopped {
            self.take_away();
        }
        Ok(outcome)
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        self.take_away();
    }
}

/// A device whose clock is ahead of the clock of its user.
#[derive(Debug)]
struct ShiftedDevice<'a, D> {
    device: &'a mut D,
    by: Span,
}

impl<D: Device> Device for ShiftedDevice<'_, D> {
    fn capacity(&self) -> Capacity {
        self.device.capacity()
    }

    #[inline]
    fn submit(&mut self, now: Time, command: Command) {
        self.device.submit(now + self.by, command);
    }

    #[inline]
    fn next_event(&self) -> Time {
        match self.device.next_event() {
            Time::NEVER => Time::NEVER,
            at => Time::ZERO + at.since(Time::ZERO + self.by),
        }
    }

    #[inline]
    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        let horizon = match horizon {
            Time::NEVER => Time::NEVER,
            at => at + self.by,
        };
        let first = done.len();
        let now = self.device.advance(now + self.by, horizon, done);
        let now = Time::ZERO + now.since(Time::ZERO + self.by);
        for completion in &mut done[first..] {
            completion.at = now;
        }
        now
    }

    fn at_risk(&self, ranges: &mut Vec<Range>) {
        self.device.at_risk(ranges);
    }

    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        let back = self.device.power_cut(now + self.by, lost);
        Time::ZERO + back.since(Time::ZERO + self.by)
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.device.inspect(now + self.by, gauges);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::scenario::tests::at_random;
    use model::host::HostConfig;
    use model::media::ram::RamConfig;
    use tier::DriveConfig;
    use workload::job::Mix;

    fn scenario(seed: u64) -> Scenario {
        let drive = DriveConfig::Ram(RamConfig {
            bytes: 1 << 30,
            per_command: Span::from_us(3),
            picoseconds_per_byte: 300,
            memory_bus: None,
            spread: 0.0,
        });
        let job = at_random(Mix::ReadWrite, 2_000);
        let machine = Machine::from_configs("ram", drive, HostConfig::default());
        Scenario::jobs(machine, Precondition::Fresh, vec![job], seed)
    }

    /// Several benches in turn on one drive: each gives the same results as on its own drive.
    #[test]
    fn a_bench_does_not_depend_on_the_one_before() {
        let drive = catalogue::drive("950pro-256").expect("built in").config;
        let machine = Machine::from_configs("", drive, HostConfig::default());
        let work = |mix| {
            let job = at_random(mix, 300);
            Work::Jobs(vec![job])
        };
        let runs = |lab: &Lab, state, seed| {
            let mut bench = Bench::new(lab, &machine, state, seed);
            [Mix::Write, Mix::Read, Mix::Write]
                .map(|mix| bench.run(work(mix), seed, Span::ZERO).expect("it runs"))
        };
        let lab = Lab::with_drives(1);
        for (state, seed) in [
            (Precondition::Steady, 1),
            (Precondition::Steady, 2),
            (Precondition::Fresh, 1),
            (Precondition::Steady, 1),
        ] {
            let (one, other) = (runs(&lab, state, seed), runs(&Lab::new(), state, seed));
            assert!(one == other, "{state:?} {seed}");
            assert_eq!(lab.kept(), 1);
        }
    }

    #[test]
    fn a_drive_without_memory_does_the_same_again() {
        let scenario = scenario(7);
        let lab = Lab::new();
        let alone = lab.run(&scenario).unwrap();
        let mut bench = Bench::new(&lab, &scenario.machine, scenario.state, scenario.seed);
        let mut run = || bench.run(scenario.work.clone(), scenario.seed, Span::ZERO);
        let first = run().unwrap();
        let second = run().unwrap();
        assert_eq!(alone.threads, first.threads);
        assert_eq!(first.threads, second.threads);
        assert_eq!(first.end, second.end);
        assert_eq!(bench.now, first.end.since(Time::ZERO).scale(2.0));
    }

    /// Results before the stop count; the next run starts with a new drive.
    #[test]
    fn a_bench_that_is_stopped_has_what_there_is_so_far() {
        let lab = Lab::new();
        let machine = scenario(7).machine;
        let work = || Work::Jobs(vec![at_random(Mix::Read, 250_000)]);
        let mut bench = Bench::new(&lab, &machine, Precondition::Fresh, 7);
        let half = |done: f64| match done < 0.5 {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let cut = bench
            .run_until(work(), 7, Span::ZERO, &half)
            .expect("it fits");
        let ios = cut.threads[0].read.ios;
        assert!(cut.stopped && (125_000..200_000).contains(&ios), "{ios}");
        let mut run = || bench.run(work(), 7, Span::ZERO).expect("it fits");
        let whole = run();
        assert_eq!(whole.threads[0].read.ios, 250_000);
        let mut alone = Bench::new(&lab, &machine, Precondition::Fresh, 7);
        assert!(alone.run(work(), 7, Span::ZERO) == Ok(whole));
    }
}
