//! Progress of long work on standard error: a line that changes on a terminal, elsewhere a plain line now and then.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

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
    /// A line that looks like this template of indicatif's on a terminal.
    pub(crate) fn new(template: &str) -> Progress {
        let bar = ProgressBar::no_length();
        if !io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
            let plain = Some(Mutex::new(Duration::ZERO));
            return Progress { bar, plain };
        }
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        bar.set_style(style.progress_chars("=> "));
        bar.enable_steady_tick(TICK);
        Progress { bar, plain: None }
    }

    /// The share of all that is done, 0 to 1.
    pub(crate) fn share(&self, share: f64) {
        self.bar.set_length(WHOLE);
        self.bar.set_position((share * WHOLE as f64) as u64);
        self.now_and_then(|_| format!("{:.0} %", share * 100.0));
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

/// How many of how many, and which.
fn counted(bar: &ProgressBar) -> String {
    match bar.length() {
        Some(length) => format!("{} of {length} done, {}", bar.position(), bar.message()),
        None => bar.message(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_planned_bit_by_bit_is_counted_together() {
        let progress = Progress::new("{pos}/{len}");
        progress.planned(3);
        progress.one_done();
        progress.planned(2);
        progress.message("p3700 read".into());
        assert_eq!(counted(&progress.bar), "1 of 5 done, p3700 read");
    }
}
