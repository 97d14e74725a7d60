//! Latin hypercubes: points that cover each dimension evenly, whatever the number of dimensions.
//!
//! Each dimension is divided into as many parts of equal probability as there are points. Each part is used once; the
//! point that uses it, and the position within the part, are random. (McKay, Beckman and Conover, "A Comparison of
//! Three Methods for Selecting Values of Input Variables", Technometrics 21, 1979.) Not supported: designs that also
//! spread points over pairs of dimensions.

use model::random::Stream;
use text::digits::significant;

use super::space::{SettingValue, SweepPoint, SweepSetting};

/// Digits of a sampled number, as it is written and used.
const DIGITS: usize = 6;

/// One dimension of a hypercube.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Dimension {
    /// Setting that the dimension varies.
    pub(super) what: SweepSetting,
    /// Values of the setting.
    pub(super) values: DimensionValues,
}

/// Values of a dimension.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum DimensionValues {
    /// Any of these, with equal frequency (up to a difference of one).
    Any(Vec<SettingValue>),
    /// A number in a range.
    Between(NumberRange),
}

/// A range of numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NumberRange {
    /// Lower bound.
    pub(super) from: f64,
    /// Upper bound.
    pub(super) to: f64,
    /// Whether equal ratios are equally likely (false: equal differences).
    pub(super) logarithmic: bool,
    /// Whether it is a whole number.
    pub(super) whole: bool,
    /// Unit after the number; empty for none.
    pub(super) unit: String,
    /// Position of the range in the file.
    pub(super) at: Option<std::ops::Range<usize>>,
}

impl NumberRange {
    /// Returns the value at this share of the range, 0 to 1.
    fn value(&self, share: f64) -> SettingValue {
        // All whole numbers are equally likely, including the bounds.
        let edge = if self.whole { 0.5 } else { 0.0 };
        let (from, to) = (self.from - edge, self.to + edge);
        let value = match self.logarithmic {
            true => libm::exp(libm::log(from) + share * (libm::log(to) - libm::log(from))),
            false => from + share * (to - from),
        };
        let number = match self.whole {
            // Adding zero removes the sign of a negative zero.
            true => format!("{}", libm::round(value).clamp(self.from, self.to) + 0.0),
            false => significant(value.clamp(self.from, self.to), DIGITS),
        };
        let words = match self.unit.is_empty() {
            true => number,
            false => format!("{number} {}", self.unit),
        };
        SettingValue {
            words,
            at: self.at.clone(),
        }
    }
}

/// Returns this number of points in these dimensions. An additional dimension does not change the others.
pub(super) fn latin_hypercube(
    dimensions: &[Dimension],
    points: usize,
    seed: u64,
) -> Vec<SweepPoint> {
    let mut all = vec![SweepPoint::new(); points];
    for dimension in dimensions {
        let name = format!("latin hypercube {}", dimension.what.name());
        let mut stream = Stream::new(seed, &name);
        let mut parts: Vec<usize> = (0..points).collect();
        for last in (1..points).rev() {
            parts.swap(last, stream.uniform_below(last as u64 + 1) as usize);
        }
        for (point, part) in all.iter_mut().zip(parts) {
            let share = (part as f64 + stream.unit()) / points as f64;
            let choice = match &dimension.values {
                DimensionValues::Any(choices) => {
                    let at = (share * choices.len() as f64) as usize;
                    choices[at.min(choices.len() - 1)].clone()
                }
                DimensionValues::Between(range) => range.value(share),
            };
            point.push((dimension.what.clone(), choice));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(from: f64, to: f64, logarithmic: bool, whole: bool) -> Dimension {
        let unit = String::new();
        Dimension {
            what: SweepSetting::Job("iodepth".into()),
            values: DimensionValues::Between(NumberRange {
                from,
                to,
                logarithmic,
                whole,
                unit,
                at: None,
            }),
        }
    }

    fn numbers(dimension: &Dimension, points: usize, seed: u64) -> Vec<f64> {
        let points = latin_hypercube(std::slice::from_ref(dimension), points, seed);
        let numbers = points.iter().map(|point| point[0].1.words.parse());
        let mut numbers: Vec<f64> = numbers.map(|number| number.expect("a number")).collect();
        numbers.sort_by(f64::total_cmp);
        numbers
    }

    #[test]
    fn each_part_of_a_range_is_taken_once() {
        for (index, number) in numbers(&between(10.0, 20.0, false, false), 50, 3)
            .iter()
            .enumerate()
        {
            let from = 10.0 + index as f64 * 0.2;
            // Values have six digits.
            assert!(
                (from - 1e-4..=from + 0.2 + 1e-4).contains(number),
                "{number}"
            );
        }
        let decades = numbers(&between(1.0, 1e4, true, false), 40, 3);
        assert_eq!(decades.iter().filter(|number| **number < 10.0).count(), 10);
    }

    #[test]
    fn whole_numbers_are_equally_likely_up_to_the_ends() {
        let percent = latin_hypercube(&[between(0.0, 9.0, false, true)], 100, 9);
        assert!(
            percent
                .iter()
                .all(|point| !point[0].1.words.starts_with('-'))
        );
        let dice = numbers(&between(1.0, 6.0, false, true), 600, 9);
        for face in 1..=6 {
            let count = dice.iter().filter(|it| **it == f64::from(face)).count();
            assert_eq!(count, 100, "{face}");
        }
    }

    #[test]
    fn the_seed_decides_and_another_dimension_does_not() {
        let one = between(0.0, 1.0, false, false);
        let any = Dimension {
            what: SweepSetting::Drive,
            values: DimensionValues::Any(vec![SettingValue {
                words: "a".into(),
                at: None,
            }]),
        };
        let alone = latin_hypercube(std::slice::from_ref(&one), 9, 1);
        let both = latin_hypercube(&[any, one.clone()], 9, 1);
        for (alone, both) in alone.iter().zip(&both) {
            assert_eq!(alone[0], both[1]);
        }
        assert_ne!(alone, latin_hypercube(&[one], 9, 2));
    }
}
