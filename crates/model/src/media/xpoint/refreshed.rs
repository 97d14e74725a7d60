//! How much of a drive has been refreshed, on average: what gauges and energy are told. When its groups are busy with it is
//! theirs (group.rs).

use super::config::XPointConfig;
use crate::time::{Span, Time};

/// The count of refreshed units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refreshed {
    /// Until `since`.
    units: f64,
    /// The start of the run, or the last power-on in it.
    since: Time,
    /// From `since` on, the pass after power-on lasts this long.
    hurry: Span,
}

impl Refreshed {
    /// None, of a drive that has been on for as long as its configuration says.
    pub(super) fn new(config: &XPointConfig) -> Refreshed {
        let refresh = &config.refresh;
        Refreshed {
            units: 0.0,
            since: Time::ZERO,
            hurry: refresh
                .after_power_on
                .saturating_sub(refresh.uptime_at_start),
        }
    }

    /// The drive has been switched on at `now`.
    pub(super) fn power_on(&mut self, now: Time, config: &XPointConfig) {
        *self = Refreshed {
            units: self.units(now, config),
            since: now,
            hurry: config.refresh.after_power_on,
        };
    }

    /// Units until `now`.
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
