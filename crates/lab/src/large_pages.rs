//! Asks the operating system for large pages for those tables of a drive that are accessed at random addresses.
//!
//! The map of a large NAND drive has several hundred megabytes, and each write accesses one line at a random place.
//! With pages of 4 KiB, the processor must first translate the address, which takes as long as the access itself.
//! Linux only. On other systems, and if no large pages are available, this has no effect. No result depends on it.

// Advice about memory that the drive owns: it reads and changes none of this memory.
#![allow(unsafe_code)]

use tier::Drive;

/// Asks for large pages for the tables of this drive.
#[cfg(target_os = "linux")]
pub(crate) fn ask_for(drive: &mut Drive) {
    use model::media::MediumDrive;
    use rustix::mm::{Advice, madvise};

    /// Smaller tables are accessed too rarely for an effect.
    const LEAST: usize = 8 << 20;
    /// Advice covers whole pages.
    const PAGE: usize = 4096;

    drive.scattered_tables(&mut |table| {
        let start = table.start.addr().next_multiple_of(PAGE);
        let end = table.end.addr() / PAGE * PAGE;
        if end.saturating_sub(start) < LEAST {
            return;
        }
        let address = table.start.with_addr(start).cast_mut().cast();
        // SAFETY: the advice changes neither the contents of these pages nor the permitted accesses. A kernel without
        // large pages refuses the advice, which is harmless.
        let _ = unsafe { madvise(address, end - start, Advice::LinuxHugepage) };
    });
}

/// No effect on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn ask_for(_drive: &mut Drive) {}
