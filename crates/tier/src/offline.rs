//! Offline operations on a pool's data: formatting its tiers on its members, and recovering them.
//!
//! They are plain functions over images ([`Images`]) instead of commands. They can be interrupted after any write and
//! restarted, and tested with any input. Not modelled: their duration.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

pub use super::below::{ChildImages, Damage, Images, Opening, RecoveryFinding, SliceState};

use model::data::Unreadable;
use model::device::Range;
use model::media::medium::Medium;

use super::children::{Children, Tiers};
use super::openings::{self, Openings};
use super::planted::{self, Bug};
use super::{AnyTier, Child, Kind, PoolConfig, Target, Tier, TierSettings};

/// The recovered tiers of a pool.
#[derive(Clone, Debug)]
pub struct RecoveredTiers {
    tiers: Vec<Result<AnyTier, Damage>>,
    /// Repairs, each with its tier.
    pub found: Vec<(u16, RecoveryFinding)>,
    /// The opening that has begun, if the pool numbers them.
    pub opening: Option<Opening>,
    /// By tier: the children that have all acknowledged data, one bit each, to be noted outside of the pool.
    pub in_sync: Vec<u32>,
    /// Number of the last opening that each member took part in before, if its labels state it.
    pub before: Vec<Option<u64>>,
}

impl RecoveredTiers {
    /// Returns the tiers, for [`super::Pool::resume`].
    pub fn tiers<M: Medium>(self, config: &PoolConfig<M>) -> Vec<AnyTier> {
        let new = config.build_tiers();
        // A tier that could not be opened is replaced by a new one that is not used: tiers above know that.
        let each = self.tiers.into_iter().zip(new);
        each.map(|(found, new)| found.unwrap_or(new)).collect()
    }

    /// Whether a tier could be opened. Tiers above one that could not know that.
    pub fn has(&self, tier: u16) -> bool {
        self.tiers[usize::from(tier)].is_ok()
    }

    /// Reads from a volume offline.
    ///
    /// # Errors
    /// If no copy of these bytes can be read.
    pub fn read<M: Medium>(
        &self,
        config: &PoolConfig<M>,
        images: &mut impl Images,
        volume: u16,
        at: u64,
        into: &mut [u8],
    ) -> Result<(), Unreadable> {
        self.with_tier(config, images, volume, |tier, below| {
            tier.read_offline(at, into, below)
        })
        .unwrap_or(Err(Unreadable))
    }

    /// Whether a volume's data of a range depends on which copy is read.
    pub fn is_ambiguous<M: Medium>(
        &self,
        config: &PoolConfig<M>,
        images: &mut impl Images,
        volume: u16,
        at: u64,
        bytes: u32,
    ) -> bool {
        let asked = self.with_tier(config, images, volume, |tier, below| {
            tier.is_ambiguous_offline(at, bytes, below)
        });
        asked.unwrap_or(true)
    }

    fn with_tier<M: Medium, R>(
        &self,
        config: &PoolConfig<M>,
        images: &mut impl Images,
        volume: u16,
        ask: impl FnOnce(&AnyTier, &mut dyn ChildImages) -> R,
    ) -> Option<R> {
        let index = usize::from(volume);
        let tier = self.tiers[index].as_ref().ok()?;
        let mut below = Children {
            config: &config.tiers,
            tiers: Tiers::Fixed(&self.tiers),
            tier: index,
            images,
            openings: None,
            anew: false,
            found: &mut Vec::new(),
        };
        Some(ask(tier, &mut below))
    }
}

