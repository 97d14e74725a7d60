//! Lines of Aerospike's certification test.

use serde::Serialize;

use super::{LatencyColumns, Table};
use crate::act::ActRow;
use study::review::results::{LatencySummary, rounded};
use workload::act::RequestKind;

/// Conditions of a run, and its verdict.
#[derive(Clone, Debug, Serialize)]
struct ActCsvRow {
    drive: String,
    act_version: &'static str,
    state: &'static str,
    seed: u64,
    load: f64,
    passes: bool,
    score: Option<u32>,
    seconds: f64,
    what: &'static str,
    asked_iops: f64,
    iops: f64,
    ios: u64,
    over_1_ms_percent: Option<f64>,
    over_2_ms_percent: Option<f64>,
    over_8_ms_percent: Option<f64>,
    over_64_ms_percent: Option<f64>,
}

/// Names of the kinds of requests.
const KINDS: [(RequestKind, &str); 5] = [
    (RequestKind::Read, "read"),
    (RequestKind::RawRead, "device read"),
    (RequestKind::LargeRead, "large read"),
    (RequestKind::LargeWrite, "large write"),
    (RequestKind::Write, "write"),
];

/// Returns a line for each drive and kind of request, of the run at the given load or at the score. The shares over a
/// time are those of the worst slice, for the reads that the verdict counts.
pub fn act(rows: &[ActRow]) -> Table {
    let mut lines = Vec::new();
    for row in rows {
        let worst = row.tested.worst();
        for (kind, what) in KINDS {
            let histogram = row.tested.latency(kind);
            if histogram.count() == 0 {
                continue;
            }
            let over = |power: usize| (kind == RequestKind::Read).then(|| rounded(worst[power]));
            let columns = ActCsvRow {
                drive: row.scenario.machine.name().to_owned(),
                act_version: row.tested.config.generation.version(),
                state: row.scenario.state.name(),
                seed: row.scenario.seed,
                load: rounded(row.load()),
                passes: row.tested.passes(),
                score: row.score.as_ref().map(|score| score.load),
                seconds: rounded(row.tested.counted.seconds()),
                what,
                asked_iops: rounded(row.tested.required_rate(kind)),
                iops: rounded(row.tested.rate(kind)),
                ios: histogram.count(),
                over_1_ms_percent: over(0),
                over_2_ms_percent: over(1),
                over_8_ms_percent: over(3),
                over_64_ms_percent: over(6),
            };
            let latency = LatencyColumns::from(&LatencySummary::from_histogram(histogram, &[]));
            lines.push((columns, latency));
        }
    }
    Table::from_rows(lines)
}
