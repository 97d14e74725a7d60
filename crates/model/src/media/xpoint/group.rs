//! A die group, with one die in each channel, over which every unit is striped: one FIFO server.
//!
//! Patrol read, refresh and wear levelling occupy the group for a batch of units at a time. Refreshes arrive as a
//! Poisson process. They are booked when the next command arrives, up to that moment and in order: nothing is booked
//! ahead, and an idle drive has no events. Waiting time is attributed to the last work that arrived before the waiting
//! unit (a refresh if one is queued, otherwise a program, otherwise reads); the sum is exact.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::hint::cold_path;

use super::config::{UNIT, XPointConfig};
use crate::random::Stream;
use crate::time::{Span, Time};

/// Breakdown of a unit's time in the medium, in nanoseconds. Each part is limited to four seconds (longer queues occur
/// only with gigabytes of write zeroes); the excess is counted as transfer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waits {
    pub(super) read: u32,
    pub(super) program: u32,
    pub(super) refresh: u32,
    pub(super) medium: u32,
}

/// Returns the share of a unit's `whole` time that `bytes` of it take.
#[inline]
pub(super) fn share(whole: Span, bytes: u16) -> Span {
    Span::from_ns(whole.ns() * u64::from(bytes) / u64::from(UNIT))
}

#[inline]
fn short(span: Span) -> u32 {
    u32::try_from(span.ns()).unwrap_or(u32::MAX)
}

/// Returns the position of a number in its run of `many`, after a rotation that differs from run to run.
#[inline]
pub(super) fn shuffled(number: u32, many: u32) -> u8 {
    let (run, place) = (number / many, number % many);
    let mixed = run.wrapping_mul(0x9e37_79b1);
    let turn = (u64::from(mixed ^ (mixed >> 15)) * u64::from(many)) >> 32;
    let place = place + turn as u32;
    let wrapped = if place >= many { many } else { 0 };
    (place - wrapped) as u8
}

/// Purpose for which a unit is transferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// Read for the host.
    Read,
    /// The first unit of an unaligned read: only part of it is wanted.
    ReadFirst,
    /// The last unit of an unaligned read.
    ReadLast,
    /// Read so that part of it can be overwritten.
    Merge,
    /// Written.
    Write,
}

/// One unit of one piece, in transit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transit {
    /// When it leaves its current station.
    pub(super) at: Time,
    pub(super) piece: u32,
    pub(super) group: u8,
    /// Hash of its number: its place in the table for the data path.
    pub(super) hash: u16,
    pub(super) role: Role,
    pub(super) waits: Waits,
}

impl Transit {
    /// Marks the absence of a transit.
    pub(super) const NONE: Transit = Transit {
        at: Time::NEVER,
        piece: 0,
        group: 0,
        hash: 0,
        role: Role::Read,
        waits: Waits {
            read: 0,
            program: 0,
            refresh: 0,
            medium: 0,
        },
    };
}

/// Arrival process of refresh batches.
#[derive(Clone, Debug)]
struct RefreshClock {
    stream: Stream,
    next: Time,
    /// Until then, a pass over the medium is made faster.
    hurry_until: Time,
    hurried_gap: Span,
    gap: Span,
    /// Duration of a batch.
    batch: Span,
}

impl RefreshClock {
    fn new(config: &XPointConfig, seed: u64, index: u32) -> RefreshClock {
        let refresh = &config.refresh;
        let unit = config.unit_read() + config.unit_write();
        let batches = (config.group_units() / u64::from(refresh.batch_units.max(1))).max(1);
        let gap = |pass: Span| Span::from_ns((pass.ns() / batches).max(1));
        let hurry = refresh
            .after_power_on
            .saturating_sub(refresh.uptime_at_start);
        let mut clock = RefreshClock {
            stream: Stream::numbered(seed, "refresh", u64::from(index)),
            next: Time::NEVER,
            hurry_until: Time::ZERO + hurry,
            hurried_gap: gap(refresh.after_power_on),
            gap: gap(refresh.period),
            batch: unit * u64::from(refresh.batch_units),
        };
        if refresh.batch_units > 0 {
            clock.next = clock.draw(Time::ZERO);
        }
        clock
    }

    /// The pass that follows a power-on begins at `now`.
    fn power_on(&mut self, now: Time, pass: Span) {
        self.hurry_until = now + pass;
        if self.next != Time::NEVER {
            self.next = self.draw(now);
        }
    }

