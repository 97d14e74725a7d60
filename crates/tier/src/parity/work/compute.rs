//! Computation of the columns of a stripe piece: missing data from parity, and parity from data.

use model::command::{Op, Payload};
use model::data::{Buffers, field};

use super::{ParityArray, bits};
use crate::TierContext;
use crate::planted::{self, Bug};

impl ParityArray {
    /// Computes a parity column from all data.
    pub(super) fn compute_parity<W: TierContext>(
        &mut self,
        work: u32,
        parity: u32,
        bytes: u32,
        way: &mut W,
    ) {
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

    /// Computes missing data columns from all others and the same number of parities.
    pub(super) fn compute_missing<W: TierContext>(&mut self, work: u32, way: &mut W) {
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
    pub(super) fn modify<W: TierContext>(&mut self, work: u32, way: &mut W) -> u32 {
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
    pub(super) fn reconstruct<W: TierContext>(&mut self, work: u32, way: &mut W) -> u32 {
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
    pub(super) fn give_read<W: TierContext>(&mut self, work: u32, way: &mut W) {
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
