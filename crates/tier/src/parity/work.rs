//! Work on a piece of a stripe: the same rows of all its chunks are read, parity is computed, and changed columns are
//! written.

mod compute;
#[cfg(test)]
mod tests;

use model::anatomy::Anatomy;
use model::command::{Command, Completion, Op, Payload, Status};
use model::data::Buffers;
use model::time::Time;

use super::shape::PAGE;
use super::{AT_ONCE, ParityArray, ParityPurpose, REST};
use crate::planted::{self, Bug};
use crate::{Child, TierContext};

/// How a piece of work uses the columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Plan {
    /// Reads the overwritten data, and parity.
    Modify,
    /// Reads the rest of the stripe.
    Reconstruct,
    /// Computes columns that cannot be read.
    Compute,
}

/// Step of a piece of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StripeStep {
    Read,
    Write,
    /// Columns that could not be read have been written, and are read again.
    Verify,
}

/// The request of a rebuild, which has none.
const REBUILD: u32 = u32::MAX;

/// A piece of work; columns are represented by one bit each.
#[derive(Clone, Copy, Debug)]
pub(super) struct StripeWork {
    request: u32,
    stripe: u64,
    /// Rows, as a range of bytes in the chunk.
    from: u64,
    until: u64,
    /// For a read: the wanted range of the array.
    at: u64,
    bytes: u32,
    /// Data columns that are written or wanted, and those of them that are written entirely.
    touched: u32,
    over: u32,
    /// Columns that failed to read.
    bad: u32,
    plan: Plan,
    /// Columns that are missing and will be computed.
    missing: u32,
    /// Columns that are written only because they could not be read.
    repaired: u32,
    /// Columns that are written.
    written: u32,
    phase: StripeStep,
    left: u32,
    failed: u32,
    status: Status,
    /// Latency breakdown of previous steps, and of the last step.
    anatomy: Anatomy,
    last: Anatomy,
}

fn bits(mask: u32) -> impl Iterator<Item = u32> {
    (0..32).filter(move |bit| mask & (1 << bit) != 0)
}

impl ParityArray {
    fn rows(&self, work: u32) -> (u64, u64) {
        let this = &self.works[work];
        let begin = this.stripe * self.shape.chunk;
        (begin + this.from, begin + this.until)
    }

    /// Returns the columns that are on these children.
    fn columns_of(&self, stripe: u64, children: u32) -> u32 {
        let has = |&column: &u32| children & (1 << self.shape.child(stripe, column.into())) != 0;
        (0..self.shape.children as u32)
            .filter(has)
            .fold(0, |mask, column| mask | 1 << column)
    }

    fn data_columns(&self) -> u32 {
        (1 << self.shape.data()) - 1
    }

    fn cell(&mut self, work: u32, column: u32) -> &mut Payload {
        &mut self.cells[(work * self.shape.children as u32 + column) as usize]
    }

    fn insert(&mut self, work: StripeWork) -> u32 {
        let index = self.works.insert(work);
        let cells = (index + 1) as usize * self.shape.children as usize;
        if self.cells.len() < cells {
            self.cells.resize(cells, Payload::default());
        }
        index
    }

    fn work_of(
        &self,
        request: u32,
        at: u64,
        bytes: u32,
        rows: core::ops::Range<u64>,
    ) -> StripeWork {
        StripeWork {
            request,
            stripe: at / self.shape.stripe(),
            from: rows.start,
            until: rows.end,
            at,
            bytes,
            touched: 0,
            over: 0,
            bad: 0,
            plan: Plan::Compute,
            missing: 0,
            repaired: 0,
            written: 0,
            phase: StripeStep::Read,
            left: 0,
            failed: 0,
            status: Status::Success,
            anatomy: Anatomy::ZERO,
            last: Anatomy::ZERO,
        }
    }

