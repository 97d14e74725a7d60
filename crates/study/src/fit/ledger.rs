//! The parameters that rows of the ledger fix, fitted to those rows again.
//!
//! Parameters of one catalogue file are fitted together, to all rows that fix any of them. A figure's loss is that of
//! its ratio to the published one; a claim's is how far it is from holding, so that a claim that holds has none.

use std::collections::BTreeMap;

use super::parameter::Parameter;
use super::{loss_of, minimise};
use crate::catalogue::{self, Change, Kind};
use crate::ledger::{
    File, Judgement, Measurement, Result as RowResult, Row, Selection, Tolerance, reproduce,
};
use crate::problem::Problems;

/// The parameters of one catalogue file, fitted anew.
#[derive(Clone, Debug)]
pub struct Refit {
    /// The file.
    pub file: String,
    /// Its free parameters, with the fitted value in the words of a file.
    pub parameters: Vec<(Parameter, String)>,
    /// The rows they were fitted to.
    pub rows: Vec<RowError>,
    /// Loss with the catalogue's values and with the fitted ones.
    pub loss: [f64; 2],
}

/// A row of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct RowError {
    /// Its id.
    pub id: String,
    /// What it is about.
    pub what: String,
    /// The model's figure with the catalogue's values; NaN if it has none.
    pub before: f64,
    /// The same with the fitted ones.
    pub after: f64,
    /// The published figure, or the condition of a claim, in words.
    pub wanted: String,
}

/// A file of the catalogue whose parameters some rows fix.
#[derive(Default)]
struct Group {
    parameters: BTreeMap<String, Parameter>,
    rows: Vec<String>,
}

/// Fits anew what rows of the ledger fix; only the parameters named by `free`, if any are. `progress` is told the file
/// and the evaluations so far.
///
/// # Errors
/// A parameter named does not exist or is fixed by no row, a measurement does not load, the search fails.
pub fn ledger(
    files: &[File],
    free: &[String],
    iterations: u64,
    progress: &(dyn Fn(&str, u64) + Sync),
) -> Result<Vec<Refit>, Problems> {
    let groups = groups(files, free)?;
    let unknown = free.iter().filter(|key| {
        let mut all = groups.values();
        !all.any(|group| group.parameters.contains_key(*key))
    });
    let unknown: Vec<&str> = unknown.map(String::as_str).collect();
    if !unknown.is_empty() {
        let what = format!("no row of the ledger fixes {}", unknown.join(", "));
        return Err(Problems::whole("command line", what));
    }
    let mut refits = Vec::new();
    for (file, group) in groups {
        refits.push(refit(files, file, group, iterations, progress)?);
    }
    Ok(refits)
}

/// The files of the catalogue that have parameters which rows fix.
fn groups(files: &[File], free: &[String]) -> Result<BTreeMap<String, Group>, Problems> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for file in files {
        for row in &file.rows {
            for key in row
                .fixes
                .iter()
                .filter(|key| free.is_empty() || free.contains(key))
            {
                for parameter in fixed_by(file, row, key)? {
                    let group = groups.entry(parameter.file.clone()).or_default();
                    group.parameters.insert(key.clone(), parameter);
                    if group.rows.last() != Some(&row.id) {
                        group.rows.push(row.id.clone());
                    }
                }
            }
        }
    }
    Ok(groups)
}

/// The parameter of this key in the files behind a row's measurements: one for each file that says it.
fn fixed_by(file: &File, row: &Row, key: &str) -> Result<Vec<Parameter>, Problems> {
    let mut found: Vec<Parameter> = Vec::new();
    for measurement in measurements_of(file, row) {
        let drive = catalogue::drive(&measurement.drive)?;
        let host = catalogue::host(&measurement.host)?;
        // What a specification gives is not searched for.
        let figures = drive.figures.iter().chain(&host.figures);
        let own = key.strip_prefix("host.").unwrap_or(key);
        if !figures
            .into_iter()
            .any(|figure| figure.key == own && figure.kind == Kind::Fitted)
        {
            continue;
        }
        // A figure that is a list or a word cannot be fitted; a drive without it is not meant.
        if let Ok(parameter) = Parameter::named(key, &drive.figures, &host.figures)
            && !found.iter().any(|known| known.file == parameter.file)
        {
            found.push(parameter);
        }
    }
    Ok(found)
}

fn measurements_of<'a>(file: &'a File, row: &Row) -> Vec<&'a Measurement> {
    let mut names: Vec<String> = Vec::new();
    row.expression
        .figures(&mut |owner, _| names.push(owner.to_owned()));
    file.measurements
        .iter()
        .filter(|one| names.contains(&one.name))
        .collect()
}

