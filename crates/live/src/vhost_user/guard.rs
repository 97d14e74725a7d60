//! Protection against a truncated file of shared memory.
//!
//! A page of a mapping that its file no longer has cannot be accessed: the kernel sends SIGBUS, which ends a process. A
//! check beforehand does not help, because the file may be truncated between check and use. Sealing the file against
//! truncation does not help either: a memfd can be sealed, but guests also use files in `/dev/shm` and files of huge
//! pages, which cannot. So the signal is handled. If the address is in guarded memory, the whole mapping is replaced by
//! zeroed memory and marked as lost, and the access is repeated. Every reader of guarded memory checks afterwards
//! whether the memory was lost, and ends the connection if so. Any other SIGBUS is passed to the previous handler,
//! which ends the process.
//!
//! This is the only unsafe code: the kernel offers no other way, and no library that we know of does this. Source:
//! sigaction(2), mmap(2); Wayland servers guard the buffers of their clients in the same way.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use libc::{c_int, c_void, sigaction, siginfo_t};

/// Maximum number of guarded mappings of the process: more than its connections need.
const MOST: usize = 4096;

/// Address range of a guarded mapping; free if its end is 0.
struct GuardedRange {
    taken: AtomicBool,
    start: AtomicUsize,
    end: AtomicUsize,
    lost: AtomicBool,
}

static PLACES: [GuardedRange; MOST] = [const {
    GuardedRange {
        taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        lost: AtomicBool::new(false),
    }
}; MOST];

/// Previous action for SIGBUS, or the error with which the handler could not be installed.
static BEFORE: OnceLock<Result<sigaction, i32>> = OnceLock::new();

/// Guards one mapping while it exists; must be dropped before the mapping is released.
#[derive(Debug)]
pub(super) struct MappingGuard(usize);

impl MappingGuard {
    /// Guards `bytes` bytes at `start`, which must be a whole mapping.
    ///
    /// # Errors
    /// There are too many guards, or the signal handler cannot be installed.
    pub(super) fn new(start: *const u8, bytes: usize) -> io::Result<MappingGuard> {
        take_signal()?;
        let free = |place: &GuardedRange| {
            let (from, to) = (Ordering::Acquire, Ordering::Relaxed);
            place.taken.compare_exchange(false, true, from, to).is_ok()
        };
        let index = PLACES.iter().position(free);
        let index = index.ok_or_else(|| io::Error::other("too much shared memory"))?;
        let place = &PLACES[index];
        place.lost.store(false, Ordering::Relaxed);
        place.start.store(start as usize, Ordering::Relaxed);
        let end = (start as usize).saturating_add(bytes);
        place.end.store(end, Ordering::Release);
        Ok(MappingGuard(index))
    }

    /// Checks whether data read from it may have been zeroes instead of its content.
    pub(super) fn is_lost(&self) -> bool {
        PLACES[self.0].lost.load(Ordering::Relaxed)
    }
}

impl Drop for MappingGuard {
    fn drop(&mut self) {
        let place = &PLACES[self.0];
        place.end.store(0, Ordering::Release);
        place.taken.store(false, Ordering::Release);
    }
}

/// Installs the signal handler once; concurrent callers wait until it is installed.
fn take_signal() -> io::Result<()> {
    match BEFORE.get_or_init(install) {
        Ok(_) => Ok(()),
        Err(code) => Err(io::Error::from_raw_os_error(*code)),
    }
}

/// Installs the handler and returns the previous action. An unrelated SIGBUS before that is known repeats until it is.
fn install() -> Result<sigaction, i32> {
    let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = bus_error;
    // SAFETY: `action` is plain data for which zeroes are valid (no flags, an empty mask), and outlives the calls. The
    // handler is a function of the kind that SA_SIGINFO requires, and calls only functions that a signal handler may
    // call.
    unsafe {
        let mut before = MaybeUninit::<sigaction>::zeroed();
        let mut action: sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        if libc::sigaction(libc::SIGBUS, &raw const action, before.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error().raw_os_error().unwrap_or(0));
        }
        Ok(before.assume_init())
    }
}

/// Replaces the guarded mapping that contains this address. Returns whether there was one.
fn replace(address: usize) -> bool {
    for place in &PLACES {
        let end = place.end.load(Ordering::Acquire);
        let start = place.start.load(Ordering::Relaxed);
        if !(start..end).contains(&address) {
            continue;
        }
        place.lost.store(true, Ordering::Relaxed);
        // SAFETY: the range is a mapping that its `MappingGuard` keeps; it is replaced by memory of the same length that can
        // be read and written as before, so every pointer into it stays valid.
        let mapped = unsafe {
            libc::mmap(
                start as *mut c_void,
                end - start,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        return mapped != libc::MAP_FAILED;
    }
    false
}

/// Handles SIGBUS: replaces guarded memory, and the access is repeated. Any other SIGBUS ends the process, as before.
extern "C" fn bus_error(_signal: c_int, cause: *mut siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t`, which for SIGBUS has an address.
    let address = unsafe { (*cause).si_addr() } as usize;
    if replace(address) {
        return;
    }
    if let Some(Ok(before)) = BEFORE.get() {
        // SAFETY: the action that the kernel returned may be restored. The access is repeated and then handled by the
        // previous action.
        unsafe { libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Barrier;

    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use vm_memory::mmap::MmapRegion;
    use vm_memory::{Bytes, FileOffset, VolatileMemory};

    use super::*;

    #[test]
    fn memory_that_is_cut_short_reads_as_zeroes_and_is_lost() {
        let file = File::from(memfd_create("shared", MemfdFlags::CLOEXEC).expect("memory"));
        ftruncate(&file, 1 << 16).expect("memory");
        let place = FileOffset::new(file.try_clone().expect("a descriptor"), 0);
        let memory = MmapRegion::<()>::from_file(place, 1 << 16).expect("memory");
        let other = MappingGuard::new(std::ptr::dangling(), 1).expect("room");
        let guard = MappingGuard::new(memory.as_ptr(), 1 << 16).expect("room");
        let slice = memory.as_volatile_slice();
        slice.write_obj(7_u64, 0x8000).expect("in range");
        ftruncate(&file, 0x8000).expect("cut");
        assert!(!guard.is_lost(), "nobody has looked");
        assert_eq!(slice.read_obj::<u64>(0x8000).expect("in range"), 0);
        assert!(guard.is_lost() && !other.is_lost());
        slice.write_obj(9_u64, 0x8000).expect("in range");
        assert_eq!(slice.read_obj::<u64>(0x8000).expect("in range"), 9);
        drop(guard);
        let again = MappingGuard::new(memory.as_ptr(), 1 << 16).expect("room");
        assert!(!again.is_lost());
    }

    #[test]
    fn a_guard_is_in_force_as_soon_as_it_is_there() {
        const THREADS: usize = 8;
        let together = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let file = memfd_create("shared", MemfdFlags::CLOEXEC).expect("memory");
                    ftruncate(&file, 4096).expect("memory");
                    let place = FileOffset::new(File::from(file), 0);
                    let memory = MmapRegion::<()>::from_file(place.clone(), 4096).expect("memory");
                    ftruncate(place.file(), 0).expect("cut");
                    together.wait();
                    // If no other test was faster, all of them install the handler now.
                    let guard = MappingGuard::new(memory.as_ptr(), 4096).expect("room");
                    let read = memory.as_volatile_slice().read_obj::<u64>(0);
                    assert_eq!(read.expect("in range"), 0);
                    assert!(guard.is_lost());
                });
            }
        });
    }
}
