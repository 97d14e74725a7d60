//! Rate of the comparison with a drive that is replaced: half of its maximum.
//!
//! The maximum is that of a short run with one seed, rounded to two digits. Not covered: traces, loads with a rate, and
//! jobs that cannot have one.

use catalogue::DriveSheet;
use lab::{Lab, to_the_end};

use super::choose::{self, ChooseRequest};
use super::screening;

/// Returns the request at half of the maximum of the drive that is replaced, from a short run of it. `None` if the request
/// has a rate, the drive does not run the load, or the load cannot have a rate.
pub fn at_half_of(
    wanted: &DriveSheet,
    request: &ChooseRequest,
    lab: &Lab,
) -> Option<ChooseRequest> {
    if request.load.is_trace() || request.load.offered_iops().is_some() {
        return None;
    }
    let brief = screening::brief(request);
    let brief = brief.as_ref().unwrap_or(request);
    let at_most = choose::candidate(brief, wanted, lab, &to_the_end).ok()?;
    let rate = choose::common_rate(&[at_most])?;
    Some(ChooseRequest {
        load: request.load.clone().at_rate(rate).ok()?,
        ..request.clone()
    })
}
