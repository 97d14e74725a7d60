//! Queue of a child: urgent writes first, and for each kind a limit of commands in flight, as in ZFS.

use alloc::collections::VecDeque;

use model::command::Command;

/// Maximum number of urgent writes in flight per queue of a child.
const URGENT: u32 = 10;
/// Maximum number of others, with few and with many dirty bytes.
const BULK: (u32, u32) = (2, 10);
/// Percentages of the maximum of dirty bytes between which that limit rises.
const BY_DIRTY: (u64, u64) = (30, 60);

/// Urgency of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Urgency {
    /// A commit waits for the write.
    Urgent,
    /// A write of a transaction group, or of a commit so large that others come first.
    Bulk,
}

/// Returns the limit of other writes per queue of a child, for `dirty` of `most` dirty bytes.
pub(super) fn bulk_limit(dirty: u64, most: u64) -> u32 {
    let (from, to) = (most * BY_DIRTY.0 / 100, most * BY_DIRTY.1 / 100);
    let above = dirty.clamp(from, to) - from;
    let more = u64::from(BULK.1 - BULK.0) * above / (to - from).max(1);
    BULK.0 + more as u32
}

/// Queue of one child.
#[derive(Clone, Debug, Default)]
pub(super) struct ChildQueue {
    urgent: VecDeque<(u32, Command)>,
    bulk: VecDeque<(u32, Command)>,
    in_flight: (u32, u32),
}

impl ChildQueue {
    /// Queues a command under its token.
    pub(super) fn push(&mut self, urgency: Urgency, token: u32, command: Command) {
        match urgency {
            Urgency::Urgent => self.urgent.push_back((token, command)),
            Urgency::Bulk => self.bulk.push_back((token, command)),
        }
    }

    /// Removes and returns the next command that may be sent, for a child with `lanes` queues.
    pub(super) fn pop(&mut self, lanes: u32, bulk_limit: u32) -> Option<(u32, Command)> {
        if self.in_flight.0 < URGENT * lanes
            && let Some(next) = self.urgent.pop_front()
        {
            self.in_flight.0 += 1;
            return Some(next);
        }
        if self.in_flight.1 < bulk_limit * lanes {
            let next = self.bulk.pop_front()?;
            self.in_flight.1 += 1;
            return Some(next);
        }
        None
    }

    /// A command of this urgency has completed.
    pub(super) fn done(&mut self, urgency: Urgency) {
        match urgency {
            Urgency::Urgent => self.in_flight.0 -= 1,
            Urgency::Bulk => self.in_flight.1 -= 1,
        }
    }

    /// Removes all commands and resets the counts.
    pub(super) fn clear(&mut self) {
        self.urgent.clear();
        self.bulk.clear();
        self.in_flight = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_urgent_go_first_and_neither_kind_takes_the_others_place() {
        let mut queue = ChildQueue::default();
        for token in 0..30 {
            queue.push(Urgency::Bulk, token, Command::write(0, 0, 4096));
            queue.push(Urgency::Urgent, 100 + token, Command::write(0, 0, 4096));
        }
        let mut sent = alloc::vec::Vec::new();
        while let Some((token, _)) = queue.pop(1, bulk_limit(0, 1000)) {
            sent.push(token);
        }
        assert_eq!(sent.len(), 12);
        assert_eq!((sent[0], sent[10], sent[11]), (100, 0, 1));
        queue.done(Urgency::Bulk);
        assert_eq!(queue.pop(1, 2).map(|it| it.0), Some(2));
    }

    #[test]
    fn more_of_the_others_are_in_flight_the_more_is_dirty() {
        let limits = [0, 300, 450, 600, 1000].map(|dirty| bulk_limit(dirty, 1000));
        assert_eq!(limits, [2, 2, 6, 10, 10]);
    }
}
