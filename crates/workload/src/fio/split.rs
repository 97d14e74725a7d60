//! Lists of `value/share` pairs: `bssplit=4k/60:64k/40` and `random_distribution=zoned:60/10:40/90`, by direction.

use crate::job::Distribution;

use super::value::{self, OptionError, OptionValue};

/// Values with their shares; `None` if the share is not given.
type Pairs = Vec<(u64, Option<u64>)>;

/// Block sizes with their shares in percent.
type Shares = Vec<(u64, f64)>;

/// Applies `parse` to the part of each direction. A single part applies to all directions; the second of two applies
/// to writes and trims.
fn by_direction<T: Clone>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, OptionError>,
) -> Result<[Option<T>; 3], OptionError> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > 3 {
        return Err(OptionError::new(
            format!("{} lists", parts.len()),
            "at most three: reads,writes,trims",
        ));
    }
    let mut values = [None, None, None];
    for (direction, value) in values.iter_mut().enumerate() {
        let part = parts[direction.min(parts.len() - 1)];
        if !part.is_empty() {
            *value = Some(parse(part)?);
        }
    }
    if values.iter().all(Option::is_none) {
        return Err(OptionError::new(
            "is an empty list",
            "value/share pairs separated by colons",
        ));
    }
    Ok(values)
}

/// Parses `a/x:b/y:c`.
fn pairs(given: &OptionValue, text: &str, absolute: bool) -> Result<Pairs, OptionError> {
    let mut pairs = Vec::new();
    for part in text.split(':').filter(|part| !part.is_empty()) {
        let (value, share) = match part.split_once('/') {
            Some((value, share)) => (value, Some(share.trim())),
            None => (part, None),
        };
        let share = match share {
            None | Some("") => None,
            Some(share) if absolute => Some(given.count(share)?),
            Some(share) => match value::percent(share).unwrap_or(share).parse::<u64>() {
                // fio cuts larger values.
                Ok(percent) => Some(percent.min(100)),
                Err(_) => {
                    return Err(OptionError::new(
                        format!("`{share}` in `{part}` is not a share"),
                        "a whole percentage, 0 to 100",
                    ));
                }
            },
        };
        pairs.push((given.count(value)?, share));
    }
    if pairs.len() > 256 {
        return Err(OptionError::new(
            format!("{} entries", pairs.len()),
            "at most 256",
        ));
    }
    Ok(pairs)
}

/// Parses block sizes with shares in percent that sum to 100, by direction, smallest share first. The remaining
/// percentage is divided equally, in whole percent, among the entries without a share, and the remainder goes to the
/// last one, as in fio.
pub(super) fn sizes(given: &OptionValue) -> Result<[Option<Shares>; 3], OptionError> {
    by_direction(given.text()?, |part| {
        let pairs = pairs(given, part, false)?;
        if pairs.is_empty() {
            return Err(OptionError::new("is an empty list", "such as 4k/60:64k/40"));
        }
        let sum: u64 = pairs.iter().filter_map(|&(_, share)| share).sum();
        let open = pairs
            .iter()
            .filter(|&&(_, share)| share.is_none_or(|share| share == 0))
            .count() as u64;
        if sum > 100 && open > 1 {
            return Err(OptionError::new(
                format!("the shares add up to {sum} %, and {open} sizes have none"),
                "100 % or less, or a share for each size",
            ));
        }
        let each = 100_u64.saturating_sub(sum).checked_div(open).unwrap_or(0);
        let mut shares: Vec<(u64, u64)> = pairs
            .iter()
            .map(|&(size, share)| (size, share.filter(|&share| share > 0).unwrap_or(each)))
            .collect();
        shares.sort_by_key(|&(_, share)| share);
        // The smallest shares are allocated first: the excess over 100 % is taken from the largest.
        let mut left = 100;
        for (_, share) in &mut shares {
            *share = (*share).min(left);
            left -= *share;
        }
        let rest = left;
        if let Some(last) = shares.last_mut() {
            last.1 += rest;
        }
        shares.retain(|&(_, share)| share > 0);
        Ok(shares
            .into_iter()
            .map(|(size, share)| (size, share as f64))
            .collect())
    })
}

/// Parses zones by direction: shares of accesses sum to 100, and so do sizes in percent.
pub(super) fn zones(
    given: &OptionValue,
    text: &str,
    absolute: bool,
) -> Result<[Option<Distribution>; 3], OptionError> {
    by_direction(text, |part| {
        let pairs = pairs(given, part, absolute)?;
        let accesses: u64 = pairs
            .iter()
            .map(|&(access, _)| access)
            .fold(0, u64::saturating_add);
        if accesses != 100 {
            return Err(OptionError::new(
                format!("the shares of accesses add up to {accesses} %"),
                "100 % (access/size pairs, such as zoned:60/10:40/90)",
            ));
        }
        if absolute {
            let zones = pairs
                .iter()
                .map(|&(access, size)| (access as f64, size.unwrap_or(0)));
            return Ok(Distribution::ZonedAbsolute(zones.collect()));
        }
        let sum: u64 = pairs.iter().filter_map(|&(_, size)| size).sum();
        if sum > 100 {
            return Err(OptionError::new(
                format!("the zones' sizes add up to {sum} %"),
                "100 % or less",
            ));
        }
        let open = pairs.iter().filter(|&&(_, size)| size.is_none()).count();
        let each = (100 - sum) as f64 / open.max(1) as f64;
        let mut zones: Vec<(f64, f64)> = pairs
            .iter()
            .map(|&(access, size)| (access as f64, size.map_or(each, |size| size as f64)))
            .collect();
        let covered: f64 = zones.iter().map(|&(_, size)| size).sum();
        if covered < 100.0 - 1e-9 {
            zones.push((0.0, 100.0 - covered));
        }
        Ok(Distribution::Zoned(zones))
    })
}
