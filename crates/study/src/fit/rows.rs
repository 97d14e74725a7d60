//! The rows of a recipe: the measurements that they need, the figures changed in these, and their distance from the
//! published figures.

use std::collections::BTreeMap;

use super::recipe::{CatalogueKey, Recipe};
use super::unit::as_written;
use crate::ledger::{
    Evidence, Judgement, LedgerFile, LedgerMeasurement, LedgerRow, PublishedValue, RowResult,
    Tolerance, Work,
};
use catalogue::{Change, Figure};
use text::problem::Problems;

/// Misfit of a row without a figure; also the maximum of any row.
const HOPELESS: f64 = 400.0;
/// Error of a claim that counts as one tolerance.
const CLAIM: f64 = 0.05;

/// Returns the files with the recipe's rows, its remarks as rows, and the measurements that these need.
pub(super) fn reduced(
    files: &[LedgerFile],
    recipe: &Recipe,
    wrong: &mut dyn FnMut(String),
) -> Vec<LedgerFile> {
    let known = |id: &str| {
        files
            .iter()
            .flat_map(|file| &file.rows)
            .find(|row| row.id == id)
    };
    for id in recipe.rows.iter().filter(|id| known(id).is_none()) {
        wrong(format!("the ledger has no row {id}"));
    }
    let mut reduced = files.to_vec();
    for file in &mut reduced {
        file.rows.retain(|row| recipe.rows.contains(&row.id));
    }
    for remark in &recipe.remarks {
        let row = known(&remark.row);
        let home = reduced.iter_mut().find(|file| file.origin == remark.ledger);
        let (Some(row), Some(home)) = (row, home) else {
            wrong(format!(
                "there is no row {} or no {}",
                remark.row, remark.ledger
            ));
            continue;
        };
        home.rows.push(LedgerRow {
            what: format!("{} (remark)", remark.metric),
            published: PublishedValue::Number(remark.published),
            metric: remark.metric.clone(),
            expression: remark.expression.clone(),
            judgement: Judgement::Equals(Tolerance::Share(CLAIM)),
            evidence: Evidence::Fitted,
            ..row.clone()
        });
    }
    for file in &mut reduced {
        let mut needed: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for row in &file.rows {
            row.expression.points(&mut |owner, points| {
                needed.entry(owner.to_owned()).or_default().push(points);
            });
        }
        file.measurements
            .retain(|one| needed.contains_key(&one.name));
        for measurement in &mut file.measurements {
            // Points of a sweep that no row uses are not run.
            if let Work::Fio {
                sweep: Some(sweep), ..
            } = &mut measurement.work
            {
                let ranges = &needed[&measurement.name];
                let looked_at =
                    |x: f64| ranges.iter().any(|(low, high)| (*low..=*high).contains(&x));
                sweep.points.retain(|(_, x)| looked_at(*x));
            }
        }
        file.drives.retain(|(name, _)| needed.contains_key(name));
        file.not_reproduced.clear();
        file.pending.clear();
    }
    reduced.retain(|file| !file.rows.is_empty());
    reduced
}

/// Returns the places of the figures that a measurement depends on: those of its drive, of the drive's members and of
/// its host.
///
/// # Errors
/// The drive or the host does not load.
pub fn spots_of(measurement: &LedgerMeasurement) -> Result<Vec<CatalogueKey>, Problems> {
    let places = places_of(measurement)?;
    let mut spots: Vec<CatalogueKey> = Vec::new();
    for (spot, _) in places {
        // Equal members of a pool share one figure.
        if !spots.contains(&spot) {
            spots.push(spot);
        }
    }
    Ok(spots)
}

/// Returns the places of a measurement's figures, each with the key by which the measurement sets it.
fn places_of(measurement: &LedgerMeasurement) -> Result<Vec<(CatalogueKey, String)>, Problems> {
    let spot = |figure: &Figure| CatalogueKey {
        file: figure.file.clone(),
        key: figure.key.clone(),
    };
    let plain = |figure: &Figure| (spot(figure), figure.key.clone());
    let drive = catalogue::drive(&measurement.drive)?;
    let host = catalogue::host(&measurement.host)?;
    let mut places: Vec<(CatalogueKey, String)> = drive.figures.iter().map(plain).collect();
    for (name, member) in drive.named_members() {
        let named = |figure: &Figure| format!("members.{name}.{}", figure.key);
        let figures = member.figures.iter();
        places.extend(figures.map(|figure| (spot(figure), named(figure))));
    }
    places.extend(host.figures.iter().map(plain));
    Ok(places)
}

/// Changes the figures of a measurement's drive, of the drive's members and of its host.
pub(super) fn change(
    measurement: &mut LedgerMeasurement,
    changes: &BTreeMap<CatalogueKey, String>,
) -> Result<(), Problems> {
    for (spot, key) in places_of(measurement)? {
        let Some(words) = changes.get(&spot) else {
            continue;
        };
        let set: &mut Vec<Change> = match spot.file.starts_with("catalogue/host/") {
            true => &mut measurement.host_set,
            false => &mut measurement.set,
        };
        // A figure that the measurement itself sets is its condition, not a parameter of the drive.
        if !set.iter().any(|(known, _)| *known == key) {
            set.push((key, as_written(words)));
        }
    }
    Ok(())
}

pub(super) fn value(result: &RowResult) -> f64 {
    result.model.as_ref().map_or(f64::NAN, |model| model.value)
}

/// Returns half of a row's interval over seeds, as a share of its figure.
pub(super) fn noise(result: &RowResult) -> f64 {
    let model = result.model.as_ref().ok();
    let interval = model.and_then(|model| Some((model.interval?, model.value)));
    let half = interval.map_or(0.0, |((low, high), value)| (high - low) / 2.0 / value.abs());
    if half.is_finite() { half } else { 0.0 }
}

/// Returns the tolerance of a row, as a logarithm.
fn tolerance(row: &LedgerRow) -> f64 {
    match row.judgement {
        Judgement::Equals(Tolerance::Share(share)) => libm::log1p(share),
        Judgement::Equals(Tolerance::Factor(factor)) => libm::log(factor),
        Judgement::Below(_) | Judgement::Above(_) | Judgement::Between(..) => CLAIM,
    }
}

/// Checks whether one seed is insufficient: the spread between seeds exceeds half of the row's tolerance.
pub(super) fn noisy(row: &LedgerRow, noise: f64) -> bool {
    noise > tolerance(row) / 2.0
}

/// Returns the distance of a figure from its published value, in squared tolerances.
pub(super) fn misfit(row: &LedgerRow, model: f64, noise: f64) -> f64 {
    let wanted = match (row.judgement, &row.published) {
        (Judgement::Equals(_), PublishedValue::Number(published)) => *published,
        (Judgement::Below(limit), _) if model < limit => return 0.0,
        (Judgement::Above(limit), _) if model > limit => return 0.0,
        (Judgement::Between(low, high), _) if (low..=high).contains(&model) => return 0.0,
        (Judgement::Below(limit) | Judgement::Above(limit), _) => limit,
        (Judgement::Between(_, high), _) if model > high => high,
        (Judgement::Between(low, _), _) => low,
        (Judgement::Equals(_), _) => return 0.0,
    };
    let off = match model / wanted {
        ratio if ratio > 0.0 => libm::log(ratio),
        // For a difference that should be near zero, a ratio is meaningless.
        _ => (model - wanted) / wanted.abs(),
    };
    let tolerance = tolerance(row);
    let squares = off * off / (tolerance * tolerance + noise * noise);
    if squares.is_finite() {
        squares.min(HOPELESS)
    } else {
        HOPELESS
    }
}
