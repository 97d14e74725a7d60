//! A load on a disk group in HCIBench's notation: a block size and a share of reads, such as `4k70r`, from eight disks
//! at QD4 each (its easy run, from knowledge of it).

use text::problem::Problems;

use super::work::Load;

/// Disks of a group, and the queue depth of each.
pub const DISKS: u32 = 8;
const IN_FLIGHT: u32 = 4;

/// A load in HCIBench's notation.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    /// Name, such as `4k70r`.
    pub name: String,
    /// Block size, as fio writes it.
    pub block: String,
    /// Percentage of reads.
    pub reads: u32,
}

impl Profile {
    /// Returns the load on the whole drive or pool.
    ///
    /// # Errors
    /// Options that fio would reject.
    pub fn load(&self) -> Result<Load, Problems> {
        Load::of_text(&self.name, self.job("ramp_time=200ms\nruntime=2s\n"))
    }

    /// Returns the job file, with these lines at its end.
    pub fn job(&self, more: &str) -> String {
        format!(
            "; HCIBench's easy run of one disk group: {DISKS} disks with {IN_FLIGHT} in flight each.\n[{}]\nioengine=libaio\n\
             direct=1\nfilename=/dev/nvme0n1\nnorandommap=1\nrw=randrw\nrwmixread={}\nbs={}\niodepth={IN_FLIGHT}\n\
             numjobs={DISKS}\ngroup_reporting=1\ntime_based=1\n{more}",
            self.name, self.reads, self.block
        )
    }
}
