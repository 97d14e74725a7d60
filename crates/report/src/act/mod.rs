//! Results of ACT, as a table for a terminal and as JSON; [`log()`] writes them in ACT's format.
//!
//! Percentages are of the worst slice, which the verdict uses. Latencies are in microseconds; a percentile with fewer
//! than ten samples beyond it is not shown.

mod log;

use serde_json::{Value, json};

use lab::Scenario;
use lab::act::{ActResult, Reason, Score};
use statistics::Histogram;
use text::digits::{self, digits};
use text::terminal::{Width, folded, paragraph, plain, right};
use workload::act::{Generation, RequestKind};

pub use log::log;

/// Edges of the bands of the latency breakdown of reads, in percent.
const EDGES: [f64; 5] = [0.0, 50.0, 95.0, 99.0, 100.0];

/// Result of one drive.
#[derive(Clone, Debug)]
pub struct ActRow {
    /// The scenario that ran.
    pub scenario: Scenario,
    /// A run at one load, or the run at the score.
    pub tested: ActResult,
    /// The score, if it was requested.
    pub score: Option<Score>,
}

impl ActRow {
    /// Returns the load of the shown run.
    pub(super) fn load(&self) -> f64 {
        self.tested.config.load_factor()
    }

    /// Returns what ended the search, or why the single run fails.
    fn reasons(&self) -> (Option<u32>, Vec<Reason>) {
        match &self.score {
            None => (None, self.tested.fails()),
            Some(score) => match &score.fails {
                Some((load, tested)) => (Some(*load), tested.fails()),
                None => (None, Vec::new()),
            },
        }
    }

    fn verdict(&self) -> String {
        let (at, reasons) = self.reasons();
        let because = reasons.iter().map(Reason::to_string);
        let because = because.collect::<Vec<_>>().join("; ");
        match (&self.score, at) {
            (None, _) if reasons.is_empty() => String::from("passes"),
            (None, _) => format!("fails: {because}"),
            (Some(_), Some(at)) => format!("{at}x fails: {because}"),
            (Some(_), None) => String::from("passes the highest load tried"),
        }
    }

    /// Checks whether a run at a given load failed.
    pub fn failed(&self) -> bool {
        self.score.is_none() && !self.tested.passes()
    }
}

/// Returns the conditions of the run, in one line.
pub fn conditions(row: &ActRow) -> String {
    let config = &row.tested.config;
    let threads = match config.generation {
        Generation::Queues {
            queues,
            threads_per_queue,
        } => {
            format!("{queues} queues with {threads_per_queue} threads each, latency from the queue")
        }
        Generation::Service { threads } => format!("{threads} service threads, latency from issue"),
    };
    format!(
        "ACT {}: {threads}; {} cores; {} s simulated after {} s of warm-up.",
        config.generation.version(),
        row.scenario.machine.host().cores,
        digits(config.duration.seconds()),
        digits(row.tested.warm_up.seconds()),
    )
}

/// Returns a table with a line for each drive.
pub fn table(rows: &[ActRow], width: Width) -> String {
    let mut table = plain();
    let scored = rows.iter().any(|row| row.score.is_some());
    table.set_header([
        "drive",
        if scored { "score" } else { "load" },
        "reads/s",
        "> 1 ms",
        "> 2 ms",
        "> 8 ms",
        "> 64 ms",
        "mean us",
        "p99 us",
        "p99.9 us",
        "large r/s",
        "large w/s",
    ]);
    for row in rows {
        let worst = row.tested.worst();
        let mut cells = vec![row.scenario.machine.name().to_owned()];
        cells.push(match &row.score {
            Some(score) if score.load == 0 => String::from("< 1x"),
            _ => format!("{}x", trimmed(row.load())),
        });
        cells.push(digits(row.tested.rate(RequestKind::Read)));
        cells.extend([0, 1, 3, 6].map(|power| format!("{:.2} %", worst[power])));
        let reads = row.tested.latency(RequestKind::Read);
        cells.push(digits(reads.mean_ns() / 1e3));
        cells.extend([99.0, 99.9].map(|percent| microseconds(reads, percent)));
        cells.extend(
            [RequestKind::LargeRead, RequestKind::LargeWrite].map(|kind| {
                let (achieved, asked) = (row.tested.rate(kind), row.tested.required_rate(kind));
                if asked == 0.0 {
                    String::from("-")
                } else {
                    format!("{} of {}", digits(achieved), digits(asked))
                }
            }),
        );
        table.add_row(cells);
    }
    right(&mut table, 1..usize::MAX);
    folded(&table, 1, width)
}

