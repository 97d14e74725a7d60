//! Properties of a drive for administrators: power governor settings, temperature, retention, and Identify data.
//!
//! No source gives model numbers and firmware revisions in the form of Identify. They follow the names under which
//! such drives are sold, and their kind is `assumed`. A drive whose file has no model number reports its name.

use std::ops::RangeInclusive;

use model::Span;
use model::host::PowerState;
use model::management::{Management, Thermal};
use model::media::Medium;
use tier::DriveConfig;

use super::Section;
use super::common::Identity;
use text::quantity::{Airflow, Celsius, KelvinPerWatt, Watts};

pub use super::common::lba_format;

/// Maximum characters of a model number.
const MODEL_NUMBER: usize = 40;
/// Maximum characters of a serial number.
const SERIAL: usize = 20;
/// Maximum characters of a firmware revision.
const FIRMWARE: usize = 8;

/// Log pages of a drive in addition to those of NVMe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum VendorLogPages {
    /// None is published.
    #[default]
    None,
    /// SMART attributes and latency monitor of the Open Compute Project (C0h, C3h).
    Ocp,
    /// Intel's additional SMART attributes (CAh).
    Intel,
}

/// Values of `nvme.log_pages`.
const LOG_PAGES: [(&str, VendorLogPages); 3] = [
    ("none", VendorLogPages::None),
    ("ocp", VendorLogPages::Ocp),
    ("intel", VendorLogPages::Intel),
];

/// Strings and vendor id of NVMe Identify Controller, in printable ASCII.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NvmeIdentity {
    /// Up to 40 characters.
    pub model_number: String,
    /// Prefix of the serial numbers, up to 12 characters.
    pub serial_prefix: String,
    /// Up to 8 characters.
    pub firmware: String,
    /// PCI vendor id; 0 if the drive has no maker.
    pub vendor_id: u16,
    /// Further log pages.
    pub log_pages: VendorLogPages,
}

impl NvmeIdentity {
    /// Returns the serial number of drive `number`; each number gives a different one.
    pub fn serial(&self, number: u64) -> String {
        let digits = SERIAL - self.serial_prefix.len();
        let shown = number % 10u64.pow(digits.min(18) as u32);
        let digits = digits.min(10);
        format!("{}{shown:0digits$}", self.serial_prefix)
    }
}

/// Result of reading the administrative keys.
pub(super) struct Administration {
    pub(super) management: Management,
    pub(super) nvme: NvmeIdentity,
    pub(super) power_loss_protection: Option<bool>,
    pub(super) power_states: Vec<PowerState>,
}

/// Reads the administrative keys from the root of a drive file.
pub(super) fn read(root: &mut Section<'_>, identity: &Identity) -> Administration {
    let limits = root.maybe("power_settings", |root, key| {
        root.list(key, Watts(0.1)..=Watts(1000.0))
    });
    let limits: Vec<f64> = limits.unwrap_or_default().iter().map(|it| it.0).collect();
    let retention = root.maybe("retention", |root, key| {
        let day = Span::from_seconds(86_400.0);
        root.span(key, day..=day * 36_500)
    });
    let power_loss_protection = root.maybe("power_loss_protection", |root, key| root.flag(key));
    Administration {
        management: Management {
            lba_formats: identity.lba_formats.clone(),
            power_limits_watts: limits,
            thermal: thermal(&mut root.section("thermal")),
            retention,
        },
        nvme: nvme(&mut root.section("nvme"), &identity.name),
        power_loss_protection,
        power_states: match root.has("power_states") {
            true => power_states(&mut root.section("power_states")),
            false => Vec::new(),
        },
    }
}

/// Reads three lists of equal length: power, entry latency and exit latency of each non-operational state.
fn power_states(section: &mut Section<'_>) -> Vec<PowerState> {
    let latency = Span::ZERO..=Span::from_ms(10_000);
    let power = section.list("power", Watts(0.0)..=Watts(100.0));
    let entry = section.list("entry", latency.clone());
    let exit = section.list("exit", latency);
    if entry.len() != power.len() || exit.len() != power.len() {
        section.problem(
            "exit",
            format!(
                "{} powers, {} entry latencies and {} exit latencies",
                power.len(),
                entry.len(),
                exit.len()
            ),
            "`power`, `entry` and `exit` are lists of one length, one entry for each state",
        );
    }
    if !power.is_sorted_by(|a, b| a.0 > b.0) {
        section.problem(
            "power",
            "power states are not in order",
            "falling watts: the deepest state is the last one",
        );
    }
    let states = power.into_iter().zip(entry).zip(exit);
    states
        .map(|((power, entry), exit)| PowerState {
            microwatts: libm::round(power.0 * 1e6) as u64,
            entry,
            exit,
        })
        .collect()
}

