//! Arguments for runs in which drives warm up.

use std::ops::RangeInclusive;

use catalogue::administration::{AIRFLOW, CELSIUS};
use catalogue::{DriveSheet, Settings};
use clap::Command;
use lab::{Lab, Outcome, Scenario};
use model::Gauge;
use model::management::Thermal;
use text::problem::Problem;
use text::quantity::{Airflow, Celsius, Quantity, quantity};

use crate::failure::on_command_line;
use crate::output::remark;
use crate::stop::Stop;

/// Options of [`HeatArgs`].
const OPTIONS: [&str; 3] = ["heat", "ambient", "airflow"];

fn celsius(text: &str) -> Result<Celsius, String> {
    parse_in_range(text, CELSIUS)
}

fn airflow(text: &str) -> Result<Airflow, String> {
    parse_in_range(text, AIRFLOW)
}

/// Parses a quantity in this range.
///
/// # Errors
/// The allowed form, or the range.
fn parse_in_range<Q: Quantity>(text: &str, range: RangeInclusive<Q>) -> Result<Q, String> {
    let value = quantity::<Q>(text)?;
    match range.contains(&value) {
        true => Ok(value),
        false => Err(format!(
            "must be from {} to {}",
            range.start().show(),
            range.end().show()
        )),
    }
}

/// Returns the problem of an option about heat in a subcommand that does not simulate heat.
pub(crate) fn without_heat(command: &Command, arguments: &[&str]) -> Option<Problem> {
    let (verb, arguments) = arguments.split_first()?;
    let verb = command.find_subcommand(verb)?;
    let has = |name: &str| verb.get_arguments().any(|it| it.get_long() == Some(name));
    let options = arguments.iter().take_while(|it| **it != "--");
    let mut names = options.filter_map(|it| it.strip_prefix("--")?.split('=').next());
    let found = names.find(|name| OPTIONS.contains(name) && !has(name))?;
    let what = format!(
        "--{found}: `{}` does not simulate the temperature of drives",
        verb.get_name()
    );
    let help =
        "`run` and `review --suite heat` do; `serve` and `explain` use `--set thermal.ambient=55C`";
    Some(on_command_line(what, help))
}

/// Temperature of the drives in a run.
#[derive(clap::Args, Clone)]
pub(crate) struct HeatArgs {
    /// Simulate the temperature of each drive: a drive that is too hot throttles itself
    #[arg(long)]
    heat: bool,
    /// Temperature of the air, such as 55C; implies --heat [default: thermal.ambient of the drive]
    #[arg(long, value_name = "CELSIUS", value_parser = celsius)]
    ambient: Option<Celsius>,
    /// Speed of the air, such as 200LFM (1 m/s is 197 LFM; 0LFM is still air); implies --heat [default: thermal.airflow of the drive]
    #[arg(long, value_name = "LFM", value_parser = airflow)]
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

    /// Prints the temperatures of a run. If the drive throttled itself, runs the scenario again without heat, so that
    /// the rates can be compared.
    pub(crate) fn note(
        &self,
        drive: &DriveSheet,
        several: bool,
        (scenario, outcome): (&Scenario, &Outcome),
        stop: &Stop,
    ) {
        let throttled = outcome.gauge(Gauge::ThermalThrottleSeconds);
        let without = throttled.is_some_and(|seconds| seconds > 0.0) && !outcome.stopped;
        let without = without.then(|| {
            let scenario = Scenario {
                heat: None,
                ..scenario.clone()
            };
            Lab::new().run_until(&scenario, &|_| stop.check())
        });
        let without = without.and_then(Result::ok).filter(|it| !it.stopped);
        if let Some(what) = report::fio::heat(outcome, drive, without.as_ref()) {
            let origin = match several {
                false => "note".to_owned(),
                true => format!("note on {}", drive.id),
            };
            remark(&origin, &what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn options_about_heat_lead_to_the_subcommands_that_have_heat() {
        let command = crate::Cli::command();
        let found = |arguments: &[&str]| without_heat(&command, arguments).map(|it| it.what);
        for verb in ["choose", "max", "life", "replay"] {
            for option in ["--ambient", "--ambient=55C", "--airflow", "--heat"] {
                let what = found(&[verb, "pm9a3-960", option]).expect("a problem");
                assert!(what.contains(&format!("`{verb}`")), "{what}");
            }
        }
        assert_eq!(found(&["run", "pm9a3-960", "--ambient=55C"]), None);
        assert_eq!(found(&["review", "pm9a3-960", "--heat"]), None);
        assert_eq!(found(&["choose", "pm9a3-960", "--", "--heat"]), None);
        assert_eq!(found(&["--heat"]), None);
    }

    #[test]
    fn a_value_out_of_range_names_the_range() {
        assert_eq!(airflow("0LFM"), Ok(Airflow(0.0)));
        for (text, why) in [("-1LFM", "from 0 LFM to"), ("6000LFM", "to 5000 LFM")] {
            let said = airflow(text).expect_err("out of range");
            assert!(said.contains(why), "{said}");
        }
        let said = celsius("500C").expect_err("out of range");
        assert!(said.contains("from -40 C to 200 C"), "{said}");
    }
}
