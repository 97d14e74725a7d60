//! Lines of a user's fit.

use serde::Serialize;

use super::Table;
use study::fit::FitResult;
use study::review::results::rounded;

/// A measured figure, with the model's.
#[derive(Clone, Debug, Serialize)]
struct FitRow<'a> {
    run: &'a str,
    figure: &'a str,
    measured: f64,
    base: Option<f64>,
    fitted: Option<f64>,
    error: Option<f64>,
    held_out: bool,
}

/// Returns a line for each measured figure. The unit is the ending of the figure's name: `read.iops`, `read.mean_us`.
pub fn fit(fitted: &FitResult) -> Table {
    let known = |value: f64| value.is_finite().then(|| rounded(value));
    Table::from_rows(fitted.residuals.iter().map(|one| FitRow {
        run: &one.run,
        figure: &one.figure,
        measured: rounded(one.measured),
        base: known(one.before),
        fitted: known(one.after),
        error: known(one.error()),
        held_out: one.held_out,
    }))
}
