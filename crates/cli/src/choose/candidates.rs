//! Candidates of `choose`: the named drives, those of `--all`, and the pools that contain them.

use std::collections::BTreeSet;

use catalogue::DriveSheet;
use study::decide::choose::{self, Unfit};
use text::problem::Problems;
use tier::DriveConfig;

use super::place::{PLACES, backing_pool};
use super::{Args, NamedDrive};
use crate::drive::load as load_drive;
use crate::failure::on_command_line;
use crate::output;

/// Returns an unfit drive, with the reason.
pub(super) fn refused(drive: &str, problems: &Problems) -> Unfit {
    // The line already names the drive.
    let itself = format!("{drive}: ");
    let why = problems.0.iter().map(|problem| {
        let what = &problem.what;
        let what = what.strip_prefix(&itself).unwrap_or(what);
        // If an option of this subcommand would make it run.
        let help = problem
            .help
            .as_deref()
            .and_then(|help| help.split(';').next());
        let help = help.filter(|help| help.starts_with("--beyond"));
        match help {
            Some(help) => format!("{what} ({help})"),
            None => what.to_owned(),
        }
    });
    Unfit {
        drive: drive.to_owned(),
        why: why.collect::<Vec<_>>().join("; "),
    }
}

/// Checks whether a drive of the catalogue is a RAM disk.
fn is_ram(name: &str) -> bool {
    catalogue::drive(name).is_ok_and(|sheet| matches!(sheet.config, DriveConfig::Ram(_)))
}

/// Candidates and unfit drives.
#[derive(Default)]
pub(super) struct CandidateSet {
    pub(super) drives: Vec<NamedDrive>,
    /// Drives of `--all` that do not support the settings, such as an age where no endurance is published.
    pub(super) unfit: Vec<Unfit>,
}

/// Checks whether `--in-production` leaves this drive out; the drive that is replaced need not be made.
fn is_left_out(args: &Args, name: &str, sheet: &DriveSheet) -> bool {
    let is_replaced = args.like.as_deref() == Some(name);
    args.in_production && !is_replaced && sheet.no_longer_made(name).is_some()
}

/// Returns the drives, or the pools that contain them. A named drive that does not load is a problem; one of `--all`
/// is unfit, unless all of them are.
pub(super) fn candidates(args: &Args, problems: &mut Problems) -> CandidateSet {
    let mut names = args.drives.names(&args.arguments);
    let place = names
        .first()
        .and_then(|first| PLACES.iter().find(|(called, ..)| called == first))
        .map(|(_, place, option)| (*place, *option));
    if place.is_some() {
        names.remove(0);
    }
    if args.all {
        let all = catalogue::drive_names();
        names.extend(
            all.iter()
                .filter(|name| !is_ram(name))
                .map(|name| (*name).to_owned()),
        );
    }
    names.extend(args.like.clone());
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let behind = backing_pool([&args.main, &args.capacity], place, problems);
    if args.overwrite && place.is_none_or(|(place, _)| place != "slog") {
        let what = "--overwrite is for the load of a log only";
        let help = "use it with `choose slog DRIVE...`";
        problems.0.push(on_command_line(what, help));
    }
    if names.is_empty() && problems.0.is_empty() {
        let help = "name some that `drivelab drives` lists, or --all";
        problems
            .0
            .push(on_command_line("there is no drive to choose from", help));
    }
    let settings = args.drives.settings();
    let named = args.drives.names(&args.arguments);
    let (mut found, mut of_all) = (CandidateSet::default(), Problems::default());
    let mut left_out = 0;
    for name in names {
        let expression = match (place, &behind) {
            (Some((place, _)), Some(behind)) => {
                choose::of_clients(place, &name, behind, args.overwrite)
            }
            (Some(_), None) => continue,
            (None, _) => name.clone(),
        };
        let by_name = named.contains(&name) || args.like.as_ref() == Some(&name);
        match load_drive(&expression, &settings) {
            Ok(sheet) if is_left_out(args, &name, &sheet) => match by_name {
                true => found.unfit.push(Unfit {
                    why: String::from(choose::NO_LONGER_MADE),
                    drive: name,
                }),
                false => left_out += 1,
            },
            Ok(sheet) => found.drives.push(NamedDrive { name, sheet }),
            Err(more) if by_name => problems.0.extend(more.0),
            Err(more) => {
                found.unfit.push(refused(&name, &more));
                of_all.0.extend(more.0);
            }
        }
    }
    if found.drives.is_empty() {
        problems.0.extend(of_all.0);
    }
    if args.in_production {
        note_left_out(left_out, &found, problems);
    }
    found
}

/// Reports how many drives of `--all` are no longer made; that none is left is a problem.
fn note_left_out(left_out: usize, found: &CandidateSet, problems: &mut Problems) {
    if left_out > 0 {
        let note = format!(
            "--in-production leaves out {left_out} drives of --all that are no longer made"
        );
        output::remark("note", &note);
    }
    if found.drives.is_empty() && !found.unfit.is_empty() && problems.0.is_empty() {
        let what = "--in-production: none of these drives is still made";
        let help = "other drives, or --all";
        problems.0.push(on_command_line(what, help));
    }
}
