//! The values of fio's options: sizes, times, percentages, lists by direction, ranges.
//!
//! Values are read as in fio 3.33 (its HOWTO, "Parameter types", and its observed behaviour for undocumented cases),
//! with one difference. fio truncates some inputs without a message (`1.5k` becomes one byte, `60sec` becomes 60
//! microseconds). Such inputs are errors here.

use model::Span;

use super::expression;

/// Why a value is invalid for its option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OptionError {
    /// The problem, without the option's name.
    pub what: String,
    /// The allowed values.
    pub help: Option<String>,
}

impl OptionError {
    /// Creates a problem with the allowed values.
    pub(super) fn new(what: impl Into<String>, help: impl Into<String>) -> OptionError {
        OptionError {
            what: what.into(),
            help: Some(help.into()),
        }
    }
}

/// Value of a size or offset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SizeValue {
    /// A number with its suffix applied.
    Count(u64),
    /// `n%`.
    Percent(u64),
    /// `nz`: a number of zones.
    Zones(u64),
}

/// The value of one option as written, with the meaning of `k`.
#[derive(Clone, Copy, Debug)]
pub(super) struct OptionValue<'a> {
    /// Text after `=`; `None` if there is no `=`.
    pub text: Option<&'a str>,
    /// Meaning of `k`: 1024 or 1000.
    pub kb_base: u64,
}

/// Examples in help texts.
const SIZE_HELP: &str = "a whole number, with an optional suffix, such as 4096, 4k or 10g";
/// Maximum time. Sums of several such times still fit, and no simulation runs longer.
const LONGEST: Span = Span::from_ms(100 * 86_400 * 1_000);

