//! A power cut: what a buffer without capacitors held is lost, and the map knows it.
//!
//! With capacitors nothing is: units stay in the buffer, and go to the dies when there is power again. Commands that were
//! inside run to their end unheard, with what the dies have begun; until then the drive takes none, which stands for the
//! time in which it starts. Leaves out: pages that are half programmed; that the older version of a lost unit is found
//! again (the model reads it as one that was never written); and reading the tables.

use alloc::vec::Vec;

use super::Nand;
use crate::device::{Device, Range};
use crate::ftl::{Page, UNIT};
use crate::time::Time;

impl Nand {
    /// The map forgets what only the buffer has.
    fn forget(&mut self, lost: &mut Vec<Range>) {
        let before = lost.len();
        self.buffer.at_risk(&self.shared.ftl, lost);
        for range in &lost[before..] {
            let page = Page((range.offset / u64::from(UNIT)) as u32);
            self.shared.ftl.deallocate(page);
        }
    }

    pub(super) fn lose_power(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        self.forget(lost);
        let (mut back, mut unheard) = (now, Vec::new());
        while self.shared.front.depth() > 0 {
            back = self.next_event();
            assert!(back != Time::NEVER, "a command that never completes");
            self.advance(back, back, &mut unheard);
            unheard.clear();
        }
        if let Some(map) = &mut self.shared.map {
            map.forget();
        }
        // Writes that came in meanwhile were never acknowledged.
        self.forget(&mut Vec::new());
        back
    }
}
