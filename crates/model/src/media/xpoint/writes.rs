//! Writes: data arrives from the host, is merged with the content of partly covered units, and moves unit by unit over
//! the data path to the medium.

use alloc::vec::Vec;

use super::XPoint;
use super::config::UNIT;
use super::group::{Role, Transit, Waits};
use super::piece::PieceWork;
use crate::command::Completion;
use crate::time::{Span, Time};

impl XPoint {
    /// A write fetches its data, and the units that it must merge.
    #[inline(never)]
    pub(super) fn start_write(&mut self, now: Time, slot: u32) {
        let piece = &mut self.pieces[slot];
        let work = piece.work;
        let merges = piece.merges();
        piece.awaited = merges + u32::from(work == PieceWork::Write);
        let piece = *piece;
        let last = piece.units - 1;
        for (uncovered, unit) in piece.uncovered.into_iter().zip([0, last]) {
            if uncovered > 0 {
                self.counts.bytes_read += u64::from(UNIT);
                self.send_to_medium(now, slot, piece.first_unit + unit, Role::Merge, 0);
            }
        }
        if work == PieceWork::Write {
            self.fetch(now, slot, piece.bytes, merges > 0);
        } else if merges == 0 {
            self.stream(now, slot);
        }
    }

    /// Requests the data of a write from the host. Units stream to the medium as data arrives. If some must be merged,
    /// all data is collected first.
    fn fetch(&mut self, now: Time, slot: u32, bytes: u32, collect: bool) {
        let timing = &self.config.timing;
        let transfer = Span::per_bytes(timing.link_ps_per_byte, u64::from(bytes));
        let (waited, all_sent) = self.incoming.book(now, transfer);
        let ready = if collect { all_sent } else { now + waited };
        let ready = ready + timing.data_fetch;
        self.fetching.push(ready, slot);
        self.beside = self.beside.min(ready);
    }

    /// Data or a merged unit has arrived; writing can begin when nothing more is awaited.
    #[inline(never)]
    pub(super) fn got(&mut self, now: Time, slot: u32, merge: Waits) {
        let piece = &mut self.pieces[slot];
        piece.awaited -= 1;
        if piece.awaited == 0 {
            piece.merge = merge;
            self.stream(now, slot);
        }
    }

    /// Sends the units of a write to the data path.
    fn stream(&mut self, now: Time, slot: u32) {
        let piece = &mut self.pieces[slot];
        piece.streamed = now;
        let (first, units) = (piece.first_unit, piece.units);
        self.counts.units_written += u64::from(units);
        let side = self.side_of_writes();
        for unit in first..first + units {
            let transit = self.transit(now, slot, unit, Role::Write);
            self.paths[side].arrive(now, transit, 0);
        }
        self.beside = self.beside.min(self.paths[1].next());
    }

    /// Returns the path that writes use.
    #[inline]
    fn side_of_writes(&self) -> usize {
        usize::from(self.config.timing.duplex)
    }

    /// A die group has written a unit.
    #[inline(never)]
    pub(super) fn unit_written(
        &mut self,
        now: Time,
        transit: &Transit,
        done: &mut Vec<Completion>,
    ) {
        self.paths[self.side_of_writes()].written(now);
        self.beside = self.beside.min(self.paths[1].next());
        self.unit_done(now, transit, done);
    }

    /// A unit has arrived over the data path.
    #[inline(never)]
    pub(super) fn write_to_medium(&mut self, now: Time, transit: Transit) {
        self.medium.book(now, transit, 0);
    }
}
