//! A drive with its data: what its commands read and write is moved at the moment when the drive completes them.
//!
//! A write goes to the medium when it is durable by what the drive promises (no volatile cache, or force unit access),
//! and else to [`Unflushed`], from where a flush takes it. What a power cut would leave undecided can be asked at any
//! moment. [`Trouble`] comes from outside.
//!
//! Left out: which of the undecided writes the drive's own firmware would already have written. Who wants one answer
//! gets the drive's own ([`Device::power_cut`]); who wants all of them tries each ([`Kept::undecided`]).

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::bytes::Bytes;
use super::contents::Contents;
use super::delay::Delay;
use super::inject::{Draws, Injector, Moment, OnHit, Rule, Trigger, Verdict};
use super::trouble::Trouble;
use super::unflushed::{Undecided, Unflushed};
use crate::anatomy::{Anatomy, Part};
use crate::command::{Command, CommandId, Completion, Op, Status};
use crate::device::{Capacity, Device, Gauge, Gauges, Range};
use crate::time::{Span, Time};

/// What will become of a write's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    AsAsked,
    Fails,
    Lost,
    Elsewhere(u64),
}

/// A command while the drive has it.
#[derive(Clone, Copy, Debug)]
struct Inside {
    command: Command,
    submitted: Time,
    /// Submissions before it.
    turn: u64,
    /// Acknowledgements before it.
    before: u64,
    fate: Fate,
    /// How much later it is answered than the drive completes it.
    delay: Span,
    /// Whether somebody waits for it; the drive finishes what it has even when it answers nobody.
    heard: bool,
}

/// A drive with its data.
#[derive(Clone, Debug)]
pub struct Kept<D, C> {
    drive: D,
    contents: C,
    buffers: Bytes,
    /// Whether an acknowledged write may be lost until a flush.
    volatile: bool,
    unflushed: Unflushed,
    inside: Vec<Option<Inside>>,
    free: Vec<CommandId>,
    submissions: u64,
    acknowledged: u64,
    changes: u64,
    dead: bool,
    /// Writes that were inside when it died.
    left_behind: Vec<Undecided>,
    lies: bool,
    next_write: Fate,
    /// What is answered without the drive, all at one time.
    answers: Vec<Completion>,
    answers_at: Time,
    finished: Vec<Completion>,
    delay: Delay,
    /// Faults by count and place, if there are any.
    injector: Option<Box<Injector>>,
}

impl<D: Device, C: Contents> Kept<D, C> {
    /// Round a drive that nothing was submitted to. `volatile`: whether its write cache needs power
    /// ([`crate::media::Medium::volatile_write_cache`]).
    pub fn new(drive: D, contents: C, buffers: Bytes, volatile: bool) -> Kept<D, C> {
        Kept {
            drive,
            contents,
            buffers,
            volatile,
            unflushed: Unflushed::default(),
            inside: Vec::new(),
            free: Vec::new(),
            submissions: 0,
            acknowledged: 0,
            changes: 0,
            dead: false,
            left_behind: Vec::new(),
            lies: false,
            next_write: Fate::AsAsked,
            answers: Vec::new(),
            answers_at: Time::NEVER,
            finished: Vec::new(),
            delay: Delay::default(),
            injector: None,
        }
    }

    /// The drive itself.
    pub fn drive(&self) -> &D {
        &self.drive
    }

    /// The drive itself, to set something on it.
    pub fn drive_mut(&mut self) -> &mut D {
        &mut self.drive
    }

    /// What is on the medium.
    pub fn contents(&self) -> &C {
        &self.contents
    }

    /// What is on the medium, to change it behind the drive's back.
    pub fn contents_mut(&mut self) -> &mut C {
        &mut self.contents
    }

    /// Whether it answers nothing.
    pub fn is_dead(&self) -> bool {
        self.dead
    }

    /// Writes that are acknowledged and kept apart, because a power cut may take them.
    pub fn unflushed(&self) -> usize {
        self.unflushed.records().len()
    }

    /// Of what is kept apart, that goes to the medium which the drive has there by now. Changes nothing that can be read.
    pub fn settle(&mut self) {
        let mut at_risk = Vec::new();
        self.drive.at_risk(&mut at_risk);
        // A medium that does not take it leaves it where it is.
        let _ = self.unflushed.settle(at_risk, &mut self.contents);
        self.changes += 1;
    }

