//! Results of a review, as written to `review.json` and embedded in `review.html`.
//!
//! The schema is described in `docs/review-json.md`. [`VERSION`] grows when a field changes its meaning or is removed.
//! The bytes depend only on the drives, the suite and the seed: they contain no time of day, keys keep the order of
//! the structs, and figures are rounded to six significant digits.

use model::Part;
use serde::Serialize;

use super::again::DriveArguments;
use super::member::MemberFigures;
use super::moved::SensitiveFigure;
pub use super::rounding::rounded;
pub use super::series::TimeSeries;
pub use super::settings::PointSettings;
use statistics::Histogram;

/// Name of the chapter with the user's own jobs and traces.
pub(crate) const YOURS: &str = "yours";

/// Version of the schema.
pub const VERSION: u32 = 1;

/// Returns the percentiles of every latency curve: the median, and eight steps for each further nine up to 99.999.
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
    /// Schema name, always `drivelab review`.
    pub schema: &'static str,
    /// Schema version; see [`VERSION`].
    pub version: u32,
    /// Name and version of the program.
    pub program: String,
    /// Name of the suite, such as `quick` or `full`.
    pub suite: String,
    /// Seed of the review.
    pub seed: u64,
    /// Number of seeds of each point of the suite.
    pub seeds: u32,
    /// Host of the drives.
    pub host: HostFacts,
    /// Settings of every drive, as text; empty if there are none.
    pub settings: Vec<String>,
    /// The drives, in the order given.
    pub drives: Vec<DriveFacts>,
    /// Percentiles of [`LatencySummary::at`].
    pub percentiles: Vec<f64>,
    /// Edges of [`DirectionResult::bands`], in percent.
    pub band_edges: Vec<f64>,
    /// Names of the parts of a latency, in the order of [`BandFigures::parts_us`].
    pub parts: Vec<&'static str>,
    /// Sentences of the verdict.
    pub verdict: Vec<Finding>,
    /// Published figures of these drives, for the charts that show the same quantity of the same workload.
    pub published: Vec<PublishedFigure>,
    /// The measurements.
    pub chapters: Vec<ChapterResults>,
}

/// A published figure of the ledger that a chart can show.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PublishedFigure {
    /// Index of the drive in [`Review::drives`].
    pub drive: usize,
    /// Id of the ledger's row, such as `S4-002`.
    pub row: String,
    /// Source of the publication.
    pub source: String,
    /// Subject of the row.
    pub what: String,
    /// Conditions of the test.
    pub conditions: String,
    /// `fitted` if the model was set from it, otherwise `predicted`.
    pub stands: &'static str,
    /// Id of the chapter that runs the same workload.
    pub chapter: &'static str,
    /// Settings of the workload.
    pub settings: PointSettings,
    /// Direction: `read`, `write`, or `total` of both.
    pub of: &'static str,
    /// Metric: `iops`, `mb_s`, `mean`, `p50`, `p99`, `p99_99` or `p99_999`.
    pub metric: &'static str,
    /// Relation to the points. `figure`: the figure of the point that runs the workload. `greatest`: the greatest
    /// figure of all points that match `settings`. `knee`: the value of the varied setting above which these points
    /// hardly rise. `ratio`: the ratio of the figure to another.
    pub form: &'static str,
    /// Published value, in IOPS, 10^6 bytes per second or microseconds; null if a range or a bound was published.
    pub value: Option<f64>,
    /// Lower bound; omitted without a range or bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// Upper bound; omitted without a range or bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
    /// This review's value, if it is made from several of its points, or if `form` is `knee`; see `form`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub here: Option<f64>,
    /// Differences from this review, as text; empty if there are none.
    pub differs: Vec<String>,
}

/// Facts about the host.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HostFacts {
    /// Short name of the host.
    pub id: String,
    /// Full name of the host.
    pub name: String,
    /// Every figure with its source.
    pub figures: Vec<SheetFigure>,
}

