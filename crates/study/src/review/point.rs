//! A point with fixed conditions: measured with several seeds, in sequence on one bench, until its mean is known.
//!
//! The results of each seed are kept in addition to the combined result: sentences state only what holds with each
//! seed, and tails show their range over seeds. A mean is known under two conditions. First, half its 95 % interval,
//! from slices of the runs ([`statistics`]), is within 5 % ([`super::seeds`]). Second, the runs have lasted as long
//! as the suite allows a drive to settle, because a rate that has not yet begun to change has a misleadingly narrow
//! interval. Until then every seed runs again, as long as all its previous runs together, at most [`ROUNDS`] times. A
//! mean that is still unknown is shown and marked.
//!
//! A point that ends when its percentiles are known begins with few I/Os and may continue for more rounds. In a suite
//! that has such points, a point stops when its interval could not become narrow enough even after the last round: an
//! interval narrows with the square root of the I/Os (`docs/decisions/0044-seeds-and-run-lengths.md`). Not detected:
//! changes slower than the longest of these runs.

use super::measure::measurement;
use super::results::Measurement;
use super::run::{PointTask, Runner, rate_of, time_for};
use super::seeds::{
    Certainty, is_known, mean_certainty, of_seeds, percentiles_certainty, tell_convergence,
};
use lab::{Bench, Outcome};
use model::{Span, Time};
use text::problem::Problems;

/// Maximum number of rounds: the last round ends with four times the requested number of I/Os.
const ROUNDS: u32 = 3;

/// Maximum number of rounds of a point that ends when its percentiles are known: up to eight times the initial I/Os.
const ROUNDS_TO_KNOW: u32 = 4;

impl Runner<'_> {
    /// Runs a point with fixed conditions.
    pub(super) fn until_known(
        &self,
        bench: &mut Bench<'_>,
        task: &PointTask<'_>,
    ) -> Result<Measurement, Problems> {
        let spec = task.spec;
        let mut pace = PointHistory {
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
            // Ratio of the I/Os after the last round to those counted so far; infinite where all rounds are wanted.
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

    /// Returns the IOPS of a drive, from a pilot run unless the rate is set.
    fn first_rate(&self, bench: &mut Bench<'_>, task: &PointTask<'_>) -> Result<f64, Problems> {
        if let Some(rate) = task.spec.rate_iops {
            return Ok(rate as f64);
        }
        let pilot = |seed| task.spec.text(seed, Span::ZERO, Span::from_ms(10));
        let seed = self.seed(&format!("{}/pilot", task.spec.name));
        Ok(rate_of(&self.once(bench, task, seed, pilot)?.1))
    }

    /// Runs `ios` I/Os, and repeats the run with another seed if the rate had been estimated too low.
    fn counted(
        &self,
        bench: &mut Bench<'_>,
        task: &PointTask<'_>,
        name: &str,
        ios: u64,
        pace: &mut PointHistory,
    ) -> Result<CountedRun, Problems> {
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
                return Ok(CountedRun {
                    job,
                    outcome,
                    in_full,
                });
            }
        }
    }
}

/// State of a point's previous runs, for the next run.
struct PointHistory {
    /// IOPS of the last run, or of the pilot run.
    iops: f64,
    /// Total time of the runs.
    ran: Span,
}

/// A run that counted the requested number of I/Os.
struct CountedRun {
    job: String,
    outcome: Outcome,
    /// Whether it ran for the time that its source states, and must not run longer.
    in_full: bool,
}
