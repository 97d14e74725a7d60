//! Selection of the head's next access: the one with the shortest positioning time. Commands come before the cache,
//! unless the cache must be emptied.
//!
//! The cache is emptied whenever no command waits. It is emptied together with commands, in order of positioning time,
//! if
//! * it is three quarters full,
//! * a flush or a write waits for it, or
//! * it has written nothing for the maximum waiting time of a command.
//!
//! Sequential accesses have no positioning cost and could continue forever. After some revolutions at one place, the
//! head therefore leaves it if an access waits elsewhere. Adjacent commands are carried out in order (assumed).

use alloc::vec::Vec;

use super::access::{Access, AccessPurpose};
use super::arm::Trip;
use super::{Hdd, HddEvent};
use crate::anatomy::Part;
use crate::command::Completion;
use crate::time::{Span, Time};

/// Revolutions after which the head leaves a place: the cost of a seek is then comparatively small.
const LONGEST_STAY: u64 = 8;

/// Work in progress of the head.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadWork {
    pub(super) access: Access,
    pub(super) trip: Trip,
    pub(super) began: Time,
    /// Segment that the access continues, if any.
    pub(super) behind: Option<usize>,
}

/// Selected access.
enum Choice {
    Command(usize),
    Cache(usize),
}

impl Hdd {
    /// Returns the head time spent on reads and on writes so far.
    fn spent(&self, now: Time) -> (u64, u64) {
        let (mut reads, mut writes) = (self.counts.reading, self.counts.writing);
        if let Some(work) = &self.work {
            let part = now.since(work.began).ns();
            match work.access.writes {
                false => reads += part,
                true => writes += part,
            }
        }
        (reads, writes)
    }

    /// A command needs the disk.
    pub(super) fn queue_up(&mut self, now: Time, access: Access, slot: u32) {
        let spent = self.spent(now);
        let inside = &mut self.inside[slot];
        inside.since = now;
        inside.spent = spent;
        self.queue.push(access);
        self.use_head(now);
    }

    /// If the head is idle, starts the next access.
    pub(super) fn use_head(&mut self, now: Time) {
        let idle = self.queue.is_empty() && self.cache.waiting().is_empty();
        if self.work.is_some() || idle {
            return;
        }
        if now < self.busy_until {
            if self.wake_at != self.busy_until {
                self.wake_at = self.busy_until;
                self.due(self.busy_until, HddEvent::Wake, 0);
            }
            return;
        }
        self.stop_ahead(now);
        while self.work.is_none() {
            let access = match self.choose(now) {
                Some(Choice::Command(at)) => self.queue.swap_remove(self.first_of_run(at)),
                Some(Choice::Cache(at)) => {
                    self.drained = now;
                    self.cache.begin(at)
                }
                None => return,
            };
            self.begin(now, access);
        }
    }

    /// Whether the cache competes with commands.
    pub(super) fn cache_presses(&self, now: Time) -> bool {
        let waits = self.cache.first_flush().is_some() || !self.room.is_empty();
        let old = now.since(self.drained) >= self.config.queue.oldest;
        !self.cache.waiting().is_empty() && (waits || self.cache.is_filling() || old)
    }

    fn choose(&self, now: Time) -> Option<Choice> {
        if let ([_], []) = (&self.queue[..], self.cache.waiting()) {
            return Some(Choice::Command(0));
        }
        let stayed = now.since(self.came_at).ns();
        let elsewhere = (stayed > LONGEST_STAY * self.geometry.turn())
            .then(|| self.choose_from(now, true))
            .flatten();
        elsewhere.or_else(|| self.choose_from(now, false))
    }

    /// Returns the first of the adjacent commands that lead to this one. Otherwise the head could skip a command of a
    /// sequential stream, and the following ones, without positioning cost, would delay it up to the maximum waiting
    /// time.
    fn first_of_run(&self, mut at: usize) -> usize {
        let before = |at: usize| {
            let this = &self.queue[at];
            let leads = |it: &Access| it.end == this.offset && it.writes == this.writes;
            self.queue.iter().position(leads)
        };
        while let Some(earlier) = before(at) {
            at = earlier;
        }
        at
    }

