//! The common rate at which logs are compared, if the user gives none.
//!
//! A slow log throttles clients that wait for it, which also limits its own latency. So logs run first at their own
//! maximum, and then all at half of the fastest one's maximum. Jobs of a load differ: the fast ones dominate the sum of
//! a maximum, and at a rate all have their share. If no log keeps up with the rate, it is halved.

use lab::Lab;
use study::decide::choose::{self, Candidate, ChooseRequest};
use study::decide::feasibility;
use study::decide::rate::OfferedRate;
use text::problem::Problems;

use super::{NamedDrive, ran};

/// Maximum number of times that the rate is halved again.
const HALVINGS: u32 = 5;

/// Runs logs again at a common rate with which at least one keeps up. If none does, or the load has no rate, the
/// candidates stay those at their own maximum.
///
/// # Errors
/// A limit is above half of the fastest log's maximum.
pub(super) fn at_common_rate(
    drives: &[NamedDrive],
    request: ChooseRequest,
    lab: &Lab,
    candidates: &mut Vec<Candidate>,
) -> Result<ChooseRequest, Problems> {
    let mut rate = choose::common_rate(candidates);
    for halving in 0..=HALVINGS {
        let paced = rate.and_then(|rate| request.load.clone().at_rate(rate).ok());
        let Some(load) = paced else {
            return Ok(request);
        };
        let half = "half of the fastest log's maximum";
        match feasibility::check(&load, &request.slo, Some(half)) {
            Err(problems) if halving == 0 => return Err(problems),
            Err(_) => return Ok(request),
            Ok(()) => {}
        }
        let paced = ChooseRequest {
            load,
            ..request.clone()
        };
        let again = ran(drives, &paced, lab, &mut Vec::new());
        // A lower rate would not help a drive that refuses to run.
        if again.len() != candidates.len() {
            return Ok(request);
        }
        if again.iter().any(|one| one.keeps_up == Some(true)) {
            let both = again.into_iter().zip(&*candidates);
            *candidates = both.map(|(one, most)| one.with_own_maximum(most)).collect();
            return Ok(paced);
        }
        let halved = paced.load.offered_iops().map(|rate| rate / 2.0);
        rate = halved.filter(|rate| *rate >= 1.0).map(OfferedRate::Iops);
    }
    Ok(request)
}
