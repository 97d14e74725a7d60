//! What the tiers of pools may want of this machine's memory for data, and whether it has so much for all of them.
//!
//! Left out: stores in memory, which take what is written to them, as asked for; a limit of a container's.

use live::Served;
use model::tier::TierSettings;
use text::digits::bytes_decimal;

/// A tier that keeps data in memory.
struct Keeper {
    pool: String,
    tier: String,
    /// Most that it may keep.
    bytes: u64,
}

/// Bytes of memory that programs can have now; nothing where Linux does not tell.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|it| it.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// The tiers of a pool with data by member that keep some in memory.
fn keepers(drive: &Served) -> Vec<Keeper> {
    let pool = drive.sheet().pool_config().filter(|_| drive.is_by_member());
    let tiers = pool.into_iter().flat_map(|pool| &pool.tiers);
    let keepers = tiers.map(|tier| Keeper {
        pool: drive.name().to_string(),
        tier: tier.name.clone(),
        // Each block at most as it is, and as it is being written.
        bytes: tier.kind.data_in_memory().min(2 * drive.bytes()),
    });
    keepers.filter(|it| it.bytes > 0).collect()
}

/// A line for each tier that keeps data in memory, if all together may want more than there is.
fn warnings_of(keepers: &[Keeper], available: u64) -> Vec<String> {
    let all: u64 = keepers.iter().map(|it| it.bytes).sum();
    if all <= available {
        return Vec::new();
    }
    let together = match keepers {
        [_] => String::new(),
        _ => format!(" ({} with the others)", bytes_decimal(all as f64)),
    };
    let line = |Keeper { pool, tier, bytes }: &Keeper| {
        format!(
            "warning: {pool}: `{tier}` may keep {} of data in memory{together}, and this machine has {} left: \
             it ends if that is used up; ask for less, such as --set tier.{tier}.ram=8GiB",
            bytes_decimal(*bytes as f64),
            bytes_decimal(available as f64),
        )
    };
    keepers.iter().map(line).collect()
}

/// What is to be said about the memory that these may want.
pub(super) fn warnings(drives: &[Served]) -> Vec<String> {
    let keepers: Vec<Keeper> = drives.iter().flat_map(keepers).collect();
    available().map_or(Vec::new(), |available| warnings_of(&keepers, available))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_alone_and_not_together_is_told() {
        let keeper = |pool: &str, gib: u64| Keeper {
            pool: pool.to_string(),
            tier: String::from("tank"),
            bytes: gib << 30,
        };
        let two = [keeper("a", 20), keeper("b", 18)];
        let told = |keepers: &[Keeper], gib: u64| warnings_of(keepers, gib << 30);
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
