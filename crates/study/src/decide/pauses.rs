//! Remark on garbage collection for answers that depend on latency percentiles under a write load.
//!
//! Below saturation, some drives pace their writes, and others stall writes while all dies collect garbage (decision
//! 0148). No data sheet states what a drive does. An answer that depends on it names the drives whose model has no such
//! behaviour from a source.

use catalogue::{DriveSheet, FigureKind};
use lab::Outcome;

use super::slo::{LimitMetric, Slo};
use crate::ledger::support::{self, Statement};

/// Figures that describe how garbage collection delays writes below saturation.
const FIGURES: [&str; 2] = ["nand.pace.depth", "nand.collection.burst"];

/// Text for a drive whose pauses below saturation are unknown.
pub const REMARK: &str = "writes below saturation: pauses of garbage collection are not known or not modelled for this drive";

/// Checks whether the drive, or a member, is a NAND drive without such a figure from a source. In the catalogue, only drives
/// have one whose writes were measured below saturation, also where it is assumed to be a sister drive's.
fn are_unknown(drive: &DriveSheet) -> bool {
    if !drive.members.is_empty() {
        return drive.members.iter().any(are_unknown);
    }
    let is_nand = drive.figures.iter().any(|it| it.key.starts_with("nand."));
    let known = |key: &&str| {
        drive
            .figure(key)
            .is_some_and(|it| it.kind != FigureKind::Assumed || it.file.starts_with("catalogue/"))
    };
    is_nand && !FIGURES.iter().any(known)
}

/// Returns the support of a drive's model. If the answer depends on a latency percentile under writes and nothing is
/// known about the drive's pauses, the text ends with the remark.
pub(super) fn statement(drive: &DriveSheet, depends: bool) -> Statement {
    let mut known = support::statement(drive);
    if depends && are_unknown(drive) {
        known.text = format!("{}; {REMARK}", known.text);
    }
    known
}

/// As [`statement`], for an answer that depends on a percentile if one is limited and the load writes.
pub(super) fn statement_for(drive: &DriveSheet, slo: &Slo, writes: bool) -> Statement {
    let mut limits = slo.limits.iter();
    let percentile = limits.any(|it| matches!(it.figure, LimitMetric::Percentile(_)));
    statement(drive, percentile && writes)
}

/// Checks whether a run writes or syncs.
pub(super) fn writes(outcomes: &[Outcome]) -> bool {
    let mut threads = outcomes.iter().flat_map(|one| &one.threads);
    threads.any(|it| it.write.latency.count() + it.sync.latency.count() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The remark is on NAND drives alone, and only if a percentile of a load with writes is limited.
    #[test]
    fn the_remark_follows_percentiles_under_writes_on_drives_without_known_pauses() {
        let has = |drive: &str, slo: &str, writes: bool| {
            let drive = catalogue::drive(drive).expect("built in");
            let slo = Slo::read(slo).expect("limits");
            statement_for(&drive, &slo, writes).text.contains(REMARK)
        };
        for drive in ["p4610-1600", "980pro-1000", "p3608-1600"] {
            assert!(has(drive, "p99<1ms", true), "{drive}");
            assert!(has(drive, "iops>1k,read.p99.9<1ms", true), "{drive}");
            assert!(!has(drive, "p99<1ms", false), "{drive}");
            assert!(!has(drive, "mean<1ms,iops>1k", true), "{drive}");
        }
        // Measured: one is paced, two stall. No NAND; a pool with a NAND member.
        for drive in ["pm9a3-960", "7450max-800", "7450pro-960"] {
            assert!(!has(drive, "p99<1ms", true), "{drive}");
        }
        assert!(!has("p4800x-375", "p99<1ms", true));
        assert!(!has("wd-red-3tb", "p99<1ms", true));
        assert!(has("mirror(2*p4610-1600)", "p99<1ms", true));
    }
}
