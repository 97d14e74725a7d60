//! A drive with its data: the data of a command is transferred at the moment when the drive completes the command.
//!
//! A write goes directly to the medium if the drive guarantees that it is durable (no volatile cache, or force unit
//! access). Otherwise it goes to [`UnflushedWrites`], and a flush moves it to the medium. The set of writes whose outcome
//! after a power cut is undecided can be queried at any moment. [`DriveFault`] injects faults.
//!
//! Not modelled: which of the undecided writes the drive's firmware would already have written. Callers that need a
//! single outcome use the drive's own ([`Device::power_cut`]); callers that need all outcomes try each
//! ([`DataBackedDrive::undecided`]).

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::bytes::Bytes;
use super::contents::Contents;
use super::delay::Delay;
use super::drive_fault::DriveFault;
use super::inject::{Draws, Injector, Moment, OnHit, Rule, Trigger, Verdict};
use super::unflushed::{UndecidedWrite, UnflushedWrites};
use crate::anatomy::{Anatomy, Part};
use crate::command::{Command, CommandId, Completion, Op, Status};
use crate::device::{Capacity, Device, Gauge, Gauges, Range};
use crate::time::{Span, Time};

/// Outcome of a write's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WriteOutcome {
    AsAsked,
    Fails,
    Lost,
    Elsewhere(u64),
}

/// An outstanding command.
#[derive(Clone, Copy, Debug)]
struct BackedCommand {
    command: Command,
    submitted: Time,
    /// Number of earlier submissions.
    turn: u64,
    /// Number of earlier acknowledgements.
    before: u64,
    fate: WriteOutcome,
    /// Additional delay of the completion, after the drive has completed it.
    delay: Span,
    /// Whether the caller waits for it; the drive finishes its commands even if it sends no completions.
    heard: bool,
}

/// A drive with its data.
#[derive(Clone, Debug)]
pub struct DataBackedDrive<D, C> {
    drive: D,
    contents: C,
    buffers: Bytes,
    /// Whether an acknowledged write may be lost until a flush.
    volatile: bool,
    unflushed: UnflushedWrites,
    inside: Vec<Option<BackedCommand>>,
    free: Vec<CommandId>,
    submissions: u64,
    acknowledged: u64,
    changes: u64,
    dead: bool,
    /// Writes that were outstanding when the drive failed.
    left_behind: Vec<UndecidedWrite>,
    lies: bool,
    next_write: WriteOutcome,
    /// Completions that do not come from the drive, all at one time.
    answers: Vec<Completion>,
    answers_at: Time,
    finished: Vec<Completion>,
    delay: Delay,
    /// Faults by count and location, if there are any.
    injector: Option<Box<Injector>>,
}

impl<D: Device, C: Contents> DataBackedDrive<D, C> {
    /// Wraps a drive that has not received any command. `volatile`: whether its write cache needs power
    /// ([`crate::media::Medium::volatile_write_cache`]).
    pub fn new(drive: D, contents: C, buffers: Bytes, volatile: bool) -> DataBackedDrive<D, C> {
        DataBackedDrive {
            drive,
            contents,
            buffers,
            volatile,
            unflushed: UnflushedWrites::default(),
            inside: Vec::new(),
            free: Vec::new(),
            submissions: 0,
            acknowledged: 0,
            changes: 0,
            dead: false,
            left_behind: Vec::new(),
            lies: false,
            next_write: WriteOutcome::AsAsked,
            answers: Vec::new(),
            answers_at: Time::NEVER,
            finished: Vec::new(),
            delay: Delay::default(),
            injector: None,
        }
    }

    /// Returns the drive itself.
    pub fn drive(&self) -> &D {
        &self.drive
    }

    /// Returns the drive itself, for changing settings.
    pub fn drive_mut(&mut self) -> &mut D {
        &mut self.drive
    }

    /// Returns the content of the medium.
    pub fn contents(&self) -> &C {
        &self.contents
    }

    /// Returns the content of the medium, for changing it without the drive.
    pub fn contents_mut(&mut self) -> &mut C {
        &mut self.contents
    }

    /// Whether the drive has failed and does not respond.
    pub fn is_dead(&self) -> bool {
        self.dead
    }

    /// Returns the number of acknowledged writes that are held separately, because a power cut may lose them.
    pub fn unflushed(&self) -> usize {
        self.unflushed.records().len()
    }

    /// Returns the bytes that were added to these writes since the last flush or [`DataBackedDrive::settle`].
    pub fn unflushed_bytes(&self) -> u64 {
        self.unflushed.added()
    }

    /// Moves separately held data to the medium, if the drive has it on its medium by now. Does not change the data
    /// that reads return.
    pub fn settle(&mut self) {
        let mut at_risk = Vec::new();
        self.drive.at_risk(&mut at_risk);
        // If the medium does not accept the data, it stays held, and the next attempt waits for as much new data.
        let _ = self.unflushed.settle(at_risk, &mut self.contents);
        self.unflushed.count_again();
        self.changes += 1;
    }

