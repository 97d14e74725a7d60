//! Pages of memory: allocated on demand, released, and reused.
//!
//! Pages are in blocks, in the order of their first use, whatever their addresses in the namespace are. So the next
//! pages to be used are known, and a thread lets the kernel provide them in advance, as huge pages if possible. The
//! first access to a page costs 0.4 to 2 us, on some virtual machines 10 us; for a huge page it is a hundred times as
//! much, in which no client would be served. If the thread is too slow, pages are provided at their first use.
//!
//! Not supported: returning memory to the kernel before the end.

use std::io;
use std::num::NonZeroU32;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use memmap2::{Advice, MmapMut, MmapOptions};

use super::PAGE;

/// Bytes of a block: a huge page.
const BLOCK: u64 = 2 << 20;
const PAGES: u32 = (BLOCK / PAGE) as u32;

/// Number of provided blocks that wait; the thread holds one more.
const READY: usize = 3;

/// Number of blocks that are mapped at once if none is ready: mapping may have to wait until the thread has finished
/// its block.
const SPARE: usize = 32;

/// Number of a page, starting with 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PageNumber(NonZeroU32);

/// All pages, and the free ones.
#[derive(Debug, Default)]
pub(super) struct PagePool {
    blocks: Vec<MmapMut>,
    /// Blocks whose pages the kernel provides at first use.
    spare: Vec<MmapMut>,
    free: Vec<PageNumber>,
    /// Number of pages that were ever used, which are the first ones.
    touched: u32,
    ahead: Option<Receiver<MmapMut>>,
}

impl PagePool {
    /// Returns a page of zeroes.
    ///
    /// # Errors
    /// No memory is left, or 16 TiB are in use.
    #[inline]
    pub(super) fn take_zeroed(&mut self) -> io::Result<PageNumber> {
        match self.free.pop() {
            Some(page) => {
                self.of_mut(page).fill(0);
                Ok(page)
            }
            None => self.fresh(),
        }
    }

    /// Returns a page with undefined content.
    ///
    /// # Errors
    /// As [`PagePool::take_zeroed`].
    #[inline]
    pub(super) fn take(&mut self) -> io::Result<PageNumber> {
        self.free.pop().map_or_else(|| self.fresh(), Ok)
    }

    /// Releases a page.
    #[inline]
    pub(super) fn release(&mut self, page: PageNumber) {
        self.free.push(page);
    }

    /// Returns the content of a page.
    #[inline]
    pub(super) fn content(&self, page: PageNumber) -> &[u8] {
        let (block, at) = place(page);
        &self.blocks[block][at..at + PAGE as usize]
    }

    /// Returns the content of a page, for changes.
    #[inline]
    pub(super) fn of_mut(&mut self, page: PageNumber) -> &mut [u8] {
        let (block, at) = place(page);
        &mut self.blocks[block][at..at + PAGE as usize]
    }

    /// Returns the number of pages in use.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.touched as usize - self.free.len()
    }

    /// Returns the next page that was never used.
    fn fresh(&mut self) -> io::Result<PageNumber> {
        let number = NonZeroU32::MIN.checked_add(self.touched);
        let page = PageNumber(number.ok_or(io::ErrorKind::OutOfMemory)?);
        if place(page).0 == self.blocks.len() {
            let block = match self.ahead.as_ref().map(Receiver::try_recv) {
                Some(Ok(ready)) => ready,
                _ => self.untouched()?,
            };
            self.blocks.push(block);
        }
        self.touched += 1;
        // A store with few pages needs no thread.
        if self.ahead.is_none() && self.touched == PAGES / 2 {
            self.ahead = Some(ahead());
        }
        Ok(page)
    }

    /// Returns a block whose pages the kernel provides at first use.
    fn untouched(&mut self) -> io::Result<MmapMut> {
        if let Some(block) = self.spare.pop() {
            return Ok(block);
        }
        // Most stores need only the first block.
        let more = if self.blocks.is_empty() { 0 } else { SPARE };
        let mapped = (0..more).map_while(|_| in_small_pages().ok());
        self.spare.extend(mapped);
        self.spare.pop().map_or_else(in_small_pages, Ok)
    }
}

/// Returns the block of a page, and the offset in it.
#[inline]
fn place(page: PageNumber) -> (usize, usize) {
    let number = page.0.get() - 1;
    let (block, index) = (number / PAGES, number % PAGES);
    (block as usize, index as usize * PAGE as usize)
}

fn block() -> io::Result<MmapMut> {
    let mut options = MmapOptions::new();
    options.len(BLOCK as usize).no_reserve_swap().map_anon()
}

fn in_small_pages() -> io::Result<MmapMut> {
    let block = block()?;
    // A kernel without huge pages rejects the advice, and does not need it.
    let _ = block.advise(Advice::NoHugePage);
    Ok(block)
}

/// Returns a receiver of blocks that the kernel has completely provided. The thread that requests them ends when the
/// receiver is dropped. Without a thread or memory there are none.
fn ahead() -> Receiver<MmapMut> {
    let (give, take) = sync_channel(READY);
    let provide = move || {
        while let Ok(block) = block() {
            // If an older kernel rejects this, pages are provided at first use.
            let _ = block.advise(Advice::HugePage);
            let _ = block.advise(Advice::PopulateWrite);
            if give.send(block).is_err() {
                break;
            }
        }
    };
    let thread = thread::Builder::new().name("pages ahead".into());
    // Without a thread, every block is provided at first use.
    let _ = thread.spawn(provide);
    take
}
