//! SMART data of drives, as `smartctl` (smartmontools) and `nvme smart-log` (nvme-cli) print it: JSON or text.
//!
//! A file may hold several drives: several documents, an array, an object with one document per key, lines of a
//! console between them, or text of several commands. A drive needs one of two figures: bytes that the host wrote, or
//! a wear indicator. Anything else that is missing is a remark. Hard disks are skipped, because writes do not wear
//! them.
//!
//! Not read: logs that only a maker's own tool reads, and the extended logs (`nvme ocp`, `nvme intel smart-log-add`).
//!
//! Sources: NVMe base specification, SMART / Health Information log (a data unit is 1000 times 512 bytes, and
//! percentages above 254 are reported as 255). ACS-4, device statistics. SPC-4, log pages 02h and 03h. The key names
//! in the output of smartmontools 6.5 to 7.5 and nvme-cli 1.8 to 2.11.

mod ata;
mod document;
mod number;
mod nvme_cli;
mod plain;
mod smartctl;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::Serialize;
use text::digits::{digits, duration};
use text::foreign::{printable, utf16};
use text::problem::{Place, Problem, Problems};

/// Bytes of an NVMe data unit.
const DATA_UNIT: f64 = 512_000.0;
/// Maximum plausible bytes written: a larger value is a broken counter.
const MOST_WRITTEN: f64 = 1e20;
/// Maximum plausible power-on hours: 60 years.
const MOST_HOURS: f64 = 60.0 * 8766.0;
/// Temperature at and above which a drive is hot, in degrees Celsius, if its own threshold is unknown. Assumed; the
/// SMART / Health Information log does not contain the threshold.
const HOT: f64 = 80.0;
/// Share of the power-on time above the warning temperature from which it is worth a warning. Assumed.
const WARM_SHARE: f64 = 0.01;
/// Percentage points above the threshold at and below which spare blocks are worth a warning. Assumed.
const SPARE_NEAR: f64 = 10.0;
/// Maximum characters of a displayed name.
const NAME: usize = 64;
/// Maximum number of reported problems per file.
const PROBLEMS: usize = 20;

/// Value of a counter, and the rule by which it was read.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CounterValue {
    /// Bytes or percent.
    pub value: f64,
    /// Source and unit of the value.
    pub rule: String,
}

/// State of one drive according to its SMART data.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Health {
    /// File and line at which the drive's data begins.
    pub place: String,
    /// Device name on its host, such as `/dev/nvme0`.
    pub device: Option<String>,
    /// Model as the drive reports it.
    pub model: Option<String>,
    /// Serial number, for finding duplicates only.
    #[serde(skip)]
    pub serial: Option<String>,
    /// Last four characters of the serial number.
    pub serial_end: Option<String>,
    /// `NVMe`, `ATA` or `SCSI`.
    pub interface: &'static str,
    /// Bytes that a host can address.
    pub capacity_bytes: Option<f64>,
    /// Bytes that the host wrote.
    pub written: Option<CounterValue>,
    /// Percentage Used, or the corresponding value. NVMe caps it at 255.
    pub used_percent: Option<CounterValue>,
    /// Time powered on, in hours.
    pub power_on_hours: Option<f64>,
    /// Spare blocks left, percent.
    pub spare_percent: Option<f64>,
    /// Spare below which the drive warns, percent.
    pub spare_threshold_percent: Option<f64>,
    /// Uncorrected media errors.
    pub media_errors: Option<f64>,
    /// Temperature in degrees Celsius.
    pub temperature_celsius: Option<f64>,
    /// Warning temperature (Warning Composite Temperature Threshold), if the text contains it.
    pub warning_temperature_celsius: Option<f64>,
    /// Minutes at or above the warning temperature (Warning Composite Temperature Time), below the critical one.
    pub warning_temperature_minutes: Option<f64>,
    /// Minutes at or above the critical temperature (Critical Composite Temperature Time).
    pub critical_temperature_minutes: Option<f64>,
    /// Bits of NVMe's Critical Warning.
    #[serde(skip)]
    pub critical_warning: Option<u8>,
    /// Whether the drive's self-assessment (ATA SMART status, SCSI health status) is other than passed.
    #[serde(skip)]
    pub assessment_failed: bool,
    /// Warnings of the drive, and figures that were refused.
    pub remarks: Vec<String>,
}

