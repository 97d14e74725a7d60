//! Numbers with units as text of a file, so that a figure in microseconds can be compared with one in nanoseconds.

use text::digits::significant;
use text::quantity::{in_unit, split};

/// Returns the number of this text in another unit of the same kind.
pub(super) fn number_in(words: &str, unit: &str) -> Option<f64> {
    in_unit(words, (!unit.is_empty()).then_some(unit))
}

/// Returns a number to four digits with its unit. A count is whole, and a time is a whole number of nanoseconds, as
/// files require.
pub(super) fn words(number: f64, unit: &str) -> String {
    if unit.is_empty() {
        return format!("{number:.0}");
    }
    let number = match number_in(&format!("1 {unit}"), "ns") {
        Some(one) => libm::round(number * one) / one,
        None => number,
    };
    format!("{} {unit}", significant(number, 4))
}

/// The numbers of a figure with their units, and whether the figure is a list.
pub(super) type UnitValues = (Vec<(f64, String)>, bool);

pub(super) fn numbers(words: &str) -> Option<UnitValues> {
    let parts: Option<Vec<(f64, String)>> = words
        .split(',')
        .map(|part| split(part).map(|(number, unit)| (number, unit.to_owned())))
        .collect();
    Some((parts?, words.contains(',')))
}

/// Returns the text of a list as a file has it.
pub(super) fn as_written(words: &str) -> String {
    match numbers(words) {
        Some((_, true)) => format!("[\"{}\"]", words.replace(", ", "\", \"")),
        _ => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_one_dimension_are_compared() {
        assert_eq!(number_in("1.5 us", "ns"), Some(1500.0));
        assert_eq!(number_in("2.45 GB/s", "MB/s"), Some(2450.0));
        assert_eq!(number_in("12", ""), Some(12.0));
        assert_eq!(number_in("12 us", "MB"), None);
        assert_eq!(number_in("true", ""), None);
    }

    #[test]
    fn words_have_four_digits() {
        for (number, unit, wanted) in [
            (4.551_74, "us", "4.552 us"),
            (27.0, "us", "27 us"),
            (0.0, "ns", "0 ns"),
            (1234.56, "MB/s", "1235 MB/s"),
            (123_456.0, "ns", "123456 ns"),
            (0.463_51, "us", "0.464 us"),
            (12.34, "ns", "12 ns"),
            (0.011_5, "%", "0.0115 %"),
            (7.6, "", "8"),
        ] {
            assert_eq!(words(number, unit), wanted);
        }
    }

    #[test]
    fn lists_are_numbers_too() {
        let (parts, list) = numbers("3 us, 8 us").expect("two times");
        assert!(list);
        assert_eq!(parts, [(3.0, "us".to_owned()), (8.0, "us".to_owned())]);
        assert_eq!(as_written("3 us, 8 us"), "[\"3 us\", \"8 us\"]");
        assert_eq!(as_written("3 us"), "3 us");
        assert_eq!(numbers("true"), None);
    }
}
