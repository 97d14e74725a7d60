//! Places in a pool for which `choose` selects a drive, and the options that give the rest of the pool.

use text::problem::Problems;

use crate::failure::on_command_line;

/// A place in a pool: its argument, its name, and the option for the rest of the pool.
pub(crate) const PLACES: [(&str, &str, &str); 4] = [
    ("slog", "slog", "--main"),
    ("vsan-cache", "vsan-cache", "--capacity"),
    ("cache", "vsan-cache", "--capacity"),
    ("read-cache", "read-cache", "--main"),
];

/// Returns the rest of the pool, as the place's option gives it. An option of another place, or without a place, is a
/// problem.
pub(crate) fn backing_pool(
    [main, capacity]: [&Option<String>; 2],
    place: Option<(&str, &str)>,
    problems: &mut Problems,
) -> Option<String> {
    let asked = place.map(|(_, option)| option);
    for (option, given, places) in [
        ("--main", main, "slog or read-cache"),
        ("--capacity", capacity, "vsan-cache"),
    ] {
        if given.is_some() && asked != Some(option) {
            let what = match place {
                Some((place, _)) => format!("{option} does not apply to {place}"),
                None => format!("{option} applies to drives for a part of a pool only"),
            };
            let help = format!("use {option} with `choose {places} DRIVE...`");
            problems.0.push(on_command_line(what, help));
        }
    }
    let (place, option) = place?;
    let (given, example) = match option {
        "--main" => (main, "raidz(6*exos-x18-16tb; parity=2)"),
        _ => (capacity, "3*d7-p5510-3840"),
    };
    if given.is_none() {
        problems.0.push(on_command_line(
            format!("choose {place}: {option} is missing"),
            format!("{option} '{example}' or another pool or drive"),
        ));
    }
    given.clone()
}
