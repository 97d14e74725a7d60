//! Rate of the comparison with a drive that is replaced: half of its maximum.
//!
//! The maximum is that of a short run with one seed, rounded to two digits. A short run of a slow drive, such as a disk,
//! has few I/Os and counts its start-up: such a drive runs as long as in an answer. If a limit on reads or writes requires a
//! higher rate, the rate is that of the limit. Not covered: traces, loads with a rate or pauses, and jobs that cannot have
//! a rate.

use catalogue::DriveSheet;
use lab::{Lab, to_the_end};

use super::choose::{self, ChooseRequest};
use super::feasibility;
use super::screening;
use super::work::{Conditions, OwnPace};

/// Request at a rate that the drive to be replaced determines.
pub struct HalfRate {
    /// The request with that rate.
    pub request: ChooseRequest,
    /// Whether the rate is half of the maximum; otherwise limits require a higher one.
    pub is_half: bool,
}

/// Returns the request at half of the maximum of the drive that is replaced, from a short run of it. `None` if the request
/// has a rate, the drive does not run the load, or the load cannot have a rate.
pub fn at_half_of(wanted: &DriveSheet, request: &ChooseRequest, lab: &Lab) -> Option<HalfRate> {
    let load = &request.load;
    if load.offered_iops().is_some() || load.own_pace() != OwnPace::NoJob {
        return None;
    }
    let usual = ChooseRequest {
        conditions: Conditions {
            seeds: 1,
            ..request.conditions.clone()
        },
        ..request.clone()
    };
    let run = |request: &ChooseRequest| choose::candidate(request, wanted, lab, &to_the_end).ok();
    let brief = screening::brief(request).and_then(|brief| run(&brief));
    let at_most = match brief.filter(screening::has_enough_ios) {
        Some(brief) => brief,
        None => run(&usual)?,
    };
    let rate = choose::common_rate(&[at_most])?;
    let (load, is_higher) = feasibility::at_least_at(&request.load, rate, &request.slo).ok()?;
    Some(HalfRate {
        request: ChooseRequest {
            load,
            ..request.clone()
        },
        is_half: !is_higher,
    })
}