/// Formats a new pool on the members: writes the metadata that the tiers need for recovery. Data is left unchanged:
/// callers that need zeroes must write them.
///
/// # Errors
/// The tier that could not be formatted, and why.
pub fn format<M: Medium>(
    config: &PoolConfig<M>,
    pool: u128,
    images: &mut impl Images,
) -> Result<(), (String, Damage)> {
    openings::format(config, pool, images).map_err(|it| named(config, it))?;
    let capacities = config.capacities();
    let mut tiers = Vec::with_capacity(config.tiers.len());
    for (index, tier) in config.tiers.iter().enumerate() {
        let sizes = config.sizes(&tier.children, &capacities);
        let mut below = Children {
            config: &config.tiers,
            tiers: Tiers::Open(&mut tiers),
            tier: index,
            images: &mut *images,
            openings: None,
            anew: false,
            found: &mut Vec::new(),
        };
        let made = tier.kind.format(&sizes, pool, &mut below);
        tiers.push(made.map(|()| tier.kind.build(&sizes)));
    }
    all_served(config, &tiers)
}

/// Information about a pool to be recovered, in addition to the content of its members.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryInput<'a> {
    /// Identifier of the pool.
    pub pool: u128,
    /// Mark that no other opening has; 0 if openings with the same members may have equal marks.
    pub mark: u64,
    /// The last opening, as noted outside of the pool.
    pub remembered: Option<Opening>,
    /// By tier: the children in sync when the pool ended, one bit each, as noted outside of the pool
    /// ([`RecoveredTiers::in_sync`], [`AnyTier::in_sync`]). Empty if that is unknown.
    pub in_sync: &'a [u32],
    /// Used bytes of the pool's addresses; `None` for all.
    pub bytes: Option<u64>,
    /// Whether tiers open with the remaining children, even if data may be lost permanently.
    pub accept_loss: bool,
}

/// Recovers the tiers of a pool from its members after a crash, or an orderly shutdown, and repairs them. Can be
/// interrupted anywhere and restarted.
///
/// # Errors
/// The served tier that cannot be opened, and why.
pub fn recover<M: Medium>(
    config: &PoolConfig<M>,
    pool: u128,
    images: &mut impl Images,
) -> Result<RecoveredTiers, (String, Damage)> {
    let start = RecoveryInput {
        pool,
        mark: 0,
        remembered: None,
        in_sync: &[],
        bytes: None,
        accept_loss: false,
    };
    open(config, &start, images)
}

/// Recovers the tiers like [`recover`], with all information of `start`.
///
/// # Errors
/// The served tier that cannot be opened, and why.
pub fn open<M: Medium>(
    config: &PoolConfig<M>,
    start: &RecoveryInput<'_>,
    images: &mut impl Images,
) -> Result<RecoveredTiers, (String, Damage)> {
    let openings = Openings::read(config, start.pool, start.remembered, images);
    let mut openings = openings.map_err(|it| named(config, it))?;
    openings.accepts_loss = start.accept_loss;
    openings.noted = start.in_sync.to_vec();
    let before = openings.of_members(config.members.len());
    let mut found = openings.stale_slices();
    let capacities = config.capacities();
    openings.used = what_is_used(config, start.bytes, &capacities);
    let mut tiers = Vec::with_capacity(config.tiers.len());
    for (index, tier) in config.tiers.iter().enumerate() {
        let sizes = config.sizes(&tier.children, &capacities);
        if tier.kind.renews() {
            give_up_what_lost(config, index, &found, &mut tiers);
        }
        let mut below = Children {
            config: &config.tiers,
            tiers: Tiers::Open(&mut tiers),
            tier: index,
            images: &mut *images,
            openings: Some(&openings),
            anew: false,
            found: &mut found,
        };
        let mut made = match outdated(&tier.kind, sizes.len() as Child, &below) {
            Some(damage) => Err(damage),
            None => tier.kind.recover(&sizes, start.pool, &mut below),
        };
        if let (Ok(made), true) = (&mut made, tier.kind.renews()) {
            let mut renewal = Renewal {
                config,
                pool: start.pool,
                capacities: &capacities,
                openings: &mut openings,
                tiers: &mut tiers,
                found: &mut found,
            };
            renewal.children(index, made, images);
        }
        tiers.push(made);
    }
    for (tier, used) in tiers.iter_mut().zip(&openings.used) {
        if let Ok(tier) = tier {
            tier.used(used);
        }
    }
    settle(config, &openings, &mut tiers, images);
    all_served(config, &tiers)?;
    let mark = match start.mark {
        0 => mark_of(config, images),
        mark => mark,
    };
    let opening = openings.begin(mark, images);
    let opening = opening.map_err(|it| named(config, it))?;
    // What is known of a tier that could not be opened stays so.
    let noted = |(index, tier): (usize, &Result<AnyTier, Damage>)| match tier {
        Ok(tier) => tier.in_sync(),
        Err(_) => start.in_sync.get(index).copied().unwrap_or(u32::MAX),
    };
    let in_sync = tiers.iter().enumerate().map(noted).collect();
    Ok(RecoveredTiers {
        in_sync,
        tiers,
        found,
        opening,
        before,
    })
}

