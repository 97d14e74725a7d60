//! Planted bugs that the crash checker must find: each omits or changes one line of a tier. They exist only in tests
//! (feature `planted`); without it they are not compiled.

#[cfg(feature = "planted")]
use core::sync::atomic::{AtomicU8, Ordering};

/// A planted bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Bug {
    /// Mirror: a write is acknowledged when the first member has it.
    AcknowledgesEarly = 1,
    /// Mirror: a write that a member has missed is acknowledged before the labels of the other members record that.
    AcknowledgesUnlabelled,
    /// Mirror: after a restart every member with a label counts as in sync.
    AcceptsStaleLegs,
    /// Mirror: reads also go to members that are out.
    ReadsStaleLegs,
    /// Mirror: after a crash members are not made identical.
    LeavesLegsUnlike,
    /// Mirror: a flush goes to the first member only.
    FlushesOneLeg,
    /// Mirror: a write does not wait for the mark of its region.
    MarksTooLate,
    /// Mirror: marks are cleared without a flush of the members.
    UnmarksUnflushed,
    /// Mirror: resync does not wait for writes to its range, nor do they wait for resync.
    CopiesOverWrites,
    /// Mirror: a flush bypasses the member that is being resynced.
    FlushPassesTheCopy,
    /// Mirror: overlapping writes are in flight at the same time.
    OverlapsWrites,
    /// Write-back cache: a write is acknowledged when its record is sent.
    AcknowledgesSent,
    /// Write-back cache: a completed record is acknowledged although an earlier one has not completed.
    AcknowledgesOutOfOrder,
    /// Write-back cache: records are written without force unit access, and acknowledged as durable.
    RecordsNotThrough,
    /// Write-back cache: the tail moves before the capacity tier is flushed.
    TailBeforeFlush,
    /// Write-back cache: the tail moves past data that was overwritten by records that no flush has made durable.
    TailBeforeRecords,
    /// Write-back cache: the superblock is left in the cache's volatile buffer.
    SuperblockNotThrough,
    /// Write-back cache: segments are reused before the superblock is written.
    ReusesBeforeSuperblock,
    /// Write-back cache: segments are reused while they are being read.
    ReusesUnderReads,
    /// Write-back cache: data that was overwritten during its destage counts as destaged in its newest version.
    ForgetsOverwritten,
    /// Write-back cache: recovery trusts a header without verifying its data.
    BelievesHeaders,
    /// Write-back cache: recovery ends at the first gap and does not check for later records.
    CutsSilently,
    /// Write-back cache: recovery does not replay trims.
    ForgetsTrims,
    /// Write-back cache: bypassing writes and destaging write to one location at the same time.
    PassesDestaging,
    /// Write-back cache: bypassing writes may still be in a volatile cache when the ring records them.
    PassesVolatile,
    /// Write-back cache: bypassing writes are not recorded in the ring.
    PassesUnrecorded,
    /// Write-back cache: recovery replays a trim over later bypassing writes.
    TrimsWhatPassed,
    /// Intent log: a log block is acknowledged when it is written, although its log device is not flushed.
    LogNotFlushed,
    /// Intent log: log blocks are acknowledged in the order of their completions.
    LogOutOfOrder,
    /// Intent log: a log block does not wait for the records on the main pool that it references.
    NamesUnwritten,
    /// Intent log: the space of a group's log blocks is reused before the group is on the main pool.
    LogFreedEarly,
    /// Intent log: the previous locations of records are reused before their group is on the main pool.
    RecordsFreedEarly,
    /// Intent log: the root is written before the data that it references is durable.
    RootBeforeRecords,
    /// Intent log: a group counts as on the main pool before its root is durable.
    RootNotFlushed,
    /// Intent log: each root overwrites the previous one.
    RootInPlace,
    /// Intent log: recovery replays writes whose group is on the main pool, where newer data may exist.
    ReplaysOldGroups,
    /// Intent log: recovery trusts a log block without verifying its data.
    BelievesBlocks,
    /// Intent log: recovery continues after a missing log block.
    ReplaysPastGaps,
    /// Intent log: recovery replays log blocks of an earlier epoch.
    ReplaysOtherLives,
    /// Intent log: recovery overwrites the log before the replayed writes are on the main pool.
    ReplaysOverTheLog,
    /// Intent log: recovery does not report missing log blocks that were durable.
    MissesSilently,
    /// All tiers: a member that was absent in the last opening counts as present.
    AcceptsOldCopies,
    /// All tiers: members that were used without each other are combined.
    AcceptsSplitBrain,
    /// Mirror and array: members that are known to be behind are served if the labels that say so are lost.
    ServesBehind,
    /// Mirror: a repair of data that a member could not read overwrites a write in flight.
    RepairsOverWrites,
    /// Mirror: only the first chunk of each marked region is copied to a returned member.
    CopiesFirstChunks,
    /// Mirror: a returned member counts as in sync after the first chunk.
    CopiesOneRegion,
    /// Mirror: reads go to the member that is being resynced.
    ReadsWhileCopying,
    /// Mirror: trims go to the first member only.
    TrimsOneLeg,
    /// Mirror: data that one member cannot read is not read from another.
    ReadsOneLegOnly,
    /// Mirror: a member that has failed a write counts as in sync.
    KeepsFailedLegs,
    /// Mirror: after a crash only the first 4 KiB of a marked region are made identical.
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
    /// Write-back cache: reads go to the capacity tier, even if the buffer has newer data.
    ReadsPastTheBuffer,
    /// Write-back cache: a partial write of a block is merged with the data of the capacity tier.
    MergesPastTheBuffer,
    /// Write-back cache: the capacity tier receives a trim while a destaging write is in flight there.
    TrimsWhileDestaging,
    /// Write-back cache: the buffer keeps data of a trimmed range.
    RemembersTrimmed,
    /// Write-back cache: recovery begins at the oldest superblock.
    BelievesOldSuperblock,
    /// Intent log: a write that fills a log block is split inside a sector, and recovery treats such a block as
    /// damaged.
    LogCutsSectors,
    /// Intent log: of the nodes that a group changes, only the first one of each level is written.
    WritesFirstNodes,
    /// Intent log: recovery does not replay log blocks that it has not kept in memory.
    SkipsUnkept,
    /// Mirror: writes of the tier above during recovery are not marked.
    RecoversUnmarked,
    /// Array with parity: a data column is multiplied by the wrong coefficient for Q.
    WrongCoefficient,
    /// Array with parity: parity is not updated for the old data of a partial overwrite.
    KeepsOldInParity,
    /// Array with parity: a partial-stripe write does not update parity.
    ParityNotUpdated,
    /// Array with parity: a write does not wait for the mark of its stripe.
    MarksStripesTooLate,
    /// Array with parity: reads also go to children that have missed writes.
    ReadsStaleColumns,
    /// Array with parity: after a crash parity is not recomputed.
    LeavesParity,
    /// Array with parity: every fourth stripe that a child has missed is not rebuilt.
    SkipsStripes,
    /// Array with parity: writes of clients do not go to the child that is rebuilt.
    RebuildsWithoutWrites,
    /// Array with parity: it opens with a child out although writes were in progress.
    OpensOverTheHole,
    /// Write-back cache: recovery takes a record that cannot be read as the end of the ring.
    EndsAtUnreadableRecord,
    /// Intent log: recovery takes a log block or a root that cannot be read as one that was never written.
    EndsAtUnreadableBlock,
    /// Mirror: a member that has failed a flush counts as in sync.
    KeepsUnflushedLegs,
    /// Mirror, array: a rebuilt member counts as in sync before its cache is flushed.
    JoinsUnflushed,
    /// Opening: the trial recovery does not read what it has written.
    TrialDiscardsWrites,
    /// Array: data is computed from a child that has missed a rejected write.
    TrustsMissedWrites,
    /// Intent log: blocks after one that could not be written are acknowledged.
    LogGoesOnAfterGap,
    /// Intent log: a log block that moves from a failed log device to the main pool is placed behind others.
    MovesBehindOthers,
    /// Array: data that a child could not read is computed and written back without a lock of its rows.
    ParityRepairsOverWrites,
}

