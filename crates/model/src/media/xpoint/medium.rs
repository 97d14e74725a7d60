//! An XPoint drive as a [`Medium`]: construction, and administrative settings and properties.

use alloc::string::String;
use alloc::vec::Vec;

use super::{XPoint, XPointConfig};
use crate::management::LbaFormat;
use crate::management::refusal::{Refusal, percentage, provisioned, wear_factor};
use crate::media::{Medium, MediumDrive, Precondition, Seeds};
use crate::time::{Span, Time};

impl Medium for XPointConfig {
    type Drive = XPoint;

    /// Written in place: earlier writes have no effect.
    fn build(&self, _state: Precondition, seeds: impl Into<Seeds>) -> XPoint {
        let seed = seeds.into().run;
        XPoint::new(self.clone(), seed)
    }

    fn impossible(&self) -> Vec<String> {
        self.problems()
    }

    fn capacity_bytes(&self) -> u64 {
        self.bytes
    }

    /// Written in place: only fewer addresses are in use.
    fn shrunk(&self, bytes: u64) -> XPointConfig {
        XPointConfig {
            bytes: self.bytes.min((bytes / 4096).max(1) * 4096),
            ..self.clone()
        }
    }

    fn set_lba_format(&mut self, format: LbaFormat) {
        let timing = &mut self.timing;
        for ps in [
            &mut timing.link_ps_per_byte,
            &mut timing.read_path_ps_per_byte,
            &mut timing.write_path_ps_per_byte,
        ] {
            *ps = format.longer(*ps);
        }
        self.block = format.data;
    }

    /// All dies at once, each from start to end, spare area included.
    fn format_duration(&self) -> Span {
        Span::from_seconds(self.die_bytes as f64 / self.format_die_bytes_per_second as f64)
    }

    fn idle_watts(&self) -> f64 {
        self.power.idle_watts
    }

    fn raw_bytes(&self) -> Option<u64> {
        Some(self.die_bytes * u64::from(self.channels) * u64::from(self.dies_per_channel))
    }

    fn max_transfer(&self) -> Option<u32> {
        Some(self.max_transfer)
    }

    fn percentage_used(&self) -> f64 {
        self.wear.percentage_used_at_start
    }

    fn set_percentage_used(&mut self, percent: f64) -> Result<(), Refusal> {
        self.wear.percentage_used_at_start = percentage(percent)?;
        Ok(())
    }

    fn set_wear_factor(&mut self, factor: f64) -> Result<(), Refusal> {
        self.wear.factor = wear_factor(factor)?;
        Ok(())
    }

    /// Written in place: only fewer addresses are in use.
    fn set_overprovision(&mut self, share: f64) -> Result<(), Refusal> {
        self.bytes = provisioned(self.bytes, share, 4096)?;
        Ok(())
    }

    fn write_protect_percent(&self) -> Option<f64> {
        Some(self.wear.protect_at_percent)
    }

    fn power_limit_watts(&self) -> Option<f64> {
        Some(self.power.limit_watts)
    }

    fn set_power_limit(&mut self, watts: f64) -> Result<(), Refusal> {
        if watts.is_nan() || watts <= self.power.idle_watts {
            return Err(Refusal::BELOW_IDLE);
        }
        self.power.limit_watts = watts;
        Ok(())
    }

    fn set_uptime(&mut self, uptime: Span) -> Result<(), Refusal> {
        self.refresh.uptime_at_start = uptime;
        Ok(())
    }
}

impl MediumDrive for XPoint {
    type Config = XPointConfig;

    fn set_power_limit(&mut self, watts: f64) -> Result<(), Refusal> {
        self.config.set_power_limit(watts)?;
        self.governor.change(&self.config);
        Ok(())
    }

    fn set_percentage_used(&mut self, percent: f64) -> Result<(), Refusal> {
        let since = self.endurance.percentage_used() - self.config.percentage_used();
        self.config.wear.percentage_used_at_start = percentage(percent)? - since;
        self.endurance.change(&self.config);
        Ok(())
    }

    /// The refresh pass after power-on restarts.
    fn power_on(&mut self, now: Time) {
        let pass = self.config.refresh.after_power_on;
        self.refreshed.power_on(now, &self.config);
        self.medium.power_on(now, pass);
    }
}