/// Facts about a drive that are known before it runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DriveFacts {
    /// Short name of the drive.
    pub id: String,
    /// Full name of the drive.
    pub name: String,
    /// Label for charts and sentences, unique in the review.
    pub label: String,
    /// Whether the drive is in the catalogue. Sentences call such a drive "the P4800X"; a user's drive has a name of
    /// its own.
    #[serde(skip)]
    pub catalogued: bool,
    /// Command-line form for a page that simulates it; `None` if that is not possible.
    #[serde(skip)]
    pub again: Option<DriveArguments>,
    /// Whether the pool is a cluster, whose power is that of its nodes.
    #[serde(skip)]
    pub clustered: bool,
    /// Name of the medium for readers.
    pub medium: String,
    /// Form factor, such as `HHHL card`.
    pub form_factor: String,
    /// Interface, such as `PCIe 3.0 x4, NVMe`.
    pub interface: String,
    /// Durability guarantee of a pool, and the failures that lose data; absent for a drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise: Option<String>,
    /// Bytes that a host can address.
    pub capacity_bytes: u64,
    /// Number of I/O queues.
    pub io_queues: u16,
    /// Rated endurance in bytes written; null if not published.
    pub endurance_bytes: Option<u64>,
    /// Warranty in years; null if not published.
    pub warranty_years: Option<f64>,
    /// Drive writes per day over the warranty; null if endurance or warranty is not published.
    pub drive_writes_per_day: Option<f64>,
    /// Price in US dollars; null if not published.
    pub price_usd: Option<f64>,
    /// Date of the price; null if not known.
    pub price_date: Option<String>,
    /// US dollars per 10^9 bytes; null if the price is not published.
    pub usd_per_gb: Option<f64>,
    /// Support of the model by published measurements.
    pub support: ModelSupport,
    /// Number of its figures by kind.
    pub kinds: Kinds,
    /// Assumed figures that change a headline, the strongest first; `None` if the analysis was not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<Vec<SensitiveFigure>>,
    /// Every figure of the drive's sheet with its kind and source.
    pub figures: Vec<SheetFigure>,
}

/// Number of figures by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Kinds {
    /// Figures specified by the maker.
    pub spec: usize,
    /// Figures measured by others.
    pub measured: usize,
    /// Figures set so that the model reproduces a published figure.
    pub fitted: usize,
    /// Assumed figures: not published in our sources.
    pub assumed: usize,
}

impl Kinds {
    /// Returns the number of all figures.
    pub const fn all(self) -> usize {
        self.spec + self.measured + self.fitted + self.assumed
    }
}

/// Support of a drive's model by published measurements.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ModelSupport {
    /// Support level: `validated`, `partly validated`, `validated by family`, `unvalidated`, `your fit` or `not judged yet`.
    pub grade: &'static str,
    /// The supporting rows, as text.
    pub text: String,
    /// The supporting rows in numbers; null if no published row measures the drive.
    pub rows: Option<crate::ledger::support::Support>,
}

/// One figure of a drive's or host's sheet.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SheetFigure {
    /// Dotted key of the figure.
    pub key: String,
    /// Value as written, with its unit.
    pub value: String,
    /// Kind: `spec`, `measured`, `fitted` or `assumed`.
    pub kind: &'static str,
    /// Source of the value, or the reason for an assumption.
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

/// Results of a chapter.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ChapterResults {
    /// Short name, also the anchor in the page.
    pub id: &'static str,
    /// Heading of the chapter.
    pub title: &'static str,
    /// The points, in the order of the suite.
    pub points: Vec<Point>,
}

/// One workload, and the results of each drive.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Point {
    /// Name, unique in the review. [`Point::seed`] follows from it and the review's seed.
    pub name: String,
    /// Settings that vary within the chapter.
    pub settings: PointSettings,
    /// Initial state of the drives: `fresh`, `filled` or `steady`.
    pub state: &'static str,
    /// Seed of the random streams (below 2^53, so that every JSON reader keeps it).
    pub seed: u64,
    /// Results in the order of [`Review::drives`]; null where a drive has no such point.
    pub results: Vec<Option<Measurement>>,
}

