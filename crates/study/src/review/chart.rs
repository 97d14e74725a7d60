//! The charts of a chapter as data: the page's scripts know how each kind is drawn, and a chart says of what. Left out:
//! formats and colours, which are the scripts'.

use serde::Serialize;

/// A chart on the page.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Chart {
    /// Unique on the page, and part of addresses.
    pub id: &'static str,
    /// What stands above it.
    pub title: &'static str,
    /// How it is drawn.
    #[serde(flatten)]
    pub draws: Draws,
}

/// The kinds of charts.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "draws", rename_all = "snake_case")]
pub enum Draws {
    /// A line for each drive over a setting of the points.
    Lines(Lines),
    /// A table for each drive of all points over two settings, stronger in colour where a figure is greater.
    Matrix {
        /// The setting that goes down.
        rows: &'static str,
        /// The one that goes across.
        columns: &'static str,
        /// What can be shown, the first to begin with.
        metrics: &'static [&'static str],
        /// Of the table below.
        caption: &'static str,
    },
    /// Power, busy shares and write amplification by queue depth.
    Costs {
        /// Which points; the first option of each to begin with.
        choices: &'static [Choice],
        /// Of the table below; `{direction}` is what is chosen.
        caption: &'static str,
    },
    /// The series of the chapter's first point over time.
    OverTime {
        /// Of the table below.
        caption: &'static str,
    },
    /// The series of any of the chapter's points over time, with what tiers say.
    Gauged {
        /// Of the table below.
        caption: &'static str,
        /// What can be shown, of `iops`, `mb_s`, `mean_us`, `max_us`, `dirty_gb`, `congestion`, `freed_mb_s`, `hit_ratio`;
        /// the first to begin with.
        metrics: &'static [&'static str],
    },
    /// What each member of a pool did, by workload.
    Members {
        /// Of the table.
        caption: &'static str,
    },
    /// Latency by percentile of any workload that a chapter gives for it ([`Spread`]).
    Distribution,
    /// The same taken apart into what it was spent on.
    Anatomy,
}

/// Lines over a setting.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Lines {
    /// What a reader chooses first, the first option of each to begin with.
    pub choices: &'static [Choice],
    /// What can be shown.
    pub metrics: &'static [&'static str],
    /// Which of these to begin with.
    pub metric: &'static str,
    /// `linear` or `log10` to begin with.
    pub scale: &'static str,
    /// What the lines can go along; the first to begin with.
    pub axes: &'static [Axis],
    /// Of the table below; `{direction}` and the like are what is chosen.
    pub caption: &'static str,
    /// Whether each drive has points of its own: the table has a row for each instead of columns.
    pub own_points: bool,
}

/// A choice that a chart offers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Choice {
    /// The setting of the points that it is about.
    pub name: &'static str,
    /// What it is called.
    pub label: &'static str,
    /// Values of the setting, each in words.
    pub options: &'static [(&'static str, &'static str)],
    /// Whether only points with that value are drawn; if not, it says whose figures are (`read`, `write` or `total`).
    pub selects: bool,
}

/// What lines go along.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Axis {
    /// The setting of the points.
    pub setting: &'static str,
    /// In the choice of axes, if there are several.
    pub choice: &'static str,
    /// `linear`, `log2`, `log10` or `depth`.
    pub kind: &'static str,
    /// Below the axis.
    pub label: &'static str,
    /// Before a value.
    pub name: &'static str,
    /// Above its column in a table.
    pub column: &'static str,
    /// How a value is written: `bytes`, `plain`, `percent`, `count`, or `share` for percent of a share.
    pub format: &'static str,
    /// The ends, if they do not follow from the points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
}

/// Throughput and latency.
pub const ALL_METRICS: &[&str] = &["iops", "mb_s", "mean", "p50", "p99", "p99_99", "p99_999"];

/// Latency only.
pub const LATENCIES: &[&str] = &["mean", "p50", "p99", "p99_99", "p99_999"];

/// Reads or writes.
pub const DIRECTION: Choice = Choice {
    name: "direction",
    label: "Direction",
    options: &[("read", "Read"), ("write", "Write")],
    selects: true,
};

impl Chart {
    /// Lines by queue depth; `metric` is shown first.
    pub const fn by_depth(id: &'static str, title: &'static str, metric: &'static str) -> Chart {
        Chart {
            id,
            title,
            draws: Draws::Lines(Lines {
                choices: &[DIRECTION],
                metrics: ALL_METRICS,
                metric,
                scale: "linear",
                axes: &[Axis {
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
pub struct Section {
    /// The chapter's id.
    pub id: &'static str,
    /// Heading.
    pub title: &'static str,
    /// Words below it.
    pub about: &'static str,
    /// Its charts; a chapter without any has a table of its workloads.
    pub charts: &'static [Chart],
}

/// 4 KiB I/O under rising load, for the first chart: what a drive does at an acceptable latency.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sweep {
    /// The chapter whose points it goes along.
    pub chapter: &'static str,
    /// The points' direction: `read`, `write` or `mix`, of which reads are judged.
    pub direction: &'static str,
    /// In the choice of workloads.
    pub label: &'static str,
    /// The setting by which load rises: `queue_depth` or `offered_iops`.
    pub along: &'static str,
}

/// A workload whose whole distribution of latency can be looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Spread {
    /// In words.
    pub name: String,
    /// The point's name.
    pub point: String,
    /// `read` or `write`.
    pub way: &'static str,
}