impl Health {
    fn new(place: String, interface: &'static str) -> Health {
        Health {
            place,
            interface,
            ..Health::default()
        }
    }

    fn set_serial(&mut self, serial: Option<String>) {
        self.serial_end = serial.as_ref().map(|serial| {
            let count = serial.chars().count();
            serial.chars().skip(count.saturating_sub(4)).collect()
        });
        self.serial = serial;
    }

    /// Stores host writes that are possible; rejects others with a remark.
    fn set_written(&mut self, bytes: f64, rule: impl Into<String>) {
        match bytes <= MOST_WRITTEN {
            true => {
                self.written = Some(CounterValue {
                    value: bytes,
                    rule: rule.into(),
                });
            }
            false => self.remarks.push(format!(
                "host writes of {bytes:.3e} bytes are impossible: the counter is invalid"
            )),
        }
    }

    /// Stores a Percentage Used from 0 to 255.
    fn set_used(&mut self, percent: f64, rule: impl Into<String>) {
        match percent <= 255.0 {
            true => {
                self.used_percent = Some(CounterValue {
                    value: percent,
                    rule: rule.into(),
                });
            }
            false => self.remarks.push(format!(
                "a Percentage Used of {percent} is impossible: it is at most 255"
            )),
        }
    }

    fn set_hours(&mut self, hours: f64) {
        match hours <= MOST_HOURS {
            true => self.power_on_hours = Some(hours),
            false => self.remarks.push(format!(
                "{hours:.0} power-on hours are over 60 years: the counter is invalid or has another unit"
            )),
        }
    }

    /// Stores a temperature in degrees Celsius. Values such as 0 K mean that the drive has no sensor.
    fn set_temperature(&mut self, celsius: f64) {
        if (-60.0..=150.0).contains(&celsius) {
            self.temperature_celsius = Some(celsius);
        }
    }

    /// Returns model and end of the serial number, or the device, or the place in the file.
    pub fn label(&self) -> String {
        match (&self.model, &self.serial_end) {
            (Some(model), Some(end)) => format!("{model} …{end}"),
            (Some(model), None) => model.clone(),
            (None, _) => self.device.clone().unwrap_or_else(|| self.place.clone()),
        }
    }

    /// Stores percentages of spare blocks; values above 100 mean that they are not supported.
    fn set_spare(&mut self, percent: Option<f64>, threshold: Option<f64>) {
        let valid = |value: Option<f64>| value.filter(|&value| value <= 100.0);
        self.spare_percent = valid(percent).or(self.spare_percent);
        self.spare_threshold_percent = valid(threshold).or(self.spare_threshold_percent);
    }

    /// Returns the label and a colon before a message, unless the label is the message's place.
    fn before_message(&self) -> String {
        match self.model.is_some() || self.device.is_some() {
            true => format!("{}: ", self.label()),
            false => String::new(),
        }
    }

    /// Stores Critical Warning, and its bits as a remark.
    fn set_warning(&mut self, bits: f64) {
        self.remarks.extend(nvme_cli::warnings(bits));
        self.critical_warning = Some(bits.min(255.0) as u8);
    }