impl<'a> OptionValue<'a> {
    /// Returns the text; an absent value is an error.
    pub(super) fn text(&self) -> Result<&'a str, OptionError> {
        match self.text {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err(OptionError {
                what: "needs a value".into(),
                help: None,
            }),
        }
    }

    /// Parses `0` or `1`; any other whole number is out of range.
    pub(super) fn boolean(&self) -> Result<bool, OptionError> {
        match self.text()? {
            "0" => Ok(false),
            "1" => Ok(true),
            other => Err(OptionError::new(
                format!("`{other}` is neither on nor off"),
                "0 or 1",
            )),
        }
    }

    /// As [`OptionValue::boolean`], but true without a value.
    pub(super) fn set(&self) -> Result<bool, OptionError> {
        match self.text {
            None => Ok(true),
            Some(_) => self.boolean(),
        }
    }

    /// Parses a count or size with an optional suffix, `min..=max`.
    pub(super) fn number(&self, min: u64, max: u64) -> Result<u64, OptionError> {
        let text = self.text()?;
        let value = self.count(text)?;
        check_range(text, value, min, max)
    }

    /// As [`OptionValue::number`], in 32 bits.
    pub(super) fn number32(&self, min: u32, max: u32) -> Result<u32, OptionError> {
        let value = self.number(min.into(), max.into())?;
        Ok(value.try_into().unwrap_or(u32::MAX))
    }

    /// Parses a size or a percentage.
    pub(super) fn quantity(&self) -> Result<SizeValue, OptionError> {
        self.quantity_of(self.text()?)
    }

    /// Parses up to three numbers for reads, writes and trims: `a`, `a,b`, `a,b,c`. `,b` leaves reads unchanged, and
    /// `a,` leaves the others unchanged. The last given number applies to all later directions.
    pub(super) fn by_direction(&self, min: u64, max: u64) -> Result<[Option<u64>; 3], OptionError> {
        let text = self.text()?;
        let separator = [',', ':', '-']
            .into_iter()
            .find(|&separator| text.contains(separator));
        let parts: Vec<&str> = match separator {
            Some(separator) => text.split(separator).collect(),
            None => vec![text],
        };
        by_direction(&parts, |part| {
            check_range(part, self.count(part)?, min, max)
        })
    }

    /// Parses up to three ranges `min-max`, by direction.
    pub(super) fn ranges(&self) -> Result<[Option<(u64, u64)>; 3], OptionError> {
        let parts: Vec<&str> = self.text()?.split(',').collect();
        by_direction(&parts, |part| {
            let (low, high) = part
                .split_once('-')
                .or_else(|| part.split_once(':'))
                .ok_or_else(|| {
                    OptionError::new(
                        format!("`{part}` is not a range"),
                        "min-max, such as 4k-64k",
                    )
                })?;
            let (low, high) = (self.count(low)?, self.count(high)?);
            let (low, high) = (low.min(high), low.max(high));
            Ok((check_range(part, low, 1, u64::MAX)?, high))
        })
    }

    /// Parses a time; a number without a unit is in seconds.
    pub(super) fn seconds(&self) -> Result<Span, OptionError> {
        self.time(1_000_000, "seconds")
    }

    /// Parses a time; a number without a unit is in microseconds.
    pub(super) fn microseconds(&self) -> Result<Span, OptionError> {
        self.time(1, "microseconds")
    }

    fn time(&self, bare_us: u64, counts: &str) -> Result<Span, OptionError> {
        let text = self.text()?;
        match time(text, bare_us) {
            Some(span) if span <= LONGEST => Ok(span),
            Some(_) => Err(OptionError::new(
                format!("{text} is too long"),
                "at most 100d",
            )),
            None => Err(OptionError::new(
                format!("`{text}` is not a time"),
                format!(
                    "a whole number and us, ms, s, m (minutes), h or d, such as 500ms or 5m; a bare one counts {counts}"
                ),
            )),
        }
    }

    /// Parses at most `most` numbers separated by `:`, each in `min..=max`.
    pub(super) fn floats(&self, min: f64, max: f64, most: usize) -> Result<Vec<f64>, OptionError> {
        let text = self.text()?;
        let parts: Vec<&str> = text.split(':').filter(|part| !part.is_empty()).collect();
        if parts.is_empty() || parts.len() > most {
            return Err(OptionError::new(
                format!("{} numbers", parts.len()),
                format!("1 to {most} numbers with colons between them"),
            ));
        }
        parts
            .into_iter()
            .map(|part| float(part, min, max))
            .collect()
    }

    /// Parses one of `words`, alone or before a colon or comma; returns its value and the text after the colon.
    pub(super) fn word<T: Copy>(
        &self,
        words: &[(&str, T)],
    ) -> Result<(T, Option<&'a str>), OptionError> {
        let text = self.text()?;
        let end = text.find([',', ':']).unwrap_or(text.len());
        let written = &text[..end];
        let rest = text[end..].strip_prefix(':').map(str::trim);
        match words.iter().find(|(word, _)| *word == written) {
            Some(&(_, value)) => Ok((value, rest)),
            None => Err(one_of(written, words.iter().map(|&(word, _)| word))),
        }
    }

    /// Parses one number with a suffix.
    pub(super) fn count(&self, text: &str) -> Result<u64, OptionError> {
        match self.quantity_of(text)? {
            SizeValue::Count(count) => Ok(count),
            SizeValue::Zones(_) => Err(OptionError::new(
                format!("`{text}` counts zones"),
                SIZE_HELP,
            )),
            SizeValue::Percent(_) => Err(OptionError::new(
                format!("`{text}` is a percentage"),
                "a number; percent has no meaning here",
            )),
        }
    }

    fn quantity_of(&self, written: &str) -> Result<SizeValue, OptionError> {
        let text = written.trim();
        let wrong = || OptionError::new(format!("`{text}` is not a number"), SIZE_HELP);
        if text.starts_with('(') {
            let value =
                expression::evaluate(text, &|suffix| self.multiplier(suffix).map(|by| by as f64));
            return value
                .map(|value| SizeValue::Count(value as u64))
                .ok_or_else(wrong);
        }
        let (digits, suffix) = split_number(text).ok_or_else(wrong)?;
        if percent(suffix) == Some("") {
            return Ok(SizeValue::Percent(digits));
        }
        if suffix.eq_ignore_ascii_case("z") {
            return Ok(SizeValue::Zones(digits));
        }
        let by = self.multiplier(suffix).ok_or_else(|| {
            OptionError::new(
                format!("`{suffix}` in `{text}` is not a suffix of a size"),
                match suffix.contains('/') {
                    true => {
                        "one size, or sizes of reads, writes and trims with commas, such as 4k,8k"
                    }
                    false => "a whole number and k, m, g, t or p, alone or with b (see kb_base)",
                },
            )
        })?;
        digits
            .checked_mul(by)
            .map(SizeValue::Count)
            .ok_or_else(|| OptionError::new(format!("`{text}` is too large"), SIZE_HELP))
    }

    /// Returns the factor of a suffix. With `kb_base=1024` fio's `kib` is 1000, according to its documentation.
    fn multiplier(&self, suffix: &str) -> Option<u64> {
        let suffix = suffix.to_ascii_lowercase();
        let (letter, unit) = match suffix.chars().next() {
            None => return Some(1),
            Some(letter) => (letter, &suffix[letter.len_utf8()..]),
        };
        let power = match letter {
            'b' if unit.is_empty() => return Some(1),
            'k' => 1,
            'm' => 2,
            'g' => 3,
            't' => 4,
            'p' => 5,
            _ => return None,
        };
        let base: u64 = match unit {
            "" | "b" | "i" => self.kb_base,
            "ib" if self.kb_base == 1024 => 1000,
            "ib" => 1024,
            _ => return None,
        };
        base.checked_pow(power)
    }
}

