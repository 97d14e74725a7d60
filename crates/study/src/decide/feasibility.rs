//! Limits that no drive can meet, because the load itself is slower.
//!
//! A rate (`--rate`, `--users`, a trace, `rate_iops` of a job) may be below `iops>` or `bw>`. A limit may be on reads or
//! writes that the load does not have.
//!
//! Such a request is a contradiction of its options, not a failure of drives, so it is refused before anything runs.
//! The arrival rate of a random load varies by chance; a limit counts as out of reach if it exceeds the rate by more
//! than [`CHANCE`]. Not covered: closed loops, whose rate depends on the drive, and a limit on syncs.

use text::digits::{count, megabytes_a_second};
use text::problem::{Place, Problem, Problems};

use super::rate::{self, Arrival, OfferedRate};
use super::slo::{Limit, LimitMetric, LimitScope, Slo};
use super::work::Load;
use crate::review::Workload;

/// Share by which a limit may exceed the arrival rate, which is a whole number for each thread.
pub(super) const CHANCE: f64 = 0.01;

/// Highest rates of a load: of its reads, and of its writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrivals([Option<Arrival>; 2]);

impl Arrivals {
    /// Returns the rates at which the I/Os of a load arrive at most.
    pub(super) fn from_load(load: &Load) -> Arrivals {
        match &load.user_workload().workload {
            Workload::Jobs(jobs) => Arrivals([0, 1].map(|at| rate::arrival(jobs, at))),
            Workload::Trace(trace) => {
                let all = trace.summary();
                let seconds = all.duration.seconds();
                let rate = |requests: u64, bytes: u64| {
                    (seconds > 0.0).then(|| Arrival {
                        iops: requests as f64 / seconds,
                        bytes: bytes as f64 / seconds,
                    })
                };
                Arrivals([
                    rate(all.read.requests, all.read.bytes),
                    rate(all.write.requests, all.write.bytes),
                ])
            }
        }
    }

    /// Returns the highest value of a limited rate, in the unit of the limit; `None` for other figures, and if the drive
    /// sets the rate.
    pub(super) fn most(&self, limit: &Limit) -> Option<f64> {
        let value = |one: Option<Arrival>| match limit.figure {
            LimitMetric::Iops => Some(one?.iops),
            LimitMetric::Bandwidth => Some(one?.bytes * 1e-6),
            _ => None,
        };
        let [read, write] = self.0;
        match limit.of {
            LimitScope::All => Some(value(read)? + value(write)?),
            LimitScope::Read => value(read),
            LimitScope::Write => value(write),
            LimitScope::Sync => None,
        }
    }

    /// Checks whether a limit is on a direction that the load does not have.
    fn lacks(&self, limit: &Limit) -> bool {
        let at = match limit.of {
            LimitScope::Read => 0,
            LimitScope::Write => 1,
            LimitScope::All | LimitScope::Sync => return false,
        };
        self.0[at].is_some_and(|one| one.iops <= 0.0)
    }
}

/// Returns the factor by which a load with a rate is slower than the limit that requires most; `None` if no limit
/// requires more. A rate may lack the I/Os of one direction: of 50 k IOPS with 67 % reads, 33.5 k are reads.
fn lacking(paced: &Load, slo: &Slo) -> Option<f64> {
    let arrivals = Arrivals::from_load(paced);
    let factors = slo.limits.iter().filter_map(|limit| {
        let most = arrivals.most(limit).filter(|most| *most > 0.0)?;
        Some(limit.bound / most).filter(|factor| *factor > 1.0 + CHANCE)
    });
    factors.max_by(f64::total_cmp)
}

/// Returns the load at this rate, or at the lowest higher rate that has the I/Os of each limited direction, and whether
/// the rate is higher.
///
/// # Errors
/// It is a trace, or a job cannot have a rate.
pub fn at_least_at(load: &Load, offered: OfferedRate, slo: &Slo) -> Result<(Load, bool), Problems> {
    let paced = load.clone().at_rate(offered)?;
    let higher = paced.offered_iops().zip(lacking(&paced, slo));
    match higher {
        Some((iops, factor)) => {
            let higher = OfferedRate::Iops(iops * factor);
            Ok((load.clone().at_rate(higher)?, true))
        }
        None => Ok((paced, false)),
    }
}

/// Returns the load at the lowest rate at which it has the I/Os of all limits, if a limit on the total rate sets one
/// ([`Load::at_rate_of`]). Without such a limit, the drives set the rate.
#[must_use]
pub fn at_required_rate(load: Load, slo: &Slo) -> Load {
    let paced = load.clone().at_rate_of(slo);
    let Some((iops, factor)) = paced.offered_iops().zip(lacking(&paced, slo)) else {
        return paced;
    };
    load.at_rate(OfferedRate::Iops(iops * factor))
        .unwrap_or(paced)
}

/// Checks that a drive can meet each limit at the rate of this load. `option` is what sets the rate, as the user wrote
/// it: `--rate 20k`.
///
/// # Errors
/// All limits that are out of reach, each with both options.
pub fn check(load: &Load, slo: &Slo, option: Option<&str>) -> Result<(), Problems> {
    let arrivals = Arrivals::from_load(load);
    let mut problems = Problems::default();
    for limit in &slo.limits {
        let (what, help) = if arrivals.lacks(limit) {
            let kind = match limit.of {
                LimitScope::Read => "reads",
                _ => "writes",
            };
            let what = format!("{}: the load has no {kind}", limit.text);
            (what, String::from("leave it out, or choose another load"))
        } else {
            let Some(most) = arrivals.most(limit) else {
                continue;
            };
            if limit.bound <= most * (1.0 + CHANCE) {
                continue;
            }
            (
                contradiction(limit, most, load, option),
                advice(limit, option),
            )
        };
        problems.0.push(Problem {
            origin: String::from("--slo"),
            place: Place::Whole,
            what,
            help: Some(help),
        });
    }
    problems.or(())
}

