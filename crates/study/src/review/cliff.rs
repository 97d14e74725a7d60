//! The write cliff of a drive: from fresh to steady state, with each seed; the first seed is shown.
//!
//! A large drive takes an hour of virtual time and hundreds of millions of writes to get there, so this runs on a
//! smaller drive ([`model::media::Medium::shrunk`]: same channels, dies, planes and over-provisioning, smaller
//! blocks). Under uniform random writes the behaviour depends on the share of the drive that has been written. So the
//! time axis is stretched by the same factor, and the page states the factor.

use model::Span;
use model::media::Medium;
use tier::DriveConfig;

use super::measure::measurement;
use super::results::{Measurement, TimeSeries, rounded};
use super::run::{PointTask, Runner, jobs, rate_of};
use super::series::series;
use lab::{Bench, Work};
use statistics::{ROUNDS, steady_state};
use text::digits::{digits, duration};
use text::problem::Problems;

/// Capacities written until the end: a drive with a large spare area needs four to reach steady state.
const FILLS: f64 = 5.0;

/// Rounds of SNIA's rule for each capacity written.
const ROUNDS_PER_FILL: f64 = 4.0;
/// Capacities written before the rule is applied: the rate of a fresh drive is also steady until its spare area is
/// used up.
const FILLS_BEFORE: f64 = 2.0;

/// Returns the time at which the writes met SNIA's rule: the end of the first steady window of five rounds, each a
/// quarter of the capacity, after two capacities have been written. `None` if they never did.
fn steady_at(series: &TimeSeries) -> Option<f64> {
    let count = (FILLS * ROUNDS_PER_FILL) as usize;
    let total: f64 = series.iops.iter().sum();
    let mut rounds = vec![(0.0, 0.0); count];
    let mut ends = vec![0.0; count];
    let mut written = 0.0;
    for (index, iops) in series.iops.iter().enumerate() {
        // The round that contains the middle of the interval.
        let share = (written + iops / 2.0) / total;
        let round = ((share * count as f64) as usize).min(count - 1);
        rounds[round].0 += iops;
        rounds[round].1 += 1.0;
        ends[round] = (index + 1) as f64 * series.every_seconds;
        written += iops;
    }
    let first = (FILLS_BEFORE * ROUNDS_PER_FILL) as usize;
    let means: Vec<f64> = rounds[first..]
        .iter()
        .map(|(sum, intervals)| sum / intervals)
        .collect();
    let window = steady_state(&means)?;
    Some(rounded(ends[first + window.first + ROUNDS - 1]))
}

/// Returns notes on such a run for the reader. (The page shows them once for all drives.)
fn notes(series: &TimeSeries) -> Vec<String> {
    let mut notes = vec![match series.steady_at_seconds {
        Some(at) => format!(
            "steady by SNIA's rule after {} of writing (five rounds, each a quarter of the capacity, after two capacities)",
            duration(at)
        ),
        None => format!("not steady by SNIA's rule after {FILLS:.0} capacities written"),
    }];
    let smaller = series.scale > 1.0;
    notes.push(format!(
        "maxima cover {} writes per point{}",
        digits(series.ios_an_interval),
        if smaller {
            "; a full-size drive would see longer ones"
        } else {
            ""
        }
    ));
    if smaller {
        notes.push(format!(
            "scaled model: 1/{:.0} of the capacity; time scaled to match; the steady rate can be up to 10 % too high",
            series.scale
        ));
    }
    notes
}

/// A small drive that represents a whole one.
struct CliffDrive {
    drive: DriveConfig,
    /// Factor by which the whole drive is larger.
    stretch: f64,
}

impl CliffDrive {
    /// Returns the bytes written until the end.
    fn written(&self) -> f64 {
        self.drive.capacity_bytes() as f64 * FILLS
    }
}

