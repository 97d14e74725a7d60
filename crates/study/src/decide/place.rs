//! Places in a pool for which a drive is chosen or sized, as expressions of pools. The rest of the pool is the user's.
//!
//! An intent log may begin without files (`filled = false`), so that clients write new ones. Reads of such a pool would
//! find no data and cost no time, so a load that reads runs on the pool with its files ([`with_files`]).

use catalogue::DriveSheet;
use model::Op;
use tier::{DriveConfig, Kind};
use workload::job::{Job, Mix};

use crate::review::Workload;

/// Places in a pool for which a drive can be chosen.
pub const PLACES: [&str; 3] = ["slog", "vsan-cache", "read-cache"];

/// Returns the expression of the pool with a drive in one of the [`PLACES`], and with `behind` as the rest. The drive
/// `none` means an intent log without a log device, or the rest without a cache. Several drives below a write buffer
/// are concatenated. A raidz takes its writes from an intent log, as in ZFS, so one below a read cache has an intent log
/// without a log device.
fn in_place(place: &str, drive: &str, behind: &str) -> String {
    match (place, drive) {
        ("slog", "none") => format!("intent-log(main={behind})"),
        ("slog", _) => format!("intent-log(main={behind}, log={drive})"),
        ("vsan-cache", "none") if is_list(behind) => format!("concat({behind})"),
        ("vsan-cache", drive) if drive != "none" => {
            format!("write-back-cache(cache={drive}, capacity={behind}; like=vsan)")
        }
        ("read-cache", _) if behind.trim_start().starts_with("raidz(") => {
            in_place(place, drive, &format!("intent-log(main={behind})"))
        }
        (_, "none") => behind.to_owned(),
        _ => format!("read-cache(cache={drive}, main={behind})"),
    }
}

/// Returns the expression of the pool for which a drive is chosen or sized in one of the [`PLACES`]. Clients of a log
/// write new files, unless they overwrite existing ones.
pub fn of_clients(place: &str, drive: &str, behind: &str, overwrite: bool) -> String {
    let pool = in_place(place, drive, behind);
    match place == "slog" && !overwrite {
        true => of_new_files(&pool),
        false => pool,
    }
}

/// Returns the pool with an empty intent log, so that clients write new files: nothing is read from the main pool to
/// complete a partly overwritten record. Other pools are unchanged.
fn of_new_files(expression: &str) -> String {
    let inside = expression.strip_prefix("intent-log(");
    match inside.and_then(|inside| inside.strip_suffix(')')) {
        Some(inside) => format!("intent-log({inside}; filled=false)"),
        None => expression.to_owned(),
    }
}

/// Checks whether a workload reads.
pub fn reads(workload: &Workload) -> bool {
    let has_reads = |job: &Job| match (&job.records, job.mix) {
        (Some(records), _) => records.iter().any(|io| io.op == Op::Read),
        (None, Mix::Read) => true,
        (None, Mix::ReadWrite) => job.read_percent > 0,
        (None, Mix::Write | Mix::Trim | Mix::TrimWrite) => false,
    };
    match workload {
        Workload::Jobs(jobs) => jobs.iter().any(has_reads),
        Workload::Trace(trace) => {
            let mut ops = trace.records.iter().map(|record| record.request().op);
            ops.any(|op| op == Op::Read)
        }
    }
}

/// Returns the pool with its files, if it begins without them and the load reads; otherwise `None`.
pub(super) fn with_files(drive: &DriveSheet, workload: &Workload) -> Option<DriveSheet> {
    let is_empty = |kind: &Kind| matches!(kind, Kind::IntentLog(config) if !config.filled);
    let mut tiers = drive.pool_config()?.tiers.iter();
    if !tiers.any(|tier| is_empty(&tier.kind)) || !reads(workload) {
        return None;
    }
    let mut sheet = drive.clone();
    if let DriveConfig::Pool(pool) = &mut sheet.config {
        for tier in &mut pool.tiers {
            if let Kind::IntentLog(config) = &mut tier.kind {
                config.filled = true;
            }
        }
    }
    Some(sheet)
}

/// Checks whether a pool has a read cache.
pub(super) fn has_read_cache(drive: &DriveSheet) -> bool {
    let is_cache = |kind: &Kind| matches!(kind, Kind::ReadCache(_));
    let pool = drive.pool_config();
    pool.is_some_and(|pool| pool.tiers.iter().any(|tier| is_cache(&tier.kind)))
}

