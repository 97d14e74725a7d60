//! Configuration of files: CPU costs, memory of the page cache, and the file of each thread. Assumed values are in
//! `[files]` and `[page_cache]` of a host.

use super::journal::Filesystem;
use super::read::Advice;
use crate::time::Span;

/// CPU time of a file system and its page cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FileCosts {
    /// A buffered write without its copy, including the system call.
    pub cached: Span,
    /// Copying into the page cache, in picoseconds per byte.
    pub copy_picoseconds_per_byte: u64,
    /// Additional time of a direct I/O to a file: the lookup in its extent map.
    pub direct: Span,
    /// A sync until its first page is submitted: finding dirty pages, mapping them.
    pub sync: Span,
    /// Time to wake the journal's thread, and to be woken by it: each.
    pub wake: Span,
    /// Marking an extent as written after a direct write: a kernel thread, which wakes first (`wake`), changes the
    /// file's map within a transaction of the journal.
    #[cfg_attr(feature = "serde", serde(default))]
    pub convert: Span,
    /// Tick of the clock that sets a file's times; zero: each write changes them.
    pub tick: Span,
}

/// Memory and limits of the page cache; the names are those of Linux' settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PageCacheConfig {
    /// Memory for pages (free or reclaimable), bytes. At least 1 MiB.
    pub memory: u64,
    /// Percent of `memory` above which dirty pages are written back.
    pub dirty_background_ratio: u8,
    /// Percent of `memory` that limits dirty pages; at least `dirty_background_ratio`.
    pub dirty_ratio: u8,
    /// Age at which dirty pages are written back.
    pub dirty_expire: Span,
    /// Interval at which the flusher looks for them; zero for never.
    pub dirty_writeback: Span,
    /// Longest window of read-ahead, bytes; 0 for none.
    pub read_ahead: u64,
    /// Write-back requests in flight.
    pub write_requests: u16,
}

/// The component that waits while a buffered I/O waits for the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Blocking {
    /// The thread, and therefore its later I/Os: the system call does not return (read, write, io_submit).
    #[default]
    Thread,
    /// The thread's helper, and therefore its later I/Os (POSIX AIO).
    Helper,
    /// Nothing else (io_uring, which hands such I/Os to workers).
    Never,
}

/// The data and metadata that a sync makes durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durable {
    /// Data, and the metadata needed to find it (fdatasync, `O_DSYNC`).
    Data,
    /// Also the times of the file (fsync, `O_SYNC`).
    All,
}

/// The file of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileConfig {
    /// File system; `None` for a drive that is written through the page cache.
    pub filesystem: Option<Filesystem>,
    /// Whether writes go through the page cache.
    pub buffered: bool,
    /// Whether the file is written sequentially for the first time: each page beyond the written part is new.
    pub appends: bool,
    /// Mean time between direct writes to blocks that were allocated and never written: the time in which a file is
    /// written, divided by its blocks. Zero: all writes are of this kind. `None`: all blocks have been written.
    pub converts_every: Option<Span>,
    /// Whether each write is durable when it completes (`O_DSYNC`, `O_SYNC`).
    pub each: Option<Durable>,
    /// Data and metadata that an explicit sync makes durable.
    pub sync: Durable,
    /// Whether the thread syncs while it writes, so that its list of dirty pages stays short.
    pub syncs: bool,
    /// The component that waits while a buffered I/O waits for the drive.
    pub blocking: Blocking,
    /// Advice about the accesses.
    pub advice: Advice,
    /// First byte of the file on the drive, and the byte after its last.
    pub range: (u64, u64),
    /// Whether the thread first removes the file's clean pages from memory (`invalidate`).
    pub invalidates: bool,
}
