//! Fault scripts, as servers and runs take them.

use std::path::{Path, PathBuf};

use catalogue::DriveSheet;
use lab::faults::RunFault;
use lab::scripted::{befalling, scripted};
use text::bounded;
use text::problem::Problems;
use workload::faults::FaultLine;

use crate::answer::collect_problems;
use crate::output::remark;

/// Faults of drives in a run.
#[derive(clap::Args)]
pub(crate) struct FaultArgs {
    /// Inject faults from this script, one per line, such as `at 2s nda.0: dies`, `at write 1234 nda.1: power-cut`,
    /// `nda.1: unrecovered-read range 1GiB..2GiB` or `nda.1: error-rate reads 1e-4`; prints results before and after each
    #[arg(long, value_name = "SCRIPT")]
    fault: Option<PathBuf>,
}

impl FaultArgs {
    /// Returns the faults of each of these drives, or all faults of the script that they cannot have.
    pub(crate) fn read(
        &self,
        drives: &[DriveSheet],
        problems: &mut Problems,
    ) -> Vec<Vec<RunFault>> {
        let Some(path) = &self.fault else {
            return vec![Vec::new(); drives.len()];
        };
        let planned = script_of(path, problems);
        let befalls = befalling(&path.display().to_string(), &planned, drives);
        let befalls = collect_problems(befalls, problems).unwrap_or_default();
        for (drive, befalls) in drives.iter().zip(&befalls) {
            let cluster = drive.pool_config().and_then(|it| it.cluster());
            let words = cluster.and_then(|it| it.fold_fault_words());
            if let Some(words) = words.filter(|_| !befalls.is_empty()) {
                remark("warning", &format!("{}: {words}", drive.id));
            }
        }
        befalls
    }
}

/// Returns the faults of a script, with their lines; empty if the script has a problem.
pub(crate) fn script_of(path: &Path, problems: &mut Problems) -> Vec<FaultLine> {
    let origin = path.display().to_string();
    let text = bounded::text(path, bounded::WRITTEN)
        .map_err(|error| Problems::whole(&origin, format!("cannot be read: {error}")));
    let scripted = text.and_then(|text| scripted(&origin, &text));
    collect_problems(scripted, problems).unwrap_or_default()
}
