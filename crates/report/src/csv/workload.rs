//! Lines of a review, of fio jobs and of replayed traces: the same columns for all three.

use model::media::Precondition;
use serde::Serialize;

use super::{LatencyColumns, Table};
use crate::fio::spread_starts;
use crate::replay;
use lab::Outcome;
use statistics::Window;
use study::review::Review;
use study::review::measure::{Keep, figures, measurement};
use study::review::results::{
    DirectionResult, LatencySummary, Measurement, Point, percentile_grid, rounded,
};
use workload::job::{BlockSizes, Direction, Job, Mix, Rate};
use workload::replay::Pace;

/// Conditions of a line, and the amount of work.
#[derive(Clone, Debug, Default, Serialize)]
struct Conditions {
    drive: String,
    host: String,
    chapter: Option<&'static str>,
    point: String,
    direction: &'static str,
    source: Option<String>,
    state: &'static str,
    pattern: Option<&'static str>,
    block_bytes: Option<u64>,
    align_bytes: Option<u64>,
    queue_depth: Option<u32>,
    threads: Option<u32>,
    read_percent: Option<u32>,
    offered_iops: Option<u64>,
    share_of_saturation: Option<f64>,
    speed: Option<f64>,
    seed: Option<u64>,
    seconds: Option<f64>,
    ios: u64,
    errors: u64,
    iops: Option<f64>,
    mb_s: Option<f64>,
}

/// Figures of the drive and the host during the run, over all directions.
#[derive(Clone, Debug, Default, Serialize)]
struct Meanwhile {
    watts: Option<f64>,
    write_amplification: Option<f64>,
    controller_busy: Option<f64>,
    link_busy: Option<f64>,
    medium_busy: Option<f64>,
    host_cores: Option<f64>,
    notes: String,
}

/// Certainty of a line: the number of seeds, and the range over seeds.
#[derive(Clone, Debug, Default, Serialize)]
struct SeedColumns {
    seeds: Option<u32>,
    mean_error: Option<f64>,
    converged: Option<bool>,
    iops_least: Option<f64>,
    iops_most: Option<f64>,
    mean_least_us: Option<f64>,
    mean_most_us: Option<f64>,
    p50_least_us: Option<f64>,
    p50_most_us: Option<f64>,
    p99_least_us: Option<f64>,
    p99_most_us: Option<f64>,
    p99_9_least_us: Option<f64>,
    p99_9_most_us: Option<f64>,
    p99_99_least_us: Option<f64>,
    p99_99_most_us: Option<f64>,
    p99_999_least_us: Option<f64>,
    p99_999_most_us: Option<f64>,
}

impl SeedColumns {
    fn from_measurement(result: &Measurement, figures: &DirectionResult) -> SeedColumns {
        let known = SeedColumns {
            seeds: Some(result.each.len().max(1) as u32),
            mean_error: result.mean_error,
            converged: result.converged,
            ..SeedColumns::default()
        };
        let Some(across) = &figures.across_seeds else {
            return known;
        };
        let least = |ends: Option<[f64; 2]>| ends.map(|[least, _]| least);
        let most = |ends: Option<[f64; 2]>| ends.map(|[_, most]| most);
        let [p50, p99, p99_9, p99_99, p99_999] = across.percentiles_us;
        SeedColumns {
            iops_least: Some(across.iops[0]),
            iops_most: Some(across.iops[1]),
            mean_least_us: Some(across.mean_us[0]),
            mean_most_us: Some(across.mean_us[1]),
            p50_least_us: least(p50),
            p50_most_us: most(p50),
            p99_least_us: least(p99),
            p99_most_us: most(p99),
            p99_9_least_us: least(p99_9),
            p99_9_most_us: most(p99_9),
            p99_99_least_us: least(p99_99),
            p99_99_most_us: most(p99_99),
            p99_999_least_us: least(p99_999),
            p99_999_most_us: most(p99_999),
            ..known
        }
    }
}

type WorkloadRow = (Conditions, LatencyColumns, SeedColumns, Meanwhile);

fn row(conditions: &Conditions, figures: &DirectionResult, result: &Measurement) -> WorkloadRow {
    let conditions = Conditions {
        ios: figures.ios,
        errors: figures.errors,
        iops: Some(figures.iops),
        mb_s: Some(figures.mb_s),
        ..conditions.clone()
    };
    (
        conditions,
        LatencyColumns::from(&figures.latency),
        SeedColumns::from_measurement(result, figures),
        result.into(),
    )
}

