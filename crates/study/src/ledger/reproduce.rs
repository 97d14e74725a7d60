//! Runs the ledger: each run that any row needs once, on all cores, then the metric and the verdict of each row.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::{Mutex, PoisonError};

use super::expression::{ExpressionError, Value};
use super::figure::{RunFigure, of_drive};
use super::measure::{self, ios_for, jobs_of_points};
use super::{
    Class, Errors, Evidence, LedgerFile, LedgerMeasurement, LedgerRow, RowVerdict, Work, act,
    judge_spread, source,
};
use catalogue::{Change, DriveSheet};
use lab::act::{at_share, score};
use lab::{Key, Lab, Machine, ProgressCallback, Scenario, ThreadOutcome, in_parallel};
use text::problem::{Problems, nearest};
use workload::job::Job;

/// Selects the rows to run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Sources, such as `S4` or `HAN`, or the collections `P` and `M`; all if `sources` and `rows` are empty.
    pub sources: Vec<String>,
    /// Row ids, such as `S0-073`.
    pub rows: Vec<String>,
}

impl Selection {
    fn takes(&self, id: &str) -> bool {
        let everything = self.sources.is_empty() && self.rows.is_empty();
        everything
            || self.sources.iter().any(|wanted| source::is_of(id, wanted))
            || self.rows.iter().any(|wanted| wanted == id)
    }

    /// Returns a problem for each selected name that the ledger does not have.
    fn problems(&self, files: &[LedgerFile]) -> Problems {
        let ids: Vec<&str> = files
            .iter()
            .flat_map(|file| &file.rows)
            .map(|row| &*row.id)
            .collect();
        let mut problems = Problems::default();
        for wanted in self
            .rows
            .iter()
            .filter(|wanted| !ids.contains(&wanted.as_str()))
        {
            let mut others = files.iter().flat_map(|file| &file.not_reproduced);
            let what = match others.find(|(id, _)| id == wanted) {
                Some((_, reason)) => format!("{wanted} is not reproduced: {reason}"),
                None => format!("the ledger has no row {wanted}"),
            };
            let mut problem = Problems::whole("command line", what);
            let near = nearest(wanted, ids.iter().copied());
            problem.0[0].help = near.map(|near| format!("did you mean {near}?"));
            problems.0.extend(problem.0);
        }
        problems
    }
}

/// The model's figure for a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Mean over the seeds.
    pub value: f64,
    /// 95 % interval of the mean, from independent seeds; `None` with one seed, or without a run.
    pub interval: Option<(f64, f64)>,
    /// Number of seeds; 1 if the row needs no run.
    pub seeds: usize,
}

/// A row with its result.
#[derive(Clone, Debug, PartialEq)]
pub struct RowResult {
    /// The row that was run.
    pub row: LedgerRow,
    /// The model's figure, or the reason why there is none.
    pub model: Result<Model, String>,
    /// Model divided by published value, minus one, if both are numbers and the row is judged by a number.
    pub error: Option<f64>,
    /// The verdict on the row.
    pub verdict: RowVerdict,
}

/// Result of a run of the ledger.
#[derive(Clone, Debug, PartialEq)]
pub struct Reproduction {
    /// Results in the order of row ids.
    pub results: Vec<RowResult>,
    /// Rows that are not reproduced, with the reason.
    pub not_reproduced: Vec<(String, String)>,
    /// Rows that are not yet done.
    pub pending: Vec<String>,
    /// Number of runs that were made.
    pub runs: usize,
}

/// Counts over a set of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Number of rows.
    pub rows: usize,
    /// Number of fitted rows.
    pub fitted: usize,
    /// Number of predicted rows.
    pub predicted: usize,
    /// Number of rows that use the catalogue alone.
    pub catalogue: usize,
    /// Number of rows that are out of tolerance, have no figure, or have a figure on which the seeds do not agree.
    pub missed: usize,
    /// Errors of all predicted rows that are judged by a number.
    pub errors: Errors,
    /// Errors by class, in the order of [`Class::ALL`].
    pub classes: [Errors; 2],
    /// Number of claims (rows that hold or do not hold) computed from runs.
    pub claims: usize,
    /// Number of claims that hold.
    pub claims_held: usize,
}

