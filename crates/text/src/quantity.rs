//! Physical quantities as in a catalogue file: a number and its unit in one string, such as `6.9 us`.
//!
//! Decimal units are decimal (`1 GB` is 10^9 bytes) and binary ones binary (`1 GiB` is 2^30).

use model::Span;
use toml_edit::Value;

/// A quantity of a figure.
pub trait Quantity: Copy + PartialOrd {
    /// Name in messages: "a time".
    const WHAT: &'static str;
    /// Allowed form, for messages.
    const HELP: &'static str;

    /// Parses a TOML value; `None` if it is not this quantity.
    fn read(value: &Value) -> Option<Self>;

    /// Formats the quantity as in a catalogue file.
    fn show(self) -> String;
}

/// Parses a quantity from a text, as on a command line: `12W`, `10 min`.
///
/// # Errors
/// A description of the allowed form.
pub fn quantity<Q: Quantity>(text: &str) -> Result<Q, String> {
    Q::read(&Value::from(text.trim())).ok_or_else(|| format!("not {}: {}", Q::WHAT, Q::HELP))
}

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Bytes(pub u64);

/// A rate in bytes per second.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Rate(pub f64);

/// A share of a whole, 0 to 1, written in percent.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Share(pub f64);

/// A power in watts.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Watts(pub f64);

/// An energy in joules.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Joules(pub f64);

/// A price in US dollars.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Dollars(pub f64);

/// A temperature in degrees Celsius.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Celsius(pub f64);

/// A thermal resistance in kelvin per watt.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct KelvinPerWatt(pub f64);

/// Speed of air over a drive, in linear feet per minute as in data sheets; 1 m/s is 197 LFM.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Airflow(pub f64);

impl Rate {
    /// Returns the time per byte in whole picoseconds, the model's unit for transfers.
    pub fn picoseconds_per_byte(self) -> u64 {
        libm::round(1e12 / self.0) as u64
    }
}

type Units = [(&'static str, f64)];

const TIMES: &Units = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("h", 3600e9),
    ("days", 86_400e9),
    // A month is a twelfth of a year, as in retention specifications.
    ("months", 365.0 / 12.0 * 86_400e9),
    ("years", 365.0 * 86_400e9),
];
const BYTES: &Units = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("PB", 1e15),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];
const RATES: &Units = &[
    ("B/s", 1.0),
    ("kB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
    ("KiB/s", 1024.0),
    ("MiB/s", 1_048_576.0),
    ("GiB/s", 1_073_741_824.0),
];
const SHARES: &Units = &[("%", 0.01)];
const POWERS: &Units = &[("mW", 1e-3), ("W", 1.0)];
const ENERGIES: &Units = &[
    ("pJ", 1e-12),
    ("nJ", 1e-9),
    ("uJ", 1e-6),
    ("mJ", 1e-3),
    ("J", 1.0),
];
const TEMPERATURES: &Units = &[("C", 1.0)];
const RESISTANCES: &Units = &[("K/W", 1.0)];
const AIRFLOWS: &Units = &[("LFM", 1.0)];
const PRICES: &Units = &[("USD", 1.0)];

/// Splits a text such as `6.9 us` or `7` into number and unit; the unit may be empty.
pub fn split(words: &str) -> Option<(f64, &str)> {
    let words = words.trim();
    let unit = |c: char| c.is_ascii_alphabetic() || c == '%';
    let (number, unit) = words.split_at(words.find(unit).unwrap_or(words.len()));
    Some((number.trim_end().parse().ok()?, unit))
}

/// Returns the number and the factor of its unit.
fn parts(value: &Value, units: &Units) -> Option<(f64, f64)> {
    let (number, unit) = split(value.as_str()?)?;
    let &(_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.is_finite().then_some((number, factor))
}

fn scaled(value: &Value, units: &Units) -> Option<f64> {
    parts(value, units).map(|(number, factor)| number * factor)
}

/// Returns the value in whole base units; `None` if it is not a whole number of them.
fn whole(value: &Value, units: &Units) -> Option<u64> {
    let exact = scaled(value, units)?;
    let rounded = libm::round(exact);
    let whole = (exact - rounded).abs() <= 1e-6 + exact.abs() * 1e-12;
    (whole && (0.0..18e18).contains(&rounded)).then_some(rounded as u64)
}

/// Formats `amount` in the largest unit with at least 1 before the point.
fn in_units(amount: f64, units: &Units) -> String {
    let fits = units
        .iter()
        .filter(|(_, factor)| amount >= *factor * (1.0 - 1e-9));
    let &(name, factor) = fits.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(&units[0]);
    // At most four decimals, without trailing zeros.
    let digits = format!("{:.4}", amount / factor);
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits} {name}")
}

/// Returns the units of the same kind as this one.
fn units_with(unit: &str) -> Option<&'static Units> {
    const ALL: [&Units; 10] = [
        TIMES,
        BYTES,
        RATES,
        SHARES,
        POWERS,
        ENERGIES,
        TEMPERATURES,
        RESISTANCES,
        AIRFLOWS,
        PRICES,
    ];
    ALL.into_iter()
        .find(|units| units.iter().any(|(name, _)| *name == unit))
}

