//! Losses that the drives of the catalogue allow.

use catalogue::DriveSheet;
use crash::Needs;
use crash::needs::DriveProperties;
use model::media::Medium as _;
use tier::DriveConfig;

/// Name of a drive with unknown properties: it has the minimum guarantees of any flash drive.
pub const WORST: &str = "worst-ssd";

/// Losses that [`WORST`] allows.
pub const WORST_LOSSES: DriveProperties = DriveProperties {
    volatile: true,
    part: 4096,
};

/// Maximum number of drives that a failure names.
const NAMED: usize = 6;

/// Returns the losses that a drive of the catalogue allows.
pub fn losses(sheet: &DriveSheet) -> DriveProperties {
    DriveProperties {
        volatile: sheet.config.volatile_write_cache(),
        part: match sheet.config {
            DriveConfig::Hdd(_) => 512,
            _ => 4096,
        },
    }
}

/// Returns the drives of the catalogue that can leave an image with these needs, and the number of all drives.
pub fn possible(needs: Needs) -> (Vec<String>, usize) {
    let all = catalogue::drive_names();
    let count = all.len();
    let sheets = all
        .into_iter()
        .filter_map(|name| catalogue::drive(name).ok());
    let possible = sheets.filter(|sheet| needs.is_possible_on(losses(sheet)));
    (possible.map(|sheet| sheet.id).collect(), count)
}

/// Returns the drives of [`possible`] as text; `all` is the place of the complete list.
pub fn possible_text(needs: Needs, all: &str) -> String {
    let (names, count) = possible(needs);
    match names.len() {
        0 => String::from("on no drive of the catalogue that fulfils its durability guarantee"),
        every if every == count => format!("on all {count} drives of the catalogue"),
        some if some <= NAMED => format!("on {some} of {count} drives: {}", names.join(", ")),
        some => format!(
            "on {some} of {count} drives: {}, ...{all}",
            names[..NAMED].join(", ")
        ),
    }
}
