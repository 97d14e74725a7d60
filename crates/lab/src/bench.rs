//! A drive on a bench: prepared once, then put through one plan after the other, as in a laboratory.
//!
//! Preparing a large NAND drive takes longer than most measurements, so a review does it once a chapter. What one run
//! leaves behind (a partly filled write buffer, moved pages) the next one finds. Each run has a clock and a host of its
//! own; the drive's clock goes on, which [`Shifted`] hides.

use model::media::{DriveConfig, Precondition};
use model::{Capacity, Command, Completion, Device, Drive, Gauges, Range, Span, Time};

use super::{Outcome, Plan, simulate_on, to_the_end};
use text::problem::Problems;

/// A drive and how far its clock has come.
#[derive(Debug)]
pub struct Bench {
    drive: Drive,
    now: Span,
}

impl Bench {
    /// Puts a drive in this state on the bench; `seed` feeds its random streams.
    pub fn new(drive: &DriveConfig, state: Precondition, seed: u64) -> Bench {
        Bench {
            drive: Drive::new(drive, state, seed),
            now: Span::ZERO,
        }
    }

    /// Runs the plan's jobs on this drive, in the state in which the last run left it; the plan's own drive and state
    /// mean nothing.
    ///
    /// # Errors
    /// As [`super::simulate`].
    pub fn simulate(
        &mut self,
        plan: &Plan,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<Outcome, Problems> {
        let shifted = Shifted {
            device: &mut self.drive,
            by: self.now,
        };
        let outcome = simulate_on(shifted, plan, &to_the_end(progress))?;
        self.now += outcome.end.since(Time::ZERO);
        Ok(outcome)
    }
}

/// A device whose clock is ahead of its user's.
#[derive(Debug)]
struct Shifted<'a, D> {
    device: &'a mut D,
    by: Span,
}

impl<D: Device> Device for Shifted<'_, D> {
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
    use super::*;
    use model::host::HostConfig;
    use model::media::ram::RamConfig;
    use workload::job::{Job, Mix};

    fn plan(seed: u64) -> Plan {
        Plan {
            drive: DriveConfig::Ram(RamConfig {
                bytes: 1 << 30,
                per_command: Span::from_us(3),
                picoseconds_per_byte: 300,
            }),
            state: Precondition::Fresh,
            host: HostConfig::default(),
            jobs: vec![Job {
                mix: Mix::ReadWrite,
                random: true,
                norandommap: true,
                iodepth: 4,
                number_ios: Some(2_000),
                ..Job::default()
            }],
            seed,
            series_every: Span::ZERO,
        }
    }

    #[test]
    fn a_drive_without_memory_does_the_same_again() {
        let plan = plan(7);
        let alone = super::super::simulate(&plan, &|_| {}).unwrap();
        let mut bench = Bench::new(&plan.drive, plan.state, plan.seed);
        let first = bench.simulate(&plan, &|_| {}).unwrap();
        let second = bench.simulate(&plan, &|_| {}).unwrap();
        assert_eq!(alone.threads, first.threads);
        assert_eq!(first.threads, second.threads);
        assert_eq!(first.end, second.end);
        assert_eq!(bench.now, first.end.since(Time::ZERO).scale(2.0));
    }
}
