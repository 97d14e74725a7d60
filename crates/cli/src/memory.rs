//! `--memory`: the host's memory for its page cache; and whether this machine has the memory that a simulation needs.
//!
//! Not covered by the estimate: several runs at once, and drives that are not NAND, which need little.

use catalogue::{DriveSheet, HostSheet};
use text::digits::bytes_decimal;
use text::problem::Problems;
use tier::DriveConfig;

/// Parses the memory of a page cache.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    let bytes = crate::size::size(text)?;
    match catalogue::PAGE_CACHE.contains(&bytes) {
        true => Ok(bytes),
        false => Err(String::from("not from 16MiB to 64TiB")),
    }
}

/// Returns the host with the given memory.
pub(crate) fn with_memory(memory: Option<u64>, mut host: HostSheet) -> Result<HostSheet, Problems> {
    let Some(bytes) = memory else {
        return Ok(host);
    };
    match &mut host.config.page_cache {
        Some(config) => config.memory = bytes,
        None => {
            let what = format!("--memory: the host {} has no [page_cache]", host.id);
            let mut problems = Problems::whole("--memory", what);
            problems.0[0].help = Some("a host with a page cache, such as linux".into());
            return Err(problems);
        }
    }
    Ok(host)
}

/// Returns the bytes of memory that programs can allocate now; `None` if Linux does not report it.
pub(crate) fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|it| it.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Bytes of memory for each 4 KiB of a simulated NAND drive before the first write: 402 MB for a drive of 3.84 TB.
const PER_UNIT: f64 = 0.43;
/// Bytes of a unit of the map.
const UNIT: f64 = 4096.0;

/// Returns the bytes of memory that a run of this drive or pool needs at least.
fn needed(config: &DriveConfig) -> f64 {
    match config {
        DriveConfig::Nand(nand) => nand.geometry.capacity as f64 / UNIT * PER_UNIT,
        DriveConfig::Raid0(raid) => raid.members.iter().map(needed).sum(),
        DriveConfig::Pool(pool) => pool.members.iter().map(|it| needed(&it.drive)).sum(),
        _ => 0.0,
    }
}

/// Checks whether this machine has the memory that a run of a drive or pool needs at least.
///
/// # Errors
/// It has less.
pub(crate) fn check(sheet: &DriveSheet) -> Result<(), Problems> {
    match available() {
        Some(bytes) => check_against(sheet, bytes as f64),
        None => Ok(()),
    }
}

fn check_against(sheet: &DriveSheet, available: f64) -> Result<(), Problems> {
    let needed = needed(&sheet.config);
    if needed <= available {
        return Ok(());
    }
    let what = format!(
        "a simulation of it needs at least {} of memory, and this machine has {} left",
        bytes_decimal(needed),
        bytes_decimal(available)
    );
    let mut problems = Problems::whole(&sheet.id, what);
    problems.0[0].help = Some(String::from(
        "fewer or smaller drives: a stripe of equal drives does as many times the rate of a smaller stripe",
    ));
    Err(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64 drives of 3.84 TB: 64 x 0.403 GB.
    #[test]
    fn a_pool_that_needs_more_memory_than_there_is_is_refused() {
        let pool = catalogue::drive("stripe(64*cm7r-3840)").expect("an expression");
        let error = check_against(&pool, 20e9).expect_err("too much");
        let text = error.to_string();
        assert!(text.contains("needs at least 25.8 GB of memory"), "{text}");
        assert!(text.contains("20 GB left"), "{text}");
        check_against(&pool, 30e9).expect("enough");
        let disks = catalogue::drive("stripe(64*exos-x18-16tb)").expect("an expression");
        check_against(&disks, 1e6).expect("disks have no map");
    }
}
