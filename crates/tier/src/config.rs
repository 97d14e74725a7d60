//! Configuration of a pool: members, tiers on them, and the volumes that are served.
//!
//! Generic over the configuration of a member, so that this module does not depend on media. Not here: the syntax of
//! pool files.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use model::media::medium::Medium;

use super::{AnyTier, ClusterConfig, Concat, ConcatConfig, Kind, Promise, TierSettings};

/// Default size in bytes of the label area at the end of each member, or of each slice of one.
pub const LABEL_BYTES: u64 = 1 << 20;

/// A drive of a pool.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Member<M> {
    /// Name in the pool, such as `nda.0`.
    pub name: String,
    /// Configuration of the drive.
    pub drive: M,
}

/// A child of a tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Target {
    /// A part of a member, or all of it. Its last bytes hold a label.
    Slice {
        /// Index of the member, counted from 0.
        member: u16,
        /// First byte, a multiple of 4096.
        base: u64,
        /// Length in bytes, a multiple of 4096.
        bytes: u64,
    },
    /// Another tier, which precedes this one in [`PoolConfig::tiers`].
    Tier(u16),
}

/// A tier of a pool.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TierConfig {
    /// Name in the pool.
    pub name: String,
    /// Kind of the tier, with its settings.
    pub kind: Kind,
    /// Children; their kind defines the meaning of the order.
    pub children: Vec<Target>,
}

/// Configuration of a pool: valid if [`PoolConfig::problems`] is empty.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PoolConfig<M> {
    /// The drives.
    pub members: Vec<Member<M>>,
    /// Tiers, each after its children.
    pub tiers: Vec<TierConfig>,
    /// Tiers that are served, in sequence in the pool's addresses; at least one.
    pub volumes: Vec<u16>,
    /// Size in bytes of the label area at the end of each slice, a multiple of 4096.
    pub label_bytes: u64,
}

/// A named part of a pool's addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolVolume {
    /// Name of its tier.
    pub name: String,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

impl<M: Medium> PoolConfig<M> {
    /// Returns the capacity in bytes of each tier, in order.
    pub fn capacities(&self) -> Vec<u64> {
        let mut capacities = Vec::with_capacity(self.tiers.len());
        for tier in &self.tiers {
            let children = self.sizes(&tier.children, &capacities);
            capacities.push(tier.kind.capacity(&children));
        }
        capacities
    }

    /// Returns the usable bytes of each target, given the capacities of the lower tiers.
    pub(super) fn sizes(&self, targets: &[Target], tiers: &[u64]) -> Vec<u64> {
        let size = |target: &Target| match *target {
            Target::Slice { bytes, .. } => bytes.saturating_sub(self.label_bytes),
            Target::Tier(index) => tiers.get(usize::from(index)).copied().unwrap_or(0),
        };
        targets.iter().map(size).collect()
    }

    /// Returns the usable bytes of each child of a tier, in order.
    pub fn child_bytes(&self, tier: usize) -> Vec<u64> {
        self.sizes(&self.tiers[tier].children, &self.capacities())
    }

    /// Creates the tiers in their initial state, in order.
    pub fn build_tiers(&self) -> Vec<AnyTier> {
        let capacities = self.capacities();
        let build = |tier: &TierConfig| tier.kind.build(&self.sizes(&tier.children, &capacities));
        self.tiers.iter().map(build).collect()
    }

