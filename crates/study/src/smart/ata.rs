//! Host writes and wear from the SMART attributes of ATA drives.
//!
//! A raw value has the unit that its maker chose. smartctl's drive database names attributes after their unit
//! (`Host_Writes_32MiB`, `Lifetime_Writes_GiB`), so a name with a unit is read by it. `Total_LBAs_Written` is also the name
//! that smartctl shows for attribute 241 of every drive that it does not know: this name is used only for models in its
//! database. Normalized wear indicators count down from 100 and are read by their names, for the same models.
//!
//! `Media_Wearout_Indicator` counts down as attribute 233 (Intel). SATA drives of WD and SanDisk have attribute 230 of
//! this name: it counts up, and its raw value holds several numbers without a published layout. It is not read, so the
//! wear of such a drive is unknown unless device statistics report it.

use super::{CounterValue, Health};

/// A row of the attribute table.
#[derive(Clone, Debug, Default)]
pub(super) struct Attribute {
    /// Attribute number, 1 to 255.
    pub(super) id: u8,
    /// Attribute name, such as `Total_LBAs_Written`.
    pub(super) name: String,
    /// Normalized value.
    pub(super) value: Option<f64>,
    /// Raw value as the row prints it, first number only.
    pub(super) raw: Option<f64>,
}

/// Properties of a drive that determine how attributes are read.
pub(super) struct AtaDrive {
    /// Whether smartctl's database contains the model.
    pub(super) in_database: bool,
    /// Bytes of a logical block.
    pub(super) block: f64,
}

/// Attributes of host writes, the most common first.
const WRITES: [u8; 5] = [241, 246, 225, 233, 199];
/// Parts of names that are not host writes.
const NOT_HOST: [&str; 13] = [
    "nand", "flash", "flsh", "slc", "tlc", "media", "error", "err", "erase", "raw", "amp",
    "protect", "head",
];
/// Names of indicators whose normalized value is the remaining life in percent, the most reliable first.
const LIFE_LEFT: [&str; 18] = [
    "percent_lifetime_remain",
    "percent_lifetime_used",
    "perc_rated_life_used",
    "perc_rated_life_remain",
    "ssd_life_left",
    "remaining_lifetime_perc",
    "percent_life_remaining",
    "ssd_remaining_life_perc",
    "pct_life_remaining",
    "lifetime_remaining",
    "lifetime_left",
    "remaining_life",
    "drive_life_remaining",
    "drivelife_used",
    "media_wearout_indicator",
    "wear_leveling_count",
    "ave_block-erase_count",
    "avg_block-erase_count",
];

/// Returns the bytes of a raw unit as the name of an attribute states it; `None` if it does not.
fn unit(name: &str, block: f64) -> Option<(f64, String)> {
    name.split('_').find_map(|word| {
        if matches!(word, "lba" | "lbas" | "sector" | "sectors") {
            return Some((block, format!("logical blocks of {block} bytes")));
        }
        let letters = word.find(|c: char| !c.is_ascii_digit())?;
        let (count, unit) = word.split_at(letters);
        let (bytes, shown) = match unit {
            "kib" => (1024.0, "KiB"),
            "mib" => (1_048_576.0, "MiB"),
            "gib" => (1_073_741_824.0, "GiB"),
            "tib" => (1_099_511_627_776.0, "TiB"),
            "mb" => (1e6, "MB"),
            "gb" => (1e9, "GB"),
            "tb" => (1e12, "TB"),
            _ => return None,
        };
        let count: u32 = match count {
            "" => 1,
            digits => digits.parse().ok()?,
        };
        Some((
            f64::from(count) * bytes,
            format!("units of {count} {shown}"),
        ))
    })
}

/// Name of the indicator that counts down only as attribute [`MEDIA_WEAROUT_ID`].
const MEDIA_WEAROUT: &str = "media_wearout_indicator";
/// Attribute number of the indicator of that name that counts down from 100.
const MEDIA_WEAROUT_ID: u8 = 233;

fn is_host_writes(name: &str) -> bool {
    let writes = name.contains("writ") || name.contains("wts");
    // Two attributes hold the halves of a 64-bit counter; one half alone is meaningless.
    let half = name.ends_with("_low") || name.ends_with("_high") || name.ends_with("_exp");
    writes && !half && !NOT_HOST.iter().any(|word| name.contains(word))
}

/// Checks for all ones in a counter of 32 or 48 bits: it is saturated or not supported.
fn is_saturated(raw: f64) -> bool {
    [u64::from(u32::MAX), (1 << 48) - 1].contains(&(raw as u64))
}