/// Returns the verdict on each drive, one line each.
pub fn verdicts(rows: &[ActRow], width: Width) -> String {
    let lines = rows.iter().map(|row| {
        let head = format!("{}: ", row.scenario.machine.name());
        paragraph(&head, &row.verdict(), width)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the latency breakdown of reads, by band.
pub fn anatomy(rows: &[ActRow], width: Width) -> String {
    let mut text = String::new();
    for row in rows {
        let mut table = plain();
        let bands = row.tested.bands.percentile_bands(&EDGES);
        let mut header = vec![format!("{}, us", row.scenario.machine.name())];
        header.extend(
            bands
                .iter()
                .map(|band| format!("p{} to p{}", band.from, band.to)),
        );
        table.set_header(header);
        for (index, part) in model::Part::ALL.into_iter().enumerate() {
            let matters = bands.iter().any(|band| {
                let all: f64 = band.mean_ns.iter().sum();
                band.mean_ns[index] > 0.01 * all
            });
            if matters {
                let mut cells = vec![part.name().to_owned()];
                cells.extend(bands.iter().map(|band| digits(band.mean_ns[index] / 1e3)));
                table.add_row(cells);
            }
        }
        right(&mut table, 1..usize::MAX);
        text.push_str(&format!("\n{}\n", folded(&table, 1, width)));
    }
    text
}

fn microseconds(histogram: &Histogram, percent: f64) -> String {
    let value = histogram.percentile(percent);
    value.map_or(String::from("-"), |value| digits(value.us()))
}

fn trimmed(load: f64) -> String {
    digits::trimmed(&format!("{load:.3}")).to_owned()
}

/// Returns everything as JSON; described in `docs/act.md`.
pub fn json(rows: &[ActRow]) -> Value {
    json!({
        "schema": "drivelab act",
        "version": 1,
        "program": version::PROGRAM,
        "drives": rows.iter().map(drive).collect::<Vec<_>>(),
    })
}

fn drive(row: &ActRow) -> Value {
    let config = &row.tested.config;
    let (at, reasons) = row.reasons();
    let reasons: Vec<String> = reasons.iter().map(Reason::to_string).collect();
    json!({
        "drive": row.scenario.machine.name(),
        "act_version": config.generation.version(),
        "seed": row.scenario.seed,
        "host_cores": row.scenario.machine.host().cores,
        "warm_up_seconds": row.tested.warm_up.seconds(),
        "seconds": row.tested.counted.seconds(),
        "load": row.load(),
        "passes": row.tested.passes(),
        "score": row.score.as_ref().map(|score| score.load),
        "tried": row.score.as_ref().map(|score| {
            let tried = score.tried.iter();
            tried.map(|(load, passes)| json!({ "load": load, "passes": passes })).collect::<Vec<_>>()
        }),
        "fails_at": at,
        "reasons": reasons,
        "slices": row.tested.slices().iter().map(|slice| {
            let over = |power: usize| slice[power];
            json!({
                "percent_over_1_ms": over(0),
                "percent_over_2_ms": over(1),
                "percent_over_4_ms": over(2),
                "percent_over_8_ms": over(3),
                "percent_over_16_ms": over(4),
                "percent_over_32_ms": over(5),
                "percent_over_64_ms": over(6),
            })
        }).collect::<Vec<_>>(),
        "reads": latency(&row.tested, RequestKind::Read),
        "device_reads": latency(&row.tested, RequestKind::RawRead),
        "large_reads": latency(&row.tested, RequestKind::LargeRead),
        "large_writes": latency(&row.tested, RequestKind::LargeWrite),
        "writes": latency(&row.tested, RequestKind::Write),
    })
}

fn latency(tested: &ActResult, kind: RequestKind) -> Value {
    let histogram = tested.latency(kind);
    let us = |percent: f64| histogram.percentile(percent).map(|value| value.us());
    json!({
        "per_second": tested.rate(kind),
        "asked_per_second": tested.required_rate(kind),
        "mean_us": histogram.mean_ns() / 1e3,
        "p50_us": us(50.0),
        "p99_us": us(99.0),
        "p99_9_us": us(99.9),
        "p99_99_us": us(99.99),
        "longest_us": histogram.max().map(|value| value.us()),
    })
}
