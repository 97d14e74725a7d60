//! Numbers with units in the words of a file, so that a figure in microseconds can be compared with one in nanoseconds.

/// Units of the same dimension differ by their sizes only: dimension and size.
const UNITS: &[(&str, &str, f64)] = &[
    ("ns", "time", 1e-9),
    ("us", "time", 1e-6),
    ("ms", "time", 1e-3),
    ("s", "time", 1.0),
    ("min", "time", 60.0),
    ("h", "time", 3600.0),
    ("days", "time", 86_400.0),
    ("B", "bytes", 1.0),
    ("KiB", "bytes", 1024.0),
    ("MiB", "bytes", 1_048_576.0),
    ("GiB", "bytes", 1_073_741_824.0),
    ("kB", "bytes", 1e3),
    ("MB", "bytes", 1e6),
    ("GB", "bytes", 1e9),
    ("TB", "bytes", 1e12),
    ("MB/s", "rate", 1e6),
    ("MiB/s", "rate", 1_048_576.0),
    ("GB/s", "rate", 1e9),
    ("GiB/s", "rate", 1_073_741_824.0),
    ("mW", "power", 1e-3),
    ("W", "power", 1.0),
    ("%", "share", 0.01),
    ("", "count", 1.0),
];

/// Dimension and size of a unit.
pub(super) fn size(unit: &str) -> Option<(&'static str, f64)> {
    let found = UNITS.iter().find(|(name, ..)| *name == unit)?;
    Some((found.1, found.2))
}

/// Number and unit of words such as `6.9 us` or `7`.
pub(super) fn split(words: &str) -> Option<(f64, String)> {
    let words = words.trim();
    let at = words
        .find(|c: char| c.is_ascii_alphabetic() || c == '%')
        .unwrap_or(words.len());
    let (number, unit) = words.split_at(at);
    Some((number.trim().parse().ok()?, unit.trim().to_owned()))
}

/// The number of these words in another unit of the same dimension.
pub(super) fn number_in(words: &str, unit: &str) -> Option<f64> {
    let (number, own) = split(words)?;
    if own == unit {
        return Some(number);
    }
    let ((dimension, size), (wanted, one)) = (size(&own)?, size(unit)?);
    (dimension == wanted).then_some(number * size / one)
}

/// A number to four digits, with its unit; a count is whole, and a time one of whole nanoseconds, as files want it.
pub(super) fn words(number: f64, unit: &str) -> String {
    match size(unit) {
        Some(("count", _)) => format!("{number:.0}"),
        Some(("time", one)) => {
            let nanoseconds = libm::round(number * one * 1e9);
            format!("{} {unit}", rounded(nanoseconds / (one * 1e9)))
        }
        _ => format!("{} {unit}", rounded(number)),
    }
}

fn rounded(number: f64) -> String {
    if number == 0.0 {
        return "0".into();
    }
    let digits = 3 - libm::floor(libm::log10(number.abs())) as i32;
    let text = match usize::try_from(digits) {
        Ok(digits) => format!("{number:.digits$}"),
        Err(_) => format!("{number:.0}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The numbers of a figure, with their units, and whether it is a list.
pub(super) type Numbers = (Vec<(f64, String)>, bool);

pub(super) fn numbers(words: &str) -> Option<Numbers> {
    let parts: Option<Vec<(f64, String)>> = words.split(',').map(split).collect();
    Some((parts?, words.contains(',')))
}

/// Words of a list as a file has them.
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
