//! The user's own jobs and traces, on drives in steady state, with three seeds.

use std::sync::Arc;

use model::host::Engine;
use model::media::Precondition;
use rayon::prelude::*;

use crate::review::chapter::Chapter;
use crate::review::chart::ChapterSection;
use crate::review::measure::Keep;
use crate::review::results::{Point, PointSettings, YOURS};
use crate::review::run::{Event, Runner, seed_of};
use crate::review::seeds::{of_seeds, tell_convergence_as_given, tell_scatter};
use crate::review::suite::SEEDS;
use crate::review::{UserWorkload, Workload};
use lab::{Outcome, Scenario, ThreadOutcome, TraceReplay, Work};
use text::problem::Problems;
use workload::replay::OutOfRangePolicy;

/// The chapter.
pub(crate) struct UserWorkloads;

impl Chapter for UserWorkloads {
    fn id(&self) -> &'static str {
        YOURS
    }

    fn title(&self) -> &'static str {
        "Your jobs and traces"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: YOURS,
            title: "Your workloads",
            about: "The job files and traces given with the review, on drives in steady state. Their latency \
                    distribution and breakdown are among the workloads of the charts under \u{201c}Tail latency\u{201d}.",
            charts: &[],
        }
    }

    fn other_points(&self, runner: &Runner<'_>) -> Result<Vec<Point>, Problems> {
        runner.run_user_workloads()
    }

    fn spreads(&self, point: &Point) -> Vec<(String, &'static str)> {
        let name = point.name.split_once('/').map_or("", |(_, name)| name);
        let ways = ["read", "write"].into_iter();
        let had = |way: &&str| {
            point
                .results
                .iter()
                .flatten()
                .any(|one| one.direction(way).is_some())
        };
        ways.filter(had)
            .map(|way| (format!("{name}, {way}s"), way))
            .collect()
    }
}

impl Runner<'_> {
    /// Runs the user's own workloads with each seed: one point for each job of each file, or for each group of jobs
    /// that report together.
    fn run_user_workloads(&self) -> Result<Vec<Point>, Problems> {
        let seeds = SEEDS as usize;
        let runs = self.request.drives.len() * seeds;
        let tasks: Vec<(usize, usize, usize)> = (0..self.request.yours.len())
            .flat_map(|file| (0..runs).map(move |run| (file, run / seeds, run % seeds + 1)))
            .collect();
        (self.listener)(Event::Planned(tasks.len()));
        let outcomes: Vec<Outcome> = tasks
            .par_iter()
            .with_max_len(1)
            .map(|&(file, drive, number)| self.one_of_yours(file, drive, number))
            .collect::<Result<_, _>>()?;
        let mut points = Vec::new();
        for (yours, outcomes) in self.request.yours.iter().zip(outcomes.chunks(runs.max(1))) {
            let by_drive: Vec<&[Outcome]> = outcomes.chunks(seeds).collect();
            points.extend(self.points_of(yours, &by_drive));
        }
        Ok(points)
    }

    /// Runs a workload with the first, second or third seed.
    fn one_of_yours(&self, file: usize, drive: usize, number: usize) -> Result<Outcome, Problems> {
        let yours = &self.request.yours[file];
        let sheet = &self.request.drives[drive];
        let seed = match number {
            1 => self.seed(&yours.source),
            _ => self.seed(&format!("{}/seed {number}", yours.source)),
        };
        let name = format!("{} {}", sheet.id, yours.source);
        (self.listener)(Event::Begun(&name));
        let work = match &yours.workload {
            Workload::Jobs(jobs) => Work::Jobs(jobs.clone()),
            Workload::Trace(trace) => Work::Trace(TraceReplay {
                beyond: OutOfRangePolicy::Wrap,
                engine: Engine::default(),
                ..TraceReplay::new(Arc::clone(trace))
            }),
        };
        let machine = self.request.machine_of(drive);
        let scenario = Scenario::new(machine, Precondition::Steady, work, seed);
        let outcome = self.lab.run(&scenario);
        (self.listener)(Event::Done(&name));
        outcome
    }

    fn points_of(&self, yours: &UserWorkload, by_drive: &[&[Outcome]]) -> Vec<Point> {
        let Some(first) = by_drive.first().and_then(|of_seed| of_seed.first()) else {
            return Vec::new();
        };
        // The reporting group, and the job in it if its jobs do not report together.
        let row_of = |thread: &ThreadOutcome| {
            let job = match &yours.workload {
                Workload::Jobs(jobs) if !jobs[thread.job].group_reporting => Some(thread.job),
                Workload::Jobs(_) | Workload::Trace(_) => None,
            };
            (thread.group, job)
        };
        let mut rows: Vec<(u32, Option<usize>)> = first.threads.iter().map(row_of).collect();
        rows.dedup();
        let point = |row: &(u32, Option<usize>)| {
            let job = match &yours.workload {
                Workload::Jobs(jobs) => first
                    .threads
                    .iter()
                    .find(|thread| row_of(thread) == *row)
                    .map_or("", |thread| jobs[thread.job].name.as_str()),
                Workload::Trace(_) => "as recorded",
            };
            let results = by_drive.iter().map(|outcomes| {
                let of_row = |outcome: &Outcome| {
                    let mut alone = outcome.clone();
                    alone.threads.retain(|thread| row_of(thread) == *row);
                    vec![alone]
                };
                let of_seed: Vec<Vec<Outcome>> = outcomes.iter().map(of_row).collect();
                let mut result = of_seeds(&of_seed, Keep { bands: true }, true);
                result.job = yours.text.clone();
                match &yours.workload {
                    Workload::Jobs(_) => tell_convergence_as_given(self.effort, &mut result),
                    Workload::Trace(_) => tell_scatter(&mut result),
                }
                Some(result)
            });
            Point {
                name: format!("{YOURS}/{}/{job}", yours.source),
                settings: PointSettings {
                    source: Some(yours.source.clone()),
                    ..PointSettings::default()
                },
                state: Precondition::Steady.name(),
                seed: seed_of(self.request.seed, &yours.source),
                results: results.collect(),
            }
        };
        rows.iter().map(point).collect()
    }
}