impl From<&Measurement> for Meanwhile {
    fn from(result: &Measurement) -> Meanwhile {
        Meanwhile {
            watts: result.watts,
            write_amplification: result.write_amplification,
            controller_busy: result.controller_busy,
            link_busy: result.link_busy,
            medium_busy: result.medium_busy,
            host_cores: result.host_cores,
            notes: result.notes.join("; "),
        }
    }
}

/// Returns a review as a line for each drive, point and direction.
pub fn review(review: &Review) -> Table {
    let mut rows = Vec::new();
    for chapter in &review.chapters {
        for point in &chapter.points {
            for (drive, result) in review.drives.iter().zip(&point.results) {
                let Some(result) = result else { continue };
                let conditions = Conditions {
                    drive: drive.id.clone(),
                    host: review.host.id.clone(),
                    chapter: Some(chapter.id),
                    seconds: Some(result.seconds),
                    ..of_point(point)
                };
                let directions = [("read", &result.read), ("write", &result.write)];
                for (direction, figures) in directions {
                    let conditions = Conditions {
                        direction,
                        ..conditions.clone()
                    };
                    let figures = figures.iter();
                    rows.extend(figures.map(|one| row(&conditions, one, result)));
                }
            }
        }
    }
    Table::from_rows(rows)
}

fn of_point(point: &Point) -> Conditions {
    let settings = &point.settings;
    let pure = settings.direction.and_then(|direction| match direction {
        "read" => Some(100),
        "write" => Some(0),
        _ => None,
    });
    Conditions {
        point: point.name.clone(),
        source: settings.source.clone(),
        state: point.state,
        pattern: settings.pattern,
        block_bytes: settings.block_bytes,
        align_bytes: settings.align_bytes,
        queue_depth: settings.queue_depth,
        threads: settings.threads,
        read_percent: settings.read_percent.or(pure),
        offered_iops: settings.offered_iops,
        share_of_saturation: settings.share_of_saturation,
        seed: Some(point.seed),
        ..Conditions::default()
    }
}

/// fio jobs on a drive.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The drive's short name.
    pub drive: &'a str,
    /// Short name of the host.
    pub host: &'a str,
    /// Initial state of the drive.
    pub state: Precondition,
    /// The run's seed.
    pub seed: u64,
    /// Jobs that ran.
    pub jobs: &'a [Job],
    /// Outcome of the run.
    pub outcome: &'a Outcome,
}

