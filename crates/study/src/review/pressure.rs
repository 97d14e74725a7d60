//! Detects write pressure of a write buffer in a run over time.
//!
//! Pressure begins with the first interval at whose end a tier delays writes. Figures under pressure are of the last
//! half of the remaining time, because the buffer needs a while until it is emptied as fast as it fills. Without a
//! limit that is reached, there is no pressure.

use super::results::Measurement;
use super::series::TimeSeries;

/// Minimum number of intervals after the beginning.
const FEWEST: usize = 8;

/// Figures of write pressure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct PressureFigures {
    /// Start, in seconds of the whole pool.
    pub(crate) from_seconds: f64,
    /// IOPS before it; `None` if there was pressure from the start.
    pub(crate) before_iops: Option<f64>,
    /// IOPS under pressure.
    pub(crate) iops: f64,
    /// 10^6 bytes per second written under pressure.
    pub(crate) mb_s: f64,
    /// 10^6 bytes per second that the buffer freed under pressure.
    pub(crate) freed_mb_s: f64,
    /// Mean level of congestion under pressure, 0 to 255.
    pub(crate) congestion: f64,
}

impl PressureFigures {
    /// Returns the write pressure of a run, if there was any.
    pub(crate) fn from_measurement(result: &Measurement) -> Option<PressureFigures> {
        PressureFigures::in_series(result.series.as_ref()?)
    }

    fn in_series(series: &TimeSeries) -> Option<PressureFigures> {
        let begins = series.congestion.iter().position(|level| *level > 0.0)?;
        let count = series.iops.len();
        let rest = count.checked_sub(begins)?;
        if rest < FEWEST {
            return None;
        }
        let mean = |values: &[f64], from: usize, to: usize| {
            let part = values.get(from..to).unwrap_or(&[]);
            part.iter().sum::<f64>() / part.len().max(1) as f64
        };
        let late = |values: &[f64]| mean(values, count - rest / 2, count);
        Some(PressureFigures {
            from_seconds: (begins + 1) as f64 * series.every_seconds,
            before_iops: (begins > 0).then(|| mean(&series.iops, 0, begins)),
            iops: late(&series.iops),
            mb_s: late(&series.mb_s),
            freed_mb_s: late(&series.freed_mb_s),
            congestion: late(&series.congestion),
        })
    }

    /// Returns the ratio to the rate before; `None` if there was pressure from the start.
    pub(crate) fn share(&self) -> Option<f64> {
        Some(self.iops / self.before_iops?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(congestion: Vec<f64>) -> TimeSeries {
        let fast = congestion.iter().map(|level| 1000.0 - 5.0 * level);
        TimeSeries {
            every_seconds: 2.0,
            iops: fast.clone().collect(),
            mb_s: fast.clone().map(|iops| iops * 4096.0 / 1e6).collect(),
            freed_mb_s: vec![3.0; congestion.len()],
            congestion,
            ..TimeSeries::default()
        }
    }

    #[test]
    fn pressure_begins_where_writes_are_first_held_back() {
        let mut levels = vec![0.0; 10];
        levels.extend([20.0; 10]);
        levels.extend([100.0; 30]);
        let found = PressureFigures::in_series(&series(levels)).expect("held back");
        assert_eq!(found.from_seconds, 22.0);
        assert_eq!(found.before_iops, Some(1000.0));
        assert_eq!((found.iops, found.congestion), (500.0, 100.0));
        assert_eq!(found.share(), Some(0.5));
    }

    #[test]
    fn a_buffer_that_never_fills_has_no_pressure() {
        assert_eq!(PressureFigures::in_series(&series(vec![0.0; 50])), None);
        assert_eq!(PressureFigures::in_series(&series(Vec::new())), None);
        let mut at_the_end = vec![0.0; 50];
        at_the_end.push(200.0);
        assert_eq!(PressureFigures::in_series(&series(at_the_end)), None);
        let from_the_start =
            PressureFigures::in_series(&series(vec![90.0; 50])).expect("held back");
        assert_eq!(from_the_start.share(), None);
    }
}