/// Informs all tiers that recovery has ended, upper tiers first: their writes then mark regions of lower ones.
fn settle<M: Medium>(
    config: &PoolConfig<M>,
    openings: &Openings,
    tiers: &mut [Result<AnyTier, Damage>],
    images: &mut impl Images,
) {
    for index in (0..tiers.len()).rev() {
        let (below, rest) = tiers.split_at_mut(index);
        let mut below = Children {
            config: &config.tiers,
            tiers: Tiers::Open(below),
            tier: index,
            images: &mut *images,
            openings: Some(openings),
            anew: false,
            found: &mut Vec::new(),
        };
        if let Some(Ok(tier)) = rest.first_mut()
            && let Err(damage) = tier.settle(&mut below)
        {
            rest[0] = Err(damage);
        }
    }
}

/// Returns the used ranges of each tier's addresses.
fn what_is_used<M: Medium>(
    config: &PoolConfig<M>,
    bytes: Option<u64>,
    capacities: &[u64],
) -> Vec<Vec<Range>> {
    let mut used: Vec<Vec<Range>> = vec![Vec::new(); config.tiers.len()];
    for (&tier, volume) in config.volumes.iter().zip(config.volumes()) {
        let until = bytes.unwrap_or(u64::MAX).saturating_sub(volume.offset);
        used[usize::from(tier)].push(Range {
            offset: 0,
            bytes: volume.bytes.min(until),
        });
    }
    for index in (0..config.tiers.len()).rev() {
        let children = &config.tiers[index].children;
        let sizes = config.sizes(children, capacities);
        let below = config.tiers[index].kind.used_below(&sizes, &used[index]);
        for (target, ranges) in children.iter().zip(below) {
            if let Target::Tier(tier) = *target {
                used[usize::from(tier)] = ranges;
            }
        }
    }
    used
}

/// Treats a tier as not opened if it, or a tier without redundancy below it, lost data, so that a tier above with other
/// children can replace it. The same for one that may have lost data, if another child has not.
fn give_up_what_lost<M: Medium>(
    config: &PoolConfig<M>,
    above: usize,
    found: &[(u16, RecoveryFinding)],
    tiers: &mut [Result<AnyTier, Damage>],
) {
    let has = |tier: u16, what: &dyn Fn(&RecoveryFinding) -> bool| {
        let below = tiers_below(config, tier);
        found.iter().any(|it| below.contains(&it.0) && what(&it.1))
    };
    let lost = |tier| has(tier, &|it| matches!(it, RecoveryFinding::Lost(_)));
    let unread = |tier| has(tier, &|it| matches!(it, RecoveryFinding::Unread(_)));
    let of_tiers = config.tiers[above].children.iter();
    let children: Vec<u16> = of_tiers
        .filter_map(|it| match *it {
            Target::Tier(tier) => Some(tier),
            Target::Slice { .. } => None,
        })
        .filter(|&it| tiers[usize::from(it)].is_ok())
        .collect();
    // One that may have lost data is given up only if another one has not.
    let sound = children.iter().any(|&it| !lost(it) && !unread(it));
    for &tier in &children {
        if lost(tier) || (sound && unread(tier)) {
            tiers[usize::from(tier)] = Err(Damage::Lossy);
        }
    }
}