    /// Returns the failure that the drive itself reports, as a predicate such as `is read-only`; `None` if it reports
    /// none.
    ///
    /// A temperature outside its thresholds is not a failure. Neither is degraded reliability after Percentage Used
    /// has passed 100, because NVMe sets this bit for the wear alone. For NVMe, smartctl derives its status from the
    /// same bits.
    pub fn failure(&self) -> Option<String> {
        let bits = self.critical_warning.unwrap_or(0);
        let is_set = |bit: u8| bits >> bit & 1 == 1;
        let used = self.used_percent.as_ref().map_or(0.0, |used| used.value);
        let spare = self.spare_percent.zip(self.spare_threshold_percent);
        let spare = spare.filter(|(left, least)| left < least);
        let words = if is_set(3) {
            "is read-only: it accepts no more writes"
        } else if let Some((left, least)) = spare {
            return Some(format!(
                "has failed by its own report: {left:.0} % of its spare blocks are left, its threshold is {least:.0} %"
            ));
        } else if is_set(0) {
            "has failed by its own report: its spare blocks are below its threshold"
        } else if is_set(2) && used < 100.0 {
            "has failed by its own report: its reliability is degraded"
        } else if is_set(4) {
            "has failed by its own report: its power-loss protection no longer works"
        } else if is_set(5) {
            "has failed by its own report: its persistent memory region is read-only or unreliable"
        } else if self.assessment_failed && bits == 0 {
            "has failed by its own report: its SMART self-assessment is not passed"
        } else {
            return None;
        };
        Some(String::from(words))
    }

    /// Returns what the drive reports of lost data, heat and spare blocks while it has not failed, as predicates such
    /// as `has reported 431 media errors`, the most serious first.
    pub fn warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(errors) = self.media_errors.filter(|&errors| errors >= 1.0) {
            let count = match errors > 99_999.0 {
                true => String::from(">99,999"),
                false => digits(errors),
            };
            let errors = if errors < 2.0 { "error" } else { "errors" };
            all.push(format!("has reported {count} media {errors}"));
        }
        let spare = self.spare_percent.zip(self.spare_threshold_percent);
        let is_near = |(left, least): &(f64, f64)| *left < 100.0 && left - least <= SPARE_NEAR;
        if let Some((left, least)) = spare.filter(is_near) {
            all.push(format!(
                "has {left:.0} % of its spare blocks left (threshold {least:.0} %)"
            ));
        }
        all.extend(self.heat());
        all
    }

    /// Returns the temperature, or the time above a threshold, if it is worth a warning.
    fn heat(&self) -> Option<String> {
        let is_outside = self.critical_warning.unwrap_or(0) >> 1 & 1 == 1;
        let limit = self.warning_temperature_celsius.unwrap_or(HOT);
        let critical = self.critical_temperature_minutes.unwrap_or(0.0);
        let warning = self.warning_temperature_minutes.unwrap_or(0.0);
        let minutes_on = 60.0 * self.power_on_hours.unwrap_or(f64::INFINITY);
        match self.temperature_celsius {
            Some(celsius) if is_outside => {
                Some(format!("is at {celsius:.0} °C, outside its thresholds"))
            }
            None if is_outside => Some(String::from("is outside its temperature thresholds")),
            Some(celsius) if celsius >= limit => Some(format!("is at {celsius:.0} °C")),
            _ if critical > 0.0 => Some(format!(
                "was above its critical temperature for {}",
                duration(critical * 60.0)
            )),
            _ if warning > WARM_SHARE * minutes_on => Some(format!(
                "was above its warning temperature for {}",
                duration(warning * 60.0)
            )),
            _ => None,
        }
    }

    /// Returns the problem of a drive without any figure of wear; `None` if there is one.
    fn missing(&self, keys: &str) -> Option<String> {
        let has = self.written.is_some() || self.used_percent.is_some();
        let more = self.remarks.iter().map(|remark| format!("; {remark}"));
        (!has).then(|| {
            format!(
                "{}neither host writes nor a wear indicator: missing {keys}{}",
                self.before_message(),
                more.collect::<String>()
            )
        })
    }
}

