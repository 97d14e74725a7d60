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
    /// Time when statistics start.
    count_from: Time,
    /// I/Os or bytes so far.
    issued: u64,
    /// I/Os so far.
    ios: u64,
    /// Issued I/Os that were due at or after `count_from`.
    arrived: u64,
    due: Time,
}

impl Pacer {
    pub(crate) fn new(rate: Rate, process: RateProcess, start: Time, count_from: Time) -> Pacer {
        Pacer {
            rate,
            process,
            start,
            count_from,
            issued: 0,
            ios: 0,
            arrived: 0,
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
        self.ios += 1;
        self.arrived += u64::from(self.due >= self.count_from);
        let (unit, rate) = match self.rate {
            Rate::Bytes(rate) => (u64::from(bytes), rate),
            Rate::Iops(rate) => (1, rate),
            Rate::Every(gap) => {
                self.due = match self.process {
                    RateProcess::Linear => self.start + gap * self.ios,
                    RateProcess::Poisson => self.due + stream.exponential(gap),
                };
                return;
            }
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

    /// Returns the I/Os that were due in the counted time until `end`. Those that are overdue at the end follow from the
    /// mean time between the earlier ones.
    pub(crate) fn arrivals(&self, end: Time) -> f64 {
        if self.due > end {
            return self.arrived as f64;
        }
        let gap = self.due.since(self.start).seconds() / self.ios.max(1) as f64;
        let overdue = end.since(self.due.max(self.count_from)).seconds();
        let further = if gap > 0.0 { overdue / gap } else { 0.0 };
        self.arrived as f64 + 1.0 + further
    }
}

/// Returns the I/Os of a thread that were due from the start of its counted time to its last completion; `None` without a
/// rate. No I/O is drawn after the end of `runtime`, so those of the time until then stand for the rest.
pub(crate) fn arrived(
    paces: &[Option<Pacer>; 3],
    count_from: Time,
    until: Time,
    ended: Time,
) -> Option<f64> {
    let end = until.min(ended);
    let paces = paces.iter().flatten();
    let arrived = paces.map(|pace| pace.arrivals(end)).reduce(|a, b| a + b)?;
    let counted = end.since(count_from).seconds();
    match counted > 0.0 {
        true => Some(arrived * ended.since(count_from).seconds() / counted),
        false => Some(arrived),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_pace_is_exact_over_a_second() {
        let mut stream = Stream::new(1, "test");
        let mut pace = Pacer::new(
            Rate::Iops(3),
            RateProcess::Linear,
            Time::from_ns(5),
            Time::ZERO,
        );
        for _ in 0..3_000_000 {
            pace.issue(4096, &mut stream);
        }
        assert_eq!(pace.due(), Time::from_ns(5 + 1_000_000 * 1_000_000_000));
    }

    #[test]
    fn poisson_gaps_have_mean_and_deviation_alike() {
        let mut stream = Stream::new(1, "test");
        let mut pace = Pacer::new(
            Rate::Bytes(4_096_000_000),
            RateProcess::Poisson,
            Time::ZERO,
            Time::ZERO,
        );
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

    /// 0.25 I/Os per second: the fifth is due after 16 s.
    #[test]
    fn rates_below_one_per_second_are_exact() {
        let mut stream = Stream::new(1, "test");
        let gap = Span::from_ms(4_000);
        let mut pace = Pacer::new(
            Rate::Every(gap),
            RateProcess::Linear,
            Time::ZERO,
            Time::ZERO,
        );
        for _ in 0..4 {
            pace.issue(4096, &mut stream);
        }
        assert_eq!(pace.due(), Time::from_ns(16_000_000_000));
        assert_eq!(Rate::Every(gap).iops(), Some(0.25));
    }

    /// A thread that issued 30 of 100 I/Os: 20 of the first 30 arrived before the counted time.
    #[test]
    fn overdue_ios_have_arrived() {
        let mut stream = Stream::new(1, "test");
        let second = Time::from_ns(1_000_000_000);
        let counted = Time::from_ns(200_000_000);
        let mut pace = Pacer::new(Rate::Iops(100), RateProcess::Linear, Time::ZERO, counted);
        for _ in 0..30 {
            pace.issue(4096, &mut stream);
        }
        // Due at 0.2 s to 0.29 s; then the one at 0.3 s, and 70 more until 1 s.
        assert!(
            (pace.arrivals(second) - 81.0).abs() < 1e-6,
            "{}",
            pace.arrivals(second)
        );
        assert_eq!(pace.arrivals(Time::from_ns(299_000_000)), 10.0);
    }
}
