//! A part of a command on its way through the controller.

use crate::command::CommandId;
use crate::ftl::{Foreseen, Page, UNIT};
use crate::time::{Span, Time};

/// A part of a command (at most the largest transfer) that the controller has dealt with.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Segment {
    /// When it is with the reader or the buffer.
    pub(in super::super) at: Time,
    pub(in super::super) id: CommandId,
    pub(in super::super) offset: u64,
    pub(in super::super) bytes: u32,
    /// When it left the controller, or the last that it waited for of the map was there.
    pub(in super::super) dispatched: Time,
    /// How long it has waited for the map.
    pub(in super::super) looked_up: Span,
    /// Where its first page is, as far as that was known when the command came.
    pub(in super::super) foreseen: Foreseen,
}

impl Segment {
    /// The byte behind it.
    #[inline]
    pub(in super::super) fn end(&self) -> u64 {
        self.offset + u64::from(self.bytes)
    }

    /// The first page it touches, and the last.
    #[inline]
    pub(in super::super) fn pages(&self) -> (Page, Page) {
        let unit = u64::from(UNIT);
        let last = (self.end() - 1) / unit;
        (Page((self.offset / unit) as u32), Page(last as u32))
    }
}
