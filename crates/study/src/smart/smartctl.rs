//! `smartctl -j` (`--json`): one document for each drive, of NVMe, ATA or SCSI.
//!
//! `endurance_used` is not read for ATA: smartctl guesses it from attributes of models that it does not know. Device
//! statistics (`smartctl -x`) report it exactly.

use serde_json::{Map, Value};
use text::problem::Problem;

use super::ata::{self, Attribute};
use super::{Health, ParsedDevice, at_line, name, number, nvme_cli};

type Members = Map<String, Value>;

/// Checks whether this is a document of smartctl.
pub(super) fn is(members: &Members) -> bool {
    let has = |key: &str| members.contains_key(key);
    has("smartctl")
        || has("json_format_version")
        || has("nvme_smart_health_information_log")
        || has("ata_smart_attributes")
}

/// Returns the value at a path of keys.
fn value_at<'a>(members: &'a Members, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let start = members.get(*first)?;
    rest.iter().try_fold(start, |value, key| value.get(key))
}

fn count(members: &Members, path: &[&str]) -> Option<f64> {
    value_at(members, path).and_then(number::of_json)
}

fn word(members: &Members, path: &[&str]) -> Option<String> {
    value_at(members, path)
        .and_then(Value::as_str)
        .and_then(name)
}

/// Reads a document.
pub(super) fn read(
    origin: &str,
    line: usize,
    label: Option<&str>,
    members: &Members,
) -> Result<ParsedDevice, Problem> {
    let mut health = Health::new(format!("{origin}:{line}"), "ATA");
    health.device = word(members, &["device", "name"]).or_else(|| label.and_then(name));
    health.model = word(members, &["model_name"])
        .or_else(|| word(members, &["scsi_model_name"]))
        .or_else(|| word(members, &["product"]));
    health.set_serial(word(members, &["serial_number"]));
    health.capacity_bytes = [&["user_capacity", "bytes"][..], &["nvme_total_capacity"]]
        .into_iter()
        .find_map(|path| count(members, path))
        .filter(|&bytes| bytes > 0.0);
    if let Some(why) = not_worn(members, &health) {
        return Ok(ParsedDevice::LeftOut(why));
    }
    let keys = match members.get("nvme_smart_health_information_log") {
        Some(Value::Object(log)) => {
            health.interface = "NVMe";
            nvme_cli::of_log(&mut health, log, |celsius| celsius);
            "`data_units_written` and `percentage_used`"
        }
        _ if is_scsi(members) => {
            health.interface = "SCSI";
            of_scsi(&mut health, members);
            "`scsi_error_counter_log` and `endurance_used`"
        }
        _ => {
            of_ata(&mut health, members);
            "`nvme_smart_health_information_log`, `ata_smart_attributes` or SCSI logs"
        }
    };
    read_common_fields(&mut health, members);
    match health.missing(keys) {
        None => Ok(ParsedDevice::Drive(Box::new(health))),
        Some(what) => Err(at_line(
            origin,
            line,
            messages(&health, members).unwrap_or(what),
            super::ASK,
        )),
    }
}

/// Returns why a device is left out; `None` for drives that writes wear.
fn not_worn(members: &Members, health: &Health) -> Option<String> {
    let turns = count(members, &["rotation_rate"]).filter(|&turns| turns > 0.0)?;
    Some(format!(
        "{}: a hard disk ({turns:.0} rpm), which writes do not wear",
        health.label()
    ))
}

fn is_scsi(members: &Members) -> bool {
    let protocol = value_at(members, &["device", "protocol"]).and_then(Value::as_str);
    protocol == Some("SCSI") || members.contains_key("scsi_error_counter_log")
}

/// Returns smartctl's messages instead of data, if there are any.
fn messages(health: &Health, members: &Members) -> Option<String> {
    let messages = value_at(members, &["smartctl", "messages"]).and_then(Value::as_array);
    let said: Vec<String> = messages?
        .iter()
        .filter_map(|message| message.get("string")?.as_str().and_then(name))
        .take(3)
        .collect();
    let status = count(members, &["smartctl", "exit_status"]);
    let status = status.map_or_else(String::new, |status| format!(" (exit status {status})"));
    let before = health.before_message();
    (!said.is_empty()).then(|| {
        format!(
            "{before}no SMART data; smartctl reports: {}{status}",
            said.join("; ")
        )
    })
}