/// Checks whether the unit exists; the empty unit is that of a count.
pub fn is_unit(unit: &str) -> bool {
    unit.is_empty() || units_with(unit).is_some()
}

/// Converts a figure (`6.9 us`) to another unit of its kind (`ns`). Without a unit, the figure must be a bare number.
/// `None` if the units do not match.
pub fn in_unit(written: &str, unit: Option<&str>) -> Option<f64> {
    let Some(unit) = unit else {
        return written
            .trim()
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite());
    };
    let units = units_with(unit)?;
    let &(_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let (number, of) = parts(&Value::from(written), units)?;
    // Exact if nothing is converted.
    Some(if of == factor {
        number
    } else {
        number * of / factor
    })
}

/// Formats bytes in decimal units, rounded to four digits, as makers of drives print them.
pub fn decimal(bytes: u64) -> String {
    let step = 10u64.pow(bytes.checked_ilog10().unwrap_or(0).saturating_sub(3));
    in_units(((bytes + step / 2) / step * step) as f64, &BYTES[..6])
}

impl Quantity for Span {
    const WHAT: &'static str = "a time";
    const HELP: &'static str = "write whole nanoseconds or more as a number and its unit, such as `6.9 us`; the units \
                                are ns, us, ms, s, min, h, days, years";

    fn read(value: &Value) -> Option<Span> {
        whole(value, TIMES).map(Span::from_ns)
    }

    fn show(self) -> String {
        in_units(self.ns() as f64, TIMES)
    }
}

impl Quantity for Bytes {
    const WHAT: &'static str = "a size";
    const HELP: &'static str = "write whole bytes as a number and its unit, such as `375 GB`; the units are B, kB, MB, \
                                GB, TB, PB (decimal) and KiB, MiB, GiB, TiB (binary)";

    fn read(value: &Value) -> Option<Bytes> {
        whole(value, BYTES).map(Bytes)
    }

    fn show(self) -> String {
        let binary = self.0 > 0 && self.0.is_multiple_of(1024);
        let units = if binary { &BYTES[6..] } else { &BYTES[..6] };
        in_units(self.0 as f64, units)
    }
}

impl Quantity for Rate {
    const WHAT: &'static str = "a rate of bytes";
    const HELP: &'static str = "write a number and its unit, such as `2.4 GB/s`; the units are B/s, kB/s, MB/s, GB/s \
                                (decimal) and KiB/s, MiB/s, GiB/s (binary)";

    fn read(value: &Value) -> Option<Rate> {
        scaled(value, RATES).map(Rate)
    }

    fn show(self) -> String {
        in_units(self.0, &RATES[..4])
    }
}

impl Quantity for Share {
    const WHAT: &'static str = "a share";
    const HELP: &'static str = "write a number and a percent sign, such as `16.3 %`";

    fn read(value: &Value) -> Option<Share> {
        scaled(value, SHARES).map(Share)
    }

    fn show(self) -> String {
        in_units(self.0, SHARES)
    }
}

impl Quantity for Watts {
    const WHAT: &'static str = "a power";
    const HELP: &'static str =
        "write a number and its unit, such as `14 W`; the units are mW and W";

    fn read(value: &Value) -> Option<Watts> {
        scaled(value, POWERS).map(Watts)
    }

    fn show(self) -> String {
        in_units(self.0, POWERS)
    }
}

impl Quantity for Joules {
    const WHAT: &'static str = "an energy";
    const HELP: &'static str =
        "write a number and its unit, such as `2.1 uJ`; the units are pJ, nJ, uJ, mJ, J";

