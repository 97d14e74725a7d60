//! `kind = "mirror"`: the same data on each of `members`.

use tier::{Kind, MOST_LEGS, MirrorConfig, Reads};

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
        ..default
    })
}
