//! Crash-consistency tests of a pool's durability guarantee. Short programs run on a small copy of the pool. Power
//! cuts, failed members and other faults are tried at every moment, each with every possible state in which writes in
//! flight may have reached the media.
//!
//! `docs/prove.md` lists what is tried and what is not. A guarantee that is weaker than necessary is distinguished
//! from one that is violated: if the guarantee states that data is lost, a loss must be found.

mod choice;
mod fail;
mod fault;
mod life;
mod oracle;
mod program;
pub mod proved;
mod replay;
mod ring;
mod run;
mod search;
mod shape;
mod shrink;
mod trace;
mod world;

use rayon::prelude::*;
use tier::{DriveConfig, PoolConfig};

use self::fail::Fail;
use self::fault::{Fault, Lives};
use self::search::{CrashCase, CrashSearch};
use self::world::TestPool;

pub use self::fault::FaultCoverage;
pub use self::proved::{ProofRecord, proved, statement};
pub use self::search::SearchTally;
pub use self::shape::shape;

/// Number of programs that are tried together: few enough to stop quickly, enough for all cores.
const BATCH: u64 = 16;
/// Maximum number of programs for one fault, whatever the number of points.
const PROGRAMS: u64 = 1 << 20;

/// Extent of the test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProveSettings {
    /// Minimum number of points for each fault.
    pub points: u64,
    /// Seed of the first program.
    pub seed: u64,
    /// Only faults whose text contains this.
    pub only: String,
    /// Whether to end at the first violation.
    pub to_the_first: bool,
}

/// Result of testing a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultVerdict {
    /// The durability guarantee was fulfilled.
    Kept,
    /// The durability guarantee was violated.
    Broken,
    /// The guarantee states that data is lost, and data was lost.
    AsDesigned,
    /// The guarantee states that data is lost, and none was lost: it is weaker than necessary.
    NoLossFound,
    /// The guarantee does not cover it.
    NotPromised,
}

/// A fault with its result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultResult {
    /// Description of the fault.
    pub fault: String,
    /// Coverage by the durability guarantee.
    pub covered: FaultCoverage,
    /// Counts of the test.
    pub tally: SearchTally,
    /// Verdict on the fault.
    pub verdict: FaultVerdict,
}

/// A violation, and how to repeat it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counterexample {
    /// Description of the fault.
    pub fault: String,
    /// Description of the failure.
    pub what: String,
    /// The shortest program that was found, with its events, one per line.
    pub program: Vec<String>,
    /// Digits for [`replay()`].
    pub replay: String,
}

/// Results of one pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Results by fault.
    pub rows: Vec<FaultResult>,
    /// The first violation.
    pub broken: Option<Counterexample>,
}

impl Report {
    /// Checks whether the guarantee is fulfilled, and not weaker than necessary.
    pub fn is_kept(&self) -> bool {
        let bad = |row: &FaultResult| {
            matches!(
                row.verdict,
                FaultVerdict::Broken | FaultVerdict::NoLossFound
            )
        };
        !self.rows.iter().any(bad)
    }
}

/// Tests a pool. `progress` is called with the number of tried points and their total; it returns whether to continue.
///
/// # Errors
/// The pool's data cannot be recovered after a crash: the tier, and why.
pub fn prove(
    config: &PoolConfig<DriveConfig>,
    settings: &ProveSettings,
    progress: &(dyn Fn(u64, u64) -> bool + Sync),
) -> Result<Report, String> {
    let world = TestPool::new(config)?;
    let mut faults = Fault::all_for_pool(&world.config);
    faults.retain(|fault| fault.words(&world.names).contains(&settings.only));
    if faults.is_empty() {
        return Err(format!("no fault is called `{}`", settings.only));
    }
    let all = settings.points * faults.len() as u64;
    let mut report = Report {
        rows: Vec::new(),
        broken: None,
    };
    for (index, fault) in faults.iter().enumerate() {
        let so_far = settings.points * index as u64;
        let hear = |points: u64| progress(so_far + points.min(settings.points), all);
        let Some((tally, first)) = try_fault(&world, fault, settings, &hear) else {
            break;
        };
        let covered = fault.covered(&world.config);
        let verdict = match (covered, first.is_some()) {
            // An unreported loss is a violation even if the guarantee does not cover the fault.
            _ if tally.untold > 0 => FaultVerdict::Broken,
            (FaultCoverage::Yes, false) => FaultVerdict::Kept,
            (FaultCoverage::Yes, true) => FaultVerdict::Broken,
            (FaultCoverage::MustBeTold, true) => FaultVerdict::Broken,
            (FaultCoverage::MustBeTold, false) => FaultVerdict::Kept,
            (FaultCoverage::LostByPromise, true) => FaultVerdict::AsDesigned,
            (FaultCoverage::LostByPromise, false) => FaultVerdict::NoLossFound,
            (FaultCoverage::NotPromised, _) => FaultVerdict::NotPromised,
        };
        let words = fault.words(&world.names);
        if let (FaultVerdict::Broken, None, Some((case, fail))) = (verdict, &report.broken, first) {
            let (case, fail) = shrink::shortest(&world, fault, case, fail);
            report.broken = Some(counterexample(&world, words.clone(), &case, &fail));
        }
        report.rows.push(FaultResult {
            fault: words,
            covered,
            tally,
            verdict,
        });
        if settings.to_the_first && verdict == FaultVerdict::Broken {
            break;
        }
    }
    Ok(report)
}

