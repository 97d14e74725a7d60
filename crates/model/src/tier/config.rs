//! What a pool is made of: members, what stands on them, and which of it is served.
//!
//! Generic over what a member is made of, so that this knows no medium. Left out: where it was written down.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::{AnyTier, ClusterConfig, Concat, ConcatConfig, Kind, Promise, TierSettings};
use crate::media::medium::Medium;

/// Bytes at the end of each member, or of each slice of one, that are kept for the pool's label, unless a pool says
/// otherwise.
pub const LABEL_BYTES: u64 = 1 << 20;

/// A drive of a pool.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Member<M> {
    /// What the pool calls it, such as `nda.0`.
    pub name: String,
    /// What it is made of.
    pub drive: M,
}

/// What a tier stands on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Target {
    /// A part of a member, or all of it. The last bytes of it hold a label.
    Slice {
        /// Which member, from 0.
        member: u16,
        /// Its first byte, a multiple of 4096.
        base: u64,
        /// How many, a multiple of 4096.
        bytes: u64,
    },
    /// Another tier, which stands before this one in [`PoolConfig::tiers`].
    Tier(u16),
}

/// A tier of a pool.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TierConfig {
    /// What the pool calls it.
    pub name: String,
    /// What it does.
    pub kind: Kind,
    /// What it stands on, in the order that its kind gives them a meaning.
    pub children: Vec<Target>,
}

/// What a pool is made of: valid if [`PoolConfig::problems`] says nothing.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PoolConfig<M> {
    /// The drives.
    pub members: Vec<Member<M>>,
    /// The tiers, each after those that it stands on.
    pub tiers: Vec<TierConfig>,
    /// The tiers that are served, one after the other in the pool's addresses; at least one.
    pub volumes: Vec<u16>,
    /// Bytes at the end of each slice that are kept for a label, a multiple of 4096.
    pub label_bytes: u64,
}

/// A part of a pool's addresses with a name of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Volume {
    /// That of its tier.
    pub name: String,
    /// First byte.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
}

impl<M: Medium> PoolConfig<M> {
    /// Bytes that what stands on it can use, of each tier, in their order.
    pub fn capacities(&self) -> Vec<u64> {
        let mut capacities = Vec::with_capacity(self.tiers.len());
        for tier in &self.tiers {
            let children = self.sizes(&tier.children, &capacities);
            capacities.push(tier.kind.capacity(&children));
        }
        capacities
    }

    /// Bytes of each of these that can be used, given those of the tiers before.
    pub(super) fn sizes(&self, targets: &[Target], tiers: &[u64]) -> Vec<u64> {
        let size = |target: &Target| match *target {
            Target::Slice { bytes, .. } => bytes.saturating_sub(self.label_bytes),
            Target::Tier(index) => tiers.get(usize::from(index)).copied().unwrap_or(0),
        };
        targets.iter().map(size).collect()
    }

    /// Bytes of each child of a tier that it can use, in their order.
    pub fn child_bytes(&self, tier: usize) -> Vec<u64> {
        self.sizes(&self.tiers[tier].children, &self.capacities())
    }

    /// The tiers as new, in their order.
    pub fn build_tiers(&self) -> Vec<AnyTier> {
        let capacities = self.capacities();
        let build = |tier: &TierConfig| tier.kind.build(&self.sizes(&tier.children, &capacities));
        self.tiers.iter().map(build).collect()
    }

    /// The volumes, in order; each is cut to whole MiB if there are several.
    pub fn volumes(&self) -> Vec<Volume> {
        let capacities = self.capacities();
        let sizes: Vec<u64> = self
            .volumes
            .iter()
            .map(|&tier| capacities[usize::from(tier)])
            .collect();
        let sizes = Concat::sizes(&sizes);
        let mut offset = 0;
        let mut volumes = Vec::with_capacity(sizes.len());
        for (&tier, bytes) in self.volumes.iter().zip(sizes) {
            volumes.push(Volume {
                name: self.tiers[usize::from(tier)].name.clone(),
                offset,
                bytes,
            });
            offset += bytes;
        }
        volumes
    }

    /// Bytes a host can address: of all volumes.
    pub fn bytes(&self) -> u64 {
        self.volumes().iter().map(|volume| volume.bytes).sum()
    }

