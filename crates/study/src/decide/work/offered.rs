//! A load at a requested rate: the bytes that its jobs offer, and its description on one drive.

use catalogue::DriveSheet;

use super::{Load, LoadFacts};
use crate::decide::{place, rate};
use crate::review::Workload;

impl Load {
    /// Returns the requested rate in bytes as text with its direction, such as `6.94 MB/s written`; `None` if no rate in
    /// bytes was requested.
    pub fn asked_bytes(&self) -> Option<String> {
        let Workload::Jobs(jobs) = &self.yours.workload else {
            return None;
        };
        let has = |at: usize| rate::arrival(jobs, at).is_none_or(|it| it.iops > 0.0);
        self.asked_rate?.words_of_bytes([has(0), has(1)])
    }

    /// Returns the bytes per second that the jobs offer to write at the requested rate: a run writes more or fewer, by the
    /// draw of arrivals. `None` if no rate was requested.
    pub(in crate::decide) fn offered_writes(&self) -> Option<f64> {
        let Workload::Jobs(jobs) = &self.yours.workload else {
            return None;
        };
        let offered = self.offered_iops.and(rate::arrival(jobs, 1));
        offered.map(|it| it.bytes)
    }

    /// Returns the description of the load as run on this drive with this number of seeds.
    pub(in crate::decide) fn facts_on(&self, drive: &DriveSheet, seeds: u32) -> LoadFacts {
        LoadFacts {
            has_files_to_read: place::with_files(drive, &self.yours.workload).is_some(),
            ..self.facts(seeds)
        }
    }
}
