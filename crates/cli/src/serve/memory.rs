//! Memory for data that the tiers of pools may use on this machine, and whether there is enough for all of them.
//!
//! Not considered: stores in memory, which use what is written to them, as requested; limits of a container.

use live::ServedDevice;
use study::decide::memory_need::available;
use text::digits::bytes_decimal;
use tier::TierSettings;

/// A tier that stores data in memory.
struct MemoryTier {
    pool: String,
    tier: String,
    /// Maximum bytes that it may use.
    bytes: u64,
}

/// Returns the tiers that store data in memory, of a pool whose members store the data.
fn keepers(drive: &ServedDevice) -> Vec<MemoryTier> {
    let pool = drive.sheet().pool_config().filter(|_| drive.is_by_member());
    let tiers = pool.into_iter().flat_map(|pool| &pool.tiers);
    let keepers = tiers.map(|tier| MemoryTier {
        pool: drive.name().to_string(),
        tier: tier.name.clone(),
        // At most each block twice: the present one, and the one being written.
        bytes: tier.kind.data_in_memory().min(2 * drive.bytes()),
    });
    keepers.filter(|it| it.bytes > 0).collect()
}

/// Returns a line for each tier that stores data in memory, if all together may use more than is available.
fn warnings_of(keepers: &[MemoryTier], available: u64) -> Vec<String> {
    let all: u64 = keepers.iter().map(|it| it.bytes).sum();
    if all <= available {
        return Vec::new();
    }
    let together = match keepers {
        [_] => String::new(),
        _ => format!(" ({} with the others)", bytes_decimal(all as f64)),
    };
    let line = |MemoryTier { pool, tier, bytes }: &MemoryTier| {
        format!(
            "warning: {pool}: `{tier}` may keep {} of data in memory{together}, and this machine has {} left: \
             it ends if that is used up; ask for less, such as --set tier.{tier}.ram=8GiB",
            bytes_decimal(*bytes as f64),
            bytes_decimal(available as f64),
        )
    };
    keepers.iter().map(line).collect()
}

/// Returns the warnings on memory for these drives.
pub(super) fn warnings(drives: &[ServedDevice]) -> Vec<String> {
    let keepers: Vec<MemoryTier> = drives.iter().flat_map(keepers).collect();
    available().map_or(Vec::new(), |available| warnings_of(&keepers, available))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_alone_and_not_together_is_told() {
        let keeper = |pool: &str, gib: u64| MemoryTier {
            pool: pool.to_string(),
            tier: String::from("tank"),
            bytes: gib << 30,
        };
        let two = [keeper("a", 20), keeper("b", 18)];
        let told = |keepers: &[MemoryTier], gib: u64| warnings_of(keepers, gib << 30);
        assert_eq!(told(&two, 38), [""; 0]);
        assert_eq!(told(&two[..1], 20), [""; 0]);
        assert_eq!(told(&[], 0), [""; 0]);
        assert_eq!(
            told(&two, 37),
            [
                "warning: a: `tank` may keep 21.5 GB of data in memory (40.8 GB with the others), and this machine has \
                 39.7 GB left: it ends if that is used up; ask for less, such as --set tier.tank.ram=8GiB",
                "warning: b: `tank` may keep 19.3 GB of data in memory (40.8 GB with the others), and this machine has \
                 39.7 GB left: it ends if that is used up; ask for less, such as --set tier.tank.ram=8GiB",
            ]
        );
        assert_eq!(told(&two[..1], 19).len(), 1);
    }
}
