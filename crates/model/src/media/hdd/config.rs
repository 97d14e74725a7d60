//! Configuration of a hard disk.

use alloc::string::String;
use alloc::vec::Vec;

use crate::time::Span;

/// Maximum number of zones.
pub const MOST_ZONES: u32 = 64;
/// Maximum number of writes in the cache: each is examined before the arm moves.
pub const MOST_WRITES: u32 = 4096;

/// Configuration of a hard disk.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HddConfig {
    /// Bytes a host can address.
    pub bytes: u64,
    /// Bytes in a logical block.
    pub block: u32,
    /// Platters and their recording format.
    pub disk: Disk,
    /// Seek times.
    pub seek: Seek,
    /// Processing times of the firmware.
    pub controller: HddController,
    /// Link to the host.
    pub link: Link,
    /// Command queue.
    pub queue: HddQueue,
    /// Buffer memory.
    pub buffer: HddBuffer,
    /// Whether the volatile write cache is on: writes are acknowledged once they are in the buffer.
    pub write_cache: bool,
    /// From the return of power until commands are accepted.
    pub spin_up: Span,
    /// Power consumption.
    pub power: HddPower,
}

/// Platters and their recording format.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Disk {
    /// Surfaces that hold data.
    pub heads: u32,
    /// Number of zones, all of equal width; all tracks of a zone hold the same number of bytes.
    pub zones: u32,
    /// Time of one revolution.
    pub turn: Span,
    /// Bytes of a physical sector: 512, or 4096 even if logical blocks are smaller (512e).
    pub sector: u32,
    /// Sustained rate of the outermost zone in bytes per second, including track switches.
    pub outer: u64,
    /// Sustained rate of the innermost zone in bytes per second, including track switches.
    pub inner: u64,
    /// Share of reads that need another revolution because the first did not return the data.
    pub read_retry: f64,
}

/// Seek times, settling included.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Seek {
    /// To the next track, for a read. Another head on the same cylinder takes the same time.
    pub track: Span,
    /// Mean over all pairs of cylinders, for a read.
    pub average: Span,
    /// From the first cylinder to the last, for a read.
    pub full: Span,
    /// Additional settling time of a write.
    pub write_settle: Span,
}

/// Processing times of the firmware.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HddController {
    /// Work for any command, one command after another.
    pub command: Span,
    /// Additional delay of a command that needs the disk, before the arm moves.
    pub access: Span,
}

/// Link to the host.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Link {
    /// Fixed cost of a command, in both directions together.
    pub delay: Span,
    /// Picoseconds per byte.
    pub ps_per_byte: u64,
}

/// Command queue.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HddQueue {
    /// Commands that the drive accepts; others wait outside, in order.
    pub depth: u32,
    /// A command that has waited for this time has priority; the cost of a younger one decreases towards that time.
    pub oldest: Span,
}

/// Buffer memory.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HddBuffer {
    /// Number of segments: ranges of the disk kept from reads and writes.
    pub segments: u32,
    /// Maximum bytes of a segment.
    pub segment: u64,
    /// Bytes read ahead beyond the request, while there is no other work.
    pub read_ahead: u64,
    /// Maximum bytes of writes that are not yet on the disk.
    pub write: u64,
    /// Maximum number of such writes.
    pub writes: u32,
}

/// Power consumption of the whole drive, in watts.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HddPower {
    /// Spinning, heads loaded.
    pub idle: f64,
    /// While the arm moves.
    pub seek: f64,
    /// While data passes under the head.
    pub transfer: f64,
}

impl HddConfig {
    /// Returns the track skew: how much later a track begins than the previous one. It equals the time of a write to
    /// get there.
    pub fn skew(&self) -> Span {
        self.seek.track + self.seek.write_settle
    }

    /// Returns a sentence for each invalid value; empty if the configuration is valid.
    pub fn problems(&self) -> Vec<String> {
        let (disk, seek, buffer) = (&self.disk, &self.seek, &self.buffer);
        let retry = disk.read_retry;
        let share = seek_share(seek);
        let second = Span::from_ms(1000);
        let checks = [
            (
                self.bytes < 4096 || !self.bytes.is_multiple_of(4096),
                "the capacity must be a multiple of 4 KiB",
            ),
            (
                disk.heads == 0 || disk.heads > 64 || !(1..=MOST_ZONES).contains(&disk.zones),
                "a disk has 1 to 64 heads and 1 to 64 zones",
            ),
            (
                disk.turn < Span::from_us(100) || disk.turn > second,
                "a revolution must take 100 us to 1 s",
            ),
            (
                !matches!(disk.sector, 512 | 4096) || disk.sector < self.block,
                "a sector has 512 or 4096 bytes, and not fewer than a logical block",
            ),
            (
                disk.inner < 1_000_000 || disk.outer < disk.inner || disk.outer > 1 << 40,
                "the outermost zone must be at least as fast as the innermost, and the innermost must have at least 1 MB/s",
            ),
            (
                !(0.0..=0.5).contains(&retry),
                "the share of reads that are tried again must be from 0 to 50 %",
            ),
            (
                self.bytes as f64 > 2e9 * disk.inner as f64 * disk.turn.seconds(),
                "a disk must have at most 2,000,000,000 tracks",
            ),
            (
                seek.full > second || self.skew() >= disk.turn,
                "a seek to the next track must take less than a revolution, and a full-stroke seek at most one second",
            ),
            (
                share.is_none_or(|share| !(SQUARE..=ROOT).contains(&share)),
                "the average seek time must be between 1/3 and 8/15 of the way from the track-to-track to the full-stroke time",
            ),
            (
                self.queue.depth == 0 || self.queue.oldest == Span::ZERO,
                "the queue depth and the maximum age in the queue must be above zero",
            ),
            (
                self.queue.oldest > Span::from_ms(60_000),
                "the maximum age in the queue must be at most one minute",
            ),
            (
                buffer.segments == 0 || buffer.read_ahead > buffer.segment,
                "the buffer must have at least one segment, and the read-ahead must fit one segment",
            ),
            (
                self.write_cache && (buffer.write < 4096 || buffer.writes == 0),
                "a write cache must hold at least one write of 4 KiB",
            ),
            (
                buffer.writes > MOST_WRITES,
                "a write cache must hold at most 4096 writes",
            ),
            (
                self.power.seek < self.power.idle || self.power.transfer < self.power.idle,
                "active power must be at least idle power",
            ),
        ];
        let wrong = checks.into_iter().filter(|(wrong, _)| *wrong);
        wrong.map(|(_, what)| what.into()).collect()
    }
}

/// Mean distance between two random positions, as a share of the longest.
const SQUARE: f64 = 1.0 / 3.0;
/// Mean of the square root of that distance.
const ROOT: f64 = 8.0 / 15.0;

/// Returns the position of the average seek between that of one track, 0, and that of the full stroke, 1.
fn seek_share(seek: &Seek) -> Option<f64> {
    let (track, full) = (seek.track.seconds(), seek.full.seconds());
    (full > track).then(|| (seek.average.seconds() - track) / (full - track))
}

impl Seek {
    /// Returns the two factors of a seek over a share x of the stroke, `track + root * sqrt(x) + line * x`, in
    /// nanoseconds.
    pub(super) fn factors(&self) -> (f64, f64) {
        let range = self.full.ns() as f64 - self.track.ns() as f64;
        let share = seek_share(self).unwrap_or(SQUARE);
        let root = range * (share - SQUARE) / (ROOT - SQUARE);
        (root, range - root)
    }
}
