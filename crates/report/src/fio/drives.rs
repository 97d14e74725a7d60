//! The same jobs on several drives: one table, and one JSON document in which each drive's entry is fio's own
//! document.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::cells::{align, grouped, latencies, significant};
use crate::{guests, phases};
use text::terminal::{Width, folded, plain};
use workload::job::Unified;

use super::json::{document, print};
use super::rows::rows;
use super::{Formats, Report};

/// Returns the drives in these formats, JSON first; the table fits a terminal of this width.
pub fn print_drives(reports: &[Report], formats: Formats, width: Width) -> String {
    let mut out = String::new();
    if let Some(detail) = formats.json {
        let entry = |report: &Report| {
            let mut entry = Map::new();
            entry.insert("drive".into(), report.drive.into());
            entry.extend(document(report, detail));
            Value::Object(entry)
        };
        let mut root = Map::new();
        root.insert("schema".into(), "drivelab run".into());
        root.insert("version".into(), 1.into());
        root.insert("drives".into(), reports.iter().map(entry).collect());
        out.push_str(&print(&Value::Object(root)));
    }
    if formats.normal {
        let _ = writeln!(out, "{}", table(reports, width));
        let drives = reports.iter();
        let drives = drives.map(|it| (it.drive, it.outcome));
        out.push_str(&phases::of_drives(drives, width));
        for report in reports {
            let guests = guests::table(report.jobs, report.outcome);
            if !guests.is_empty() {
                let _ = write!(out, "\n{}:{guests}", report.drive);
            }
        }
    }
    out
}

/// Returns a line for each job, direction and drive, with the drives of one job below each other.
fn table(reports: &[Report], width: Width) -> String {
    let mut table = plain();
    table.set_header([
        "job", "what", "drive", "I/Os", "IOPS", "MB/s", "mean us", "p50", "p99", "p99.9", "p99.99",
        "p99.999",
    ]);
    let by_drive: Vec<_> = reports.iter().map(rows).collect();
    let jobs = by_drive.first().map_or(0, Vec::len);
    for index in 0..jobs {
        let mut named = false;
        for way in 0..4 {
            let mut told = false;
            for (report, rows) in reports.iter().zip(&by_drive) {
                let Some(row) = rows.get(index) else { continue };
                let figures = row.ways.get(way).unwrap_or(&row.sync);
                let what = match (way, row.job.reporting.unified) {
                    (0, Unified::Mixed) => "mixed",
                    _ => ["read", "write", "trim", "flush"][way],
                };
                if figures.ios == 0 {
                    continue;
                }
                let name = if named { "" } else { row.job.name.as_str() };
                let mut cells = vec![
                    name.to_owned(),
                    (if told { "" } else { what }).to_owned(),
                    report.drive.to_owned(),
                    grouped(figures.ios),
                    significant(figures.ios_per_second()),
                    significant(figures.bytes_per_second() / 1e6),
                ];
                cells.extend(latencies(&figures.latency));
                table.add_row(cells);
                (named, told) = (true, true);
            }
        }
    }
    align(&mut table, 3);
    folded(&table, 3, width)
}
