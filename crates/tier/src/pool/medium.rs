//! A pool as a [`Medium`]: each call is forwarded to its members.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::data::{Bytes, DataBackedDrive, NullContents};
use model::management::{LbaFormat, Refusal};
use model::media::nand::WarmState;
use model::media::{Medium, MediumDrive, Precondition, Seeds};
use model::time::{Span, Time};

use super::Pool;
use crate::TierSettings;
use crate::config::{PoolConfig, Target};
use crate::members::{all, members};

impl<M: Medium> PoolConfig<M> {
    /// Creates a pool whose members can have faults, without data; without faults, it behaves like a pool created by
    /// [`Medium::build`].
    pub fn vulnerable(
        &self,
        state: Precondition,
        seeds: impl Into<Seeds>,
    ) -> Pool<DataBackedDrive<M::Drive, NullContents>> {
        let drives = members(Vec::new(), self.in_state(state), seeds.into());
        let kept = drives
            .into_iter()
            .zip(self.drives())
            .map(|(drive, config)| {
                let volatile = config.volatile_write_cache();
                DataBackedDrive::new(drive, NullContents, Bytes::default(), volatile)
            });
        Pool::new(self, kept.collect())
    }

    fn drives(&self) -> impl Iterator<Item = &M> {
        self.members.iter().map(|member| &member.drive)
    }

    /// Returns the drives, each with its initial state in a pool of this state. A member that is only written as a ring
    /// has been written sequentially several times, and not at random.
    fn in_state(&self, state: Precondition) -> impl Iterator<Item = (&M, Precondition)> {
        let rings = self.rings().into_iter();
        self.drives()
            .zip(rings.map(move |ring| state.of_member(ring)))
    }

    fn drives_mut(&mut self) -> impl Iterator<Item = &mut M> {
        self.members.iter_mut().map(|member| &mut member.drive)
    }
}

impl<M: Medium> Medium for PoolConfig<M> {
    type Drive = Pool<M::Drive>;

    /// The first member has the unchanged seed.
    fn build(&self, state: Precondition, seeds: impl Into<Seeds>) -> Pool<M::Drive> {
        Pool::new(
            self,
            members(Vec::new(), self.in_state(state), seeds.into()),
        )
    }

    /// Problems of its members and of their tiers.
    fn impossible(&self) -> Vec<String> {
        let mut problems: Vec<String> = self.drives().flat_map(Medium::impossible).collect();
        problems.extend(self.problems());
        problems
    }

    fn capacity_bytes(&self) -> u64 {
        self.bytes()
    }

    /// Scales members, slices and limits of tiers by one factor; unchanged if a tier cannot be scaled.
    fn shrunk(&self, bytes: u64) -> PoolConfig<M> {
        let factor = bytes as f64 / self.bytes().max(1) as f64;
        if factor >= 1.0 || self.tiers.iter().any(|it| !it.kind.shrinks()) {
            return self.clone();
        }
        let mut shrunk = self.clone();
        // Members cannot be scaled to any size: each slice gets its share of its member's new size.
        let mut shares = Vec::new();
        for member in &mut shrunk.members {
            let before = member.drive.capacity_bytes();
            let wanted = libm::ceil(before as f64 * factor) as u64;
            member.drive = member.drive.shrunk(wanted);
            shares.push(member.drive.capacity_bytes() as f64 / before.max(1) as f64);
        }
        for tier in &mut shrunk.tiers {
            tier.kind.shrink(factor);
        }
        let whole = |bytes: u64, share: f64| (bytes as f64 * share) as u64 / 4096 * 4096;
        for target in shrunk.tiers.iter_mut().flat_map(|it| &mut it.children) {
            if let Target::Slice {
                member,
                base,
                bytes,
            } = target
            {
                let share = shares[usize::from(*member)];
                let end = whole(*base + *bytes, share);
                *base = whole(*base, share);
                *bytes = end - *base;
            }
        }
        shrunk
    }

    fn set_lba_format(&mut self, format: LbaFormat) {
        self.drives_mut().for_each(|it| it.set_lba_format(format));
    }

    /// Duration of its slowest member.
    fn format_duration(&self) -> Span {
        let members = self.drives().map(Medium::format_duration);
        members.max().unwrap_or(Span::ZERO)
    }

    fn idle_watts(&self) -> f64 {
        let tiers = self.tiers.iter().map(|it| it.kind.idle_watts());
        self.drives().map(Medium::idle_watts).chain(tiers).sum()
    }

    fn raw_bytes(&self) -> Option<u64> {
        self.drives().map(Medium::raw_bytes).sum()
    }

