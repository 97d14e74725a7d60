//! Ample room: drives among which p99 does not decide.
//!
//! At 20 IOPS, or at a tenth of a limit, every drive is fast enough, and p99 would name the dearest one. Three cases
//! count:
//!
//! - With limits on latency: drives that meet all limits, with at most half of each limited latency.
//! - Without them, at a given rate of sequential writes (checkpoints, backups): all drives that keep up. Bandwidth is
//!   what such a load asks for.
//! - Without them, for other loads: all drives that keep up with a given rate, if no part of any of them is busy for
//!   more than a third of the time. Queues then add little to the latency of the medium.
//!
//! The drives of each case that last the requested years are ranked by power, or by years if some power is not known.
//! Without regard to life, a frugal drive of desktop computers would win that is worn out after a year. If none lasts,
//! years rank all. Both shares are choices of this project: a model from a data sheet may be wrong by a factor of two in
//! p99. Not covered: logs, whose latency is the reason for buying them; traces; pools without limits on latency; any
//! requested criterion.

use serde::Serialize;

use super::super::life::CyclesEnd;
use super::{Candidate, ChooseRequest, Measure};
use crate::review::results::{Measurement, rounded};

/// Margin of a limit on latency, as a share of its bound, that is ample.
const ROOM: f64 = 0.5;
/// Utilisation of the busiest part up to which queues add little to latency.
const BUSY: f64 = 1.0 / 3.0;

/// Drives with ample room, and the criterion that ranks them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AmpleRoom {
    /// Names of the drives.
    pub drives: Vec<String>,
    /// Number of drives with as much room that do not last the requested years, if others do; left out if 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub do_not_last: usize,
    /// Ranking criterion.
    pub by: Measure,
    /// Utilisation of the busiest part of any of them; null with limits on latency, and for sequential writes.
    pub busy: Option<f64>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Checks whether a drive lasts these years, by its rating and by its cycles.
fn lasts(one: &Candidate, years: f64) -> bool {
    one.ends_within(years).is_none() && CyclesEnd::from_parts(&one.parts, years).is_none()
}

/// Returns the utilisation of the busiest part of a drive.
fn busiest(measured: &Measurement) -> Option<f64> {
    let parts = [
        measured.controller_busy,
        measured.link_busy,
        measured.medium_busy,
    ];
    parts.into_iter().flatten().max_by(f64::total_cmp)
}

/// Returns whether each limit on latency is met with ample room; `None` without such limits.
fn is_far_below(one: &Candidate) -> Option<bool> {
    let mut latencies = one.readings.iter().filter(|it| it.is_latency).peekable();
    latencies.peek()?;
    let mut rooms = latencies.map(|it| it.room);
    Some(rooms.all(|room| room.is_some_and(|room| room >= ROOM)))
}

impl AmpleRoom {
    /// Returns the drives with ample room, if there are at least two and something ranks them.
    pub fn from_candidates(request: &ChooseRequest, candidates: &[Candidate]) -> Option<AmpleRoom> {
        if request.load.is_trace() {
            return None;
        }
        let met = || candidates.iter().filter(|one| one.is_met());
        let is_limited = request.slo.limits.iter().any(|it| it.figure.is_latency());
        let (ample, busy): (Vec<&Candidate>, _) = if is_limited {
            let far = met().filter(|one| is_far_below(one) == Some(true));
            (far.collect(), None)
        } else if request.load.offered_iops().is_some()
            && request.load.sequential_writes().is_some()
        {
            (met().collect(), None)
        } else {
            request.load.offered_iops()?;
            let all: Option<Vec<f64>> = met()
                .map(|one| {
                    let is_pool = one.promise.is_some();
                    busiest(&one.measurement).filter(|busy| !is_pool && *busy <= BUSY)
                })
                .collect();
            let busy = all?.into_iter().max_by(f64::total_cmp)?;
            (met().collect(), Some(rounded(busy)))
        };
        if ample.len() < 2 {
            return None;
        }
        let all = ample.len();
        let lasting: Vec<&Candidate> = ample
            .iter()
            .copied()
            .filter(|one| lasts(one, request.years))
            .collect();
        let (ranked, order) = match lasting.is_empty() {
            true => (ample, [Measure::Years, Measure::Watt]),
            false => (lasting, [Measure::Watt, Measure::Years]),
        };
        let is_known = |by: &Measure| ranked.iter().all(|one| by.value(one).is_some());
        let by = order.into_iter().find(is_known)?;
        Some(AmpleRoom {
            drives: ranked.iter().map(|one| one.drive.clone()).collect(),
            do_not_last: all - ranked.len(),
            by,
            busy,
        })
    }

