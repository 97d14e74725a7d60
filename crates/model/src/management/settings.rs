//! What an administrator may set: on a configuration before a run, and on a drive while it runs.
//!
//! A RAID-0 passes each setting to its members. A setting that a drive does not have is refused, never ignored.

use std::fmt;

use super::LbaFormat;
use crate::media::{Drive, DriveConfig};
use crate::time::{Span, Time};

/// Why a drive does not do what it is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It has no such thing; what would be right.
    Unsupported(&'static str),
    /// The value cannot be; what would be right.
    Invalid(&'static str),
    /// It has commands inside, or another operation is in progress.
    Busy,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Unsupported(what) | Refusal::Invalid(what) => f.write_str(what),
            Refusal::Busy => f.write_str("the drive is busy: wait for what is in progress"),
        }
    }
}

impl std::error::Error for Refusal {}

const NO_GOVERNOR: Refusal = Refusal::Unsupported("this drive's model has no power governor");
const NO_WEAR: Refusal = Refusal::Unsupported("this drive's medium does not wear");
const NO_REFRESH: Refusal =
    Refusal::Unsupported("this drive's model does nothing special after power-on");
const BELOW_IDLE: Refusal =
    Refusal::Invalid("the power limit must be above the drive's idle power");
const NO_PERCENTAGE: Refusal = Refusal::Invalid("Percentage Used must be from 0 to 1000");

fn percentage(percent: f64) -> Result<f64, Refusal> {
    let valid = (0.0..=1000.0).contains(&percent);
    valid.then_some(percent).ok_or(NO_PERCENTAGE)
}

/// Applies to each member; all are tried, the first refusal is reported.
fn all(results: impl Iterator<Item = Result<(), Refusal>>) -> Result<(), Refusal> {
    results.fold(Ok(()), Result::and)
}

impl DriveConfig {
    /// Sets the governor's limit in watts, above idle power.
    ///
    /// # Errors
    /// If there is no governor, or the limit is not above idle power. A RAID-0 needs one in each member.
    pub fn set_power_limit(&mut self, watts: f64) -> Result<(), Refusal> {
        match self {
            DriveConfig::XPoint(config) => {
                if watts.is_nan() || watts <= config.power.idle_watts {
                    return Err(BELOW_IDLE);
                }
                config.power.limit_watts = watts;
                Ok(())
            }
            DriveConfig::Raid0(config) => all(config
                .members
                .iter_mut()
                .map(|it| it.set_power_limit(watts))),
            DriveConfig::Nand(_) | DriveConfig::Ram(_) => Err(NO_GOVERNOR),
        }
    }

    /// The governor's limit in watts, if there is a governor; that of the first member of a RAID-0.
    pub fn power_limit_watts(&self) -> Option<f64> {
        match self {
            DriveConfig::XPoint(config) => Some(config.power.limit_watts),
            DriveConfig::Raid0(config) => config.members.first()?.power_limit_watts(),
            DriveConfig::Nand(_) | DriveConfig::Ram(_) => None,
        }
    }

    /// Watts without work.
    pub fn idle_watts(&self) -> f64 {
        match self {
            DriveConfig::XPoint(config) => config.power.idle_watts,
            DriveConfig::Nand(config) => config.power.idle,
            DriveConfig::Ram(_) => 0.0,
            DriveConfig::Raid0(config) => config.members.iter().map(DriveConfig::idle_watts).sum(),
        }
    }

    /// SMART's Percentage Used at the start; that of a RAID-0 is the mean of its members.
    pub fn percentage_used(&self) -> f64 {
        match self {
            DriveConfig::XPoint(config) => config.wear.percentage_used_at_start,
            DriveConfig::Nand(config) => config.percentage_used_at_start,
            DriveConfig::Ram(_) => 0.0,
            DriveConfig::Raid0(config) => {
                let members = config.members.iter().map(DriveConfig::percentage_used);
                members.sum::<f64>() / config.members.len().max(1) as f64
            }
        }
    }

    /// Sets SMART's Percentage Used at the start.
    ///
    /// # Errors
    /// If the medium does not wear, or the percentage is not in 0 to 1000.
    pub fn set_percentage_used(&mut self, percent: f64) -> Result<(), Refusal> {
        let percent = percentage(percent)?;
        match self {
            DriveConfig::XPoint(config) => config.wear.percentage_used_at_start = percent,
            DriveConfig::Nand(config) => config.percentage_used_at_start = percent,
            DriveConfig::Raid0(config) => {
                let members = config.members.iter_mut();
                return all(members.map(|it| it.set_percentage_used(percent)));
            }
            DriveConfig::Ram(_) => return Err(NO_WEAR),
        }
        Ok(())
    }

    /// Sets how long the drive has been on when the run begins.
    ///
    /// # Errors
    /// If nothing in it depends on that.
    pub fn set_uptime(&mut self, uptime: Span) -> Result<(), Refusal> {
        match self {
            DriveConfig::XPoint(config) => {
                config.refresh.uptime_at_start = uptime;
                Ok(())
            }
            DriveConfig::Raid0(config) => {
                all(config.members.iter_mut().map(|it| it.set_uptime(uptime)))
            }
            DriveConfig::Nand(_) | DriveConfig::Ram(_) => Err(NO_REFRESH),
        }
    }

