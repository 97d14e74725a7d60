//! Comparisons with limits that are not of one run: capacities, arriving rates, and all seeds together.
//!
//! Not covered: the figures of runs ([`super::super::tally`]).

use catalogue::DriveSheet;

use super::super::feasibility::{Arrivals, CHANCE};
use super::super::slo::LimitMetric;
use super::super::tally::Reading;
use super::ChooseRequest;

/// Sets the readings of limits on figures that are known before the runs: capacities and the arriving rate.
pub(super) fn known_before(
    request: &ChooseRequest,
    drive: &DriveSheet,
    keeps_up: bool,
    readings: &mut [Reading],
) {
    capacities(request, drive, readings);
    offered_rates(request, keeps_up, readings);
}

/// Unit of a drive's capacity, bytes.
const BLOCK: u64 = 4096;

/// A limit on the capacity is compared with that of the drive: no run has it. Drives have whole blocks of 4 KiB, so
/// one of 375 GB has 1536 bytes less, and it meets a limit of 375 GB.
fn capacities(request: &ChooseRequest, drive: &DriveSheet, readings: &mut [Reading]) {
    for (limit, reading) in request.slo.limits.iter().zip(readings) {
        if limit.figure == LimitMetric::Capacity {
            *reading = Reading::of_value(limit, (drive.capacity + BLOCK - 1) as f64 / 1e9);
        }
    }
}

/// A limit on the arriving rate is met if the drive keeps up: by random variation, slightly fewer I/Os may arrive.
fn offered_rates(request: &ChooseRequest, keeps_up: bool, readings: &mut [Reading]) {
    if request.load.offered_iops().is_none() {
        return;
    }
    let arrivals = Arrivals::from_load(&request.load);
    for (limit, reading) in request.slo.limits.iter().zip(readings) {
        let Some(arrives) = arrivals.most(limit) else {
            continue;
        };
        // The rate of each thread is a whole number.
        if (limit.bound / arrives - 1.0).abs() <= CHANCE {
            reading.met = Some(keeps_up);
            reading.room = reading.room.filter(|_| !keeps_up);
        }
    }
}

/// Returns the figure of all seeds together. If it meets the limit and some seed does not, returns the figure of the
/// worst seed instead: a drive must meet its limits with every seed. A seed with too few I/Os is ignored.
pub(super) fn of_all_seeds(together: Reading, seeds: impl Iterator<Item = Reading>) -> Reading {
    if together.met != Some(true) {
        return together;
    }
    let outside = seeds.filter(|seed| seed.met == Some(false));
    let room = |seed: &Reading| seed.room.unwrap_or(0.0);
    let furthest = outside.min_by(|a, b| room(a).total_cmp(&room(b)));
    furthest.unwrap_or(together)
}
