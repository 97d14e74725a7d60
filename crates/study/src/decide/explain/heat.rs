//! Temperature of a drive at a load, and the conditions under which heat would explain a drop of its rate. The answer
//! is arithmetic with the watts of a simulated run and the single thermal mass and resistance of the drive's file
//! (`[thermal]`; decision 0066). No run of the model throttles.
//!
//! A drive that throttles by any method settles at a power that keeps it at its temperature limit. So the remaining
//! share of the rate gives the power that the drive dissipates, and that gives the time at which the limit was
//! reached. The model provides the watts at the full rate and idle; between them, watts are assumed to be proportional
//! to the rate. Not modelled: hot spots (a controller warms up in seconds), fans that follow the temperature, adjacent
//! devices, thresholds at which a drive throttles slightly (NVMe's TMT1).

use catalogue::DriveSheet;
use model::management::Thermal;
use model::media::Medium as _;
use serde::Serialize;
use text::digits::{digits, duration};
use tier::DriveConfig;

use crate::review::results::rounded;

/// Temperature at a load.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Heat {
    /// Mean watts of the simulated run.
    pub watts: f64,
    /// Watts when idle.
    pub idle_watts: f64,
    /// Air temperature in degrees Celsius.
    pub air_celsius: f64,
    /// Final temperature in that air without throttling.
    pub settles_celsius: f64,
    /// Temperature at which it throttles.
    pub throttles_celsius: f64,
    /// Air temperature at and above which it throttles at this load.
    pub too_warm_air_celsius: f64,
    /// Seconds from idle until it throttles; null if it does not in that air.
    pub throttles_after_seconds: Option<f64>,
    /// Description of the result.
    pub text: String,
    #[serde(skip)]
    thermal: Thermal,
}

/// Conditions under which heat reduces a rate to a share.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Fall {
    /// Remaining watts.
    pub watts: f64,
    /// Air temperature, with the file's thermal resistance.
    pub air_celsius: f64,
    /// Thermal resistance in kelvin per watt, in the file's air.
    pub kelvin_per_watt: f64,
    /// Seconds from idle until the drop, with the file's time constant.
    pub seconds: f64,
}

impl Heat {
    /// Returns the temperature of one drive at this power; `None` for pools, whose members have temperatures of their
    /// own, and without a power model.
    pub fn from_power(sheet: &DriveSheet, watts: Option<f64>) -> Option<Heat> {
        if matches!(sheet.config, DriveConfig::Pool(_)) {
            return None;
        }
        let thermal = &sheet.management.thermal;
        let watts = watts.filter(|watts| *watts > 0.0)?;
        let idle_watts = sheet.config.idle_watts();
        let warms = thermal.kelvin_per_watt * watts;
        let settles = thermal.ambient_celsius + warms;
        let from = thermal.ambient_celsius + thermal.kelvin_per_watt * idle_watts;
        let limit = thermal.critical_celsius;
        let after = (settles > limit).then(|| {
            let share = (settles - from) / (settles - limit);
            rounded(thermal.time_constant.seconds() * libm::log(share.max(1.0)))
        });
        let air = limit - warms;
        let head = format!(
            "at {} W it settles at {:.0} °C in air of {:.0} °C",
            digits(watts),
            settles,
            thermal.ambient_celsius
        );
        let text = match after {
            Some(seconds) => format!(
                "{head}, above the {limit:.0} °C at which it throttles, after {} from idle",
                duration(whole(seconds))
            ),
            None => {
                format!("{head}; it throttles at {limit:.0} °C, so in air of {air:.0} °C or more")
            }
        };
        Some(Heat {
            watts: rounded(watts),
            idle_watts: rounded(idle_watts),
            air_celsius: rounded(thermal.ambient_celsius),
            settles_celsius: rounded(settles),
            throttles_celsius: rounded(limit),
            too_warm_air_celsius: rounded(air),
            throttles_after_seconds: after,
            text,
            thermal: thermal.clone(),
        })
    }

