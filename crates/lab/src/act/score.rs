//! Searches for a load of ACT: the score, which is the highest load that passes, and the load at which a given share
//! of reads is slow.

use text::problem::Problems;

use super::tested::{ActResult, ActTest};
use crate::lab::Lab;
use crate::outcome::OutcomeDetail;
use crate::progress::{ProgressCallback, each, to_the_end};
use crate::scenario::{Scenario, Work};

/// Highest load of the search.
const HIGHEST_LOAD: u32 = 10_000;

/// Returns this scenario with another load of the test.
///
/// # Errors
/// The scenario has other work than ACT.
pub fn at_load(scenario: &Scenario, load: f64) -> Result<Scenario, Problems> {
    let test = test_of(scenario)?;
    let test = ActTest {
        config: test.config.at_load(load),
        ..test.clone()
    };
    Ok(Scenario {
        work: Work::Act(test),
        ..scenario.clone()
    })
}

fn test_of(scenario: &Scenario) -> Result<&ActTest, Problems> {
    match &scenario.work {
        Work::Act(test) => Ok(test),
        Work::Jobs(_) | Work::Trace(_) => Err(Problems::defect(
            scenario.machine.name(),
            "only Aerospike's test has a load",
        )),
    }
}

/// Runs the test at this load to its end.
fn tested_at(lab: &Lab, scenario: &Scenario, load: f64) -> Result<ActResult, Problems> {
    tested(lab, &at_load(scenario, load)?)
}

/// Runs the scenario and returns the results that only ACT has.
///
/// # Errors
/// As [`Lab::run`]; the scenario has other work than ACT.
pub fn tested(lab: &Lab, scenario: &Scenario) -> Result<ActResult, Problems> {
    tested_until(lab, scenario, &to_the_end)
}

/// As [`tested`], until the test ends or is stopped.
///
/// # Errors
/// As [`tested`].
pub fn tested_until(
    lab: &Lab,
    scenario: &Scenario,
    go_on: ProgressCallback<'_>,
) -> Result<ActResult, Problems> {
    test_of(scenario)?;
    match lab.run_until(scenario, go_on)?.of {
        OutcomeDetail::Act(tested) => Ok(*tested),
        OutcomeDetail::Jobs | OutcomeDetail::Trace(_) => {
            let what = "the test gave another work's outcome";
            Err(Problems::defect(scenario.machine.name(), what))
        }
    }
}

/// The highest load that passes, found by bisection, and the lowest load that was observed to fail.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Multiple of 1x; 0 if 1x does not pass.
    pub load: u32,
    /// The run at this load, or the failing run at 1x.
    pub tested: ActResult,
    /// The run at the next higher load, which fails; `None` if the highest load passes.
    pub fails: Option<(u32, ActResult)>,
    /// All loads that were run, and whether they passed.
    pub tried: Vec<(u32, bool)>,
}

/// Finds the score. `progress` is called after each round with the remaining bounds.
///
/// Assumes that a drive that fails at one load fails at all higher loads. Two loads are run at a time, on any number
/// of cores, so the loads do not depend on the number of cores.
///
/// # Errors
/// As [`tested`].
pub fn score(
    lab: &Lab,
    scenario: &Scenario,
    progress: &(dyn Fn(u32, Option<u32>) + Sync),
) -> Result<Score, Problems> {
    highest(lab, scenario, &|tested| tested.passes(), progress)
}

/// Tolerance of [`at_share`], relative to the share.
const NEAR: f64 = 0.01;

/// Maximum number of loads that [`at_share`] runs between two whole multiples.
const MOST_BETWEEN: u32 = 12;

