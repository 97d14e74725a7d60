//! Payload buffers with real data. A pool and its members share one set of them (clones refer to the same bytes),
//! because a command's data stays where the client put it, however many tiers forward the command.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

use super::Buffers;
use crate::command::Payload;

/// The buffers, by number; number 0 has no data.
#[derive(Debug)]
struct Arena {
    buffers: Vec<Vec<u8>>,
    free: Vec<u32>,
}

/// Buffers with real data. Clones share them.
#[derive(Clone, Debug)]
pub struct Bytes(Rc<RefCell<Arena>>);

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes(Rc::new(RefCell::new(Arena {
            buffers: alloc::vec![Vec::new()],
            free: Vec::new(),
        })))
    }
}

fn part(at: Payload, bytes: usize) -> core::ops::Range<usize> {
    at.at as usize..at.at as usize + bytes
}

impl Bytes {
    /// Calls `use_them` with `bytes` bytes of a buffer; with an empty slice for the buffer without data.
    pub fn with_bytes<R>(&self, at: Payload, bytes: u32, use_them: impl FnOnce(&[u8]) -> R) -> R {
        let arena = self.0.borrow();
        if at.buffer == 0 {
            return use_them(&[]);
        }
        use_them(&arena.buffers[at.buffer as usize][part(at, bytes as usize)])
    }

    /// Calls `fill` with `bytes` writable bytes of a buffer; with an empty slice for the buffer without data.
    pub fn with_mut<R>(&self, at: Payload, bytes: u32, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut arena = self.0.borrow_mut();
        if at.buffer == 0 {
            return fill(&mut []);
        }
        fill(&mut arena.buffers[at.buffer as usize][part(at, bytes as usize)])
    }

    /// Returns the number of buffers that are allocated and not released.
    pub fn allocated(&self) -> usize {
        let arena = self.0.borrow();
        arena.buffers.len() - 1 - arena.free.len()
    }
}

impl Buffers for Bytes {
    const REAL: bool = true;

    fn take(&mut self, bytes: u32) -> Payload {
        let mut arena = self.0.borrow_mut();
        let buffer = arena.free.pop().unwrap_or_else(|| {
            arena.buffers.push(Vec::new());
            (arena.buffers.len() - 1) as u32
        });
        arena.buffers[buffer as usize].resize(bytes as usize, 0);
        Payload { buffer, at: 0 }
    }

    fn release(&mut self, payload: Payload) {
        if payload.buffer != 0 {
            let mut arena = self.0.borrow_mut();
            debug_assert!(
                !arena.free.contains(&payload.buffer),
                "buffer released twice"
            );
            arena.free.push(payload.buffer);
        }
    }

    fn put(&mut self, to: Payload, record: &[u8]) {
        if to.buffer != 0 {
            self.with_mut(to, record.len() as u32, |bytes| {
                bytes.copy_from_slice(record);
            });
        }
    }

    fn get(&self, from: Payload, into: &mut [u8]) {
        if from.buffer == 0 {
            into.fill(0);
        } else {
            self.with_bytes(from, into.len() as u32, |bytes| into.copy_from_slice(bytes));
        }
    }

    fn copy(&mut self, from: Payload, to: Payload, bytes: u32) {
        if to.buffer == 0 {
            return;
        }
        if from.buffer == 0 {
            return self.zero(to, bytes);
        }
        let mut arena = self.0.borrow_mut();
        let bytes = bytes as usize;
        if from.buffer == to.buffer {
            arena.buffers[to.buffer as usize].copy_within(part(from, bytes), to.at as usize);
        } else {
            let source = core::mem::take(&mut arena.buffers[from.buffer as usize]);
            arena.buffers[to.buffer as usize][part(to, bytes)]
                .copy_from_slice(&source[part(from, bytes)]);
            arena.buffers[from.buffer as usize] = source;
        }
    }

    fn zero(&mut self, at: Payload, bytes: u32) {
        self.with_mut(at, bytes, |bytes| bytes.fill(0));
    }

    fn fold(&mut self, from: Payload, to: Payload, factor: u8, bytes: u32) {
        if from.buffer == 0 || to.buffer == 0 {
            return;
        }
        let mut arena = self.0.borrow_mut();
        let bytes = bytes as usize;
        let source = core::mem::take(&mut arena.buffers[from.buffer as usize]);
        let into = &mut arena.buffers[to.buffer as usize][part(to, bytes)];
        super::field::fold(&source[part(from, bytes)], into, factor);
        arena.buffers[from.buffer as usize] = source;
    }

    fn sum(&self, at: Payload, bytes: u32) -> u32 {
        self.with_bytes(at, bytes, super::sum)
    }
}
