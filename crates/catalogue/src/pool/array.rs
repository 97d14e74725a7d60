//! `kind = "raid5"` and `kind = "raid6"`: chunks over all `members`, with one or two parity chunks in each stripe.

use tier::{Kind, ParityArrayConfig};

use super::{KindReader, TierReader};

pub(super) const RAID5: KindReader = KindReader {
    word: "raid5",
    read: |tier| Kind::Raid5(read(tier)),
};

pub(super) const RAID6: KindReader = KindReader {
    word: "raid6",
    read: |tier| Kind::Raid6(read(tier)),
};

fn read<const PARITY: u16>(tier: &mut TierReader<'_, '_>) -> ParityArrayConfig<PARITY> {
    tier.children("members", usize::from(PARITY) + 2..=32);
    let default = ParityArrayConfig::<PARITY>::default();
    ParityArrayConfig {
        chunk: tier
            .keys
            .bytes("chunk", 4096..=1 << 30, default.chunk.into()) as u32,
        region: tier.keys.bytes("region", 4096..=1 << 40, default.region),
        resync_rate: super::mirror::resync_rate(tier),
        ..default
    }
}