    /// Grows each time when what [`Kept::undecided`] says may have changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Appends the writes that a power cut now would leave done or undone: what is acknowledged and not durable, oldest
    /// first, then what is inside, in order of submission.
    pub fn undecided(&self, into: &mut Vec<Undecided>) {
        into.extend_from_slice(self.unflushed.records());
        into.extend_from_slice(&self.left_behind);
        let first = into.len();
        for inside in self.inside.iter().flatten().filter(|it| it.heard) {
            let command = &inside.command;
            let Some(at) = self.place(inside) else {
                continue;
            };
            let data = (command.op == Op::Write).then(|| {
                let copy = |bytes: &[u8]| bytes.to_vec();
                self.buffers.with(command.payload, command.bytes, copy)
            });
            // Without data, nothing is written.
            if data.as_ref().is_some_and(Vec::is_empty) {
                continue;
            }
            into.push(Undecided {
                order: self.acknowledged + 1 + inside.turn,
                at,
                bytes: command.bytes.into(),
                data,
                inside: true,
            });
        }
        into[first..].sort_by_key(|it| it.order);
    }

    /// Where a command that writes will write, if it will.
    fn place(&self, inside: &Inside) -> Option<u64> {
        let command = &inside.command;
        let writes = matches!(command.op, Op::Write | Op::WriteZeroes | Op::Deallocate);
        let capacity = self.drive.capacity().bytes;
        if !writes || command.bytes == 0 || !command.fits(capacity) {
            return None;
        }
        match inside.fate {
            Fate::AsAsked => Some(command.offset),
            Fate::Fails | Fate::Lost => None,
            Fate::Elsewhere(by) => {
                let last = capacity - u64::from(command.bytes);
                Some((command.offset + by) % (last + 1) / 512 * 512)
            }
        }
    }

    /// Something goes wrong (or right again) at `now`, not before the last event and not after the next.
    pub fn befall(&mut self, now: Time, trouble: Trouble) {
        match trouble {
            Trouble::Dies => self.die(now),
            Trouble::LosesPower => {
                self.die(now);
                self.left_behind.clear();
                self.lose_power(now, &mut Vec::new());
            }
            Trouble::Returns => self.come_back(),
            Trouble::Slows { by, until } => self.delay.set(by, until),
            Trouble::Lies => self.lies = true,
            Trouble::FailsWrite => self.next_write = Fate::Fails,
            Trouble::LosesWrite => self.next_write = Fate::Lost,
            Trouble::Misdirects { by } => self.next_write = Fate::Elsewhere(by),
            Trouble::Rots { at } => {
                let mut sector = [0; 512];
                let start = at / 512 * 512;
                // An unreadable sector has nothing to rot, and what cannot be written stays.
                if self.contents.read(start, &mut sector).is_ok() {
                    sector[(at % 512) as usize] ^= 1;
                    let _ = self.contents.write(start, &sector);
                }
            }
            Trouble::Unreadable { at, bytes } => self.contents.spoil(at, bytes),
        }
        self.changes += 1;
    }

    /// Arms a trigger, which counts from now on: see [`Injector::arm`]. Commands that reach a dead drive are not counted.
    pub fn arm(&mut self, trigger: Trigger, number: u32, on_hit: OnHit) {
        let injector = self.injector.get_or_insert_default();
        injector.arm(trigger, number, on_hit);
    }

    /// Adds a rule for commands that arrive from now on: see [`Injector::add`].
    pub fn add_rule(&mut self, now: Time, rule: Rule, draws: Draws) {
        let injector = self.injector.get_or_insert_default();
        injector.add(now, rule, draws);
    }

    /// Ends all rules.
    pub fn clear_rules(&mut self) {
        if let Some(injector) = &mut self.injector {
            injector.clear_rules();
        }
    }

    /// The number of a trigger that has been hit, once for each.
    pub fn take_hit(&mut self) -> Option<u32> {
        self.injector.as_mut()?.take_hit()
    }

