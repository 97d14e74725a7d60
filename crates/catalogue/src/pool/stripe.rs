//! `kind = "stripe"`: addresses distributed over `members` in turn.

use tier::{Kind, StripeConfig};

use super::{KindReader, TierReader};

pub(super) const READER: KindReader = KindReader {
    word: "stripe",
    read,
};

/// The default chunk of Linux's md, in bytes.
const CHUNK: u64 = 512 << 10;

fn read(tier: &mut TierReader<'_, '_>) -> Kind {
    tier.children("members", 2..=1024);
    let chunk = tier.keys.bytes("chunk", 4096..=1 << 30, CHUNK);
    Kind::Stripe(StripeConfig {
        chunk: chunk as u32,
    })
}
