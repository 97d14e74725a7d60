//! When the buffer fills: how much writes are held back, and how long destaging pauses.

use super::WriteBack;
use crate::time::Span;

impl WriteBack {
    /// From 0 to 255.
    #[inline]
    pub(super) fn congestion(&self) -> u8 {
        let law = &self.config.congestion;
        let fill = self.ring.fill();
        if fill <= law.from {
            return 0;
        }
        // No room at all is full congestion, whatever the law.
        let share = (fill - law.from) / (law.full - law.from).max(f64::MIN_POSITIVE);
        libm::round(255.0 * share.min(1.0)) as u8
    }

    /// How long a write is held back that comes now.
    #[inline]
    pub(super) fn held_back(&self) -> Span {
        let level = self.congestion();
        if level == 0 {
            return Span::ZERO;
        }
        let share = f64::from(level) / 255.0;
        self.config.congestion.delay.scale(share * share)
    }

    /// What passes before the next round of destaging.
    pub(super) fn pause(&self) -> Span {
        let law = &self.config.destage;
        let above = (self.ring.fill() - law.from) / (law.hurry - law.from).max(f64::MIN_POSITIVE);
        let above = above.clamp(0.0, 1.0);
        law.pause.scale(1.0 - above * above)
    }

    /// Whether more of the buffer is in use than may stay so, and there is something to free. Once that is so it stays so
    /// until less than the lower mark is in use.
    pub(super) fn must_destage(&mut self) -> bool {
        let over = self.ring.fill() > self.stays();
        self.destaging.drains = over;
        over && self.failed.is_none() && self.ring.complete() > 0
    }

    /// The share that may stay in use: the upper mark, or the lower one once that has been passed.
    pub(super) fn stays(&self) -> f64 {
        let law = &self.config.destage;
        match self.destaging.drains {
            true => law.from - law.band,
            false => law.from,
        }
    }
}