/// Returns a tier and those below it, in order from bottom to top; excluding those below a tier that formats its
/// children again.
fn tiers_below<M: Medium>(config: &PoolConfig<M>, tier: u16) -> Vec<u16> {
    let mut all = vec![tier];
    let mut next = 0;
    while let Some(&one) = all.get(next) {
        next += 1;
        let one = &config.tiers[usize::from(one)];
        if !one.kind.renews() {
            all.extend(one.children.iter().filter_map(|it| match *it {
                Target::Tier(below) => Some(below),
                Target::Slice { .. } => None,
            }));
        }
    }
    all.sort_unstable();
    all
}

/// Formats tiers again that could not be opened, if other children have their data.
struct Renewal<'a, M> {
    config: &'a PoolConfig<M>,
    pool: u128,
    capacities: &'a [u64],
    openings: &'a mut Openings,
    tiers: &'a mut [Result<AnyTier, Damage>],
    found: &'a mut Vec<(u16, RecoveryFinding)>,
}

impl<M: Medium> Renewal<'_, M> {
    /// Handles the children of a tier that has been recovered without them.
    fn children(&mut self, above: usize, tier: &mut AnyTier, images: &mut impl Images) {
        let config = self.config;
        for (child, target) in (0..).zip(&config.tiers[above].children) {
            let Target::Tier(below) = *target else {
                continue;
            };
            let Err(damage) = self.tiers[usize::from(below)] else {
                continue;
            };
            // One that cannot be written may be complete, and formatting would clear its other children.
            let stays = matches!(
                damage,
                Damage::Foreign(_)
                    | Damage::Misplaced(_)
                    | Damage::Apart(..)
                    | Damage::Unwritable(_)
                    | Damage::Unsupported
            );
            let subtree = self.subtree(below);
            let there = subtree.iter().all(|&it| self.has_all_slices(it, images));
            if stays || !there {
                continue;
            }
            if let Err(damage) = self.make(&subtree, images) {
                self.tiers[usize::from(below)] = Err(damage);
                continue;
            }
            let mut here = Children {
                config: &config.tiers,
                tiers: Tiers::Open(&mut *self.tiers),
                tier: above,
                images: &mut *images,
                openings: Some(&*self.openings),
                anew: false,
                found: &mut Vec::new(),
            };
            if let Err(damage) = tier.renewed(child, &mut here) {
                self.tiers[usize::from(below)] = Err(damage);
                continue;
            }
            let old = |(of, what): &(u16, RecoveryFinding)| {
                subtree.contains(of)
                    || (usize::from(*of), *what) == (above, RecoveryFinding::Absent(child))
            };
            self.found.retain(|it| !old(it));
            self.found
                .push((above as u16, RecoveryFinding::Renewed(child, damage)));
        }
    }

    /// Returns a tier and all those below it, in order from bottom to top.
    fn subtree(&self, tier: u16) -> Vec<u16> {
        let mut all = vec![tier];
        let mut next = 0;
        while let Some(&one) = all.get(next) {
            next += 1;
            let children = &self.config.tiers[usize::from(one)].children;
            all.extend(children.iter().filter_map(|it| match *it {
                Target::Tier(below) => Some(below),
                Target::Slice { .. } => None,
            }));
        }
        all.sort_unstable();
        all
    }

    fn has_all_slices(&self, tier: u16, images: &impl Images) -> bool {
        let children = &self.config.tiers[usize::from(tier)].children;
        children.iter().all(|it| match *it {
            Target::Slice { member, .. } => images.present(member),
            Target::Tier(_) => true,
        })
    }

    /// Formats new tiers, from bottom to top. Before the first write, their slices are marked as blank, until the next
    /// opening has begun: a crash meanwhile therefore does not leave an apparently valid tier.
    fn make(&mut self, subtree: &[u16], images: &mut impl Images) -> Result<(), Damage> {
        let config = self.config;
        for &tier in subtree {
            for child in 0..config.tiers[usize::from(tier)].children.len() as Child {
                self.openings.strip(tier, child, images)?;
            }
        }
        for &tier in subtree {
            let index = usize::from(tier);
            let it = &config.tiers[index];
            let sizes = config.sizes(&it.children, self.capacities);
            let mut below = Children {
                config: &config.tiers,
                tiers: Tiers::Open(&mut *self.tiers),
                tier: index,
                images: &mut *images,
                openings: Some(&*self.openings),
                anew: true,
                found: &mut Vec::new(),
            };
            it.kind.format(&sizes, self.pool, &mut below)?;
            let made = it.kind.recover(&sizes, self.pool, &mut below)?;
            self.tiers[index] = Ok(made);
        }
        Ok(())
    }
}

