//! Sizes as arguments: fio's suffixes, which are binary, and the catalogue's decimal and binary units.

/// Text in the help of an option that takes a size.
pub(crate) const UNITS: &str =
    "8G and 8GiB are 8 x 2^30 bytes, as in fio; 8GB is 8 x 10^9, as in the catalogue";

/// Parses a size such as `4k`, `8G`, `8GiB` or `8GB` in bytes; a number without a unit is bytes. Case does not matter,
/// as in fio.
///
/// # Errors
/// A description of the allowed form.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let text = text.trim().to_ascii_lowercase();
    let unit_at = text.find(|c: char| !c.is_ascii_digit());
    let (digits, unit) = text.split_at(unit_at.unwrap_or(text.len()));
    let number: u64 = digits
        .parse()
        .map_err(|_| String::from("not a whole number with a unit, such as 8G"))?;
    let power = |prefix: &str| ["", "k", "m", "g", "t"].iter().position(|it| *it == prefix);
    let unit = unit.trim_start();
    let (prefix, base) = match unit.strip_suffix('b') {
        // fio's suffixes K, M, G and T only.
        None => (unit, 1024u64),
        Some(rest) => rest
            .strip_suffix('i')
            .map_or((rest, 1000), |prefix| (prefix, 1024)),
    };
    let factor = power(prefix).and_then(|power| base.checked_pow(power as u32));
    let factor = factor.ok_or_else(|| format!("the units are K, M, G, T and B: {UNITS}"))?;
    number
        .checked_mul(factor)
        .ok_or_else(|| String::from("more than 2^64 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_fios_and_units_are_the_catalogues() {
        for (text, bytes) in [
            ("512", 512),
            ("512B", 512),
            ("4k", 4096),
            ("4KiB", 4096),
            ("4kB", 4000),
            ("8G", 8 << 30),
            ("8g", 8 << 30),
            ("8 GiB", 8 << 30),
            ("8GB", 8_000_000_000),
            ("2T", 2 << 40),
            ("2 TB", 2_000_000_000_000),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for (text, said) in [
            ("", "not a whole number"),
            ("G", "not a whole number"),
            ("1.5G", "the units are"),
            ("8Gi", "the units are"),
            ("8x", "the units are"),
            ("-1G", "not a whole number"),
            ("99999999999T", "more than 2^64"),
        ] {
            let error = size(text).expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
