//! Behaviour while the buffer fills: delay of writes, and pauses of destaging.

use model::time::Span;

use super::WriteBack;

impl WriteBack {
    /// Returns the congestion level, from 0 to 255.
    #[inline]
    pub(super) fn congestion(&self) -> u8 {
        let law = &self.config.congestion;
        let fill = self.ring.fill();
        if fill <= law.from {
            return 0;
        }
        // No space at all is full congestion, whatever the settings.
        let share = (fill - law.from) / (law.full - law.from).max(f64::MIN_POSITIVE);
        libm::round(255.0 * share.min(1.0)) as u8
    }

    /// Returns the delay of a write that arrives now.
    #[inline]
    pub(super) fn held_back(&self) -> Span {
        let level = self.congestion();
        if level == 0 {
            return Span::ZERO;
        }
        let share = f64::from(level) / 255.0;
        self.config.congestion.delay.scale(share * share)
    }

    /// Returns the pause before the next round of destaging.
    pub(super) fn pause(&self) -> Span {
        let law = &self.config.destage;
        let above = (self.ring.fill() - law.from) / (law.hurry - law.from).max(f64::MIN_POSITIVE);
        let above = above.clamp(0.0, 1.0);
        law.pause.scale(1.0 - above * above)
    }

    /// Whether the buffer is above its mark and there is something to free. Once true, it remains true until the buffer
    /// is below the lower mark.
    pub(super) fn must_destage(&mut self) -> bool {
        let over = self.ring.fill() > self.stays();
        self.destaging.drains = over;
        over && self.failed.is_none() && self.ring.complete() > 0
    }

    /// Returns the share that may stay in use: the upper mark, or the lower one once the upper has been exceeded.
    pub(super) fn stays(&self) -> f64 {
        let law = &self.config.destage;
        match self.destaging.drains {
            true => law.from - law.band,
            false => law.from,
        }
    }
}
