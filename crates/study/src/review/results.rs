//! What a review found, as it is written to `review.json` and embedded in `review.html`.
//!
//! The schema is described in `docs/review-json.md`; [`VERSION`] grows when a field changes its meaning or goes away.
//! The bytes depend on the drives, the suite and the seed only: there is no clock in it, keys keep the order of the
//! structs, and figures are rounded to six significant digits.

use model::Part;
use serde::Serialize;

use super::again::Again;
use super::member::MemberFigures;
use super::moved::Moved;
pub use super::rounding::rounded;
pub use super::series::Series;
pub use super::settings::Settings;
use statistics::Histogram;

/// Version of the schema.
pub const VERSION: u32 = 1;

/// Percentiles of every latency curve: the median, and eight steps to each further nine up to 99.999.
pub fn percentile_grid() -> Vec<f64> {
    let mut grid: Vec<f64> = (0..=40)
        .map(|step| 100.0 - 100.0 * libm::exp10(-f64::from(step) / 8.0))
        .map(|percent| (percent * 1e5).round() / 1e5)
        .collect();
    grid.push(50.0);
    grid.sort_by(f64::total_cmp);
    grid
}

/// A whole review.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Review {
    /// Always `drivelab review`.
    pub schema: &'static str,
    /// See [`VERSION`].
    pub version: u32,
    /// Name and version of the program.
    pub program: String,
    /// Such as `quick` or `full`.
    pub suite: String,
    /// The review's seed.
    pub seed: u64,
    /// With how many seeds each point of the suite is measured.
    pub seeds: u32,
    /// The host the drives were in.
    pub host: HostFacts,
    /// What was set on every drive, in words; empty if nothing was.
    pub settings: Vec<String>,
    /// The drives, in the order given.
    pub drives: Vec<DriveFacts>,
    /// Percentiles of [`Latency::at`].
    pub percentiles: Vec<f64>,
    /// Edges of [`Figures::bands`], in percent.
    pub band_edges: Vec<f64>,
    /// Names of the parts of a latency, in the order of [`BandFigures::parts_us`].
    pub parts: Vec<&'static str>,
    /// What the data say in words.
    pub verdict: Vec<Finding>,
    /// Published figures of these drives, for the charts that show the same quantity of the same workload.
    pub published: Vec<Published>,
    /// The measurements.
    pub chapters: Vec<ChapterResults>,
}

/// A published figure of the ledger, where a chart can show it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Published {
    /// The drive, by its place in [`Review::drives`].
    pub drive: usize,
    /// The ledger's row, such as `S4-002`.
    pub row: String,
    /// Where it was published.
    pub source: String,
    /// What it is about.
    pub what: String,
    /// Conditions of the test.
    pub conditions: String,
    /// `fitted` if the model was set from it, else `predicted`.
    pub stands: &'static str,
    /// Id of the chapter that runs the same workload.
    pub chapter: &'static str,
    /// The workload.
    pub settings: Settings,
    /// `read`, `write`, or `total` of both.
    pub of: &'static str,
    /// `iops`, `mb_s`, `mean`, `p50`, `p99`, `p99_99` or `p99_999`.
    pub metric: &'static str,
    /// `figure` of the point that runs the workload; of all points that differ in what `settings` leave open, the
    /// `greatest`, or the `knee`, beyond which they hardly rise: a value of what is left open; `ratio` of the figure to another.
    pub form: &'static str,
    /// As published, in I/Os or 10^6 bytes a second or in microseconds; null where a range or a bound was.
    pub value: Option<f64>,
    /// The least that was published; left out without a range or bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// The most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
    /// The same of this review, where it is made of more than one of its points, or has the point: see `form`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub here: Option<f64>,
    /// What was otherwise than in this review, in words; empty if nothing was.
    pub differs: Vec<String>,
}

/// The host.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HostFacts {
    /// Short name.
    pub id: String,
    /// Full name.
    pub name: String,
    /// Every figure with its source.
    pub figures: Vec<Figure>,
}