/// Drives found in a file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Dump {
    /// Drives that writes wear, in the order of the file.
    pub drives: Vec<Health>,
    /// Devices that were left out, each with the reason.
    pub left_out: Vec<String>,
}

/// Content of one document or section.
enum ParsedDevice {
    /// A drive that writes wear.
    Drive(Box<Health>),
    /// A device that writes do not wear.
    LeftOut(String),
}

/// Reads the SMART data of all drives in a file.
///
/// # Errors
/// Every reason why a drive in the file cannot be read, as [`read_partly`] returns it.
pub fn read(origin: &str, bytes: &[u8]) -> Result<Dump, Problems> {
    let (dump, problems) = read_partly(origin, bytes);
    problems.or(dump)
}

/// Reads the SMART data of all readable drives in a file, and returns the problems of the others.
///
/// A problem is an incomplete document, a message of the program instead of data, a drive without figures of wear, or a
/// file without SMART data.
pub fn read_partly(origin: &str, bytes: &[u8]) -> (Dump, Problems) {
    let text = decoded(bytes);
    let mut dump = Dump::default();
    if text.trim().is_empty() {
        return (dump, Problems::whole(origin, "the file is empty"));
    }
    let mut problems = Problems::default();
    let mut take = |found: Vec<Result<ParsedDevice, Problem>>| {
        for one in found {
            match one {
                Ok(ParsedDevice::Drive(health)) => dump.drives.push(*health),
                Ok(ParsedDevice::LeftOut(why)) => dump.left_out.push(why),
                Err(problem) => problems.0.push(problem),
            }
        }
    };
    for piece in document::pieces(origin, &text) {
        match piece {
            document::FilePart::Json(documents) => take(documents),
            document::FilePart::Text { line, text } => take(plain::read(origin, line, text)),
        }
    }
    if problems.0.len() > PROBLEMS {
        let more = problems.0.len() - PROBLEMS;
        problems.0.truncate(PROBLEMS);
        problems
            .0
            .extend(Problems::whole(origin, format!("and {more} more problems")).0);
    }
    if problems.0.is_empty() && dump.drives.is_empty() && dump.left_out.is_empty() {
        problems.0.push(Problem {
            help: Some(String::from(ASK)),
            ..whole(origin, "contains no SMART data that can be read")
        });
    }
    (dump, problems)
}

/// How to create a file that can be read.
const ASK: &str = "make it with `smartctl -a -j /dev/nvme0 > smart.json` or `nvme smart-log -o json /dev/nvme0 > smart.json`, as root";

fn whole(origin: &str, what: impl Into<String>) -> Problem {
    Problem {
        origin: origin.to_owned(),
        place: Place::Whole,
        what: what.into(),
        help: None,
    }
}

fn at_line(origin: &str, line: usize, what: impl Into<String>, help: &str) -> Problem {
    Problem {
        place: Place::Line(line),
        help: Some(help.to_owned()),
        ..whole(origin, what)
    }
}

/// Returns the text of a file, which may be UTF-16, as `>` of Windows PowerShell writes it.
fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    let pair: Option<fn([u8; 2]) -> u16> = match utf16(bytes) {
        Some(name) if name.contains("little") => Some(u16::from_le_bytes),
        Some(_) => Some(u16::from_be_bytes),
        None => None,
    };
    let text = match pair {
        Some(pair) => {
            let units = bytes.chunks_exact(2).map(|two| pair([two[0], two[1]]));
            let units: Vec<u16> = units.collect();
            Cow::Owned(String::from_utf16_lossy(&units))
        }
        None => String::from_utf8_lossy(bytes),
    };
    match text.strip_prefix('\u{feff}') {
        Some(rest) => Cow::Owned(rest.to_owned()),
        None => text,
    }
}

/// Returns a name from outside in a form that is safe to show; `None` if it is empty.
fn name(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let known = !text.is_empty() && !text.starts_with("[No Information");
    known.then(|| printable(&text).chars().take(NAME).collect())
}