impl Summary {
    /// Counts these results.
    pub fn from_results<'a>(results: impl Iterator<Item = &'a RowResult>) -> Summary {
        let mut summary = Summary::default();
        let results: Vec<&RowResult> = results.collect();
        for result in &results {
            let held = result.verdict == RowVerdict::Holds;
            let evidence = result.row.evidence;
            summary.rows += 1;
            summary.fitted += usize::from(evidence == Evidence::Fitted);
            summary.predicted += usize::from(evidence == Evidence::Predicted);
            summary.catalogue += usize::from(evidence == Evidence::Catalogue);
            summary.missed += usize::from(!held);
            if evidence != Evidence::Catalogue && !result.row.judgement.has_error() {
                summary.claims += 1;
                summary.claims_held += usize::from(held);
            }
        }
        let all = || results.iter().copied();
        summary.errors = Errors::from_results(all());
        summary.classes = Class::ALL.map(|class| Errors::of_class(class, all()));
        summary
    }
}

/// Result that is required from a scenario.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Goal {
    /// The outcome of the run.
    Outcome,
    /// For ACT: the score.
    Score,
    /// For ACT: the load at which this percentage of the reads takes 1 ms.
    AtShare(f64),
}

impl Goal {
    /// Returns the kind of goal and the bits of its number, so that goals can be compared and ordered.
    fn bits(self) -> (u8, u64) {
        match self {
            Goal::AtShare(percent) => (0, percent.to_bits()),
            Goal::Outcome => (1, 0),
            Goal::Score => (2, 0),
        }
    }
}

/// A run and the figures that are required from it. To add a kind of work: a variant of [`Work`], and its scenario
/// here.
struct LedgerTask {
    scenario: Scenario,
    goal: Goal,
    /// Number of jobs at the beginning whose I/Os are not counted.
    uncounted: usize,
    wanted: BTreeMap<String, RunFigure>,
}

/// Scenario, goal and number of uncounted jobs. Two tasks with equal keys are the same run.
type TaskKey = (Key, (u8, u64), usize);

type FigureValues = BTreeMap<String, Result<f64, ExpressionError>>;

/// A laboratory, and the figures of its earlier runs, for callers that change one value and run everything again.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    lab: Lab,
    known: Mutex<BTreeMap<TaskKey, FigureValues>>,
}

impl Memory {
    /// Returns the figures of a task, from memory or from a new run.
    fn get_or_run(&self, task: &LedgerTask, go_on: ProgressCallback<'_>) -> FigureValues {
        let key = task.key();
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let remembered = known().get(&key).cloned();
        let enough = |known: &FigureValues| task.wanted.keys().all(|name| known.contains_key(name));
        remembered.filter(enough).unwrap_or_else(|| {
            let figures = task.run(&self.lab, go_on);
            known().insert(key, figures.clone());
            figures
        })
    }
}

impl LedgerTask {
    fn key(&self) -> TaskKey {
        key(&self.scenario, self.goal, self.uncounted)
    }

    /// Runs the task. Only figures are kept, because histograms of thousands of runs would not fit into memory.
    fn run(&self, lab: &Lab, go_on: ProgressCallback<'_>) -> FigureValues {
        let all = |of: &dyn Fn(RunFigure) -> Result<f64, ExpressionError>| {
            let figures = self.wanted.iter();
            figures
                .map(|(name, figure)| (name.clone(), of(*figure)))
                .collect()
        };
        let scenario = &self.scenario;
        let figures = match self.goal {
            Goal::Outcome => lab.run_until(scenario, go_on).map(|mut outcome| {
                // What runs before and beside is in groups of its own.
                let group = self.uncounted as u32;
                let counts = |thread: &ThreadOutcome| thread.group == group;
                outcome.threads.retain(counts);
                all(&|one| match outcome.tested() {
                    Some(tested) => one.of_act(tested, None),
                    None => one.value(&outcome),
                })
            }),
            Goal::Score => score(lab, scenario, &|_, _| {})
                .map(|found| all(&|one| one.of_act(&found.tested, Some(found.load)))),
            Goal::AtShare(percent) => {
                at_share(lab, scenario, percent).map(|tested| all(&|one| one.of_act(&tested, None)))
            }
        };
        figures.unwrap_or_else(|problems| {
            let wrong = ExpressionError(problems.to_string());
            all(&|_| Err(wrong.clone()))
        })
    }
}