/// Returns fio jobs on one or several drives: a line for each drive, job (all its copies together), and direction.
pub fn run(runs: &[Run<'_>]) -> Table {
    Table::from_rows(runs.iter().flat_map(rows_of))
}

fn rows_of(run: &Run<'_>) -> Vec<WorkloadRow> {
    let mut whole = measurement(&[run.outcome], Keep::default());
    whole.notes = spread_starts(run.jobs, run.outcome);
    let mut rows = Vec::new();
    for (index, job) in run.jobs.iter().enumerate() {
        let threads = run.outcome.threads.iter();
        let threads: Vec<_> = threads.filter(|thread| thread.job == index).collect();
        let read = figures(threads.iter().map(|thread| &thread.read), Keep::default());
        let write = figures(threads.iter().map(|thread| &thread.write), Keep::default());
        let trim = figures(threads.iter().map(|thread| &thread.trim), Keep::default());
        let flush = figures(threads.iter().map(|thread| &thread.sync), Keep::default());
        let all = [
            ("read", read, Some(Direction::Read)),
            ("write", write, Some(Direction::Write)),
            ("trim", trim, Some(Direction::Trim)),
            ("flush", flush, None),
        ];
        for (name, figures, direction) in all {
            let Some(figures) = figures else { continue };
            let window = Window::from_threads(threads.iter().map(|thread| match name {
                "read" => &thread.read,
                "write" => &thread.write,
                "trim" => &thread.trim,
                _ => &thread.sync,
            }));
            let conditions = Conditions {
                drive: run.drive.to_owned(),
                host: run.host.to_owned(),
                direction: name,
                state: run.state.name(),
                seed: Some(run.seed),
                seconds: window.map(|window| rounded(window.length().seconds())),
                ..of_job(job, direction)
            };
            rows.push(row(&conditions, &figures, &whole));
        }
    }
    rows
}

/// Returns the conditions of a job in this direction; for a recorded list of I/Os, only its depth.
fn of_job(job: &Job, direction: Option<Direction>) -> Conditions {
    let copies = job.numjobs;
    let common = Conditions {
        point: job.name.clone(),
        queue_depth: Some(job.iodepth * copies),
        threads: Some(copies),
        ..Conditions::default()
    };
    let Some(direction) = direction.filter(|_| job.records.is_none()) else {
        return common;
    };
    let way = direction as usize;
    let pattern = match (job.random, job.percentage_random[way]) {
        (true, 100) => Some("random"),
        (false, _) | (true, 0) => Some("sequential"),
        (true, _) => None,
    };
    Conditions {
        pattern,
        block_bytes: match job.block_sizes[way] {
            BlockSizes::Fixed(bytes) => Some(u64::from(bytes)),
            BlockSizes::Range { .. } | BlockSizes::Split(_) => None,
        },
        align_bytes: Some(u64::from(job.block_align[way])),
        read_percent: match job.mix {
            Mix::Read => Some(100),
            Mix::Write => Some(0),
            Mix::ReadWrite => Some(job.read_percent),
            Mix::Trim | Mix::TrimWrite => None,
        },
        offered_iops: match job.rate[way] {
            Some(Rate::Iops(iops)) => Some(iops * u64::from(copies)),
            Some(Rate::Every(_) | Rate::Bytes(_)) | None => None,
        },
        ..common
    }
}

/// A trace on drives.
#[derive(Clone, Copy, Debug)]
pub struct ReplayTable<'a> {
    /// The drives with the results of the trace.
    pub rows: &'a [replay::ReplayRow],
    /// File name of the trace.
    pub source: &'a str,
    /// The host's short name.
    pub host: &'a str,
    /// Initial state of the drives.
    pub state: Precondition,
    /// Pace at which requests were issued.
    pub pace: Pace,
    /// The run's seed.
    pub seed: u64,
}

/// Returns a replayed trace: a line for each drive and kind of request, and one for each kind as it was recorded,
/// whose drive is `as recorded`.
pub fn replay(replay: &ReplayTable<'_>) -> Table {
    let common = Conditions {
        host: replay.host.to_owned(),
        source: Some(replay.source.to_owned()),
        state: replay.state.name(),
        seed: Some(replay.seed),
        ..match replay.pace {
            Pace::Recorded(speed) => Conditions {
                point: "as recorded".into(),
                speed: Some(speed),
                ..Conditions::default()
            },
            Pace::Depth(depth) => Conditions {
                point: format!("depth {depth}"),
                queue_depth: Some(depth),
                ..Conditions::default()
            },
        }
    };
    let mut rows = Vec::new();
    for (index, one) in replay.rows.iter().enumerate() {
        let outcome = &one.outcome;
        let whole = measurement(&[outcome], Keep::default());
        for (direction, measured, recorded) in one.kinds() {
            let conditions = Conditions {
                drive: one.drive.clone(),
                direction,
                seconds: Some(rounded(measured.over.seconds())),
                errors: measured.errors,
                ..common.clone()
            };
            match figures(std::iter::once(measured), Keep::default()) {
                Some(figures) => rows.push(row(&conditions, &figures, &whole)),
                // All of them failed: the line has no figures but exists.
                None => rows.push((
                    conditions,
                    LatencyColumns::default(),
                    SeedColumns::default(),
                    Meanwhile::from(&whole),
                )),
            }
            let recorded = recorded.filter(|recorded| index == 0 && recorded.count() > 0);
            rows.extend(recorded.map(|recorded| {
                let conditions = Conditions {
                    drive: "as recorded".into(),
                    host: String::new(),
                    state: "",
                    seed: None,
                    speed: None,
                    queue_depth: None,
                    direction,
                    ios: recorded.count(),
                    ..common.clone()
                };
                let latency = LatencySummary::from_histogram(recorded, &percentile_grid());
                (
                    conditions,
                    (&latency).into(),
                    SeedColumns::default(),
                    Meanwhile::default(),
                )
            }));
        }
    }
    Table::from_rows(rows)
}
