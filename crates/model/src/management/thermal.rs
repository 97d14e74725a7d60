//! How warm a drive becomes: one mass, one resistance.
//!
//! The temperature goes towards `ambient + watts x resistance` exponentially. That is what a heat sink in a steady
//! stream of air does; hot spots, fans that follow the temperature and the heat of neighbours are left out. No source
//! has figures: all are assumed, and only health and throttling by temperature depend on them.

use crate::time::Span;

/// Heat, and what the drive does about it.
#[derive(Clone, PartialEq, Debug)]
pub struct Thermal {
    /// Temperature of the air, in degrees Celsius.
    pub ambient_celsius: f64,
    /// How much warmer each watt makes the drive in the end.
    pub kelvin_per_watt: f64,
    /// After this long about two thirds of a change have happened.
    pub time_constant: Span,
    /// Warning composite temperature (NVMe's WCTEMP).
    pub warning_celsius: f64,
    /// Critical composite temperature (CCTEMP): from here on the drive throttles itself.
    pub critical_celsius: f64,
}

impl Thermal {
    /// The temperature after `over`, during which the drive took `watts` on average.
    pub fn after(&self, celsius: f64, watts: f64, over: Span) -> f64 {
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
        let soon = thermal.after(30.0, 10.0, Span::from_seconds(120.0));
        assert!(
            (soon - (50.0 - 20.0 / core::f64::consts::E)).abs() < 1e-9,
            "{soon}"
        );
        let late = thermal.after(30.0, 10.0, Span::from_seconds(12_000.0));
        assert!((late - 50.0).abs() < 1e-9, "{late}");
    }

    #[test]
    fn two_steps_are_one() {
        let thermal = thermal();
        let (half, whole) = (Span::from_seconds(40.0), Span::from_seconds(80.0));
        let twice = thermal.after(thermal.after(44.0, 12.0, half), 12.0, half);
        assert!((twice - thermal.after(44.0, 12.0, whole)).abs() < 1e-9);
    }
}
