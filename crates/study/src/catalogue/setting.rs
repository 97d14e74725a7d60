//! Settings of a drive that differ from what its file says, as a user of one run gives them.

use model::Span;
use model::management::{LbaFormat, Refusal};

use super::DriveSheet;
use crate::problem::{Place, Problem, Problems};

/// What is set; nothing unless given.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Settings {
    /// The governor's limit in watts.
    pub power_limit: Option<f64>,
    /// Logical block format, whatever its rating.
    pub lba_format: Option<LbaFormat>,
    /// SMART's Percentage Used.
    pub percentage_used: Option<f64>,
    /// How long the drive has been on.
    pub uptime: Option<Span>,
}

impl DriveSheet {
    /// Applies all settings that are given, to be called once on what the catalogue gave.
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
        Problems(problems).or(())
    }
}