/// Results of one drive with one workload.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Measurement {
    /// The job as fio reads it; for a trace, the parameters of the replay.
    pub job: String,
    /// Counted time in virtual seconds.
    pub seconds: f64,
    /// Results of reads; null if there were none.
    pub read: Option<DirectionResult>,
    /// Results of writes; null if there were none.
    pub write: Option<DirectionResult>,
    /// Half the 95 % interval of the mean latency of all I/Os, as a share of it, from slices of the run. For a trace,
    /// half the range of the means of its seeds. Null if the run is too short.
    pub mean_error: Option<f64>,
    /// Whether the interval is narrow enough for the mean to be known; null where the mean is not used.
    pub converged: Option<bool>,
    /// Mean power in watts; null if the model has no power for the drive.
    pub watts: Option<f64>,
    /// Bytes programmed into the medium for each byte that the host wrote; null without writes.
    pub write_amplification: Option<f64>,
    /// Utilisation of the controller, 0 to 1.
    pub controller_busy: Option<f64>,
    /// Utilisation of the link or data path, 0 to 1.
    pub link_busy: Option<f64>,
    /// Mean utilisation of the dies, 0 to 1.
    pub medium_busy: Option<f64>,
    /// Number of busy cores of the host.
    pub host_cores: Option<f64>,
    /// Figures of each member of a pool; omitted for a drive.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberFigures>,
    /// Figures over time, where the chapter shows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<TimeSeries>,
    /// Notes on this run for the reader.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Results of each seed, if there are several; the verdict uses them.
    #[serde(skip)]
    pub each: Vec<Measurement>,
}

impl Measurement {
    /// Returns the figures of one direction: `read` or `write`.
    pub fn direction(&self, direction: &str) -> Option<&DirectionResult> {
        match direction {
            "read" => self.read.as_ref(),
            _ => self.write.as_ref(),
        }
    }

    /// Returns a figure by the names in [`PublishedFigure`]; `total` has only rates.
    pub(crate) fn named(&self, of: &str, metric: &str) -> Option<f64> {
        if of == "total" {
            let both = [&self.read, &self.write].into_iter().flatten();
            return match metric {
                "iops" => Some(both.map(|figures| figures.iops).sum()),
                "mb_s" => Some(both.map(|figures| figures.mb_s).sum()),
                _ => None,
            };
        }
        let figures = self.direction(of)?;
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

    /// Returns the IOPS of reads and writes together.
    pub fn iops(&self) -> f64 {
        let of = |figures: &Option<DirectionResult>| {
            figures.as_ref().map_or(0.0, |figures| figures.iops)
        };
        of(&self.read) + of(&self.write)
    }
}

/// Results of one direction of a measurement.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DirectionResult {
    /// Number of I/Os counted.
    pub ios: u64,
    /// Number of I/Os that failed.
    pub errors: u64,
    /// I/Os per second.
    pub iops: f64,
    /// 10^6 bytes per second.
    pub mb_s: f64,
    /// Latency from submission to completion.
    pub latency: LatencySummary,
    /// Ranges over the seeds; omitted with one seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub across_seeds: Option<FigureRanges>,
    /// Latency breakdown by band; null for a band with fewer than ten I/Os.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bands: Option<Vec<Option<BandFigures>>>,
}

/// Ranges over the seeds, least to greatest; null where a seed has no figure.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FigureRanges {
    /// I/Os per second.
    pub iops: [f64; 2],
    /// 10^6 bytes per second.
    pub mb_s: [f64; 2],
    /// Mean latency in microseconds.
    pub mean_us: [f64; 2],
    /// The percentiles of [`LatencySummary::intervals_us`].
    pub percentiles_us: [Option<[f64; 2]>; 5],
    /// Values of [`LatencySummary::at`], at points whose whole distribution is shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<Option<[f64; 2]>>,
}

/// Returns the least and the greatest value; `None` if one is missing or there are none.
fn ends(values: impl Iterator<Item = Option<f64>>) -> Option<[f64; 2]> {
    let values: Vec<f64> = values.collect::<Option<_>>()?;
    let least = values.iter().copied().reduce(f64::min)?;
    Some([least, values.into_iter().reduce(f64::max)?])
}