/// Runs all programs of a fault, and returns the first failure, if any; `None` if it was stopped.
fn try_fault(
    world: &TestPool,
    fault: &Fault,
    settings: &ProveSettings,
    hear: &dyn Fn(u64) -> bool,
) -> Option<(SearchTally, Option<(CrashCase, Fail)>)> {
    let (mut tally, mut first) = (SearchTally::default(), None);
    let covered = matches!(
        fault.covered(&world.config),
        FaultCoverage::Yes | FaultCoverage::MustBeTold
    );
    let mut seed = settings.seed;
    while tally.points < settings.points && seed < settings.seed + PROGRAMS {
        let seeds: Vec<u64> = (seed..seed + BATCH).collect();
        // A few points at each moment of many programs, instead of all at the first moment.
        let share = (settings.points / 400).clamp(8, choice::MOST);
        let tried: Vec<CrashSearch<'_>> = seeds
            .into_par_iter()
            .map(|seed| {
                let mut search = CrashSearch::for_fault(world, fault, seed);
                search.share = share;
                search.run()
            })
            .collect();
        for search in tried {
            tally.add(&search.tally);
            let silent = |it: &Option<(CrashCase, Fail)>| {
                it.as_ref()
                    .is_some_and(|it| matches!(it.1, Fail::Untold(_)))
            };
            if first.is_none() || (silent(&search.first) && !silent(&first)) {
                first = search.first;
            }
        }
        seed += BATCH;
        if !hear(tally.points) {
            return None;
        }
        if (covered && first.is_some()) || tally.untold > 0 {
            break;
        }
    }
    Some((tally, first))
}

fn counterexample(
    world: &TestPool,
    fault: String,
    case: &CrashCase,
    fail: &Fail,
) -> Counterexample {
    let mut program = vec![format!("depth {}", case.program.depth)];
    let steps = case.program.words();
    for index in 0..=steps.len() {
        for blow in case
            .blows
            .iter()
            .filter(|it| usize::from(it.before) == index)
        {
            let name = &world.names[usize::from(blow.member)];
            program.push(format!("     {name}: {:?}", blow.trouble));
        }
        program.extend(steps.get(index).cloned());
    }
    if let Some((cut, choice)) = &case.cut {
        let done: String = choice
            .done
            .iter()
            .map(|&it| if it { '1' } else { '0' })
            .collect();
        let torn = choice.torn.map_or(String::new(), |(write, sectors)| {
            format!(", write {} torn behind sector {sectors}", write + 1)
        });
        let writes = if done.is_empty() {
            "nothing".into()
        } else {
            done
        };
        program.push(format!(
            "power cut at moment {cut}; of the writes on their way: {writes}{torn}"
        ));
    }
    let named = |member: u16| &world.names[usize::from(member)];
    match case.lives {
        Lives::One => {}
        Lives::Two => program.insert(1, "a second life".into()),
        Lives::OldCopy(member) => {
            program.insert(1, "a second life".into());
            program.push(format!("{} is as it was before this life", named(member)));
        }
        Lives::Alternate(one, two) => {
            program.insert(1, format!("a second life, without {}", named(one)));
            program.push(format!(
                "{} is present again, {} is absent",
                named(one),
                named(two)
            ));
        }
        Lives::Split(one, two) => {
            program.insert(1, format!("a second life, without {}", named(two)));
            program.push(format!(
                "only {} belongs to this epoch; the others belong to an epoch without it",
                named(one)
            ));
        }
    }
    for &member in &case.absent {
        program.push(format!(
            "{} no longer exists",
            world.names[usize::from(member)]
        ));
    }
    if let Some(again) = case.again {
        program.push(format!("power cut after {again} steps of the recovery"));
    }
    Counterexample {
        fault,
        what: fail.words(),
        program,
        replay: replay::encode(case),
    }
}

/// Repeats a case that a [`Counterexample`] has given: returns its failure, or nothing.
///
/// # Errors
/// The digits are not a valid case, or the pool cannot be tested.
pub fn replay(
    config: &PoolConfig<DriveConfig>,
    digits: &str,
) -> Result<Option<Counterexample>, String> {
    let world = TestPool::new(config)?;
    let case = replay::decode(digits).ok_or("these digits do not encode a case")?;
    let fits = |member: &u16| usize::from(*member) < world.names.len();
    let lives_fit = case.lives.members().iter().all(fits);
    let end = |it: &program::Step| (u64::from(it.at) + u64::from(it.sectors)) * 512;
    let steps_fit = case.program.steps.iter().all(|it| end(it) <= world.bytes());
    if !lives_fit
        || !steps_fit
        || !case.absent.iter().all(fits)
        || !case.blows.iter().all(|it| fits(&it.member))
    {
        return Err("these digits are a case of another pool".into());
    }
    let failed = replay::repeat_case(&world, &case);
    Ok(failed.map(|(case, fail)| counterexample(&world, "replay".into(), &case, &fail)))
}
