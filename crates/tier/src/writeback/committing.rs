//! Commits without a client's flush: if writes are acknowledged before they are durable, the cache is flushed after a
//! number of slots was written, or after a time since the first of them.
//!
//! Like dm-writecache's `autocommit_blocks` and `autocommit_time`
//! (`Documentation/admin-guide/device-mapper/writecache.rst`). Metadata is in the records' headers; for commits that
//! also write a table, see [`super::table`].

use model::command::{Command, Completion, Status};
use model::time::Time;

use super::{CACHE, CommitPolicy, Durability, DurablePosition, WriteBack, WriteBackPurpose};
use crate::TierContext;

/// State of these commits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Commits {
    /// When the next commit is due.
    at: Time,
    /// Position up to which the commit in progress makes the ring durable.
    under_way: Option<DurablePosition>,
}

impl Default for Commits {
    fn default() -> Commits {
        Commits {
            at: Time::NEVER,
            under_way: None,
        }
    }
}

impl Commits {
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.at
    }

    /// Clears the due time, because a commit begins.
    pub(super) fn stop(&mut self) {
        self.at = Time::NEVER;
    }

    /// A record has been applied that may not be durable.
    #[inline]
    pub(super) fn expect(&mut self, now: Time, law: Option<CommitPolicy>) {
        if let Some(law) = law
            && self.at == Time::NEVER
            && self.under_way.is_none()
        {
            self.at = now + law.after;
        }
    }
}

impl WriteBack {
    /// Commits if enough slots were written since the last flush.
    #[inline]
    pub(super) fn commit_if_much<W: TierContext>(&mut self, now: Time, way: &mut W) {
        if let Some(law) = self.config.commit
            && self.commits.at < Time::NEVER
            && self.ring.applied().saturating_sub(self.flushed.position) >= law.slots
        {
            self.commit(now, way);
        }
    }

    /// Flushes the cache.
    pub(super) fn commit<W: TierContext>(&mut self, now: Time, way: &mut W) {
        self.commits.at = Time::NEVER;
        if self.config.table > 0 {
            return self.begin_table(now, way);
        }
        if self.config.durability == Durability::Flush && self.failed.is_none() {
            self.commits.under_way = Some(self.applied());
            way.send(CACHE, WriteBackPurpose::Commit.token(0), Command::flush(0));
        }
    }

    /// The cache has been flushed.
    pub(super) fn committed<W: TierContext>(&mut self, now: Time, done: &Completion, way: &mut W) {
        let through = self.commits.under_way.take();
        if done.status != Status::Success {
            return self.give_up(now, done.status, way);
        }
        if let Some(through) = through {
            self.has_committed(through);
        }
        if self.flushed.position < self.ring.applied() {
            self.commits.expect(now, self.config.commit);
            self.commit_if_much(now, way);
        }
    }

    /// A flush, of a client or a commit, has made the ring durable up to this position.
    pub(super) fn has_committed(&mut self, through: DurablePosition) {
        self.flushed = self.flushed.max(through);
        if self.flushed.position >= self.ring.applied() {
            self.commits.at = Time::NEVER;
        }
    }
}
