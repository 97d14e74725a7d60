//! NAND drives that are read-only before a load begins, because Percentage Used is at or above their limit. Every write
//! of the load would fail.
//!
//! Not covered: a RAID 0 of one catalogue entry, and drives that reach the limit during a run.

use catalogue::DriveSheet;
use model::Op;
use model::media::Medium;
use text::problem::Problems;
use workload::job::{Job, Mix};

use super::life_part::LifePart;
use super::work::Load;
use crate::review::Workload;

/// Returns the Percentage Used at and above which a drive is read-only, if the drive is read-only now.
pub fn exceeded_limit(drive: &DriveSheet) -> Option<f64> {
    let limit = drive.config.read_only_percent()?;
    (drive.config.percentage_used() >= limit).then_some(limit)
}

/// Checks whether a load changes data.
pub(super) fn writes(load: &Load) -> bool {
    let changes = |job: &Job| match job.mix {
        Mix::Read => false,
        Mix::ReadWrite => job.read_percent < 100,
        Mix::Write | Mix::Trim | Mix::TrimWrite => true,
    };
    match &load.user_workload().workload {
        Workload::Jobs(jobs) => jobs.iter().any(changes),
        Workload::Trace(trace) => {
            let mut ops = trace.records.iter().map(|record| record.request().op);
            ops.any(|op| op == Op::Write)
        }
    }
}

/// Ends the life of the parts that are read-only, if the load writes.
pub(super) fn end(drive: &DriveSheet, load: &Load, parts: &mut [LifePart]) {
    let members = drive.named_members();
    for (index, part) in parts.iter_mut().enumerate() {
        let sheet = match &drive.pool {
            Some(_) => members.get(index).map_or(drive, |(_, sheet)| sheet),
            None => drive,
        };
        if let Some(written) = &mut part.written
            && exceeded_limit(sheet).is_some()
            && writes(load)
        {
            written.years_to_rating = Some(0.0);
            written.years_to_rating_by_seed = Some([0.0; 2]);
        }
    }
}

/// Checks that a drive, and each member of a pool, accepts the writes of a load.
///
/// # Errors
/// The load writes, and the drive or a member is read-only.
pub(super) fn check(drive: &DriveSheet, load: &Load) -> Result<(), Problems> {
    let members = drive.named_members();
    let member = members
        .iter()
        .find_map(|(name, sheet)| Some((Some(*name), exceeded_limit(sheet)?)));
    let found = exceeded_limit(drive).map(|limit| (None, limit)).or(member);
    let Some((member, limit)) = found.filter(|_| writes(load)) else {
        return Ok(());
    };
    let who = member.map_or_else(String::new, |name| format!("its member {name} is "));
    let what = format!("{who}read-only at {limit} % Percentage Used, and the load writes");
    Err(Problems::whole(&*drive.id, what))
}

#[cfg(test)]
mod tests {
    use lab::{Lab, to_the_end};
    use model::Span;
    use model::media::Precondition;

    use super::super::choose::{self, ChooseRequest};
    use super::super::life;
    use super::super::slo::Slo;
    use super::super::work::Conditions;
    use super::*;

    /// Returns a small P4610, which becomes read-only at 105 %.
    fn used(percent: f64) -> DriveSheet {
        let mut sheet = catalogue::drive("p4610-1600").expect("built in");
        sheet.config = sheet.config.shrunk(1 << 30);
        sheet.capacity = sheet.config.capacity_bytes();
        sheet.config.set_percentage_used(percent).expect("it wears");
        sheet
    }

    fn load(rw: &str) -> Load {
        let text =
            format!("[a]\nrw={rw}\nbs=4k\nioengine=libaio\ndirect=1\nruntime=10ms\ntime_based=1\n");
        let load = Load::of_text("a.fio", text).expect("fio's words");
        load.at_most(Span::from_ms(10))
    }

    fn conditions() -> Conditions {
        Conditions {
            host: catalogue::host(catalogue::TYPICAL_HOST).expect("built in"),
            state: Precondition::Filled,
            seed: 1,
            seeds: 1,
        }
    }

    #[test]
    fn a_read_only_drive_is_unfit_for_a_load_that_writes() {
        let candidate = |percent: f64, rw: &str| {
            let request = ChooseRequest {
                load: load(rw),
                slo: Slo { limits: Vec::new() },
                years: 5.0,
                prices: None,
                conditions: conditions(),
            };
            choose::candidate(&request, &used(percent), &Lab::new(), &to_the_end)
        };
        for rw in ["randwrite", "randrw"] {
            let problems = candidate(106.0, rw).expect_err("it is read-only");
            let what = &problems.0[0].what;
            assert!(what.contains("read-only at 105 %"), "{what}");
        }
        assert!(candidate(106.0, "randread").is_ok());
        assert!(candidate(104.0, "randwrite").is_ok());
    }

    #[test]
    fn a_read_only_drive_does_not_last_at_a_load_that_writes() {
        let lasts = |percent: f64, rw: &str| {
            let (drive, load) = (used(percent), load(rw));
            let answer = life::life(
                &drive,
                Some(&load),
                5.0,
                &conditions(),
                &Lab::new(),
                &to_the_end,
            );
            let answer = answer.expect("it runs");
            (answer.lasts(), answer.weakest().map(|(_, years)| years))
        };
        assert_eq!(lasts(106.0, "randwrite"), (Some(false), Some(0.0)));
        assert_eq!(lasts(106.0, "randread"), (Some(true), None));
    }
}
