//! Where a command's time went.
//!
//! Each layer adds the parts it causes; a layer above adds its own to those of the layer below, so the sum is the
//! latency seen from the top, to the nanosecond. A command that is split (a large read over many dies) reports the
//! parts of the piece that finished last, which is the one everybody waited for.

use crate::time::Span;

/// Makes [`Part`] of a list of reasons, in the order a command meets them: each with its short name for tables and charts.
macro_rules! parts {
    ($($(#[$doc:meta])* $part:ident = $name:literal,)*) => {
        /// One reason for which time passes.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Part {
            $($(#[$doc])* $part,)*
        }

        impl Part {
            /// All parts, in the order a command meets them.
            pub const ALL: [Part; Part::COUNT] = [$(Part::$part,)*];

            /// How many parts there are.
            pub const COUNT: usize = [$($name,)*].len();

            /// A short name for tables and charts.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Part::$part => $name,)*
                }
            }
        }
    };
}

parts! {
    /// The job thread was busy with other I/O before it could issue this one. fio's latencies begin after it.
    ThreadBusy = "thread busy",
    /// System call, block layer and driver on the way down.
    HostSubmission = "host submission",
    /// Waiting for a place in a submission queue, or for its lock when cores share it.
    QueueSlot = "queue slot",
    /// A tier's own work: waiting for others to share a record, for an order that it keeps, for what it computes.
    Tier = "tier",
    /// Held back by a tier whose buffer is full or filling.
    Congestion = "congestion",
    /// Between the nodes of a cluster: waiting for a port, and crossing.
    Network = "network",
    /// Doorbell, command fetch and other fixed costs of the link.
    Link = "link",
    /// The controller works on the command, or the command waits for the controller.
    Controller = "controller",
    /// Another command holds the same unit of the medium, or others have all places of a volume's store.
    Collision = "collision",
    /// The die or channel was busy with somebody else's read.
    BehindRead = "behind a read",
    /// The die or channel was busy with a program (a write to the medium).
    BehindProgram = "behind a program",
    /// The die was busy with an erase.
    BehindErase = "behind an erase",
    /// The die was busy with garbage collection's reads and programs.
    BehindCollection = "behind garbage collection",
    /// The die was busy with patrol, refresh or another background duty.
    BehindRefresh = "behind refresh",
    /// The medium worked for this command.
    Medium = "medium",
    /// Data on its way over channel, buffer and link, or waiting for them.
    Transfer = "transfer",
    /// The write buffer was full.
    BufferFull = "write buffer full",
    /// Held back: power governor, temperature, write protection at the end of life, or a volume's limits.
    Throttle = "throttle",
    /// Interrupt or poll, and the host's work on the way up.
    HostCompletion = "host completion",
}

/// A latency taken apart: one span per [`Part`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Anatomy([Span; Part::COUNT]);

impl Anatomy {
    /// All parts zero.
    pub const ZERO: Anatomy = Anatomy([Span::ZERO; Part::COUNT]);

    /// Adds a span to a part.
    #[inline]
    pub fn add(&mut self, part: Part, span: Span) {
        self.0[part as usize] += span;
    }

    /// Takes a part out: what it was.
    pub fn take(&mut self, part: Part) -> Span {
        core::mem::take(&mut self.0[part as usize])
    }

    /// What came after this, step upon step: a command that had to wait for another of its own (an old unit is read, then
    /// a record written) took both.
    #[inline]
    pub fn append(&mut self, next: &Anatomy) {
        for (span, more) in self.0.iter_mut().zip(&next.0) {
            *span += *more;
        }
    }

    /// The time of one part.
    #[inline]
    pub fn get(&self, part: Part) -> Span {
        self.0[part as usize]
    }

    /// The whole latency.
    #[inline]
    pub fn total(&self) -> Span {
        let mut sum = 0;
        for span in &self.0 {
            sum += span.ns();
        }
        Span::from_ns(sum)
    }

    /// The last so much of it, as if its parts had come in the order of [`Part::ALL`]: what is left of a command for who
    /// begins to wait for it while it is under way. All of it if it is not longer.
    #[must_use]
    pub fn last(&self, mut span: Span) -> Anatomy {
        let mut last = Anatomy::ZERO;
        for (taken, part) in last.0.iter_mut().zip(&self.0).rev() {
            *taken = span.min(*part);
            span = span - *taken;
        }
        last
    }

    /// The parts in the order of [`Part::ALL`].
    pub fn parts(&self) -> &[Span; Part::COUNT] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_in_sequence_take_the_time_of_both() {
        let mut first = Anatomy::ZERO;
        first.add(Part::Link, Span::from_us(2));
        first.add(Part::Medium, Span::from_us(5));
        let mut second = Anatomy::ZERO;
        second.add(Part::Medium, Span::from_us(7));
        second.add(Part::Transfer, Span::from_us(1));
        first.append(&second);
        assert_eq!(first.total(), Span::from_us(15));
        assert_eq!(first.get(Part::Medium), Span::from_us(12));
    }

    #[test]
    fn the_last_of_a_command_is_what_it_met_last() {
        let mut whole = Anatomy::ZERO;
        whole.add(Part::Link, Span::from_us(2));
        whole.add(Part::Medium, Span::from_us(5));
        whole.add(Part::Transfer, Span::from_us(1));
        let last = whole.last(Span::from_us(3));
        assert_eq!(last.total(), Span::from_us(3));
        assert_eq!(last.get(Part::Medium), Span::from_us(2));
        assert_eq!(whole.last(Span::from_us(9)), whole);
    }
}
