//! Text that `smartctl -a`, `smartctl -x` and `nvme smart-log` print, as people post it: with prompts, quote marks and other
//! output around it.
//!
//! A drive begins at smartctl's version line or information section, or at the head of nvme-cli's log. Lines are
//! `Key: value`; attributes and device statistics are rows of a table.

use text::problem::Problem;

use super::ata::{self, Attribute};
use super::{DATA_UNIT, Health, ParsedDevice, at_line, name, number, smartctl};

/// Data of one drive in a text.
struct DriveSection {
    line: usize,
    health: Health,
    attributes: Vec<Attribute>,
    in_database: bool,
    block: f64,
    rotates: Option<String>,
    vendor: Option<String>,
    /// Whether the following rows belong to the SCSI "Error counter log".
    error_counters: bool,
    /// Message that smartctl printed instead of data.
    said: Option<String>,
    /// Program that printed the text.
    program: SmartTool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SmartTool {
    Smartctl,
    NvmeCli,
}

/// Reads the drives of a text that begins at `line`; empty if it has no SMART data.
pub(super) fn read(origin: &str, line: usize, text: &str) -> Vec<Result<ParsedDevice, Problem>> {
    let mut sections: Vec<DriveSection> = Vec::new();
    for (number, row) in (line..).zip(text.lines()) {
        let row = row.trim_start_matches(['>', '|', ' ', '\t']).trim_end();
        let begins = begins(row, sections.last());
        if let Some(program) = begins {
            sections.push(DriveSection::new(origin, number, program, row));
        }
        if let Some(section) = sections.last_mut() {
            section.take(row);
        }
    }
    let sections = joined(sections).into_iter();
    // A version line or a command without data has nothing to report.
    sections.filter_map(|it| it.end(origin)).collect()
}

/// Joins the output of `smartctl -i` and that of `smartctl -A` after it.
fn joined(sections: Vec<DriveSection>) -> Vec<DriveSection> {
    let mut all: Vec<DriveSection> = Vec::new();
    for mut section in sections {
        if section.program == SmartTool::Smartctl
            && section.health.model.is_none()
            && let Some(last) = all.pop_if(|last| last.is_identity())
        {
            let health = &mut section.health;
            health.model = last.health.model;
            health.set_serial(last.health.serial);
            health.capacity_bytes = last.health.capacity_bytes;
            health.place = last.health.place;
            health.remarks.push(String::from(
                "its model and serial number are those of the output before its data",
            ));
            section.in_database = last.in_database;
            section.block = last.block;
            section.rotates = last.rotates;
        }
        all.push(section);
    }
    all
}

/// Returns the program whose output for a drive begins at this line.
fn begins(row: &str, last: Option<&DriveSection>) -> Option<SmartTool> {
    let version = row
        .strip_prefix("smartctl ")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains('['));
    if version {
        return Some(SmartTool::Smartctl);
    }
    let anew = |program: SmartTool, begun: fn(&DriveSection) -> bool| {
        last.is_none_or(|last| last.program != program || begun(last))
            .then_some(program)
    };
    if row.starts_with("=== START OF INFORMATION SECTION") {
        return anew(SmartTool::Smartctl, DriveSection::has_name);
    }
    if row.starts_with("=== START OF") && row.contains("SMART DATA SECTION") {
        return anew(SmartTool::Smartctl, DriveSection::has_data);
    }
    if row
        .to_ascii_lowercase()
        .starts_with("smart log for nvme device")
    {
        return Some(SmartTool::NvmeCli);
    }
    if row.starts_with("critical_warning") {
        return anew(SmartTool::NvmeCli, DriveSection::has_data);
    }
    None
}

/// Reads a row of the attribute table, in the old format (`0x0032`, type and updated) or the brief format (`-O--CK`).
fn attribute(row: &str) -> Option<Attribute> {
    let words: Vec<&str> = row.split_whitespace().collect();
    let id: u8 = words.first()?.parse().ok().filter(|&id| id > 0)?;
    let flags = *words.get(2)?;
    let old = flags.starts_with("0x");
    let brief = flags.len() == 6 && flags.chars().all(|c| "POSRCK-".contains(c));
    let raw = match (old, brief) {
        (true, _) => words.get(9)?,
        (_, true) => words.get(7)?,
        _ => return None,
    };
    Some(Attribute {
        id,
        name: name(words[1])?,
        value: words[3].parse::<u16>().ok().map(f64::from),
        raw: number::decimal(raw),
    })
}