/// What is known of a drive before it runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DriveFacts {
    /// Short name.
    pub id: String,
    /// Full name.
    pub name: String,
    /// Short name for charts and sentences, unique in the review.
    pub label: String,
    /// Whether it is a drive of the catalogue, which sentences call "the P4800X"; a user's drive has a name of its own.
    #[serde(skip)]
    pub catalogued: bool,
    /// How a page that simulates runs it again; `None` if it cannot.
    #[serde(skip)]
    pub again: Option<Again>,
    /// Whether it is a cluster, whose watts are those of nodes.
    #[serde(skip)]
    pub clustered: bool,
    /// The medium in a reader's words.
    pub medium: String,
    /// Such as `HHHL card`.
    pub form_factor: String,
    /// Such as `PCIe 3.0 x4, NVMe`.
    pub interface: String,
    /// What a pool promises, and what loses it; absent for a drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise: Option<String>,
    /// Bytes a host can address.
    pub capacity_bytes: u64,
    /// I/O queues it offers.
    pub io_queues: u16,
    /// Rated endurance in bytes written; null if not published.
    pub endurance_bytes: Option<u64>,
    /// Warranty in years; null if not published.
    pub warranty_years: Option<f64>,
    /// Drive writes a day over the warranty; null if endurance or warranty is not published.
    pub drive_writes_per_day: Option<f64>,
    /// Price in dollars; null if not published.
    pub price_usd: Option<f64>,
    /// When that was the price; null if it is not known.
    pub price_date: Option<String>,
    /// Dollars for 10^9 bytes; null if the price is not published.
    pub usd_per_gb: Option<f64>,
    /// How well published measurements support its model.
    pub support: Support,
    /// How many of its figures are of each kind.
    pub kinds: Kinds,
    /// Which assumed figures move a headline, if it was asked for; the strongest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<Vec<Moved>>,
    /// Every figure of the drive's sheet with its kind and source.
    pub figures: Vec<Figure>,
}

/// How many figures are of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Kinds {
    /// Stated by the maker.
    pub spec: usize,
    /// Measured by somebody.
    pub measured: usize,
    /// Set so that the model gives a published figure.
    pub fitted: usize,
    /// Assumed: not in our sources.
    pub assumed: usize,
}

impl Kinds {
    /// All of them.
    pub const fn all(self) -> usize {
        self.spec + self.measured + self.fitted + self.assumed
    }
}

/// How well published measurements support a drive's model.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Support {
    /// `well known`, `partly known`, `known by its family`, `a guess`, `your fit` or `not judged yet`.
    pub grade: &'static str,
    /// The rows behind that, in words.
    pub text: String,
    /// The same in numbers; null where no published row measures it.
    pub rows: Option<crate::ledger::support::Support>,
}

/// One figure of a drive's or host's sheet.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figure {
    /// Dotted key.
    pub key: String,
    /// As written, with its unit.
    pub value: String,
    /// `spec`, `measured`, `fitted` or `assumed`.
    pub kind: &'static str,
    /// Where it comes from, or why it was assumed.
    pub source: String,
}

/// One sentence of the verdict.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    /// Id of the chapter that shows it.
    pub chapter: &'static str,
    /// The sentence.
    pub text: String,
}

/// Points that belong together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ChapterResults {
    /// Short name, also the anchor in the page.
    pub id: &'static str,
    /// Heading.
    pub title: &'static str,
    /// The points, in the order of the suite.
    pub points: Vec<Point>,
}

/// One workload, and what each drive did with it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Point {
    /// Unique in the review; with the review's seed it gives [`Point::seed`].
    pub name: String,
    /// What varies within the chapter.
    pub settings: Settings,
    /// State of the drives at the start: `fresh`, `filled` or `steady`.
    pub state: &'static str,
    /// Seed of the random streams (below 2^53, so that every JSON reader keeps it).
    pub seed: u64,
    /// By drive, in the order of [`Review::drives`]; null where a drive has no such point.
    pub results: Vec<Option<Measurement>>,
}

/// What one drive did with one workload.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Measurement {
    /// The job as fio reads it; for a trace, how it was replayed.
    pub job: String,
    /// Virtual seconds over which it was counted.
    pub seconds: f64,
    /// Reads; null if there were none.
    pub read: Option<Figures>,
    /// Writes; null if there were none.
    pub write: Option<Figures>,
    /// Half the 95 % interval of the mean latency of all I/Os as a share of it, from slices of the run; of a trace, half
    /// of what lies between the means of its seeds; null where it is too short to tell.
    pub mean_error: Option<f64>,
    /// Whether that is small enough for the mean to be taken as known; null where nothing depends on it.
    pub converged: Option<bool>,
    /// Mean power; null if the model has no power for it.
    pub watts: Option<f64>,
    /// Bytes programmed into the medium for each byte the host wrote; null without writes.
    pub write_amplification: Option<f64>,
    /// Share of the time the controller was busy, 0 to 1.
    pub controller_busy: Option<f64>,
    /// Share of the time the link or data path was busy, 0 to 1.
    pub link_busy: Option<f64>,
    /// Mean share of the dies that were busy, 0 to 1.
    pub medium_busy: Option<f64>,
    /// Cores of the host kept busy.
    pub host_cores: Option<f64>,
    /// What each member of a pool did; left out for a drive.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberFigures>,
    /// Figures over time, where the chapter shows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// What a reader should know about this run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The same with each seed alone, where there are several: the verdict asks them.
    #[serde(skip)]
    pub each: Vec<Measurement>,
}

