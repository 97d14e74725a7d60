//! `kind = "raidz"`: blocks over all `members`, each with `parity` columns of its own; usable as main of an
//! intent-log.

use tier::{Kind, RaidzConfig};

use super::{KindReader, TierReader};

pub(super) const READER: KindReader = KindReader {
    word: "raidz",
    read,
};

fn read(tier: &mut TierReader<'_, '_>) -> Kind {
    tier.children("members", 3..=255);
    Kind::Raidz(RaidzConfig {
        parity: tier.keys.count("parity", 1..=3, 1) as u16,
        resync_rate: super::mirror::resync_rate(tier),
    })
}
