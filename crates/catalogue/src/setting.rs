//! Drive settings that differ from the drive's file, as the user of one run gives them.

use super::change::at_options;
use model::Span;
use model::management::{LbaFormat, Refusal};
use model::media::Medium;

use super::change::Change;
use super::condition::Age;
use super::{DriveSheet, drive_in};
use text::problem::{Place, Problem, Problems, nearest};
use text::quantity::{Quantity, Share};
use text::toml::quoted;

/// Settings of a run; everything is optional.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Settings {
    /// Changed figures of the drive's file.
    pub figures: Vec<Change>,
    /// The governor's limit in watts.
    pub power_limit: Option<f64>,
    /// Logical block format, whatever its rating.
    pub lba_format: Option<LbaFormat>,
    /// SMART's Percentage Used.
    pub percentage_used: Option<f64>,
    /// Wear of each byte written, as a multiple of the drive's own.
    pub wear_factor: Option<f64>,
    /// Time since power-on.
    pub uptime: Option<Span>,
    /// Share of the sold capacity that is reserved as spare area, 0 to 0.9.
    pub overprovision: Option<f64>,
    /// Share of the capacity that jobs see, from its beginning, that holds data; the rest is trimmed. Above 0, at
    /// most 1.
    pub fill: Option<f64>,
    /// Time in service.
    pub age: Option<Age>,
    /// Name of the one volume of a pool to use.
    pub volume: Option<String>,
}

impl Settings {
    /// Returns the settings as text for readers.
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
        let wear = self
            .wear_factor
            .map(|factor| format!("wear counted {factor} times"));
        let uptime = self
            .uptime
            .map(|uptime| format!("on for {}", uptime.show()));
        let figures = self.figures.iter();
        let figures = figures.map(|(key, value)| format!("{key} = {value}"));
        let volume = self.volume.as_ref();
        let volume = volume.map(|name| format!("volume {name}"));
        let percent = |share: Option<f64>, what: &str| {
            share.map(|share| format!("{} {what}", Share(share).show()))
        };
        let spare = percent(self.overprovision, "of its capacity reserved as spare area");
        let fill = percent(self.fill, "of it filled, the rest trimmed");
        let age = self.age.map(Age::words);
        let others = [power, format, used, wear, uptime, spare, fill, age, volume];
        let others = others.into_iter().flatten();
        figures.chain(others).collect()
    }
}

/// Returns the drive of this name, or in the file at this path, with all given settings.
///
/// # Errors
/// As [`super::drive_with`] and [`DriveSheet::set`].
pub fn drive_as(name_or_path: &str, settings: &Settings) -> Result<DriveSheet, Problems> {
    set_on(settings, |settings| drive_in(name_or_path, settings))
}

/// Reads a drive with these settings, then applies the remaining ones.
pub(super) fn set_on(
    settings: &Settings,
    read: impl FnOnce(&Settings) -> Result<DriveSheet, Problems>,
) -> Result<DriveSheet, Problems> {
    let settings = settings.settled()?;
    let read = read(&settings);
    let mut sheet = read.map_err(|problems| at_options(problems, &settings.figures))?;
    sheet.set(&settings)?;
    Ok(sheet)
}

impl DriveSheet {
    /// Applies all given settings except the changed figures, which belong to the drive's file, and the condition of
    /// a pool's members. Call it once, on a drive as the catalogue returned it.
    ///
    /// # Errors
    /// All settings that the drive does not support, each named as its command line option.
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
        if let (Some(factor), true) = (settings.wear_factor, self.pool.is_some()) {
            note("--wear-factor", self.config.set_wear_factor(factor), None);
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
        if self.pool.is_none() {
            problems.extend(self.bring_into_condition(settings));
        }
        match (self.volume_problem(settings), &settings.volume) {
            (Some(problem), _) => problems.push(problem),
            (None, Some(volume)) => self.keep_volume(volume),
            (None, None) => {}
        }
        Problems(problems).or(())
    }

    /// Returns a problem if the settings name a volume that the drive does not have.
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
            wear_factor: Some(1e6),
            uptime: Some(Span::from_seconds(600.0)),
            overprovision: Some(0.2),
            fill: Some(0.8),
            age: Some(Age::read("3y@20MB/s").expect("an age")),
            volume: Some(String::from("optavar")),
        };
        let wanted = [
            "xpoint.power.idle = 4 W",
            "power limit 12 W",
            "blocks of 4096 B with 8 B of metadata",
            "104 % of its endurance used up",
            "wear counted 1000000 times",
            "on for 10 min",
            "20 % of its capacity reserved as spare area",
            "80 % of it filled, the rest trimmed",
            "3 years old at 20 MB/s",
            "volume optavar",
        ];
        assert_eq!(settings.words(), wanted);
    }
}
