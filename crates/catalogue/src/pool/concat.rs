//! `kind = "concat"`: `members` concatenated.

use tier::{ConcatConfig, Kind};

use super::{KindReader, TierReader};

pub(super) const READER: KindReader = KindReader {
    word: "concat",
    read,
};

fn read(tier: &mut TierReader<'_, '_>) -> Kind {
    tier.children("members", 1..=1024);
    Kind::Concat(ConcatConfig {})
}
