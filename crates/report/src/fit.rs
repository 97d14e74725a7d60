//! Results of a fit, as tables for a terminal.

use comfy_table::Table;

use super::reproduce::figure;
use catalogue::DataSheet;
use study::fit::{BaseFit, FitResult, FromSheet, Refit, Sensitivity, median_error};
use text::terminal::{Width, folded, paragraph, plain, right};

fn headed(header: &[&str]) -> Table {
    let mut table = plain();
    table.set_header(header);
    table
}

/// Returns the bases that were tried, the chosen one first, and the reason.
pub fn bases(tried: &[BaseFit], width: Width) -> String {
    let mut table = headed(&["base", "medium, family", "host", "error", "held out"]);
    let percent = |one: &BaseFit, held_out| match median_error(&one.fitted.residuals, held_out) {
        Some(error) => format!("{:.1} %", error * 100.0),
        None => String::from("-"),
    };
    for one in tried {
        table.add_row([
            one.base.clone(),
            one.kind.clone(),
            one.host.clone(),
            percent(one, false),
            percent(one, true),
        ]);
    }
    right(&mut table, 3..5);
    let taken = tried.first().map(|one| &*one.base).unwrap_or_default();
    format!(
        "Start of the search: {taken}, whose fit has the smallest error on the fitted runs. The held-out runs only measure the error; they \
         are not used to choose. Medians of absolute errors:\n\n{}",
        folded(&table, 1, width)
    )
}

/// Returns a user's drive or host: parameters, every measured figure, and the error on held-out figures.
pub fn drive(fitted: &FitResult, width: Width) -> String {
    let mut parameters = headed(&["parameter", "base", "fitted", "95 % interval"]);
    for one in &fitted.parameters {
        parameters.add_row([
            one.parameter.key.clone(),
            one.parameter.moved(0.0),
            one.fitted.clone(),
            format!("{} to {}", one.interval.0, one.interval.1),
        ]);
    }
    right(&mut parameters, 1..3);
    let mut residuals = headed(&["run", "figure", "measured", "base", "fitted", "error", ""]);
    for one in &fitted.residuals {
        residuals.add_row([
            one.run.clone(),
            one.figure.clone(),
            figure(one.measured),
            figure_or_dash(one.before, figure),
            figure_or_dash(one.after, figure),
            figure_or_dash(one.error(), |error| format!("{:+.1} %", error * 100.0)),
            if one.held_out { "held out" } else { "" }.to_owned(),
        ]);
    }
    right(&mut residuals, 2..6);
    let percent = |held_out| match median_error(&fitted.residuals, held_out) {
        Some(error) => format!("{:.1} %", error * 100.0),
        None => "not available".into(),
    };
    let mut text = format!(
        "{}\n\n{}\n\nMedian absolute error: {} for fitted figures, {} for held-out figures.",
        folded(&parameters, 1, width),
        folded(&residuals, 2, width),
        percent(false),
        percent(true)
    );
    for one in &fitted.local_optima {
        text.push_str(&format!("\n{one}"));
    }
    for one in &fitted.left_out {
        text.push_str(&format!("\nNot fitted: {one}."));
    }
    let at_bound = fitted.parameters.iter().filter(|one| one.at_bound);
    let at_bound: Vec<&str> = at_bound.map(|one| &*one.parameter.key).collect();
    if !at_bound.is_empty() {
        text.push_str(&format!(
            "\nEnded at a factor of five, the most that it may move: {}. Either the base is of another kind, or \
             nothing that was measured depends on it.",
            at_bound.join(", ")
        ));
    }
    text
}

/// Returns the host on which a drive meets its ratings, and the ratings at QD1 on the typical host.
fn rated_on(made: &FromSheet) -> String {
    let on = format!("The ratings hold on the host {}.", made.host);
    if made.typical.is_empty() {
        return on;
    }
    let typical = made.typical.iter().map(|it| {
        let (key, model) = (it.rated.key(), it.rated.words(it.model));
        format!("{key} {model} ({:+.1} %)", it.error() * 100.0)
    });
    let typical: Vec<String> = typical.collect();
    format!(
        "{on} On the host {}, whose cores sleep: {}.",
        catalogue::TYPICAL_HOST,
        typical.join(", ")
    )
}

/// Returns a drive from its data sheet: each rating with the model's value, the solved figures, and the origin of the
/// others.
pub fn sheet(sheet: &DataSheet, made: &FromSheet, width: Width) -> String {
    let mut ratings = headed(&["rating", "sheet", "model", "error"]);
    for met in &made.met {
        ratings.add_row([
            met.rated.key().to_owned(),
            met.rated.words(met.rating),
            met.rated.words(met.model),
            format!("{:+.1} %", met.error() * 100.0),
        ]);
    }
    right(&mut ratings, 1..4);
    let mut solved = headed(&["figure", "value", "from"]);
    for one in &made.solved {
        solved.add_row([&one.key, &one.value, &one.source]);
    }
    let own = made.drive.figures.iter().filter(|figure| !figure.inherited);
    let put = |key: &str| made.solved.iter().any(|one| one.key == key);
    let own: Vec<&str> = own.map(|it| &*it.key).filter(|key| !put(key)).collect();
    let lent = made.drive.figures.iter().filter(|figure| figure.inherited);
    format!(
        "{}\n\n{}\n\n{}\n\n{}\n{}",
        folded(&ratings, 0, width),
        paragraph("", &rated_on(made), width),
        folded(&solved, 2, width),
        paragraph("The sheet's: ", &format!("{}.", own.join(", ")), width),
        paragraph(
            "The family's: ",
            &format!(
                "all else, {} figures of {}; `drivelab show` marks them *. Nothing was measured: these figures \
                 determine tail latency, mixes and loads between the ratings.",
                lent.count(),
                sheet.family
            ),
            width
        ),
    )
}

