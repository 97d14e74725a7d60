//! Figures as fio prints them: a limited number of digits with a unit prefix.

/// Unit after the prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    None,
    Byte,
    BytePerSecond,
    BitPerSecond,
}

impl Unit {
    fn text(self) -> &'static str {
        match self {
            Unit::None => "",
            Unit::Byte => "B",
            Unit::BytePerSecond => "B/s",
            Unit::BitPerSecond => "bit/s",
        }
    }
}

/// Returns `number` (in bytes, even if bits are printed) with at most `digits` digits and a decimal point. The number
/// is divided by 1024 (`binary`) or 1000 until its whole part fits, with as many decimals as there is space for.
pub(super) fn short(number: u64, digits: usize, binary: bool, unit: Unit) -> String {
    let prefixes = if binary {
        ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
    } else {
        ["", "k", "M", "G", "T", "P", "E"]
    };
    let thousand: u64 = if binary { 1024 } else { 1000 };
    let mut whole = match unit {
        Unit::BitPerSecond => number.saturating_mul(8),
        _ => number,
    };
    let mut power = 0;
    let mut remainder = None;
    while whole.to_string().len() > digits && power + 1 < prefixes.len() {
        remainder = Some(whole % thousand);
        whole /= thousand;
        power += 1;
    }
    let room = digits.saturating_sub(whole.to_string().len());
    let figure = match remainder {
        None => whole.to_string(),
        Some(remainder) if room <= 1 => (whole + u64::from(remainder >= thousand / 2)).to_string(),
        Some(remainder) => {
            let places = room - 1;
            let fraction = format!("{:.places$}", remainder as f64 / thousand as f64);
            let whole = whole + u64::from(fraction.starts_with('1'));
            format!("{whole}.{}", &fraction[2..])
        }
    };
    format!("{figure}{}{}", prefixes[power], unit.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_fios() {
        for (number, digits, binary, unit, text) in [
            (4096, 4, true, Unit::Byte, "4096B"),
            (16_384, 4, true, Unit::Byte, "16.0KiB"),
            (131_072, 4, true, Unit::Byte, "128KiB"),
            (8_388_608_000, 4, true, Unit::BytePerSecond, "8000MiB/s"),
            (8_388_608_000, 4, false, Unit::BytePerSecond, "8389MB/s"),
            (11_632_640, 4, true, Unit::Byte, "11.1MiB"),
            (11_632_640_000, 4, true, Unit::BytePerSecond, "10.8GiB/s"),
            (5_144_576, 4, true, Unit::Byte, "5024KiB"),
            (5_144_576, 4, false, Unit::Byte, "5145kB"),
            (2_048_000, 4, false, Unit::None, "2048k"),
            (256_000, 4, false, Unit::None, "256k"),
            (20_383, 4, false, Unit::None, "20.4k"),
            (999_999, 4, false, Unit::None, "1000k"),
            (7_611, 6, false, Unit::None, "7611"),
            (82_700_000, 4, false, Unit::BitPerSecond, "662Mbit/s"),
        ] {
            assert_eq!(short(number, digits, binary, unit), text, "{number}");
        }
    }
}
