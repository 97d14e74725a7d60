//! Progress of long work on standard error: a line that changes on a terminal, elsewhere a plain line now and then.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Between two changes of the line on a terminal.
const TICK: Duration = Duration::from_millis(250);
/// Between two plain lines.
const PLAIN: Duration = Duration::from_secs(30);
/// Length of a bar that is told shares.
const WHOLE: u64 = 1_000;

/// How far something is.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// When the last plain line was; `None` on a terminal.
    plain: Option<Mutex<Duration>>,
}

impl Progress {
    /// A line that looks like this template of indicatif's on a terminal; `{left}` in it is the time left.
    pub(crate) fn new(template: &str) -> Progress {
        let bar = ProgressBar::no_length();
        if !io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
            let plain = Some(Mutex::new(Duration::ZERO));
            return Progress { bar, plain };
        }
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let style = style.with_key(
            "left",
            |state: &ProgressState, line: &mut dyn fmt::Write| {
                if let Some(left) = left(state.elapsed(), state.pos(), state.len()) {
                    // A line on a terminal that cannot be made is not worth an error.
                    let _ = write!(line, "about {:#} left", HumanDuration(left));
                }
            },
        );
        bar.set_style(style.progress_chars("=> "));
        bar.enable_steady_tick(TICK);
        Progress { bar, plain: None }
    }

    /// The share of all that is done, 0 to 1.
    pub(crate) fn share(&self, share: f64) {
        self.bar.set_length(WHOLE);
        self.bar.set_position((share * WHOLE as f64) as u64);
        self.now_and_then(|bar| {
            let left = left(bar.elapsed(), bar.position(), Some(WHOLE));
            let left = left.map_or_else(String::new, |left| {
                format!(", about {:#} left", HumanDuration(left))
            });
            let what = bar.message();
            let comma = if what.is_empty() { "" } else { ", " };
            format!("{:.0} %{left}{comma}{what}", share * 100.0)
        });
    }

    /// What is being done, beside a share that is told.
    pub(crate) fn name(&self, what: String) {
        self.bar.set_message(what);
    }

    /// What is being done.
    pub(crate) fn message(&self, message: String) {
        self.bar.set_message(message);
        self.now_and_then(counted);
    }

    /// So many more are to be done.
    pub(crate) fn planned(&self, more: usize) {
        // A bar that has no length yet would take no more.
        let before = self.bar.length().unwrap_or(0);
        self.bar.set_length(before + more as u64);
    }

    /// One is done.
    pub(crate) fn one_done(&self) {
        self.bar.inc(1);
        self.now_and_then(counted);
    }

    /// Writes something else to the terminal between two pictures of the line.
    pub(crate) fn aside<R>(&self, write: impl FnOnce() -> R) -> R {
        self.bar.suspend(write)
    }

    /// Takes the line away.
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
        // Nobody may be listening any more: the work goes on.
        let _ = writeln!(io::stderr(), "{} s: {}", now.as_secs(), words(&self.bar));
    }
}

/// The time left if what is to be done takes as long as what is done took, in the mean. (indicatif's own estimate looks
/// at the last few alone, and measurements last from milliseconds to minutes.) `None` as long as nothing is done.
fn left(elapsed: Duration, done: u64, of: Option<u64>) -> Option<Duration> {
    let more = of?.saturating_sub(done);
    (done > 0).then(|| elapsed.mul_f64(more as f64 / done as f64))
}

/// How many of how many, and which; where nothing says which, the time left.
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
