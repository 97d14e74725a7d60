//! Asks the operating system to back those tables of a drive by large pages that are looked up at random all over.
//!
//! The map of a large NAND drive is some hundred megabytes, of which each write meets one line anywhere. In pages of
//! 4 KiB the processor first has to find out where that is in memory, which takes as long as the look-up itself. Linux
//! only: elsewhere, and where it has none to give, nothing happens. No result depends on it.

// A hint about memory that the drive has: it reads and changes none of it.
#![allow(unsafe_code)]

use model::Drive;

/// Asks for large pages for this drive's tables.
#[cfg(target_os = "linux")]
pub(crate) fn ask_for(drive: &mut Drive) {
    use model::media::MediumDrive;
    use rustix::mm::{Advice, madvise};

    /// What is smaller is not looked up so much that it would matter.
    const LEAST: usize = 8 << 20;
    /// Advice is about whole pages.
    const PAGE: usize = 4096;

    drive.scattered_tables(&mut |table| {
        let start = table.start.addr().next_multiple_of(PAGE);
        let end = table.end.addr() / PAGE * PAGE;
        if end.saturating_sub(start) < LEAST {
            return;
        }
        let address = table.start.with_addr(start).cast_mut().cast();
        // SAFETY: the advice changes neither what is in these pages nor what may be done with them.
        // A kernel without large pages refuses it, and that is no matter.
        let _ = unsafe { madvise(address, end - start, Advice::LinuxHugepage) };
    });
}

/// Not here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn ask_for(_drive: &mut Drive) {}