    /// Counts a command that arrives, and returns what rules do to it.
    #[cold]
    fn judge(&mut self, now: Time, command: &Command) -> Verdict {
        self.count(now, command.op, Moment::Arrival);
        let injector = self.injector.as_mut();
        injector.map_or_else(Verdict::default, |it| it.judge(now, command))
    }

    #[cold]
    fn count(&mut self, now: Time, op: Op, moment: Moment) {
        let injector = self.injector.as_mut();
        if let Some(trouble) = injector.and_then(|it| it.count(now, op, moment)) {
            self.befall(now, trouble);
        }
    }

    /// Everything inside is answered at once, and what it would have written is undecided until the drive returns.
    fn die(&mut self, now: Time) {
        if self.dead {
            return;
        }
        self.dead = true;
        let mut undecided = Vec::new();
        self.undecided(&mut undecided);
        self.left_behind = undecided.into_iter().filter(|it| it.inside).collect();
        let (inside, answers) = (&mut self.inside, &mut self.answers);
        for inside in inside.iter_mut().flatten().filter(|it| it.heard) {
            inside.heard = false;
            let waited = now.since(inside.submitted);
            answers.push(gone(inside.command.id, waited, now));
        }
        for late in self.delay.drain() {
            let waited = late.anatomy.total() - late.at.since(now);
            answers.push(gone(late.id, waited, now));
        }
        if !answers.is_empty() {
            self.answers_at = now;
        }
    }

    /// Of what was inside when it died every other write is done.
    fn come_back(&mut self) {
        self.dead = false;
        for write in self.left_behind.drain(..).step_by(2) {
            self.unflushed.supersede(write.at, write.bytes);
            // What the medium does not take is not done, which is as right.
            let _ = write.apply(write.at, write.at + write.bytes, &mut self.contents);
        }
    }

    /// What is undecided is lost as the drive says; where it has lied about flushes, nothing that was acknowledged since is on
    /// the medium. Nothing that was inside completes.
    fn lose_power(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        let first = lost.len();
        let back = self.drive.power_cut(now, lost);
        if self.lies {
            lost.extend(self.unflushed.records().iter().map(|it| Range {
                offset: it.at,
                bytes: it.bytes,
            }));
        }
        // A medium that cannot take it has lost it, which is what a power cut may do.
        let _ = self.unflushed.cut(&lost[first..], &mut self.contents);
        self.inside.clear();
        self.free.clear();
        back
    }

    /// The answer to a command that the drive has completed, and how much later it is given.
    fn completed(&mut self, completion: &Completion) -> Option<(Completion, Span)> {
        let slot = completion.id as usize;
        let inside = self.inside.get_mut(slot).and_then(Option::take)?;
        self.free.push(completion.id);
        if inside.command.op != Op::Read {
            self.changes += 1;
        }
        if !inside.heard {
            return None;
        }
        let status = match completion.status {
            Status::Success => self.carry_out(&inside),
            other => other,
        };
        if self.injector.is_some() && status == Status::Success {
            self.count(completion.at, inside.command.op, Moment::Completion);
        }
        let answer = Completion {
            id: inside.command.id,
            status,
            ..*completion
        };
        Some((answer, inside.delay))
    }

    /// Moves the data of a command that the drive has done.
    fn carry_out(&mut self, inside: &Inside) -> Status {
        let command = &inside.command;
        if inside.fate == Fate::Fails {
            return match command.op {
                Op::Read => Status::UnrecoveredReadError,
                _ => Status::WriteFault,
            };
        }
        match command.op {
            Op::Read => return self.read(command),
            Op::Flush => {
                let done = if self.lies {
                    Ok(())
                } else {
                    let written = self.unflushed.flush(inside.before, &mut self.contents);
                    written.and_then(|()| self.contents.sync())
                };
                return done.map_or(Status::WriteFault, |()| Status::Success);
            }
            Op::Write | Op::WriteZeroes | Op::Deallocate => {}
        }
        self.acknowledged += 1;
        let Some(at) = self.place(inside) else {
            return Status::Success;
        };
        let durable = !self.volatile || (command.fua && !self.lies);
        let bytes = u64::from(command.bytes);
        let (contents, unflushed) = (&mut self.contents, &mut self.unflushed);
        let order = self.acknowledged;
        let mut write = |data: Option<&[u8]>| {
            if !durable {
                unflushed.push(order, at, bytes, data);
                return Ok(());
            }
            unflushed.supersede(at, bytes);
            match data {
                Some(data) => contents.write(at, data),
                None => contents.zero(at, bytes),
            }
        };
        let done = if command.op == Op::Write {
            self.buffers.with(command.payload, command.bytes, |data| {
                if data.is_empty() {
                    Ok(())
                } else {
                    write(Some(data))
                }
            })
        } else {
            write(None)
        };
        done.map_or(Status::WriteFault, |()| Status::Success)
    }

