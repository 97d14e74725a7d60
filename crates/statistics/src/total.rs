//! Total of one direction of several threads: I/Os from the first start to the last completion, merged latencies and
//! merged latency breakdowns.

use crate::{AnatomyBands, Histogram, Measured, Window};

/// Total of one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Total {
    /// Latency from submission to completion.
    pub latency: Histogram,
    /// Latency breakdown, by band of latency.
    pub bands: AnatomyBands,
    /// I/Os completed.
    pub ios: u64,
    /// I/Os that failed.
    pub errors: u64,
    /// I/Os per second.
    pub iops: f64,
    /// Transfer rate in bytes per second.
    pub bytes_per_second: f64,
}

impl Total {
    /// Adds up the threads of one run.
    pub fn from_threads<'a>(threads: impl Iterator<Item = &'a Measured>) -> Total {
        let mut total = Total::default();
        let (mut window, mut bytes) = (None, 0);
        for thread in threads {
            total.ios += thread.ios;
            total.errors += thread.errors;
            bytes += thread.bytes;
            total.latency.merge(&thread.latency);
            total.bands.merge(&thread.bands);
            if thread.ios > 0 {
                let this = Window::from_thread(thread);
                window = Some(window.map_or(this, |all: Window| all.union(this)));
            }
        }
        if let Some(window) = window {
            total.iops = window.rate(total.ios);
            total.bytes_per_second = window.rate(bytes);
        }
        total
    }

    /// Adds another run: rates are means over the time of both.
    pub fn follow(&mut self, other: &Total) {
        let seconds = |total: &Total| total.ios as f64 / total.iops.max(1e-9);
        let (mine, theirs) = (seconds(self), seconds(other));
        let mean = |mine_s: f64, theirs_s: f64| {
            (mine_s * mine + theirs_s * theirs) / (mine + theirs).max(1e-12)
        };
        self.iops = mean(self.iops, other.iops);
        self.bytes_per_second = mean(self.bytes_per_second, other.bytes_per_second);
        self.ios += other.ios;
        self.errors += other.errors;
        self.latency.follow(&other.latency);
        self.bands.merge(&other.bands);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Span, Time};

    fn thread(ios: u64, over: Span) -> Measured {
        Measured {
            ios,
            bytes: ios * 4096,
            over,
            ..Measured::default()
        }
    }

    #[test]
    fn threads_that_start_apart_do_not_add_up_their_rates() {
        let ms = Span::from_ms(10);
        let late = Measured {
            from: Time::ZERO + ms * 9,
            ..thread(100, ms)
        };
        let total = Total::from_threads([thread(100, ms), late].iter());
        assert_eq!((total.ios, total.iops), (200, 2000.0));
    }

    #[test]
    fn threads_add_up_and_runs_are_averaged_over_their_time() {
        let second = Span::from_ms(1000);
        let two = [thread(100, second), thread(300, second)];
        let mut total = Total::from_threads(two.iter());
        assert_eq!((total.ios, total.iops), (400, 400.0));
        assert_eq!(total.bytes_per_second, 400.0 * 4096.0);
        // 400 in one second, and 100 per second for three seconds.
        total.follow(&Total::from_threads([thread(300, second * 3)].iter()));
        assert_eq!((total.ios, total.iops), (700, 175.0));
    }
}
