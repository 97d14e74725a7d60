//! Block formats that no drive of the catalogue has, offered on request: with longer guards and storage tags.
//!
//! They follow the drive's own formats. The latency of a 4096+16 block is that of the drive's model for this amount of
//! metadata. Not supported: more than sixteen formats in total, masks of storage tags. Source: NVM Command Set
//! Specification 1.0, chapter 5.2 (the longer guards are for blocks of 4 KiB or more) and figure 98 (how formats are
//! reported); 1.1 (qualified formats).

use model::management::{LbaFormat, RelativePerformance};

use super::protection::{GuardSize, Protection, Tuple};
use crate::setup::Setup;

/// Protection information of the added formats.
const ADDED: [Tuple; 3] = [
    Tuple {
        guard: GuardSize::Middle,
        storage: 16,
        qualified: false,
    },
    Tuple {
        guard: GuardSize::Long,
        storage: 0,
        qualified: false,
    },
    Tuple {
        guard: GuardSize::Long,
        storage: 16,
        qualified: true,
    },
];

/// The block format of each of them.
const FORMAT: LbaFormat = LbaFormat {
    data: 4096,
    metadata: 16,
    performance: RelativePerformance::Degraded,
};

/// Adds the formats to a drive that will be served.
pub fn add_formats(setup: &mut Setup) {
    let formats = &mut setup.sheet.management.lba_formats;
    formats.extend(ADDED.map(|_| FORMAT));
    setup.added_formats = ADDED.len();
}

/// Returns the protection information that each of a drive's formats can hold; the last `added` formats are the added
/// ones.
pub(super) fn tuples(formats: usize, added: usize) -> Vec<Tuple> {
    let own = formats.saturating_sub(added);
    let own = std::iter::repeat_n(Tuple::default(), own);
    own.chain(ADDED.into_iter().take(added)).collect()
}

/// Returns the description of a format in Identify: bits 6:0 of storage tag, 8:7 guard, 12:9 guard if that is
/// qualified.
fn extended_lba_format(tuple: Tuple) -> u32 {
    let code = u32::from(tuple.guard.code());
    let guard = if tuple.qualified {
        3 << 7 | code << 9
    } else {
        code << 7
    };
    u32::from(tuple.storage) | guard
}

/// Fills Identify Namespace of the NVM command set (CNS 05h); it has no entries for a drive's own formats.
pub(super) fn page(tuples: &[Tuple], added: usize, protection: Protection, page: &mut [u8]) {
    if added == 0 {
        return;
    }
    let ones = (1u64 << protection.tuple.storage) - 1;
    page[..8].copy_from_slice(&ones.to_le_bytes());
    // Reads check storage tags; qualified formats.
    page[8] = 0b1100;
    // No masks of storage tags.
    page[9] = 2;
    for (place, &tuple) in page[12..].chunks_exact_mut(4).take(16).zip(tuples) {
        place.copy_from_slice(&extended_lba_format(tuple).to_le_bytes());
    }
}