    fn read(&self, command: &Command) -> Status {
        let (contents, unflushed) = (&self.contents, &self.unflushed);
        let (at, bytes) = (command.offset, command.bytes);
        self.buffers.with_mut(command.payload, bytes, |into| {
            if contents.read(at, into).is_err() && !unflushed.covers(at, bytes.into()) {
                return Status::UnrecoveredReadError;
            }
            unflushed.overlay(at, into);
            Status::Success
        })
    }
}

/// The answer of a drive that does not answer.
fn gone(id: CommandId, waited: Span, now: Time) -> Completion {
    let mut anatomy = Anatomy::ZERO;
    anatomy.add(Part::Link, waited);
    Completion {
        id,
        at: now,
        status: Status::Gone,
        anatomy,
    }
}

impl<D: Device, C: Contents> Device for Kept<D, C> {
    fn capacity(&self) -> Capacity {
        self.drive.capacity()
    }

    fn submit(&mut self, now: Time, command: Command) {
        if self.dead {
            self.answers.push(gone(command.id, Span::ZERO, now));
            self.answers_at = now;
            return;
        }
        let verdict = match self.injector.is_some() {
            true => self.judge(now, &command),
            false => Verdict::default(),
        };
        let mut fate = Fate::AsAsked;
        if matches!(command.op, Op::Write | Op::WriteZeroes) {
            fate = core::mem::replace(&mut self.next_write, Fate::AsAsked);
        }
        if verdict.fails {
            fate = Fate::Fails;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.inside.push(None);
            (self.inside.len() - 1) as CommandId
        });
        self.submissions += 1;
        self.inside[slot as usize] = Some(Inside {
            command,
            submitted: now,
            turn: self.submissions,
            before: self.acknowledged,
            fate,
            delay: verdict.delay,
            heard: true,
        });
        if !matches!(command.op, Op::Read | Op::Flush) {
            self.changes += 1;
        }
        self.drive.submit(
            now,
            Command {
                id: slot,
                ..command
            },
        );
    }

    fn next_event(&self) -> Time {
        if self.answers.is_empty() {
            self.drive.next_event().min(self.delay.next())
        } else {
            self.answers_at
        }
    }

    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        let first = done.len();
        done.append(&mut self.answers);
        self.delay.take(now, done);
        if self.drive.next_event() != now {
            return now;
        }
        let mut finished = core::mem::take(&mut self.finished);
        let horizon = match done.len() > first {
            true => now,
            false => horizon.min(self.delay.next()),
        };
        let ended = self.drive.advance(now, horizon, &mut finished);
        let late = self.delay.holds(ended);
        for completion in finished.drain(..) {
            match self.completed(&completion) {
                Some((answer, by)) if late || by > Span::ZERO => self.delay.hold(answer, by),
                answer => done.extend(answer.map(|(answer, _)| answer)),
            }
        }
        self.finished = finished;
        ended
    }

    fn at_risk(&self, ranges: &mut Vec<Range>) {
        self.drive.at_risk(ranges);
    }

    /// The answer of the drive itself, see [`Kept::lose_power`]: of what is undecided that is lost which was in its buffer, and
    /// what was inside.
    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        let back = self.lose_power(now, lost);
        self.answers.clear();
        self.delay.drain().for_each(drop);
        self.changes += 1;
        back
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.drive.inspect(now, gauges);
        // What the drive has done and not told.
        if self.delay.count() > 0 {
            gauges.gauge(Gauge::QueueDepth, self.delay.count() as f64);
        }
    }
}
