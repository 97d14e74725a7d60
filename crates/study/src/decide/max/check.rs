//! Checks of the input of a search for the highest load, independently of the drive.

use text::problem::{Place, Problem, Problems};

use super::super::slo::{LimitMetric, LimitScope};
use super::{FEWEST, MaxRequest, ios_for_one_beyond};

/// Checks the request, independently of the drive.
///
/// # Errors
/// All problems at once.
pub fn check(request: &MaxRequest) -> Result<(), Problems> {
    let mut problems = request.pattern.check().err().unwrap_or_default();
    let needed = FEWEST * ios_for_one_beyond(request);
    if let Some(ios) = request.ios.filter(|ios| (*ios as f64) < needed) {
        problems.0.push(Problem {
            origin: String::from("command line"),
            place: Place::Whole,
            what: format!(
                "--ios {ios}: too few to know p{} of the rarer direction",
                request.slo.deepest().unwrap_or(99.0)
            ),
            help: Some(format!("at least {:.0}", libm::ceil(needed))),
        });
    }
    if request.slo.ceilings().next().is_none() {
        problems.0.push(Problem {
            origin: String::from("--slo"),
            place: Place::Whole,
            what: String::from("none of the limits restricts the load"),
            help: Some(String::from("add a latency or watts, such as p99<1ms")),
        });
    }
    for limit in &request.slo.limits {
        let (there, what) = match limit.of {
            LimitScope::All => continue,
            LimitScope::Read => (request.pattern.reads(), "reads"),
            LimitScope::Write => (request.pattern.writes(), "writes"),
            LimitScope::Sync => (request.pattern.syncs(), "syncs"),
        };
        if !there {
            problems.0.push(Problem {
                origin: String::from("--slo"),
                place: Place::Whole,
                what: format!("{}: the load has no {what}", limit.text),
                help: Some(String::from(
                    "leave it out, or change the load: --rw, --rwmixread, --fio fsync=1",
                )),
            });
        }
    }
    for (figure, what, help) in [
        (
            LimitMetric::Years,
            "years: `max` does not compute wear",
            "`drivelab life` does, and `drivelab choose` takes years as a limit",
        ),
        (
            LimitMetric::Capacity,
            "capacity: no load changes it",
            "`drivelab choose` takes capacity as a limit",
        ),
    ] {
        let mut limits = request.slo.limits.iter();
        if limits.any(|limit| limit.figure == figure) {
            problems.0.push(Problem {
                origin: String::from("--slo"),
                place: Place::Whole,
                what: String::from(what),
                help: Some(String::from(help)),
            });
        }
    }
    problems.or(())
}