/// Returns a figure, or a dash if the model has none because of too few samples of a tail.
fn figure_or_dash(value: f64, shown: impl Fn(f64) -> String) -> String {
    if value.is_finite() {
        shown(value)
    } else {
        "-".into()
    }
}

/// Returns the repeated fits of the catalogue, in one table.
pub fn ledger(refits: &[Refit], width: Width) -> String {
    let mut table = headed(&[
        "figure",
        "file",
        "catalogue",
        "fitted",
        "difference",
        "interval",
        "misfit",
        "fitted",
        "tried",
        "",
        "rows",
    ]);
    for refit in refits {
        for (index, one) in refit.figures.iter().enumerate() {
            let only_first = |text: String| if index == 0 { text } else { String::new() };
            let file = one.spot.file.strip_prefix("catalogue/");
            table.add_row([
                one.spot.key.clone(),
                file.unwrap_or(&one.spot.file)
                    .trim_end_matches(".toml")
                    .into(),
                one.catalogue.clone(),
                one.fitted.clone(),
                one.difference
                    .map_or_else(String::new, |share| format!("{:+.1} %", share * 100.0)),
                only_first(interval(refit)),
                only_first(format!("{:.2}", refit.misfit[0])),
                only_first(format!("{:.2}", refit.misfit[1])),
                only_first(refit.tried.to_string()),
                only_first(if refit.stands { "stands" } else { "OFF" }.into()),
                only_first(ids(refit)),
            ]);
        }
    }
    right(&mut table, 2..5);
    right(&mut table, 6..9);
    let off = refits.iter().filter(|refit| !refit.stands).count();
    format!(
        "{}\n\nFits: {}, off: {off}. A fit is off where the catalogue's value is not within its interval: one tolerance of \
         its rows either way, with all else held.",
        folded(&table, 2, width),
        refits.len()
    )
}

/// Returns the interval of values within a tolerance; an end at a bound of the recipe does not follow from the rows.
fn interval(refit: &Refit) -> String {
    match (&refit.interval[..], refit.open) {
        ([], _) => "not searched".into(),
        ([_, _], (true, true)) => "any".into(),
        ([_, high], (true, false)) => format!("up to {high}"),
        ([low, _], (false, true)) => format!("from {low}"),
        ([low, high], (false, false)) if refit.misfit[0].is_finite() => format!("{low} to {high}"),
        (words, _) => words.join(", "),
    }
}

fn ids(refit: &Refit) -> String {
    let mut ids: Vec<&str> = refit.rows.iter().map(|row| &*row.id).collect();
    ids.dedup();
    ids.join(", ")
}

/// Returns the rows of one fit.
pub fn rows(refit: &Refit, width: Width) -> String {
    let figure_of =
        |one: &study::fit::RefittedFigure| format!("{} {}", one.spot.file, one.spot.key);
    let heads: Vec<String> = refit.figures.iter().map(figure_of).collect();
    let mut rows = headed(&["row", "what", "published", "catalogue", "fitted"]);
    for row in &refit.rows {
        rows.add_row([
            row.id.clone(),
            row.what.clone(),
            row.wanted.clone(),
            figure_or_dash(row.before, figure),
            figure_or_dash(row.after, figure),
        ]);
    }
    right(&mut rows, 3..5);
    format!("{}\n{}", heads.join("\n"), folded(&rows, 1, width))
}

/// Returns the sensitivity of the rows that could set a parameter.
pub fn sensitivity(rows: &[Sensitivity], width: Width) -> String {
    let Some(first) = rows.first() else {
        return String::new();
    };
    let mut table = headed(&[
        "row",
        "what",
        "from",
        "to",
        "figure from",
        "to",
        "dependence",
        "",
    ]);
    for row in rows {
        let ([low, high], [less, more]) = (&row.values, row.figures);
        table.add_row([
            row.id.clone(),
            row.what.clone(),
            low.clone(),
            high.clone(),
            figure_or_dash(less, figure),
            figure_or_dash(more, figure),
            figure_or_dash(row.slope, |slope| format!("{slope:.3}")),
            if row.sets { "sets it" } else { "" }.to_owned(),
        ]);
    }
    right(&mut table, 2..7);
    format!(
        "{} {}\n{}",
        first.spot.file,
        first.spot.key,
        folded(&table, 1, width)
    )
}
