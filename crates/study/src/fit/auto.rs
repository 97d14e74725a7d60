//! Choice of the catalogue drive that a fit begins from, if the user names none.
//!
//! Every drive of the catalogue runs the measurements that are not held out, with its catalogue values. For each
//! medium and family, the drive with the smallest error is a candidate; the best few candidates are fitted. The result
//! is the candidate whose fit has the smallest error on the runs that it was fitted to. The held-out runs judge all
//! candidates and select none.
//!
//! Not tried: pools, RAID-0s and RAM disks; two drives of one family.

use std::collections::BTreeSet;

use catalogue::DriveSheet;
use text::problem::Problems;
use tier::DriveConfig;

use super::drive::{FitRequest, FitResult, drive, drive_from, loss_as_it_is, median_error};

/// Maximum number of base drives that are fitted.
const FITTED: usize = 4;

/// A base drive that was tried.
#[derive(Clone, Debug)]
pub struct BaseFit {
    /// Catalogue name of the base drive.
    pub base: String,
    /// Medium of the base drive, and its family if it has one.
    pub kind: String,
    /// Host that is assumed to have run the measurements.
    pub host: String,
    /// Result of the fit.
    pub fitted: FitResult,
}

impl BaseFit {
    /// Returns the median error of the figures that were fitted to.
    fn error(&self) -> f64 {
        median_error(&self.fitted.residuals, false).unwrap_or(f64::INFINITY)
    }
}

/// Returns the medium and the family of a drive as text.
fn kind(base: &DriveSheet) -> String {
    match &base.family {
        Some(family) => format!("{}, {family}", base.medium),
        None => base.medium.clone(),
    }
}

/// Fits several base drives to the measurements and returns them, the recommended one first. `host` returns the host
/// in which a base drive was measured; `request.base` is not read.
///
/// # Errors
/// No drive can run the measurements (with the problems of the nearest drive), or a fit fails.
pub fn from_any(
    request: &FitRequest,
    host: &(dyn Fn(&DriveSheet) -> String + Sync),
    progress: &(dyn Fn(&str, u64) + Sync),
) -> Result<Vec<BaseFit>, Problems> {
    let of = |base: &DriveSheet| FitRequest {
        base: base.id.clone(),
        host: host(base),
        ..request.clone()
    };
    let mut ranked: Vec<(f64, DriveSheet)> = Vec::new();
    let mut refused = None;
    for base in catalogue::drives()? {
        let alone = base.members.is_empty() && base.pool.is_none();
        if !alone || base.free.is_empty() || matches!(base.config, DriveConfig::Ram(_)) {
            continue;
        }
        progress(&base.id, 0);
        match loss_as_it_is(&of(&base)) {
            Ok(loss) => ranked.push((loss, base)),
            Err(problems) => refused = refused.or(Some(problems)),
        }
    }
    ranked.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut seen = BTreeSet::new();
    ranked.retain(|(_, base)| seen.insert(kind(base)));
    ranked.truncate(FITTED);
    if ranked.is_empty() {
        return Err(refused.unwrap_or_default());
    }
    let mut tried = Vec::new();
    for (_, base) in &ranked {
        let request = of(base);
        match drive_from(1, &request, &|evaluations| progress(&base.id, evaluations)) {
            Ok(fitted) => tried.push(BaseFit {
                base: base.id.clone(),
                kind: kind(base),
                host: request.host.clone(),
                fitted,
            }),
            Err(problems) => refused = refused.or(Some(problems)),
        }
    }
    tried.sort_by(|one, other| one.error().total_cmp(&other.error()));
    let Some(best) = tried.first_mut() else {
        return Err(refused.unwrap_or_default());
    };
    // One start for each base is enough for the choice; the chosen base is then searched from all starts.
    let request = FitRequest {
        base: best.base.clone(),
        host: best.host.clone(),
        ..request.clone()
    };
    best.fitted = drive(&request, &|evaluations| {
        progress(&request.base, evaluations)
    })?;
    Ok(tried)
}
