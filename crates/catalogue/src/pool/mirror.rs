//! `kind = "mirror"`: the same data on each of `members`.

use tier::{Kind, MOST_LEGS, MirrorConfig, Reads};

use text::quantity::Rate;

use super::{KindReader, TierReader};

pub(super) const READER: KindReader = KindReader {
    word: "mirror",
    read,
};

fn read(tier: &mut TierReader<'_, '_>) -> Kind {
    tier.children("members", 2..=MOST_LEGS);
    let default = MirrorConfig::default();
    Kind::Mirror(MirrorConfig {
        reads: tier.keys.choice("reads", &Reads::ALL, default.reads),
        region: tier.keys.bytes("region", 4096..=1 << 40, default.region),
        resync_rate: resync_rate(tier),
        ..default
    })
}

/// Reads the maximum rate of a resync or rebuild, in bytes per second; 0 if there is none.
pub(super) fn resync_rate(tier: &mut TierReader<'_, '_>) -> u64 {
    match tier.keys.has("resync_rate") {
        true => {
            let range = Rate(1e6)..=Rate(1e12);
            let Rate(rate) = tier.keys.get("resync_rate", range, Rate(1e12));
            rate as u64
        }
        false => 0,
    }
}
