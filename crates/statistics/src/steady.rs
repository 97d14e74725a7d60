//! Steady state by the rule of SNIA's Solid State Storage Performance Test Specification, over a window of five
//! rounds. The difference between the largest and the smallest value is at most 20 % of the mean. The fitted line
//! changes over the window by at most 10 % of the mean.

/// Rounds per window.
pub const ROUNDS: usize = 5;
/// Maximum excursion: largest minus smallest value, over the mean.
pub const EXCURSION: f64 = 0.20;
/// Maximum change of the fitted line over the window, over the mean.
pub const SLOPE: f64 = 0.10;

/// Evaluation of five rounds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SteadyWindow {
    /// Index of the first round.
    pub first: usize,
    /// Mean of the rounds.
    pub mean: f64,
    /// Largest minus smallest value, as a share of the mean.
    pub excursion: f64,
    /// Change of the fitted line from the first round to the last, as a share of the mean; negative if it falls.
    pub slope: f64,
}

impl SteadyWindow {
    /// Evaluates the window that starts at `first`; `None` if there are fewer than five rounds or their mean is not
    /// positive.
    pub fn from_rounds(rounds: &[f64], first: usize) -> Option<SteadyWindow> {
        let window = rounds.get(first..first + ROUNDS)?;
        let mean = window.iter().sum::<f64>() / ROUNDS as f64;
        if mean.is_nan() || mean <= 0.0 {
            return None;
        }
        let largest = window.iter().copied().fold(f64::MIN, f64::max);
        let smallest = window.iter().copied().fold(f64::MAX, f64::min);
        let middle = (ROUNDS - 1) as f64 / 2.0;
        let (mut cross, mut square) = (0.0, 0.0);
        for (index, round) in window.iter().enumerate() {
            let x = index as f64 - middle;
            cross += x * (round - mean);
            square += x * x;
        }
        Some(SteadyWindow {
            first,
            mean,
            excursion: (largest - smallest) / mean,
            slope: cross / square * (ROUNDS - 1) as f64 / mean,
        })
    }

    /// Checks whether the rule is met.
    pub fn is_steady(&self) -> bool {
        self.excursion <= EXCURSION && self.slope.abs() <= SLOPE
    }
}

/// Returns the first window in steady state; `None` if there is none.
pub fn steady_state(rounds: &[f64]) -> Option<SteadyWindow> {
    (0..rounds.len())
        .filter_map(|first| SteadyWindow::from_rounds(rounds, first))
        .find(SteadyWindow::is_steady)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cliff_is_waited_for() {
        let rounds = [
            900.0, 880.0, 860.0, 400.0, 120.0, 101.0, 99.0, 102.0, 98.0, 100.0,
        ];
        let window = steady_state(&rounds).expect("the end is flat");
        assert_eq!(window.first, 5);
        assert_eq!(window.mean, 100.0);
    }

    #[test]
    fn the_limits_are_those_of_the_rule() {
        // A straight line that rises by r of its mean has an excursion and a slope of r.
        let line = |rise: f64| -> Vec<f64> {
            (0..5)
                .map(|i| 100.0 + rise * 100.0 * (f64::from(i) / 4.0 - 0.5))
                .collect()
        };
        assert!(steady_state(&line(0.099)).is_some());
        assert!(steady_state(&line(0.101)).is_none());
        let spike = |height: f64| vec![100.0, 100.0, 100.0 + height, 100.0, 100.0];
        assert!(steady_state(&spike(20.0)).is_some(), "20 of a mean of 104");
        assert!(steady_state(&spike(21.0)).is_none());
        assert!(steady_state(&[100.0; 4]).is_none());
        assert!(steady_state(&[0.0; 9]).is_none());
    }

    proptest! {
        #[test]
        fn scale_changes_nothing(rounds in prop::collection::vec(1.0f64..1e6, 5..20), factor in 0.001f64..1e3) {
            let scaled: Vec<f64> = rounds.iter().map(|round| round * factor).collect();
            for first in 0..rounds.len() - 4 {
                let (Some(a), Some(b)) = (SteadyWindow::from_rounds(&rounds, first), SteadyWindow::from_rounds(&scaled, first)) else {
                    return Err(TestCaseError::fail("a window is missing"));
                };
                prop_assert!((a.excursion - b.excursion).abs() < 1e-9);
                prop_assert!((a.slope - b.slope).abs() < 1e-9);
            }
        }
    }
}