    /// Returns a counter that increases whenever the result of [`DataBackedDrive::undecided`] may have changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Appends the writes whose outcome after a power cut now is undecided: first acknowledged writes that are not
    /// durable, oldest first, then outstanding writes, in order of submission.
    pub fn undecided(&self, into: &mut Vec<UndecidedWrite>) {
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
                self.buffers
                    .with_bytes(command.payload, command.bytes, copy)
            });
            // Without data, nothing is written.
            if data.as_ref().is_some_and(Vec::is_empty) {
                continue;
            }
            into.push(UndecidedWrite {
                order: self.acknowledged + 1 + inside.turn,
                at,
                bytes: command.bytes.into(),
                data,
                inside: true,
            });
        }
        into[first..].sort_by_key(|it| it.order);
    }

    /// Returns the offset at which a writing command will write, if it will.
    fn place(&self, inside: &BackedCommand) -> Option<u64> {
        let command = &inside.command;
        let writes = matches!(command.op, Op::Write | Op::WriteZeroes | Op::Deallocate);
        let capacity = self.drive.capacity().bytes;
        if !writes || command.bytes == 0 || !command.fits(capacity) {
            return None;
        }
        match inside.fate {
            WriteOutcome::AsAsked => Some(command.offset),
            WriteOutcome::Fails | WriteOutcome::Lost => None,
            WriteOutcome::Elsewhere(by) => {
                let last = capacity - u64::from(command.bytes);
                Some((command.offset + by) % (last + 1) / 512 * 512)
            }
        }
    }

    /// Applies a fault (or its end) at `now`, not before the last event and not after the next.
    pub fn befall(&mut self, now: Time, trouble: DriveFault) {
        match trouble {
            DriveFault::Dies => self.die(now),
            DriveFault::LosesPower => {
                self.die(now);
                self.left_behind.clear();
                self.lose_power(now, &mut Vec::new());
            }
            DriveFault::Returns => self.come_back(),
            DriveFault::Slows { by, until } => self.delay.set(by, until),
            DriveFault::Lies => self.lies = true,
            DriveFault::FailsWrite => self.next_write = WriteOutcome::Fails,
            DriveFault::LosesWrite => self.next_write = WriteOutcome::Lost,
            DriveFault::Misdirects { by } => self.next_write = WriteOutcome::Elsewhere(by),
            DriveFault::Rots { at } => {
                let mut sector = [0; 512];
                let start = at / 512 * 512;
                // An unreadable sector has no data to corrupt, and a sector that cannot be written stays unchanged.
                if self.contents.read(start, &mut sector).is_ok() {
                    sector[(at % 512) as usize] ^= 1;
                    let _ = self.contents.write(start, &sector);
                }
            }
            DriveFault::Unreadable { at, bytes } => self.contents.spoil(at, bytes),
            DriveFault::Fails(errors) => self.contents.fail(errors),
        }
        self.changes += 1;
    }

    /// Arms a trigger, which counts from now: see [`Injector::arm`]. Commands that reach a failed drive are not
    /// counted.
    pub fn arm(&mut self, trigger: Trigger, number: u32, on_hit: OnHit) {
        let injector = self.injector.get_or_insert_default();
        injector.arm(trigger, number, on_hit);
    }

    /// Adds a rule for commands that arrive from now: see [`Injector::add`].
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

    /// Returns the number of a trigger that has fired, once each.
    pub fn take_hit(&mut self) -> Option<u32> {
        self.injector.as_mut()?.take_hit()
    }

    /// Counts a command that arrives, and returns the effect of the rules on it.
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

    /// Completes all outstanding commands at once with an error. Their writes are undecided until the drive returns.
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

    /// The drive returns: every other write that was outstanding at the failure is carried out.
    fn come_back(&mut self) {
        self.dead = false;
        for write in self.left_behind.drain(..).step_by(2) {
            self.unflushed.supersede(write.at, write.bytes);
            // If the medium refuses the write, it is not carried out: that state is valid too.
            let _ = write.apply(write.at, write.at + write.bytes, &mut self.contents);
        }
    }

    /// Loses undecided data as the drive reports. If the drive has falsely acknowledged flushes, all data that was
    /// acknowledged since is missing from the medium. No outstanding command completes.
    fn lose_power(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        let first = lost.len();
        let back = self.drive.power_cut(now, lost);
        if self.lies {
            lost.extend(self.unflushed.records().iter().map(|it| Range {
                offset: it.at,
                bytes: it.bytes,
            }));
        }
        // If the medium cannot accept the data, it is lost, which is a valid result of a power cut.
        let _ = self.unflushed.cut(&lost[first..], &mut self.contents);
        self.inside.clear();
        self.free.clear();
        back
    }

    /// Returns the completion of a command that the drive has completed, and its additional delay.
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

    /// Transfers the data of a command that the drive has completed.
    fn carry_out(&mut self, inside: &BackedCommand) -> Status {
        let command = &inside.command;
        if inside.fate == WriteOutcome::Fails {
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
            self.buffers
                .with_bytes(command.payload, command.bytes, |data| {
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

/// Returns the completion of a command at a drive that does not respond.
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

impl<D: Device, C: Contents> Device for DataBackedDrive<D, C> {
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
        let mut fate = WriteOutcome::AsAsked;
        if matches!(command.op, Op::Write | Op::WriteZeroes) {
            fate = core::mem::replace(&mut self.next_write, WriteOutcome::AsAsked);
        }
        if verdict.fails {
            fate = WriteOutcome::Fails;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.inside.push(None);
            (self.inside.len() - 1) as CommandId
        });
        self.submissions += 1;
        self.inside[slot as usize] = Some(BackedCommand {
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

    /// The outcome of the drive itself, see [`DataBackedDrive::lose_power`]: undecided data that was in its buffer, and
    /// outstanding commands, are lost.
    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        let back = self.lose_power(now, lost);
        self.answers.clear();
        self.delay.drain().for_each(drop);
        self.changes += 1;
        back
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.drive.inspect(now, gauges);
        // Commands that the drive has completed and whose completions are delayed.
        if self.delay.count() > 0 {
            gauges.gauge(Gauge::QueueDepth, self.delay.count() as f64);
        }
    }
}