    /// Changes the LBA format from one without metadata, in which the configuration is, to any. Metadata travels and is
    /// stored with the data: link and data paths take that much longer for each block.
    pub fn set_lba_format(&mut self, format: LbaFormat) {
        let longer = |ps: &mut u64| {
            let share = f64::from(format.metadata) / f64::from(format.data);
            *ps = libm::round(*ps as f64 * (1.0 + share)) as u64;
        };
        match self {
            DriveConfig::XPoint(config) => {
                config.block = format.data;
                longer(&mut config.timing.link_ps_per_byte);
                longer(&mut config.timing.read_path_ps_per_byte);
                longer(&mut config.timing.write_path_ps_per_byte);
            }
            DriveConfig::Nand(config) => {
                config.block = format.data;
                longer(&mut config.timing.channel_ps_per_byte);
                longer(&mut config.controller.link_ps_per_byte);
            }
            DriveConfig::Raid0(config) => {
                for member in &mut config.members {
                    member.set_lba_format(format);
                }
            }
            DriveConfig::Ram(config) => longer(&mut config.picoseconds_per_byte),
        }
    }

    /// How long a FORMAT takes. XPoint: all dies at once, each from end to end, spare included. NAND: all dies at once
    /// erase their blocks. RAM: all of it is overwritten. A RAID-0 takes as long as its slowest member.
    pub fn format_duration(&self) -> Span {
        match self {
            DriveConfig::XPoint(config) => config.format_duration(),
            DriveConfig::Nand(config) => {
                config.timing.erase * u64::from(config.geometry.blocks_per_plane)
            }
            DriveConfig::Ram(config) => {
                Span::from_seconds(config.picoseconds_per_byte as f64 * config.bytes as f64 * 1e-12)
            }
            DriveConfig::Raid0(config) => {
                let members = config.members.iter().map(DriveConfig::format_duration);
                members.max().unwrap_or(Span::ZERO)
            }
        }
    }

    /// Bytes of all dies, spare included; `None` for what has no dies.
    pub fn raw_bytes(&self) -> Option<u64> {
        match self {
            DriveConfig::XPoint(config) => Some(
                config.die_bytes * u64::from(config.channels) * u64::from(config.dies_per_channel),
            ),
            DriveConfig::Nand(config) => {
                let it = &config.geometry;
                let factors = [
                    it.dies_per_channel,
                    it.planes,
                    it.blocks_per_plane,
                    it.pages_per_block,
                    it.page_bytes,
                ];
                let channels = u64::from(it.channels);
                Some(
                    factors
                        .iter()
                        .fold(channels, |all, &factor| all * u64::from(factor)),
                )
            }
            DriveConfig::Ram(_) => None,
            DriveConfig::Raid0(config) => config.members.iter().map(DriveConfig::raw_bytes).sum(),
        }
    }

    /// Largest command in bytes; `None` where the drive takes any.
    pub fn max_transfer(&self) -> Option<u32> {
        match self {
            DriveConfig::XPoint(config) => Some(config.max_transfer),
            DriveConfig::Nand(config) => Some(config.controller.max_transfer),
            DriveConfig::Ram(_) => None,
            DriveConfig::Raid0(config) => config
                .members
                .iter()
                .filter_map(DriveConfig::max_transfer)
                .min(),
        }
    }

    /// Whether what was acknowledged but not flushed is lost when power goes (NVMe's volatile write cache). A RAM disk
    /// loses everything, flushed or not, so there it says no.
    pub fn volatile_write_cache(&self) -> bool {
        match self {
            DriveConfig::XPoint(_) | DriveConfig::Ram(_) => false,
            DriveConfig::Nand(config) => !config.buffer.protected,
            DriveConfig::Raid0(config) => {
                config.members.iter().any(DriveConfig::volatile_write_cache)
            }
        }
    }

    /// Percentage Used at which the drive throttles its writes for good, if it does.
    pub fn write_protect_percent(&self) -> Option<f64> {
        match self {
            DriveConfig::XPoint(config) => Some(config.wear.protect_at_percent),
            DriveConfig::Nand(_) | DriveConfig::Ram(_) => None,
            DriveConfig::Raid0(config) => {
                let members = config.members.iter();
                members
                    .filter_map(DriveConfig::write_protect_percent)
                    .reduce(f64::min)
            }
        }
    }
}

impl Drive {
    /// Sets the governor's limit in watts from now on, above idle power.
    ///
    /// # Errors
    /// As [`DriveConfig::set_power_limit`].
    pub fn set_power_limit(&mut self, watts: f64) -> Result<(), Refusal> {
        match self {
            Drive::XPoint(drive) => {
                let governed = drive.set_power_limit(watts);
                governed.then_some(()).ok_or(BELOW_IDLE)
            }
            Drive::Raid0(raid) => all(raid.members_mut().map(|it| it.set_power_limit(watts))),
            Drive::Nand(_) | Drive::Ram(_) => Err(NO_GOVERNOR),
        }
    }

    /// Sets SMART's Percentage Used as of now (to see the end of life without writing for years).
    ///
    /// # Errors
    /// As [`DriveConfig::set_percentage_used`].
    pub fn set_percentage_used(&mut self, percent: f64) -> Result<(), Refusal> {
        let percent = percentage(percent)?;
        match self {
            Drive::XPoint(drive) => drive.set_percentage_used(percent),
            Drive::Nand(drive) => drive.set_percentage_used(percent),
            Drive::Raid0(raid) => {
                return all(raid.members_mut().map(|it| it.set_percentage_used(percent)));
            }
            Drive::Ram(_) => return Err(NO_WEAR),
        }
        Ok(())
    }

    /// The drive has just been switched on: what it does after that begins again (the refresh of about three hours of
    /// an XPoint drive). Drives that do nothing special just go on.
    pub fn power_on(&mut self, now: Time) {
        match self {
            Drive::XPoint(drive) => drive.power_on(now),
            Drive::Raid0(raid) => raid.members_mut().for_each(|it| it.power_on(now)),
            Drive::Nand(_) | Drive::Ram(_) => {}
        }
    }
}