    /// Draws the time of the first batch after `from`.
    fn draw(&mut self, from: Time) -> Time {
        if from < self.hurry_until {
            let next = from + self.stream.exponential(self.hurried_gap);
            if next < self.hurry_until {
                return next;
            }
            // A Poisson process has no memory: the slower rate applies from this time.
            return self.hurry_until + self.stream.exponential(self.gap);
        }
        from + self.stream.exponential(self.gap)
    }
}

/// All groups of a drive.
#[derive(Clone, Debug)]
pub(super) struct XPointMedium {
    groups: Vec<Group>,
    /// When the first unit of each group leaves it: kept separately so that the earliest is found quickly.
    heads: Vec<Time>,
    /// The earliest of these times, and its group; at a tie the lowest group.
    next: Time,
    first: usize,
}

impl XPointMedium {
    pub(super) fn new(config: &XPointConfig, seed: u64) -> XPointMedium {
        let groups = config.groups();
        XPointMedium {
            groups: (0..groups)
                .map(|index| Group::new(config, seed, index))
                .collect(),
            heads: vec![Time::NEVER; groups as usize],
            next: Time::NEVER,
            first: 0,
        }
    }

    pub(super) fn groups(&self) -> u32 {
        self.groups.len() as u32
    }

    /// Returns when the next unit is done.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// A unit arrives for service at its group; `spared` bytes of it are not read.
    #[inline(always)]
    pub(super) fn book(&mut self, now: Time, transit: Transit, spared: u16) {
        let index = usize::from(transit.group);
        let done = self.groups[index].book(now, transit, spared);
        // Units of a group leave in order, so this unit is the first one only if the group was idle. Computed without a
        // branch, because the branch would be unpredictable.
        let head = self.heads[index].min(done);
        self.heads[index] = head;
        (self.next, self.first) = (head, index).min((self.next, self.first));
    }

    /// Removes and returns a unit that is done at `now`, which must be [`XPointMedium::next`]; the lowest group first.
    #[inline]
    pub(super) fn take(&mut self, now: Time) -> Transit {
        debug_assert_eq!(self.next, now);
        let ring = &mut self.groups[self.first].ring;
        let done = ring[0];
        ring.pop_front();
        self.heads[self.first] = ring.front().map_or(Time::NEVER, |transit| transit.at);
        (self.next, self.first) = (Time::NEVER, 0);
        for (index, &head) in self.heads.iter().enumerate() {
            let sooner = head < self.next;
            self.next = if sooner { head } else { self.next };
            self.first = if sooner { index } else { self.first };
        }
        done
    }

    /// The drive has been switched on at `now`.
    pub(super) fn power_on(&mut self, now: Time, pass: Span) {
        for group in &mut self.groups {
            group.catch_up(now);
            group.refresh.power_on(now, pass);
        }
    }

    /// Discards all units that are in service or waiting at `now`.
    pub(super) fn clear(&mut self, now: Time) {
        for group in &mut self.groups {
            group.clear(now);
        }
        self.heads.fill(Time::NEVER);
        (self.next, self.first) = (Time::NEVER, 0);
    }

    /// Returns the busy time until `now` in seconds, as a mean over the groups.
    pub(super) fn busy_seconds(&self, now: Time) -> f64 {
        let busy: f64 = self.groups.iter().map(|it| it.busy(now).seconds()).sum();
        busy / self.groups.len() as f64
    }

    /// Returns the number of units moved by wear levelling.
    pub(super) fn moved_units(&self) -> u64 {
        self.groups.iter().map(|group| group.moved_units).sum()
    }
}

/// An event that happens at random, once in a mean number of calls.
#[derive(Clone, Debug)]
struct RandomEvent {
    stream: Stream,
    mean: u32,
    left: u64,
}

impl RandomEvent {
    /// Creates an event that never happens if `mean` is 0.
    fn new(stream: Stream, mean: u32) -> RandomEvent {
        let mut rarely = RandomEvent {
            stream,
            mean,
            left: u64::MAX,
        };
        rarely.draw();
        rarely
    }

    #[cold]
    fn draw(&mut self) {
        if self.mean > 0 {
            let mean = Span::from_ns(u64::from(self.mean));
            self.left = 1 + self.stream.exponential(mean).ns();
        }
    }

    #[inline]
    fn happens(&mut self) -> bool {
        self.left -= 1;
        if self.left == 0 {
            self.draw();
            return true;
        }
        false
    }
}

