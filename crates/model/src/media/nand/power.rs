//! Power cut: the content of a buffer without capacitors is lost, and the map reflects that.
//!
//! With capacitors nothing is lost: units stay in the buffer, and go to the dies when power returns. Outstanding
//! commands run to their end without a completion, and so does the dies' work in progress; until then the drive accepts
//! no commands, which represents its start-up time. Not modelled: half-programmed pages; recovery of the older version
//! of a lost unit (the model reads it as never written); and reading the tables.

use alloc::vec::Vec;

use super::Nand;
use crate::device::{Device, Range};
use crate::ftl::{Page, UNIT};
use crate::time::Time;

impl Nand {
    /// Removes units from the map that are only in the buffer.
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
        // Writes that arrived in the meantime were never acknowledged.
        self.forget(&mut Vec::new());
        back
    }
}
