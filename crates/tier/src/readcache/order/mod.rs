//! Eviction policies: a policy is a file here, and its line in `policies!`.
//!
//! All policies skip slots that are in use. A policy may remember lines that it has evicted; it is informed which line
//! is wanted, before a slot is looked for and after one has been found.

mod arc;
mod clock;
mod links;
mod lru;
mod ring;

use arc::AdaptiveReplacement;
use clock::Clock;
use lru::Lru;
use ring::FifoHand;

/// Interface of a policy.
trait SlotOrder {
    /// Creates an order of `slots` slots for `lines` lines; a slot is in the order once it is filled.
    fn new(slots: u32, lines: u64) -> Self;

    /// The line of this slot has been used.
    fn used(&mut self, slot: u32);

    /// A line is about to be admitted.
    fn wanted(&mut self, line: u64) {
        let _ = line;
    }

    /// Returns a slot to evict, among those that are not in use; `None` if none is found quickly. `line_of` returns the
    /// line of a slot.
    fn victim(&mut self, in_use: impl Fn(u32) -> bool, line_of: impl Fn(u32) -> u64)
    -> Option<u32>;

    /// The slot now holds the line that was wanted.
    fn filled(&mut self, slot: u32);

    /// The slot is empty now.
    fn forget(&mut self, slot: u32);

    /// Drops state other than the slots.
    fn power_cut(&mut self) {}

    /// Whether empty slots are used only when their turn comes.
    const IN_TURN: bool = false;

    /// Calls `each` for the slots in the order of eviction, list by list, at most `most` of each list.
    fn oldest_first(&self, most: usize, each: impl FnMut(u32));
}

/// Defines the enums of all policies, and forwards calls to the respective policy.
macro_rules! policies {
    ($($(#[$doc:meta])* $name:ident($order:ident) = $word:literal,)*) => {
        /// Eviction policy.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub enum Policy {
            $($(#[$doc])* $name,)*
        }

        impl Policy {
            /// All policies, with their words in files and expressions.
            pub const ALL: [(&str, Policy); [$($word),*].len()] = [$(($word, Policy::$name)),*];
        }

        /// Order of the slots of a cache.
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
    /// The least recently used slot.
    #[default]
    Lru(Lru) = "lru",
    /// A slot that has not been used since the hand passed.
    Clock(Clock) = "clock",
    /// Balances slots used once and slots used again, according to evicted lines that return.
    Arc(AdaptiveReplacement) = "arc",
    /// The slot filled longest ago.
    Ring(FifoHand) = "ring",
}
