//! Virtual time, in whole nanoseconds.
//!
//! The unit is the nanosecond because fio measures in nanoseconds, and because the shortest step of a drive (tens of
//! nanoseconds of link time) still has two digits. Shorter times are not represented. Costs per byte are multiplied
//! before they are rounded (see [`Span::per_bytes`]), so large transfers do not accumulate rounding errors.

use core::fmt;
use core::ops::{Add, AddAssign, Mul, Sub};

/// An instant: nanoseconds since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Time(u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Span(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than every event: returned by an idle device.
    pub const NEVER: Time = Time(u64::MAX);

    /// Creates the instant `ns` nanoseconds after the start.
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns)
    }

    /// Returns nanoseconds since the start.
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// Returns seconds since the start.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Returns the span from `earlier` to this instant; zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// A span of zero length.
    pub const ZERO: Span = Span(0);

    /// A span of whole nanoseconds.
    pub const fn from_ns(ns: u64) -> Span {
        Span(ns)
    }

    /// A span of whole microseconds.
    pub const fn from_us(us: u64) -> Span {
        Span(us * 1_000)
    }

    /// A span of whole milliseconds.
    pub const fn from_ms(ms: u64) -> Span {
        Span(ms * 1_000_000)
    }

    /// A span of seconds, rounded to the nanosecond; negative, infinite or not-a-number gives zero.
    pub fn from_seconds(seconds: f64) -> Span {
        let ns = libm::round(seconds * 1e9);
        if ns > 0.0 && ns.is_finite() {
            Span(ns as u64)
        } else {
            Span::ZERO
        }
    }

    /// Returns the length in nanoseconds.
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// Returns the length in microseconds.
    pub fn us(self) -> f64 {
        self.0 as f64 * 1e-3
    }

    /// Returns the length in seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Returns the time that `bytes` take at `picoseconds_per_byte`, rounded to the nearest nanosecond.
    pub const fn per_bytes(picoseconds_per_byte: u64, bytes: u64) -> Span {
        Span((picoseconds_per_byte * bytes + 500) / 1_000)
    }

    /// This span multiplied by a factor, rounded to the nanosecond.
    pub fn scale(self, factor: f64) -> Span {
        Span::from_seconds(self.seconds() * factor)
    }

    /// Returns the difference, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0 + span.0)
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}

/// The subtracted instant must not be later: a later one is a defect, and debug builds panic. [`Time::since`] returns
/// zero in that case.
impl Sub for Time {
    type Output = Span;
    fn sub(self, earlier: Time) -> Span {
        Span(self.0 - earlier.0)
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0 + other.0)
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        self.0 += other.0;
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, factor: u64) -> Span {
        Span(self.0 * factor)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::NEVER {
            f.write_str("never")
        } else {
            write!(f, "{} ns", self.0)
        }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_instant_is_no_time_since_a_later_one() {
        let (early, late) = (Time::from_ns(3), Time::from_ns(10));
        assert_eq!(
            (late - early, late.since(early)),
            (Span::from_ns(7), Span::from_ns(7))
        );
        assert_eq!(early.since(late), Span::ZERO);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "overflow")]
    fn subtracting_a_later_instant_is_a_defect() {
        let _ = Time::from_ns(3) - Time::from_ns(10);
    }
}
