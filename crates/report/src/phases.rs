//! A run in phases, between faults: a table, and JSON.

use lab::{Outcome, Phase};
use serde_json::{Value, json};
use study::review::results::rounded;
use text::terminal::{Width, folded, plain};

use crate::cells::{align, latencies, significant};
use crate::rebuilds;

const WAYS: [&str; 2] = ["read", "write"];

/// Returns a line for each phase and direction.
pub(crate) fn table(phases: &[Phase], width: Width) -> String {
    let mut table = plain();
    table.set_header([
        "phase", "from s", "to s", "what", "I/Os", "failed", "IOPS", "MB/s", "mean us", "p50",
        "p99", "p99.9", "p99.99", "p99.999",
    ]);
    for phase in phases {
        let after = match phase.after.as_str() {
            "" => "before".to_owned(),
            after => format!("after {after}"),
        };
        let mut head = vec![
            after,
            significant(phase.from.seconds()),
            significant(phase.to.seconds()),
        ];
        let mut failed = phase.failed.to_string();
        let done = WAYS.into_iter().zip(&phase.ways);
        let mut any = false;
        for (what, way) in done.filter(|(_, way)| way.latency.count() > 0) {
            let mut cells = std::mem::replace(&mut head, vec![String::new(); 3]);
            cells.extend([
                what.to_owned(),
                way.latency.count().to_string(),
                std::mem::take(&mut failed),
                significant(rate(phase, way.latency.count())),
                significant(rate(phase, way.bytes) / 1e6),
            ]);
            cells.extend(latencies(&way.latency));
            table.add_row(cells);
            any = true;
        }
        if !any {
            head.extend(["nothing".into(), "0".into(), failed]);
            head.resize(14, "-".into());
            table.add_row(head);
        }
    }
    align(&mut table, 1);
    folded(&table, 1, width)
}

/// Returns a table for each drive that had a fault.
pub(crate) fn of_drives<'a>(
    drives: impl Iterator<Item = (&'a str, &'a Outcome)>,
    width: Width,
) -> String {
    let suffered = drives.filter(|(_, outcome)| !outcome.phases.is_empty());
    let tables = suffered.map(|(name, outcome)| {
        let table = table(&outcome.phases, width);
        let rebuilds = rebuilds::lines(&outcome.rebuilds);
        format!("\nFaults of {name}:\n{table}\n{rebuilds}")
    });
    tables.collect()
}

fn rate(phase: &Phase, count: u64) -> f64 {
    match phase.length().seconds() {
        0.0 => 0.0,
        seconds => count as f64 / seconds,
    }
}

/// Returns the phases as JSON; latencies are in microseconds.
pub(crate) fn json(phases: &[Phase]) -> Value {
    let phase = |phase: &Phase| {
        let mut value = json!({
            "after": phase.after,
            "from_s": rounded(phase.from.seconds()),
            "to_s": rounded(phase.to.seconds()),
            "failed": phase.failed,
        });
        for (what, way) in WAYS.into_iter().zip(&phase.ways) {
            let us = |percent| way.latency.quantile(percent).map(|it| it.us());
            value[what] = json!({
                "ios": way.latency.count(),
                "bytes": way.bytes,
                "iops": rounded(rate(phase, way.latency.count())),
                "mean_us": rounded(way.latency.mean_ns() / 1e3),
                "p50_us": us(50.0).map(rounded),
                "p99_us": us(99.0).map(rounded),
                "p99.9_us": us(99.9).map(rounded),
                "max_us": way.latency.max().map(|it| rounded(it.us())),
            });
        }
        value
    };
    phases.iter().map(phase).collect()
}
