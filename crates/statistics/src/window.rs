//! The time in which several threads were counted: from the first start to the last completion.
//!
//! The rate of a group of threads is what they did over this time. The sum of the threads' own rates is not: threads start
//! one after the other, and in a short run those that ended and those that had not begun would count as if all of them had
//! been at work all the time.

use model::{Span, Time};

use crate::{Measured, ThreadOutcome};

/// From the first start to the last completion of several threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    from: Time,
    last_start: Time,
    to: Time,
}

/// From this share of a window on the starts of its threads are worth a word.
const SPREAD: f64 = 0.05;

impl Window {
    /// That of one thread.
    pub fn of(measured: &Measured) -> Window {
        Window {
            from: measured.from,
            last_start: measured.from,
            to: measured.from + measured.over,
        }
    }

    /// That of several threads, of those that completed an I/O; `None` if none did.
    pub fn of_all<'a>(threads: impl Iterator<Item = &'a Measured>) -> Option<Window> {
        let counted = threads.filter(|thread| thread.ios > 0);
        counted.map(Window::of).reduce(Window::with)
    }

    /// That of both.
    #[must_use]
    pub fn with(self, other: Window) -> Window {
        Window {
            from: self.from.min(other.from),
            last_start: self.last_start.max(other.last_start),
            to: self.to.max(other.to),
        }
    }

    /// How long it is.
    pub fn length(self) -> Span {
        self.to.since(self.from)
    }

    /// From the first start to the last.
    pub fn spread(self) -> Span {
        self.last_start.since(self.from)
    }

    /// `count` per second of it; 0 if it has no length.
    pub fn rate(self, count: u64) -> f64 {
        match self.length() {
            Span::ZERO => 0.0,
            length => count as f64 / length.seconds(),
        }
    }
}

/// The jobs whose threads start over more than a twentieth of the time in which they are counted, with their number of
/// threads and that time.
pub fn spread_starts(threads: &[ThreadOutcome]) -> Vec<(usize, usize, Window)> {
    let mut jobs: Vec<(usize, usize, Window)> = Vec::new();
    for thread in threads {
        let ways = [&thread.read, &thread.write, &thread.trim];
        let Some(window) = Window::of_all(ways.into_iter()) else {
            continue;
        };
        match jobs.iter_mut().find(|(job, ..)| *job == thread.job) {
            Some((_, threads, all)) => {
                *threads += 1;
                *all = all.with(window);
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
        let window = Window::of_all(threads.iter()).expect("three did something");
        assert_eq!(window.length(), Span::from_us(100));
        assert_eq!(window.spread(), Span::from_us(30));
        assert_eq!(window.rate(30), 300_000.0);
        assert_eq!(Window::of_all(threads[2..3].iter()), None);
    }
}
