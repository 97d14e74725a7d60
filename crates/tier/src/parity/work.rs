//! Work on a piece of a stripe: the same rows of all its chunks are read, parity is computed, and changed columns are
//! written.

use model::anatomy::Anatomy;
use model::command::{Command, Completion, Op, Payload, Status};
use model::data::{Buffers, field};
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
    writing: bool,
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
            writing: false,
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
            self.locked.push((from, until, work));
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
        let (plan, read) = if !self.is_write(work) {
            (Plan::Compute, 0)
        } else if stored == 0 && this.touched & !this.over & missing == 0 {
            (Plan::Reconstruct, this.touched & !this.over)
        } else if may_modify && (missing & rest != 0 || cheaper) {
            (Plan::Modify, this.touched | parity)
        } else if missing & rest != 0 {
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
        (this.plan, this.missing, this.writing, this.failed) = (plan, computed, false, 0);
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
            this.failed |= 1 << column;
            this.status = done.status;
            let gone = this.writing || done.status == Status::Gone;
            let row = this.stripe * self.shape.chunk + this.from;
            if gone || self.read_errors.add_at(child, row) {
                self.leave(child, way);
            }
        } else if !this.writing {
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
        if this.writing {
            return self.written(now, work, way);
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
            return self.end_work(now, work, Status::Success, way);
        }
        let changed = match self.works[work].plan {
            Plan::Modify => self.modify(work, way),
            Plan::Reconstruct | Plan::Compute => self.reconstruct(work, way),
        };
        let this = &mut self.works[work];
        (this.writing, this.left) = (true, 1);
        let stripe = this.stripe;
        let stored = self.columns_of(stripe, self.stored());
        let mut missed = 0;
        for column in bits(changed) {
            if stored & (1 << column) != 0 {
                self.column(work, column, Op::Write, way);
            } else {
                missed |= 1 << self.shape.child(stripe, column.into());
            }
        }
        let request = self.works[work].request;
        self.requests[request].missed |= missed;
        self.step(now, work, way);
    }

    /// Writes the computed column to the child that is rebuilt.
    fn write_rebuilt<W: TierContext>(&mut self, now: Time, work: u32, way: &mut W) {
        self.compute_missing(work, way);
        let this = &mut self.works[work];
        (this.writing, this.left) = (true, 1);
        let (touched, stripe, bytes) = (this.touched, this.stripe, (this.until - this.from) as u32);
        for parity in bits(touched & !self.data_columns()) {
            self.compute_parity(work, parity, bytes, way);
        }
        // If the child has failed meanwhile, its column is not written.
        let is_written = touched & self.columns_of(stripe, self.rebuilding.child());
        for column in bits(is_written) {
            self.column(work, column, Op::Write, way);
        }
        self.step(now, work, way);
    }

    /// Computes a parity column from all data.
    fn compute_parity<W: TierContext>(&mut self, work: u32, parity: u32, bytes: u32, way: &mut W) {
        if self.cell(work, parity).buffer == 0 {
            *self.cell(work, parity) = way.buffers().take(bytes);
        }
        let to = *self.cell(work, parity);
        way.buffers().zero(to, bytes);
        for column in bits(self.data_columns()) {
            let from = *self.cell(work, column);
            way.buffers()
                .fold(from, to, self.factor(parity, column), bytes);
        }
    }

    fn written<W: TierContext>(&mut self, now: Time, work: u32, way: &mut W) {
        let this = self.works[work];
        if self.is_rebuild(work) {
            let status = if this.failed == 0 {
                Status::Success
            } else {
                this.status
            };
            return self.end_work(now, work, status, way);
        }
        let children = bits(this.failed).fold(0, |mask, column| {
            mask | 1 << self.shape.child(this.stripe, column.into())
        });
        self.requests[this.request].missed |= children;
        self.distrust(children);
        // A failure of a child that could not be marked as out must be reported.
        let status = match children & self.labels.known.in_sync {
            0 => Status::Success,
            _ => this.status,
        };
        self.end_work(now, work, status, way);
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

    /// Computes missing data columns from all others and the same number of parities.
    fn compute_missing<W: TierContext>(&mut self, work: u32, way: &mut W) {
        let this = self.works[work];
        let bytes = (this.until - this.from) as u32;
        let data = self.shape.data() as u32;
        let mut parities = [0_u32; 2];
        let mut missing = [0_u32; 2];
        let count = this.missing.count_ones() as usize;
        bits(this.missing)
            .zip(&mut missing)
            .for_each(|(it, to)| *to = it);
        let had = (data..self.shape.children as u32).filter(|&column| {
            self.cells[(work * self.shape.children as u32 + column) as usize].buffer != 0
        });
        had.zip(&mut parities).for_each(|(it, to)| *to = it);
        if count == 0 || !W::Buffers::REAL {
            return;
        }
        for &parity in &parities[..count] {
            let to = *self.cell(work, parity);
            for column in (0..data).filter(|it| this.missing & (1 << it) == 0) {
                let from = *self.cell(work, column);
                way.buffers()
                    .fold(from, to, self.factor(parity, column), bytes);
            }
        }
        let factors = match count {
            1 => [[field::inverse(self.factor(parities[0], missing[0])), 0]; 2],
            _ => field::two_missing(
                parities.map(|it| (it - data) as usize),
                missing.map(|it| it as usize),
            ),
        };
        for (index, &column) in missing[..count].iter().enumerate() {
            let to = way.buffers().take(bytes);
            way.buffers().zero(to, bytes);
            for (&parity, &factor) in parities[..count].iter().zip(&factors[index]) {
                let from = *self.cell(work, parity);
                way.buffers().fold(from, to, factor, bytes);
            }
            *self.cell(work, column) = to;
        }
    }

    /// Returns the coefficient of a column in a parity.
    fn factor(&self, parity: u32, column: u32) -> u8 {
        let parity = parity - self.shape.data() as u32;
        match planted::has(Bug::WrongCoefficient) && parity == 1 && column == 2 {
            true => 3,
            false => field::coefficient(parity as usize, column as usize),
        }
    }

    /// Replaces the old data of a column by the written data.
    fn overlay<W: TierContext>(&mut self, work: u32, column: u32, way: &mut W) {
        let this = self.works[work];
        let command = self.requests[this.request].command;
        let begin = this.stripe * self.shape.stripe() + u64::from(column) * self.shape.chunk;
        let from = (begin + this.from).max(this.at);
        let until = (begin + this.until).min(this.at + u64::from(this.bytes));
        if self.cell(work, column).buffer == 0 {
            *self.cell(work, column) = way.buffers().take((this.until - this.from) as u32);
        }
        let to = self
            .cell(work, column)
            .skip((from - begin - this.from) as u32);
        let data = match command.op {
            Op::Write if command.payload.buffer != 0 => {
                command.payload.skip((from - command.offset) as u32)
            }
            _ => Payload::default(),
        };
        way.buffers().copy(data, to, (until - from) as u32);
    }

    /// Removes the old data from parity, and adds the written data. Returns the changed columns.
    fn modify<W: TierContext>(&mut self, work: u32, way: &mut W) -> u32 {
        let this = self.works[work];
        let bytes = (this.until - this.from) as u32;
        let readable = self.columns_of(this.stripe, self.labels.readable()) & !this.bad;
        let parity = readable & !self.data_columns();
        for column in bits(this.touched) {
            for pass in 0..2 {
                if pass == 1 {
                    self.overlay(work, column, way);
                } else if planted::has(Bug::KeepsOldInParity) {
                    continue;
                }
                for parity in bits(parity) {
                    let (from, to) = (*self.cell(work, column), *self.cell(work, parity));
                    let factor = self.factor(parity, column);
                    way.buffers().fold(from, to, factor, bytes);
                }
            }
        }
        let all = ((1_u64 << self.shape.children) - 1) as u32;
        match planted::has(Bug::ParityNotUpdated) {
            true => this.touched,
            false => this.touched | all & !self.data_columns(),
        }
    }

    /// Computes parity from all data. Returns the changed columns.
    fn reconstruct<W: TierContext>(&mut self, work: u32, way: &mut W) -> u32 {
        self.compute_missing(work, way);
        let this = self.works[work];
        let bytes = (this.until - this.from) as u32;
        for column in bits(this.touched) {
            self.overlay(work, column, way);
        }
        let data = self.data_columns();
        let all = ((1_u64 << self.shape.children) - 1) as u32;
        for parity in bits(all & !data) {
            self.compute_parity(work, parity, bytes, way);
        }
        this.touched | all & !data
    }

    /// Copies computed data to the reading command.
    fn give_read<W: TierContext>(&mut self, work: u32, way: &mut W) {
        let this = self.works[work];
        let command = self.requests[this.request].command;
        if command.payload.buffer == 0 {
            return;
        }
        let column = this.touched.trailing_zeros();
        let within = (this.at % self.shape.chunk - this.from) as u32;
        let from = self.cell(work, column).skip(within);
        let to = command.payload.skip((this.at - command.offset) as u32);
        way.buffers().copy(from, to, this.bytes);
    }
}