/// Returns the contradiction between the source of the rate and a limit.
fn contradiction(limit: &Limit, most: f64, load: &Load, option: Option<&str>) -> String {
    let most = match limit.figure {
        LimitMetric::Bandwidth => megabytes_a_second(most),
        _ => format!("{} IOPS", count(most)),
    };
    let of = match limit.of {
        LimitScope::Read => " of reads",
        LimitScope::Write => " of writes",
        LimitScope::All | LimitScope::Sync => "",
    };
    let source = match (option, load.is_trace()) {
        (Some(option), _) => option.to_owned(),
        (None, true) => String::from("the trace"),
        (None, false) => String::from("the rate of the jobs"),
    };
    format!(
        "{} contradicts {source}: at most {most}{of} arrive, so no drive can meet it",
        limit.text
    )
}

fn advice(limit: &Limit, option: Option<&str>) -> String {
    let name = option.and_then(|option| option.split(' ').next());
    match (limit.of, name) {
        (_, Some("half")) => String::from("lower the limit, or give the rate (--rate)"),
        (LimitScope::All, Some(name)) => {
            format!("leave out one of the two, or raise {name} to the limit")
        }
        _ => String::from("lower the limit, or raise the rate"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::named;
    use super::super::rate::OfferedRate;
    use super::*;

    fn oltp(rate: Option<&str>) -> Load {
        let text = named::text("oltp").expect("a named load").to_owned();
        let load = Load::of_text("oltp", text).expect("fio's words");
        match rate {
            Some(rate) => load
                .at_rate(OfferedRate::read(rate).expect("a rate"))
                .expect("no rate yet"),
            None => load,
        }
    }

    fn refused(load: &Load, slo: &str) -> Vec<String> {
        let slo = Slo::read(slo).expect("limits");
        let problems = check(load, &slo, Some("--rate 20k")).err();
        let all = problems.into_iter().flat_map(|problems| problems.0);
        all.map(|problem| problem.what).collect()
    }

    #[test]
    fn a_limit_above_the_rate_is_a_contradiction_that_names_both() {
        let at = oltp(Some("20k"));
        assert_eq!(
            refused(&at, "p99<1ms,iops>50k"),
            [
                "iops > 50k contradicts --rate 20k: at most 20 k IOPS arrive, so no drive can meet it"
            ]
        );
        assert_eq!(refused(&at, "bw>1GB/s,iops>30k").len(), 2);
        // 22.4 of 33 parts are reads.
        assert_eq!(refused(&at, "read.iops>15k").len(), 1);
        for fits in [
            "iops>20k",
            "iops>20.1k",
            "read.iops>13k",
            "p99<1us,years>50",
            "bw>100MB/s",
        ] {
            assert!(refused(&at, fits).is_empty(), "{fits}");
        }
        assert!(refused(&oltp(None), "iops>50M,bw>1000GB/s").is_empty());
    }

    /// Of 50 k IOPS, 33.9 k are reads. No option of the user contradicts another, so the rate is higher.
    #[test]
    fn a_limit_of_one_direction_raises_the_rate_that_another_limit_sets() {
        let of = |text: &str| {
            let slo = Slo::read(text).expect("limits");
            let load = at_required_rate(oltp(None), &slo);
            check(&load, &slo, None).expect("a rate that all limits allow");
            load.offered_iops()
        };
        let rate = of("iops>50k,read.iops>40k").expect("a rate");
        let share = 22.4 / 33.0;
        assert!((rate * share / 40e3 - 1.0).abs() < 0.02, "{rate}");
        let plain = of("iops>50k,read.iops>20k").expect("a rate");
        assert!((plain / 50e3 - 1.0).abs() < 0.01, "{plain}");
        assert_eq!(of("read.iops>40k"), None);
    }

    #[test]
    fn half_of_a_maximum_rises_to_the_limits() {
        let of = |text: &str| {
            let slo = Slo::read(text).expect("limits");
            let half = OfferedRate::Iops(140e3);
            let (load, is_higher) = at_least_at(&oltp(None), half, &slo).expect("a rate");
            check(&load, &slo, None).expect("a rate that all limits allow");
            (load.offered_iops().expect("a rate").round(), is_higher)
        };
        let (rate, is_higher) = of("read.iops>150k");
        assert!(is_higher && rate > 200e3, "{rate}");
        let (rate, is_higher) = of("p99<1ms,read.iops>50k");
        assert!(!is_higher && (rate / 140e3 - 1.0).abs() < 0.01, "{rate}");
    }

    #[test]
    fn rates_of_a_job_and_directions_that_it_lacks_count() {
        let job = |rate: &str| {
            let text = format!("[a]\nrw=read\nbs=8k\nnumjobs=4\n{rate}\n");
            Load::of_text("a job", text).expect("fio's words")
        };
        for rate in ["rate_iops=100", "rate=819200"] {
            assert_eq!(refused(&job(rate), "iops>450").len(), 1, "{rate}");
            assert!(refused(&job(rate), "iops>390").is_empty(), "{rate}");
        }
        assert_eq!(
            refused(&job(""), "write.p99<1ms"),
            ["write.p99 < 1 ms: the load has no writes"]
        );
        assert!(refused(&job(""), "read.p99<1ms,iops>1M").is_empty());
    }
}
