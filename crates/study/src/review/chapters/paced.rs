//! Latency at a fixed arrival rate, as applications experience it: random 4 KiB I/O that arrives as a Poisson process,
//! at rates common to all drives and at shares of each drive's own saturated throughput.
//!
//! Up to 256 I/Os may be in flight. A rate that the drive cannot sustain is not run.

use super::{mix, queue_depth};
use crate::review::chapter::Chapter;
use crate::review::chart::{
    ChapterSection, Chart, ChartAxis, ChartChoice, Draws, LATENCIES, LineChart, LoadCurve,
};
use crate::review::results::PointSettings;
use crate::review::run::PartialResults;
use crate::review::suite::{Effort, PointSpec, Suite};

const ID: &str = "paced";

const SHARES: [u64; 8] = [10, 25, 50, 70, 80, 90, 95, 98];
const RATES: [u64; 9] = [
    1_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 300_000, 500_000,
];
const RATES_FINE: [u64; 4] = [2_000, 30_000, 150_000, 400_000];
const THREADS: u32 = 4;
const DEPTH: u32 = 64;

/// The chapter.
pub(crate) struct FixedArrivalRate;

impl Chapter for FixedArrivalRate {
    fn id(&self) -> &'static str {
        ID
    }

    fn title(&self) -> &'static str {
        "Latency at a fixed arrival rate"
    }

    fn section(&self) -> ChapterSection {
        ChapterSection {
            id: ID,
            title: "Latency at a fixed arrival rate",
            about: "Applications rarely run a drive at saturation. Here, 4 KiB I/Os arrive at random times with a fixed mean rate \
                    (open loop). A rate that a drive cannot sustain is not shown.",
            charts: &[CHART],
        }
    }

    fn points_after(
        &self,
        suite: Suite,
        effort: Effort,
        found: &PartialResults<'_>,
    ) -> Vec<PointSpec> {
        if !suite.is_ours() {
            return Vec::new();
        }
        let of_drive = |drive| SaturationRates {
            read: queue_depth::saturating(found, drive, "read"),
            mix: mix::saturating(found, drive),
            write: queue_depth::saturating(found, drive, "write"),
        };
        let saturations: Vec<SaturationRates> = (0..found.drives).map(of_drive).collect();
        points(effort, &saturations)
    }

    fn sweeps(&self) -> &'static [LoadCurve] {
        &[LoadCurve {
            chapter: ID,
            direction: "mix",
            label: "70/30 mix",
            along: "offered_iops",
        }]
    }
}

const CHART: Chart = Chart {
    id: ID,
    title: "Latency by arrival rate",
    draws: Draws::Lines(LineChart {
        choices: &[ChartChoice {
            name: "direction",
            label: "Workload",
            options: &[
                ("read", "Reads"),
                ("mix", "70/30 mix, reads"),
                ("write", "Writes"),
            ],
            selects: true,
        }],
        metrics: LATENCIES,
        metric: "p99",
        scale: "log10",
        axes: &[
            ChartAxis {
                setting: "offered_iops",
                choice: "Rate",
                kind: "log10",
                label: "Arrivals per second",
                name: "Arrivals per second:",
                column: "Offered IOPS",
                format: "count",
                range: None,
            },
            ChartAxis {
                setting: "share_of_saturation",
                choice: "Share of saturation",
                kind: "linear",
                label: "Share of the drive's saturated throughput",
                name: "Load",
                column: "Load",
                format: "share",
                range: Some([0.0, 1.0]),
            },
        ],
        caption: "Latency of {way}s that arrive at a fixed rate",
        own_points: true,
    }),
};

/// Maximum IOPS of each drive in closed loop: read, 70 % read, write. `None` where nothing was measured.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct SaturationRates {
    pub(super) read: Option<f64>,
    pub(super) mix: Option<f64>,
    pub(super) write: Option<f64>,
}

/// Returns the points for drives with these saturated rates.
pub(super) fn points(effort: Effort, saturations: &[SaturationRates]) -> Vec<PointSpec> {
    let mut points = Vec::new();
    for (direction, read_percent) in [("read", 100), ("mix", 70), ("write", 0)] {
        let of = |saturation: &SaturationRates| match direction {
            "read" => saturation.read,
            "mix" => saturation.mix,
            _ => saturation.write,
        };
        let mut rates = RATES.to_vec();
        if effort.fine {
            rates.extend(RATES_FINE);
            rates.sort_unstable();
        }
        for (drive, saturation) in saturations.iter().enumerate() {
            let Some(most) = of(saturation) else { continue };
            for &rate in rates.iter().filter(|&&rate| (rate as f64) < most * 0.98) {
                let name = format!("{ID}/{direction}/{rate}/drive{drive}");
                points.push(point(name, direction, read_percent, rate, None, drive));
            }
            for share in SHARES {
                let rate = (most * share as f64 / 100.0) as u64;
                let name = format!("{ID}/{direction}/{share}%/drive{drive}");
                let share = Some(share as f64 / 100.0);
                points.push(point(name, direction, read_percent, rate, share, drive));
            }
        }
    }
    points
}

fn point(
    name: String,
    direction: &'static str,
    read_percent: u32,
    rate: u64,
    share: Option<f64>,
    drive: usize,
) -> PointSpec {
    let mut options = match direction {
        "mix" => vec![
            ("rw", "randrw".into()),
            ("rwmixread", read_percent.to_string()),
        ],
        _ => vec![("rw", format!("rand{direction}"))],
    };
    options.push(("bs", "4k".into()));
    PointSpec {
        name,
        chapter: ID,
        settings: PointSettings {
            direction: Some(direction),
            pattern: Some("random"),
            block_bytes: Some(4096),
            threads: Some(THREADS),
            read_percent: (direction == "mix").then_some(read_percent),
            offered_iops: Some(rate),
            share_of_saturation: share,
            ..PointSettings::default()
        },
        options,
        threads: vec![(THREADS, DEPTH)],
        shows_reads: true,
        rate_iops: Some(rate),
        only: Some(drive),
        is_between: share.is_none(),
        ..PointSpec::default()
    }
}
