//! Children of one tier of an offline pool: slices of members, and lower tiers, which are accessed recursively.

use alloc::vec::Vec;

use model::data::{Unreadable, Unwritable};
use model::device::Range;

use super::below::{ChildImages, Damage, Images, RecoveryFinding, SliceState};
use super::openings::Openings;
use super::{AnyTier, Child, Target, Tier, TierConfig};

/// The lower tiers.
pub(super) enum Tiers<'a> {
    /// For reading only.
    Fixed(&'a [Result<AnyTier, Damage>]),
    /// For reading and writing; writes may change the tiers.
    Open(&'a mut [Result<AnyTier, Damage>]),
}

impl Tiers<'_> {
    fn get(&self, tier: u16) -> &Result<AnyTier, Damage> {
        match self {
            Tiers::Fixed(tiers) => &tiers[usize::from(tier)],
            Tiers::Open(tiers) => &tiers[usize::from(tier)],
        }
    }

    fn fixed(&self) -> Tiers<'_> {
        Tiers::Fixed(match self {
            Tiers::Fixed(tiers) => tiers,
            Tiers::Open(tiers) => tiers,
        })
    }
}

/// Children of one tier.
pub(super) struct Children<'a, I> {
    pub(super) config: &'a [TierConfig],
    pub(super) tiers: Tiers<'a>,
    pub(super) tier: usize,
    pub(super) images: &'a mut I,
    pub(super) openings: Option<&'a Openings>,
    /// Whether the tier is being formatted again: labels of its slices are then ignored.
    pub(super) anew: bool,
    pub(super) found: &'a mut Vec<(u16, RecoveryFinding)>,
}

impl<I: Images> Children<'_, I> {
    /// Returns a lower tier, and its own children.
    fn lower_tier<'b>(&'b mut self, tier: u16) -> (Option<&'b AnyTier>, Children<'b, I>) {
        let below = Children {
            config: self.config,
            tiers: self.tiers.fixed(),
            tier: usize::from(tier),
            images: &mut *self.images,
            openings: self.openings,
            anew: self.anew,
            found: &mut *self.found,
        };
        (self.tiers.get(tier).as_ref().ok(), below)
    }

    fn target(&self, child: Child) -> Target {
        self.config[self.tier].children[usize::from(child)]
    }
}

impl<I: Images> ChildImages for Children<'_, I> {
    fn present(&self, child: Child) -> bool {
        match self.target(child) {
            Target::Slice { member, .. } => self.images.present(member),
            Target::Tier(tier) => self.tiers.get(tier).is_ok(),
        }
    }

    fn read(&mut self, child: Child, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        match self.target(child) {
            Target::Slice { member, base, .. } if self.images.present(member) => {
                self.images.read(member, base + at, into)
            }
            Target::Slice { .. } => Err(Unreadable),
            Target::Tier(tier) => match self.lower_tier(tier) {
                (Some(tier), mut below) => tier.read_offline(at, into, &mut below),
                (None, _) => Err(Unreadable),
            },
        }
    }

    fn write(&mut self, child: Child, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        match self.target(child) {
            Target::Slice { member, base, .. } if self.images.present(member) => {
                self.images.write(member, base + at, data)
            }
            Target::Slice { .. } => Err(Unwritable),
            Target::Tier(tier) => {
                let Tiers::Open(tiers) = &mut self.tiers else {
                    return Err(Unwritable);
                };
                // Its children come before it.
                let (before, rest) = tiers.split_at_mut(usize::from(tier));
                let Ok(own) = &mut rest[0] else {
                    return Err(Unwritable);
                };
                let mut below = Children {
                    config: self.config,
                    tiers: Tiers::Open(before),
                    tier: usize::from(tier),
                    images: &mut *self.images,
                    openings: self.openings,
                    anew: self.anew,
                    found: &mut *self.found,
                };
                own.write_offline(at, data, &mut below)
            }
        }
    }

    fn is_ambiguous(&mut self, child: Child, at: u64, bytes: u32) -> bool {
        match self.target(child) {
            Target::Slice { .. } => false,
            Target::Tier(tier) => match self.lower_tier(tier) {
                (Some(tier), mut below) => tier.is_ambiguous_offline(at, bytes, &mut below),
                (None, _) => true,
            },
        }
    }

    fn sync(&mut self, child: Child) -> Result<(), Unwritable> {
        match self.target(child) {
            Target::Slice { member, .. } if self.images.present(member) => self.images.sync(member),
            Target::Slice { .. } => Err(Unwritable),
            Target::Tier(tier) => match self.lower_tier(tier) {
                (Some(tier), mut below) => tier.sync_offline(&mut below),
                (None, _) => Err(Unwritable),
            },
        }
    }

    fn is_tier(&self, child: Child) -> bool {
        matches!(self.target(child), Target::Tier(_))
    }
    fn standing(&self, child: Child) -> SliceState {
        match self.openings.filter(|_| !self.anew) {
            Some(openings) => openings.standing(self.tier as u16, child),
            None => SliceState::Current,
        }
    }
    fn opening(&self) -> Option<u64> {
        self.openings.and_then(Openings::last)
    }
    fn noted(&self) -> u32 {
        match self.openings.filter(|_| !self.anew) {
            Some(openings) => openings.noted(self.tier),
            None => u32::MAX,
        }
    }
    fn accepts_loss(&self) -> bool {
        self.openings.is_some_and(|it| it.accepts_loss)
    }
    fn used(&self) -> Option<&[Range]> {
        let used = self.openings.and_then(|it| it.used.get(self.tier));
        used.map(Vec::as_slice)
    }
    fn found(&mut self, what: RecoveryFinding) {
        self.found.push((self.tier as u16, what));
    }
}