/// Reads the fields that all interfaces share.
fn read_common_fields(health: &mut Health, members: &Members) {
    if health.power_on_hours.is_none()
        && let Some(hours) = count(members, &["power_on_time", "hours"])
    {
        let minutes = count(members, &["power_on_time", "minutes"]);
        let minutes = minutes.filter(|&minutes| minutes < 60.0);
        health.set_hours(hours + minutes.unwrap_or(0.0) / 60.0);
    }
    if health.temperature_celsius.is_none()
        && let Some(celsius) = count(members, &["temperature", "current"])
    {
        health.set_temperature(celsius);
    }
    let passed = value_at(members, &["smart_status", "passed"]).and_then(Value::as_bool);
    if passed == Some(false) {
        health.assessment_failed = true;
        health
            .remarks
            .push(String::from("the drive's self-assessment is FAILED"));
    }
}

fn of_scsi(health: &mut Health, members: &Members) {
    let log = "scsi_error_counter_log";
    let processed = value_at(members, &[log, "write", "gigabytes_processed"]);
    let processed = processed.and_then(|value| match value {
        Value::String(text) => number::decimal(text),
        value => number::of_json(value),
    });
    if let Some(gigabytes) = processed {
        let rule = "SCSI write error counter log, gigabytes processed (10^9 bytes)";
        health.set_written(gigabytes * 1e9, rule);
    }
    let used = ["endurance_used", "scsi_percentage_used_endurance_indicator"];
    let used = used.iter().find_map(|key| {
        count(members, &[*key, "current_percent"]).or_else(|| count(members, &[*key]))
    });
    if let Some(percent) = used {
        health.set_used(percent, "SCSI percentage used endurance indicator");
    }
    let errors = ["read", "write", "verify"];
    let errors = errors
        .iter()
        .filter_map(|way| count(members, &[log, *way, "total_uncorrected_errors"]));
    health.media_errors = errors.reduce(|sum, more| sum + more);
}

fn of_ata(health: &mut Health, members: &Members) {
    let block = count(members, &["logical_block_size"]);
    let block = block
        .filter(|block| [512.0, 4096.0].contains(block))
        .unwrap_or(512.0);
    statistics(health, members, block);
    let known = value_at(members, &["in_smartctl_database"]).and_then(Value::as_bool);
    let drive = ata::AtaDrive {
        // In versions before 7.3, only the family shows it.
        in_database: known.unwrap_or_else(|| members.contains_key("model_family")),
        block,
    };
    // smartctl has already decided which raw values are hours.
    if let Some(hours) = count(members, &["power_on_time", "hours"]) {
        health.set_hours(hours);
    }
    if let Some(celsius) = count(members, &["temperature", "current"]) {
        health.set_temperature(celsius);
    }
    let table = value_at(members, &["ata_smart_attributes", "table"]).and_then(Value::as_array);
    let rows = table.into_iter().flatten().filter_map(attribute);
    ata::take(health, &rows.collect::<Vec<_>>(), &drive);
}

fn attribute(row: &Value) -> Option<Attribute> {
    let raw = row.get("raw")?;
    let text = raw.get("string").and_then(Value::as_str);
    Some(Attribute {
        id: u8::try_from(row.get("id")?.as_u64()?).ok()?,
        name: name(row.get("name")?.as_str()?)?,
        value: row.get("value").and_then(number::of_json),
        raw: text
            .and_then(number::decimal)
            .or_else(|| raw.get("value").and_then(number::of_json)),
    })
}

/// Reads device statistics, which have standard units.
fn statistics(health: &mut Health, members: &Members, block: f64) {
    let pages = value_at(members, &["ata_device_statistics", "pages"]).and_then(Value::as_array);
    let rows = pages
        .into_iter()
        .flatten()
        .filter_map(|page| page.get("table")?.as_array())
        .flatten();
    for row in rows {
        let valid = row.get("flags").and_then(|flags| flags.get("valid"));
        let value = row.get("value").and_then(number::of_json);
        let (Some(name), Some(value)) = (row.get("name").and_then(Value::as_str), value) else {
            continue;
        };
        if valid.and_then(Value::as_bool) != Some(false) {
            statistic(health, name, value, block);
        }
    }
}

/// Stores one of the device statistics.
pub(super) fn statistic(health: &mut Health, name: &str, value: f64, block: f64) {
    match name {
        "Logical Sectors Written" => {
            let rule = format!("ATA device statistics, logical sectors of {block} bytes");
            health.set_written(value * block, rule);
        }
        "Percentage Used Endurance Indicator" => {
            health.set_used(value, "ATA device statistics, Percentage Used");
        }
        "Number of Reported Uncorrectable Errors" => health.media_errors = Some(value),
        _ => {}
    }
}
