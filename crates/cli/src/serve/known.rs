//! Results of `drivelab prove` on a pool's shape, checked before the pool is served.

use live::Setup;
use study::prove::{ProofRecord, proved, statement};
use text::problem::{Place, Problem, Problems};

/// Returns the record of a pool's shape; `None` without a record, or for a drive.
fn record(setup: &Setup) -> Option<ProofRecord> {
    setup.sheet.pool_config().and_then(proved)
}

/// Returns the command that tests a pool.
fn command(pool: &str) -> String {
    format!("drivelab prove '{pool}'")
}

/// Returns a line on a pool; `None` for drives.
pub(super) fn line(setup: &Setup) -> Option<String> {
    let config = setup.sheet.pool_config()?;
    Some(format!("  {}", statement(&setup.sheet.id, config)))
}

/// Refuses pools that are known to violate their durability guarantee, unless the user accepts that.
///
/// # Errors
/// Each of them, with the faults under which the guarantee does not hold.
pub(super) fn check(setups: &[Setup]) -> Result<(), Problems> {
    let refused = setups.iter().filter_map(|setup| {
        let known = record(setup)?;
        refusal(&setup.sheet.id, &known, setup.accept_loss)
    });
    Problems(refused.collect()).or(())
}

fn refusal(pool: &str, known: &ProofRecord, accept_loss: bool) -> Option<Problem> {
    (!known.holds() && !accept_loss).then(|| Problem {
        origin: pool.to_owned(),
        place: Place::Whole,
        what: format!(
            "pools of this structure are known to violate their guarantee: {}",
            known.broken.join("; ")
        ),
        help: Some(format!(
            "`{}` shows it; serve another pool, or this one with --accept-loss",
            command(pool)
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(broken: &[&str]) -> ProofRecord {
        ProofRecord {
            shape: "mirror(2*xpoint)".into(),
            pool: "mirror(2*p4801x-100)".into(),
            points: 4_711,
            each: 100,
            seed: 1,
            version: "9.8.7".into(),
            broken: broken.iter().map(|&it| it.into()).collect(),
        }
    }

    #[test]
    fn what_is_known_not_to_hold_is_refused_unless_loss_is_accepted() {
        assert!(refusal("m", &known(&[]), false).is_none());
        let bad = known(&["a dies: the guarantee does not hold"]);
        assert!(refusal("m", &bad, true).is_none());
        let problem = refusal("m", &bad, false).expect("refused");
        assert!(problem.what.contains("a dies"));
        assert!(
            problem
                .help
                .is_some_and(|help| help.contains("--accept-loss"))
        );
    }

    #[test]
    fn a_drive_has_no_record_and_no_line() {
        let setup = |id: &str| Setup::new(catalogue::drive(id).expect("it is read"));
        assert_eq!(line(&setup("p4800x-375")), None);
        assert!(line(&setup("mirror(2*p4801x-100)")).is_some());
        assert!(check(&[setup("p4800x-375")]).is_ok());
    }
}