/// All runs that rows need, each once.
#[derive(Default)]
struct RunSet {
    tasks: Vec<LedgerTask>,
    by_key: BTreeMap<TaskKey, usize>,
}

/// Machines of measurements, each read once, by drive, host and their changes, with the number of the host's sockets.
#[derive(Default)]
struct Machines(BTreeMap<(NameWithChanges, NameWithChanges), (Machine, u16)>);

/// Name of a drive or host, and its changes.
type NameWithChanges = (String, Vec<Change>);

impl Machines {
    /// Returns the machine of a measurement, and the number of processors of its host.
    fn get_or_build(
        &mut self,
        measurement: &LedgerMeasurement,
    ) -> Result<&(Machine, u16), Problems> {
        let key = (
            (measurement.drive.clone(), measurement.set.clone()),
            (measurement.host.clone(), measurement.host_set.clone()),
        );
        Ok(match self.0.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let drive = catalogue::drive_with(&measurement.drive, &measurement.set)?;
                let host = catalogue::host_with(&measurement.host, &measurement.host_set)?;
                place.insert((Machine::new(&drive, &host), host.sockets))
            }
        })
    }

    /// Returns a point of a measurement as a scenario, with `ios` I/Os for jobs without a bound.
    fn scenario(
        &mut self,
        measurement: &LedgerMeasurement,
        jobs: &[Job],
        ios: u64,
        seed: u64,
    ) -> Result<(Scenario, Goal), Problems> {
        let (machine, sockets) = self.get_or_build(measurement)?;
        Ok(match &measurement.work {
            Work::Fio { .. } => {
                let scenario = measure::scenario(machine, measurement, jobs, ios, seed);
                (scenario, Goal::Outcome)
            }
            Work::Act(act) => {
                let scenario = act::scenario(machine, *sockets, measurement, act, seed)?;
                let goal = match (act.load, act.over_1ms_percent) {
                    (Some(_), _) => Goal::Outcome,
                    (None, Some(percent)) => Goal::AtShare(percent),
                    (None, None) => Goal::Score,
                };
                (scenario, goal)
            }
        })
    }

    /// Returns a key that is equal for two points if they are the same run except for seed and number of I/Os.
    fn point(
        &mut self,
        measurement: &LedgerMeasurement,
        jobs: &[Job],
    ) -> Result<TaskKey, Problems> {
        let (scenario, goal) = self.scenario(measurement, jobs, 1, 0)?;
        Ok(key(&scenario, goal, measure::uncounted(measurement)))
    }
}

/// Tasks of a measurement: for each seed and each point, its value on the sweep and the index of the task.
type MeasurementTasks = Vec<Vec<(Option<f64>, usize)>>;

/// I/Os that the rows of the whole ledger need of a point, so that a row's figure does not depend on the selection of
/// other rows.
type Demand = BTreeMap<TaskKey, u64>;

fn key(scenario: &Scenario, goal: Goal, uncounted: usize) -> TaskKey {
    (scenario.key(), goal.bits(), uncounted)
}

/// Returns the figures that rows need of each measurement of a file.
fn wanted<'a>(rows: impl Iterator<Item = &'a LedgerRow>) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut wanted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for row in rows {
        row.expression.figures(&mut |owner, name| {
            wanted.entry(owner).or_default().insert(name);
        });
    }
    wanted
}