/// Returns the run at the load at which `percent` of the reads take 1 ms or more. This finds an unpublished load from
/// a published share. Loads need not be whole multiples of 1x: only the program that writes ACT's configuration files
/// makes them whole.
///
/// Assumes that the share grows with the load. Near saturation, the bursts of a run change with the smallest change
/// of load, so the share may deviate by several percent; the nearest run is returned.
///
/// # Errors
/// As [`tested`]; no load has this share of slow reads, for example if the thread that makes requests is the limit.
pub fn at_share(lab: &Lab, scenario: &Scenario, percent: f64) -> Result<ActResult, Problems> {
    let share = |tested: &ActResult| tested.worst()[0];
    let whole = highest(lab, scenario, &|tested| share(tested) < percent, &|_, _| {})?;
    let Some((load, fails)) = whole.fails else {
        let what = format!("no load makes {percent} % of the reads take 1 ms");
        return Err(Problems::whole(scenario.machine.name(), what));
    };
    let distance = |tested: &ActResult| libm::log(share(tested).max(1e-9) / percent).abs();
    let mut ends = [f64::from(load) - 1.0, f64::from(load)];
    // Shares at the ends of the bracket, which determine the next load. At zero load no read is slow.
    let mut shares = [
        if load > 1 { share(&whole.tested) } else { 0.0 },
        share(&fails),
    ];
    let mut best = match distance(&whole.tested) < distance(&fails) {
        true => whole.tested,
        false => fails,
    };
    for _ in 0..MOST_BETWEEN {
        if distance(&best) < NEAR || ends[1] - ends[0] < 1e-3 {
            break;
        }
        let [low, high] = shares.map(|share| libm::log(share.max(percent * 1e-2)));
        // At least a tenth of the bracket away from its ends, because the share is not a smooth function of the load.
        let part = ((libm::log(percent) - low) / (high - low)).clamp(0.1, 0.9);
        let load = ends[0] + (ends[1] - ends[0]) * part;
        let tested = tested_at(lab, scenario, load)?;
        let end = usize::from(share(&tested) >= percent);
        (ends[end], shares[end]) = (load, share(&tested));
        if distance(&tested) < distance(&best) {
            best = tested;
        }
    }
    Ok(best)
}

/// Returns the highest whole multiple of 1x for whose run `holds` is true.
fn highest(
    lab: &Lab,
    scenario: &Scenario,
    holds: &(dyn Fn(&ActResult) -> bool + Sync),
    progress: &(dyn Fn(u32, Option<u32>) + Sync),
) -> Result<Score, Problems> {
    let mut passes: (u32, Option<ActResult>) = (0, None);
    let mut fails: Option<(u32, ActResult)> = None;
    let mut tried = Vec::new();
    loop {
        let high = fails.as_ref().map(|&(load, _)| load);
        progress(passes.0, high);
        let Some(loads) = next_loads(passes.0, high) else {
            break;
        };
        let run = |load: u32| tested_at(lab, scenario, f64::from(load));
        let mut loads = vec![loads.0, loads.1];
        loads.dedup();
        for (&load, tested) in loads.iter().zip(each(&loads, |_, &load| run(load))) {
            let tested = tested?;
            let passed = holds(&tested);
            tried.push((load, passed));
            if fails.as_ref().is_some_and(|&(lowest, _)| load > lowest) {
                continue;
            }
            if passed {
                passes = (load, Some(tested));
            } else {
                fails = Some((load, tested));
            }
        }
    }
    let (load, tested) = match (passes, &fails) {
        ((load, Some(tested)), _) => (load, tested),
        ((_, None), Some((_, failing))) => (0, failing.clone()),
        ((_, None), None) => unreachable!("some load has been tried"),
    };
    tried.sort_unstable();
    Ok(Score {
        load,
        tested,
        fails,
        tried,
    })
}

/// Returns the next two loads between one that passes and one that fails; they are equal if there is only one.
fn next_loads(passes: u32, fails: Option<u32>) -> Option<(u32, u32)> {
    match fails {
        None if passes >= HIGHEST_LOAD => None,
        None => {
            let low = (passes * 4).clamp(10, HIGHEST_LOAD);
            Some((low, (low * 4).min(HIGHEST_LOAD)))
        }
        Some(fails) => match fails - passes {
            0 | 1 => None,
            2 => Some((passes + 1, passes + 1)),
            gap => Some((passes + gap / 3, passes + gap - gap / 3)),
        },
    }
}
