//! Progress of long work on standard error: a changing line on a terminal, otherwise a plain line at intervals.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Interval of updates on a terminal.
const TICK: Duration = Duration::from_millis(250);
/// Interval of plain lines.
const PLAIN: Duration = Duration::from_secs(30);
/// Length of a bar that shows a share.
const WHOLE: u64 = 1_000;

/// Share by which a predicted end may be later than an earlier prediction.
const SLIPS: f64 = 1.15;

/// Progress of a task.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Time of the last plain line; `None` on a terminal.
    plain: Option<Mutex<Duration>>,
    /// Predictions of plain lines.
    estimate: Mutex<Estimate>,
}

/// Checks predictions of the end of a task: one that moves away is not shown.
///
/// Parts of a task may take different times. If the quick ones come first, the predicted end moves away as fast as time
/// passes.
#[derive(Clone, Copy, Debug, Default)]
struct Estimate {
    /// Time of an earlier prediction, and the predicted end; replaced when the elapsed time has doubled.
    before: Option<(Duration, Duration)>,
    /// Whether the last prediction that replaced an earlier one agreed with it.
    agrees: bool,
}

impl Estimate {
    /// Returns the remaining time if the predicted end agrees with the earlier prediction.
    fn trusted(&mut self, elapsed: Duration, left: Duration) -> Option<Duration> {
        let end = elapsed + left;
        let agrees = match self.before {
            None => true,
            Some((_, before)) => end <= before.mul_f64(SLIPS),
        };
        if self.before.is_none_or(|(at, _)| elapsed >= at * 2) {
            self.before = Some((elapsed, end));
            self.agrees = agrees;
        }
        (agrees && self.agrees).then_some(left)
    }
}

impl Progress {
    /// Returns a progress line with this indicatif template on a terminal; `{left}` is replaced by the remaining time.
    pub(crate) fn new(template: &str) -> Progress {
        let bar = ProgressBar::no_length();
        if !io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
            let plain = Some(Mutex::new(Duration::ZERO));
            let estimate = Mutex::default();
            return Progress {
                bar,
                plain,
                estimate,
            };
        }
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let estimate: Arc<Mutex<Estimate>> = Arc::default();
        let style = style.with_key(
            "left",
            move |state: &ProgressState, line: &mut dyn fmt::Write| {
                let left = left(state.elapsed(), state.pos(), state.len());
                if let Some(left) = left.and_then(|left| trusted(&estimate, state.elapsed(), left))
                {
                    // A failure to format a line is not worth an error.
                    let _ = write!(line, "about {:#} left", HumanDuration(left));
                }
            },
        );
        bar.set_style(style.progress_chars("=> "));
        bar.enable_steady_tick(TICK);
        Progress {
            bar,
            plain: None,
            estimate: Mutex::default(),
        }
    }

    /// Sets the share of all work that is done, 0 to 1.
    pub(crate) fn share(&self, share: f64) {
        self.bar.set_length(WHOLE);
        self.bar.set_position((share * WHOLE as f64) as u64);
        self.now_and_then(|bar| {
            let left = left(bar.elapsed(), bar.position(), Some(WHOLE));
            let left = left.and_then(|left| trusted(&self.estimate, bar.elapsed(), left));
            let left = left.map_or_else(String::new, |left| {
                format!(", about {:#} left", HumanDuration(left))
            });
            let what = bar.message();
            let comma = if what.is_empty() { "" } else { ", " };
            format!("{:.0} %{left}{comma}{what}", share * 100.0)
        });
    }

    /// Sets the text that is shown with a share.
    pub(crate) fn name(&self, what: String) {
        self.bar.set_message(what);
    }

    /// Sets the text of the current work.
    pub(crate) fn message(&self, message: String) {
        self.bar.set_message(message);
        self.now_and_then(counted);
    }

    /// Adds this number of planned tasks.
    pub(crate) fn planned(&self, more: usize) {
        // A bar without a length would not accept more.
        let before = self.bar.length().unwrap_or(0);
        self.bar.set_length(before + more as u64);
    }

    /// Counts a completed task.
    pub(crate) fn one_done(&self) {
        self.bar.inc(1);
        self.now_and_then(counted);
    }

    /// Writes other output to the terminal between two updates of the line.
    pub(crate) fn aside<R>(&self, write: impl FnOnce() -> R) -> R {
        self.bar.suspend(write)
    }

    /// Removes the line.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn now_and_then(&self, words: impl Fn(&ProgressBar) -> String) {
        let Some(last) = &self.plain else { return };
        let now = self.bar.elapsed();
        {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if now < *last + PLAIN {
                return;
            }
            *last = now;
        }
        // If nobody reads the output any more, the work continues.
        let _ = writeln!(io::stderr(), "{} s: {}", now.as_secs(), words(&self.bar));
    }
}

fn trusted(estimate: &Mutex<Estimate>, elapsed: Duration, left: Duration) -> Option<Duration> {
    let mut estimate = estimate.lock().unwrap_or_else(PoisonError::into_inner);
    estimate.trusted(elapsed, left)
}

/// Returns the remaining time, if the remaining tasks take as long as the completed ones on average. (indicatif's own
/// estimate uses only the last few, and measurements take from milliseconds to minutes.) `None` while nothing is done.
fn left(elapsed: Duration, done: u64, of: Option<u64>) -> Option<Duration> {
    let more = of?.saturating_sub(done);
    (done > 0).then(|| elapsed.mul_f64(more as f64 / done as f64))
}

/// Returns the number of completed and of all tasks, with the current one, or the remaining time if there is no name.
fn counted(bar: &ProgressBar) -> String {
    let Some(length) = bar.length() else {
        return bar.message();
    };
    let done = format!("{} of {length} done", bar.position());
    let left = left(bar.elapsed(), bar.position(), Some(length));
    match (bar.message().is_empty(), left) {
        (false, _) => format!("{done}, {}", bar.message()),
        (true, Some(left)) => format!("{done}, about {:#} left", HumanDuration(left)),
        (true, None) => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_by_the_mean_of_all_that_is_done() {
        let minute = Duration::from_secs(60);
        assert_eq!(left(minute, 0, Some(9)), None);
        assert_eq!(left(minute, 3, None), None);
        assert_eq!(left(minute, 3, Some(9)), Some(Duration::from_secs(120)));
        assert_eq!(left(minute, 9, Some(9)), Some(Duration::ZERO));
    }

    /// After 30, 60, 90 and 120 s, 53, 51, 51 and 50 s are left: only the first is shown. A falling one stays.
    #[test]
    fn an_end_that_moves_away_is_not_shown() {
        let shown = |left: [u64; 4]| {
            let mut estimate = Estimate::default();
            let mut at = Duration::ZERO;
            left.map(|left| {
                at += Duration::from_secs(30);
                estimate.trusted(at, Duration::from_secs(left)).is_some()
            })
        };
        assert_eq!(shown([53, 51, 51, 50]), [true, false, false, false]);
        assert_eq!(shown([90, 65, 30, 2]), [true; 4]);
        assert_eq!(shown([10, 90, 60, 30]), [true, false, false, true]);
    }

    #[test]
    fn what_is_planned_bit_by_bit_is_counted_together() {
        let progress = Progress::new("{pos}/{len}");
        progress.planned(3);
        assert_eq!(counted(&progress.bar), "0 of 3 done");
        progress.one_done();
        progress.planned(2);
        assert!(counted(&progress.bar).starts_with("1 of 5 done, about "));
        progress.message("p3700 read".into());
        assert_eq!(counted(&progress.bar), "1 of 5 done, p3700 read");
    }
}
