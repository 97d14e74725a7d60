//! A part of a command that the controller has processed.

use crate::command::CommandId;
use crate::ftl::{Page, PrecomputedSlot, UNIT};
use crate::time::{Span, Time};

/// Returns the number of 4 KiB units that a range overlaps.
#[inline]
pub(super) fn units_touched(offset: u64, bytes: u64) -> u32 {
    let unit = u64::from(UNIT);
    ((offset + bytes).div_ceil(unit) - offset / unit) as u32
}

/// A part of a command (at most the largest transfer) that the controller has processed.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct CommandSegment {
    /// When it arrives at the reader or the buffer.
    pub(in super::super) at: Time,
    pub(in super::super) id: CommandId,
    pub(in super::super) offset: u64,
    pub(in super::super) bytes: u32,
    /// When it left the controller, or when the last part of the map that it waited for was available.
    pub(in super::super) dispatched: Time,
    /// How long it has waited for the map.
    pub(in super::super) looked_up: Span,
    /// Location of its first page, as far as known when the command arrived.
    pub(in super::super) foreseen: PrecomputedSlot,
}

impl CommandSegment {
    /// Returns the offset after its last byte.
    #[inline]
    pub(in super::super) fn end(&self) -> u64 {
        self.offset + u64::from(self.bytes)
    }

    /// Returns the first and the last page that it overlaps.
    #[inline]
    pub(in super::super) fn pages(&self) -> (Page, Page) {
        let unit = u64::from(UNIT);
        let last = (self.end() - 1) / unit;
        (Page((self.offset / unit) as u32), Page(last as u32))
    }
}
