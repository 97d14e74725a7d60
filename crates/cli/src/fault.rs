//! Scripts of faults: as a server takes them, and as runs do.

use std::fs;
use std::path::{Path, PathBuf};

use catalogue::DriveSheet;
use lab::faults::Befalls;
use text::problem::{Place, Problem, Problems};
use workload::faults::{Planned, Scripted, Target, Whole, script};

/// What befalls drives in a run.
#[derive(clap::Args)]
pub(crate) struct FaultArgs {
    /// Let faults happen, one per line of this script, such as `at 2s nda.0: dies`; what came before and after each is told
    #[arg(long, value_name = "SCRIPT")]
    fault: Option<PathBuf>,
}

impl FaultArgs {
    /// What befalls each of these drives, or all of the script that it cannot have.
    pub(crate) fn read(&self, drives: &[DriveSheet], problems: &mut Problems) -> Vec<Vec<Befalls>> {
        let Some(path) = &self.fault else {
            return vec![Vec::new(); drives.len()];
        };
        let planned = script_of(path, problems);
        let each = drives.iter().map(|drive| {
            let of_drive = planned.iter().map(|(line, planned)| {
                befalling(planned, drive).map_err(|why| at(path, *line, why))
            });
            let (befalls, refused): (Vec<_>, Vec<_>) = of_drive.partition(Result::is_ok);
            let refused = refused.into_iter().filter_map(Result::err);
            problems.0.extend(refused.map(|one| Problem {
                what: match drives.len() {
                    1 => one.what,
                    _ => format!("on {}: {}", drive.id, one.what),
                },
                ..one
            }));
            befalls.into_iter().flatten().flatten().collect()
        });
        each.collect()
    }
}

/// The faults of a script, with their lines; none if there is something wrong with it.
pub(crate) fn script_of(path: &Path, problems: &mut Problems) -> Vec<Scripted> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            let what = format!("cannot be read: {error}");
            let origin = path.display().to_string();
            problems.0.extend(Problems::whole(&origin, what).0);
            return Vec::new();
        }
    };
    script(&text).unwrap_or_else(|all| {
        let all = all.into_iter().map(|(line, what)| at(path, line, what));
        problems.0.extend(all);
        Vec::new()
    })
}

/// A problem of a line of a script.
pub(crate) fn at(path: &Path, line: usize, what: String) -> Problem {
    Problem {
        origin: path.display().to_string(),
        place: Place::Line(line),
        what,
        help: None,
    }
}

/// What a fault is to this drive.
fn befalling(planned: &Planned, drive: &DriveSheet) -> Result<Vec<Befalls>, String> {
    // A RAID-0 is one drive; members of pools fail alone.
    let members = drive.named_members().into_iter();
    let members = members.filter(|_| drive.pool.is_some());
    let whole = Whole {
        name: drive.id.clone(),
        members: members.map(|(name, _)| name.to_owned()).collect(),
    };
    let target = Target::named(planned.drive.as_deref(), &[whole])?;
    Befalls::of(planned, &drive.config, target.member)
        .map_err(|why| format!("`{}`: {why}", planned.fault))
}
