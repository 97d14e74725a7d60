//! Bugs that the checker of crashes must find: each is one line of a tier left out or changed. They exist only in tests (feature
//! `planted`); without it nothing of this is compiled.

#[cfg(feature = "planted")]
use core::sync::atomic::{AtomicU8, Ordering};

/// A bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Bug {
    /// Mirror: a write is acknowledged when the first leg has it.
    AcknowledgesEarly = 1,
    /// Mirror: a write that a leg has missed is acknowledged before the labels of the others say so.
    AcknowledgesUnlabelled,
    /// Mirror: after a restart every leg with a label counts as in sync.
    AcceptsStaleLegs,
    /// Mirror: reads go to legs that are out, too.
    ReadsStaleLegs,
    /// Mirror: after a crash legs stay as they are.
    LeavesLegsUnlike,
    /// Mirror: a flush goes to the first leg only.
    FlushesOneLeg,
    /// Mirror: a write does not wait for the mark of its region.
    MarksTooLate,
    /// Mirror: marks go without a flush of the legs.
    UnmarksUnflushed,
    /// Mirror: a copy does not wait for writes to its place, nor they for it.
    CopiesOverWrites,
    /// Mirror: a flush passes by the leg that is being copied to.
    FlushPassesTheCopy,
    /// Mirror: writes that overlap are on their way at one time.
    OverlapsWrites,
    /// Write-back cache: a write is acknowledged when its record is sent.
    AcknowledgesSent,
    /// Write-back cache: a record that is written is acknowledged though one before it is not.
    AcknowledgesOutOfOrder,
    /// Write-back cache: records are written without force unit access, and acknowledged as durable.
    RecordsNotThrough,
    /// Write-back cache: the tail moves before the capacity tier is flushed.
    TailBeforeFlush,
    /// Write-back cache: the tail moves past what was overwritten by records that no flush has made durable.
    TailBeforeRecords,
    /// Write-back cache: the superblock is left in the cache's volatile buffer.
    SuperblockNotThrough,
    /// Write-back cache: segments are written again before the superblock is there.
    ReusesBeforeSuperblock,
    /// Write-back cache: segments are written again while somebody reads from them.
    ReusesUnderReads,
    /// Write-back cache: what was overwritten while it was destaged counts as destaged in its newest form.
    ForgetsOverwritten,
    /// Write-back cache: recovery believes a header without looking at the data behind it.
    BelievesHeaders,
    /// Write-back cache: recovery ends at the first gap and does not look beyond it.
    CutsSilently,
    /// Write-back cache: recovery does not do trims again.
    ForgetsTrims,
    /// Write-back cache: what goes past the buffer and what is destaged are written to one place at one time.
    PassesDestaging,
    /// Write-back cache: what goes past the buffer may still be in a volatile one when the ring says that it is there.
    PassesVolatile,
    /// Write-back cache: what goes past the buffer is not noted in the ring.
    PassesUnrecorded,
    /// Write-back cache: recovery trims again what was written past the buffer since.
    TrimsWhatPassed,
    /// Intent log: a log block is acknowledged when it is written, though its log is not flushed.
    LogNotFlushed,
    /// Intent log: log blocks are acknowledged in the order in which they come back.
    LogOutOfOrder,
    /// Intent log: a log block does not wait for the records on main that it names.
    NamesUnwritten,
    /// Intent log: the room of a group's log blocks is used again before the group is on main.
    LogFreedEarly,
    /// Intent log: where records were before is used again before their group is on main.
    RecordsFreedEarly,
    /// Intent log: the root is written before what it points to is durable.
    RootBeforeRecords,
    /// Intent log: a group counts as on main before its root is durable.
    RootNotFlushed,
    /// Intent log: each root is written over the one before.
    RootInPlace,
    /// Intent log: recovery does again what is on main with its group, and newer there.
    ReplaysOldGroups,
    /// Intent log: recovery believes a log block without looking at its data.
    BelievesBlocks,
    /// Intent log: recovery goes on behind a log block that is missing.
    ReplaysPastGaps,
    /// Intent log: recovery takes up log blocks of an earlier life.
    ReplaysOtherLives,
    /// Intent log: recovery writes over the log before what it has done again is on main.
    ReplaysOverTheLog,
    /// Intent log: recovery does not tell that log blocks are missing which were durable.
    MissesSilently,
    /// All tiers: a member that was away in the last opening counts as one that was there.
    AcceptsOldCopies,
    /// All tiers: members that went on without each other are taken together.
    AcceptsSplitBrain,
    /// Mirror: what a leg could not read is written back over a write in flight.
    RepairsOverWrites,
    /// Mirror: of each marked region the first chunk alone is copied to a leg that has returned.
    CopiesFirstChunks,
    /// Mirror: a leg that has returned counts as in sync after the first chunk.
    CopiesOneRegion,
    /// Mirror: reads go to the leg that is being copied to.
    ReadsWhileCopying,
    /// Mirror: trims go to the first leg only.
    TrimsOneLeg,
    /// Mirror: what one leg cannot read is not read from another.
    ReadsOneLegOnly,
    /// Mirror: a leg that has failed a write counts as in sync.
    KeepsFailedLegs,
    /// Mirror: after a crash the first 4 KiB of a marked region alone are made alike.
    AlikeFirstPieces,
    /// Stripe: a flush goes to the first child only.
    StripeFlushesOneChild,
    /// Stripe: each piece of a write has the data of the first.
    StripeRepeatsData,
    /// Stripe: a trim goes to the first child only.
    StripeTrimsOneChild,
    /// Concatenation: each piece of a write has the data of the first.
    ConcatRepeatsData,
    /// Concatenation: a flush goes to the first child only.
    ConcatFlushesOneChild,
    /// Write-back cache: reads come from the capacity tier, whatever the buffer holds.
    ReadsPastTheBuffer,
    /// Write-back cache: a write of a part of a block is merged with what the capacity tier has.
    MergesPastTheBuffer,
    /// Write-back cache: the capacity tier is told of a trim while a write of destaging is on its way there.
    TrimsWhileDestaging,
    /// Write-back cache: what the buffer holds of a trimmed range stays there.
    RemembersTrimmed,
    /// Write-back cache: recovery begins at the oldest superblock.
    BelievesOldSuperblock,
    /// Intent log: a write that fills a log block is cut inside a sector, and recovery takes such a block for damaged.
    LogCutsSectors,
    /// Mirror: what the tier above writes while it recovers is not marked.
    RecoversUnmarked,
    /// Array with parity: the factor of a column of data in Q is another's.
    WrongCoefficient,
    /// Array with parity: what was overwritten in part stays in parity.
    KeepsOldInParity,
    /// Array with parity: a write of part of a stripe leaves parity as it is.
    ParityNotUpdated,
    /// Array with parity: a write does not wait for the mark of its stripe.
    MarksStripesTooLate,
    /// Array with parity: reads go to children that have missed writes, too.
    ReadsStaleColumns,
    /// Array with parity: after a crash parity stays as it is.
    LeavesParity,
    /// Array with parity: of what a child has missed each fourth stripe is left out.
    SkipsStripes,
    /// Array with parity: it opens with a child out though writes were under way.
    OpensOverTheHole,
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 71] = [
        Bug::AcknowledgesEarly,
        Bug::AcknowledgesUnlabelled,
        Bug::AcceptsStaleLegs,
        Bug::ReadsStaleLegs,
        Bug::LeavesLegsUnlike,
        Bug::FlushesOneLeg,
        Bug::MarksTooLate,
        Bug::UnmarksUnflushed,
        Bug::CopiesOverWrites,
        Bug::FlushPassesTheCopy,
        Bug::OverlapsWrites,
        Bug::AcknowledgesSent,
        Bug::AcknowledgesOutOfOrder,
        Bug::RecordsNotThrough,
        Bug::TailBeforeFlush,
        Bug::TailBeforeRecords,
        Bug::SuperblockNotThrough,
        Bug::ReusesBeforeSuperblock,
        Bug::ReusesUnderReads,
        Bug::ForgetsOverwritten,
        Bug::BelievesHeaders,
        Bug::CutsSilently,
        Bug::ForgetsTrims,
        Bug::PassesDestaging,
        Bug::PassesVolatile,
        Bug::PassesUnrecorded,
        Bug::TrimsWhatPassed,
        Bug::LogNotFlushed,
        Bug::LogOutOfOrder,
        Bug::NamesUnwritten,
        Bug::LogFreedEarly,
        Bug::RecordsFreedEarly,
        Bug::RootBeforeRecords,
        Bug::RootNotFlushed,
        Bug::RootInPlace,
        Bug::ReplaysOldGroups,
        Bug::BelievesBlocks,
        Bug::ReplaysPastGaps,
        Bug::ReplaysOtherLives,
        Bug::ReplaysOverTheLog,
        Bug::MissesSilently,
        Bug::AcceptsOldCopies,
        Bug::AcceptsSplitBrain,
        Bug::RepairsOverWrites,
        Bug::CopiesFirstChunks,
        Bug::CopiesOneRegion,
        Bug::ReadsWhileCopying,
        Bug::TrimsOneLeg,
        Bug::ReadsOneLegOnly,
        Bug::KeepsFailedLegs,
        Bug::AlikeFirstPieces,
        Bug::StripeFlushesOneChild,
        Bug::StripeRepeatsData,
        Bug::StripeTrimsOneChild,
        Bug::ConcatRepeatsData,
        Bug::ConcatFlushesOneChild,
        Bug::ReadsPastTheBuffer,
        Bug::MergesPastTheBuffer,
        Bug::TrimsWhileDestaging,
        Bug::RemembersTrimmed,
        Bug::BelievesOldSuperblock,
        Bug::LogCutsSectors,
        Bug::RecoversUnmarked,
        Bug::WrongCoefficient,
        Bug::KeepsOldInParity,
        Bug::ParityNotUpdated,
        Bug::MarksStripesTooLate,
        Bug::ReadsStaleColumns,
        Bug::LeavesParity,
        Bug::SkipsStripes,
        Bug::OpensOverTheHole,
    ];
}

#[cfg(feature = "planted")]
static PLANTED: AtomicU8 = AtomicU8::new(0);

/// From now on all tiers have this bug, or none.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.store(bug.map_or(0, |bug| bug as u8), Ordering::SeqCst);
}

/// Whether tiers have it.
#[inline]
pub(super) fn has(bug: Bug) -> bool {
    #[cfg(feature = "planted")]
    return PLANTED.load(Ordering::Relaxed) == bug as u8;
    #[cfg(not(feature = "planted"))]
    {
        let _ = bug;
        false
    }
}