/// Reads a row of the device statistics: page, offset, size, value, flags, name.
fn statistic(row: &str) -> Option<(String, f64)> {
    let words: Vec<&str> = row.split_whitespace().collect();
    let hexadecimal = |word: &&str| word.starts_with("0x");
    let rows = words
        .iter()
        .take(2)
        .filter(|word| hexadecimal(word))
        .count()
        == 2;
    (rows && words.len() > 5)
        .then(|| Some((words[5..].join(" "), number::decimal(words[3])?)))
        .flatten()
}

/// Reads a temperature such as `40 C`, `40 °C (313 K)`, `104 °F (313 K)` or `32 Celsius`.
fn celsius(value: &str) -> Option<f64> {
    let kelvin = value.split_once('(').map(|(_, rest)| rest);
    let kelvin = kelvin.filter(|rest| rest.contains('K'));
    if let Some(kelvin) = kelvin.and_then(number::decimal) {
        return Some(kelvin - 273.0);
    }
    let figure = number::decimal(value)?;
    let unit = value.trim_start_matches(|c: char| !c.is_alphabetic());
    match unit.chars().next() {
        Some('K') => Some(figure - 273.0),
        Some('F') => Some((figure - 32.0) / 1.8),
        _ => Some(figure),
    }
}

impl DriveSection {
    fn new(origin: &str, line: usize, program: SmartTool, row: &str) -> DriveSection {
        let mut health = Health::new(format!("{origin}:{line}"), "ATA");
        if program == SmartTool::NvmeCli {
            health.interface = "NVMe";
            let device = row.split_once(':').map(|(_, rest)| rest.trim_start());
            let device = device.filter(|_| !row.starts_with("critical"));
            let device = device.and_then(|rest| rest.split_whitespace().next());
            health.device = device.and_then(name);
        }
        DriveSection {
            line,
            health,
            attributes: Vec::new(),
            in_database: false,
            block: 512.0,
            rotates: None,
            vendor: None,
            error_counters: false,
            said: None,
            program,
        }
    }

    fn has_name(&self) -> bool {
        self.health.model.is_some() || self.has_data()
    }

    /// Checks whether this is the output of `smartctl -i`.
    fn is_identity(&self) -> bool {
        let named = self.program == SmartTool::Smartctl && self.health.model.is_some();
        named && !self.has_data() && self.said.is_none()
    }

    fn has_data(&self) -> bool {
        let health = &self.health;
        !self.attributes.is_empty()
            || health.used_percent.is_some()
            || health.written.is_some()
            || health.spare_percent.is_some()
    }

    fn take(&mut self, row: &str) {
        if self.program == SmartTool::Smartctl {
            if let Some(attribute) = attribute(row) {
                return self.attributes.push(attribute);
            }
            if let Some((name, value)) = statistic(row) {
                return smartctl::statistic(&mut self.health, &name, value, self.block);
            }
            if row.starts_with("Smartctl open device") || row.contains(" failed: ") {
                self.said = self.said.take().or_else(|| name(row));
            }
            if let Some(hours) = row.trim().strip_prefix("number of hours powered up =") {
                self.hours(number::decimal(hours));
            }
            self.error_counters |= row.starts_with("Error counter log");
        }
        if let Some((key, value)) = row.split_once(':') {
            let key = key.trim().replace('_', " ").to_ascii_lowercase();
            let value = value.trim();
            self.identity(&key, value);
            self.log(&key, value);
        }
    }

    fn hours(&mut self, hours: Option<f64>) {
        if let Some(hours) = hours {
            self.health.set_hours(hours);
        }
    }

    /// Reads a line of the information section.
    fn identity(&mut self, key: &str, value: &str) {
        let health = &mut self.health;
        match key {
            "model number" | "device model" => health.model = name(value),
            "vendor" => self.vendor = name(value),
            "product" => {
                health.interface = "SCSI";
                let vendor = self.vendor.as_deref().unwrap_or_default();
                health.model = name(&format!("{vendor} {value}"));
            }
            "serial number" => health.set_serial(name(value)),
            "user capacity" | "total nvm capacity" | "namespace 1 size/capacity" => {
                let bytes = number::of_text(value).filter(|&bytes| bytes > 0.0);
                health.capacity_bytes = bytes.or(health.capacity_bytes);
            }
            "rotation rate" if value.contains("rpm") => self.rotates = name(value),
            "device is" => self.in_database = value.starts_with("In smartctl database"),
            "sector size" | "sector sizes" | "logical block size" => {
                let bytes = number::decimal(value);
                self.block = bytes.filter(|it| *it == 4096.0).unwrap_or(512.0);
            }
            _ => {}
        }
    }