    /// What each tier promises, in their order.
    pub fn promises(&self) -> Vec<Promise> {
        let mut promises: Vec<Promise> = Vec::with_capacity(self.tiers.len());
        for tier in &self.tiers {
            let of = |target: &Target| match *target {
                Target::Slice { member, .. } => {
                    let drive = &self.members[usize::from(member)].drive;
                    Promise::of_member(member, drive.volatile_write_cache())
                }
                Target::Tier(index) => promises[usize::from(index)].clone(),
            };
            let children: Vec<Promise> = tier.children.iter().map(of).collect();
            promises.push(tier.kind.promise(&children));
        }
        promises
    }

    /// What all volumes together promise.
    pub fn promise(&self) -> Promise {
        let promises = self.promises();
        let of = |&tier: &u16| promises[usize::from(tier)].clone();
        ConcatConfig {}.promise(&self.volumes.iter().map(of).collect::<Vec<_>>())
    }

    /// What a tier promises, in words.
    pub fn promise_words(&self, tier: u16) -> String {
        let promise = &self.promises()[usize::from(tier)];
        match &self.tiers[usize::from(tier)].kind {
            Kind::Cluster(cluster) => cluster.promise_words(promise.durable),
            _ => promise.words(&self.names()),
        }
    }

    /// What all volumes together promise, in words.
    pub fn words(&self) -> String {
        match self.volumes[..] {
            [one] => self.promise_words(one),
            _ => self.promise().words(&self.names()),
        }
    }

    fn names(&self) -> Vec<String> {
        self.members.iter().map(|it| it.name.clone()).collect()
    }

