//! Arguments for runs in which drives warm up.

use catalogue::{DriveSheet, Settings};
use model::management::Thermal;
use text::quantity::{Airflow, Celsius, Quantity, quantity};

/// Temperature of the drives in a run.
#[derive(clap::Args, Clone)]
pub(crate) struct HeatArgs {
    /// Simulate the temperature of each drive: a drive that is too hot throttles itself
    #[arg(long)]
    heat: bool,
    /// Temperature of the air, such as 55C; implies --heat [default: thermal.ambient of the drive]
    #[arg(long, value_name = "CELSIUS", value_parser = quantity::<Celsius>)]
    ambient: Option<Celsius>,
    /// Speed of the air, such as 200LFM (1 m/s is 197 LFM); implies --heat [default: thermal.airflow of the drive]
    #[arg(long, value_name = "LFM", value_parser = quantity::<Airflow>)]
    airflow: Option<Airflow>,
}

impl HeatArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.heat || self.ambient.is_some() || self.airflow.is_some()
    }

    /// Returns these settings with air and airflow as figures of the drive.
    pub(crate) fn settings_with_air(&self, mut settings: Settings) -> Settings {
        let ambient = self.ambient.map(Quantity::show);
        let airflow = self.airflow.map(Quantity::show);
        for (key, value) in [("ambient", ambient), ("airflow", airflow)] {
            let figure = value.map(|value| (format!("thermal.{key}"), value));
            settings.figures.extend(figure);
        }
        settings
    }

    /// Returns these settings without thermal figures, if the run uses them.
    pub(crate) fn settings_without_heat(&self, settings: &Settings) -> Settings {
        let mut settings = settings.clone();
        if self.is_given() {
            let used = |key: &str| key.starts_with("thermal.");
            settings.figures.retain(|(key, _)| !used(key));
        }
        settings
    }

    /// Returns the thermal model of this drive; `None` if drives do not warm up.
    pub(crate) fn thermal_of(&self, drive: &DriveSheet) -> Option<Thermal> {
        self.is_given().then(|| drive.management.thermal.clone())
    }
}
