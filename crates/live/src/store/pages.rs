//! Pages of memory, as many as are used: taken, given back, and taken again.
//!
//! They lie in blocks, one after the other in the order in which they were first taken, wherever the namespace has them.
//! So the pages that will be taken next are known, and a thread has them provided by the kernel beforehand, in huge pages
//! where it can: the first touch of a page costs 0.4 to 2 us, on some virtual machines 10, and that of a huge one
//! a hundred, in which nobody would be served. Where the thread is not quick enough, pages are touched as they are used.
//!
//! Left out: giving memory back to the kernel before the end.

use std::io;
use std::num::NonZeroU32;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use memmap2::{Advice, MmapMut, MmapOptions};

use super::PAGE;

/// Bytes of a block: a huge page.
const BLOCK: u64 = 2 << 20;
const PAGES: u32 = (BLOCK / PAGE) as u32;

/// Blocks that are ready and wait; the thread has one more in its hand.
const READY: usize = 3;

/// Blocks that are mapped at once for when none is ready: mapping may have to wait until the thread has its block.
const SPARE: usize = 32;

/// A page: its number, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Page(NonZeroU32);

/// Pages, and those of them that are free.
#[derive(Debug, Default)]
pub(super) struct Pages {
    blocks: Vec<MmapMut>,
    /// Of which the kernel provides what is touched, page by page.
    spare: Vec<MmapMut>,
    free: Vec<Page>,
    /// How many were ever taken: the first so many.
    touched: u32,
    ahead: Option<Receiver<MmapMut>>,
}

impl Pages {
    /// A page of zeroes.
    ///
    /// # Errors
    /// When there is no memory, or 16 TiB are in use.
    #[inline]
    pub(super) fn take_zeroed(&mut self) -> io::Result<Page> {
        match self.free.pop() {
            Some(page) => {
                self.of_mut(page).fill(0);
                Ok(page)
            }
            None => self.fresh(),
        }
    }

    /// A page that has anything in it.
    ///
    /// # Errors
    /// As of [`Pages::take_zeroed`].
    #[inline]
    pub(super) fn take(&mut self) -> io::Result<Page> {
        self.free.pop().map_or_else(|| self.fresh(), Ok)
    }

    /// Nobody needs what is in it any more.
    #[inline]
    pub(super) fn give_back(&mut self, page: Page) {
        self.free.push(page);
    }

    /// What is in it.
    #[inline]
    pub(super) fn of(&self, page: Page) -> &[u8] {
        let (block, at) = place(page);
        &self.blocks[block][at..at + PAGE as usize]
    }

    /// What is in it, to be changed.
    #[inline]
    pub(super) fn of_mut(&mut self, page: Page) -> &mut [u8] {
        let (block, at) = place(page);
        &mut self.blocks[block][at..at + PAGE as usize]
    }

    /// Pages that are taken.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.touched as usize - self.free.len()
    }

    /// The next that was never taken.
    fn fresh(&mut self) -> io::Result<Page> {
        let number = NonZeroU32::MIN.checked_add(self.touched);
        let page = Page(number.ok_or(io::ErrorKind::OutOfMemory)?);
        if place(page).0 == self.blocks.len() {
            let block = match self.ahead.as_ref().map(Receiver::try_recv) {
                Some(Ok(ready)) => ready,
                _ => self.untouched()?,
            };
            self.blocks.push(block);
        }
        self.touched += 1;
        // Who takes few pages needs no thread.
        if self.ahead.is_none() && self.touched == PAGES / 2 {
            self.ahead = Some(ahead());
        }
        Ok(page)
    }

    /// A block of which the kernel provides what is touched.
    fn untouched(&mut self) -> io::Result<MmapMut> {
        if let Some(block) = self.spare.pop() {
            return Ok(block);
        }
        // The first is all that most stores need.
        let more = if self.blocks.is_empty() { 0 } else { SPARE };
        let mapped = (0..more).map_while(|_| in_small_pages().ok());
        self.spare.extend(mapped);
        self.spare.pop().map_or_else(in_small_pages, Ok)
    }
}

/// The block that a page is in, and where.
#[inline]
fn place(page: Page) -> (usize, usize) {
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
    // A kernel without huge pages refuses the advice, and does not need it.
    let _ = block.advise(Advice::NoHugePage);
    Ok(block)
}

/// Blocks that the kernel has provided whole. The thread that sees to it ends when nobody waits for them any more; without
/// one, and without memory, there are none.
fn ahead() -> Receiver<MmapMut> {
    let (give, take) = sync_channel(READY);
    let provide = move || {
        while let Ok(block) = block() {
            // What an older kernel refuses is touched when it is used.
            let _ = block.advise(Advice::HugePage);
            let _ = block.advise(Advice::PopulateWrite);
            if give.send(block).is_err() {
                break;
            }
        }
    };
    let thread = thread::Builder::new().name("pages ahead".into());
    // No thread: every block is provided as it is touched.
    let _ = thread.spawn(provide);
    take
}
