//! Runs over time: a line for each drive and interval.

use super::Run;
use crate::over_time::columns;

/// Fio jobs on one drive or several over time. Columns that only some drives have are empty on the others' lines.
pub fn over_time(runs: &[Run<'_>]) -> String {
    let of_runs: Vec<_> = runs.iter().map(|run| columns(run.outcome)).collect();
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in of_runs.iter().flatten() {
        if !names.contains(&&**name) {
            names.push(name);
        }
    }
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let mut line = |cells: Vec<String>| {
        writer
            .write_record(cells)
            .expect("as many cells as the first line has, to memory");
    };
    let head = ["drive"].into_iter().chain(names.iter().copied());
    line(head.map(str::to_owned).collect());
    for (run, columns) in runs.iter().zip(&of_runs) {
        for index in 0..columns.first().map_or(0, |(_, values)| values.len()) {
            let cell = |name: &&str| {
                let found = columns.iter().find(|(known, _)| known == name);
                let value = found.and_then(|(_, values)| values[index]);
                value.map_or(String::new(), |value| value.to_string())
            };
            let cells = names.iter().map(cell);
            line([run.drive.to_owned()].into_iter().chain(cells).collect());
        }
    }
    let bytes = writer.into_inner().expect("memory takes all");
    String::from_utf8(bytes).expect("numbers and UTF-8 words")
}