/// Returns the text before the `%` of a percentage. `%%` is also accepted, as in fio: templates that pass through a
/// formatter contain it.
pub(super) fn percent(text: &str) -> Option<&str> {
    let bare = text.trim_end_matches('%');
    (bare.len() < text.len()).then_some(bare)
}

/// Returns the problem that `written` is not one of `words`.
pub(super) fn one_of<'a>(written: &str, words: impl IntoIterator<Item = &'a str>) -> OptionError {
    let words: Vec<&str> = words.into_iter().collect();
    let near = text::problem::nearest(written, words.iter().copied());
    let all = words.join(", ");
    let help = match near {
        Some(near) => format!("did you mean `{near}`? There are: {all}"),
        None => format!("one of {all}"),
    };
    OptionError::new(format!("there is no `{written}`"), help)
}

/// Parses a floating-point number in `min..=max`.
pub(super) fn float(text: &str, min: f64, max: f64) -> Result<f64, OptionError> {
    let text = text.trim();
    let value: f64 = text.parse().map_err(|_| {
        OptionError::new(format!("`{text}` is not a number"), float_range(min, max))
    })?;
    if value >= min && value <= max {
        Ok(value)
    } else {
        Err(OptionError::new(
            format!("{text} is out of range"),
            float_range(min, max),
        ))
    }
}

/// Returns a range as text. The least and the greatest floating-point numbers have hundreds of digits.
fn float_range(min: f64, max: f64) -> String {
    let from = match min {
        f64::MIN_POSITIVE => "a number above 0".to_owned(),
        min => format!("a number from {min}"),
    };
    match (min, max) {
        (f64::MIN_POSITIVE, f64::MAX) => format!("{from}, such as 1.2"),
        (min, f64::MAX) => format!("a number of at least {min}, such as 1.2"),
        (_, max) => format!("{from} to {max}"),
    }
}

fn check_range(text: &str, value: u64, min: u64, max: u64) -> Result<u64, OptionError> {
    if value < min {
        Err(OptionError::new(
            format!("{text} is too small"),
            format!("at least {min}"),
        ))
    } else if value > max {
        Err(OptionError::new(
            format!("{text} is too large"),
            format!("at most {max}"),
        ))
    } else {
        Ok(value)
    }
}

fn by_direction<T: Copy>(
    parts: &[&str],
    parse: impl Fn(&str) -> Result<T, OptionError>,
) -> Result<[Option<T>; 3], OptionError> {
    if parts.len() > 3 {
        return Err(OptionError::new(
            format!("{} values", parts.len()),
            "at most three: reads,writes,trims",
        ));
    }
    let mut values = [None; 3];
    for (value, part) in values.iter_mut().zip(parts) {
        if !part.trim().is_empty() {
            *value = Some(parse(part)?);
        }
    }
    if values.iter().all(Option::is_none) {
        return Err(OptionError::new(
            "has no value in its list",
            "reads,writes,trims, such as 4k,8k",
        ));
    }
    // If a list ends without a comma, its last value applies to all later directions.
    if let Some(last) = parts.len().checked_sub(1).and_then(|last| values[last]) {
        for value in &mut values[parts.len()..] {
            *value = Some(last);
        }
    }
    Ok(values)
}

/// Parses a whole number (decimal or 0x...); returns it with the rest of the text. A leading `+` is allowed, as in
/// fio.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let text = text.strip_prefix('+').unwrap_or(text);
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let end = hex
            .find(|letter: char| !letter.is_ascii_hexdigit())
            .unwrap_or(hex.len());
        return Some((u64::from_str_radix(&hex[..end], 16).ok()?, &hex[end..]));
    }
    let end = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Parses a time; a number without a unit is in units of `bare_us` microseconds.
fn time(text: &str, bare_us: u64) -> Option<Span> {
    let text = text.trim();
    let unit_us = |unit: &str| {
        Some(match unit.to_ascii_lowercase().as_str() {
            "us" | "usec" => 1,
            "ms" | "msec" => 1_000,
            "s" => 1_000_000,
            "m" => 60_000_000,
            "h" => 3_600_000_000,
            "d" => 86_400_000_000,
            _ => return None,
        })
    };
    let us = if text.starts_with('(') {
        let bare = if text.contains(|letter: char| letter.is_ascii_alphabetic()) {
            1
        } else {
            bare_us
        };
        let value = expression::evaluate(text, &|unit| unit_us(unit).map(|us: u64| us as f64))?;
        (value as u64).checked_mul(bare)?
    } else {
        let (number, unit) = split_number(text)?;
        let by = if unit.is_empty() {
            bare_us
        } else {
            unit_us(unit)?
        };
        number.checked_mul(by)?
    };
    us.checked_mul(1_000).map(Span::from_ns)
}
