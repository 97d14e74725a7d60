//! Drives and pools: those of the catalogue, those in files, and expressions of pools, with their settings.

use catalogue::{DriveSheet, HostSheet, Settings, drive_as};
use lab::Start;
use model::media::Precondition;
use pyo3::prelude::*;
use study::ask::DriveSpec;
use text::problem::Problems;

use crate::work::{collect_problems, of_argument, raised};

/// Names of drives, pools or hosts of the catalogue.
#[pyfunction]
pub(crate) fn names(kind: &str) -> Vec<&'static str> {
    match kind {
        "drives" => catalogue::drive_names(),
        "pools" => catalogue::pool_names(),
        _ => catalogue::host_names(),
    }
}

/// A drive or pool with its settings.
#[pyclass(frozen, module = "drivelab", from_py_object)]
#[derive(Clone)]
pub(crate) struct Drive {
    asked: String,
    settings: Settings,
    pub(crate) sheet: DriveSheet,
}

#[pymethods]
impl Drive {
    /// Options of the command line with their values, such as (`power-limit`, `12W`).
    #[new]
    #[pyo3(signature = (name, options=Vec::new(), volume=None))]
    fn new(
        name: String,
        options: Vec<(String, String)>,
        volume: Option<String>,
    ) -> PyResult<Drive> {
        let pairs = options.iter().map(|(option, value)| (&**option, &**value));
        let settings = Settings::read(pairs).map_err(raised)?;
        Drive::read(name, Settings { volume, ..settings })
    }

    /// Drive with one figure changed; the keys are those of `figures`.
    fn set(&self, key: &str, value: &str) -> PyResult<Drive> {
        let mut settings = self.settings.clone();
        settings.change(key, value);
        Drive::read(self.asked.clone(), settings)
    }

    /// Short name of the drive.
    #[getter]
    fn id(&self) -> &str {
        &self.sheet.id
    }

    /// Catalogue entry of the drive, as JSON.
    fn json(&self, figures: bool) -> String {
        let sheets = std::slice::from_ref(&self.sheet);
        report::sheets::json(sheets, figures)["drives"][0].to_string()
    }

    /// Output of `drivelab show`.
    fn text(&self) -> String {
        report::sheets::sheet(&self.sheet, None)
    }

    /// Settings of the drive, as text.
    fn words(&self) -> Vec<String> {
        self.settings.words()
    }
}

impl Drive {
    fn read(asked: String, settings: Settings) -> PyResult<Drive> {
        let sheet = drive_as(&asked, &settings).map_err(raised)?;
        Ok(Drive {
            asked,
            settings,
            sheet,
        })
    }

    /// Returns the drive as a request names it.
    pub(crate) fn spec(&self) -> DriveSpec {
        DriveSpec {
            name: self.asked.clone(),
            settings: self.settings.clone(),
        }
    }

    /// Returns the name that the user gave.
    pub(crate) fn requested_name(&self) -> &str {
        &self.asked
    }

    /// Returns the settings of the drive.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }
}

/// Returns the host with this name.
pub(crate) fn host(name: &str, problems: &mut Problems) -> HostSheet {
    collect_problems(catalogue::host(name), problems).unwrap_or_default()
}

/// Returns the sheets of drives.
pub(crate) fn sheets(drives: &[Drive]) -> impl Iterator<Item = &DriveSheet> + Clone {
    drives.iter().map(|drive| &drive.sheet)
}

/// Returns the settings of drives.
pub(crate) fn settings_of(drives: &[Drive]) -> impl Iterator<Item = &Settings> {
    drives.iter().map(|drive| &drive.settings)
}

/// Reports that a drive cannot have this initial state with its settings.
fn held(drives: &[Drive], state: Precondition, problems: &mut Problems) {
    let found = settings_of(drives).find_map(|settings| settings.problem_from(state));
    problems.0.extend(found);
}

/// Returns the state with this name; `auto` lets the load choose it.
pub(crate) fn start(name: &str, drives: &[Drive], problems: &mut Problems) -> Start {
    if let Some(state) = Start::named(name).and_then(Start::given) {
        held(drives, state, problems);
    }
    Start::named(name).unwrap_or_else(|| {
        let what = format!("state: there is no state `{name}`");
        problems
            .0
            .extend(of_argument(what, "auto, fresh, filled or steady").0);
        Start::Auto
    })
}

/// Returns the state with this name.
pub(crate) fn state(name: &str, drives: &[Drive], problems: &mut Problems) -> Precondition {
    let all = [
        Precondition::Fresh,
        Precondition::Filled,
        Precondition::Steady,
    ];
    let found = all.into_iter().find(|state| state.name() == name);
    if let Some(state) = found {
        held(drives, state, problems);
    }
    found.unwrap_or_else(|| {
        let what = format!("state: there is no state `{name}`");
        problems
            .0
            .extend(of_argument(what, "fresh, filled or steady").0);
        Precondition::Steady
    })
}
