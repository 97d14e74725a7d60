//! Wall-clock time and virtual time.
//!
//! Virtual time is the wall-clock time since the server's start, multiplied by the speed. It can be set back, if the host
//! is slower than the work of the model ([`Clock::set_back`]). At speed 0 there is no such
//! relation: commands complete at once, and the model's clock jumps from event to event as in a simulation.

use std::time::Instant;

use model::{Span, Time};

/// Wall-clock time in nanoseconds since the server's start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Wall(u64);

impl Wall {
    /// A time after every deadline.
    pub const NEVER: Wall = Wall(u64::MAX);

    /// Returns the instant `ns` nanoseconds after the start.
    pub const fn from_ns(ns: u64) -> Wall {
        Wall(ns)
    }

    /// Returns the nanoseconds since the start.
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// Returns the span from `earlier` to this instant; zero if `earlier` is later.
    pub const fn since(self, earlier: Wall) -> Span {
        Span::from_ns(self.0.saturating_sub(earlier.0))
    }

    /// Returns this instant plus a span.
    pub const fn plus(self, span: Span) -> Wall {
        Wall(self.0.saturating_add(span.ns()))
    }

    /// Returns this instant minus a span, at least the start.
    pub const fn minus(self, span: Span) -> Wall {
        Wall(self.0.saturating_sub(span.ns()))
    }
}

/// Reads the wall-clock time, and converts between it and virtual time.
#[derive(Clone, Debug)]
pub struct Clock {
    start: Instant,
    /// Virtual seconds per wall-clock second; 0 for full speed.
    speed: f64,
    /// Floor of the transport, which is subtracted from each deadline.
    floor: Span,
    /// Wall-clock time by which the virtual time was set back.
    delay: Span,
}

impl Clock {
    /// Returns a clock that starts now. `speed` is virtual seconds per wall-clock second, 0 for full speed.
    pub fn new(speed: f64) -> Clock {
        Clock {
            start: Instant::now(),
            speed,
            floor: Span::ZERO,
            delay: Span::ZERO,
        }
    }

    /// Sets the transport's floor (a wall-clock span), which is subtracted from each deadline.
    pub fn compensate(&mut self, floor: Span) {
        self.floor = floor;
    }

    /// Sets the virtual time back by a wall-clock span: all later deadlines move.
    pub fn set_back(&mut self, delay: Span) {
        self.delay += delay;
    }

    /// Returns the span that is subtracted from each deadline.
    pub fn floor(&self) -> Span {
        self.floor
    }

    /// Returns virtual seconds per wall-clock second; 0 for full speed.
    pub fn speed(&self) -> f64 {
        self.speed
    }

    /// Checks whether commands complete at once (full speed).
    pub fn free(&self) -> bool {
        self.speed == 0.0
    }

    /// Returns the wall-clock time.
    #[inline]
    pub fn wall(&self) -> Wall {
        let elapsed = self.start.elapsed();
        Wall(elapsed.as_secs() * 1_000_000_000 + u64::from(elapsed.subsec_nanos()))
    }

    /// Returns the virtual time at which a command that arrives at `wall` is submitted.
    #[inline]
    pub fn arrival(&self, wall: Wall) -> Time {
        Time::from_ns(self.scaled(wall.minus(self.delay).0))
    }

    /// Returns the virtual time up to which events are run at `wall`: ahead of it by the transport's floor.
    #[inline]
    pub fn horizon(&self, wall: Wall) -> Time {
        Time::from_ns(self.scaled(wall.plus(self.floor).minus(self.delay).0))
    }

    /// Returns the wall-clock time at which an event of the model is due, minus the transport's floor.
    #[inline]
    pub fn deadline(&self, at: Time) -> Wall {
        if at == Time::NEVER || self.free() {
            return if self.free() { Wall(0) } else { Wall::NEVER };
        }
        let ns = if self.speed == 1.0 {
            at.ns()
        } else {
            (at.ns() as f64 / self.speed) as u64
        };
        Wall(ns).plus(self.delay).minus(self.floor)
    }

    /// Converts a virtual span into a wall-clock span.
    pub fn on_the_wall(&self, span: Span) -> Span {
        if self.free() {
            Span::ZERO
        } else {
            Span::from_ns((span.ns() as f64 / self.speed) as u64)
        }
    }

    #[inline]
    fn scaled(&self, wall_ns: u64) -> u64 {
        if self.speed == 1.0 {
            wall_ns
        } else {
            (wall_ns as f64 * self.speed) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_scaled_and_compensated() {
        let mut clock = Clock::new(0.5);
        assert_eq!(clock.arrival(Wall::from_ns(1_000)), Time::from_ns(500));
        assert_eq!(clock.deadline(Time::from_ns(500)), Wall::from_ns(1_000));
        clock.compensate(Span::from_ns(100));
        assert_eq!(clock.deadline(Time::from_ns(500)), Wall::from_ns(900));
        assert_eq!(clock.horizon(Wall::from_ns(900)), Time::from_ns(500));
        clock.set_back(Span::from_ns(2_000));
        assert_eq!(clock.arrival(Wall::from_ns(3_000)), Time::from_ns(500));
        assert_eq!(clock.deadline(Time::from_ns(500)), Wall::from_ns(2_900));
        assert_eq!(clock.horizon(Wall::from_ns(2_900)), Time::from_ns(500));
        assert_eq!(clock.arrival(Wall::from_ns(1_000)), Time::ZERO);
        assert_eq!(clock.deadline(Time::NEVER), Wall::NEVER);
        assert!(Clock::new(0.0).free());
    }
}