impl Bug {
    /// All planted bugs.
    pub const ALL: [Bug; 84] = [
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
        Bug::ServesBehind,
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
        Bug::WritesFirstNodes,
        Bug::SkipsUnkept,
        Bug::RecoversUnmarked,
        Bug::WrongCoefficient,
        Bug::KeepsOldInParity,
        Bug::ParityNotUpdated,
        Bug::MarksStripesTooLate,
        Bug::ReadsStaleColumns,
        Bug::LeavesParity,
        Bug::SkipsStripes,
        Bug::RebuildsWithoutWrites,
        Bug::OpensOverTheHole,
        Bug::EndsAtUnreadableRecord,
        Bug::EndsAtUnreadableBlock,
        Bug::KeepsUnflushedLegs,
        Bug::JoinsUnflushed,
        Bug::TrialDiscardsWrites,
        Bug::TrustsMissedWrites,
        Bug::LogGoesOnAfterGap,
        Bug::MovesBehindOthers,
        Bug::ParityRepairsOverWrites,
    ];
}

#[cfg(feature = "planted")]
static PLANTED: AtomicU8 = AtomicU8::new(0);

/// Enables this bug in all tiers, or none.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.store(bug.map_or(0, |bug| bug as u8), Ordering::SeqCst);
}

/// Whether this bug is enabled.
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
