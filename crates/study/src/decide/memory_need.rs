//! Whether this machine has the memory that simulations of a drive or pool need.
//!
//! Each seed that runs at the same time has a drive of its own, and at most one seed runs on each core. Not covered by the
//! estimate: several drives at once, and drives that are not NAND, which need little. The bytes per 4 KiB are those of a
//! drive before the first write, measured with this program: an assumption for other builds of it.

use std::thread::available_parallelism;

use catalogue::DriveSheet;
use text::digits::bytes_decimal;
use text::problem::Problems;
use tier::DriveConfig;

/// Bytes of memory for each 4 KiB of a simulated NAND drive before the first write: 402 MB for a drive of 3.84 TB.
const PER_UNIT: f64 = 0.43;
/// Bytes of a unit of the map.
const UNIT: f64 = 4096.0;

/// Returns the bytes of memory that programs can allocate now; `None` if Linux does not report it.
pub fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|it| it.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Returns the bytes of memory that a run of this drive or pool needs at least.
fn needed(config: &DriveConfig) -> f64 {
    match config {
        DriveConfig::Nand(nand) => nand.geometry.capacity as f64 / UNIT * PER_UNIT,
        DriveConfig::Raid0(raid) => raid.members.iter().map(needed).sum(),
        DriveConfig::Pool(pool) => pool.members.iter().map(|it| needed(&it.drive)).sum(),
        _ => 0.0,
    }
}

/// Memory of this machine, read before the runs: drives of earlier runs are kept for later ones.
#[derive(Clone, Copy, Debug)]
pub struct MachineMemory {
    /// Bytes that programs can allocate; `None` if this is not known.
    available: Option<f64>,
    /// Maximum number of runs at the same time.
    cores: u32,
}

impl MachineMemory {
    /// Reads the memory and the cores of this machine.
    pub fn read() -> MachineMemory {
        let cores = available_parallelism().map_or(1, |cores| cores.get() as u32);
        MachineMemory {
            available: available().map(|bytes| bytes as f64),
            cores,
        }
    }

    /// Checks whether there is memory for runs of a drive or pool with this number of seeds.
    ///
    /// # Errors
    /// There is less than the runs need at least.
    pub fn check(self, sheet: &DriveSheet, seeds: u32) -> Result<(), Problems> {
        let runs = seeds.clamp(1, self.cores.max(1));
        let needed = needed(&sheet.config) * f64::from(runs);
        let Some(available) = self.available.filter(|left| needed > *left) else {
            return Ok(());
        };
        let (of, fewer) = match runs {
            1 => (String::from("a simulation of it needs"), ""),
            runs => (
                format!("{runs} simulations of it at the same time need"),
                "--seeds 1, or ",
            ),
        };
        let what = format!(
            "{of} at least {} of memory, and this machine has {} left",
            bytes_decimal(needed),
            bytes_decimal(available)
        );
        let mut problems = Problems::whole(&sheet.id, what);
        problems.0[0].help = Some(format!(
            "{fewer}fewer or smaller drives: a stripe of equal drives does as many times the rate of a smaller stripe"
        ));
        Err(problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64 drives of 3.84 TB: 64 x 0.403 GB for each seed that runs at the same time.
    #[test]
    fn a_pool_that_needs_more_memory_than_there_is_is_refused() {
        let pool = catalogue::drive("stripe(64*cm7r-3840)").expect("an expression");
        let with = |available: f64, cores: u32| MachineMemory {
            available: Some(available),
            cores,
        };
        let error = with(20e9, 4).check(&pool, 1).expect_err("too much");
        let text = error.to_string();
        assert!(
            text.contains("a simulation of it needs at least 25.8 GB of memory"),
            "{text}"
        );
        assert!(text.contains("20 GB left"), "{text}");
        with(30e9, 4).check(&pool, 1).expect("enough for one seed");
        let error = with(60e9, 4)
            .check(&pool, 3)
            .expect_err("too much")
            .to_string();
        assert!(
            error.contains("3 simulations of it at the same time need at least 77.4 GB"),
            "{error}"
        );
        assert!(error.contains("--seeds 1"), "{error}");
        with(60e9, 2).check(&pool, 3).expect("two at the same time");
        let disks = catalogue::drive("stripe(64*exos-x18-16tb)").expect("an expression");
        with(1e6, 4).check(&disks, 3).expect("disks have no map");
    }
}
