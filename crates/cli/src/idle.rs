//! A note on idle drives: runs leave NVMe power states out.
//!
//! Linux configures drives to enter non-operational power states by themselves (autonomous power state transitions,
//! APST). After 100 ms without a command, the drive enters a state whose entry and exit latencies sum to at most 15
//! ms. After 2 s, it enters a state of at most 100 ms (`apst_primary_timeout_ms` and related parameters, Linux 5.14
//! and later). The next command waits until the drive has left the state. The models have no such states, so the note
//! is printed for jobs that pause. Not checked: gaps in replayed traces.

use catalogue::DriveSheet;
use model::Span;
use model::media::{DriveConfig, Medium};
use workload::job::Job;

use crate::output::remark;

/// Idle time after which Linux lets a drive enter its first non-operational state.
const ENTERED: Span = Span::from_ms(100);

/// Prints that wake-up latencies are not modelled, if a client drive is idle long enough to enter a power state.
pub(crate) fn note_on_power_states(drives: &[DriveSheet], jobs: &[Job]) {
    let pauses = |job: &Job| job.think.is_some_and(|think| think.pause >= ENTERED);
    if !jobs.iter().any(pauses) {
        return;
    }
    for drive in drives.iter().filter(|drive| is_client(drive)) {
        let what = format!(
            "{}: power states during pauses of 100 ms and more are not modelled; with Linux's defaults, the first I/O after such a pause \
             would wait some milliseconds until the drive wakes",
            drive.id
        );
        remark("note", &what);
    }
}

/// Checks whether this is an NVMe drive of NAND with a volatile write cache, as desktops and laptops have.
fn is_client(drive: &DriveSheet) -> bool {
    matches!(drive.config, DriveConfig::Nand(_))
        && drive.interface.contains("NVMe")
        && drive.config.volatile_write_cache()
}