    /// Reads a line of the log.
    fn log(&mut self, key: &str, value: &str) {
        let health = &mut self.health;
        match key {
            "critical warning" => {
                health.interface = "NVMe";
                if let Some(bits) = number::of_text(value) {
                    health.set_warning(bits);
                }
            }
            "temperature" | "current drive temperature" => {
                if let Some(celsius) = celsius(value) {
                    health.set_temperature(celsius);
                }
            }
            "available spare" => health.set_spare(number::of_text(value), None),
            "available spare threshold" => health.set_spare(None, number::of_text(value)),
            "percentage used" => {
                if let Some(percent) = number::of_text(value) {
                    health.set_used(percent, "NVMe Percentage Used");
                }
            }
            "percentage used endurance indicator" => {
                if let Some(percent) = number::of_text(value) {
                    health.set_used(percent, "SCSI percentage used endurance indicator");
                }
            }
            "data units written" => {
                if let Some(units) = number::of_text(value) {
                    health.set_written(units * DATA_UNIT, "NVMe data units of 512,000 bytes");
                }
            }
            "power on hours" => self.hours(number::of_text(value)),
            "accumulated power on time, hours" => {
                self.hours(value.strip_prefix("minutes").and_then(number::decimal));
            }
            "media errors" | "media and data integrity errors" => {
                health.media_errors = number::of_text(value);
            }
            "warning  comp. temp. threshold" => {
                health.warning_temperature_celsius = celsius(value).filter(|it| *it > 0.0);
            }
            "warning temperature time" | "warning  comp. temperature time" => {
                health.warning_temperature_minutes = number::of_text(value);
            }
            "critical composite temperature time" | "critical comp. temperature time" => {
                health.critical_temperature_minutes = number::of_text(value);
            }
            "read" | "write" | "verify" if self.error_counters => self.error_counter(key, value),
            "smart overall-health self-assessment test result" | "smart health status"
                if !value.starts_with("PASSED") && !value.starts_with("OK") =>
            {
                let said = name(value).unwrap_or_default();
                let remark = format!("the drive's self-assessment is {said}");
                health.remarks.push(remark);
                health.assessment_failed = true;
            }
            _ => {}
        }
    }

    /// Reads a row of the SCSI error counter log: five counts of errors, 10^9 bytes processed, errors that were not
    /// corrected.
    fn error_counter(&mut self, key: &str, value: &str) {
        let figures: Vec<f64> = value
            .split_whitespace()
            .filter_map(number::decimal)
            .collect();
        let [.., gigabytes, uncorrected] = figures[..] else {
            return;
        };
        if figures.len() != 7 {
            return;
        }
        self.health.interface = "SCSI";
        if key == "write" {
            let rule = "SCSI write error counter log, gigabytes processed (10^9 bytes)";
            self.health.set_written(gigabytes * 1e9, rule);
        }
        let errors = self.health.media_errors.unwrap_or(0.0);
        self.health.media_errors = Some(errors + uncorrected);
    }

    /// Returns the drive, or why it cannot be read; `None` for output that is not about a drive.
    fn end(mut self, origin: &str) -> Option<Result<ParsedDevice, Problem>> {
        if let Some(rate) = &self.rotates {
            let label = self.health.label();
            let why = format!("{label}: a hard disk ({rate}), which writes do not wear");
            return Some(Ok(ParsedDevice::LeftOut(why)));
        }
        let drive = ata::AtaDrive {
            in_database: self.in_database,
            block: self.block,
        };
        if self.health.interface == "ATA" {
            ata::take(&mut self.health, &self.attributes, &drive);
        }
        let keys = match self.health.interface {
            "NVMe" => "\"Data Units Written\" and \"Percentage Used\"",
            "SCSI" => "\"Error counter log\" and \"Percentage used endurance indicator\"",
            _ => "the SMART data section",
        };
        let Some(what) = self.health.missing(keys) else {
            return Some(Ok(ParsedDevice::Drive(Box::new(self.health))));
        };
        let silent = self.program == SmartTool::Smartctl && self.said.is_none();
        if silent && !self.has_name() {
            return None;
        }
        let said = self.said.map(|said| format!("; it says: {said}"));
        let what = format!("{what}{}", said.unwrap_or_default());
        let help = "copy the whole output of `smartctl -a` or `nvme smart-log`, run as root";
        Some(Err(at_line(origin, self.line, what, help)))
    }
}
