//! The charts of a chapter as data. The page's scripts can draw each kind, and a chart selects the data. Formats and
//! colours belong to the scripts.

use serde::Serialize;

/// A chart on the page.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Chart {
    /// Id, unique on the page and part of addresses.
    pub id: &'static str,
    /// Title above the chart.
    pub title: &'static str,
    /// Kind of the chart, with its data.
    #[serde(flatten)]
    pub draws: Draws,
}

/// The kinds of charts.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "draws", rename_all = "snake_case")]
pub enum Draws {
    /// A line for each drive over a setting of the points.
    Lines(LineChart),
    /// A table for each drive of all points over two settings. The colour is stronger where a figure is greater.
    Matrix {
        /// Setting of the rows.
        rows: &'static str,
        /// Setting of the columns.
        columns: &'static str,
        /// Metrics that can be shown; the first is the default.
        metrics: &'static [&'static str],
        /// Caption of the table below.
        caption: &'static str,
    },
    /// Power, busy shares and write amplification by queue depth.
    Costs {
        /// Choices that select points; the first option of each is the default.
        choices: &'static [ChartChoice],
        /// Caption of the table below; `{direction}` is replaced by the choice.
        caption: &'static str,
    },
    /// The series of the chapter's first point over time.
    OverTime {
        /// Caption of the table below.
        caption: &'static str,
    },
    /// The series of any of the chapter's points over time, with the gauges of tiers.
    Gauged {
        /// Caption of the table below.
        caption: &'static str,
        /// Metrics that can be shown, of `iops`, `mb_s`, `mean_us`, `max_us`, `dirty_gb`, `congestion`, `freed_mb_s`,
        /// `hit_ratio`; the first is the default.
        metrics: &'static [&'static str],
    },
    /// The load of each member of a pool, by workload.
    Members {
        /// Caption of the table.
        caption: &'static str,
    },
    /// Latency by percentile of any workload that a chapter offers ([`Spread`]).
    Distribution,
    /// Latency breakdown by percentile of any workload that a chapter offers.
    Anatomy,
}

/// Lines over a setting.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LineChart {
    /// Choices of the reader; the first option of each is the default.
    pub choices: &'static [ChartChoice],
    /// Metrics that can be shown.
    pub metrics: &'static [&'static str],
    /// The default metric.
    pub metric: &'static str,
    /// Default scale: `linear` or `log10`.
    pub scale: &'static str,
    /// Settings that the x axis can show; the first is the default.
    pub axes: &'static [ChartAxis],
    /// Caption of the table below; `{direction}` and similar names are replaced by the choices.
    pub caption: &'static str,
    /// Whether each drive has points of its own: the table then has a row for each drive instead of columns.
    pub own_points: bool,
}

/// A choice that a chart offers to the reader.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ChartChoice {
    /// Name of the setting that is chosen.
    pub name: &'static str,
    /// Label of the choice.
    pub label: &'static str,
    /// Values of the setting, each with its label.
    pub options: &'static [(&'static str, &'static str)],
    /// Whether only points with the chosen value are drawn. If not, the value selects the figures (`read`, `write` or
    /// `total`).
    pub selects: bool,
}

/// An x axis.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ChartAxis {
    /// Setting of the points.
    pub setting: &'static str,
    /// Label in the choice of axes, if there are several.
    pub choice: &'static str,
    /// Kind of scale: `linear`, `log2`, `log10` or `depth`.
    pub kind: &'static str,
    /// Label below the axis.
    pub label: &'static str,
    /// Text before a value.
    pub name: &'static str,
    /// Heading of the column in a table.
    pub column: &'static str,
    /// Format of values: `bytes`, `plain`, `percent`, `count`, or `share` for a share shown in percent.
    pub format: &'static str,
    /// Ends of the axis, if they do not follow from the points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
}

/// Metrics of throughput and latency.
pub const ALL_METRICS: &[&str] = &["iops", "mb_s", "mean", "p50", "p99", "p99_99", "p99_999"];

/// Metrics of latency only.
pub const LATENCIES: &[&str] = &["mean", "p50", "p99", "p99_99", "p99_999"];

/// The choice between reads and writes.
pub const DIRECTION: ChartChoice = ChartChoice {
    name: "direction",
    label: "Direction",
    options: &[("read", "Read"), ("write", "Write")],
    selects: true,
};

impl Chart {
    /// Returns a chart with lines by queue depth; `metric` is shown first.
    pub const fn by_depth(id: &'static str, title: &'static str, metric: &'static str) -> Chart {
        Chart {
            id,
            title,
            draws: Draws::Lines(LineChart {
                choices: &[DIRECTION],
                metrics: ALL_METRICS,
                metric,
                scale: "linear",
                axes: &[ChartAxis {
                    setting: "queue_depth",
                    choice: "",
                    kind: "depth",
                    label: "Queue depth",
                    name: "Queue depth",
                    column: "Queue depth",
                    format: "plain",
                    range: None,
                }],
                caption: "{direction}s by queue depth",
                own_points: false,
            }),
        }
    }
}

/// A chapter's place on the page.
#[derive(Clone, Copy, Debug)]
pub struct ChapterSection {
    /// Id of the chapter.
    pub id: &'static str,
    /// Heading of the section.
    pub title: &'static str,
    /// Text below the heading.
    pub about: &'static str,
    /// Charts of the chapter; a chapter without any has a table of its workloads.
    pub charts: &'static [Chart],
}

/// 4 KiB I/O under rising load, for the first chart: the throughput of a drive at an acceptable latency.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LoadCurve {
    /// Chapter whose points the sweep uses.
    pub chapter: &'static str,
    /// Direction of the points: `read`, `write` or `mix`; for a mix, reads are judged.
    pub direction: &'static str,
    /// Label in the choice of workloads.
    pub label: &'static str,
    /// Setting by which the load rises: `queue_depth` or `offered_iops`.
    pub along: &'static str,
}

/// A workload whose whole distribution of latency can be shown.
#[derive(Clone, Debug, Serialize)]
pub struct Spread {
    /// Label of the workload.
    pub name: String,
    /// Name of the point.
    pub point: String,
    /// Direction: `read` or `write`.
    pub way: &'static str,
}