    /// Checks whether a candidate has ample room.
    pub fn contains(&self, one: &Candidate) -> bool {
        self.drives.contains(&one.drive)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::named;
    use super::super::super::rate::OfferedRate;
    use super::super::super::slo::Slo;
    use super::super::super::tally::Reading;
    use super::super::super::work::{Conditions, Load};
    use super::super::tests::of;
    use super::*;

    fn request(slo: &str, rate: Option<f64>) -> ChooseRequest {
        let text = named::text("oltp").expect("a named load").to_owned();
        let load = Load::of_text("oltp", text).expect("fio's words");
        let load = match rate {
            Some(rate) => load.at_rate(OfferedRate::Iops(rate)).expect("a rate"),
            None => load,
        };
        ChooseRequest {
            load,
            slo: match slo {
                "" => Slo::default(),
                slo => Slo::read(slo).expect("limits"),
            },
            years: 5.0,
            prices: None,
            conditions: Conditions {
                host: catalogue::host("linux").expect("built in"),
                state: model::media::Precondition::Steady,
                seed: 1,
                seeds: 1,
            },
        }
    }

    fn with(drive: &str, p99_us: f64, watts: Option<f64>, busy: f64, slo: &Slo) -> Candidate {
        let readings = slo
            .limits
            .iter()
            .map(|limit| Reading::of_value(limit, p99_us));
        let mut one = of(drive, true, 20.0, p99_us, None);
        one.readings = readings.collect();
        one.iops_per_watt = watts.map(|watts| 20.0 / watts);
        one.years = Some(9.0);
        one.measurement.medium_busy = Some(busy);
        one
    }

    fn found(
        slo: &str,
        rate: Option<f64>,
        drives: &[(&str, f64, Option<f64>, f64)],
    ) -> Option<AmpleRoom> {
        let request = request(slo, rate);
        let all: Vec<Candidate> = drives
            .iter()
            .map(|(drive, p99, watts, busy)| with(drive, *p99, *watts, *busy, &request.slo))
            .collect();
        AmpleRoom::from_candidates(&request, &all)
    }

    #[test]
    fn drives_far_below_a_limit_are_ranked_by_power() {
        let drives = [
            ("quick", 10.0, Some(9.0), 0.9),
            ("slow", 490.0, Some(3.0), 0.9),
            ("near", 510.0, Some(1.0), 0.9),
        ];
        let ample = found("p99<1ms", Some(20.0), &drives).expect("two drives");
        assert_eq!(ample.drives, ["quick", "slow"]);
        assert_eq!((ample.by, ample.busy), (Measure::Watt, None));
        // One drive is no choice.
        assert_eq!(found("p99<300us", Some(20.0), &drives), None);
    }

    #[test]
    fn without_limits_all_drives_must_be_idle_most_of_the_time() {
        let idle = [("a", 10.0, Some(9.0), 0.01), ("b", 9_000.0, Some(3.0), 0.3)];
        let ample = found("", Some(20.0), &idle).expect("two drives");
        assert_eq!((ample.by, ample.busy), (Measure::Watt, Some(0.3)));
        assert_eq!(found("", None, &idle), None, "at each drive's own maximum");
        let busy = [idle[0], ("b", 9_000.0, Some(3.0), 0.4)];
        assert_eq!(found("", Some(20.0), &busy), None);
    }

    /// The frugal drive is worn out before the requested years end; power ranks those that last.
    #[test]
    fn drives_that_last_come_before_frugal_ones() {
        let request = request("p99<1ms", Some(20.0));
        let one = |drive: &str, watts: f64, years: f64| {
            let mut one = with(drive, 10.0, Some(watts), 0.1, &request.slo);
            one.years = Some(years);
            one.ends_after_years = Some(years);
            one
        };
        let all = [
            one("frugal", 1.0, 0.7),
            one("lasts", 5.0, 8.8),
            one("lasts too", 6.0, 17.6),
        ];
        let of = |some: &[Candidate]| AmpleRoom::from_candidates(&request, some);
        let ample = of(&all).expect("three drives");
        assert_eq!(ample.drives, ["lasts", "lasts too"]);
        assert_eq!((ample.by, ample.do_not_last), (Measure::Watt, 1));
        // One that lasts is the choice.
        let ample = of(&all[..2]).expect("two drives");
        assert_eq!(
            (&ample.drives[..], ample.do_not_last),
            (&["lasts".to_owned()][..], 1)
        );
        // If none lasts, years rank.
        let short = [one("a", 1.0, 0.7), one("b", 5.0, 0.9)];
        let ample = of(&short).expect("two drives");
        assert_eq!((ample.by, ample.drives.len()), (Measure::Years, 2));
        assert_eq!(ample.do_not_last, 0);
    }

    #[test]
    fn unknown_power_leaves_years() {
        let drives = [("a", 10.0, Some(9.0), 0.01), ("b", 90.0, None, 0.01)];
        let ample = found("", Some(20.0), &drives).expect("two drives");
        assert_eq!(ample.by, Measure::Years);
    }

    /// Of nine thousand large writes in a run, none of the ten beyond p99 may be known.
    #[test]
    fn another_criterion_ranks_if_p99_is_not_known() {
        let unknown = || Candidate {
            p99_us: None,
            ..of("a", true, 9_000.0, 0.0, None)
        };
        let asked = request("", Some(9_000.0));
        let by = |one: Candidate| {
            let (answer, by) =
                super::super::answer_by_default(&asked, vec![one], Vec::new(), Measure::P99);
            assert!(answer.best_by(by).is_some());
            by
        };
        assert_eq!(by(unknown()), Measure::Iops);
        let watts = Candidate {
            iops_per_watt: Some(500.0),
            ..unknown()
        };
        assert_eq!(by(watts), Measure::Watt);
        assert_eq!(by(of("a", true, 9_000.0, 70.0, None)), Measure::P99);
    }
}
