//! Thermal model of a drive: one mass, one resistance.
//!
//! The temperature approaches `ambient + watts x resistance` exponentially. That is the behaviour of a heat sink in a
//! constant flow of air. Hot spots, fans that follow the temperature and heat of adjacent drives are not modelled. No
//! source has figures: all are assumed, and only health and thermal throttling depend on them.

use crate::time::Span;

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
    /// Returns the temperature after `over`, during which the drive consumed `watts` on average.
    pub fn temperature_after(&self, celsius: f64, watts: f64, over: Span) -> f64 {
        let target = self.ambient_celsius + watts * self.kelvin_per_watt;
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
    fn two_steps_are_one() {
        let thermal = thermal();
        let (half, whole) = (Span::from_seconds(40.0), Span::from_seconds(80.0));
        let twice =
            thermal.temperature_after(thermal.temperature_after(44.0, 12.0, half), 12.0, half);
        assert!((twice - thermal.temperature_after(44.0, 12.0, whole)).abs() < 1e-9);
    }
}
