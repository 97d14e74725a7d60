//! Sensitivity of a review to assumed figures: each assumed figure of each drive's sheet is divided and multiplied by
//! 1.5, with all else unchanged, and the headlines are measured again with the same seed.
//!
//! An assumed figure has no published range; a factor of 1.5 in either direction represents one. The measurement uses
//! a drive with fewer blocks, preconditioned at once, so the figures are those of the small drive. A change is
//! reported, as a share, if it exceeds [`TOLD`] of the unchanged value. Not covered: figures that are text or zero,
//! values that give no valid drive, figures that matter only in combination, and figures of the host.

use model::media::{Medium, Precondition};
use rayon::prelude::*;

use super::ReviewRequest;
use super::measure::{Keep, measurement};
use super::moved::SensitiveFigure;
use super::results::{Measurement, rounded};
use super::run::{Event, Listener};
use crate::fit::Parameter;
use catalogue::{DriveSheet, FigureKind};
use lab::{Lab, Scenario};
use text::problem::Problems;
use workload::job::{BlockSizes, Job, Mix};

/// Factor by which a figure is multiplied and divided.
const FACTOR: f64 = 1.5;

/// Minimum change that is reported, as a share.
const TOLD: f64 = 0.1;

/// Number of I/Os of a headline; an eighth of it for large I/Os.
const IOS: u64 = 12_000;

/// Bytes of the small drive.
const BYTES: u64 = 8 << 30;

/// A headline: its name, percent of reads, depth, bytes of an I/O (large ones are sequential), and the figure.
struct Headline {
    name: &'static str,
    reads: u32,
    depth: u32,
    bytes: u32,
    of: fn(&Measurement) -> Option<f64>,
}

const HEADLINES: [Headline; 7] = [
    Headline {
        name: "4 KiB random read, QD1: mean",
        reads: 100,
        depth: 1,
        bytes: 4096,
        of: |found| Some(found.read.as_ref()?.latency.mean_us),
    },
    Headline {
        name: "4 KiB random write, QD1: mean",
        reads: 0,
        depth: 1,
        bytes: 4096,
        of: |found| Some(found.write.as_ref()?.latency.mean_us),
    },
    Headline {
        name: "4 KiB random read, QD64: IOPS",
        reads: 100,
        depth: 64,
        bytes: 4096,
        of: |found| Some(found.iops()),
    },
    Headline {
        name: "4 KiB random write, QD64: IOPS",
        reads: 0,
        depth: 64,
        bytes: 4096,
        of: |found| Some(found.iops()),
    },
    Headline {
        name: "70/30 mix, QD16: 99th of reads",
        reads: 70,
        depth: 16,
        bytes: 4096,
        of: |found| found.read.as_ref()?.latency.p99_us,
    },
    Headline {
        name: "128 KiB sequential read, QD16: MB/s",
        reads: 100,
        depth: 16,
        bytes: 128 << 10,
        of: |found| Some(found.read.as_ref()?.mb_s),
    },
    Headline {
        name: "128 KiB sequential write, QD16: MB/s",
        reads: 0,
        depth: 16,
        bytes: 128 << 10,
        of: |found| Some(found.write.as_ref()?.mb_s),
    },
];

impl Headline {
    fn scenario(&self, request: &ReviewRequest, drive: usize, sheet: &DriveSheet) -> Scenario {
        let large = self.bytes > 4096;
        let threads = if large { 1 } else { self.depth.min(4) };
        let ios = if large { IOS / 8 } else { IOS };
        let job = Job {
            mix: match self.reads {
                100 => Mix::Read,
                0 => Mix::Write,
                _ => Mix::ReadWrite,
            },
            read_percent: self.reads,
            random: !large,
            norandommap: true,
            block_sizes: std::array::from_fn(|_| BlockSizes::Fixed(self.bytes)),
            iodepth: self.depth / threads,
            numjobs: threads,
            number_ios: Some(ios / u64::from(threads)),
            io_size: Some(Job::ROUND),
            ..Job::default()
        };
        let machine = request.machine_of(drive);
        let machine = machine.with_drive(sheet.config.shrunk(BYTES));
        Scenario::jobs(machine, Precondition::Steady, vec![job], request.seed)
    }
}