    /// The tiers split commands as necessary: the smallest limit of all members.
    fn max_transfer(&self) -> Option<u32> {
        self.drives().filter_map(Medium::max_transfer).min()
    }

    /// Volatile bytes of its members, unless the pool's acknowledged data is durable nevertheless.
    fn volatile_bytes(&self) -> u64 {
        match self.needs_flushes() {
            true => self.drives().map(Medium::volatile_bytes).sum(),
            false => 0,
        }
    }

    /// Whether its durability guarantee needs flushes: a tier may protect data that its members would lose.
    fn volatile_write_cache(&self) -> bool {
        self.needs_flushes()
    }

    /// Percentage Used of the member that has used most.
    fn percentage_used(&self) -> f64 {
        self.drives()
            .map(Medium::percentage_used)
            .fold(0.0, f64::max)
    }

    fn set_percentage_used(&mut self, percent: f64) -> Result<(), Refusal> {
        all(self.drives_mut().map(|it| it.set_percentage_used(percent)))
    }

    /// Members that do not wear stay as they are, if any member wears.
    fn set_wear_factor(&mut self, factor: f64) -> Result<(), Refusal> {
        let set: Vec<_> = self
            .drives_mut()
            .map(|it| it.set_wear_factor(factor))
            .collect();
        match set.iter().any(Result::is_ok) {
            true => Ok(()),
            false => all(set.into_iter()),
        }
    }

    /// Whether any of its members collects garbage.
    fn collects(&self) -> bool {
        self.drives().any(Medium::collects)
    }

    /// Tiers are laid out by the sizes of their members, which must be set before the pool is composed.
    fn set_overprovision(&mut self, _share: f64) -> Result<(), Refusal> {
        Err(Refusal::OF_MEMBERS)
    }

    /// Sets each member to this share.
    fn set_filled(&mut self, share: f64) -> Result<(), Refusal> {
        all(self.drives_mut().map(|it| it.set_filled(share)))
    }

    /// Threshold of the first member to reach its own.
    fn write_protect_percent(&self) -> Option<f64> {
        let members = self.drives().filter_map(Medium::write_protect_percent);
        members.reduce(f64::min)
    }

    /// Limit of the first member.
    fn power_limit_watts(&self) -> Option<f64> {
        self.drives().next()?.power_limit_watts()
    }

    /// Each member needs a governor.
    fn set_power_limit(&mut self, watts: f64) -> Result<(), Refusal> {
        all(self.drives_mut().map(|it| it.set_power_limit(watts)))
    }

    fn set_uptime(&mut self, uptime: Span) -> Result<(), Refusal> {
        all(self.drives_mut().map(|it| it.set_uptime(uptime)))
    }
}

impl<L: MediumDrive> Pool<L> {
    /// Changing a member from outside may change its next event.
    fn each<R>(&mut self, mut what: impl FnMut(&mut L) -> R) -> Vec<R> {
        let below = &mut self.below;
        let results = below.members.iter_mut().map(&mut what).collect();
        for (index, member) in below.members.iter().enumerate() {
            below.next.set(index, member.next_event());
        }
        results
    }
}

impl<L: MediumDrive> MediumDrive for Pool<L> {
    type Config = PoolConfig<L::Config>;

    fn reset(
        self,
        config: &PoolConfig<L::Config>,
        state: Precondition,
        seeds: impl Into<Seeds>,
    ) -> Pool<L> {
        let used = self.below.members;
        Pool::new(config, members(used, config.in_state(state), seeds.into()))
    }

    fn know(&mut self, states: &[Arc<WarmState>], again: bool) {
        self.each(|member| member.know(states, again));
    }

    fn warm_states(&self, tell: &mut dyn FnMut(&Arc<WarmState>)) {
        for member in &self.below.members {
            member.warm_states(tell);
        }
    }

    fn set_power_limit(&mut self, watts: f64) -> Result<(), Refusal> {
        all(self.each(|it| it.set_power_limit(watts)).into_iter())
    }

    fn set_percentage_used(&mut self, percent: f64) -> Result<(), Refusal> {
        all(self.each(|it| it.set_percentage_used(percent)).into_iter())
    }

    fn power_on(&mut self, now: Time) {
        self.each(|member| member.power_on(now));
    }

    fn prepare(&mut self) {
        self.each(MediumDrive::prepare);
    }

    fn scattered_tables(&mut self, tell: &mut dyn FnMut(core::ops::Range<*const u8>)) {
        for member in &mut self.below.members {
            member.scattered_tables(tell);
        }
    }
}