/// Checks whether an expression is a list of drives, such as `3*d7-p5510-3840` or `a, b`, instead of one pool.
fn is_list(behind: &str) -> bool {
    let mut depth = 0;
    let mut is_outside = |letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    };
    behind
        .chars()
        .any(|letter| is_outside(letter) && matches!(letter, '*' | ','))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tier::Kind;

    #[test]
    fn a_raidz_below_a_read_cache_has_an_intent_log() {
        for drive in ["none", "p4801x-100"] {
            let pool = of_clients(
                "read-cache",
                drive,
                "raidz(6*exos-x18-16tb; parity=2)",
                false,
            );
            let sheet = catalogue::drive(&pool).expect("an expression");
            let tiers = &sheet.pool_config().expect("a pool").tiers;
            let has = |is: fn(&Kind) -> bool| tiers.iter().any(|tier| is(&tier.kind));
            assert!(has(|kind| matches!(kind, Kind::IntentLog(_))), "{pool}");
            assert_eq!(
                has(|kind| matches!(kind, Kind::ReadCache(_))),
                drive != "none",
                "{pool}"
            );
        }
    }

    #[test]
    fn new_files_are_written_to_an_intent_log_that_holds_none() {
        let main = "raidz(3*exos-x18-16tb; parity=1)";
        for drive in ["none", "p4801x-100"] {
            let pool = of_clients("slog", drive, main, false);
            assert_eq!(
                of_clients("slog", drive, main, true),
                in_place("slog", drive, main)
            );
            let sheet = catalogue::drive(&pool).expect("an expression");
            let config = sheet.pool_config().expect("a pool");
            let mut tiers = config.tiers.iter();
            let filled = tiers.find_map(|tier| match &tier.kind {
                Kind::IntentLog(config) => Some(config.filled),
                _ => None,
            });
            assert_eq!(filled, Some(false), "{pool}");
        }
        assert_eq!(of_new_files("p4801x-100"), "p4801x-100");
        let cache = |overwrite| of_clients("read-cache", "a", "b", overwrite);
        assert_eq!(cache(false), cache(true));
    }

    /// Reads of a pool without files would cost no time.
    #[test]
    fn a_load_that_reads_runs_on_a_pool_with_files() {
        let pool = of_clients("slog", "p4801x-100", "exos-x18-16tb", false);
        let pool = catalogue::drive(&pool).expect("an expression");
        let filled = |mix: Mix, drive: &DriveSheet| {
            let job = Job {
                mix,
                read_percent: 70,
                ..Job::default()
            };
            let sheet = with_files(drive, &Workload::Jobs(vec![job]))?;
            let tiers = &sheet.pool_config().expect("a pool").tiers;
            tiers.iter().find_map(|tier| match &tier.kind {
                Kind::IntentLog(config) => Some(config.filled),
                _ => None,
            })
        };
        for (mix, is_filled) in [
            (Mix::Read, Some(true)),
            (Mix::ReadWrite, Some(true)),
            (Mix::Write, None),
        ] {
            assert_eq!(filled(mix, &pool), is_filled, "{mix:?}");
        }
        let other = catalogue::drive("p4801x-100").expect("built in");
        assert_eq!(filled(Mix::Read, &other), None);
    }

    #[test]
    fn without_a_cache_there_is_what_is_behind() {
        let bare = |behind| in_place("vsan-cache", "none", behind);
        assert_eq!(bare("3*d7-p5510-3840"), "concat(3*d7-p5510-3840)");
        assert_eq!(bare("raid0(2*a, 2*b)"), "raid0(2*a, 2*b)");
        assert_eq!(bare("mirror(2*a), b"), "concat(mirror(2*a), b)");
        assert_eq!(in_place("read-cache", "none", "a"), "a");
        for place in PLACES {
            for drive in ["none", "a", "mirror(2*b)"] {
                let expression = in_place(place, drive, "raidz(3*exos-x18-16tb; parity=1)");
                assert!(expression.contains("exos"), "{expression}");
                assert_eq!(expression.contains(drive), drive != "none", "{expression}");
            }
        }
    }
}