    /// The cluster that it is served as, if it is one.
    pub fn cluster(&self) -> Option<&ClusterConfig> {
        match (&self.volumes[..], &self.tiers[..]) {
            ([one], tiers) => match &tiers.get(usize::from(*one))?.kind {
                Kind::Cluster(cluster) => Some(cluster),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a flush means something: an acknowledged write may not be durable.
    pub fn needs_flushes(&self) -> bool {
        self.promise().durable > super::Durable::Acknowledged
    }

    /// Whether its tiers can be found again on its members after a crash, so that data may be kept by member.
    pub fn recovers(&self) -> bool {
        self.tiers.iter().all(|tier| tier.kind.recovers()) && !self.labels_on_a_log()
    }

    /// Whether a tier that has labels or superblocks, which are written while nothing runs, stands on an intent log, which takes
    /// writes only while it runs: such a pool cannot be found again.
    pub fn labels_on_a_log(&self) -> bool {
        let has_labels = |kind: &Kind| {
            matches!(
                kind,
                Kind::Mirror(_)
                    | Kind::Raid5(_)
                    | Kind::Raid6(_)
                    | Kind::WriteBack(_)
                    | Kind::IntentLog(_)
            )
        };
        let mut tiers = self.tiers.iter().filter(|tier| has_labels(&tier.kind));
        tiers.any(|tier| tier.children.iter().any(|it| self.is_on_a_log(it)))
    }

    /// Whether some of what it has is an intent log's.
    fn is_on_a_log(&self, target: &Target) -> bool {
        let &Target::Tier(index) = target else {
            return false;
        };
        let tier = &self.tiers[usize::from(index)];
        matches!(tier.kind, Kind::IntentLog(_))
            || tier.children.iter().any(|it| self.is_on_a_log(it))
    }

    /// By member: whether all that is used of it is a write-back cache's ring, or what that ring lies on.
    pub fn rings(&self) -> Vec<bool> {
        let mut rings = vec![true; self.members.len()];
        let mut used = vec![false; self.members.len()];
        let mut below = vec![false; self.tiers.len()];
        // Tiers come after what they stand on.
        for (index, tier) in self.tiers.iter().enumerate().rev() {
            for (child, target) in tier.children.iter().enumerate() {
                let is_ring = match &tier.kind {
                    Kind::WriteBack(_) => child == 0,
                    Kind::Mirror(_) | Kind::Stripe(_) | Kind::Concat(_) => below[index],
                    _ => false,
                };
                match *target {
                    Target::Tier(tier) => below[usize::from(tier)] = is_ring,
                    Target::Slice { member, .. } => {
                        rings[usize::from(member)] &= is_ring;
                        used[usize::from(member)] = true;
                    }
                }
            }
        }
        rings
            .iter()
            .zip(used)
            .map(|(&ring, used)| ring && used)
            .collect()
    }

    /// Why there is no such pool; nothing if there is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.members.is_empty() || self.members.len() > usize::from(u16::MAX) {
            problems.push(format!(
                "a pool has 1 to 65535 members, not {}",
                self.members.len()
            ));
        }
        if self.volumes.is_empty() {
            problems.push(String::from("a pool serves at least one volume"));
        }
        if !self.label_bytes.is_multiple_of(4096) {
            problems.push(String::from("labels are not of whole 4 KiB"));
        }
        let mut used = vec![Vec::new(); self.members.len()];
        let mut above = vec![0u32; self.tiers.len()];
        for &volume in &self.volumes {
            match above.get_mut(usize::from(volume)) {
                Some(count) => *count += 1,
                None => problems.push(format!("no tier {volume} to serve")),
            }
        }
        for (index, tier) in self.tiers.iter().enumerate() {
            for target in &tier.children {
                match *target {
                    Target::Tier(child) if usize::from(child) < index => {
                        above[usize::from(child)] += 1;
                    }
                    Target::Tier(child) => problems.push(format!(
                        "{}: tier {child} does not stand before it",
                        tier.name
                    )),
                    Target::Slice {
                        member,
                        base,
                        bytes,
                    } => match used.get_mut(usize::from(member)) {
                        Some(slices) => slices.push((base, bytes, index)),
                        None => problems.push(format!("{}: no member {member}", tier.name)),
                    },
                }
            }
        }
        for (tier, count) in self.tiers.iter().zip(&above) {
            if *count != 1 {
                problems.push(format!(
                    "{} is in {count} places, and should be in one",
                    tier.name
                ));
            }
        }
        self.check_whole_blocks(&mut problems);
        for (member, slices) in self.members.iter().zip(&mut used) {
            self.check_slices(member, slices, &mut problems);
        }
        // Sizes and counts mean something only where everything names what there is.
        if problems.is_empty() {
            let capacities = self.capacities();
            for tier in &self.tiers {
                let children = self.sizes(&tier.children, &capacities);
                let found = tier.kind.problems(&children);
                problems.extend(found.iter().map(|what| format!("{}: {what}", tier.name)));
            }
        }
        problems
    }

    /// What must not be changed in place has a tier above it that keeps to that, directly or through others.
    fn check_whole_blocks(&self, problems: &mut Vec<String>) {
        // Of each tier the one at or below it that is not to be changed in place.
        let mut needs = vec![None; self.tiers.len()];
        for (index, tier) in self.tiers.iter().enumerate() {
            let below = |target: &Target| match *target {
                Target::Slice { .. } => None,
                Target::Tier(child) => needs.get(usize::from(child)).copied().flatten(),
            };
            let passed_on = match tier.kind.writes_whole_blocks() {
                true => None,
                false => tier.children.iter().find_map(below),
            };
            needs[index] = match tier.kind.needs_whole_blocks() {
                true => Some(index),
                false => passed_on,
            };
        }
        for &volume in &self.volumes {
            let Some(Some(needs)) = needs.get(usize::from(volume)) else {
                continue;
            };
            problems.push(format!(
                "{}: its blocks may not be changed in place, so that it serves as main of an intent-log only; a pool with parity of its own is a raid5 or raid6",
                self.tiers[*needs].name
            ));
        }
    }

    /// Slices lie within their member, on whole blocks and not on each other.
    fn check_slices(
        &self,
        member: &Member<M>,
        slices: &mut [(u64, u64, usize)],
        problems: &mut Vec<String>,
    ) {
        slices.sort_unstable();
        let held = member.drive.capacity_bytes();
        let mut end = 0;
        for &(base, bytes, tier) in &*slices {
            let tier = &self.tiers[tier].name;
            let name = &member.name;
            if !base.is_multiple_of(4096) || !bytes.is_multiple_of(4096) {
                problems.push(format!("{tier}: its slice of {name} is not of whole 4 KiB"));
            }
            if bytes <= self.label_bytes {
                problems.push(format!(
                    "{tier}: its slice of {name} has {bytes} bytes, and its label takes {}",
                    self.label_bytes
                ));
            }
            if base < end {
                problems.push(format!("{tier}: its slice of {name} lies on another"));
            }
            end = base.saturating_add(bytes);
            if end > held {
                problems.push(format!(
                    "{tier}: its slice of {name} ends at {end}, the drive holds {held}"
                ));
            }
        }
    }
}
