//! Quantities as people read them: three significant digits and a unit that fits.

/// Three significant digits, with separators from 10,000 on.
pub fn digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let places = (2 - libm::floor(libm::log10(value.abs()) + 1e-12) as i32).clamp(0, 6) as usize;
    let text = format!("{value:.places$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    };
    let whole = text.split('.').next().map_or(0, str::len);
    if whole < 5 {
        return text;
    }
    let mut grouped = String::new();
    for (index, character) in text.chars().enumerate() {
        if index > 0 && index < whole && (whole - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(character);
    }
    grouped
}

fn scaled(value: f64, steps: &[(f64, &str)]) -> String {
    // Half a digit below the step already rounds up to it.
    let step = steps
        .iter()
        .find(|(least, _)| value.abs() >= least * 0.9995);
    let (least, unit) = step.or(steps.last()).copied().unwrap_or((1.0, ""));
    format!("{}{unit}", digits(value / least))
}

/// A latency: `9.8 µs`, `1.2 ms`.
pub fn microseconds(us: f64) -> String {
    scaled(
        us,
        &[(1e6, " s"), (1e3, " ms"), (1.0, " µs"), (1e-3, " ns")],
    )
}

/// A count: `550 k`, `1.2 M`.
pub fn count(value: f64) -> String {
    scaled(value, &[(1e6, " M"), (1e3, " k"), (1.0, "")])
}

/// A length of time in seconds: `90 s`, `16 min 40 s`, `3 h 12 min`, `2 d 5 h`.
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

/// Throughput given in 10^6 bytes a second: `2.4 GB/s`.
pub fn megabytes_a_second(value: f64) -> String {
    scaled(value, &[(1e3, " GB/s"), (1.0, " MB/s")])
}

/// Bytes in powers of ten, as drives are sold: `375 GB`, `12.3 PB`.
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

/// Bytes in powers of two, as blocks are named: `4 KiB`.
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
    fn quantities_read_well() {
        assert_eq!(microseconds(9.84), "9.84 µs");
        assert_eq!(microseconds(999.9), "1 ms");
        assert_eq!(microseconds(0.25), "250 ns");
        assert_eq!(count(549_600.0), "550 k");
        assert_eq!(count(12.0), "12");
        assert_eq!(megabytes_a_second(2_412.0), "2.41 GB/s");
        assert_eq!(bytes_decimal(375_083_606_016.0), "375 GB");
        assert_eq!(bytes_binary(131_072.0), "128 KiB");
        assert_eq!(digits(123_456.0), "123,456");
        assert_eq!(duration(0.25), "0.25 s");
        assert_eq!(duration(90.0), "90 s");
        assert_eq!(duration(1_000.0), "16 min 40 s");
        assert_eq!(duration(7_199.7), "120 min");
        assert_eq!(duration(11_520.0), "3 h 12 min");
        assert_eq!(duration(190_800.0), "2 d 5 h");
    }
}