    /// Starts the next stripes of a write, up to the maximum number processed at a time.
    pub(super) fn write<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        let command = self.requests[request].command;
        while self.requests[request].at < command.end() && self.requests[request].left < AT_ONCE {
            let at = self.requests[request].at;
            let size = self.shape.stripe();
            let until = command.end().min((at / size + 1) * size);
            self.requests[request].at = until;
            let range = at % size..at % size + (until - at);
            for rows in self.shape.bands(&range) {
                let mut work = self.work_of(request, at, (until - at) as u32, rows.clone());
                for column in 0..self.shape.data() {
                    let covered = self.shape.covered(&range, column);
                    if covered.start < rows.end && rows.start < covered.end {
                        work.touched |= 1 << column;
                        let whole = covered.start <= rows.start && rows.end <= covered.end;
                        work.over |= u32::from(whole) << column;
                    }
                }
                if work.touched != 0 {
                    let work = self.insert(work);
                    self.requests[request].left += 1;
                    self.waiting.push_back(work);
                }
            }
            self.start_waiting(now, way);
        }
        self.pump(way);
    }

    /// Computes a part of a read that a child cannot return, from the other children.
    pub(super) fn compute_read<W: TierContext>(
        &mut self,
        now: Time,
        request: u32,
        (at, bytes): (u64, u32),
        bad: u32,
        way: &mut W,
    ) {
        let begin = at % self.shape.chunk;
        let rows = begin / PAGE * PAGE..(begin + u64::from(bytes)).next_multiple_of(PAGE);
        let mut work = self.work_of(request, at, bytes, rows);
        work.touched = 1 << (at % self.shape.stripe() / self.shape.chunk);
        work.bad = bad;
        work.status = self.requests[request].status;
        self.requests[request].status = Status::Success;
        let work = self.insert(work);
        self.waiting.push_back(work);
        self.start_waiting(now, way);
    }

    /// Starts waiting works that may proceed.
    pub(super) fn start_waiting<W: TierContext>(&mut self, now: Time, way: &mut W) {
        for _ in 0..self.waiting.len() {
            let Some(work) = self.waiting.pop_front() else {
                return;
            };
            if !self.may_start(work) {
                self.waiting.push_back(work);
                continue;
            }
            let (from, until) = self.rows(work);
            let is_repair = self.works[work].bad != 0;
            if !is_repair || !planted::has(Bug::ParityRepairsOverWrites) {
                self.locked.push((from, until, work));
            }
            if self.is_write(work) {
                self.last_write = now;
                self.disturbed = true;
                if self.rest_at == Time::NEVER {
                    self.rest_at = now + REST;
                }
            }
            self.plan(now, work, way);
        }
        self.pump(way);
    }

    /// Computes rows of the child that is rebuilt, and writes them to it.
    pub(super) fn rebuild_rows<W: TierContext>(
        &mut self,
        now: Time,
        rows: core::ops::Range<u64>,
        way: &mut W,
    ) {
        let chunk = self.shape.chunk;
        let stripe = rows.start / chunk;
        let bytes = (rows.end - rows.start) as u32;
        let within = rows.start % chunk..rows.start % chunk + u64::from(bytes);
        let mut work = self.work_of(REBUILD, stripe * self.shape.stripe(), bytes, within);
        work.touched = self.columns_of(stripe, self.rebuilding.child());
        let work = self.insert(work);
        self.waiting.push_back(work);
        self.start_waiting(now, way);
    }

    fn is_rebuild(&self, work: u32) -> bool {
        self.works[work].request == REBUILD
    }

    fn is_write(&self, work: u32) -> bool {
        !self.is_rebuild(work) && self.requests[self.works[work].request].command.op != Op::Read
    }

    /// Whether a write of a client is in progress or waits. A rebuild changes only the child that is rebuilt, so parity
    /// matches the data of the others meanwhile.
    pub(super) fn has_writes(&self) -> bool {
        let mut locked = self.locked.iter().map(|it| it.2);
        locked.any(|it| self.is_write(it)) || self.waiting.iter().any(|&it| self.is_write(it))
    }

    fn may_start(&mut self, work: u32) -> bool {
        let (from, until) = self.rows(work);
        let marked = !self.is_write(work)
            || self.labels.mark_busy(from, until - from)
            || planted::has(Bug::MarksStripesTooLate);
        marked && !self.locked.iter().any(|it| it.0 < until && from < it.1)
    }

    /// Chooses what to read, by md's rule (`handle_stripe_dirtying`): the way with fewer reads, and the rest of the
    /// stripe if both need equally many.
    fn plan<W: TierContext>(&mut self, now: Time, work: u32, way: &mut W) {
        let this = self.works[work];
        let data = self.data_columns();
        let mut readable = self.columns_of(this.stripe, self.labels.readable()) & !this.bad;
        if self.untrusted != 0 && data & !readable != 0 {
            readable &= !self.columns_of(this.stripe, self.untrusted);
        }
        let parity = readable & !data;
        let missing = data & !readable;
        let modify = this.touched.count_ones() + self.shape.parity as u32;
        let rest = data & !this.over;
        // Parities that must be correct afterwards.
        let stored = self.columns_of(this.stripe, self.stored()) & !data;
        let may_modify = stored & !parity == 0 && parity != 0 && missing & this.touched == 0;
        let cheaper = missing == 0
            && parity.count_ones() == self.shape.parity as u32
            && modify < rest.count_ones();
        // A column that could not be read is computed, so that it can be written again.
        let is_repair = missing & this.bad != 0 && parity.count_ones() >= missing.count_ones();
        let (plan, read) = if !self.is_write(work) {
            (Plan::Compute, 0)
        } else if stored == 0 && this.touched & !this.over & missing == 0 {
            (Plan::Reconstruct, this.touched & !this.over)
        } else if may_modify && !is_repair && (missing & rest != 0 || cheaper) {
            (Plan::Modify, this.touched | parity)
        } else if missing & rest != 0 || is_repair {
            (Plan::Compute, 0)
        } else {
            (Plan::Reconstruct, rest)
        };
        let (computed, read) = match plan {
            Plan::Compute => {
                // As many parities as there are missing columns.
                let needed = bits(parity).take(missing.count_ones() as usize);
                let needed = needed.fold(0_u32, |mask, column| mask | 1 << column);
                if needed.count_ones() < missing.count_ones() {
                    let status = match this.status {
                        Status::Success => Status::Gone,
                        other => other,
                    };
                    return self.end_work(now, work, status, way);
                }
                (missing, readable & data | needed)
            }
            _ => (0, read),
        };
        let this = &mut self.works[work];
        (this.plan, this.missing, this.phase, this.failed) = (plan, computed, StripeStep::Read, 0);
        this.left = 1;
        for column in bits(read) {
            self.column(work, column, Op::Read, way);
        }
        self.step(now, work, way);
    }

    /// Reads a column from a child, or writes it.
    fn column<W: TierContext>(&mut self, work: u32, column: u32, op: Op, way: &mut W) {
        let this = &mut self.works[work];
        this.left += 1;
        let (stripe, from, bytes) = (this.stripe, this.from, (this.until - this.from) as u32);
        if op == Op::Read {
            *self.cell(work, column) = way.buffers().take(bytes);
        }
        let writes = op == Op::Write && !self.is_rebuild(work);
        let fua = writes && self.requests[self.works[work].request].command.fua;
        let command = Command {
            fua,
            payload: *self.cell(work, column),
            ..Command::new(0, op, stripe * self.shape.chunk + from, bytes)
        };
        let child = self.shape.child(stripe, column.into());
        self.send(child, ParityPurpose::Work(work, column), &command, way);
    }

    /// A column has been read or written, or failed.
    pub(super) fn worked<W: TierContext>(
        &mut self,
        now: Time,
        (work, column): (u32, u32),
        child: Child,
        done: &Completion,
        way: &mut W,
    ) {
        let this = &mut self.works[work];
        this.last = done.anatomy;
        if done.status != Status::Success {
            let phase = this.phase;
            if phase != StripeStep::Verify {
                this.failed |= 1 << column;
                this.status = done.status;
            }
            // A read error counts if writing the column again does not end it.
            let leaves = match phase {
                StripeStep::Write => true,
                _ if done.status == Status::Gone => true,
                StripeStep::Read => false,
                StripeStep::Verify => self.read_errors.add(child),
            };
            if leaves {
                self.leave(child, way);
            }
        } else if this.phase != StripeStep::Write {
            self.read_errors.reset(child);
        }
        self.step(now, work, way);
    }

    /// After the last command of a step, starts the next step.
    fn step<W: TierContext>(&mut self, now: Time, work: u32, way: &mut W) {
        let this = &mut self.works[work];
        this.left -= 1;
        if this.left > 0 {
            return;
        }
        let last = core::mem::replace(&mut this.last, Anatomy::ZERO);
        this.anatomy.append(&last);
        match this.phase {
            StripeStep::Read => {}
            StripeStep::Write => return self.written(now, work, way),
            StripeStep::Verify => {
                let status = this.status;
                return self.end_work(now, work, status, way);
            }
        }
        if this.failed != 0 {
            this.bad |= this.failed;
            self.give_cells_back(work, way);
            return self.plan(now, work, way);
        }
        self.works[work].status = Status::Success;
        if self.is_rebuild(work) {
            return self.write_rebuilt(now, work, way);
        }
        if !self.is_write(work) {
            self.compute_missing(work, way);
            self.give_read(work, way);
            return self.write_columns(now, work, 0, way);
        }
        let changed = match self.works[work].plan {
            Plan::Modify => self.modify(work, way),
            Plan::Reconstruct | Plan::Compute => self.reconstruct(work, way),
        };
        let stripe = self.works[work].stripe;
        let missed = changed & !self.columns_of(stripe, self.stored());
        let children = self.children_of(stripe, missed);
        let request = self.works[work].request;
        self.requests[request].missed |= children;
        self.write_columns(now, work, changed & !missed, way);
    }

    /// Writes the computed column to the child that is rebuilt.
    fn write_rebuilt<W: TierContext>(&mut self, now: Time, work: u32, way: &mut W) {
        self.compute_missing(work, way);
        let this = &self.works[work];
        let (touched, stripe, bytes) = (this.touched, this.stripe, (this.until - this.from) as u32);
        for parity in bits(touched & !self.data_columns()) {
            self.compute_parity(work, parity, bytes, way);
        }
        // If the child has failed meanwhile, its column is not written.
        let is_written = touched & self.columns_of(stripe, self.rebuilding.child());
        self.write_columns(now, work, is_written, way);
    }

    /// Writes these columns, and those that could not be read, as md does. Rows stay locked until the end, so that no
    /// write of a client is overwritten.
    fn write_columns<W: TierContext>(&mut self, now: Time, work: u32, columns: u32, way: &mut W) {
        let this = self.works[work];
        let in_sync = self.columns_of(this.stripe, self.labels.known.in_sync);
        let repaired = this.bad & in_sync & !columns;
        let data = self.data_columns();
        // A partial-stripe write that keeps unread data has not computed it.
        let repaired = repaired & (this.missing | !data);
        for parity in bits(repaired & !data) {
            self.compute_parity(work, parity, (this.until - this.from) as u32, way);
        }
        let this = &mut self.works[work];
        (this.phase, this.left) = (StripeStep::Write, 1);
        (this.repaired, this.written) = (repaired, columns | repaired);
        for column in bits(columns | repaired) {
            self.column(work, column, Op::Write, way);
        }
        self.step(now, work, way);
    }

    /// Returns the children that have these columns.
    fn children_of(&self, stripe: u64, columns: u32) -> u32 {
        bits(columns).fold(0, |mask, column| {
            mask | 1 << self.shape.child(stripe, column.into())
        })
    }

    fn written<W: TierContext>(&mut self, now: Time, work: u32, way: &mut W) {
        let this = self.works[work];
        // A child that fails a repair has missed no write.
        let failed = this.failed & !this.repaired;
        let children = self.children_of(this.stripe, failed);
        let is_success = if self.is_rebuild(work) {
            failed == 0
        } else {
            self.requests[this.request].missed |= children;
            self.distrust(children);
            // A failure of a child that could not be marked as out must be reported.
            children & self.labels.known.in_sync == 0
        };
        let in_sync = self.columns_of(this.stripe, self.labels.known.in_sync);
        let again = this.bad & this.written & in_sync & !this.failed;
        let this = &mut self.works[work];
        if is_success {
            this.status = Status::Success;
        }
        (this.phase, this.left) = (StripeStep::Verify, 1);
        for column in bits(again) {
            self.verify(work, column, way);
        }
        self.step(now, work, way);
    }

    /// Reads a column again that could not be read and has been written. Its data is known.
    fn verify<W: TierContext>(&mut self, work: u32, column: u32, way: &mut W) {
        let this = &mut self.works[work];
        this.left += 1;
        let (from, bytes) = (this.from, (this.until - this.from) as u32);
        let stripe = this.stripe;
        let read = Command::read(0, stripe * self.shape.chunk + from, bytes);
        let child = self.shape.child(stripe, column.into());
        self.send(child, ParityPurpose::Work(work, column), &read, way);
    }

    fn give_cells_back<W: TierContext>(&mut self, work: u32, way: &mut W) {
        for column in 0..self.shape.children as u32 {
            let payload = core::mem::take(self.cell(work, column));
            way.buffers().release(payload);
        }
    }

    pub(super) fn end_work<W: TierContext>(
        &mut self,
        now: Time,
        work: u32,
        status: Status,
        way: &mut W,
    ) {
        self.give_cells_back(work, way);
        let this = self.works[work];
        self.locked.retain(|it| it.2 != work);
        self.works.release(work);
        if this.request == REBUILD {
            self.rebuilt(now, status, way);
            return self.start_waiting(now, way);
        }
        let request = &mut self.requests[this.request];
        if request.status == Status::Success {
            request.status = status;
        }
        self.part_done(now, this.request, &this.anatomy, way);
        self.start_waiting(now, way);
    }
}
