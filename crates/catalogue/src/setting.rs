//! Settings of a drive that differ from what its file says, as a user of one run gives them.

use model::Span;
use model::management::{LbaFormat, Refusal};
use model::media::Medium;

use super::change::Change;
use super::{DriveSheet, drive_with};
use text::problem::{Place, Problem, Problems, nearest};
use text::quantity::Quantity;
use text::toml::quoted;

/// What is set; nothing unless given.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Settings {
    /// Figures of its file that are changed, whatever they mean.
    pub figures: Vec<Change>,
    /// The governor's limit in watts.
    pub power_limit: Option<f64>,
    /// Logical block format, whatever its rating.
    pub lba_format: Option<LbaFormat>,
    /// SMART's Percentage Used.
    pub percentage_used: Option<f64>,
    /// How long the drive has been on.
    pub uptime: Option<Span>,
    /// The one volume of a pool that is meant, by its name.
    pub volume: Option<String>,
}

impl Settings {
    /// What is set, in words for a reader.
    pub fn words(&self) -> Vec<String> {
        let power = self
            .power_limit
            .map(|watts| format!("power limit {watts} W"));
        let format = self.lba_format.map(|format| {
            let bytes = match format.metadata {
                0 => format!("{} B", format.data),
                metadata => format!("{} B with {metadata} B of metadata", format.data),
            };
            format!("blocks of {bytes}")
        });
        let used = self
            .percentage_used
            .map(|percent| format!("{percent} % of its endurance used up"));
        let uptime = self
            .uptime
            .map(|uptime| format!("on for {}", uptime.show()));
        let figures = self.figures.iter();
        let figures = figures.map(|(key, value)| format!("{key} = {value}"));
        let volume = self.volume.as_ref();
        let volume = volume.map(|name| format!("volume {name}"));
        let others = [power, format, used, uptime, volume];
        let others = others.into_iter().flatten();
        figures.chain(others).collect()
    }
}

/// The drive of this name, or in the file at this path, with all settings that are given.
///
/// # Errors
/// As [`drive_with`] and [`DriveSheet::set`].
pub fn drive_as(name_or_path: &str, settings: &Settings) -> Result<DriveSheet, Problems> {
    let mut sheet = drive_with(name_or_path, &settings.figures)?;
    sheet.set(settings)?;
    Ok(sheet)
}

impl DriveSheet {
    /// Applies all settings that are given but the changed figures, which are its file's; to be called once on what the
    /// catalogue gave.
    ///
    /// # Errors
    /// All of them that the drive does not have, each named as the option of the command line.
    pub fn set(&mut self, settings: &Settings) -> Result<(), Problems> {
        let mut problems = Vec::new();
        let mut note = |option: &str, result: Result<(), Refusal>, help: Option<String>| {
            if let Err(refusal) = result {
                problems.push(Problem {
                    origin: String::from(option),
                    place: Place::Whole,
                    what: format!("{}: {refusal}", self.id),
                    help,
                });
            }
        };
        if let Some(watts) = settings.power_limit {
            let idle = self.config.idle_watts();
            let above = format!("its idle power is {idle} W");
            note(
                "--power-limit",
                self.config.set_power_limit(watts),
                Some(above),
            );
        }
        if let Some(percent) = settings.percentage_used {
            let set = self.config.set_percentage_used(percent);
            note("--percentage-used", set, None);
        }
        if let Some(uptime) = settings.uptime {
            note("--uptime", self.config.set_uptime(uptime), None);
        }
        if let Some(format) = settings.lba_format {
            let formats = &self.management.lba_formats;
            if formats.iter().any(|it| it.same_layout(&format)) {
                self.config.set_lba_format(format);
            } else {
                let offered: Vec<String> = formats.iter().map(LbaFormat::to_string).collect();
                let none = Refusal::Unsupported("the drive has no such format");
                let help = format!("it offers {}", offered.join(", "));
                note("--lba-format", Err(none), Some(help));
            }
        }
        match (self.volume_problem(settings), &settings.volume) {
            (Some(problem), _) => problems.push(problem),
            (None, Some(volume)) => self.keep_volume(volume),
            (None, None) => {}
        }
        Problems(problems).or(())
    }

    /// Why the drive has no such volume, if one is meant that it does not have.
    fn volume_problem(&self, settings: &Settings) -> Option<Problem> {
        let name = settings.volume.as_ref()?;
        let names = self.volumes();
        let known = names.iter().map(|volume| &*volume.name);
        let problem = |what: &str, help: String| Problem {
            origin: String::from("--volume"),
            place: Place::Whole,
            what: format!("{}: {what}", self.id),
            help: Some(help),
        };
        match (names.is_empty(), known.clone().any(|it| it == name)) {
            (true, _) => Some(problem(
                "a drive, not a pool: it has no volumes",
                String::from("leave it out"),
            )),
            (_, true) => None,
            (_, false) => Some(problem(
                &format!("the pool has no volume `{name}`"),
                match nearest(name, known.clone()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("it has {}", quoted(&known.collect::<Vec<_>>())),
                },
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_in_words() {
        assert_eq!(Settings::default().words(), [""; 0]);
        let settings = Settings {
            figures: vec![(String::from("xpoint.power.idle"), String::from("4 W"))],
            power_limit: Some(12.0),
            lba_format: crate::administration::lba_format("4096+8"),
            percentage_used: Some(104.0),
            uptime: Some(Span::from_seconds(600.0)),
            volume: Some(String::from("optavar")),
        };
        let wanted = [
            "xpoint.power.idle = 4 W",
            "power limit 12 W",
            "blocks of 4096 B with 8 B of metadata",
            "104 % of its endurance used up",
            "on for 10 min",
            "volume optavar",
        ];
        assert_eq!(settings.words(), wanted);
    }
}
