//! Content of log blocks: a header, and for each write an entry with its data, as in memory when the block is sent.
//!
//! The data may be newer than the write of the entry: the data that a commit guarantees is included, possibly with
//! later writes.

use model::command::Payload;
use model::data::Buffers;

use super::layout::{self, HEADER, LogBlockHeader, LogContent, LogEntry, UNIT};
use super::{IntentLog, TierContext, UnloggedWrite};

impl IntentLog {
    /// Puts the writes of a block into a buffer, after its header.
    pub(super) fn fill_block<W: TierContext>(&mut self, block: u32, way: &mut W) {
        if !W::Buffers::REAL {
            return;
        }
        let this = &self.issuer.blocks[block];
        let bytes = this.used.next_multiple_of(UNIT) as u32;
        let payload = way.buffers().take(bytes);
        way.buffers().zero(payload, bytes);
        let mut at = HEADER as u32;
        for write in &this.carried {
            way.buffers().put(payload.skip(at), &entry(write).encode());
            at += HEADER as u32;
            if write.content == LogContent::Data {
                self.copy_data(write, payload.skip(at), way);
                at += write.bytes;
            }
        }
        debug_assert_eq!(u64::from(at), this.used, "a block is as long as it says");
        self.issuer.blocks[block].payload = payload;
    }

    /// Copies the data of a write, as it is in memory now; data that is no longer in memory is not needed.
    fn copy_data<W: TierContext>(&self, write: &UnloggedWrite, to: Payload, way: &mut W) {
        let (mut at, end) = (write.offset, write.offset + u64::from(write.bytes));
        while at < end {
            let number = at / self.record;
            let bytes = (end.min((number + 1) * self.record) - at) as u32;
            if let Some(handle) = self.records.find(number) {
                let data = self.records.get(handle).data;
                let from = match data.buffer {
                    0 => data,
                    _ => data.skip((at % self.record) as u32),
                };
                let to = to.skip((at - write.offset) as u32);
                way.buffers().copy(from, to, bytes);
            }
            at += u64::from(bytes);
        }
    }

    /// Writes the header of a block that has got its location. If it had one before, the header is kept, because the
    /// location of the next block may have changed since.
    pub(super) fn head_block<W: TierContext>(&mut self, block: u32, way: &mut W) {
        let this = &self.issuer.blocks[block];
        let payload = this.payload;
        let mut magic = [0; 4];
        if !W::Buffers::REAL {
            return;
        }
        way.buffers().get(payload, &mut magic);
        if magic != [0; 4] {
            return;
        }
        let mut onward = self.onward();
        onward.number = this.number;
        let header = LogBlockHeader {
            pool: layout::folded(self.life.pool),
            epoch: self.life.epoch,
            count: this.carried.len() as u16,
            bytes: this.used as u32,
            durable: self.issuer.durable,
            sum: way
                .buffers()
                .sum(payload.skip(HEADER as u32), (this.used - HEADER) as u32),
            onward,
        };
        let (bytes, sum) = header.encode();
        way.buffers().put(payload, &bytes);
        self.issuer.previous = sum;
    }
}

fn entry(write: &UnloggedWrite) -> LogEntry {
    LogEntry {
        offset: write.offset,
        bytes: write.bytes,
        group: write.group,
        content: write.content,
        slot: write.slot,
        sum: write.sum,
    }
}
