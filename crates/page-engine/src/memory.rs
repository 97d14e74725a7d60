//! Memory inside a page: large tables get pages of their own from the machine, which gives them empty.
//!
//! The standard allocator clears what it is asked to clear, although WebAssembly's memory begins empty. The tables of a
//! NAND drive are some gigabytes of which a run meets a few pages here and there: cleared, all of that would be real
//! memory of the reader's machine; left alone, only what is met becomes so. What is given back is kept for later tables.
//!
//! The standard allocator asks for 64 KiB at a time, and each time costs the browser more than what is then done with them:
//! so it is made to ask for as much as it has, before it runs out.

// An allocator is made of addresses.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::arch::wasm32::memory_grow;
use std::cell::UnsafeCell;

/// Bytes of a page of WebAssembly.
const PAGE: usize = 65_536;
/// Smaller blocks are the standard allocator's.
const LARGE: usize = 1 << 20;
/// Blocks that are kept for later ones; a drive has fewer.
const KEPT: usize = 64;

/// A block that was given back: its address and its pages. An address of 0 is none.
type Block = (usize, usize);

/// The standard allocator's first share.
const SHARE: usize = 4 << 20;

/// The allocator of the page.
pub(crate) struct Pages {
    free: UnsafeCell<[Block; KEPT]>,
    /// Bytes of the standard allocator that are in use, and that it has been given.
    small: UnsafeCell<(usize, usize)>,
}

// SAFETY: there is one thread.
unsafe impl Sync for Pages {}

#[global_allocator]
static MEMORY: Pages = Pages {
    free: UnsafeCell::new([(0, 0); KEPT]),
    small: UnsafeCell::new((0, 0)),
};

impl Pages {
    /// A block, and whether it is known to be empty; address 0 if there is no more memory.
    fn take(&self, bytes: usize) -> (usize, bool) {
        let pages = bytes.div_ceil(PAGE);
        // SAFETY: there is one thread, and nothing here calls for memory.
        let free = unsafe { &mut *self.free.get() };
        // Of the least waste: tables come back in the sizes that they went.
        let fits = free.iter_mut().filter(|block| block.0 != 0);
        let fits = fits.filter(|block| (pages..=pages + pages / 4).contains(&block.1));
        if let Some(block) = fits.min_by_key(|block| block.1) {
            let address = block.0;
            *block = (0, 0);
            return (address, false);
        }
        match memory_grow::<0>(pages) {
            usize::MAX => (0, true),
            before => (before * PAGE, true),
        }
    }

    /// So many bytes of the standard allocator are no longer in use.
    fn small_is_given_back(&self, bytes: usize) {
        // SAFETY: as above.
        unsafe { (*self.small.get()).0 -= bytes };
    }

    /// So many bytes more of the standard allocator are in use; it is given more in good time. A block that it has had stays
    /// its own.
    fn small_is_taken(&self, bytes: usize) {
        // SAFETY: as above.
        let (used, has) = unsafe { &mut *self.small.get() };
        *used += bytes;
        if *used + *used / 4 > *has {
            let share = (*has).max(SHARE);
            *has += share;
            if let Ok(layout) = Layout::from_size_align(share, 16) {
                // SAFETY: it has a size, and goes back as it came.
                unsafe {
                    let block = System.alloc(layout);
                    if !block.is_null() {
                        System.dealloc(block, layout);
                    }
                }
            }
        }
    }

    fn give_back(&self, address: usize, bytes: usize) {
        // SAFETY: as above.
        let free = unsafe { &mut *self.free.get() };
        if let Some(place) = free.iter_mut().find(|block| block.0 == 0) {
            *place = (address, bytes.div_ceil(PAGE));
        }
    }
}

fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= PAGE
}

// SAFETY: blocks are whole pages that nobody else has; they come back with the layout that they were asked with.
unsafe impl GlobalAlloc for Pages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match is_large(layout) {
            true => self.take(layout.size()).0 as *mut u8,
            false => {
                self.small_is_taken(layout.size());
                // SAFETY: as this function's.
                unsafe { System.alloc(layout) }
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !is_large(layout) {
            self.small_is_taken(layout.size());
            // SAFETY: as this function's.
            return unsafe { System.alloc_zeroed(layout) };
        }
        let (address, empty) = self.take(layout.size());
        let block = address as *mut u8;
        if !empty {
            // SAFETY: it has at least as many bytes.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match is_large(layout) {
            true => self.give_back(block as usize, layout.size()),
            false => {
                self.small_is_given_back(layout.size());
                // SAFETY: as this function's.
                unsafe { System.dealloc(block, layout) }
            }
        }
    }
}