impl Measurement {
    /// The figures of one direction: `read` or `write`.
    pub fn of(&self, direction: &str) -> Option<&Figures> {
        match direction {
            "read" => self.read.as_ref(),
            _ => self.write.as_ref(),
        }
    }

    /// A figure by the names that [`Published`] has: `total` has rates only.
    pub(crate) fn named(&self, of: &str, metric: &str) -> Option<f64> {
        if of == "total" {
            let both = [&self.read, &self.write].into_iter().flatten();
            return match metric {
                "iops" => Some(both.map(|figures| figures.iops).sum()),
                "mb_s" => Some(both.map(|figures| figures.mb_s).sum()),
                _ => None,
            };
        }
        let figures = self.of(of)?;
        match metric {
            "iops" => Some(figures.iops),
            "mb_s" => Some(figures.mb_s),
            "mean" => Some(figures.latency.mean_us),
            "p50" => figures.latency.p50_us,
            "p99" => figures.latency.p99_us,
            "p99_99" => figures.latency.p99_99_us,
            "p99_999" => figures.latency.p99_999_us,
            _ => None,
        }
    }

    /// Reads and writes a second.
    pub fn iops(&self) -> f64 {
        let of = |figures: &Option<Figures>| figures.as_ref().map_or(0.0, |figures| figures.iops);
        of(&self.read) + of(&self.write)
    }
}

/// One direction of a measurement.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figures {
    /// I/Os counted.
    pub ios: u64,
    /// I/Os that failed.
    pub errors: u64,
    /// I/Os a second.
    pub iops: f64,
    /// 10^6 bytes a second.
    pub mb_s: f64,
    /// From submission to completion.
    pub latency: Latency,
    /// Between which ends the seeds differ; left out where there is one seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub across_seeds: Option<Across>,
    /// Where the time went; null for a band with fewer than ten I/Os.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bands: Option<Vec<Option<BandFigures>>>,
}

/// The least and the greatest of what each seed alone gives; null where one of them has no figure.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Across {
    /// I/Os a second.
    pub iops: [f64; 2],
    /// 10^6 bytes a second.
    pub mb_s: [f64; 2],
    /// Mean latency in microseconds.
    pub mean_us: [f64; 2],
    /// The percentiles of [`Latency::intervals_us`].
    pub percentiles_us: [Option<[f64; 2]>; 5],
    /// Those of [`Latency::at`], at points whose whole distribution is shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<Option<[f64; 2]>>,
}

/// The least and the greatest; `None` if one is missing or there are none.
fn ends(values: impl Iterator<Item = Option<f64>>) -> Option<[f64; 2]> {
    let values: Vec<f64> = values.collect::<Option<_>>()?;
    let least = values.iter().copied().reduce(f64::min)?;
    Some([least, values.into_iter().reduce(f64::max)?])
}

impl Across {
    /// Of the same direction with each seed; `None` with fewer than two. `whole` also gives [`Across::at`].
    pub fn of(each: &[&Figures], whole: bool) -> Option<Across> {
        if each.len() < 2 {
            return None;
        }
        let of =
            |figure: &dyn Fn(&Figures) -> Option<f64>| ends(each.iter().map(|one| figure(one)));
        let steps = each[0].latency.at.len();
        Some(Across {
            iops: of(&|one| Some(one.iops))?,
            mb_s: of(&|one| Some(one.mb_s))?,
            mean_us: of(&|one| Some(one.latency.mean_us))?,
            percentiles_us: std::array::from_fn(|index| of(&|one| one.latency.named()[index])),
            at: (0..if whole { steps } else { 0 })
                .map(|step| of(&|one| one.latency.at[step]))
                .collect(),
        })
    }
}

/// A latency distribution in microseconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Latency {
    /// Mean.
    pub mean_us: f64,
    /// Smallest.
    pub min_us: f64,
    /// Largest.
    pub max_us: f64,
    /// 50th percentile; null when fewer than ten samples lie beyond it, as for all percentiles.
    pub p50_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    pub p99_9_us: Option<f64>,
    /// 99.99th percentile.
    pub p99_99_us: Option<f64>,
    /// 99.999th percentile.
    pub p99_999_us: Option<f64>,
    /// Within which these five lie with 95 % probability, from the number of samples and how they cluster; null where the
    /// percentile is.
    pub intervals_us: [Option<[f64; 2]>; 5],
    /// At each of [`Review::percentiles`].
    pub at: Vec<Option<f64>>,
}

/// The I/Os of one band of percentiles.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BandFigures {
    /// How many.
    pub ios: u64,
    /// Mean of each part in microseconds, in the order of [`Review::parts`].
    pub parts_us: [f64; Part::COUNT],
}

