//! A drive as a user names it: a name of the catalogue, the path of a TOML file or a pool expression, with settings.
//!
//! In JSON, the settings are a list of options and their values, as on the command line: `["power-limit", "12W"]`.

use std::path::Path;

use catalogue::{DriveSheet, Settings};
use serde::{Deserialize, Serialize};
use text::problem::Problems;

use super::problems::{collect_problems, of_option};

/// A drive with its settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DriveSpec {
    /// Name, path or expression.
    pub name: String,
    /// Settings of the drive.
    #[serde(with = "options", skip_serializing_if = "is_default")]
    pub settings: Settings,
}

fn is_default(settings: &Settings) -> bool {
    *settings == Settings::default()
}

impl DriveSpec {
    /// Returns the drive.
    ///
    /// # Errors
    /// All problems of the drive, or that the file is of another kind.
    pub fn load(&self) -> Result<DriveSheet, Problems> {
        let name = &*self.name;
        catalogue::drive_as(name, &self.settings).map_err(|problems| {
            if is_drive(name) || !Path::new(name).is_file() {
                return problems;
            }
            Problems(vec![of_option(
                format!("{name}: a file, but not a drive's: those end in .toml"),
                "`--help` lists the options that take other files",
            )])
        })
    }
}

/// Checks whether an argument names a drive and no other file.
pub fn is_drive(argument: &str) -> bool {
    argument.ends_with(".toml")
        || catalogue::is_expression(argument)
        || catalogue::drive_names().contains(&argument)
        || catalogue::pool_names().contains(&argument)
}

/// Returns the drives that load; all errors of the others are problems, and so is that there are none.
pub(super) fn load_all(drives: &[DriveSpec], problems: &mut Problems) -> Vec<DriveSheet> {
    if drives.is_empty() {
        problems.0.push(of_option(
            "no drive is named",
            "add one of those that `drivelab drives` lists, or the path of a TOML file",
        ));
    }
    let loaded = drives.iter().map(DriveSpec::load);
    loaded
        .filter_map(|drive| collect_problems(drive, problems))
        .collect()
}

/// Settings as options and their values.
mod options {
    use catalogue::Settings;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Option of the one volume of a pool to use, which [`Settings::options`] leaves out.
    const VOLUME: &str = "volume";

    pub(super) fn serialize<S: Serializer>(settings: &Settings, to: S) -> Result<S::Ok, S::Error> {
        let volume = settings.volume.clone().map(|name| (VOLUME, name));
        let options: Vec<_> = settings.options().into_iter().chain(volume).collect();
        options.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Settings, D::Error> {
        let options = Vec::<(String, String)>::deserialize(from)?;
        let (volume, options): (Vec<_>, Vec<_>) = options
            .into_iter()
            .partition(|(option, _)| option == VOLUME);
        let pairs = options.iter().map(|(option, value)| (&**option, &**value));
        let settings = Settings::read(pairs).map_err(D::Error::custom)?;
        Ok(Settings {
            volume: volume.into_iter().next().map(|(_, name)| name),
            ..settings
        })
    }
}
