//! Rate limits: `rate`, `rate_iops` and `rate_process`.
//!
//! As in fio, the schedule is absolute, so a job that fell behind catches up, limited by its queue depth.

use model::{Span, Stream, Time};

use super::job::{Rate, RateProcess};

/// Due time of the next I/O of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    rate: Rate,
    process: RateProcess,
    start: Time,
    /// I/Os or bytes so far.
    issued: u64,
    due: Time,
}

impl Pacer {
    pub(crate) fn new(rate: Rate, process: RateProcess, start: Time) -> Pacer {
        Pacer {
            rate,
            process,
            start,
            issued: 0,
            due: start,
        }
    }

    #[inline]
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// Counts an I/O and advances the due time.
    #[inline]
    pub(crate) fn issue(&mut self, bytes: u32, stream: &mut Stream) {
        let (unit, rate) = match self.rate {
            Rate::Bytes(rate) => (u64::from(bytes), rate),
            Rate::Iops(rate) => (1, rate),
        };
        self.issued += unit;
        self.due = match self.process {
            RateProcess::Linear => {
                // Computed from the start, so that rounding errors do not accumulate.
                let ns = u128::from(self.issued) * 1_000_000_000 / u128::from(rate.max(1));
                self.start + Span::from_ns(ns as u64)
            }
            RateProcess::Poisson => {
                let mean = unit as f64 / rate.max(1) as f64;
                self.due + stream.exponential(Span::from_seconds(mean))
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_pace_is_exact_over_a_second() {
        let mut stream = Stream::new(1, "test");
        let mut pace = Pacer::new(Rate::Iops(3), RateProcess::Linear, Time::from_ns(5));
        for _ in 0..3_000_000 {
            pace.issue(4096, &mut stream);
        }
        assert_eq!(pace.due(), Time::from_ns(5 + 1_000_000 * 1_000_000_000));
    }

    #[test]
    fn poisson_gaps_have_mean_and_deviation_alike() {
        let mut stream = Stream::new(1, "test");
        let mut pace = Pacer::new(Rate::Bytes(4_096_000_000), RateProcess::Poisson, Time::ZERO);
        let (mut sum, mut squares) = (0.0, 0.0);
        let n = 100_000;
        for _ in 0..n {
            let before = pace.due();
            pace.issue(4096, &mut stream);
            let gap = pace.due().since(before).ns() as f64;
            sum += gap;
            squares += gap * gap;
        }
        let mean = sum / f64::from(n);
        let deviation = (squares / f64::from(n) - mean * mean).sqrt();
        assert!((mean - 1000.0).abs() < 20.0, "{mean}");
        assert!((deviation / mean - 1.0).abs() < 0.02, "{deviation}");
    }
}
