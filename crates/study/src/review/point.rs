//! A point of fixed conditions: measured with several seeds, one after the other on one bench, until its mean is known.
//!
//! What one seed alone gives is kept beside the whole: sentences name only what holds with each, and tails show the band
//! they span. A mean is known when half its 95 % interval, from slices of the runs ([`statistics`]), is within
//! [`KNOWN`], and when they have lasted as long as the suite lets a drive settle: what has not begun to change looks very
//! sure of itself. Until then every seed runs again, as long as all its runs before, at most [`ROUNDS`] times. A mean that
//! is not known then is shown and said not to be. Left out: what changes more slowly than the longest of these runs.

use super::measure::{Keep, measurement};
use super::results::{Across, Figures, Measurement};
use super::run::{Runner, Task, rate_of, time_for};
use super::suite::PointSpec;
use lab::{Bench, Outcome};
use model::Span;
use text::problem::Problems;

/// The mean is known when half its 95 % interval is at most this share of it.
const KNOWN: f64 = 0.05;

/// Most rounds: the last leaves four times the wanted number of I/Os.
const ROUNDS: u32 = 3;

impl Runner<'_> {
    /// A point of fixed conditions.
    pub(super) fn until_known(
        &self,
        bench: &mut Bench<'_>,
        task: &Task<'_>,
    ) -> Result<Measurement, Problems> {
        let spec = task.spec;
        let mut iops = self.first_rate(bench, task)?;
        let mut of_seed: Vec<Vec<Outcome>> = Vec::new();
        of_seed.resize_with(self.effort.seeds.max(1) as usize, Vec::new);
        let mut job = None;
        let keep = spec.keep;
        let mut ios = spec.ios_of_seed(self.effort);
        for round in 1..=ROUNDS {
            let mut in_full = true;
            for (seed, outcomes) in of_seed.iter_mut().enumerate() {
                let name = match (seed, round) {
                    (0, 1) => spec.name.clone(),
                    _ => format!("{}/seed {}/round {round}", spec.name, seed + 1),
                };
                let run = self.counted(bench, task, &name, ios, &mut iops)?;
                job.get_or_insert(run.job);
                in_full &= run.in_full;
                outcomes.push(run.outcome);
            }
            let all: Vec<&Outcome> = of_seed.iter().flatten().collect();
            if self.is_known(spec, &measurement(&all, keep)) || in_full {
                break;
            }
            if round > 1 {
                ios *= 2;
            }
        }
        let mut result = of_seeds(&of_seed, keep, spec.is_deep);
        result.job = job.unwrap_or_default();
        self.tell_convergence(spec, &mut result);
        Ok(result)
    }

    /// Whether the mean is known.
    fn is_known(&self, spec: &PointSpec, result: &Measurement) -> bool {
        let sure = result.mean_error.is_some_and(|error| error <= KNOWN);
        sure && result.seconds >= spec.settling(self.effort).seconds()
    }

    fn tell_convergence(&self, spec: &PointSpec, result: &mut Measurement) {
        let known = self.is_known(spec, result);
        result.converged = Some(known);
        if known {
            return;
        }
        let ios = |of: &Option<Figures>| of.as_ref().map_or(0, |figures| figures.ios);
        let counted = ios(&result.read) + ios(&result.write);
        result.notes.push(match result.mean_error {
            Some(error) if error > KNOWN => format!(
                "the mean has not converged: ±{:.0} % after {counted} I/Os",
                error * 100.0
            ),
            _ => format!("too short to tell whether the mean has converged: {counted} I/Os"),
        });
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
        iops: &mut f64,
    ) -> Result<Counted, Problems> {
        let spec = task.spec;
        let mut again = 0;
        loop {
            let seed = match again {
                0 => self.seed(name),
                again => self.seed(&format!("{name}/{again}")),
            };
            let runtime = time_for(ios, *iops, spec.longest);
            let in_full = spec.longest == Some(runtime);
            let ramp = spec.ramp(self.effort, runtime);
            let during_ramp = (*iops * ramp.seconds() * 1.1) as u64;
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
            *iops = rate_of(&outcome);
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

/// A run that counted as many I/Os as were wanted.
struct Counted {
    job: String,
    outcome: Outcome,
    /// It ran as long as its source says, and must not run longer.
    in_full: bool,
}

/// The figures of all seeds together, of each, and how far they differ; `whole` also over the whole distribution.
fn of_seeds(of_seed: &[Vec<Outcome>], keep: Keep, whole: bool) -> Measurement {
    let all: Vec<&Outcome> = of_seed.iter().flatten().collect();
    let mut result = measurement(&all, keep);
    if of_seed.len() > 1 {
        result.each = of_seed
            .iter()
            .map(|outcomes| measurement(&outcomes.iter().collect::<Vec<_>>(), keep))
            .collect();
        result.tell_across(whole);
    }
    result
}

impl Measurement {
    /// How far the seeds differ, in each direction.
    pub(super) fn tell_across(&mut self, whole: bool) {
        let of = |direction: fn(&Measurement) -> &Option<Figures>| {
            let each: Option<Vec<&Figures>> = self
                .each
                .iter()
                .map(|one| direction(one).as_ref())
                .collect();
            each.and_then(|each| Across::of(&each, whole))
        };
        let (read, write) = (of(|one| &one.read), of(|one| &one.write));
        if let Some(figures) = &mut self.read {
            figures.across_seeds = read;
        }
        if let Some(figures) = &mut self.write {
            figures.across_seeds = write;
        }
    }
}