    fn read(value: &Value) -> Option<Joules> {
        scaled(value, ENERGIES).map(Joules)
    }

    fn show(self) -> String {
        in_units(self.0, ENERGIES)
    }
}

impl Quantity for Celsius {
    const WHAT: &'static str = "a temperature";
    const HELP: &'static str = "write degrees Celsius, such as `70 C`";

    fn read(value: &Value) -> Option<Celsius> {
        scaled(value, TEMPERATURES).map(Celsius)
    }

    fn show(self) -> String {
        in_units(self.0, TEMPERATURES)
    }
}

impl Quantity for KelvinPerWatt {
    const WHAT: &'static str = "a thermal resistance";
    const HELP: &'static str = "write kelvin per watt, such as `2.5 K/W`";

    fn read(value: &Value) -> Option<KelvinPerWatt> {
        scaled(value, RESISTANCES).map(KelvinPerWatt)
    }

    fn show(self) -> String {
        in_units(self.0, RESISTANCES)
    }
}

impl Quantity for Airflow {
    const WHAT: &'static str = "an airflow";
    const HELP: &'static str = "write linear feet per minute, such as `200 LFM`; 1 m/s is 197 LFM";

    fn read(value: &Value) -> Option<Airflow> {
        scaled(value, AIRFLOWS).map(Airflow)
    }

    fn show(self) -> String {
        in_units(self.0, AIRFLOWS)
    }
}

impl Quantity for Dollars {
    const WHAT: &'static str = "a price";
    const HELP: &'static str = "write US dollars, such as `1520 USD`";

    fn read(value: &Value) -> Option<Dollars> {
        scaled(value, PRICES).map(Dollars)
    }

    fn show(self) -> String {
        in_units(self.0, PRICES)
    }
}

impl Quantity for u64 {
    const WHAT: &'static str = "a count";
    const HELP: &'static str = "write a whole number without quotes, such as 7";

    fn read(value: &Value) -> Option<u64> {
        u64::try_from(value.as_integer()?).ok()
    }

    fn show(self) -> String {
        self.to_string()
    }
}

impl Quantity for f64 {
    const WHAT: &'static str = "a number";
    const HELP: &'static str = "write a number without quotes and without a unit, such as 1.5";

    fn read(value: &Value) -> Option<f64> {
        let number = value
            .as_float()
            .or_else(|| value.as_integer().map(|whole| whole as f64))?;
        number.is_finite().then_some(number)
    }

    fn show(self) -> String {
        self.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!(Span::read(&"6.9 us".into()), Some(Span::from_ns(6_900)));
        assert_eq!(Span::read(&"12ms".into()), Some(Span::from_ms(12)));
        assert_eq!(
            Bytes::read(&"2.4 TB".into()),
            Some(Bytes(2_400_000_000_000))
        );
        assert_eq!(Bytes::read(&"0.5 KiB".into()), Some(Bytes(512)));
        assert_eq!(Rate::read(&"2.4 GB/s".into()), Some(Rate(2.4e9)));
        assert_eq!(u64::read(&7.into()), Some(7));
        assert_eq!(f64::read(&7.into()), Some(7.0));
    }

    #[test]
    fn refuses_what_loses_or_lacks_something() {
        for wrong in [
            "6.9",
            "6.9 um",
            "us",
            "0.3 ns",
            "-1 us",
            "1e3 us",
            "inf us",
            "1 us 2 ns",
        ] {
            assert_eq!(Span::read(&wrong.into()), None, "{wrong}");
        }
        assert_eq!(Bytes::read(&"0.3 B".into()), None);
        assert_eq!(Bytes::read(&"375 gb".into()), None);
        assert_eq!(u64::read(&(-7).into()), None);
        assert_eq!(f64::read(&f64::NAN.into()), None);
    }

    #[test]
    fn shows_what_it_reads() {
        for text in ["6.9 us", "1 ns", "250 ms", "3 h"] {
            assert_eq!(
                Span::read(&text.into()).map(Span::show).as_deref(),
                Some(text)
            );
        }
        assert_eq!(Bytes(4096).show(), "4 KiB");
        assert_eq!(Bytes(375_000_000_000).show(), "375 GB");
        assert_eq!(Share(0.163).show(), "16.3 %");
        assert_eq!(Bytes(0).show(), "0 B");
    }
}
