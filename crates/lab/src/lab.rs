//! The laboratory runs scenarios: single ones, many on all cores, or several in turn on a drive on a bench. It
//! reports progress, and stops on request.
//!
//! It keeps used drives for their memory: allocating large tables from the operating system would take longer than
//! many runs. The number of drives, including those in use, never exceeds its limit. It also keeps warm states: the
//! states of drives after long overwriting, at the time of their first write. If several scenarios start in one
//! state, the state is computed once, and a drive that has been in this state is restored to it. The choice of drive
//! and state for a run never changes its outcome.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::management::Thermal;
use model::management::thermal::COOLER;
use model::media::nand::WarmState;
use model::media::{Medium, MediumDrive, Precondition, Seeds};
use text::problem::Problems;
use tier::{Drive, DriveConfig};

use crate::faults::{TriggerLog, suffering};
use crate::heat::HeatedDrive;
use crate::large_pages;
use crate::outcome::Outcome;
use crate::progress::{ProgressCallback, cores, in_parallel, to_the_end};
use crate::scenario::Scenario;
use crate::work::{run_on, run_on_drive, run_struck};

/// A replacement for the simulation. It receives the scenario, the number of its bench, if any, and a function that
/// simulates the scenario.
pub type StandIn = dyn Fn(
        &Scenario,
        Option<u64>,
        &mut dyn FnMut() -> Result<Outcome, Problems>,
    ) -> Result<Outcome, Problems>
    + Send
    + Sync;

/// A laboratory: runs scenarios and keeps drives and states for later runs.
pub struct Lab {
    pool: Mutex<Pool>,
    /// Warm states of drives, the most recent last.
    warm: Mutex<Vec<Arc<WarmState>>>,
    /// Maximum number of drives, in use or kept; also of states.
    most: usize,
    stand_in: Option<Box<StandIn>>,
    benches: AtomicU64,
}

/// Used drives.
#[derive(Default)]
struct Pool {
    /// Unused drives with their configurations, the most recently used last.
    kept: Vec<(DriveConfig, Drive)>,
    in_use: usize,
}

impl Default for Lab {
    fn default() -> Lab {
        Lab::new()
    }
}

impl std::fmt::Debug for Lab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lab")
            .field("most", &self.most)
            .field("kept", &self.kept())
            .finish_non_exhaustive()
    }
}

impl Lab {
    /// Creates a laboratory with one drive per core.
    pub fn new() -> Lab {
        Lab::with_drives(cores())
    }

    /// Creates a laboratory that keeps at most `most` drives, including those in use.
    pub fn with_drives(most: usize) -> Lab {
        Lab {
            pool: Mutex::default(),
            warm: Mutex::default(),
            most,
            stand_in: None,
            benches: AtomicU64::new(0),
        }
    }

    /// Creates a laboratory with a replacement for the simulation, or with an observer: for tests of code that uses a
    /// laboratory.
    pub fn with_stand_in(
        stand_in: impl Fn(
            &Scenario,
            Option<u64>,
            &mut dyn FnMut() -> Result<Outcome, Problems>,
        ) -> Result<Outcome, Problems>
        + Send
        + Sync
        + 'static,
    ) -> Lab {
        Lab {
            stand_in: Some(Box::new(stand_in)),
            ..Lab::new()
        }
    }

    /// Returns the number of drives that are kept for their memory.
    pub fn kept(&self) -> usize {
        self.pool().kept.len()
    }

    /// Returns the number of warm states that are kept for further runs.
    pub fn warm_states(&self) -> usize {
        self.warm().len()
    }

    /// Runs a scenario to its end.
    ///
    /// # Errors
    /// All mismatches between work and drive (offset beyond its end, block larger than the range, ...).
    pub fn run(&self, scenario: &Scenario) -> Result<Outcome, Problems> {
        self.run_until(scenario, &to_the_end)
    }

    /// Runs a scenario until it ends or is stopped.
    ///
    /// # Errors
    /// As [`Lab::run`].
    pub fn run_until(
        &self,
        scenario: &Scenario,
        go_on: ProgressCallback<'_>,
    ) -> Result<Outcome, Problems> {
        self.run_again(scenario, false, go_on)
    }

    /// As [`Lab::run_until`], for one of several scenarios that start in one state and run in turn or in parallel:
    /// the state is kept for the others.
    ///
    /// # Errors
    /// As [`Lab::run`].
    pub fn run_among(
        &self,
        scenario: &Scenario,
        go_on: ProgressCallback<'_>,
    ) -> Result<Outcome, Problems> {
        self.run_again(scenario, true, go_on)
    }

    /// Computes in advance what the drive of a scenario would compute at its first write, so that runs with the same
    /// initial state start sooner. Does not change any outcome.
    pub fn prepare(&self, scenario: &Scenario) {
        self.with_drive(scenario, true, MediumDrive::prepare);
    }

