//! A point of fixed conditions: measured with several seeds, one after the other on one bench, until its mean is known.
//!
//! What one seed alone gives is kept beside the whole: sentences name only what holds with each, and tails show the band
//! they span. A mean is known when half its 95 % interval, from slices of the runs ([`statistics`]), is within 5 %
//! ([`super::seeds`]), and when they have lasted as long as the suite lets a drive settle: what has not begun to change looks very
//! sure of itself. Until then every seed runs again, as long as all its runs before, at most [`ROUNDS`] times. A mean that
//! is not known then is shown and said not to be.
//!
//! A point that ends when its percentiles are known begins with few I/Os and may go on for more rounds
//! (`docs/decisions/0055-full-until-known.md`). In a suite that has such points none runs on for what would not be known after
//! the last round either: an interval narrows with the root of the I/Os
//! (`docs/decisions/0112-not-run-for-what-stays-unknown.md`). Left out: what changes more slowly than the longest of these runs.

use super::measure::measurement;
use super::results::Measurement;
use super::run::{Runner, Task, rate_of, time_for};
use super::seeds::{
    Certainty, is_known, mean_certainty, of_seeds, percentiles_certainty, tell_convergence,
};
use lab::{Bench, Outcome};
use model::{Span, Time};
use text::problem::Problems;

/// Most rounds: the last leaves four times the wanted number of I/Os.
const ROUNDS: u32 = 3;

/// The same of a point that ends when its percentiles are known: eight times what it begins with.
const ROUNDS_TO_KNOW: u32 = 4;

impl Runner<'_> {
    /// A point of fixed conditions.
    pub(super) fn until_known(
        &self,
        bench: &mut Bench<'_>,
        task: &Task<'_>,
    ) -> Result<Measurement, Problems> {
        let spec = task.spec;
        let mut pace = Pace {
            iops: self.first_rate(bench, task)?,
            ran: Span::ZERO,
        };
        let mut of_seed: Vec<Vec<Outcome>> = Vec::new();
        of_seed.resize_with(self.effort.seeds.max(1) as usize, Vec::new);
        let mut job = None;
        let keep = spec.keep;
        let mut ios = spec.ios_of_seed(self.effort);
        let until_known = spec.stops_when_known(self.effort);
        let rounds = if until_known { ROUNDS_TO_KNOW } else { ROUNDS };
        for round in 1..=rounds {
            let mut in_full = true;
            for (seed, outcomes) in of_seed.iter_mut().enumerate() {
                let name = match (seed, round) {
                    (0, 1) => spec.name.clone(),
                    _ => format!("{}/seed {}/round {round}", spec.name, seed + 1),
                };
                let run = self.counted(bench, task, &name, ios, &mut pace)?;
                job.get_or_insert(run.job);
                in_full &= run.in_full;
                outcomes.push(run.outcome);
            }
            let all: Vec<&Outcome> = of_seed.iter().flatten().collect();
            let so_far = measurement(&all, keep);
            // As many times the I/Os of now as there are after the last round; where all rounds are wanted, no end of them.
            let more = match self.effort.known > 0.0 {
                true => f64::from(1 << (rounds - round)),
                false => f64::INFINITY,
            };
            let mean = mean_certainty(&so_far, spec.settling(self.effort), more);
            let percentiles = match until_known {
                true => percentiles_certainty(&so_far, self.effort.known, more),
                false => Certainty::Known,
            };
            let goes_on = [mean, percentiles].contains(&Certainty::Open);
            if !goes_on || in_full {
                break;
            }
            if round > 1 {
                ios *= 2;
            }
        }
        let mut result = of_seeds(&of_seed, keep, spec.is_deep);
        result.job = job.unwrap_or_default();
        let known = is_known(&result, spec.settling(self.effort));
        tell_convergence(known, &mut result);
        Ok(result)
    }

    /// I/Os a second, from a pilot where nobody sets them.
    fn first_rate(&self, bench: &mut Bench<'_>, task: &Task<'_>) -> Result<f64, Problems> {
        if let Some(rate) = task.spec.rate_iops {
            return Ok(rate as f64);
        }
        let pilot = |seed| task.spec.text(seed, Span::ZERO, Span::from_ms(10));
        let seed = self.seed(&format!("{}/pilot", task.spec.name));
        Ok(rate_of(&self.once(bench, task, seed, pilot)?.1))
    }

    /// A run of so many I/Os; again with another seed where the rate had been taken for a lower one.
    fn counted(
        &self,
        bench: &mut Bench<'_>,
        task: &Task<'_>,
        name: &str,
        ios: u64,
        pace: &mut Pace,
    ) -> Result<Counted, Problems> {
        let spec = task.spec;
        let mut again = 0;
        loop {
            let seed = match again {
                0 => self.seed(name),
                again => self.seed(&format!("{name}/{again}")),
            };
            let runtime = time_for(ios, pace.iops, spec.longest);
            let in_full = spec.longest == Some(runtime);
            let ramp = spec.ramp_after(self.effort, runtime, pace.ran);
            let during_ramp = (pace.iops * ramp.seconds() * 1.1) as u64;
            let (job, outcome) = self.once(bench, task, seed, |seed| {
                if spec.is_counted() && !in_full {
                    spec.fixed_text(seed, ramp, ios + during_ramp)
                } else {
                    spec.text(seed, ramp, runtime)
                }
            })?;
            let threads = outcome.threads.iter();
            let counted: u64 = threads
                .map(|thread| thread.read.ios + thread.write.ios)
                .sum();
            pace.iops = rate_of(&outcome);
            pace.ran += outcome.end.since(Time::ZERO);
            again += 1;
            if in_full || again == 3 || counted as f64 >= 0.97 * ios as f64 {
                return Ok(Counted {
                    job,
                    outcome,
                    in_full,
                });
            }
        }
    }
}

/// What a point's runs so far say of the next.
struct Pace {
    /// I/Os a second of the last, or of the pilot.
    iops: f64,
    /// How long they took together.
    ran: Span,
}

/// A run that counted as many I/Os as were wanted.
struct Counted {
    job: String,
    outcome: Outcome,
    /// It ran as long as its source says, and must not run longer.
    in_full: bool,
}