    /// Returns the volumes, in order; each is truncated to whole MiB if there are several.
    pub fn volumes(&self) -> Vec<PoolVolume> {
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
            volumes.push(PoolVolume {
                name: self.tiers[usize::from(tier)].name.clone(),
                offset,
                bytes,
            });
            offset += bytes;
        }
        volumes
    }

    /// Returns the bytes that a host can address: those of all volumes.
    pub fn bytes(&self) -> u64 {
        self.volumes().iter().map(|volume| volume.bytes).sum()
    }

    /// Returns the durability guarantee of each tier, in order.
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

    /// Returns the durability guarantee of all volumes together.
    pub fn promise(&self) -> Promise {
        let promises = self.promises();
        let of = |&tier: &u16| promises[usize::from(tier)].clone();
        ConcatConfig {}.promise(&self.volumes.iter().map(of).collect::<Vec<_>>())
    }

    /// Returns the durability guarantee of a tier as text.
    pub fn promise_words(&self, tier: u16) -> String {
        let promise = &self.promises()[usize::from(tier)];
        match &self.tiers[usize::from(tier)].kind {
            Kind::Cluster(cluster) => cluster.promise_words(promise.durable),
            _ => promise.words(&self.names()),
        }
    }

    /// Returns the durability guarantee of all volumes together as text.
    pub fn words(&self) -> String {
        match self.volumes[..] {
            [one] => self.promise_words(one),
            _ => self.promise().words(&self.names()),
        }
    }

    fn names(&self) -> Vec<String> {
        self.members.iter().map(|it| it.name.clone()).collect()
    }

    /// Returns the cluster whose volume is served, if it is one.
    pub fn cluster(&self) -> Option<&ClusterConfig> {
        match (&self.volumes[..], &self.tiers[..]) {
            ([one], tiers) => match &tiers.get(usize::from(*one))?.kind {
                Kind::Cluster(cluster) => Some(cluster),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether flushes have an effect: an acknowledged write may not be durable.
    pub fn needs_flushes(&self) -> bool {
        self.promise().durable > super::DurabilityPoint::Acknowledged
    }

    /// Whether its tiers can be recovered from its members after a crash, so that data may be stored per member.
    pub fn recovers(&self) -> bool {
        self.tiers.iter().all(|tier| tier.kind.recovers()) && !self.labels_on_a_log()
    }

    /// Whether a tier with labels or superblocks, which are written offline, has an intent log as a child, which can
    /// only be written online: such a pool cannot be recovered.
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

    /// Whether any of the target's data is in an intent log.
    fn is_on_a_log(&self, target: &Target) -> bool {
        let &Target::Tier(index) = target else {
            return false;
        };
        let tier = &self.tiers[usize::from(index)];
        matches!(tier.kind, Kind::IntentLog(_))
            || tier.children.iter().any(|it| self.is_on_a_log(it))
    }

    /// Returns for each member whether its whole used range is the ring of a write-back cache, or written by
    /// log-structured storage, directly or through mirrors, stripes, concatenations or arrays with parity.
    pub fn rings(&self) -> Vec<bool> {
        let mut rings = vec![true; self.members.len()];
        let mut used = vec![false; self.members.len()];
        let mut below = vec![false; self.tiers.len()];
        // Arrays with parity are written in whole stripes only by log-structured storage.
        let mut structured = vec![false; self.tiers.len()];
        // Tiers come after their children.
        for (index, tier) in self.tiers.iter().enumerate().rev() {
            let writes_stripes = match &tier.kind {
                Kind::LogStructured(_) => true,
                _ => structured[index],
            };
            for (child, target) in tier.children.iter().enumerate() {
                let is_ring = match &tier.kind {
                    Kind::WriteBack(_) => child == 0,
                    Kind::LogStructured(_) => true,
                    Kind::Raid5(_) | Kind::Raid6(_) => structured[index],
                    Kind::Mirror(_) | Kind::Stripe(_) | Kind::Concat(_) => below[index],
                    _ => false,
                };
                match *target {
                    Target::Tier(tier) => {
                        below[usize::from(tier)] = is_ring;
                        structured[usize::from(tier)] = is_ring && writes_stripes;
                    }
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

    /// Returns the reasons why the configuration is invalid; empty if it is valid.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.members.is_empty() || self.members.len() > usize::from(u16::MAX) {
            problems.push(format!(
                "a pool has 1 to 65535 members, not {}",
                self.members.len()
            ));
        }
        if self.volumes.is_empty() {
            problems.push(String::from("a pool must serve at least one volume"));
        }
        if !self.label_bytes.is_multiple_of(4096) {
            problems.push(String::from("labels must be a multiple of 4 KiB"));
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
                        "{}: tier {child} must be listed before it",
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
                    "{} is used in {count} places, but must be used in one",
                    tier.name
                ));
            }
        }
        self.check_whole_blocks(&mut problems);
        for (member, slices) in self.members.iter().zip(&mut used) {
            self.check_slices(member, slices, &mut problems);
        }
        // Sizes and counts are meaningful only if all references are valid.
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

    /// Checks that a tier whose blocks must not be changed in place has a tier above it, directly or indirectly, that
    /// complies.
    fn check_whole_blocks(&self, problems: &mut Vec<String>) {
        // For each tier, the tier at or below it whose blocks must not be changed in place.
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
                "{}: its blocks may not be changed in place. It serves as main of an intent-log only, such as `intent-log(main=raidz(6*DRIVE; parity=2))`. A pool with parity of its own is a raid5 or raid6",
                self.tiers[*needs].name
            ));
        }
    }

    /// Checks that slices are within their member, aligned to blocks and do not overlap.
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
                problems.push(format!(
                    "{tier}: the size of its slice of {name} must be a multiple of 4 KiB"
                ));
            }
            if bytes <= self.label_bytes {
                problems.push(format!(
                    "{tier}: its slice of {name} has {bytes} bytes, and its label takes {}",
                    self.label_bytes
                ));
            }
            if base < end {
                problems.push(format!(
                    "{tier}: its slice of {name} overlaps another slice of it"
                ));
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