fn demand(files: &[LedgerFile], machines: &mut Machines) -> Result<Demand, Problems> {
    let mut demand = Demand::new();
    for file in files {
        let wanted = wanted(file.rows.iter());
        for measurement in &file.measurements {
            let Some(names) = wanted.get(&*measurement.name) else {
                continue;
            };
            let figures: Vec<RunFigure> = names
                .iter()
                .filter_map(|name| RunFigure::named(name).ok())
                .collect();
            for (_, jobs) in jobs_of_points(measurement)? {
                let ios = demand
                    .entry(machines.point(measurement, &jobs)?)
                    .or_default();
                *ios = (*ios).max(ios_for(measurement, &jobs, &figures));
            }
        }
    }
    Ok(demand)
}

impl RunSet {
    /// Plans a measurement for each seed and point.
    fn take(
        &mut self,
        measurement: &LedgerMeasurement,
        names: &BTreeSet<&str>,
        (machines, demand): (&mut Machines, &Demand),
    ) -> Result<MeasurementTasks, Problems> {
        let points = jobs_of_points(measurement)?;
        let mut taken = MeasurementTasks::new();
        for seed in 1..=measurement.seeds {
            let mut of_seed = Vec::new();
            for (x, jobs) in &points {
                of_seed.push((
                    *x,
                    self.task(measurement, jobs, seed, names, (machines, demand))?,
                ));
            }
            taken.push(of_seed);
        }
        Ok(taken)
    }

    fn task(
        &mut self,
        measurement: &LedgerMeasurement,
        jobs: &[Job],
        seed: u64,
        names: &BTreeSet<&str>,
        (machines, demand): (&mut Machines, &Demand),
    ) -> Result<usize, Problems> {
        let point = machines.point(measurement, jobs)?;
        let ios = demand.get(&point).copied().unwrap_or(1);
        let (scenario, goal) = machines.scenario(measurement, jobs, ios, seed)?;
        let task = LedgerTask {
            scenario,
            goal,
            uncounted: measure::uncounted(measurement),
            wanted: BTreeMap::new(),
        };
        let key = task.key();
        let index = match self.by_key.get(&key) {
            Some(&index) => index,
            None => {
                self.tasks.push(task);
                self.by_key.insert(key, self.tasks.len() - 1);
                self.tasks.len() - 1
            }
        };
        for name in names {
            if let Ok(figure) = RunFigure::named(name) {
                self.tasks[index].wanted.insert((*name).to_owned(), figure);
            }
        }
        Ok(index)
    }
}

/// Runs the selected rows. `go_on` is called now and then with the completed share of all work. If it stops the runs,
/// results use what has been completed.
///
/// # Errors
/// The selection names rows that do not exist, or a measurement does not load.
pub fn reproduce(
    files: &[LedgerFile],
    selection: &Selection,
    go_on: ProgressCallback<'_>,
) -> Result<Reproduction, Problems> {
    reproduce_with(files, selection, &Memory::default(), go_on)
}

/// Reproduces as [`reproduce`] does, without the runs that are in `memory`.
///
/// # Errors
/// As [`reproduce`].
pub(crate) fn reproduce_with(
    files: &[LedgerFile],
    selection: &Selection,
    memory: &Memory,
    go_on: ProgressCallback<'_>,
) -> Result<Reproduction, Problems> {
    selection.problems(files).or(())?;
    let mut machines = Machines::default();
    let demand = demand(files, &mut machines)?;
    let mut runs = RunSet::default();
    let mut taken: Vec<BTreeMap<&str, MeasurementTasks>> = Vec::new();
    for file in files {
        let rows = file.rows.iter().filter(|row| selection.takes(&row.id));
        let wanted = wanted(rows);
        let mut of_file = BTreeMap::new();
        for measurement in &file.measurements {
            if let Some(names) = wanted.get(&*measurement.name) {
                let tasks = runs.take(measurement, names, (&mut machines, &demand))?;
                of_file.insert(&*measurement.name, tasks);
            }
        }
        taken.push(of_file);
    }
    let figures = in_parallel(&runs.tasks, go_on, |task, go_on| {
        memory.get_or_run(task, go_on)
    });
    let mut results = Vec::new();
    for (file, taken) in files.iter().zip(&taken) {
        let drives = sheets(file)?;
        let rows = file.rows.iter().filter(|row| selection.takes(&row.id));
        results.extend(rows.map(|row| result(row, taken, &drives, &figures)));
    }
    results.sort_by(|a, b| a.row.id.cmp(&b.row.id));
    let (not_reproduced, pending) = others(files, selection);
    Ok(Reproduction {
        results,
        not_reproduced,
        pending,
        runs: runs.tasks.len(),
    })
}

