//! Runs the points of a review on all cores.
//!
//! As in a laboratory, a drive is prepared once and then runs the points of a series in sequence (a series is a
//! chapter's reads, or its writes). Series are independent of each other and run in parallel. Every run is seeded from
//! the review's seed and the point's name, so the results depend neither on the number of threads nor on the other
//! drives of the review. All drives receive the same seeds, that is, the same accesses. The exception is a run that is
//! too short on a drive: it is repeated with another seed.

use model::{Span, Stream};
use rayon::prelude::*;
use statistics::Total;

use super::ReviewRequest;
use super::member;
use super::results::{Measurement, Point};
use super::suite::{Effort, PointSpec, RunPolicy};
use lab::{Bench, Lab, Outcome, Work};
use text::problem::Problems;
use workload::fio::{self, Surroundings};
use workload::job::Job;

/// Progress of a review.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Event<'a> {
    /// This number of additional runs is planned.
    Planned(usize),
    /// The run with this name begins.
    Begun(&'a str),
    /// The run with this name is done.
    Done(&'a str),
}

/// Receives [`Event`]s, from any thread.
pub type Listener<'a> = &'a (dyn Fn(Event<'_>) + Sync);

/// The points of one series on one drive, by their index.
struct PointSeries {
    drive: usize,
    points: Vec<usize>,
}

/// One point on one drive.
pub(super) struct PointTask<'a> {
    pub(super) spec: &'a PointSpec,
    pub(super) drive: usize,
}

pub(super) struct Runner<'a> {
    pub(super) request: &'a ReviewRequest,
    pub(super) effort: Effort,
    pub(super) lab: &'a Lab,
    pub(super) listener: Listener<'a>,
}

/// Results so far.
pub(super) struct PartialResults<'a> {
    pub(super) drives: usize,
    /// Points, each with the id of its chapter.
    pub(super) points: &'a [(&'static str, Point)],
}

impl<'a> PartialResults<'a> {
    /// Returns the points of a chapter.
    pub(super) fn points(&self, chapter: &str) -> impl Iterator<Item = &'a Point> {
        let points = self.points.iter();
        points.filter_map(move |(id, point)| (*id == chapter).then_some(point))
    }
}

/// Returns the seed of a point; below 2^53, so that every JSON reader keeps it.
pub fn seed_of(review: u64, point: &str) -> u64 {
    Stream::new(review, point).bits() >> 12
}

