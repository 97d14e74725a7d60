//! Which drive of the catalogue a fit should begin from, if nobody says: one of each medium and family is tried.
//!
//! All drives of the catalogue run what is not held out, each as it is; the one that is least off of each medium and family
//! stays, and the best few of these are fitted. The one whose fit is least off where it was fitted is taken: what was held
//! out judges all of them and chooses none.
//!
//! Left out: pools, RAID-0s and RAM disks; two drives of one family.

use std::collections::BTreeSet;

use catalogue::DriveSheet;
use model::media::DriveConfig;
use text::problem::Problems;

use super::drive::{Fitted, Request, drive, drive_from, loss_as_it_is, median_error};

/// Bases that are fitted, at most.
const FITTED: usize = 4;

/// A base that was tried.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The drive.
    pub base: String,
    /// Its medium, and its family if it has one.
    pub kind: String,
    /// The host in which it was taken to be measured.
    pub host: String,
    /// What came of the fit.
    pub fitted: Fitted,
}

impl Tried {
    /// Median of the errors of what was fitted to.
    fn error(&self) -> f64 {
        median_error(&self.fitted.residuals, false).unwrap_or(f64::INFINITY)
    }
}

/// The medium and family of a drive, in words.
fn kind(base: &DriveSheet) -> String {
    match &base.family {
        Some(family) => format!("{}, {family}", base.medium),
        None => base.medium.clone(),
    }
}

/// Fits several bases to what was measured; the one to take is the first. `host` says in which host a base is measured;
/// `request.base` is not read.
///
/// # Errors
/// No drive can run what was measured, with what the nearest one says; or a fit fails.
pub fn from_any(
    request: &Request,
    host: &(dyn Fn(&DriveSheet) -> String + Sync),
    progress: &(dyn Fn(&str, u64) + Sync),
) -> Result<Vec<Tried>, Problems> {
    let of = |base: &DriveSheet| Request {
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
            Ok(fitted) => tried.push(Tried {
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
    // One start each is enough to choose by; the one taken is looked for from all.
    let request = Request {
        base: best.base.clone(),
        host: best.host.clone(),
        ..request.clone()
    };
    best.fitted = drive(&request, &|evaluations| {
        progress(&request.base, evaluations)
    })?;
    Ok(tried)
}
