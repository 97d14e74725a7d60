//! Latency breakdown (anatomy) of a command.
//!
//! Each layer adds the parts that it causes. A layer above adds its own parts to those of the layer below, so the sum
//! is the latency seen from the top, exact to the nanosecond. A command that is split (such as a large read over many
//! dies) reports the parts of the piece that finished last, because the command waited for that piece.

use crate::time::Span;

/// Defines [`Part`] from a list of reasons, in the order in which a command meets them. Each has a short name for
/// tables and charts.
macro_rules! parts {
    ($($(#[$doc:meta])* $part:ident = $name:literal,)*) => {
        /// One reason why time passes.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Part {
            $($(#[$doc])* $part,)*
        }

        impl Part {
            /// All parts, in the order a command meets them.
            pub const ALL: [Part; Part::COUNT] = [$(Part::$part,)*];

            /// Number of parts.
            pub const COUNT: usize = [$($name,)*].len();

            /// Returns a short name for tables and charts.
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
    /// Waiting for a free submission queue entry, or for the queue's lock if cores share the queue.
    QueueSlot = "queue slot",
    /// Work of a tier: waiting for other commands that share a record, waiting for an ordering that the tier keeps, and
    /// computation.
    Tier = "tier",
    /// Delayed by a tier whose buffer is full or filling.
    Congestion = "congestion",
    /// Between the nodes of a cluster: waiting for a port, and transmission.
    Network = "network",
    /// Doorbell, command fetch and other fixed costs of the link.
    Link = "link",
    /// The controller works on the command, or the command waits for the controller.
    Controller = "controller",
    /// Another command holds the same unit of the medium, or other commands occupy all slots of a volume's backing
    /// store.
    Collision = "collision",
    /// The die or channel was busy with the read of another command.
    BehindRead = "behind a read",
    /// The die or channel was busy with a program (a write to the medium).
    BehindProgram = "behind a program",
    /// The die was busy with an erase.
    BehindErase = "behind an erase",
    /// The die was busy with reads and programs of garbage collection.
    BehindCollection = "behind garbage collection",
    /// The die was busy with patrol read, refresh or other background work.
    BehindRefresh = "behind refresh",
    /// The medium worked for this command.
    Medium = "medium",
    /// Data transfer over channel, buffer and link, or waiting for them.
    Transfer = "transfer",
    /// The write buffer was full.
    BufferFull = "write buffer full",
    /// Delayed by the power governor, the temperature, write protection at end of life, or a volume's limits.
    Throttle = "throttle",
    /// Interrupt or poll, and the host's work on completion.
    HostCompletion = "host completion",
}

/// Breakdown of one latency: one span per [`Part`].
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

    /// Sets a part to zero and returns its previous value.
    pub fn take(&mut self, part: Part) -> Span {
        core::mem::take(&mut self.0[part as usize])
    }

    /// Appends the parts of a later step. A command that waits for another of its own steps (for example, an old unit
    /// is read, then a record is written) takes the time of both.
    #[inline]
    pub fn append(&mut self, next: &Anatomy) {
        for (span, more) in self.0.iter_mut().zip(&next.0) {
            *span += *more;
        }
    }

    /// Returns the time of one part.
    #[inline]
    pub fn get(&self, part: Part) -> Span {
        self.0[part as usize]
    }

    /// Returns the whole latency.
    #[inline]
    pub fn total(&self) -> Span {
        let mut sum = 0;
        for span in &self.0 {
            sum += span.ns();
        }
        Span::from_ns(sum)
    }

    /// Returns the last `span` of this latency, as if its parts had passed in the order of [`Part::ALL`]. This is the
    /// remaining time of an outstanding command, for a command that starts to wait for it. Returns the whole latency if
    /// it is not longer than `span`.
    #[must_use]
    pub fn last(&self, mut span: Span) -> Anatomy {
        let mut last = Anatomy::ZERO;
        for (taken, part) in last.0.iter_mut().zip(&self.0).rev() {
            *taken = span.min(*part);
            span = span - *taken;
        }
        last
    }

    /// Returns the parts in the order of [`Part::ALL`].
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
