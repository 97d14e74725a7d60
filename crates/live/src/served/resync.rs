//! How far the copying to stale legs of a pool's mirrors has come, in lines for its owner.

use model::Span;
use model::media::DriveConfig;
use model::tier::{AnyTier, PoolConfig};

use super::findings;
use crate::clock::Wall;

/// From one line to the next.
const AGAIN: Span = Span::from_ms(10_000);

/// What has been told.
#[derive(Debug, Default)]
pub(super) struct Resync {
    /// Legs that were not in sync, with the number of their tier.
    stale: Vec<(u16, u16)>,
    next: Wall,
    /// When how far it has come was told last: not twice at one time, which at the end is one without end.
    told: Wall,
}

impl Resync {
    /// Of a pool with these tiers, before anything has happened: a leg may be in sync again before anybody looks.
    pub(super) fn of(tiers: &[AnyTier]) -> Resync {
        let mut resync = Resync::default();
        for (tier, it) in (0..).zip(tiers) {
            if let AnyTier::Mirror(mirror) = it {
                let stale = (0..mirror.legs_count()).filter(|&leg| mirror.is_stale(leg));
                resync.stale.extend(stale.map(|leg| (tier, leg)));
            }
        }
        resync
    }

    /// What there is to tell at `now`: a leg that is in sync again, or how far the copying has come.
    pub(super) fn tell(
        &mut self,
        now: Wall,
        config: &PoolConfig<DriveConfig>,
        tiers: &[AnyTier],
    ) -> Option<String> {
        let name = |(tier, leg): (u16, u16)| findings::child(config, usize::from(tier), leg);
        let mut copied = None;
        for (tier, it) in (0..).zip(tiers).take(config.tiers.len()) {
            let AnyTier::Mirror(mirror) = it else {
                continue;
            };
            let known = |&(of, leg): &(u16, u16)| of == tier && !mirror.is_stale(leg);
            if let Some(index) = self.stale.iter().position(known) {
                let leg = self.stale.swap_remove(index);
                let of = &config.tiers[usize::from(tier)].name;
                return Some(format!("{} is in sync with {of} again", name(leg)));
            }
            for leg in (0..mirror.legs_count()).filter(|&leg| mirror.is_stale(leg)) {
                if !self.stale.contains(&(tier, leg)) {
                    self.stale.push((tier, leg));
                    self.next = now.plus(AGAIN);
                }
            }
            copied = copied.or(mirror
                .progress()
                .map(|(leg, percent)| ((tier, leg), percent)));
        }
        let (leg, percent) = copied?;
        if now < self.next || now <= self.told {
            return None;
        }
        self.told = now;
        self.next = now.plus(AGAIN);
        Some(format!(
            "{} is being resynchronised: {percent} %",
            name(leg)
        ))
    }
}