    /// As [`Lab::run_until`]; `again` if other scenarios start in this state.
    fn run_again(
        &self,
        scenario: &Scenario,
        again: bool,
        go_on: ProgressCallback<'_>,
    ) -> Result<Outcome, Problems> {
        self.stood_in(scenario, None, || {
            if let Some(thermal) = &scenario.heat {
                return run_heated(scenario, thermal, go_on);
            }
            if scenario.faults.is_empty() {
                return self.with_drive(scenario, again, |drive| {
                    run_on_drive(drive, scenario, go_on)
                });
            }
            // A drive with faults cannot be kept for other runs.
            let (config, seeds) = (scenario.machine.drive(), scenario.seeds());
            let (faults, struck) = (&scenario.faults, TriggerLog::default());
            let mut device = suffering(config, scenario.state, seeds, faults, &struck);
            let outcome = run_struck(&mut *device, scenario, &struck, go_on)?;
            Ok(Outcome {
                rebuilds: device.rebuilds(outcome.end),
                ..outcome
            })
        })
    }

    /// Runs scenarios on all cores; each outcome is that of [`Lab::run_until`], in the order of the scenarios.
    /// `go_on` receives the completed share of all work.
    pub fn run_all(
        &self,
        scenarios: &[Scenario],
        go_on: ProgressCallback<'_>,
    ) -> Vec<Result<Outcome, Problems>> {
        let begins =
            |scenario: &Scenario| (scenario.machine.name().to_owned(), scenario.seeds().warm);
        let mut begun = BTreeMap::new();
        for scenario in scenarios {
            *begun.entry(begins(scenario)).or_insert(0) += 1;
        }
        in_parallel(scenarios, go_on, |scenario, go_on| {
            self.run_again(scenario, begun[&begins(scenario)] > 1, go_on)
        })
    }

    /// Returns a number for a new bench.
    pub(crate) fn next_bench(&self) -> u64 {
        self.benches.fetch_add(1, Ordering::Relaxed)
    }

    /// Runs the simulation or its replacement.
    pub(crate) fn stood_in(
        &self,
        scenario: &Scenario,
        bench: Option<u64>,
        mut simulate: impl FnMut() -> Result<Outcome, Problems>,
    ) -> Result<Outcome, Problems> {
        match &self.stand_in {
            Some(stand_in) => stand_in(scenario, bench, &mut simulate),
            None => simulate(),
        }
    }

    /// Calls `work` with a drive in the state of [`Drive::new`].
    fn with_drive<R>(
        &self,
        scenario: &Scenario,
        again: bool,
        work: impl FnOnce(&mut Drive) -> R,
    ) -> R {
        let config = scenario.machine.drive();
        let mut drive = self.lend(config, scenario.state, scenario.seeds(), again);
        let result = work(&mut drive);
        drive.warm_states(&mut |state| self.keep(state));
        self.put_back(config, drive);
        result
    }

    /// Returns a drive in the state of [`Drive::new`], to be returned with [`Lab::put_back`]; `again` if other
    /// scenarios start in this state.
    pub(crate) fn lend(
        &self,
        config: &DriveConfig,
        state: Precondition,
        seeds: Seeds,
        again: bool,
    ) -> Drive {
        let mut drive = match self.take(config) {
            Some(used) => used.reset(config, state, seeds),
            None => Drive::new(config, state, seeds),
        };
        let known = self.warm().clone();
        drive.know(&known, again);
        large_pages::ask_for(&mut drive);
        drive
    }

    /// Keeps a state for other drives.
    fn keep(&self, state: &Arc<WarmState>) {
        let mut warm = self.warm();
        if !warm.iter().any(|known| Arc::ptr_eq(known, state)) {
            if warm.len() >= self.most.max(1) {
                warm.remove(0);
            }
            warm.push(Arc::clone(state));
        }
    }

    fn warm(&self) -> MutexGuard<'_, Vec<Arc<WarmState>>> {
        self.warm.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a used drive: one of this configuration, or the least recently used one if no further drive may be
    /// created.
    fn take(&self, config: &DriveConfig) -> Option<Drive> {
        let mut pool = self.pool();
        pool.in_use += 1;
        let same = pool.kept.iter().rposition(|(made_of, _)| made_of == config);
        let full = pool.kept.len() + pool.in_use > self.most && !pool.kept.is_empty();
        let at = same.or(full.then_some(0))?;
        Some(pool.kept.remove(at).1)
    }