impl Runner<'_> {
    /// Runs the points and returns them, each with its chapter.
    pub(super) fn run_all(
        &self,
        specs: &[PointSpec],
    ) -> Result<Vec<(&'static str, Point)>, Problems> {
        let drives = self.request.drives.len();
        let series = self.series(specs);
        (self.listener)(Event::Planned(
            series.iter().map(|one| one.points.len()).sum(),
        ));
        let measured: Vec<Vec<Option<Measurement>>> = series
            .par_iter()
            .with_max_len(1)
            .map(|one| self.run_series(one, specs))
            .collect::<Result<_, _>>()?;
        let mut points: Vec<Point> = specs
            .iter()
            .map(|spec| Point {
                name: spec.name.clone(),
                settings: spec.settings.clone(),
                state: spec.state.name(),
                seed: seed_of(self.request.seed, &spec.name),
                results: vec![None; drives],
            })
            .collect();
        for (one, results) in series.iter().zip(measured) {
            for (&point, result) in one.points.iter().zip(results) {
                points[point].results[one.drive] = result;
            }
        }
        let chapters = specs.iter().map(|spec| spec.chapter);
        Ok(together(chapters.zip(points)))
    }

    /// Groups the points that run in sequence on one drive.
    fn series(&self, specs: &[PointSpec]) -> Vec<PointSeries> {
        let mut all: Vec<PointSeries> = Vec::new();
        for drive in 0..self.request.drives.len() {
            let mut names: Vec<(&str, Option<&str>)> = Vec::new();
            let first = all.len();
            for (index, spec) in specs.iter().enumerate() {
                if spec.only.is_some_and(|only| only != drive) || !self.has_blocks_for(spec, drive)
                {
                    continue;
                }
                let name = match spec.course {
                    RunPolicy::Rounds(plan) => (plan, None),
                    _ => (spec.chapter, spec.settings.direction),
                };
                // Points that prepare their drives themselves need not wait for each other.
                let alone = matches!(spec.course, RunPolicy::Long(_));
                let at = names.iter().position(|other| *other == name && !alone);
                let at = at.unwrap_or_else(|| {
                    names.push(name);
                    all.push(PointSeries {
                        drive,
                        points: Vec::new(),
                    });
                    names.len() - 1
                });
                all[first + at].points.push(index);
            }
        }
        all
    }

    /// Checks whether a drive's logical blocks are small enough for a point: a drive with 4096 B blocks has no 512 B
    /// I/O.
    fn has_blocks_for(&self, spec: &PointSpec, drive: usize) -> bool {
        let block = u64::from(self.request.block_of(drive));
        let whole = |bytes: Option<u64>| bytes.is_none_or(|bytes| bytes.is_multiple_of(block));
        whole(spec.settings.block_bytes) && whole(spec.settings.align_bytes)
    }

    fn run_series(
        &self,
        series: &PointSeries,
        specs: &[PointSpec],
    ) -> Result<Vec<Option<Measurement>>, Problems> {
        let sheet = &self.request.drives[series.drive];
        let first = &specs[series.points[0]];
        if let RunPolicy::Rounds(plan) = first.course {
            let specs: Vec<&PointSpec> = series.points.iter().map(|&at| &specs[at]).collect();
            return self.in_rounds(series.drive, &specs, plan);
        }
        let seed = seed_of(self.request.seed, first.chapter);
        let mut bench = None;
        let mut results = Vec::new();
        for &index in &series.points {
            let spec = &specs[index];
            let task = PointTask {
                spec,
                drive: series.drive,
            };
            let name = format!("{} {}", sheet.id, spec.name);
            (self.listener)(Event::Begun(&name));
            let mut result = match spec.course {
                RunPolicy::UntilSteady => Some(self.until_steady(&task)?),
                RunPolicy::Long(long) => self.long(&task, long)?,
                RunPolicy::Rounds(_) => None,
                RunPolicy::UntilKnown => {
                    let bench = bench.get_or_insert_with(|| {
                        let machine = self.request.machine_of(series.drive);
                        Bench::new(self.lab, &machine, spec.state, seed)
                    });
                    Some(self.until_known(bench, &task)?)
                }
            };
            if let Some(result) = &mut result {
                member::set_names_and_years(&mut result.members, sheet);
                for one in &mut result.each {
                    member::set_names_and_years(&mut one.members, sheet);
                }
            }
            results.push(result);
            (self.listener)(Event::Done(&name));
        }
        Ok(results)
    }

    /// Runs with a seed that no previous run on this bench had. Repeated writes to the same addresses in the same
    /// order would leave whole flash blocks without valid pages, and garbage collection would look cheaper than it is.
    pub(super) fn once(
        &self,
        bench: &mut Bench<'_>,
        task: &PointTask,
        seed: u64,
        text: impl Fn(u64) -> String,
    ) -> Result<(String, Outcome), Problems> {
        let text = text(seed);
        let work = Work::Jobs(jobs(&task.spec.name, &text)?);
        let mut outcome = bench.run(work, seed, Span::ZERO)?;
        if task.spec.shows_first_group {
            outcome.threads.retain(|thread| thread.group == 0);
        }
        Ok((text, outcome))
    }

    pub(super) fn seed(&self, run: &str) -> u64 {
        seed_of(self.request.seed, run)
    }
}

/// Merges specs with one name into one point, whose jobs differ between drives.
fn together(points: impl Iterator<Item = (&'static str, Point)>) -> Vec<(&'static str, Point)> {
    let mut all: Vec<(&'static str, Point)> = Vec::new();
    for (chapter, point) in points {
        match all.iter_mut().find(|(_, known)| known.name == point.name) {
            Some((_, known)) => {
                for (known, result) in known.results.iter_mut().zip(point.results) {
                    *known = known.take().or(result);
                }
            }
            None => all.push((chapter, point)),
        }
    }
    all
}

/// Parses the text of a suite's own job.
pub(super) fn jobs(name: &str, text: &str) -> Result<Vec<Job>, Problems> {
    let surroundings = Surroundings {
        environment: &|_| None,
        read: &|_| Err(std::io::ErrorKind::NotFound.into()),
        processors: 1,
    };
    fio::read_text(name, text, &surroundings).map(|set| set.jobs)
}

/// Returns the time for `ios` I/Os at this rate, at most `longest`.
pub(super) fn time_for(ios: u64, iops: f64, longest: Option<Span>) -> Span {
    let runtime = Span::from_seconds((ios as f64 / iops.max(1.0)).max(1e-3));
    // The bound is applied first: a suite without a limit requests so many I/Os that the time may overflow.
    let runtime = longest.map_or(runtime, |most| runtime.min(most));
    // Whole milliseconds, for a readable job.
    Span::from_ms(runtime.ns().div_ceil(1_000_000))
}

/// Returns the rate of reads and writes of all threads, from their first start to their last completion.
pub(crate) fn rate_of(outcome: &Outcome) -> f64 {
    let threads = outcome.threads.iter();
    let both = threads.flat_map(|thread| [&thread.read, &thread.write]);
    Total::from_threads(both).iops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_number_of_ios_takes_as_long_as_its_source_says() {
        let minute = Span::from_ms(60_000);
        // A trillion I/Os at 30 IOPS are more nanoseconds than the type can hold.
        assert_eq!(time_for(1 << 40, 30.0, Some(minute)), minute);
        assert_eq!(time_for(1000, 300_000.0, Some(minute)), Span::from_ms(4));
    }
}