/// Returns the rows that are not reproduced, and the pending rows.
fn others(files: &[LedgerFile], selection: &Selection) -> (Vec<(String, String)>, Vec<String>) {
    let not_reproduced: BTreeSet<(String, String)> = files
        .iter()
        .flat_map(|file| file.not_reproduced.iter().cloned())
        .filter(|(id, _)| selection.takes(id))
        .collect();
    let rows = files.iter().flat_map(|file| &file.rows).map(|row| &*row.id);
    let done: BTreeSet<&str> = rows
        .chain(not_reproduced.iter().map(|(id, _)| &**id))
        .collect();
    let pending: BTreeSet<String> = files
        .iter()
        .flat_map(|file| file.pending.iter().cloned())
        .filter(|id| selection.takes(id) && !done.contains(&**id))
        .collect();
    (
        not_reproduced.into_iter().collect(),
        pending.into_iter().collect(),
    )
}

fn sheets(file: &LedgerFile) -> Result<BTreeMap<&str, DriveSheet>, Problems> {
    let named = file.drives.iter();
    named
        .map(|(name, id)| Ok((&**name, catalogue::drive(id)?)))
        .collect()
}

fn result(
    row: &LedgerRow,
    taken: &BTreeMap<&str, MeasurementTasks>,
    drives: &BTreeMap<&str, DriveSheet>,
    figures: &[FigureValues],
) -> RowResult {
    let mut seeds = 1;
    row.expression.figures(&mut |owner, _| {
        seeds = seeds.max(taken.get(owner).map_or(1, Vec::len));
    });
    let values: Result<Vec<f64>, ExpressionError> = (0..seeds)
        .map(|seed| {
            let look_up = |owner: &str, name: &str| match taken.get(owner) {
                Some(taken) => of_run(&taken[seed % taken.len()], name, figures),
                None => match drives.get(owner) {
                    Some(sheet) => of_drive(sheet, name).map(Value::Number),
                    None => Err(ExpressionError(format!("no `{owner}`"))),
                },
            };
            row.expression.value(&look_up)?.number()
        })
        .collect();
    let model = values
        .map(|values| Model::from_values(&values))
        .map_err(|wrong| wrong.0);
    let value = model.as_ref().map_or(f64::NAN, |model| model.value);
    let interval = model.as_ref().ok().and_then(|model| model.interval);
    let (verdict, error) = judge_spread(row.judgement, &row.published, value, interval);
    RowResult {
        row: row.clone(),
        model,
        error,
        verdict,
    }
}

/// Returns a figure of a measurement for one seed: a number, or a series along its sweep.
fn of_run(
    points: &[(Option<f64>, usize)],
    name: &str,
    figures: &[FigureValues],
) -> Result<Value, ExpressionError> {
    let value = |task: usize| match figures[task].get(name) {
        Some(value) => value.clone(),
        None => Err(ExpressionError(format!("no figure `{name}`"))),
    };
    if let [(None, task)] = points {
        return value(*task).map(Value::Number);
    }
    let series: Result<Vec<(f64, f64)>, ExpressionError> = points
        .iter()
        .map(|&(x, task)| Ok((x.unwrap_or_default(), value(task)?)))
        .collect();
    series.map(Value::Series)
}

/// Two-sided 95 % quantiles of Student's t distribution with 1, 2, ... degrees of freedom.
const STUDENT: [f64; 9] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262,
];

impl Model {
    fn from_values(values: &[f64]) -> Model {
        let n = values.len() as f64;
        let value = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|one| (one - value) * (one - value)).sum();
        let interval = STUDENT.get(values.len().wrapping_sub(2)).map(|t| {
            let half = t * libm::sqrt(squares / (n - 1.0) / n);
            (value - half, value + half)
        });
        Model {
            value,
            interval,
            seeds: values.len(),
        }
    }
}