impl Latency {
    /// The five percentiles that have a name.
    pub fn named(&self) -> [Option<f64>; 5] {
        [
            self.p50_us,
            self.p99_us,
            self.p99_9_us,
            self.p99_99_us,
            self.p99_999_us,
        ]
    }

    /// The distribution in a histogram that is not empty.
    pub fn of(histogram: &Histogram, grid: &[f64]) -> Latency {
        let at = |percent: f64| histogram.percentile(percent).map(|span| rounded(span.us()));
        let interval = |percent: f64| {
            let known = histogram.percentile_interval(percent)?;
            Some([known.low, known.high].map(|end| rounded(end.us())))
        };
        Latency {
            mean_us: rounded(histogram.mean_ns() / 1e3),
            min_us: histogram.min().map_or(0.0, |span| rounded(span.us())),
            max_us: histogram.max().map_or(0.0, |span| rounded(span.us())),
            p50_us: at(50.0),
            p99_us: at(99.0),
            p99_9_us: at(99.9),
            p99_99_us: at(99.99),
            p99_999_us: at(99.999),
            intervals_us: [50.0, 99.0, 99.9, 99.99, 99.999].map(interval),
            at: grid.iter().map(|&percent| at(percent)).collect(),
        }
    }
}

impl Review {
    /// The bytes of `review.json`: indented as far down as people read, a line for each point.
    pub fn to_json(&self) -> String {
        let value = serde_json::to_value(self).expect("a review has no maps with odd keys");
        let mut text = String::new();
        write_lines(&value, 0, &mut text);
        text.push('\n');
        text
    }

    /// Keeps which assumed figures move each drive's headlines, and says it in words.
    pub fn tell_sensitivity(&mut self, of_drives: Vec<Vec<Moved>>) {
        for (drive, moved) in self.drives.iter_mut().zip(of_drives) {
            self.verdict.push(Finding {
                chapter: "method",
                text: super::moved::words(&drive.label, drive.kinds.assumed, &moved),
            });
            drive.sensitivity = Some(moved);
        }
    }

    /// The chapter of this id.
    pub fn chapter(&self, id: &str) -> Option<&ChapterResults> {
        self.chapters.iter().find(|chapter| chapter.id == id)
    }

    /// The points of a chapter, if there are any.
    pub fn points(&self, chapter: &str) -> impl Iterator<Item = &Point> {
        let chapter = self.chapter(chapter).into_iter();
        chapter.flat_map(|chapter| &chapter.points)
    }

    /// The first point of a chapter that is wanted.
    pub(crate) fn find(&self, chapter: &str, wanted: impl Fn(&Point) -> bool) -> Option<&Point> {
        self.points(chapter).find(|point| wanted(point))
    }

    /// The most that a drive did in a direction over a chapter's points.
    pub(crate) fn most(
        &self,
        (chapter, drive, direction): (&str, usize, &str),
        figure: impl Fn(&Figures) -> f64,
    ) -> Option<f64> {
        let points = self.points(chapter);
        let points = points.filter(|point| point.settings.direction == Some(direction));
        let figures = points.filter_map(|point| point.results[drive].as_ref()?.of(direction));
        figures.map(figure).max_by(f64::total_cmp)
    }
}

/// Levels of nesting that get lines of their own: the review, its lists, a chapter, its points.
const INDENTED: usize = 4;

fn write_lines(value: &serde_json::Value, level: usize, text: &mut String) {
    use serde_json::Value;
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) if level < INDENTED => fields
            .iter()
            .map(|(key, value)| (format!("{}: ", Value::from(key.as_str())), value))
            .collect(),
        // A list of numbers or words stays on its line.
        Value::Array(items) if level < INDENTED && items.iter().any(Value::is_object) => {
            items.iter().map(|item| (String::new(), item)).collect()
        }
        _ => {
            text.push_str(&value.to_string());
            return;
        }
    };
    let (open, close) = if value.is_object() {
        ('{', '}')
    } else {
        ('[', ']')
    };
    text.push(open);
    for (index, (key, value)) in inner.iter().enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        text.push_str(&"  ".repeat(level + 1));
        text.push_str(key);
        write_lines(value, level + 1, text);
    }
    text.push('\n');
    text.push_str(&"  ".repeat(level));
    text.push(close);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_the_same_values() {
        let value = serde_json::json!({
            "a": [1, 2], "b": [{ "c": [{ "d": [{ "e": { "f": [null, "x\n\"y"] } }] }] }], "g": {}, "h": [],
        });
        let mut text = String::new();
        write_lines(&value, 0, &mut text);
        let back: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back, value);
    }

    #[test]
    fn the_grid_has_the_percentiles_people_name() {
        let grid = percentile_grid();
        for named in [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999] {
            assert!(grid.contains(&named), "{named} in {grid:?}");
        }
    }
}