/// Returns a mark that openings with other members do not have.
fn mark_of<M: Medium>(config: &PoolConfig<M>, images: &impl Images) -> u64 {
    let members = 0..config.members.len() as u16;
    members.fold(1, |mark: u64, member| {
        let bit = u64::from(images.present(member));
        mark.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) ^ (bit + 1)
    })
}

/// Returns the first child that was absent in the last opening, for a tier that needs all children up to date.
fn outdated(kind: &Kind, children: Child, below: &impl ChildImages) -> Option<Damage> {
    if planted::has(Bug::AcceptsOldCopies) {
        return None;
    }
    let needed = (0..children).filter(|&child| !kind.does_without(child) && below.present(child));
    needed
        .filter_map(|child| match below.standing(child) {
            SliceState::Current => None,
            SliceState::Old(_) | SliceState::Away(_) => Some(Damage::Outdated(child)),
            SliceState::Bare => Some(Damage::Bare(child)),
        })
        .next()
}

fn named<M: Medium>(config: &PoolConfig<M>, (tier, damage): (u16, Damage)) -> (String, Damage) {
    (config.tiers[usize::from(tier)].name.clone(), damage)
}

/// Checks whether all served tiers can be opened; other tiers may be missing only if the tiers above do not need them.
fn all_served<M: Medium>(
    config: &PoolConfig<M>,
    tiers: &[Result<AnyTier, Damage>],
) -> Result<(), (String, Damage)> {
    for &volume in &config.volumes {
        if let Err(damage) = &tiers[usize::from(volume)] {
            return Err(named(config, cause(config, tiers, (volume, *damage))));
        }
    }
    Ok(())
}

/// Returns the reason why a tier's child is missing, as far down as it is known.
fn cause<M: Medium>(
    config: &PoolConfig<M>,
    tiers: &[Result<AnyTier, Damage>],
    (tier, damage): (u16, Damage),
) -> (u16, Damage) {
    let Damage::Missing(child) = damage else {
        return (tier, damage);
    };
    match config.tiers[usize::from(tier)].children[usize::from(child)] {
        Target::Tier(below) => match tiers[usize::from(below)] {
            Err(damage) => cause(config, tiers, (below, damage)),
            Ok(_) => (tier, damage),
        },
        Target::Slice { .. } => (tier, damage),
    }
}

/// For a tier that needs all its children and has no metadata: checks that they are present.
///
/// # Errors
/// The first missing child.
pub fn all_present(children: &[u64], below: &dyn ChildImages) -> Result<(), Damage> {
    match (0..children.len() as Child).find(|&child| !below.present(child)) {
        Some(child) => Err(Damage::Missing(child)),
        None => Ok(()),
    }
}
