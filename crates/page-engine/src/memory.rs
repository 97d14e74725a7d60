//! Allocator inside a page: large tables get pages of their own from the virtual machine, which are already zeroed.
//!
//! The standard allocator zeroes memory on request, although WebAssembly's memory begins with zeroes. The tables of a
//! NAND drive have some gigabytes, but a run accesses only a few of their pages. Zeroing would turn all of that into real memory
//! of the reader's machine; without it, only accessed pages use real memory. Released blocks are kept for later
//! tables.
//!
//! The standard allocator requests 64 KiB at a time, and each request costs the browser more than the following use of
//! the memory. So it is made to request as much as it already has, before it runs out.

// An allocator works with raw addresses.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::arch::wasm32::memory_grow;
use std::cell::UnsafeCell;

/// Bytes of a page of WebAssembly.
const PAGE: usize = 65_536;
/// Minimum size of a block with pages of its own; smaller blocks use the standard allocator.
const LARGE: usize = 1 << 20;
/// Maximum number of blocks that are kept; a drive has fewer.
const KEPT: usize = 64;

/// A released block: its address and its pages. Address 0 means no block.
type Block = (usize, usize);

/// Initial size of the standard allocator.
const SHARE: usize = 4 << 20;

/// The allocator of the page.
pub(crate) struct Pages {
    free: UnsafeCell<[Block; KEPT]>,
    /// Bytes of the standard allocator in use, and bytes that it has been given.
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
    /// Returns a block, and whether it is known to be zeroed; address 0 if no memory is left.
    fn take(&self, bytes: usize) -> (usize, bool) {
        let pages = bytes.div_ceil(PAGE);
        // SAFETY: there is one thread, and nothing here allocates memory.
        let free = unsafe { &mut *self.free.get() };
        // The block with the least waste: tables are requested again in the sizes that were released.
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

    /// Records that this number of bytes of the standard allocator is no longer in use.
    fn small_is_given_back(&self, bytes: usize) {
        // SAFETY: as above.
        unsafe { (*self.small.get()).0 -= bytes };
    }

    /// Records that this number of bytes of the standard allocator is in use, and gives it more in advance. It keeps
    /// every block that it has been given.
    fn small_is_taken(&self, bytes: usize) {
        // SAFETY: as above.
        let (used, has) = unsafe { &mut *self.small.get() };
        *used += bytes;
        if *used + *used / 4 > *has {
            let share = (*has).max(SHARE);
            *has += share;
            if let Ok(layout) = Layout::from_size_align(share, 16) {
                // SAFETY: its size is not zero, and it is released with the same layout.
                unsafe {
                    let block = System.alloc(layout);
                    if !block.is_null() {
                        System.dealloc(block, layout);
                    }
                }
            }
        }
    }

    fn release(&self, address: usize, bytes: usize) {
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

// SAFETY: blocks are whole pages with a single owner; they are released with the layout of their request.
unsafe impl GlobalAlloc for Pages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match is_large(layout) {
            true => self.take(layout.size()).0 as *mut u8,
            false => {
                self.small_is_taken(layout.size());
                // SAFETY: the same conditions as for this function.
                unsafe { System.alloc(layout) }
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !is_large(layout) {
            self.small_is_taken(layout.size());
            // SAFETY: the same conditions as for this function.
            return unsafe { System.alloc_zeroed(layout) };
        }
        let (address, empty) = self.take(layout.size());
        let block = address as *mut u8;
        if !empty {
            // SAFETY: the block has at least this number of bytes.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match is_large(layout) {
            true => self.release(block as usize, layout.size()),
            false => {
                self.small_is_given_back(layout.size());
                // SAFETY: the same conditions as for this function.
                unsafe { System.dealloc(block, layout) }
            }
        }
    }
}
