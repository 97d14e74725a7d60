//! Limits that delay commands: the power governor, and write protection when the rated endurance is used up.

use super::config::{UNIT, XPointConfig};
use super::group::share;
use super::piece::CommandPiece;
use crate::time::{Span, Time};

/// Keeps mean power at the limit. Each unit consumes a share of the watts above idle power, and commands are admitted
/// only as far ahead of that as the governor's window allows. First in, first out.
#[derive(Clone, Debug)]
pub(super) struct Governor {
    paid_until: Time,
    window: Span,
    read: Span,
    write: Span,
}

impl Governor {
    pub(super) fn new(config: &XPointConfig) -> Governor {
        let power = &config.power;
        let watts = power.limit_watts - power.idle_watts;
        let unit = |joules: f64| Span::from_seconds(joules * f64::from(UNIT) / watts);
        Governor {
            paid_until: Time::ZERO,
            window: power.governor_window,
            read: unit(power.read_joules_per_byte),
            write: unit(power.write_joules_per_byte),
        }
    }

    /// Changes the limit. Admitted commands are not affected.
    pub(super) fn change(&mut self, config: &XPointConfig) {
        *self = Governor {
            paid_until: self.paid_until,
            ..Governor::new(config)
        };
    }

    /// Returns how long a piece that arrives at `now`, and reads `spared` bytes less than its units contain, must wait.
    /// Later pieces are never admitted before earlier ones.
    #[inline]
    pub(super) fn admit(&mut self, now: Time, piece: &CommandPiece, spared: u16) -> Span {
        let wait = self.paid_until.since(now + self.window);
        let cost = if piece.writes() {
            self.write * u64::from(piece.units) + self.read * u64::from(piece.merges())
        } else {
            self.read * u64::from(piece.units) - share(self.read, spared)
        };
        self.paid_until = self.paid_until.max(now) + cost;
        wait
    }
}

/// Wear, and write throttling at the end of rated endurance.
#[derive(Clone, Debug)]
pub(super) struct Endurance {
    rated: u64,
    /// Wear of each byte, as a multiple of the drive's own.
    factor: f64,
    used_at_start: f64,
    written: u64,
    /// Bytes that can be written until writes are throttled.
    protect_after: u64,
    bytes_per_second: u64,
    free_at: Time,
}

impl Endurance {
    pub(super) fn new(config: &XPointConfig) -> Endurance {
        let wear = &config.wear;
        let left = wear.protect_at_percent - wear.percentage_used_at_start;
        Endurance {
            rated: wear.endurance_bytes,
            factor: wear.factor,
            used_at_start: wear.percentage_used_at_start,
            written: 0,
            protect_after: (left.max(0.0) / 100.0 * wear.endurance_bytes as f64 / wear.factor)
                as u64,
            bytes_per_second: wear.protected_bytes_per_second,
            free_at: Time::ZERO,
        }
    }

    /// Counts a write that arrives at `now`; returns when it may continue (immediately, unless writes are throttled).
    #[inline]
    pub(super) fn admit(&mut self, now: Time, bytes: u32) -> Time {
        self.written += u64::from(bytes);
        if self.written <= self.protect_after {
            return now;
        }
        let start = self.free_at.max(now);
        let ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second);
        self.free_at = start + Span::from_ns(ns as u64);
        start
    }

    /// Changes wear as if this much had been used at the start of the run, in addition to the writes since then.
    pub(super) fn change(&mut self, config: &XPointConfig) {
        *self = Endurance {
            written: self.written,
            free_at: self.free_at,
            ..Endurance::new(config)
        };
    }

    /// Returns SMART's Percentage Used, with fractions.
    pub(super) fn percentage_used(&self) -> f64 {
        self.used_at_start + 100.0 * self.factor * self.written as f64 / self.rated as f64
    }
}
