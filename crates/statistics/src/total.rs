//! One direction of several threads together: rates add up, latencies and anatomies merge.

use crate::{AnatomyBands, Histogram, Measured};

/// One direction, added up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Total {
    /// From submission to completion.
    pub latency: Histogram,
    /// Where the time went, by band of latency.
    pub bands: AnatomyBands,
    /// I/Os completed.
    pub ios: u64,
    /// I/Os that failed.
    pub errors: u64,
    /// I/Os a second.
    pub iops: f64,
    /// Bytes a second.
    pub bytes_per_second: f64,
}

impl Total {
    /// Of the threads of one run.
    pub fn of<'a>(threads: impl Iterator<Item = &'a Measured>) -> Total {
        let mut total = Total::default();
        for thread in threads {
            total.ios += thread.ios;
            total.errors += thread.errors;
            total.iops += thread.iops();
            total.bytes_per_second += thread.bytes_per_second();
            total.latency.merge(&thread.latency);
            total.bands.merge(&thread.bands);
        }
        total
    }

    /// Adds another run: rates are means over the time that both took.
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
    use model::Span;

    fn thread(ios: u64, over: Span) -> Measured {
        Measured {
            ios,
            bytes: ios * 4096,
            over,
            ..Measured::default()
        }
    }

    #[test]
    fn threads_add_up_and_runs_are_averaged_over_their_time() {
        let second = Span::from_ms(1000);
        let two = [thread(100, second), thread(300, second)];
        let mut total = Total::of(two.iter());
        assert_eq!((total.ios, total.iops), (400, 400.0));
        assert_eq!(total.bytes_per_second, 400.0 * 4096.0);
        // 400 in one second, and 100 a second for three.
        total.follow(&Total::of([thread(300, second * 3)].iter()));
        assert_eq!((total.ios, total.iops), (700, 175.0));
    }
}
