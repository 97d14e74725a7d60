//! Wall time and model time.
//!
//! Model time is wall time since the server started, multiplied by the speed. At speed 0 there is no such relation:
//! commands complete at once, and the model's clock jumps from event to event as in a simulation.

use std::time::Instant;

use model::{Span, Time};

/// Wall time in nanoseconds since the server started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Wall(u64);

impl Wall {
    /// Later than every deadline.
    pub const NEVER: Wall = Wall(u64::MAX);

    /// The instant `ns` nanoseconds after the start.
    pub const fn from_ns(ns: u64) -> Wall {
        Wall(ns)
    }

    /// Nanoseconds since the start.
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to this instant; zero if `earlier` is later.
    pub const fn since(self, earlier: Wall) -> Span {
        Span::from_ns(self.0.saturating_sub(earlier.0))
    }

    /// This instant and a span more.
    pub const fn plus(self, span: Span) -> Wall {
        Wall(self.0.saturating_add(span.ns()))
    }

    /// This instant less a span, not before the start.
    pub const fn minus(self, span: Span) -> Wall {
        Wall(self.0.saturating_sub(span.ns()))
    }
}

/// Tells wall time, and turns it into model time and back.
#[derive(Clone, Debug)]
pub struct Clock {
    start: Instant,
    /// Model seconds a wall second; 0 for "as fast as possible".
    speed: f64,
    /// Subtracted from each deadline: what the transport adds.
    floor: Span,
}

impl Clock {
    /// A clock that starts now. `speed` is model seconds in a wall second, 0 for as fast as possible.
    pub fn new(speed: f64) -> Clock {
        Clock {
            start: Instant::now(),
            speed,
            floor: Span::ZERO,
        }
    }

    /// Subtracts what the transport adds (a wall span) from each deadline.
    pub fn compensate(&mut self, floor: Span) {
        self.floor = floor;
    }

    /// What is subtracted from each deadline.
    pub fn floor(&self) -> Span {
        self.floor
    }

    /// Model seconds a wall second; 0 for as fast as possible.
    pub fn speed(&self) -> f64 {
        self.speed
    }

    /// Whether commands complete at once.
    pub fn free(&self) -> bool {
        self.speed == 0.0
    }

    /// The wall time.
    #[inline]
    pub fn wall(&self) -> Wall {
        let elapsed = self.start.elapsed();
        Wall(elapsed.as_secs() * 1_000_000_000 + u64::from(elapsed.subsec_nanos()))
    }

    /// The model time at which a command that arrives at `wall` is submitted.
    #[inline]
    pub fn arrival(&self, wall: Wall) -> Time {
        Time::from_ns(self.scaled(wall.0))
    }

    /// The model time up to which events are run at `wall`: ahead of it by the transport's floor.
    #[inline]
    pub fn horizon(&self, wall: Wall) -> Time {
        Time::from_ns(self.scaled(wall.0.saturating_add(self.floor.ns())))
    }

    /// When an event of the model is due on the wall, the transport's floor subtracted.
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
        Wall(ns).minus(self.floor)
    }

    /// A span of the model as a span of the wall.
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
        assert_eq!(clock.deadline(Time::NEVER), Wall::NEVER);
        assert!(Clock::new(0.0).free());
    }
}