impl Runner<'_> {
    /// Runs the cliff with all seeds.
    pub(super) fn until_steady(&self, task: &PointTask<'_>) -> Result<Measurement, Problems> {
        let whole = &self.request.drives[task.drive].config;
        let drive = whole.shrunk((self.effort.sustained_writes as f64 * 4096.0 / FILLS) as u64);
        let stretch = whole.capacity_bytes() as f64 / drive.capacity_bytes() as f64;
        let scaled = CliffDrive { drive, stretch };
        let first = self.seed(&task.spec.name);
        // The initial rate of a fresh drive determines the resolution of the time axis.
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

    /// Runs once on a fresh drive and returns the result over time, and its rate.
    fn written(
        &self,
        task: &PointTask<'_>,
        scaled: &CliffDrive,
        seed: u64,
        (text, every): (String, Span),
    ) -> Result<(Measurement, f64), Problems> {
        let machine = self.request.machine_of(task.drive);
        let machine = machine.with_drive(scaled.drive.clone());
        let work = Work::Jobs(jobs(&task.spec.name, &text)?);
        let mut bench = Bench::new(self.lab, &machine, task.spec.state, seed);
        let outcome = bench.run(work, seed, every)?;
        let mut result = measurement(&[&outcome], task.spec.keep);
        result.job = text;
        if every > Span::ZERO {
            let threads = outcome.threads.iter().map(|thread| &thread.write);
            let mut over_time = series(threads, every, scaled.stretch, 600);
            over_time.steady_at_seconds = steady_at(&over_time);
            let writes = scaled.written() / 4096.0 / over_time.iops.len().max(1) as f64;
            over_time.scale = rounded(scaled.stretch);
            over_time.ios_an_interval = rounded(writes);
            result.notes = notes(&over_time);
            result.series = Some(over_time);
        }
        Ok((result, rate_of(&outcome)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(iops: Vec<f64>) -> TimeSeries {
        TimeSeries {
            every_seconds: 2.0,
            iops,
            ..TimeSeries::default()
        }
    }

    #[test]
    fn notes_say_what_a_smaller_drive_means() {
        let small = TimeSeries {
            scale: 76.4,
            ios_an_interval: 30_214.0,
            steady_at_seconds: Some(11_520.0),
            ..TimeSeries::default()
        };
        assert_eq!(
            notes(&small),
            [
                "steady by SNIA's rule after 3 h 12 min of writing (five rounds, each a quarter of the capacity, after two capacities)",
                "maxima cover 30,214 writes per point; a full-size drive would see longer ones",
                "scaled model: 1/76 of the capacity; time scaled to match; the steady rate can be up to 10 % too high",
            ]
        );
        let whole = TimeSeries {
            scale: 1.0,
            ios_an_interval: 1_234.0,
            ..TimeSeries::default()
        };
        assert_eq!(
            notes(&whole),
            [
                "not steady by SNIA's rule after 5 capacities written",
                "maxima cover 1234 writes per point",
            ]
        );
    }

    #[test]
    fn a_fresh_drive_is_not_taken_for_a_steady_one() {
        // 100 intervals of one share each are flat throughout. The run is steady at the end of the first window after
        // two of five capacities, which is 8 + 5 of 20 rounds: 65 intervals.
        assert_eq!(steady_at(&series(vec![1000.0; 100])), Some(130.0));
    }

    #[test]
    fn a_rate_that_keeps_falling_is_not_steady() {
        let falling = (0..200)
            .map(|index| 1000.0 * f64::powi(0.985, index))
            .collect();
        assert_eq!(steady_at(&series(falling)), None);
    }

    #[test]
    fn a_cliff_is_steady_once_it_has_ended() {
        // Two and a half capacities at full speed, then a fifth of it.
        let mut iops = vec![1000.0; 50];
        iops.extend(vec![200.0; 250]);
        let at = steady_at(&series(iops)).expect("the end is flat");
        assert!((200.0..=400.0).contains(&at), "{at}");
    }
}
