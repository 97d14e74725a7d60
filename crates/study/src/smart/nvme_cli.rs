//! The SMART log as `nvme smart-log -o json` prints it.
//!
//! Key names and types differ by version: `percent_used` or `percentage_used`, 128-bit counters as numbers, floating-point
//! numbers or strings, `critical_warning` as a number or an object, temperature in kelvin. The log does not name the drive;
//! `nvme id-ctrl -o json` before it does.

use serde_json::{Map, Value};
use text::problem::Problem;

use super::{DATA_UNIT, Health, ParsedDevice, at_line, name, number};

/// Fields of Identify Controller.
pub(super) struct Identity {
    model: Option<String>,
    serial: Option<String>,
    capacity: Option<f64>,
}

/// Names of Percentage Used, by version.
const USED: [&str; 2] = ["percent_used", "percentage_used"];
/// Values at and above this are kelvin: -73 degrees Celsius and 200 degrees Celsius are both outside what a drive reports.
const KELVIN: f64 = 200.0;

fn get(members: &Map<String, Value>, keys: &[&str]) -> Option<f64> {
    let mut values = keys.iter().filter_map(|key| members.get(*key));
    values.find_map(number::of_json)
}

/// Checks whether this is a SMART log.
pub(super) fn is(members: &Map<String, Value>) -> bool {
    let has = |key: &str| members.contains_key(key);
    has("data_units_written") || has("critical_warning") && USED.iter().any(|key| has(key))
}

/// Returns Identify Controller, if this is it.
pub(super) fn identity(members: &Map<String, Value>) -> Option<Identity> {
    let word = |key: &str| members.get(key).and_then(Value::as_str).and_then(name);
    (members.contains_key("mn") && members.contains_key("sn")).then(|| Identity {
        model: word("mn"),
        serial: word("sn"),
        capacity: get(members, &["tnvmcap"]).filter(|&bytes| bytes > 0.0),
    })
}

/// Reads a SMART log.
pub(super) fn read(
    origin: &str,
    line: usize,
    label: Option<&str>,
    identity: Option<Identity>,
    members: &Map<String, Value>,
) -> Result<ParsedDevice, Problem> {
    let mut health = Health::new(format!("{origin}:{line}"), "NVMe");
    health.device = label.and_then(name);
    if let Some(identity) = identity {
        health.model = identity.model;
        health.capacity_bytes = identity.capacity;
        health.set_serial(identity.serial);
    }
    of_log(&mut health, members, |value| match value >= KELVIN {
        true => value - 273.0,
        false => value,
    });
    match health.missing("`data_units_written` and `percent_used`") {
        Some(what) => Err(at_line(origin, line, what, super::ASK)),
        None => Ok(ParsedDevice::Drive(Box::new(health))),
    }
}

/// Takes the SMART / Health Information log under the key names of both programs.
pub(super) fn of_log(
    health: &mut Health,
    members: &Map<String, Value>,
    celsius: impl Fn(f64) -> f64,
) {
    if let Some(units) = get(members, &["data_units_written", "data_units_written_s"]) {
        health.set_written(units * DATA_UNIT, "NVMe data units of 512,000 bytes");
    }
    if let Some(percent) = get(members, &USED) {
        health.set_used(percent, "NVMe Percentage Used");
    }
    if let Some(hours) = get(members, &["power_on_hours", "power_on_hours_s"]) {
        health.set_hours(hours);
    }
    health.set_spare(
        get(members, &["avail_spare", "available_spare"]),
        get(members, &["spare_thresh", "available_spare_threshold"]),
    );
    health.media_errors = get(members, &["media_errors", "media_errors_s"]);
    if let Some(value) = get(members, &["temperature"]) {
        health.set_temperature(celsius(value));
    }
    health.warning_temperature_minutes = get(members, &["warning_temp_time"]);
    health.critical_temperature_minutes = get(members, &["critical_comp_time"]);
    if let Some(bits) = get(members, &["critical_warning"]) {
        health.set_warning(bits);
    }
}

/// Returns the bits of Critical Warning as text.
pub(super) fn warnings(bits: f64) -> Option<String> {
    const WORDS: [&str; 6] = [
        "available spare is below its threshold",
        "temperature is outside its thresholds",
        "reliability is degraded",
        "the media is read-only",
        "the backup of volatile memory has failed",
        "the persistent memory region is read-only or unreliable",
    ];
    let bits = bits.min(255.0) as u8;
    let set = WORDS
        .iter()
        .zip(0..)
        .filter(|(_, bit)| bits >> bit & 1 == 1);
    let set: Vec<&str> = set.map(|(word, _)| *word).collect();
    (bits != 0).then(|| match set.is_empty() {
        true => format!("critical warning 0x{bits:02x}"),
        false => format!("critical warning: {}", set.join(", ")),
    })
}