/// Returns the assumed figures of each drive that change a headline, the strongest first; `names` are those by which
/// the drives load.
///
/// # Errors
/// A drive does not load again, or a headline does not fit it.
pub fn sensitivity(
    request: &ReviewRequest,
    names: &[String],
    lab: &Lab,
    listener: Listener<'_>,
) -> Result<Vec<Vec<SensitiveFigure>>, Problems> {
    let labels = super::labels(&request.drives);
    let bases: Vec<[f64; HEADLINES.len()]> = (0..names.len())
        .into_par_iter()
        .map(|drive| headlines(lab, request, drive, &request.drives[drive]))
        .collect::<Result<_, _>>()?;
    let of_drive = |drive: usize| {
        let sheet = &request.drives[drive];
        let assumed = sheet
            .figures
            .iter()
            .filter(|figure| figure.kind == FigureKind::Assumed && !is_fixed(&figure.key));
        let free: Vec<Parameter> = assumed
            .filter_map(|figure| Parameter::named(&figure.key, &sheet.figures, &[]).ok())
            .collect();
        listener(Event::Planned(free.len()));
        let tried: Vec<Vec<SensitiveFigure>> = free
            .par_iter()
            .map(|parameter| {
                let name = format!("{} {}", sheet.id, parameter.key);
                listener(Event::Begun(&name));
                let ends = [1.0 / FACTOR, FACTOR].map(|factor| {
                    changed_headlines((lab, request), drive, &names[drive], parameter, factor)
                });
                listener(Event::Done(&name));
                moved(&bases, drive, parameter, ends, &labels)
            })
            .collect();
        let mut all = tried.concat();
        all.sort_by(|a, b| b.largest().total_cmp(&a.largest()));
        all
    };
    Ok((0..names.len()).map(of_drive).collect())
}

/// Checks whether a figure describes the drive that is compared: its capacity, and ratings, which no run depends on.
fn is_fixed(key: &str) -> bool {
    key == "capacity" || key.starts_with("ratings.")
}

/// Returns the headlines with a changed parameter; `None` if the change gives no valid drive, or the same drive.
fn changed_headlines(
    (lab, request): (&Lab, &ReviewRequest),
    drive: usize,
    name: &str,
    parameter: &Parameter,
    factor: f64,
) -> Option<[f64; HEADLINES.len()]> {
    let words = parameter.moved(libm::log(factor));
    if words == parameter.moved(0.0) {
        return None;
    }
    let mut settings = request.settings.clone();
    settings.figures.push((parameter.key.clone(), words));
    let sheet = catalogue::drive_as(name, &settings).ok()?;
    headlines(lab, request, drive, &sheet).ok()
}

fn headlines(
    lab: &Lab,
    request: &ReviewRequest,
    drive: usize,
    sheet: &DriveSheet,
) -> Result<[f64; HEADLINES.len()], Problems> {
    let mut found = [f64::NAN; HEADLINES.len()];
    for (found, headline) in found.iter_mut().zip(&HEADLINES) {
        let outcome = lab.run(&headline.scenario(request, drive, sheet))?;
        *found = (headline.of)(&measurement(&[&outcome], Keep::default())).unwrap_or(f64::NAN);
    }
    Ok(found)
}

/// Returns the headlines that a parameter changes, and the drives whose order changes.
fn moved(
    bases: &[[f64; HEADLINES.len()]],
    drive: usize,
    parameter: &Parameter,
    ends: [Option<[f64; HEADLINES.len()]>; 2],
    labels: &[String],
) -> Vec<SensitiveFigure> {
    let one = |(index, headline): (usize, &Headline)| {
        let was = bases[drive][index];
        let share = |end: Option<[f64; HEADLINES.len()]>| {
            let change = end?[index] / was - 1.0;
            change.is_finite().then(|| rounded(change))
        };
        let passed = |other: &usize| {
            let theirs = bases[*other][index];
            let crosses = |change: f64| (was > theirs) != (was * (1.0 + change) > theirs);
            *other != drive && ends.map(share).into_iter().flatten().any(crosses)
        };
        let moved = SensitiveFigure {
            figure: parameter.key.clone(),
            value: parameter.moved(0.0),
            headline: headline.name,
            was: rounded(was),
            change: ends.map(share),
            passes: (0..bases.len())
                .filter(passed)
                .map(|other| labels[other].clone())
                .collect(),
        };
        (moved.largest() > TOLD).then_some(moved)
    };
    HEADLINES.iter().enumerate().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_a_headline_past_another_drive_is_named() {
        let sheet = catalogue::drive("p4800x-375").expect("built in");
        let parameter =
            Parameter::named("xpoint.medium.read", &sheet.figures, &[]).expect("a time");
        let bases = [[100.0; HEADLINES.len()], [120.0; HEADLINES.len()]];
        let labels = ["A".to_owned(), "B".to_owned()];
        let mut slower = [100.0; HEADLINES.len()];
        (slower[0], slower[1]) = (130.0, 111.0);
        let found = moved(&bases, 0, &parameter, [None, Some(slower)], &labels);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0].change, [None, Some(0.3)]);
        assert_eq!(found[0].passes, ["B"]);
        assert_eq!(found[1].passes, [""; 0]);
    }
}
