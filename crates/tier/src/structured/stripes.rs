//! Stripes: blocks are collected in memory, written together, and moved again when few stripes are free.
//!
//! Not modelled: the content of stripes, and the parity that the capacity child adds.

use alloc::vec::Vec;

use model::anatomy::Part;
use model::command::{Op, Status};
use model::time::Time;

use super::trip::TripPurpose;
use super::{BLOCK, CAPACITY, LogStructured, MOST_CLEANED, StripeInMemory};
use crate::TierContext;

impl LogStructured {
    /// Adds a block to the stripe that is being filled. Returns the entry of this stripe in memory; `None` if no stripe is
    /// free.
    pub(super) fn append<W: TierContext>(
        &mut self,
        now: Time,
        block: u64,
        from: u64,
        way: &mut W,
    ) -> Option<u32> {
        let in_open = |it: u32| {
            let open = self.open.map(|entry| self.stripes[entry].stripe);
            open == Some(self.space.stripe_of(it))
        };
        if self.space.slot(block).is_some_and(in_open) {
            self.counts.absorbed += BLOCK;
            return self.open;
        }
        let entry = match self.open {
            Some(entry) => entry,
            None => {
                let Some(stripe) = self.space.take() else {
                    self.give_up(now, Status::WriteFault, way);
                    return None;
                };
                let entry = self.stripes.insert(StripeInMemory {
                    stripe,
                    used: 0,
                    from,
                });
                self.positions.push(from);
                self.open = Some(entry);
                entry
            }
        };
        let open = &mut self.stripes[entry];
        if from < open.from {
            let before = core::mem::replace(&mut open.from, from);
            self.positions.push(from);
            self.forget_position(before);
        }
        let open = &mut self.stripes[entry];
        let slot = open.stripe * self.space.per() + open.used;
        open.used += 1;
        let is_full = open.used == self.space.per();
        self.space.place(block, slot);
        if is_full {
            self.close_open(now, way);
        }
        Some(entry)
    }

    /// Writes the stripe that is being filled, full or not.
    pub(super) fn close_open<W: TierContext>(&mut self, now: Time, way: &mut W) {
        let Some(entry) = self.open.take() else {
            return;
        };
        self.writing += 1;
        let bytes = u64::from(self.config.stripe);
        let at = u64::from(self.stripes[entry].stripe) * bytes;
        self.counts.written += bytes;
        self.travel(
            now,
            TripPurpose::Stripe(entry),
            (CAPACITY, Op::Write),
            (at, bytes),
            self.config.nodes.stripe_crossings,
            way,
        );
    }

    /// A stripe is on the capacity child: its metadata is logged, and its part of the log is free.
    pub(super) fn stripe_written<W: TierContext>(
        &mut self,
        now: Time,
        entry: u32,
        status: Status,
        way: &mut W,
    ) {
        let StripeInMemory { stripe, from, .. } = self.stripes[entry];
        self.stripes.release(entry);
        self.writing -= 1;
        self.forget_position(from);
        if status != Status::Success {
            // The stripes from which blocks were moved to this one keep them.
            let moved = self.moved.iter_mut().filter(|it| it.0 == entry);
            moved.for_each(|it| it.0 = u32::MAX);
            return self.give_up(now, status, way);
        }
        self.space.written(stripe);
        self.release_cleaned(entry);
        if self.config.metadata > 0
            && let Some(log) = self.next_log()
        {
            let requests = self.spare.pop().unwrap_or_default();
            self.send_record(now, log, self.config.metadata.into(), requests, way);
        }
        self.clean(now, way);
        self.admit(now, way);
    }

    /// The stripe in this entry is durable: stripes whose blocks have all been moved to durable stripes are free.
    fn release_cleaned(&mut self, entry: u32) {
        let mut index = 0;
        while let Some(&(to, cleaned)) = self.moved.get(index) {
            if to != entry {
                index += 1;
                continue;
            }
            self.moved.swap_remove(index);
            if self.moved.iter().all(|it| it.1 != cleaned) {
                self.space.release(cleaned);
            }
        }
    }

    /// The capacity child fails writes: writes that wait and later ones fail.
    pub(super) fn give_up<W: TierContext>(&mut self, now: Time, status: Status, way: &mut W) {
        let status = *self.failed.get_or_insert(status);
        self.fail_pending(now, status, way);
    }

    /// Writes that wait fail.
    pub(super) fn fail_pending<W: TierContext>(&mut self, now: Time, status: Status, way: &mut W) {
        while let Some(request) = self.pending.pop_front() {
            let command = self.requests[request].command;
            self.admitted -= LogStructured::stored_blocks(&command);
            self.expected -= self.logged(&command);
            self.spend(now, request, Part::Tier);
            self.requests[request].status = status;
            self.finish(request, way);
        }
        self.admit(now, way);
    }

    /// Returns the number of free stripes that the blocks of admitted writes may take.
    fn stripes_for_admitted(&self) -> u32 {
        self.admitted.div_ceil(u64::from(self.space.per())) as u32
    }

    /// If few stripes are free, reads stripes with few live blocks.
    ///
    /// A cleaned stripe stays held until its blocks are durable elsewhere, and these may take a whole free stripe. There
    /// is therefore one free stripe for each cleaning in flight, besides those for admitted writes.
    pub(super) fn clean<W: TierContext>(&mut self, now: Time, way: &mut W) {
        let below = self
            .config
            .cleans_below(self.space.stripes())
            .max(self.wanted);
        while self.failed.is_none()
            && self.cleaning < MOST_CLEANED
            && self.space.free() < below
            && self.space.free() > self.cleaning + self.stripes_for_admitted()
        {
            let Some(stripe) = self.space.victim() else {
                break;
            };
            self.cleaning += 1;
            let bytes = u64::from(self.config.stripe);
            self.travel(
                now,
                TripPurpose::Clean(stripe),
                (CAPACITY, Op::Read),
                (u64::from(stripe) * bytes, bytes),
                1.0,
                way,
            );
        }
        let rests = self.cleaning == 0 && self.writing == 0 && self.failed.is_none();
        let has_stripes = self.space.free() >= self.stripes_for_admitted();
        if rests && has_stripes && self.wanted > self.space.free() {
            // Cleaned stripes may wait for the stripe that is being filled. It frees more than it takes if it has blocks
            // of several.
            let freed = self.moved.iter().filter(|it| Some(it.0) == self.open);
            if freed.count() > 1 {
                self.close_open(now, way);
            }
        }
    }

    /// A stripe has been read: its live blocks move to the stripe that is being filled. They are in no log, so the stripe
    /// is free only when they are durable there.
    pub(super) fn cleaned<W: TierContext>(
        &mut self,
        now: Time,
        stripe: u32,
        status: Status,
        way: &mut W,
    ) {
        self.cleaning -= 1;
        if status != Status::Success {
            return self.give_up(now, status, way);
        }
        if !self.space.is_in_memory(stripe) {
            let blocks: Vec<u64> = self.space.live_blocks(stripe).collect();
            if !blocks.is_empty() {
                self.space.hold(stripe);
            }
            for block in blocks {
                let entry = self.append(now, block, self.head, way);
                let moved = entry.map(|entry| (entry, stripe));
                if self.moved.last().copied() != moved {
                    self.moved.extend(moved);
                }
            }
        }
        self.clean(now, way);
        self.admit(now, way);
    }
}
