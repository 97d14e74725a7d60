//! Runs the points of a review on all cores.
//!
//! As in a laboratory, a drive is prepared once and then put through the points of a series one after the other (a
//! series is a chapter's reads, or its writes). Series are independent of each other and run in parallel; every run is
//! seeded from the review's seed and the point's name. So the results do not depend on the number of threads, nor on
//! which drives stand beside. All drives meet the same seeds, that is, the same accesses, but for a run that turns out
//! too short on a drive: it is made again with another seed.

use model::{Span, Stream};
use rayon::prelude::*;
use statistics::Total;

use super::Request;
use super::member;
use super::results::{Measurement, Point};
use super::suite::{Course, Effort, PointSpec};
use lab::{Bench, Lab, Outcome, Work};
use text::problem::Problems;
use workload::fio::{self, Surroundings};
use workload::job::Job;

/// What a review tells while it works.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Event<'a> {
    /// So many more runs are to come.
    Planned(usize),
    /// One begins.
    Begun(&'a str),
    /// One is done.
    Done(&'a str),
}

/// Listens to [`Event`]s, from any thread.
pub type Listener<'a> = &'a (dyn Fn(Event<'_>) + Sync);

/// The points of one series on one drive, by their index.
struct Series {
    drive: usize,
    points: Vec<usize>,
}

/// One point on one drive.
pub(super) struct Task<'a> {
    pub(super) spec: &'a PointSpec,
    pub(super) drive: usize,
}

pub(super) struct Runner<'a> {
    pub(super) request: &'a Request,
    pub(super) effort: Effort,
    pub(super) lab: &'a Lab,
    pub(super) listener: Listener<'a>,
}

/// What was found so far.
pub(super) struct Found<'a> {
    pub(super) drives: usize,
    /// Points, each with the id of its chapter.
    pub(super) points: &'a [(&'static str, Point)],
}

impl<'a> Found<'a> {
    /// The points of a chapter.
    pub(super) fn points(&self, chapter: &str) -> impl Iterator<Item = &'a Point> {
        let points = self.points.iter();
        points.filter_map(move |(id, point)| (*id == chapter).then_some(point))
    }
}

/// The seed of a point; below 2^53, so that every JSON reader keeps it.
pub fn seed_of(review: u64, point: &str) -> u64 {
    Stream::new(review, point).bits() >> 12
}

impl Runner<'_> {
    /// The points, each with its chapter.
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

    /// Which points follow each other on which drive.
    fn series(&self, specs: &[PointSpec]) -> Vec<Series> {
        let mut all: Vec<Series> = Vec::new();
        for drive in 0..self.request.drives.len() {
            let mut names: Vec<(&str, Option<&str>)> = Vec::new();
            let first = all.len();
            for (index, spec) in specs.iter().enumerate() {
                if spec.only.is_some_and(|only| only != drive) || !self.has_blocks_for(spec, drive)
                {
                    continue;
                }
                let name = match spec.course {
                    Course::Rounds(plan) => (plan, None),
                    _ => (spec.chapter, spec.settings.direction),
                };
                // Points that prepare their drives themselves need not wait for each other.
                let alone = matches!(spec.course, Course::Long(_));
                let at = names.iter().position(|other| *other == name && !alone);
                let at = at.unwrap_or_else(|| {
                    names.push(name);
                    all.push(Series {
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

    /// Whether a drive's logical blocks are small enough for a point: in blocks of 4096 B there is nothing of 512 B.
    fn has_blocks_for(&self, spec: &PointSpec, drive: usize) -> bool {
        let block = u64::from(self.request.block_of(drive));
        let whole = |bytes: Option<u64>| bytes.is_none_or(|bytes| bytes.is_multiple_of(block));
        whole(spec.settings.block_bytes) && whole(spec.settings.align_bytes)
    }

    fn run_series(
        &self,
        series: &Series,
        specs: &[PointSpec],
    ) -> Result<Vec<Option<Measurement>>, Problems> {
        let sheet = &self.request.drives[series.drive];
        let first = &specs[series.points[0]];
        if let Course::Rounds(plan) = first.course {
            let specs: Vec<&PointSpec> = series.points.iter().map(|&at| &specs[at]).collect();
            return self.in_rounds(series.drive, &specs, plan);
        }
        let seed = seed_of(self.request.seed, first.chapter);
        let mut bench = None;
        let mut results = Vec::new();
        for &index in &series.points {
            let spec = &specs[index];
            let task = Task {
                spec,
                drive: series.drive,
            };
            let name = format!("{} {}", sheet.id, spec.name);
            (self.listener)(Event::Begun(&name));
            let mut result = match spec.course {
                Course::UntilSteady => Some(self.until_steady(&task)?),
                Course::Long(long) => self.long(&task, long)?,
                Course::Rounds(_) => None,
                Course::UntilKnown => {
                    let bench = bench.get_or_insert_with(|| {
                        let machine = self.request.machine_of(series.drive);
                        Bench::new(self.lab, &machine, spec.state, seed)
                    });
                    Some(self.until_known(bench, &task)?)
                }
            };
            if let Some(result) = &mut result {
                member::tell(&mut result.members, sheet);
                for one in &mut result.each {
                    member::tell(&mut one.members, sheet);
                }
            }
            results.push(result);
            (self.listener)(Event::Done(&name));
        }
        Ok(results)
    }

    /// A run with a seed that none before it on this bench had: writes to the same places in the same order would find
    /// whole blocks of flash without valid pages, and collection would look cheaper than it is.
    pub(super) fn once(
        &self,
        bench: &mut Bench<'_>,
        task: &Task,
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

/// Specs of one name are one point, whose jobs differ from drive to drive.
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

/// A suite's own job text, read back.
pub(super) fn jobs(name: &str, text: &str) -> Result<Vec<Job>, Problems> {
    let surroundings = Surroundings {
        environment: &|_| None,
        read: &|_| Err(std::io::ErrorKind::NotFound.into()),
        processors: 1,
    };
    fio::read_text(name, text, &surroundings).map(|set| set.jobs)
}

/// How long it takes to do so many I/Os at this rate, but not longer than `longest`.
pub(super) fn time_for(ios: u64, iops: f64, longest: Option<Span>) -> Span {
    let runtime = Span::from_seconds((ios as f64 / iops.max(1.0)).max(1e-3));
    // The bound first: as many I/Os as a suite without a number asks for may be more time than there is.
    let runtime = longest.map_or(runtime, |most| runtime.min(most));
    // Whole milliseconds, so that the job reads well.
    Span::from_ms(runtime.ns().div_ceil(1_000_000))
}

/// Reads and writes a second of all threads, from their first start to their last completion.
pub(crate) fn rate_of(outcome: &Outcome) -> f64 {
    let threads = outcome.threads.iter();
    let both = threads.flat_map(|thread| [&thread.read, &thread.write]);
    Total::of(both).iops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_a_number_of_ios_takes_as_long_as_its_source_says() {
        let minute = Span::from_ms(60_000);
        // A trillion I/Os at thirty a second are more nanoseconds than fit.
        assert_eq!(time_for(1 << 40, 30.0, Some(minute)), minute);
        assert_eq!(time_for(1000, 300_000.0, Some(minute)), Span::from_ms(4));
    }
}
