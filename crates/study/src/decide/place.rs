//! Places in a pool that a drive is chosen or sized for, as expressions of pools. What is behind the drive is the user's.

/// Places in a pool that a drive can be chosen for.
pub const PLACES: [&str; 3] = ["slog", "vsan-cache", "read-cache"];

/// The expression of the pool in which a drive has one of the [`PLACES`], with what is behind it. The drive `none` is an
/// intent log without a log device, or what is behind without a read cache.
pub fn in_place(place: &str, drive: &str, behind: &str) -> String {
    match (place, drive) {
        ("slog", "none") => format!("intent-log(main={behind})"),
        ("slog", _) => format!("intent-log(main={behind}, log={drive})"),
        ("vsan-cache", _) => {
            format!("write-back-cache(cache={drive}, capacity={behind}; like=vsan)")
        }
        (_, "none") => behind.to_owned(),
        _ => format!("read-cache(cache={drive}, main={behind})"),
    }
}
