//! Runs over time: a line for each drive and interval.

use super::{Run, Table};
use crate::over_time::columns;

/// Returns fio jobs on one or several drives over time. Columns that only some drives have are empty on the others'
/// lines.
pub fn over_time(runs: &[Run<'_>]) -> Table {
    let of_runs: Vec<_> = runs.iter().map(|run| columns(run.outcome)).collect();
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in of_runs.iter().flatten() {
        if !names.contains(&&**name) {
            names.push(name);
        }
    }
    let mut rows = Vec::new();
    for (run, columns) in runs.iter().zip(&of_runs) {
        for index in 0..columns.first().map_or(0, |(_, values)| values.len()) {
            let cell = |name: &&str| {
                let found = columns.iter().find(|(known, _)| known == name);
                found.and_then(|(_, values)| values[index])
            };
            rows.push((run.drive.to_owned(), names.iter().map(cell).collect()));
        }
    }
    let head = ["drive"].into_iter().chain(names);
    Table::of_cells(head.map(str::to_owned).collect(), rows)
}
