//! The write cliff of a drive, on one with fewer blocks (see [`super::suite`]'s chapter), with each seed: the first is
//! what is shown.

use model::Span;
use model::media::{DriveConfig, Medium};

use super::measure::{Keep, measurement, series};
use super::results::{Measurement, rounded};
use super::run::{Runner, Task, jobs, rate_of};
use super::suite::{FILLS, sustained};
use lab::Plan;
use text::problem::Problems;

/// A small drive that stands for a whole one.
struct Scaled {
    drive: DriveConfig,
    /// How many times larger the whole one is.
    stretch: f64,
}

impl Scaled {
    /// Bytes written until the end.
    fn written(&self) -> f64 {
        self.drive.capacity_bytes() as f64 * FILLS
    }
}

impl Runner<'_> {
    /// The cliff with all seeds.
    pub(super) fn sustained(&self, task: &Task<'_>) -> Result<Measurement, Problems> {
        let whole = &self.request.drives[task.drive].config;
        let drive = whole.shrunk((self.effort.sustained_writes as f64 * 4096.0 / FILLS) as u64);
        let stretch = whole.capacity_bytes() as f64 / drive.capacity_bytes() as f64;
        let scaled = Scaled { drive, stretch };
        let first = self.seed(&task.spec.name);
        // The first speed of a fresh drive says how fine the time axis can be.
        let pilot = task.spec.text(first, Span::ZERO, Span::from_ms(5));
        let (_, pilot) = self.written(task, &scaled, first, (pilot, Span::ZERO))?;
        let every = Span::from_seconds(scaled.written() / 4096.0 / pilot.max(1.0) / 200.0);
        let every = Span::from_ms(every.ns().div_ceil(1_000_000));
        let mut each = Vec::new();
        for number in 1..=self.effort.seeds.max(1) {
            let seed = match number {
                1 => first,
                _ => self.seed(&format!("{}/seed {number}", task.spec.name)),
            };
            let writes = (scaled.written() / 4096.0) as u64;
            let text = task.spec.fixed_text(seed, Span::ZERO, writes);
            each.push(self.written(task, &scaled, seed, (text, every))?.0);
        }
        let mut result = each[0].clone();
        if each.len() > 1 {
            result.each = each;
            result.tell_across(false);
        }
        Ok(result)
    }

    /// One run on a fresh drive, over time, and its rate.
    fn written(
        &self,
        task: &Task<'_>,
        scaled: &Scaled,
        seed: u64,
        (text, every): (String, Span),
    ) -> Result<(Measurement, f64), Problems> {
        let plan = Plan {
            drive: scaled.drive.clone(),
            state: task.spec.state,
            host: self.request.host_of(task.drive),
            jobs: jobs(&task.spec.name, &text)?,
            seed,
            series_every: every,
        };
        let mut bench = self.simulator.bench(&plan.drive, plan.state, seed);
        let outcome = bench.simulate(&plan)?;
        let mut result = measurement(&[&outcome], Keep::default());
        result.job = text;
        if every > Span::ZERO {
            let threads = outcome.threads.iter().map(|thread| &thread.write);
            let mut over_time = series(threads, every, scaled.stretch, 600);
            over_time.steady_at_seconds = sustained::steady_at(&over_time);
            let writes = scaled.written() / 4096.0 / over_time.iops.len().max(1) as f64;
            over_time.scale = rounded(scaled.stretch);
            over_time.ios_an_interval = rounded(writes);
            result.notes = sustained::notes(&over_time);
            result.series = Some(over_time);
        }
        Ok((result, rate_of(&outcome)))
    }
}
