//! A RAID-0 of drives as a [`Medium`]: each call is forwarded to its members.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::management::{LbaFormat, Refusal};
use model::media::nand::WarmState;
use model::media::{Medium, MediumDrive, Precondition, Seeds};
use model::time::{Span, Time};

use super::super::striping::Striping;
use super::{Raid0, Raid0Config};
use crate::members::{all, members};

impl<C: Medium> Medium for Raid0Config<C> {
    type Drive = Raid0<C::Drive>;

    /// The first member has the unchanged seed, so that a single member equals a drive without RAID.
    fn build(&self, state: Precondition, seeds: impl Into<Seeds>) -> Raid0<C::Drive> {
        let drives = members(
            Vec::new(),
            self.members.iter().map(|it| (it, state)),
            seeds.into(),
        );
        Raid0::new(drives, self.stripe)
    }

    fn impossible(&self) -> Vec<String> {
        let mut problems: Vec<String> = self.members.iter().flat_map(Medium::impossible).collect();
        if self.members.is_empty() || self.stripe == 0 || !self.stripe.is_multiple_of(512) {
            problems.push(String::from(
                "a RAID-0 must have members, and a stripe of whole sectors",
            ));
        }
        problems
    }

    /// Whole stripes of the smallest member, on all members.
    fn capacity_bytes(&self) -> u64 {
        Striping::capacity(
            self.members.iter().map(Medium::capacity_bytes),
            u64::from(self.stripe),
        )
    }

    fn shrunk(&self, bytes: u64) -> Raid0Config<C> {
        let each = bytes / self.members.len().max(1) as u64;
        Raid0Config {
            members: self.members.iter().map(|it| it.shrunk(each)).collect(),
            stripe: self.stripe,
        }
    }

    fn set_lba_format(&mut self, format: LbaFormat) {
        for member in &mut self.members {
            member.set_lba_format(format);
        }
    }

    /// Duration of its slowest member.
    fn format_duration(&self) -> Span {
        let members = self.members.iter().map(Medium::format_duration);
        members.max().unwrap_or(Span::ZERO)
    }

    fn idle_watts(&self) -> f64 {
        self.members.iter().map(Medium::idle_watts).sum()
    }

    fn raw_bytes(&self) -> Option<u64> {
        self.members.iter().map(Medium::raw_bytes).sum()
    }

    fn max_transfer(&self) -> Option<u32> {
        self.members.iter().filter_map(Medium::max_transfer).min()
    }

    fn volatile_bytes(&self) -> u64 {
        self.members.iter().map(Medium::volatile_bytes).sum()
    }

    /// The mean of its members.
    fn percentage_used(&self) -> f64 {
        let members = self.members.iter().map(Medium::percentage_used);
        members.sum::<f64>() / self.members.len().max(1) as f64
    }

    fn set_percentage_used(&mut self, percent: f64) -> Result<(), Refusal> {
        all(self
            .members
            .iter_mut()
            .map(|it| it.set_percentage_used(percent)))
    }

    fn set_wear_factor(&mut self, factor: f64) -> Result<(), Refusal> {
        all(self.members.iter_mut().map(|it| it.set_wear_factor(factor)))
    }

    /// Whether any of its members collects garbage.
    fn collects(&self) -> bool {
        self.members.iter().any(Medium::collects)
    }

    fn set_overprovision(&mut self, share: f64) -> Result<(), Refusal> {
        all(self
            .members
            .iter_mut()
            .map(|it| it.set_overprovision(share)))
    }

    fn set_filled(&mut self, share: f64) -> Result<(), Refusal> {
        all(self.members.iter_mut().map(|it| it.set_filled(share)))
    }

    /// Threshold of the first member to reach its own.
    fn write_protect_percent(&self) -> Option<f64> {
        let members = self.members.iter();
        members
            .filter_map(Medium::write_protect_percent)
            .reduce(f64::min)
    }

    /// Limit of the first member.
    fn power_limit_watts(&self) -> Option<f64> {
        self.members.first()?.power_limit_watts()
    }

    /// Each member needs a governor.
    fn set_power_limit(&mut self, watts: f64) -> Result<(), Refusal> {
        all(self.members.iter_mut().map(|it| it.set_power_limit(watts)))
    }

    fn set_uptime(&mut self, uptime: Span) -> Result<(), Refusal> {
        all(self.members.iter_mut().map(|it| it.set_uptime(uptime)))
    }
}

impl<D: MediumDrive> MediumDrive for Raid0<D> {
    type Config = Raid0Config<D::Config>;

    fn reset(
        self,
        config: &Raid0Config<D::Config>,
        state: Precondition,
        seeds: impl Into<Seeds>,
    ) -> Raid0<D> {
        let drives = members(
            self.members,
            config.members.iter().map(|it| (it, state)),
            seeds.into(),
        );
        Raid0::new(drives, config.stripe)
    }

    fn know(&mut self, states: &[Arc<WarmState>], again: bool) {
        for member in &mut self.members {
            member.know(states, again);
        }
    }

    fn warm_states(&self, tell: &mut dyn FnMut(&Arc<WarmState>)) {
        for member in &self.members {
            member.warm_states(tell);
        }
    }

    fn set_power_limit(&mut self, watts: f64) -> Result<(), Refusal> {
        all(self.members.iter_mut().map(|it| it.set_power_limit(watts)))
    }

    fn set_percentage_used(&mut self, percent: f64) -> Result<(), Refusal> {
        all(self
            .members
            .iter_mut()
            .map(|it| it.set_percentage_used(percent)))
    }

    fn power_on(&mut self, now: Time) {
        self.members.iter_mut().for_each(|it| it.power_on(now));
    }

    fn prepare(&mut self) {
        self.members.iter_mut().for_each(MediumDrive::prepare);
    }

    fn scattered_tables(&mut self, tell: &mut dyn FnMut(core::ops::Range<*const u8>)) {
        for member in &mut self.members {
            member.scattered_tables(tell);
        }
    }
}
