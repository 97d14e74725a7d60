//! Formats quantities for readers: three significant digits and a suitable unit.

/// Returns the decimals for this number of significant digits, at most `most`. A number that rounds up to one more
/// digit before the point has one decimal less.
fn places(value: f64, significant: usize, most: usize) -> usize {
    let last = significant.saturating_sub(1);
    // `9.97e1`: the exponent after rounding.
    let exponent = match value == 0.0 || !value.is_finite() {
        true => 0,
        false => format!("{value:.last$e}")
            .split_once('e')
            .and_then(|(_, exponent)| exponent.parse().ok())
            .unwrap_or(0),
    };
    let places = i64::try_from(last).unwrap_or(0) - exponent;
    usize::try_from(places).unwrap_or(0).min(most)
}

/// Formats `value` with `significant` digits, including trailing zeros, but with at most `most` decimals; without a
/// decimal point if there are none.
pub fn fixed(value: f64, significant: usize, most: usize) -> String {
    format!("{value:.*}", places(value, significant, most))
}

/// Formats `value` with `digits` significant digits, without trailing zeros and without an exponent.
pub fn significant(value: f64, digits: usize) -> String {
    // More decimals than an `f64` can have.
    trimmed(&fixed(value, digits, 340)).to_owned()
}

/// Rounds to `digits` significant digits.
pub fn rounded(value: f64, digits: usize) -> f64 {
    let last = digits.saturating_sub(1);
    format!("{value:.last$e}").parse().unwrap_or(value)
}

/// Removes trailing zeros of a decimal number.
pub fn trimmed(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

/// Groups the digits before the point by three.
pub fn grouped(text: &str, separator: char) -> String {
    let whole = text.find('.').unwrap_or(text.len());
    let mut grouped = String::new();
    for (index, character) in text.char_indices() {
        if index > 0 && index < whole && (whole - index).is_multiple_of(3) {
            grouped.push(separator);
        }
        grouped.push(character);
    }
    grouped
}

/// Formats three significant digits, with separators at 10,000 and above.
pub fn digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let text = fixed(value, 3, 6);
    let text = trimmed(&text);
    match text.find('.').unwrap_or(text.len()) {
        0..5 => text.to_owned(),
        _ => grouped(text, ','),
    }
}

fn scaled(value: f64, steps: &[(f64, &str)]) -> String {
    // A value half a digit below the step already rounds up to it.
    let step = steps
        .iter()
        .find(|(least, _)| value.abs() >= least * 0.9995);
    let (least, unit) = step.or(steps.last()).copied().unwrap_or((1.0, ""));
    format!("{}{unit}", digits(value / least))
}

/// Formats a latency: `9.8 µs`, `1.2 ms`.
pub fn microseconds(us: f64) -> String {
    scaled(
        us,
        &[(1e6, " s"), (1e3, " ms"), (1.0, " µs"), (1e-3, " ns")],
    )
}

/// Formats a count: `550 k`, `1.2 M`.
pub fn count(value: f64) -> String {
    scaled(value, &[(1e6, " M"), (1e3, " k"), (1.0, "")])
}

/// Formats a duration in seconds: `90 s`, `16 min 40 s`, `3 h 12 min`, `2 d 5 h`.
pub fn duration(seconds: f64) -> String {
    const LENGTHS: [(f64, &str, f64, &str); 3] = [
        (86_400.0, "d", 3_600.0, "h"),
        (3_600.0, "h", 60.0, "min"),
        (60.0, "min", 1.0, "s"),
    ];
    let fits = |(large, ..): &&(f64, &str, f64, &str)| seconds >= 2.0 * large;
    let Some((large, unit, small, smaller)) = LENGTHS.iter().find(fits) else {
        return format!("{} s", digits(seconds));
    };
    let all = libm::round(seconds / small);
    let whole = libm::floor(all / (large / small));
    let left = all - whole * (large / small);
    if left == 0.0 {
        format!("{whole} {unit}")
    } else {
        format!("{whole} {unit} {left} {smaller}")
    }
}

/// Formats a throughput in units of 10^6 bytes per second: `2.4 GB/s`.
pub fn megabytes_a_second(value: f64) -> String {
    scaled(value, &[(1e3, " GB/s"), (1.0, " MB/s")])
}

/// Formats a share in percent with this number of decimals; a dash for `None`.
pub fn percent(share: Option<f64>, decimals: usize) -> String {
    share.map_or_else(
        || String::from("-"),
        |share| format!("{:.decimals$} %", share * 100.0),
    )
}

/// Formats an absolute error: a share of at most 1 in percent, a larger one as the factor between the two values. A
/// prediction that is off by more than 100 % is too high.
pub fn error(share: Option<f64>) -> String {
    match share {
        Some(share) if share > 1.0 => format!("a factor of {:.1}", 1.0 + share),
        share => percent(share, 1),
    }
}

/// Formats bytes in powers of ten, as drives are sold: `375 GB`, `12.3 PB`.
pub fn bytes_decimal(value: f64) -> String {
    scaled(
        value,
        &[
            (1e15, " PB"),
            (1e12, " TB"),
            (1e9, " GB"),
            (1e6, " MB"),
            (1.0, " B"),
        ],
    )
}

/// Formats bytes in powers of two, as blocks are named: `4 KiB`.
pub fn bytes_binary(value: f64) -> String {
    scaled(
        value,
        &[(1_048_576.0, " MiB"), (1024.0, " KiB"), (1.0, " B")],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_were_asked_for() {
        let written = |value, digits| significant(value, digits);
        assert_eq!(written(123_456.0, 4), "123456");
        assert_eq!(written(0.012_346, 4), "0.01235");
        assert_eq!(written(999.96, 4), "1000");
        assert_eq!(written(-2.5, 4), "-2.5");
        assert_eq!(written(0.0, 4), "0");
        assert_eq!(fixed(99.97, 3, 3), "100");
        assert_eq!(fixed(9.0, 3, 3), "9.00");
        assert_eq!(fixed(0.012_34, 3, 3), "0.012");
        assert_eq!(fixed(0.0, 3, 3), "0.00");
        assert_eq!(rounded(1_234_567.0, 6), 1_234_570.0);
        assert_eq!(rounded(0.0, 6), 0.0);
        assert_eq!(grouped("1234567.891", ','), "1,234,567.891");
    }

    #[test]
    fn quantities_read_well() {
        assert_eq!(microseconds(9.84), "9.84 µs");
        assert_eq!(microseconds(999.9), "1 ms");
        assert_eq!(microseconds(0.25), "250 ns");
        assert_eq!(count(549_600.0), "550 k");
        assert_eq!(count(12.0), "12");
        assert_eq!(megabytes_a_second(2_412.0), "2.41 GB/s");
        assert_eq!(bytes_decimal(375_083_606_016.0), "375 GB");
        assert_eq!(bytes_binary(131_072.0), "128 KiB");
        assert_eq!(percent(Some(0.4567), 0), "46 %");
        assert_eq!(percent(Some(0.4567), 1), "45.7 %");
        assert_eq!(percent(None, 1), "-");
        assert_eq!(digits(123_456.0), "123,456");
        assert_eq!(duration(0.25), "0.25 s");
        assert_eq!(duration(90.0), "90 s");
        assert_eq!(duration(1_000.0), "16 min 40 s");
        assert_eq!(duration(7_199.7), "120 min");
        assert_eq!(duration(11_520.0), "3 h 12 min");
        assert_eq!(duration(190_800.0), "2 d 5 h");
    }
}