    fn choose_from(&self, now: Time, leave: bool) -> Option<Choice> {
        let at = (now, self.geometry.phase(now.ns()));
        let command = || self.arm.soonest(at, &self.queue, leave);
        let from_cache = |epoch, since| {
            let waiting = self.cache.waiting();
            self.arm.soonest_cached(at, waiting, (epoch, since), leave)
        };
        if !self.queue.is_empty() && !self.cache_presses(now) {
            return command().map(|(at, _)| Choice::Command(at));
        }
        // Writes that a flush waits for come before the rest of the cache.
        let flush = self.cache.first_flush();
        let cached = flush
            .and_then(|flush| from_cache(flush.epoch, flush.since))
            .or_else(|| from_cache(u32::MAX, self.drained));
        match (command(), cached) {
            (Some((at, cost)), Some((_, other))) if cost <= other => Some(Choice::Command(at)),
            (_, Some((at, _))) => Some(Choice::Cache(at)),
            (Some((at, _)), None) => Some(Choice::Command(at)),
            (None, None) => None,
        }
    }

    fn begin(&mut self, now: Time, mut access: Access) {
        let mut behind = None;
        if let AccessPurpose::Read(slot) = access.whose {
            let (offset, _) = access.sectors(self.geometry.sector());
            behind = self.segments.meeting(offset);
            // Data that was read since the command arrived need not be read again.
            let has = behind.map_or(0, |segment| self.segments.get(segment).end);
            if has >= access.end {
                self.explain_wait(now, slot);
                return self.send_all(now, slot);
            }
            if has > access.offset {
                let age = (access.since, access.epoch);
                access = Access::new(&self.geometry, (has, access.end), age, access.whose);
            }
        }
        let mut turns = u64::from(access.in_part(self.geometry.sector()));
        let share = self.config.disk.read_retry;
        while share > 0.0 && !access.writes && self.retries.chance(share) {
            turns += 1;
        }
        let trip = self.arm.trip(now, &access, &self.geometry, turns);
        if let AccessPurpose::Read(slot) | AccessPurpose::Write(slot) = access.whose {
            self.explain_wait(now, slot);
            self.explain(slot, Part::Medium, trip.total());
        }
        if self.arm.leaves_for(&access) {
            self.came_at = now;
        }
        self.work = Some(HeadWork {
            access,
            trip,
            began: now,
            behind,
        });
        self.busy_until = now + trip.total();
        self.due(self.busy_until, HddEvent::HeadDone, 0);
    }

    /// Attributes the time that a command has waited for the head: while the head worked on reads, read ahead, or
    /// worked on writes.
    fn explain_wait(&mut self, now: Time, slot: u32) {
        let (_, writes) = self.spent(now);
        let inside = &self.inside[slot];
        let waited = now.since(inside.since);
        let behind_writes = Span::from_ns(writes - inside.spent.1).min(waited);
        self.explain(slot, Part::BehindProgram, behind_writes);
        self.explain(slot, Part::BehindRead, waited - behind_writes);
    }

    /// The head has finished its work.
    pub(super) fn head_done(&mut self, now: Time, done: &mut Vec<Completion>) {
        let Some(work) = self.work.take() else {
            unreachable!(
                "the head ends what it began, and power takes both the work and the event"
            );
        };
        self.counts.worked(&work, now);
        let access = work.access;
        let (offset, end) = access.sectors(self.geometry.sector());
        self.arm.be_at(work.trip.end);
        let segment = self.segments.remember(offset, end, work.behind);
        match access.whose {
            AccessPurpose::Read(slot) => {
                self.counts.medium_read += access.bytes();
                self.send(now, slot);
                self.go_on_reading(now, (segment, end), &work);
            }
            AccessPurpose::Write(slot) => {
                self.counts.medium_written += access.bytes();
                self.finish(now, slot, done);
            }
            AccessPurpose::Cache => {
                self.counts.medium_written += access.bytes();
                self.cache.written();
                self.let_in(now, done);
            }
        }
        if access.writes {
            self.end_flushes(now, done);
        }
        self.use_head(now);
    }
}