/// Takes host writes and the wear indicator from the table; rejected values become remarks.
pub(super) fn take(health: &mut Health, attributes: &[Attribute], drive: &AtaDrive) {
    if health.written.is_none() {
        match written(attributes, drive) {
            Ok(Some(found)) => health.set_written(found.value, found.rule),
            Ok(None) => {}
            Err(why) => health.remarks.push(why),
        }
    }
    if health.used_percent.is_none() {
        match used(attributes, drive) {
            Ok(Some(found)) => health.set_used(found.value, found.rule),
            Ok(None) => {}
            Err(why) => health.remarks.push(why),
        }
    }
    let named = |name: &str| attributes.iter().find(|one| one.name == name);
    if health.media_errors.is_none() {
        let names = ["Reported_Uncorrect", "Uncorrectable_Error_Cnt"];
        health.media_errors = names.iter().find_map(|name| named(name)?.raw);
    }
    if health.spare_percent.is_none() {
        let spare = named("Available_Reservd_Space").and_then(|one| one.value);
        health.set_spare(spare, None);
    }
    if health.power_on_hours.is_none()
        && let Some(hours) = named("Power_On_Hours").and_then(|one| one.raw)
    {
        health.set_hours(hours);
    }
    if health.temperature_celsius.is_none() {
        let one = named("Temperature_Celsius").or_else(|| named("Airflow_Temperature_Cel"));
        if let Some(celsius) = one.and_then(|one| one.raw) {
            health.set_temperature(celsius);
        }
    }
}

fn written(attributes: &[Attribute], drive: &AtaDrive) -> Result<Option<CounterValue>, String> {
    let rank = |one: &&Attribute| WRITES.iter().position(|id| *id == one.id).unwrap_or(99);
    let mut rows: Vec<&Attribute> = attributes
        .iter()
        .filter(|one| is_host_writes(&one.name.to_ascii_lowercase()))
        .collect();
    rows.sort_by_key(rank);
    let mut refused = None;
    for row in rows {
        let Attribute { id, name, .. } = row;
        let Some(raw) = row.raw else { continue };
        let why = match unit(&name.to_ascii_lowercase(), drive.block) {
            _ if is_saturated(raw) => {
                format!(
                    "attribute {id} {name} is {raw:.0}, all ones: it is saturated or not supported"
                )
            }
            Some((bytes, rule)) if drive.in_database || !rule.starts_with("logical") => {
                return Ok(Some(CounterValue {
                    value: raw * bytes,
                    rule: format!("ATA attribute {id} {name}, {rule}"),
                }));
            }
            Some(_) => format!(
                "attribute {id} {name} is not used: smartctl's database does not have this model, and makers count it in \
                 units from 512 bytes to 32 MiB"
            ),
            None => format!("attribute {id} {name} is not used: its unit is not known"),
        };
        refused.get_or_insert(why);
    }
    refused.map_or(Ok(None), Err)
}

fn used(attributes: &[Attribute], drive: &AtaDrive) -> Result<Option<CounterValue>, String> {
    let rank = |one: &Attribute| {
        let name = one.name.to_ascii_lowercase();
        LIFE_LEFT.iter().position(|known| *known == name)
    };
    let mut rows: Vec<(usize, &Attribute)> = attributes
        .iter()
        .filter_map(|one| Some((rank(one)?, one)))
        .collect();
    rows.sort_by_key(|(rank, _)| *rank);
    let mut refused = None;
    for (_, row) in rows {
        let Attribute { id, name, .. } = row;
        let Some(value) = row.value else { continue };
        let counts_down = name.to_ascii_lowercase() != MEDIA_WEAROUT || *id == MEDIA_WEAROUT_ID;
        let why = match value <= 100.0 {
            _ if !counts_down => format!(
                "the wear is not known: attribute {id} {name} counts up on some drives and down on others"
            ),
            true if drive.in_database => {
                return Ok(Some(CounterValue {
                    value: 100.0 - value,
                    rule: format!(
                        "ATA attribute {id} {name}, 100 less the normalized value {value}"
                    ),
                }));
            }
            true => format!(
                "attribute {id} {name} is not used: smartctl's database does not have this model, so its scale is not known"
            ),
            false => format!(
                "attribute {id} {name} is not used: its normalized value {value} is above 100, so its scale is not known"
            ),
        };
        refused.get_or_insert(why);
    }
    refused.map_or(Ok(None), Err)
}
