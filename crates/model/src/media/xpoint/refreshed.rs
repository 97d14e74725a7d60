//! Mean number of units that a drive has refreshed, for its gauges of bytes on the medium. The time that refresh
//! occupies each group is in group.rs. Not modelled: the energy of refresh. Source: periods as in the configuration
//! (assumed).

use super::config::XPointConfig;
use crate::time::{Span, Time};

/// Counter of refreshed units.
#[derive(Clone, Copy, Debug)]
pub(super) struct RefreshProgress {
    /// Units until `since`.
    units: f64,
    /// The start of the run, or the last power-on in it.
    since: Time,
    /// Remaining duration, after `since`, of the pass that follows a power-on.
    hurry: Span,
}

impl RefreshProgress {
    /// Creates a counter at 0, for a drive with the uptime of its configuration.
    pub(super) fn new(config: &XPointConfig) -> RefreshProgress {
        let refresh = &config.refresh;
        RefreshProgress {
            units: 0.0,
            since: Time::ZERO,
            hurry: refresh
                .after_power_on
                .saturating_sub(refresh.uptime_at_start),
        }
    }

    /// The drive has been switched on at `now`.
    pub(super) fn power_on(&mut self, now: Time, config: &XPointConfig) {
        *self = RefreshProgress {
            units: self.units(now, config),
            since: now,
            hurry: config.refresh.after_power_on,
        };
    }

    /// Returns the units until `now`.
    pub(super) fn units(&self, now: Time, config: &XPointConfig) -> f64 {
        let refresh = &config.refresh;
        if refresh.batch_units == 0 {
            return 0.0;
        }
        let units = (config.group_units() * u64::from(config.groups())) as f64;
        let elapsed = now.since(self.since);
        let hurried = elapsed.min(self.hurry);
        let rest = elapsed - hurried;
        self.units
            + units
                * (hurried.seconds() / refresh.after_power_on.seconds()
                    + rest.seconds() / refresh.period.seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::config;
    use super::*;

    #[test]
    fn the_pass_after_power_on_goes_fast_and_what_follows_slowly() {
        // On for 50 of the 100 ms of the fast pass at the start; a slow pass takes 20 s.
        let config = config();
        let all = (config.group_units() * u64::from(config.groups())) as f64;
        let mut refreshed = RefreshProgress::new(&config);
        let at = |ms| Time::ZERO + Span::from_ms(ms);
        let share = |refreshed: &RefreshProgress, ms| refreshed.units(at(ms), &config) / all;
        assert!((share(&refreshed, 25) - 0.25).abs() < 1e-9);
        assert!((share(&refreshed, 50 + 2_000) - 0.6).abs() < 1e-9);
        refreshed.power_on(at(50 + 2_000), &config);
        assert!((share(&refreshed, 50 + 2_000) - 0.6).abs() < 1e-9);
        assert!((share(&refreshed, 50 + 2_000 + 100) - 1.6).abs() < 1e-9);
    }
}
