//! Thermal model of a drive: one mass, one resistance.
//!
//! The temperature approaches `ambient + watts x resistance` exponentially. That is the behaviour of a heat sink in a
//! constant flow of air. Hot spots, fans that follow the temperature and heat of adjacent drives are not modelled. No
//! source has figures: all are assumed, and only health and thermal throttling depend on them.

use alloc::format;
use alloc::string::String;

use crate::time::Span;

/// Remedies for a drive that is too hot, for the help of a problem.
pub const COOLER: &str = "more airflow (thermal.airflow), cooler air (thermal.ambient) or a larger heat sink (a lower thermal.resistance)";

/// Thermal properties of a drive, and its temperature limits.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Thermal {
    /// Temperature of the air, in degrees Celsius.
    pub ambient_celsius: f64,
    /// Temperature rise per watt in equilibrium.
    pub kelvin_per_watt: f64,
    /// Time after which about two thirds of a change have happened.
    pub time_constant: Span,
    /// Warning composite temperature (NVMe's WCTEMP).
    pub warning_celsius: f64,
    /// Critical composite temperature (CCTEMP): at and above it the drive throttles itself.
    pub critical_celsius: f64,
}

impl Thermal {
    /// Returns the temperature that the drive approaches while it consumes `watts`.
    pub fn equilibrium(&self, watts: f64) -> f64 {
        self.ambient_celsius + watts * self.kelvin_per_watt
    }

    /// Returns why a drive cannot work in its air: idle, it would be at its critical temperature. `None` if it can.
    pub fn idle_refusal(&self, idle_watts: f64) -> Option<String> {
        let celsius = self.equilibrium(idle_watts);
        (celsius >= self.critical_celsius).then(|| {
            format!(
                "would reach {celsius:.0} C without load: {idle_watts:.1} W, {:.1} K/W, air of {:.0} C; its critical temperature is {:.0} C",
                self.kelvin_per_watt, self.ambient_celsius, self.critical_celsius
            )
        })
    }

    /// Returns the temperature after `over`, during which the drive consumed `watts` on average.
    pub fn temperature_after(&self, celsius: f64, watts: f64, over: Span) -> f64 {
        let target = self.equilibrium(watts);
        let constant = self.time_constant.seconds();
        if constant <= 0.0 {
            return target;
        }
        target + (celsius - target) * libm::exp(-over.seconds() / constant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thermal() -> Thermal {
        Thermal {
            ambient_celsius: 30.0,
            kelvin_per_watt: 2.0,
            time_constant: Span::from_seconds(120.0),
            warning_celsius: 70.0,
            critical_celsius: 80.0,
        }
    }

    #[test]
    fn warms_towards_what_its_watts_hold() {
        let thermal = thermal();
        let soon = thermal.temperature_after(30.0, 10.0, Span::from_seconds(120.0));
        assert!(
            (soon - (50.0 - 20.0 / core::f64::consts::E)).abs() < 1e-9,
            "{soon}"
        );
        let late = thermal.temperature_after(30.0, 10.0, Span::from_seconds(12_000.0));
        assert!((late - 50.0).abs() < 1e-9, "{late}");
    }

    #[test]
    fn a_drive_that_is_critical_when_idle_is_refused() {
        let thermal = thermal();
        assert_eq!(thermal.idle_refusal(24.9), None);
        let why = thermal.idle_refusal(25.0).expect("50 K above air of 30 C");
        assert!(why.contains("reach 80 C without load"), "{why}");
    }

    #[test]
    fn two_steps_are_one() {
        let thermal = thermal();
        let (half, whole) = (Span::from_seconds(40.0), Span::from_seconds(80.0));
        let twice =
            thermal.temperature_after(thermal.temperature_after(44.0, 12.0, half), 12.0, half);
        assert!((twice - thermal.temperature_after(44.0, 12.0, whole)).abs() < 1e-9);
    }
}