/// Temperatures of air and drives that a catalogue file and the command line accept.
pub const CELSIUS: RangeInclusive<Celsius> = Celsius(-40.0)..=Celsius(200.0);
/// Airflows that a catalogue file and the command line accept.
pub const AIRFLOW: RangeInclusive<Airflow> = Airflow(0.0)..=Airflow(5000.0);
/// Airflow that the warm air around a drive causes by itself: still air cools as this flow. Assumed: the heat transfer
/// of still air is about a quarter of that at 200 LFM.
pub const STILL_AIR: Airflow = Airflow(40.0);

fn thermal(section: &mut Section<'_>) -> Thermal {
    let celsius = CELSIUS;
    let resistance = section.get("resistance", KelvinPerWatt(0.0)..=KelvinPerWatt(100.0));
    let mut airflow = |key: &str| section.get(key, AIRFLOW).0.max(STILL_AIR.0);
    let (rated, airflow) = (airflow("rated_airflow"), airflow("airflow"));
    let exponent = section.number("airflow_exponent", 0.0..=2.0);
    let thermal = Thermal {
        ambient_celsius: section.get("ambient", celsius.clone()).0,
        kelvin_per_watt: resistance.0 * libm::pow(rated / airflow, exponent),
        time_constant: section.span("time_constant", Span::ZERO..=Span::from_seconds(86_400.0)),
        warning_celsius: section.get("warning", celsius.clone()).0,
        critical_celsius: section.get("critical", celsius).0,
    };
    if thermal.critical_celsius < thermal.warning_celsius {
        section.problem(
            "critical",
            "`thermal.critical` is below `thermal.warning`",
            "a drive warns before it is too hot",
        );
    }
    thermal
}

fn nvme(section: &mut Section<'_>, name: &str) -> NvmeIdentity {
    let model_number = section.maybe("model_number", |section, key| {
        ascii(section, key, MODEL_NUMBER)
    });
    let shown = |c: char| {
        if c.is_ascii_graphic() || c == ' ' {
            c
        } else {
            '?'
        }
    };
    NvmeIdentity {
        model_number: model_number
            .unwrap_or_else(|| name.chars().map(shown).take(MODEL_NUMBER).collect()),
        serial_prefix: ascii(section, "serial_prefix", 12),
        firmware: ascii(section, "firmware", FIRMWARE),
        vendor_id: section.count("vendor_id", 0..=u16::MAX),
        log_pages: section
            .maybe("log_pages", |section, key| section.choice(key, &LOG_PAGES))
            .unwrap_or_default(),
    }
}

/// Reads a text in printable ASCII of at most `most` characters.
fn ascii(section: &mut Section<'_>, key: &str, most: usize) -> String {
    let text = section.text(key);
    let printable = text.chars().all(|c| c.is_ascii_graphic() || c == ' ');
    if printable && text.len() <= most {
        return text;
    }
    section.problem(
        key,
        format!("`nvme.{key}` does not fit"),
        format!("write at most {most} characters of printable ASCII"),
    );
    String::new()
}

impl Administration {
    /// Records the problems that only appear in combination with the medium.
    pub(super) fn check(&self, root: &mut Section<'_>, config: &DriveConfig) {
        if self.power_loss_protection == Some(true) && config.volatile_write_cache() {
            root.problem(
                "power_loss_protection",
                "the drive has power-loss protection, but its write buffer is volatile",
                "set `protected` of the buffer, or of a disk `write_cache` to false",
            );
        }
        let settings = &self.management.power_limits_watts;
        let idle = config.idle_watts();
        if settings.is_empty() {
            return;
        }
        if config.power_limit_watts().is_none() {
            root.problem(
                "power_settings",
                "`power_settings` for a drive whose model has no power governor",
                "leave it out",
            );
        } else if settings.iter().any(|&watts| watts <= idle) {
            let what = format!("a power setting is not above the idle power of {idle} W");
            root.problem(
                "power_settings",
                what,
                "the governor cannot limit power to less than idle power",
            );
        }
    }
}
