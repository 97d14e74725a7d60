//! Cells of tables: formatted figures, and latencies in their order.

use comfy_table::Table;
use model::Span;
use statistics::Histogram;
use text::{digits, terminal};

/// Shown percentiles, with their names.
pub(crate) const PERCENTILES: [(f64, &str); 5] = [
    (50.0, "p50"),
    (99.0, "p99"),
    (99.9, "p99.9"),
    (99.99, "p99.99"),
    (99.999, "p99.999"),
];

/// Returns the mean and each of [`PERCENTILES`], in microseconds.
pub(crate) fn latencies(histogram: &Histogram) -> Vec<String> {
    let us = |span: Option<Span>| span.map_or(String::from("-"), |span| significant(span.us()));
    let mut cells = vec![if histogram.count() == 0 {
        String::from("-")
    } else {
        significant(histogram.mean_ns() / 1e3)
    }];
    cells.extend(PERCENTILES.map(|(percent, _)| us(histogram.percentile(percent))));
    cells
}

/// Aligns numbers to the right, in this column and later ones.
pub(crate) fn align(table: &mut Table, from: usize) {
    terminal::right(table, from..usize::MAX);
}

/// Returns a number with at least three significant digits, without an exponent.
pub(crate) fn significant(value: f64) -> String {
    let text = digits::fixed(value, 3, 3);
    match text.contains('.') {
        true => text,
        false => digits::grouped(&text, ','),
    }
}

/// Returns digits in groups of three.
pub(crate) fn grouped(number: u64) -> String {
    digits::grouped(&number.to_string(), ',')
}
