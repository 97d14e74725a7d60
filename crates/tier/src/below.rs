//! Access of a tier to an offline pool: the data below the tier, and the reports of its recovery.
//!
//! [`Images`] are the members; [`ChildImages`] is the children of one tier. [`Damage`] is a reason why a tier cannot be used;
//! [`RecoveryFinding`] is a repair. Not here: how a pool is formatted and recovered ([`super::offline`]) and how old copies are
//! detected ([`super::openings`]).

use core::fmt;

use model::data::{Unreadable, Unwritable};
use model::device::Range;

use super::Child;

/// An opening of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Opening {
    /// Number of the opening: one more than that of the previous opening. 0: the pool was created and has not been
    /// opened.
    pub number: u64,
    /// Random mark, different from that of all other openings.
    pub mark: u64,
}

/// State of a slice according to its label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceState {
    /// The slice took part in the last opening, or no label contradicts that.
    Current,
    /// The slice took part in the last opening, but this is an old copy of it, by this number of openings.
    Old(u64),
    /// The slice was absent in the last openings, this number of them.
    Away(u64),
    /// The slice has no label, but should have one.
    Bare,
}

/// Access to the data of a pool's members.
pub trait Images {
    /// Whether the member is present.
    fn present(&self, member: u16) -> bool;

    /// Reads from a member that is present.
    ///
    /// # Errors
    /// If a sector of the range cannot be read.
    fn read(&mut self, member: u16, at: u64, into: &mut [u8]) -> Result<(), Unreadable>;

    /// Writes to a member that is present. The data is durable after [`Images::sync`].
    ///
    /// # Errors
    /// If the data cannot be stored.
    fn write(&mut self, member: u16, at: u64, data: &[u8]) -> Result<(), Unwritable>;

    /// Makes the data written to the member durable.
    ///
    /// # Errors
    /// If that fails.
    fn sync(&mut self, member: u16) -> Result<(), Unwritable>;
}

/// Access to the data of a tier's children, by their own addresses.
pub trait ChildImages {
    /// Whether the child is present; for a tier, whether it was recovered.
    fn present(&self, child: Child) -> bool;

    /// Reads from a child that is present.
    ///
    /// # Errors
    /// If a sector of the range cannot be read.
    fn read(&mut self, child: Child, at: u64, into: &mut [u8]) -> Result<(), Unreadable>;

    /// Writes to a child that is present. The data is durable after [`ChildImages::sync`].
    ///
    /// # Errors
    /// If the data cannot be stored.
    fn write(&mut self, child: Child, at: u64, data: &[u8]) -> Result<(), Unwritable>;

    /// Whether the child's data of a range depends on which copy below it is read.
    fn is_ambiguous(&mut self, child: Child, at: u64, bytes: u32) -> bool;

    /// Makes the data written to the child durable.
    ///
    /// # Errors
    /// If that fails.
    fn sync(&mut self, child: Child) -> Result<(), Unwritable>;

    /// Whether the child is a tier.
    fn is_tier(&self, child: Child) -> bool;

    /// Returns the state of the child with respect to the last opening of the pool. A recovered tier always took part
    /// in it, because tiers that did not are not recovered.
    fn standing(&self, child: Child) -> SliceState;

    /// Returns the number of the last opening of the pool, if the pool numbers them. The next opening has the next
    /// number.
    fn opening(&self) -> Option<u64>;

    /// Returns the children that had all acknowledged data when the pool ended, as noted outside of the pool, one bit
    /// each; all bits if that is unknown.
    fn noted(&self) -> u32;

    /// Whether possible data loss is accepted, so that a tier opens with the remaining children.
    fn accepts_loss(&self) -> bool;

    /// Returns the used ranges of the tier's own addresses, if known.
    fn used(&self) -> Option<&[Range]>;

    /// Reports a finding.
    fn found(&mut self, what: RecoveryFinding);
}