    /// Returns a drive that is no longer needed.
    pub(crate) fn put_back(&self, config: &DriveConfig, drive: Drive) {
        let mut pool = self.pool();
        pool.in_use -= 1;
        if pool.kept.len() + pool.in_use < self.most {
            pool.kept.push((config.clone(), drive));
        }
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        // No operation under the lock can panic.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a scenario on a drive that warms up. The drive is not kept for other runs.
///
/// # Errors
/// Everything in the work that does not fit the drive; a pool, or faults.
fn run_heated(
    scenario: &Scenario,
    thermal: &Thermal,
    go_on: ProgressCallback<'_>,
) -> Result<Outcome, Problems> {
    let config = scenario.machine.drive();
    let what = match config {
        DriveConfig::Pool(_) | DriveConfig::Raid0(_) => {
            "heat is simulated for a single drive, not for a pool"
        }
        _ if !scenario.faults.is_empty() => "a run has heat or faults, not both",
        _ => return run_hot(scenario, thermal, go_on),
    };
    Err(Problems::whole(scenario.machine.name(), what))
}

/// Runs a scenario on a single drive that warms up.
///
/// # Errors
/// As [`run_heated`]; a drive that its air does not cool enough.
fn run_hot(
    scenario: &Scenario,
    thermal: &Thermal,
    go_on: ProgressCallback<'_>,
) -> Result<Outcome, Problems> {
    let config = scenario.machine.drive();
    let too_hot = |what: String| {
        let mut problems = Problems::whole(scenario.machine.name(), what);
        problems.0[0].help = Some(COOLER.into());
        problems
    };
    if let Some(what) = thermal.idle_refusal(config.idle_watts()) {
        return Err(too_hot(what));
    }
    let drive = Drive::new(config, scenario.state, scenario.seeds());
    let drive = HeatedDrive::new(drive, config, thermal);
    let shutdown = drive.shutdown();
    let outcome = run_on(drive, scenario, &|share| match shutdown.get() {
        Some(_) => ControlFlow::Break(()),
        None => go_on(share),
    })?;
    match shutdown.get() {
        Some(shutdown) => Err(too_hot(shutdown.words(thermal))),
        None => Ok(outcome),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::scenario::tests::at_random;
    use model::host::HostConfig;
    use workload::job::Mix;

    /// Scenarios run in turn in a laboratory with one drive, which is recreated from the previous one, and each in
    /// its own laboratory.
    #[test]
    fn a_run_does_not_depend_on_the_one_before() {
        let plan = |drive: &str, mix, state, seed| {
            let drive = catalogue::drive(drive).expect("built in").config;
            let job = at_random(mix, 300);
            let machine = Machine::from_configs("", drive, HostConfig::default());
            Scenario::jobs(machine, state, vec![job], seed)
        };
        let steady = Precondition::Steady;
        let plans = [
            plan("950pro-256", Mix::Write, steady, 1),
            plan("950pro-256", Mix::ReadWrite, steady, 1),
            plan("950pro-256", Mix::Read, steady, 1),
            plan("950pro-256", Mix::Write, steady, 1),
            plan("950pro-256", Mix::Write, Precondition::Fresh, 1),
            plan("optane-memory-16", Mix::Write, steady, 1),
            plan("950pro-256", Mix::Write, steady, 2),
        ];
        let lab = Lab::with_drives(1);
        for (index, plan) in plans.iter().enumerate() {
            let together = lab.run(plan).expect("it runs");
            let alone = Lab::new().run(plan).expect("it runs");
            assert!(alone == together, "plan {index}");
        }
        assert_eq!(lab.kept(), 1);
    }

    /// Runs that start in one state, with different seeds, on more than one drive.
    #[test]
    fn a_state_that_several_begin_in_changes_no_outcome() {
        let scenario = |seed, mix| {
            let drive = catalogue::drive("950pro-256").expect("built in").config;
            let job = at_random(mix, 300);
            let machine = Machine::from_configs("", drive, HostConfig::default());
            let mut scenario = Scenario::jobs(machine, Precondition::Steady, vec![job], seed);
            scenario.warm_seed = Some(77);
            scenario
        };
        let mixes = [Mix::Write, Mix::ReadWrite, Mix::Read];
        let scenarios: Vec<_> = (0..9)
            .map(|seed| scenario(seed, mixes[seed as usize % 3]))
            .collect();
        let lab = Lab::with_drives(2);
        let together = lab.run_all(&scenarios, &to_the_end);
        assert!(lab.kept() <= 2 && lab.warm_states() <= 2);
        assert!(lab.warm_states() > 0);
        for (scenario, together) in scenarios.iter().zip(together) {
            let alone = Lab::new().run(scenario);
            assert!(alone == together, "seed {}", scenario.seed);
        }
        let mut own = scenarios[0].clone();
        own.warm_seed = None;
        assert!(
            lab.run(&own) != lab.run(&scenarios[0]),
            "it began in its own state"
        );
    }
}
