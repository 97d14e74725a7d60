//! Drives and pools: those of the catalogue, those in files, and expressions of pools, with their settings.

use catalogue::administration::lba_format;
use catalogue::{DriveSheet, HostSheet, Settings, drive_as};
use lab::Start;
use model::Span;
use model::media::Precondition;
use pyo3::prelude::*;
use text::problem::Problems;
use text::quantity::{Watts, quantity};

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
    #[new]
    #[pyo3(signature = (name, power_limit=None, lba_format=None, percentage_used=None, uptime=None, volume=None, figures=Vec::new()))]
    fn new(
        name: String,
        power_limit: Option<&str>,
        lba_format: Option<&str>,
        percentage_used: Option<f64>,
        uptime: Option<&str>,
        volume: Option<String>,
        figures: Vec<(String, String)>,
    ) -> PyResult<Drive> {
        let mut problems = Problems::default();
        let wrong = |name: &str, what: String| {
            of_argument(format!("{name}: {what}"), "see help(drivelab.Drive)")
        };
        let power =
            power_limit.map(|it| quantity::<Watts>(it).map_err(|what| wrong("power_limit", what)));
        let format = lba_format.map(|it| {
            let what = || {
                wrong(
                    "lba_format",
                    format!("{it} is not an LBA format such as 512, 4096 or 4096+8"),
                )
            };
            self::lba_format(it).ok_or_else(what)
        });
        let uptime = uptime.map(|it| quantity::<Span>(it).map_err(|what| wrong("uptime", what)));
        let settings = Settings {
            power_limit: power
                .and_then(|it| collect_problems(it, &mut problems))
                .map(|it| it.0),
            lba_format: format.and_then(|it| collect_problems(it, &mut problems)),
            percentage_used,
            uptime: uptime.and_then(|it| collect_problems(it, &mut problems)),
            volume,
            figures,
            ..Settings::default()
        };
        problems.or(()).map_err(raised)?;
        Drive::read(name, settings)
    }

    /// Drive with one figure changed; the keys are those of `figures`.
    fn set(&self, key: &str, value: &str) -> PyResult<Drive> {
        let mut settings = self.settings.clone();
        settings.figures.retain(|(known, _)| known != key);
        settings.figures.push((key.to_owned(), value.to_owned()));
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