/// Reason why a tier cannot be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// This child is required and missing.
    Missing(Child),
    /// The children have no labels: the tier was never formatted, or all labels are lost.
    Unlabelled,
    /// This child belongs to another pool.
    Foreign(Child),
    /// This child has another position in the tier.
    Misplaced(Child),
    /// Two children were used without each other, and each has data that the other lacks.
    Apart(Child, Child),
    /// This child has no label that identifies its tier.
    Bare(Child),
    /// This child is an old copy: the other children have newer data.
    Outdated(Child),
    /// This child has missed writes, according to the note outside of the pool, and no child that has them can be used.
    Behind(Child),
    /// This child lacks data that it should have.
    Unfound(Child),
    /// This child cannot be written.
    Unwritable(Child),
    /// This child is out, and writes were in progress: data reconstructed from other children may be wrong (write
    /// hole).
    Hole(Child),
    /// The tier has lost durable data.
    Lossy,
    /// Two members were used without each other: the pool was opened with each of them alone.
    Diverged(u16, u16),
    /// All members are older than the last opening noted outside of the pool, by this number of openings.
    AllOutdated(u64),
    /// The opening noted outside of the pool belongs to a pool that was used without these members.
    OtherLife,
    /// Recovery of this kind of tier is not supported yet.
    Unsupported,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Missing(child) => write!(f, "child {child} is required and missing"),
            Damage::Unlabelled => f.write_str("no child has a label"),
            Damage::Foreign(child) => write!(f, "child {child} belongs to another pool"),
            Damage::Misplaced(child) => write!(f, "child {child} belongs to another position"),
            Damage::Apart(one, two) => write!(
                f,
                "children {one} and {two} diverged: remove the one whose data is not wanted"
            ),
            Damage::Bare(child) => write!(f, "child {child} has no readable label"),
            Damage::Outdated(child) => write!(f, "child {child} is older than the other children"),
            Damage::Behind(child) => write!(
                f,
                "child {child} has missed writes, and no child that has them can be used"
            ),
            Damage::Unfound(child) => {
                write!(
                    f,
                    "child {child} does not contain the data that its own tables or log list"
                )
            }
            Damage::Unwritable(child) => write!(f, "child {child} cannot be written"),
            Damage::Hole(child) => write!(
                f,
                "child {child} is absent, and writes were in flight: its data cannot be computed with certainty"
            ),
            Damage::Lossy => f.write_str("it has lost durable data"),
            Damage::Diverged(one, two) => {
                write!(f, "members {one} and {two} diverged")
            }
            Damage::AllOutdated(missed) => write!(
                f,
                "all members are old copies: the pool was opened {missed} times since"
            ),
            Damage::OtherLife => f.write_str("the members were used without this folder"),
            Damage::Unsupported => f.write_str("tiers of this kind cannot store data yet"),
        }
    }
}

/// A deviation from the state after an orderly shutdown that was repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryFinding {
    /// A mirror member that counts as in sync is missing: the tier continues without it.
    Absent(Child),
    /// A child is an old copy, by this number of openings of the pool. 0: the number is unknown.
    Behind(Child, u64),
    /// A child was absent in this number of last openings of the pool.
    Away(Child, u64),
    /// A child could not be opened, for this reason, and was formatted again: it is resynced while the pool is in use.
    Renewed(Child, Damage),
    /// A mirror member had missed writes; this number of regions was copied to it. `None` if some of the data can no
    /// longer be read: then the member stays out.
    Stale(Child, Option<u32>),
    /// This number of regions was being written; the mirror members were made identical there.
    Unclean(u32),
    /// A ring of records was replayed.
    Replayed {
        /// Number of the last record found, and the number of records.
        through: u64,
        /// See `through`.
        records: u64,
        /// Number of records after the first gap, which are dropped. None of them was acknowledged, unless
        /// [`RecoveryFinding::Lost`] is reported too.
        dropped: u64,
        /// How often the ring has been written completely.
        rounds: u64,
    },
    /// An intent log was replayed: later writes than those of the last group on the main pool were applied again.
    Logged {
        /// Number of that group.
        group: u64,
        /// Number of log blocks found, and how many of their writes were applied again.
        blocks: u64,
        /// See `blocks`.
        writes: u64,
        /// Number of log blocks after the first gap, which are dropped. None of them was acknowledged, unless
        /// [`RecoveryFinding::Lost`] is reported too.
        dropped: u64,
    },
    /// At least this number of records is missing that were acknowledged as durable. All data after the first of them
    /// is lost; the tier no longer accepts writes.
    Lost(u64),
    /// A block of this child cannot be read that may hold the next record of a ring or log, or a newer root. Writes that
    /// were acknowledged as durable may be missing. The tier accepts no writes, unless possible loss is accepted
    /// ([`ChildImages::accepts_loss`]): then it continues as if the block had never been written.
    Unread(Child),
}

impl RecoveryFinding {
    /// Whether data that was acknowledged as durable is lost, or may be.
    pub fn is_loss(&self) -> bool {
        matches!(self, RecoveryFinding::Lost(_) | RecoveryFinding::Unread(_))
    }
}