    /// Returns the conditions under which heat leaves this share of the rate; `None` if nothing was left or nothing
    /// was lost.
    pub fn fall(&self, share: f64) -> Option<Fall> {
        let works = self.watts - self.idle_watts;
        if works <= 0.0 || !(0.01..0.99).contains(&share) {
            return None;
        }
        let watts = self.idle_watts + share * works;
        let (limit, thermal) = (self.throttles_celsius, &self.thermal);
        Some(Fall {
            watts: rounded(watts),
            air_celsius: rounded(limit - thermal.kelvin_per_watt * watts),
            kelvin_per_watt: rounded((limit - thermal.ambient_celsius) / watts),
            // From idle towards the final temperature at full load until the temperature for the share: the resistance
            // cancels out.
            seconds: rounded(-thermal.time_constant.seconds() * libm::log(1.0 - share)),
        })
    }

    /// Checks whether the drive throttles in its file's air at about that time: within a factor of two of these
    /// seconds.
    pub fn is_due(&self, at_seconds: f64) -> bool {
        let after = self.throttles_after_seconds;
        after.is_some_and(|after| (0.5..=2.0).contains(&(at_seconds / after.max(1e-9))))
    }

    /// Returns a drop to this share as text, which follows the observation.
    pub fn words(&self, share: f64) -> String {
        let Some(fall) = self.fall(share) else {
            return String::new();
        };
        format!(
            "; if heat were the cause, power would be limited to {} W: air of {:.0} °C around the drive, or {} K/W in air of {:.0} °C instead of {}; \
             the drop would come {} after a start from idle",
            digits(fall.watts),
            fall.air_celsius,
            digits(fall.kelvin_per_watt),
            self.air_celsius,
            digits(self.thermal.kelvin_per_watt),
            duration(whole(fall.seconds)),
        )
    }
}

/// Rounds to whole seconds at and above ten.
fn whole(seconds: f64) -> f64 {
    if seconds < 10.0 {
        seconds
    } else {
        libm::round(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Span;

    fn heat(watts: f64, air: f64) -> Heat {
        let mut sheet = catalogue::drive("p4800x-375").expect("built in");
        sheet.management.thermal = Thermal {
            ambient_celsius: air,
            kelvin_per_watt: 4.0,
            time_constant: Span::from_seconds(100.0),
            warning_celsius: 70.0,
            critical_celsius: 80.0,
        };
        Heat::from_power(&sheet, Some(watts)).expect("one drive with power")
    }

    /// Steps the thermal model of a served drive, with the same mass and resistance, a tenth of a second at a time.
    fn stepped(heat: &Heat, watts: f64) -> f64 {
        let thermal = &heat.thermal;
        let mut celsius = thermal.ambient_celsius + thermal.kelvin_per_watt * heat.idle_watts;
        let mut seconds = 0.0;
        while celsius < thermal.critical_celsius && seconds < 1e4 {
            celsius = thermal.temperature_after(celsius, watts, Span::from_ms(100));
            seconds += 0.1;
        }
        seconds
    }

    #[test]
    fn it_throttles_when_a_served_drive_of_these_figures_does() {
        let cool = heat(8.0, 30.0);
        assert_eq!(
            (cool.settles_celsius, cool.throttles_after_seconds),
            (62.0, None)
        );
        assert_eq!(cool.too_warm_air_celsius, 48.0);
        let hot = heat(14.0, 40.0);
        let after = hot.throttles_after_seconds.expect("96 °C");
        assert!((after - stepped(&hot, 14.0)).abs() < 0.3, "{after}");
        assert!(hot.is_due(1.5 * after) && !hot.is_due(3.0 * after) && !cool.is_due(10.0));
    }

    /// In the air that a drop requires, the drive reaches its limit at the time of the drop, and the remaining power
    /// keeps it there.
    #[test]
    fn a_fall_is_the_air_in_which_it_happens_so() {
        let cool = heat(14.0, 20.0);
        let fall = cool.fall(0.5).expect("half is left");
        let there = heat(14.0, fall.air_celsius);
        assert!(
            (stepped(&there, 14.0) - fall.seconds).abs() < 0.3,
            "{fall:?}"
        );
        let kept = there.air_celsius + 4.0 * fall.watts;
        assert!((kept - 80.0).abs() < 0.1, "{kept}");
        let resistance = 20.0 + fall.kelvin_per_watt * fall.watts;
        assert!((resistance - 80.0).abs() < 0.1, "{resistance}");
        assert_eq!((cool.fall(0.0), cool.fall(1.0)), (None, None));
    }
}