fn refit(
    files: &[File],
    file: String,
    group: Group,
    iterations: u64,
    progress: &(dyn Fn(&str, u64) + Sync),
) -> Result<Refit, Problems> {
    let parameters: Vec<Parameter> = group.parameters.into_values().collect();
    let selection = Selection {
        sources: Vec::new(),
        rows: group.rows,
    };
    let at = |logs: &[f64]| results(files, &parameters, logs, &selection);
    let origin = vec![0.0; parameters.len()];
    let before = at(&origin)?;
    let evaluations = std::cell::Cell::new(0);
    let loss = |logs: &[f64]| {
        evaluations.set(evaluations.get() + 1);
        progress(&file, evaluations.get());
        // Values that contradict each other are no drive at all.
        at(logs).map_or(9.0, |results| total(&results))
    };
    let best = minimise(parameters.len(), iterations, &loss)
        .map_err(|what| Problems::whole("fit", what))?;
    let after = at(&best)?;
    let value = |result: &RowResult| result.model.as_ref().map_or(f64::NAN, |model| model.value);
    let rows = before.iter().zip(&after).map(|(before, after)| RowError {
        id: before.row.id.clone(),
        what: before.row.what.clone(),
        before: value(before),
        after: value(after),
        wanted: wanted(&before.row),
    });
    Ok(Refit {
        rows: rows.collect(),
        loss: [total(&before), total(&after)],
        parameters: parameters
            .iter()
            .zip(&best)
            .map(|(one, log)| (one.clone(), one.moved(*log)))
            .collect(),
        file,
    })
}

fn wanted(row: &Row) -> String {
    match (row.judgement, &row.published) {
        (Judgement::Equals(_), crate::ledger::Published::Number(number)) => number.to_string(),
        (judgement, _) => judgement.words(),
    }
}

/// The rows with the parameters moved, with one seed.
fn results(
    files: &[File],
    parameters: &[Parameter],
    logs: &[f64],
    selection: &Selection,
) -> Result<Vec<RowResult>, Problems> {
    let mut changed = Vec::new();
    for file in files {
        let mut file = file.clone();
        file.rows.retain(|row| selection.rows.contains(&row.id));
        let rows: Vec<Row> = file.rows.clone();
        let needed: Vec<String> = rows
            .iter()
            .flat_map(|row| measurements_of(&file, row))
            .map(|measurement| measurement.name.clone())
            .collect();
        file.measurements
            .retain(|measurement| needed.contains(&measurement.name));
        for measurement in &mut file.measurements {
            measurement.seeds = 1;
            move_parameters(measurement, parameters, logs)?;
        }
        changed.push(file);
    }
    Ok(reproduce(&changed, selection, &|_| {})?.results)
}

/// Changes the figures of a measurement's drive and host that come from the parameters' file.
fn move_parameters(
    measurement: &mut Measurement,
    parameters: &[Parameter],
    logs: &[f64],
) -> Result<(), Problems> {
    let drive = catalogue::drive(&measurement.drive)?;
    let host = catalogue::host(&measurement.host)?;
    for (parameter, log) in parameters.iter().zip(logs) {
        let (of_host, (key, words)) = parameter.change(*log);
        let (figures, set): (_, &mut Vec<Change>) = match of_host {
            true => (&host.figures, &mut measurement.host_set),
            false => (&drive.figures, &mut measurement.set),
        };
        let from_the_file = figures
            .iter()
            .any(|figure| figure.key == key && figure.file == parameter.file);
        // What the measurement itself sets is its condition, not the drive's parameter.
        if from_the_file && !set.iter().any(|(known, _)| *known == key) {
            set.push((key, words));
        }
    }
    Ok(())
}

fn total(results: &[RowResult]) -> f64 {
    let losses = results.iter().map(|result| {
        let model = result.model.as_ref().map_or(f64::NAN, |model| model.value);
        loss_of_row(&result.row, model)
    });
    losses.sum::<f64>() / results.len().max(1) as f64
}

fn loss_of_row(row: &Row, model: f64) -> f64 {
    match (row.judgement, &row.published) {
        (Judgement::Equals(tolerance), crate::ledger::Published::Number(published)) => {
            // A tail that may be off by half counts less than a mean that may be off by a twentieth.
            let weight = match tolerance {
                Tolerance::Share(_) => 1.0,
                Tolerance::Factor(_) => 0.1,
            };
            weight * loss_of(model, *published)
        }
        (Judgement::Below(limit), _) if model < limit => 0.0,
        (Judgement::Above(limit), _) if model > limit => 0.0,
        (Judgement::Below(limit) | Judgement::Above(limit), _) => loss_of(model, limit),
        (Judgement::Between(low, high), _) => match model {
            model if model < low => loss_of(model, low),
            model if model > high => loss_of(model, high),
            model if model.is_nan() => loss_of(model, low),
            _ => 0.0,
        },
        _ => 0.0,
    }
}