impl FigureRanges {
    /// Returns the ranges of one direction over the seeds; `None` with fewer than two. `whole` includes
    /// [`FigureRanges::at`].
    pub fn from_seeds(each: &[&DirectionResult], whole: bool) -> Option<FigureRanges> {
        if each.len() < 2 {
            return None;
        }
        let of = |figure: &dyn Fn(&DirectionResult) -> Option<f64>| {
            ends(each.iter().map(|one| figure(one)))
        };
        let steps = each[0].latency.at.len();
        Some(FigureRanges {
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
pub struct LatencySummary {
    /// Mean latency in microseconds.
    pub mean_us: f64,
    /// Minimum latency.
    pub min_us: f64,
    /// Maximum latency.
    pub max_us: f64,
    /// 50th percentile; null if fewer than ten samples lie beyond it, as for all percentiles.
    pub p50_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    pub p99_9_us: Option<f64>,
    /// 99.99th percentile.
    pub p99_99_us: Option<f64>,
    /// 99.999th percentile.
    pub p99_999_us: Option<f64>,
    /// 95 % confidence intervals of these five percentiles, from the number of samples and their clustering; null
    /// where the percentile is null.
    pub intervals_us: [Option<[f64; 2]>; 5],
    /// Latency at each of [`Review::percentiles`].
    pub at: Vec<Option<f64>>,
}

/// The I/Os of one band of percentiles.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BandFigures {
    /// Number of I/Os.
    pub ios: u64,
    /// Mean of each part in microseconds, in the order of [`Review::parts`].
    pub parts_us: [f64; Part::COUNT],
}

impl LatencySummary {
    /// Returns the five named percentiles.
    pub fn named(&self) -> [Option<f64>; 5] {
        [
            self.p50_us,
            self.p99_us,
            self.p99_9_us,
            self.p99_99_us,
            self.p99_999_us,
        ]
    }

    /// Returns the distribution of a histogram that is not empty.
    pub fn from_histogram(histogram: &Histogram, grid: &[f64]) -> LatencySummary {
        let at = |percent: f64| histogram.percentile(percent).map(|span| rounded(span.us()));
        let interval = |percent: f64| {
            let known = histogram.percentile_interval(percent)?;
            Some([known.low, known.high].map(|end| rounded(end.us())))
        };
        LatencySummary {
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
    /// Returns whether only the user's own jobs and traces ran, and no suite.
    pub fn is_of_own_work(&self) -> bool {
        !self.chapters.is_empty() && self.chapters.iter().all(|one| one.id == YOURS)
    }

    /// Returns the bytes of `review.json`, indented at the levels that people read, with one line for each point.
    pub fn to_json(&self) -> String {
        let value = serde_json::to_value(self).expect("a review has no maps with odd keys");
        let mut text = String::new();
        write_lines(&value, 0, &mut text);
        text.push('\n');
        text
    }

    /// Stores the assumed figures that change each drive's headlines, and adds sentences about them.
    pub fn tell_sensitivity(&mut self, of_drives: Vec<Vec<SensitiveFigure>>) {
        for (drive, moved) in self.drives.iter_mut().zip(of_drives) {
            self.verdict.push(Finding {
                chapter: "method",
                text: super::moved::words(&drive.label, drive.kinds.assumed, &moved),
            });
            drive.sensitivity = Some(moved);
        }
    }

    /// Returns the chapter with this id.
    pub fn chapter(&self, id: &str) -> Option<&ChapterResults> {
        self.chapters.iter().find(|chapter| chapter.id == id)
    }

    /// Returns the points of a chapter, if there are any.
    pub fn points(&self, chapter: &str) -> impl Iterator<Item = &Point> {
        let chapter = self.chapter(chapter).into_iter();
        chapter.flat_map(|chapter| &chapter.points)
    }

    /// Returns the first point of a chapter that `wanted` selects.
    pub(crate) fn find(&self, chapter: &str, wanted: impl Fn(&Point) -> bool) -> Option<&Point> {
        self.points(chapter).find(|point| wanted(point))
    }

    /// Returns the maximum figure of a drive in a direction over a chapter's points.
    pub(crate) fn most(
        &self,
        (chapter, drive, direction): (&str, usize, &str),
        figure: impl Fn(&DirectionResult) -> f64,
    ) -> Option<f64> {
        let points = self.points(chapter);
        let points = points.filter(|point| point.settings.direction == Some(direction));
        let figures =
            points.filter_map(|point| point.results[drive].as_ref()?.direction(direction));
        figures.map(figure).max_by(f64::total_cmp)
    }
}

/// Levels of nesting with lines of their own: the review, its lists, a chapter, its points.
const INDENTED: usize = 4;

fn write_lines(value: &serde_json::Value, level: usize, text: &mut String) {
    use serde_json::Value;
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) if level < INDENTED => fields
            .iter()
            .map(|(key, value)| (format!("{}: ", Value::from(key.as_str())), value))
            .collect(),
        // A list of numbers or words is written on one line.
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