/// One die group.
#[derive(Clone, Debug)]
struct Group {
    /// Units in service or waiting, in the order in which they leave.
    ring: VecDeque<Transit>,
    free_at: Time,
    busy: Span,
    /// When the last unit leaves.
    leaves: Time,
    program_until: Time,
    background_until: Time,
    refresh: RefreshClock,
    levelling: RandomEvent,
    move_time: Span,
    move_units: u64,
    recovery: RandomEvent,
    recovery_time: Span,
    /// Units moved by wear levelling.
    moved_units: u64,
    unit_read: Span,
    unit_write: Span,
    decode: Span,
}

impl Group {
    fn new(config: &XPointConfig, seed: u64, index: u32) -> Group {
        let unit = config.unit_read() + config.unit_write();
        let levelling = &config.levelling;
        Group {
            ring: VecDeque::with_capacity(64),
            free_at: Time::ZERO,
            busy: Span::ZERO,
            leaves: Time::ZERO,
            program_until: Time::ZERO,
            background_until: Time::ZERO,
            refresh: RefreshClock::new(config, seed, index),
            levelling: RandomEvent::new(
                Stream::numbered(seed, "wear levelling", u64::from(index)),
                levelling.writes_per_move,
            ),
            move_time: unit * u64::from(levelling.batch_units),
            move_units: u64::from(levelling.batch_units),
            recovery: RandomEvent::new(
                Stream::numbered(seed, "recovery", u64::from(index)),
                config.recovery.reads_per_recovery,
            ),
            recovery_time: config.recovery.time,
            moved_units: 0,
            unit_read: config.unit_read(),
            unit_write: config.unit_write(),
            decode: config.timing.decode,
        }
    }

    /// Books the refreshes that arrived up to `now`.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        if self.refresh.next <= now {
            self.refresh_until(now);
        }
    }

    #[cold]
    fn refresh_until(&mut self, now: Time) {
        let batch = self.refresh.batch;
        // A refresh that ended long ago has no effect. The process has no memory, so it can restart later.
        let recent = batch * 8;
        if now.since(self.refresh.next) > recent {
            let from = Time::from_ns(now.ns() - recent.ns());
            self.refresh.next = self.refresh.draw(from);
        }
        while self.refresh.next <= now {
            self.free_at = self.free_at.max(self.refresh.next) + batch;
            self.background_until = self.free_at;
            self.busy += batch;
            // Refreshes do not overlap: the next one is drawn when this one is done.
            self.refresh.next = self.refresh.draw(self.free_at);
        }
    }

    /// A unit arrives for service at `now`; if it is read, `spared` bytes of it are omitted. Returns when its transit
    /// leaves.
    #[inline(always)]
    fn book(&mut self, now: Time, transit: Transit, spared: u16) -> Time {
        self.catch_up(now);
        let write = transit.role == Role::Write;
        let mut service = if write {
            self.unit_write
        } else if self.recovery.happens() {
            self.unit_read + self.recovery_time
        } else {
            self.unit_read
        };
        if spared > 0 {
            cold_path();
            service = service - share(self.unit_read, spared);
        }
        let start = self.free_at.max(now);
        let done = start + service;
        // Units leave in order: a write may wait until data that was read before it has been checked.
        let own = if write { done } else { done + self.decode };
        let leaves = own.max(self.leaves);
        let waits = self.attribute(now, start);
        self.leaves = leaves;
        self.free_at = done;
        self.busy += service;
        if write {
            self.program_until = done;
            self.level();
        }
        self.ring.push_back(Transit {
            at: leaves,
            waits: Waits {
                medium: short(own - start),
                read: waits.read + short(leaves - own),
                ..waits
            },
            ..transit
        });
        leaves
    }

    /// Attributes the waiting time of a transit that arrives at `now` and is served from `start`.
    #[inline]
    fn attribute(&self, now: Time, start: Time) -> Waits {
        let background = self.background_until.max(now).min(start);
        let program = self.program_until.max(background).min(start);
        Waits {
            refresh: short(background - now),
            program: short(program - background),
            read: short(start - program),
            medium: 0,
        }
    }

    /// After a write, wear levelling may move data.
    #[inline]
    fn level(&mut self) {
        if self.levelling.happens() {
            self.free_at += self.move_time;
            self.background_until = self.free_at;
            self.busy += self.move_time;
            self.moved_units += self.move_units;
        }
    }

    fn clear(&mut self, now: Time) {
        self.busy = self.busy(now);
        self.ring.clear();
        for until in [
            &mut self.free_at,
            &mut self.leaves,
            &mut self.program_until,
            &mut self.background_until,
        ] {
            *until = (*until).min(now);
        }
    }

    /// Returns the busy time up to `now`.
    fn busy(&self, now: Time) -> Span {
        self.busy.saturating_sub(self.free_at.since(now))
    }
}
