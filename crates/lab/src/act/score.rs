//! Looking for a load of Aerospike's test: the score, which is the highest load that passes, and the load at which a
//! given share of reads is slow.

use text::problem::Problems;

use super::tested::{ActTest, Tested};
use crate::lab::Lab;
use crate::outcome::Of;
use crate::progress::{GoOn, each, to_the_end};
use crate::scenario::{Scenario, Work};

/// The highest load that is tried.
const HIGHEST_LOAD: u32 = 10_000;

/// The same scenario of the test at another load.
///
/// # Errors
/// The scenario's work is another.
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

/// The test at this load, to its end.
fn tested_at(lab: &Lab, scenario: &Scenario, load: f64) -> Result<Tested, Problems> {
    tested(lab, &at_load(scenario, load)?)
}

/// What only the test has of the outcome of its scenario.
///
/// # Errors
/// As [`Lab::run`]; the scenario's work is another.
pub fn tested(lab: &Lab, scenario: &Scenario) -> Result<Tested, Problems> {
    tested_until(lab, scenario, &to_the_end)
}

/// As [`tested`], until it ends or is stopped.
///
/// # Errors
/// As [`tested`].
pub fn tested_until(lab: &Lab, scenario: &Scenario, go_on: GoOn<'_>) -> Result<Tested, Problems> {
    test_of(scenario)?;
    match lab.run_until(scenario, go_on)?.of {
        Of::Act(tested) => Ok(*tested),
        Of::Jobs | Of::Trace(_) => {
            let what = "the test gave another work's outcome";
            Err(Problems::defect(scenario.machine.name(), what))
        }
    }
}

/// The highest load that passes, found by bisection, and the lowest that was seen to fail.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Multiples of 1x; 0 if not even that passes.
    pub load: u32,
    /// The run at that load, or the failing one at 1x.
    pub tested: Tested,
    /// The run at the next higher load, which fails; none if the highest load passes.
    pub fails: Option<(u32, Tested)>,
    /// All loads that were tried, and whether they passed.
    pub tried: Vec<(u32, bool)>,
}

/// Finds the score; `progress` is called after each round with the bounds that are left.
///
/// It takes for granted that a drive that fails at one load fails at all higher ones. Two loads are tried at a time,
/// on any number of cores, so the loads that are tried do not depend on those.
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

/// How near [`at_share`] comes to the share, as a part of it.
const NEAR: f64 = 0.01;

/// Most loads that [`at_share`] tries between two whole multiples.
const MOST_BETWEEN: u32 = 12;

/// The run at the load at which `percent` of the reads take 1 ms or more: a load that was not published, from a share
/// that was. Loads need not be whole multiples of 1x: only the program that writes ACT's configuration files makes
/// them so.
///
/// It takes for granted that the share grows with the load. Near saturation a run's bursts differ with the smallest
/// change of load, so the share that is found may be some percent off; the nearest is taken.
///
/// # Errors
/// As [`tested`]; no load has so many slow reads, as where the thread that makes requests is the limit.
pub fn at_share(lab: &Lab, scenario: &Scenario, percent: f64) -> Result<Tested, Problems> {
    let share = |tested: &Tested| tested.worst()[0];
    let whole = highest(lab, scenario, &|tested| share(tested) < percent, &|_, _| {})?;
    let Some((load, fails)) = whole.fails else {
        let what = format!("no load makes {percent} % of the reads take 1 ms");
        return Err(Problems::whole(scenario.machine.name(), what));
    };
    let distance = |tested: &Tested| libm::log(share(tested).max(1e-9) / percent).abs();
    let mut ends = [f64::from(load) - 1.0, f64::from(load)];
    // The bracket's own shares, from which the next load follows; nothing is slow at no load.
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
        // Never nearer to an end than a tenth of the bracket: shares are no smooth line.
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

/// The highest whole multiple of 1x for whose run `holds` is true.
fn highest(
    lab: &Lab,
    scenario: &Scenario,
    holds: &(dyn Fn(&Tested) -> bool + Sync),
    progress: &(dyn Fn(u32, Option<u32>) + Sync),
) -> Result<Score, Problems> {
    let mut passes: (u32, Option<Tested>) = (0, None);
    let mut fails: Option<(u32, Tested)> = None;
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

/// The loads to try next, between one that passes and one that fails; equal if there is only one.
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
