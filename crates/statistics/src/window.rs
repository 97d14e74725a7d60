//! The time in which several threads were counted: from the first start to the last completion.
//!
//! The rate of a group of threads is their work divided by this time. The sum of the threads' own rates is different.
//! Threads start one after another. In a short run, the sum counts threads that have ended or not yet started as if
//! they had worked all the time.

use model::{Span, Time};

use crate::{Measured, ThreadOutcome};

/// Time from the first start to the last completion of several threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    from: Time,
    last_start: Time,
    to: Time,
}

/// Minimum spread of thread starts that is reported, as a share of the window.
const SPREAD: f64 = 0.05;

impl Window {
    /// Returns the window of one thread.
    pub fn from_thread(measured: &Measured) -> Window {
        Window {
            from: measured.from,
            last_start: measured.from,
            to: measured.from + measured.over,
        }
    }

    /// Returns the window of all threads with a completed I/O; `None` if there are none.
    pub fn from_threads<'a>(threads: impl Iterator<Item = &'a Measured>) -> Option<Window> {
        let counted = threads.filter(|thread| thread.ios > 0);
        counted.map(Window::from_thread).reduce(Window::union)
    }

    /// Returns the window that covers both.
    #[must_use]
    pub fn union(self, other: Window) -> Window {
        Window {
            from: self.from.min(other.from),
            last_start: self.last_start.max(other.last_start),
            to: self.to.max(other.to),
        }
    }

    /// Returns the length of the window.
    pub fn length(self) -> Span {
        self.to.since(self.from)
    }

    /// Returns the time from the first start to the last start.
    pub fn spread(self) -> Span {
        self.last_start.since(self.from)
    }

    /// Returns `count` per second of the window; 0 if its length is zero.
    pub fn rate(self, count: u64) -> f64 {
        match self.length() {
            Span::ZERO => 0.0,
            length => count as f64 / length.seconds(),
        }
    }
}

/// Returns the jobs whose threads start over more than 5 % of their counted time, with the number of threads and that
/// time.
pub fn spread_starts(threads: &[ThreadOutcome]) -> Vec<(usize, usize, Window)> {
    let mut jobs: Vec<(usize, usize, Window)> = Vec::new();
    for thread in threads {
        let ways = [&thread.read, &thread.write, &thread.trim];
        let Some(window) = Window::from_threads(ways.into_iter()) else {
            continue;
        };
        match jobs.iter_mut().find(|(job, ..)| *job == thread.job) {
            Some((_, threads, all)) => {
                *threads += 1;
                *all = all.union(window);
            }
            None => jobs.push((thread.job, 1, window)),
        }
    }
    let wide = |window: &Window| window.spread().seconds() > SPREAD * window.length().seconds();
    jobs.retain(|(_, _, window)| wide(window));
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(start_us: u64, us: u64, ios: u64) -> Measured {
        Measured {
            ios,
            from: Time::ZERO + Span::from_us(start_us),
            over: Span::from_us(us),
            ..Measured::default()
        }
    }

    #[test]
    fn a_window_is_from_the_first_start_to_the_last_completion_of_those_that_did_something() {
        let threads = [
            thread(100, 50, 10),
            thread(120, 80, 10),
            thread(0, 900, 0),
            thread(130, 20, 10),
        ];
        let window = Window::from_threads(threads.iter()).expect("three did something");
        assert_eq!(window.length(), Span::from_us(100));
        assert_eq!(window.spread(), Span::from_us(30));
        assert_eq!(window.rate(30), 300_000.0);
        assert_eq!(Window::from_threads(threads[2..3].iter()), None);
    }
}
