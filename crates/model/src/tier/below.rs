//! What a tier sees of a pool whose drives do not run: the bytes below it, and what it reports of them.
//!
//! [`Images`] are the members, [`Below`] the children of one tier. [`Damage`] is why a tier cannot be used, [`Found`] what was
//! put right. Left out: how a pool is formatted and recovered ([`super::offline`]) and how old copies are found
//! ([`super::openings`]).

use core::fmt;

use super::Child;
use crate::data::{Unreadable, Unwritable};
use crate::device::Range;

/// An opening of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Opening {
    /// One more than that of the opening before. 0: the pool was made, and has not been opened.
    pub number: u64,
    /// No other opening has it.
    pub mark: u64,
}

/// What a slice's label says of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It took part in the last opening, or nothing says that it did not.
    Current,
    /// It took part in the last opening, and this is a copy from before: from so many openings ago.
    Old(u64),
    /// It was away in the last opening, and in the ones before, so many.
    Away(u64),
    /// It has no label, and should have one.
    Bare,
}

/// The bytes of a pool's members.
pub trait Images {
    /// Whether the member is there.
    fn present(&self, member: u16) -> bool;

    /// Reads from a member that is there.
    ///
    /// # Errors
    /// If a sector of the range cannot be read.
    fn read(&mut self, member: u16, at: u64, into: &mut [u8]) -> Result<(), Unreadable>;

    /// Writes to a member that is there. It is durable after [`Images::sync`].
    ///
    /// # Errors
    /// If it cannot be kept.
    fn write(&mut self, member: u16, at: u64, data: &[u8]) -> Result<(), Unwritable>;

    /// What was written to the member is durable.
    ///
    /// # Errors
    /// If it is not.
    fn sync(&mut self, member: u16) -> Result<(), Unwritable>;
}

/// The same of a tier's children, by their own addresses.
pub trait Below {
    /// Whether it is there: of a tier, whether it was found.
    fn present(&self, child: Child) -> bool;

    /// Reads from a child that is there.
    ///
    /// # Errors
    /// If a sector of the range cannot be read.
    fn read(&mut self, child: Child, at: u64, into: &mut [u8]) -> Result<(), Unreadable>;

    /// Writes to a child that is there. It is durable after [`Below::sync`].
    ///
    /// # Errors
    /// If it cannot be kept.
    fn write(&mut self, child: Child, at: u64, data: &[u8]) -> Result<(), Unwritable>;

    /// Whether what the child gives for a range depends on where below it is read from.
    fn is_ambiguous(&mut self, child: Child, at: u64, bytes: u32) -> bool;

    /// What was written to the child is durable.
    ///
    /// # Errors
    /// If it is not.
    fn sync(&mut self, child: Child) -> Result<(), Unwritable>;

    /// Whether the child is a tier.
    fn is_tier(&self, child: Child) -> bool;

    /// Whether the child took part in the last opening of the pool: of a tier, always, because those that did not are not
    /// found.
    fn standing(&self, child: Child) -> Standing;

    /// The number of the last opening of the pool, if it keeps count. The next one has the number after it.
    fn opening(&self) -> Option<u64>;

    /// Whether what may be lost for good is accepted, so that a tier opens with what is left.
    fn accepts_loss(&self) -> bool;

    /// What of the tier's own addresses is used, if that is known.
    fn used(&self) -> Option<&[Range]>;

    /// Tells what was found.
    fn found(&mut self, what: Found);
}

/// Why a tier is not to be had from what is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// This child is needed, and is not there.
    Missing(Child),
    /// Nothing says what the children are: they were never made a tier, or it is all lost.
    Unlabelled,
    /// This child belongs to another pool.
    Foreign(Child),
    /// This child has another place in the tier.
    Misplaced(Child),
    /// These two went on without each other, and each has what the other has not.
    Apart(Child, Child),
    /// This child does not say of what it is a part.
    Bare(Child),
    /// This child is an old copy: the others have gone on with a newer one.
    Outdated(Child),
    /// This child has not what it is said to have.
    Unfound(Child),
    /// This child does not take what has to be written.
    Unwritable(Child),
    /// This child is out, and writes were under way: what others say that it had may be wrong.
    Hole(Child),
    /// It has lost what was durable.
    Lossy,
    /// These two members went on without each other: the pool was opened with each of them alone.
    Diverged(u16, u16),
    /// All that is there is older than what was noted beside it, by so many openings.
    AllOutdated(u64),
    /// What was noted beside the members is of a pool that went on without them.
    OtherLife,
    /// Tiers of this kind cannot be found on their members yet.
    Unsupported,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Missing(child) => write!(f, "child {child} is needed and not there"),
            Damage::Unlabelled => f.write_str("no child has a label"),
            Damage::Foreign(child) => write!(f, "child {child} belongs to another pool"),
            Damage::Misplaced(child) => write!(f, "child {child} has another place"),
            Damage::Apart(one, two) => write!(
                f,
                "children {one} and {two} went on without each other: which has the data must be said"
            ),
            Damage::Bare(child) => write!(f, "child {child} has no label that can be read"),
            Damage::Outdated(child) => write!(
                f,
                "child {child} is older than what the others have gone on with"
            ),
            Damage::Unfound(child) => {
                write!(f, "child {child} has not what its own tables or log say")
            }
            Damage::Unwritable(child) => write!(f, "child {child} cannot be written"),
            Damage::Hole(child) => write!(
                f,
                "child {child} is out, and writes were under way: what it had cannot be computed for certain"
            ),
            Damage::Lossy => f.write_str("it has lost what was durable"),
            Damage::Diverged(one, two) => {
                write!(f, "members {one} and {two} went on without each other")
            }
            Damage::AllOutdated(missed) => write!(
                f,
                "all members are an old copy: the pool was opened {missed} times since"
            ),
            Damage::OtherLife => f.write_str("the members went on without this folder"),
            Damage::Unsupported => f.write_str("tiers of this kind hold no data yet"),
        }
    }
}

/// Something that was not as after an orderly end, and was put right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// A leg that counts as in sync is not there: the others go on without it.
    Absent(Child),
    /// A child is an old copy, from so many openings of the pool ago. 0: it does not say from which.
    Behind(Child, u64),
    /// A child was away in the last openings of the pool, so many.
    Away(Child, u64),
    /// A child was not to be had, for this reason, and was made anew: it gets what it lacks while the pool is in use.
    Renewed(Child, Damage),
    /// A leg had missed writes; so many regions were copied to it. None where some of it cannot be read any more: then it
    /// stays out.
    Stale(Child, Option<u32>),
    /// So many regions were being written, and legs were made alike there.
    Unclean(u32),
    /// A ring of records was read back.
    Replayed {
        /// The number of the last record that was found, and how many that are.
        through: u64,
        /// See `through`.
        records: u64,
        /// Records after the first gap, which are dropped. None of them was acknowledged, unless [`Found::Lost`] is found too.
        dropped: u64,
        /// How often the ring has been written through, whole.
        rounds: u64,
    },
    /// An intent log was read from the last group on main, and what later groups had was done again.
    Logged {
        /// The number of that group.
        group: u64,
        /// How many log blocks were found, and how many writes of them were done again.
        blocks: u64,
        /// See `blocks`.
        writes: u64,
        /// Blocks after the first gap, which are dropped. None of them was acknowledged, unless [`Found::Lost`] is found too.
        dropped: u64,
    },
    /// So many records at least are missing that were acknowledged as durable. All that came after the first of them is
    /// lost; nothing is written any more.
    Lost(u64),
}
