//! Which slot of a cache is given up next: a policy is a file here, and its line in `policies!`.
//!
//! All pass over slots that are in use. A policy may remember lines that it has given up; it is told which line is wanted,
//! before a slot is looked for and after one has been found.

mod arc;
mod clock;
mod links;
mod lru;
mod ring;

use arc::AdaptiveReplacement;
use clock::Clock;
use lru::Lru;
use ring::Ring;

/// How a policy is asked.
trait SlotOrder {
    /// An order of so many slots for so many lines, in which no slot is until it is filled.
    fn new(slots: u32, lines: u64) -> Self;

    /// The line of this slot has been used now.
    fn used(&mut self, slot: u32);

    /// A line is about to be taken in.
    fn wanted(&mut self, line: u64) {
        let _ = line;
    }

    /// Which slot to give up for it, of those that are not in use; `None` if none is found soon. `line_of` tells whose it is.
    fn victim(&mut self, in_use: impl Fn(u32) -> bool, line_of: impl Fn(u32) -> u64)
    -> Option<u32>;

    /// The slot holds the line that was wanted from now on.
    fn filled(&mut self, slot: u32);

    /// The slot holds nothing any more.
    fn forget(&mut self, slot: u32);

    /// What it remembers besides slots is gone.
    fn power_cut(&mut self) {}

    /// Whether slots that hold nothing are taken only when their turn comes.
    const IN_TURN: bool = false;

    /// Slots from the one that is given up first, of one list after the other, at most so many of each.
    fn oldest_first(&self, most: usize, each: impl FnMut(u32));
}

/// Makes the enums of all policies, and passes on what is asked of them.
macro_rules! policies {
    ($($(#[$doc:meta])* $name:ident($order:ident) = $word:literal,)*) => {
        /// Which slot is given up.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub enum Policy {
            $($(#[$doc])* $name,)*
        }

        impl Policy {
            /// All of them, with the words of files and expressions.
            pub const ALL: [(&str, Policy); [$($word),*].len()] = [$(($word, Policy::$name)),*];
        }

        /// The order of the slots of a cache.
        #[derive(Clone, Debug)]
        pub(super) enum Order {
            $($name($order),)*
        }

        impl Order {
            pub(super) fn new(policy: Policy, slots: u32, lines: u64) -> Order {
                match policy { $(Policy::$name => Order::$name($order::new(slots, lines)),)* }
            }
            #[inline]
            pub(super) fn used(&mut self, slot: u32) {
                match self { $(Order::$name(it) => it.used(slot),)* }
            }
            pub(super) fn wanted(&mut self, line: u64) {
                match self { $(Order::$name(it) => it.wanted(line),)* }
            }
            pub(super) fn victim(
                &mut self,
                in_use: impl Fn(u32) -> bool,
                line_of: impl Fn(u32) -> u64,
            ) -> Option<u32> {
                match self { $(Order::$name(it) => it.victim(in_use, line_of),)* }
            }
            pub(super) fn filled(&mut self, slot: u32) {
                match self { $(Order::$name(it) => it.filled(slot),)* }
            }
            pub(super) fn forget(&mut self, slot: u32) {
                match self { $(Order::$name(it) => it.forget(slot),)* }
            }
            pub(super) fn power_cut(&mut self) {
                match self { $(Order::$name(it) => it.power_cut(),)* }
            }
            pub(super) fn is_in_turn(&self) -> bool {
                match self { $(Order::$name(_) => $order::IN_TURN,)* }
            }
            pub(super) fn oldest_first(&self, most: usize, each: impl FnMut(u32)) {
                match self { $(Order::$name(it) => it.oldest_first(most, each),)* }
            }
        }
    };
}

policies! {
    /// The one used longest ago.
    #[default]
    Lru(Lru) = "lru",
    /// One not used since the hand came by.
    Clock(Clock) = "clock",
    /// Between those used once and those used again, as what comes back tells.
    Arc(AdaptiveReplacement) = "arc",
    /// The one filled longest ago.
    Ring(Ring) = "ring",
}
