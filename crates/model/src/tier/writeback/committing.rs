//! Commits without a client's flush: where writes are acknowledged before they are durable, the cache is flushed once so
//! much was written, or so long after the first of it.
//!
//! As dm-writecache's `autocommit_blocks` and `autocommit_time` (`Documentation/admin-guide/device-mapper/writecache.rst`).
//! Metadata are in the records' headers; where a commit writes a table besides, see [`super::table`].

use super::{CACHE, Commit, Durability, Flushed, For, WriteBack};
use crate::command::{Command, Completion, Status};
use crate::tier::Way;
use crate::time::Time;

/// What is known of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Commits {
    /// When the next is due.
    at: Time,
    /// Up to where the one that is under way makes the ring durable.
    under_way: Option<Flushed>,
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

    /// None is due: one begins.
    pub(super) fn stop(&mut self) {
        self.at = Time::NEVER;
    }

    /// A record has been applied, of which nobody knows whether it is durable.
    #[inline]
    pub(super) fn expect(&mut self, now: Time, law: Option<Commit>) {
        if let Some(law) = law
            && self.at == Time::NEVER
            && self.under_way.is_none()
        {
            self.at = now + law.after;
        }
    }
}

impl WriteBack {
    /// Commits if enough was written for that since the last flush.
    #[inline]
    pub(super) fn commit_if_much<W: Way>(&mut self, now: Time, way: &mut W) {
        if let Some(law) = self.config.commit
            && self.commits.at < Time::NEVER
            && self.ring.applied().saturating_sub(self.flushed.position) >= law.slots
        {
            self.commit(now, way);
        }
    }

    /// Flushes the cache.
    pub(super) fn commit<W: Way>(&mut self, now: Time, way: &mut W) {
        self.commits.at = Time::NEVER;
        if self.config.table > 0 {
            return self.begin_table(now, way);
        }
        if self.config.durability == Durability::Flush && self.failed.is_none() {
            self.commits.under_way = Some(self.applied());
            way.send(CACHE, For::Commit.token(0), Command::flush(0));
        }
    }

    /// It has been flushed.
    pub(super) fn committed<W: Way>(&mut self, now: Time, done: &Completion, way: &mut W) {
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

    /// A flush has made the ring durable up to here, whoever asked for it.
    pub(super) fn has_committed(&mut self, through: Flushed) {
        self.flushed = self.flushed.max(through);
        if self.flushed.position >= self.ring.applied() {
            self.commits.at = Time::NEVER;
        }
    }
}
