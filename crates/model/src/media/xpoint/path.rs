//! The controller's data path between die groups and the host: one server that transfers one unit at a time.
//!
//! Units wait in a table (table.rs), and an arbiter serves it round-robin. That alone makes the 99th percentile about
//! twice the median at any depth at and above saturation (S1-020). Collisions in the table make the 99.999th percentile
//! of reads about twice that (S1-021), although the service time of a unit hardly varies. In a round, all reads come
//! before all writes, so the path turns around at most twice.
//!
//! A unit that is written needs one of a few buffers from the start of its transfer until its dies have it. A small
//! number of units is seldom spread evenly over die groups, so drives with two groups lose throughput on random writes
//! but not on sequential ones (S2-017, S2-018). With more groups the path is slower than all dies together, and the
//! loss is negligible.
//!
//! A duplex drive has one path for each direction, without turnaround.
//!
//! The time of a read varies slightly, as that of error correction does: the drive does not saturate abruptly (S1-013).
//! If part of a unit is wanted, the whole unit is read and corrected, and only that part crosses the link: it arrives
//! sooner, but the path does not become free sooner. If parts are read and corrected separately, it does.
//!
//! The completion of a read is sent after its data: a path as fast as the link loses time for each command.

use core::hint::cold_path;

use super::config::{Parts, UNIT, XPointConfig};
use super::group::{Role, Transit, share};
use super::table::{BufferAvailability, UnitTable};
use crate::random::Stream;
use crate::time::{Span, Time};

/// State of one data path.
#[derive(Clone, Debug)]
pub(super) struct DataPath {
    table: UnitTable,
    /// Places of reads; those of writes follow.
    places: u32,
    /// When the unit being transferred arrives; never if there is none.
    next: Time,
    /// The unit being transferred. Not an `Option`, which would be copied in pieces.
    serving: Transit,
    /// When the next transfer can begin.
    free_at: Time,
    last_was_write: bool,
    /// Free buffers for units that are written, and their total number.
    buffers: u32,
    all_buffers: u32,
    /// Time of the shortest read, and the range up to the longest.
    read: Span,
    read_spread: Span,
    write: Span,
    turnaround: Span,
    link_ps_per_byte: u64,
    /// Parts of a unit that are transferred separately.
    parts: Parts,
    completion: Span,
    busy: Span,
    stream: Stream,
}

impl DataPath {
    /// Creates a drive's path, and one for its writes, which is used if the drive is duplex.
    pub(super) fn both(config: &XPointConfig, seed: u64) -> [DataPath; 2] {
        let mut path = DataPath::new(config, seed, config.timing.table_places);
        if !config.timing.duplex {
            let unused = DataPath::new(config, seed, 1);
            return [path, unused];
        }
        path.turnaround = Span::ZERO;
        [path.clone(), path]
    }

    fn new(config: &XPointConfig, seed: u64, places: u32) -> DataPath {
        let unit = |ps| Span::per_bytes(ps, u64::from(UNIT));
        let timing = &config.timing;
        DataPath {
            table: UnitTable::new(places),
            places,
            next: Time::NEVER,
            serving: Transit::NONE,
            free_at: Time::ZERO,
            last_was_write: false,
            buffers: timing.write_buffers,
            all_buffers: timing.write_buffers,
            read: unit(timing.read_path_ps_per_byte).saturating_sub(timing.read_spread),
            read_spread: timing.read_spread * 2,
            write: unit(timing.write_path_ps_per_byte),
            turnaround: timing.turnaround,
            link_ps_per_byte: timing.link_ps_per_byte,
            parts: config.parts(),
            completion: timing.read_completion,
            busy: Span::ZERO,
            stream: Stream::new(seed, "read path"),
        }
    }

    /// Returns when the unit being transferred arrives.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// A unit requests its transfer; `unwanted` bytes of it are not transferred.
    #[inline(always)]
    pub(super) fn arrive(&mut self, now: Time, transit: Transit, unwanted: u16) {
        let place = ((u64::from(transit.hash) * u64::from(self.places)) >> 16) as u32;
        let write = transit.role == Role::Write;
        let idle = self.next == Time::NEVER;
        if idle && self.table.is_empty() && !(write && self.buffers == 0) {
            let half = if write { self.places } else { 0 };
            self.table.pass(half + place);
            self.serve(now, transit, unwanted);
            return;
        }
        let place = match write {
            true => self.table.free_place(place, self.places..2 * self.places),
            false => place,
        };
        self.table.put(place, transit, unwanted);
        if idle {
            cold_path();
            self.begin(now);
        }
    }

    /// An idle path starts with the next unit in turn.
    #[inline(never)]
    fn begin(&mut self, now: Time) {
        self.serve_next(now);
    }

    /// Starts with the next unit in turn; a write needs a buffer.
    #[inline(always)]
    fn serve_next(&mut self, now: Time) {
        let buffers = match self.buffers {
            0 => BufferAvailability::None,
            few if few < self.all_buffers.div_ceil(2) => BufferAvailability::Few,
            _ => BufferAvailability::Many,
        };
        if let Some((transit, unwanted)) = self.table.take(buffers) {
            self.serve(now, transit, unwanted);
        }
    }

    /// The medium has written a unit at `now`: its buffer is free.
    #[inline]
    pub(super) fn written(&mut self, now: Time) {
        self.buffers += 1;
        if self.next == Time::NEVER {
            self.serve_next(now);
        }
    }

    #[inline]
    fn serve(&mut self, now: Time, transit: Transit, unwanted: u16) {
        let write = transit.role == Role::Write;
        let mut service = if write {
            self.buffers -= 1;
            self.write
        } else if self.read_spread == Span::ZERO {
            self.read
        } else {
            self.read + Span::from_ns(self.stream.uniform_below(self.read_spread.ns() + 1))
        };
        let spared = self.parts.spared(unwanted);
        if spared > 0 {
            cold_path();
            service = service - share(service, spared);
        }
        if write != self.last_was_write {
            service += self.turnaround;
            self.last_was_write = write;
        }
        self.busy += service;
        let start = self.free_at.max(now);
        self.free_at = start + service;
        if unwanted > spared {
            cold_path();
            let stays = Span::per_bytes(self.link_ps_per_byte, u64::from(unwanted - spared));
            service = service.saturating_sub(stays);
        }
        self.next = start + service;
        self.serving = Transit {
            at: self.next,
            ..transit
        };
    }

    /// Removes and returns the unit that has arrived at `now`, which must be [`DataPath::next`], and starts the next.
    #[inline]
    pub(super) fn take(&mut self, now: Time) -> Transit {
        let done = self.serving;
        self.next = Time::NEVER;
        self.serve_next(now);
        done
    }

    /// Sends the completion of a read, at `now` or after the unit being transferred.
    #[inline]
    pub(super) fn complete_read(&mut self, now: Time) {
        if self.completion > Span::ZERO {
            self.free_at = self.free_at.max(now) + self.completion;
            self.busy += self.completion;
        }
    }

    /// Discards all units that are being transferred or waiting at `now`.
    pub(super) fn clear(&mut self, now: Time) {
        self.busy = self.busy(now);
        self.table = UnitTable::new(self.places);
        self.next = Time::NEVER;
        self.serving = Transit::NONE;
        self.free_at = self.free_at.min(now);
        self.buffers = self.all_buffers;
    }

    /// Returns the time spent on units and completions, up to `now`.
    pub(super) fn busy(&self, now: Time) -> Span {
        self.busy.saturating_sub(self.free_at.since(now))
    }
}
