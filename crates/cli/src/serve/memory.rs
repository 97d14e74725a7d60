//! What a pool's tiers may want of this machine's memory for data, and whether it has so much.
//!
//! Left out: stores in memory, which take what is written to them, as asked for; a limit of a container's.

use live::Served;
use model::tier::{TierConfig, TierSettings};
use text::digits::bytes_decimal;

/// Bytes of memory that programs can have now; nothing where Linux does not tell.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|it| it.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// A line for each tier that may want more than there is.
pub(super) fn warnings(drive: &Served) -> Vec<String> {
    let (Some(pool), Some(available)) = (drive.sheet().pool_config(), available()) else {
        return Vec::new();
    };
    if !drive.is_by_member() {
        return Vec::new();
    }
    // Each block at most as it is, and as it is being written.
    let wanted = |tier: &TierConfig| tier.kind.data_in_memory().min(2 * drive.bytes());
    let wanting = pool.tiers.iter().filter(|tier| wanted(tier) > available);
    let line = |tier: &TierConfig| {
        format!(
            "warning: {}: `{tier}` may keep {} of data in memory, and this machine has {} left: it ends if that is used up; \
             ask for less, such as --set tier.{tier}.ram=8GiB",
            drive.name(),
            bytes_decimal(wanted(tier) as f64),
            bytes_decimal(available as f64),
            tier = tier.name
        )
    };
    wanting.map(line).collect()
}
