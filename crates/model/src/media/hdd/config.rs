//! What a hard disk is made of.

use alloc::string::String;
use alloc::vec::Vec;

use crate::time::Span;

/// Zones there may be.
pub const MOST_ZONES: u32 = 64;
/// Writes that the cache may hold: each is looked at before the arm moves.
pub const MOST_WRITES: u32 = 4096;

/// What a hard disk is made of.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HddConfig {
    /// Bytes a host can address.
    pub bytes: u64,
    /// Bytes in a logical block.
    pub block: u32,
    /// Platters and what is written on them.
    pub disk: Disk,
    /// How long the arm takes.
    pub seek: Seek,
    /// Firmware's time.
    pub controller: Controller,
    /// To the host.
    pub link: Link,
    /// Commands that wait.
    pub queue: Queue,
    /// Memory for data.
    pub buffer: Buffer,
    /// Whether writes are acknowledged once they are in the buffer.
    pub write_cache: bool,
    /// From the return of power until commands are taken.
    pub spin_up: Span,
    /// What it draws.
    pub power: Power,
}

/// Platters and what is written on them.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Disk {
    /// Surfaces that hold data.
    pub heads: u32,
    /// Zones, all of one width; within one all tracks hold the same.
    pub zones: u32,
    /// Time of a turn.
    pub turn: Span,
    /// Bytes in a sector on the disk: 512, or 4096 also where logical blocks are smaller (512e).
    pub sector: u32,
    /// Sustained rate of the outermost zone in bytes a second, track switches included.
    pub outer: u64,
    /// The same of the innermost.
    pub inner: u64,
    /// Share of reads that have to wait for another turn because the first did not give the data.
    pub read_retry: f64,
}

/// How long the arm takes, settling included.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Seek {
    /// To the next track, for a read. Another head on the same cylinder takes as long.
    pub track: Span,
    /// Mean over all pairs of cylinders, for a read.
    pub average: Span,
    /// From the first cylinder to the last, for a read.
    pub full: Span,
    /// What a write waits longer until the head is steady.
    pub write_settle: Span,
}

/// Firmware's time.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Controller {
    /// Work on any command, one after the other.
    pub command: Span,
    /// What a command that needs the disk waits beyond that, before the arm moves.
    pub access: Span,
}

/// To the host.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Link {
    /// Fixed cost of a command, there and back.
    pub delay: Span,
    /// Picoseconds for each byte.
    pub ps_per_byte: u64,
}

/// Commands that wait.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Queue {
    /// Commands the drive takes; others wait outside, in their order.
    pub depth: u32,
    /// A command that has waited so long goes first; the cost of a younger one falls towards that.
    pub oldest: Span,
}

/// Memory for data.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Buffer {
    /// Stretches of the disk that are remembered from reads and writes.
    pub segments: u32,
    /// Most bytes of one.
    pub segment: u64,
    /// Bytes read beyond what was asked for, as long as nothing else is to be done.
    pub read_ahead: u64,
    /// Most bytes of writes that are not on the disk yet.
    pub write: u64,
    /// Most writes of that kind.
    pub writes: u32,
}

/// What it draws, the whole drive, in watts.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Power {
    /// Turning, heads loaded.
    pub idle: f64,
    /// While the arm moves.
    pub seek: f64,
    /// While data pass under the head.
    pub transfer: f64,
}

impl HddConfig {
    /// How much later a track begins than the one before it: as long as a write takes to get there.
    pub fn skew(&self) -> Span {
        self.seek.track + self.seek.write_settle
    }

    /// Everything that makes this no disk, a sentence each; nothing if it is one.
    pub fn problems(&self) -> Vec<String> {
        let (disk, seek, buffer) = (&self.disk, &self.seek, &self.buffer);
        let retry = disk.read_retry;
        let share = seek_share(seek);
        let second = Span::from_ms(1000);
        let checks = [
            (
                self.bytes < 4096 || !self.bytes.is_multiple_of(4096),
                "the capacity is whole units of 4 KiB",
            ),
            (
                disk.heads == 0 || disk.heads > 64 || !(1..=MOST_ZONES).contains(&disk.zones),
                "a disk has 1 to 64 heads and 1 to 64 zones",
            ),
            (
                disk.turn < Span::from_us(100) || disk.turn > second,
                "a turn takes 100 us to 1 s",
            ),
            (
                !matches!(disk.sector, 512 | 4096) || disk.sector < self.block,
                "a sector has 512 or 4096 bytes, and not fewer than a logical block",
            ),
            (
                disk.inner < 1_000_000 || disk.outer < disk.inner || disk.outer > 1 << 40,
                "the outermost zone is at least as fast as the innermost, which does 1 MB/s at the least",
            ),
            (
                !(0.0..=0.5).contains(&retry),
                "the share of reads that are tried again is 0 to 50 %",
            ),
            (
                self.bytes as f64 > 2e9 * disk.inner as f64 * disk.turn.seconds(),
                "a disk has at most two thousand million tracks",
            ),
            (
                seek.full > second || self.skew() >= disk.turn,
                "a track is reached in less than a turn, and any in a second",
            ),
            (
                share.is_none_or(|share| !(SQUARE..=ROOT).contains(&share)),
                "the average seek is a third to 8/15 of the way from the next track's to the full stroke's",
            ),
            (
                self.queue.depth == 0 || self.queue.oldest == Span::ZERO,
                "a queue has places, and nobody waits there for no time",
            ),
            (
                self.queue.oldest > Span::from_ms(60_000),
                "nobody waits in the queue for more than a minute",
            ),
            (
                buffer.segments == 0 || buffer.read_ahead > buffer.segment,
                "what is read ahead fits a segment, of which there is one at least",
            ),
            (
                self.write_cache && (buffer.write < 4096 || buffer.writes == 0),
                "a write cache holds a write of 4 KiB at the least",
            ),
            (
                buffer.writes > MOST_WRITES,
                "a write cache holds 4096 writes at the most",
            ),
            (
                self.power.seek < self.power.idle || self.power.transfer < self.power.idle,
                "a disk at work draws no less than an idle one",
            ),
        ];
        let wrong = checks.into_iter().filter(|(wrong, _)| *wrong);
        wrong.map(|(_, what)| what.into()).collect()
    }
}

/// Mean of a distance that is drawn twice at random, as a share of the longest.
const SQUARE: f64 = 1.0 / 3.0;
/// Mean of its square root.
const ROOT: f64 = 8.0 / 15.0;

/// Where the average seek lies between that of a track, 0, and of the full stroke, 1.
fn seek_share(seek: &Seek) -> Option<f64> {
    let (track, full) = (seek.track.seconds(), seek.full.seconds());
    (full > track).then(|| (seek.average.seconds() - track) / (full - track))
}

impl Seek {
    /// The two factors of a seek over a share x of the stroke, `track + root * sqrt(x) + line * x`, in nanoseconds.
    pub(super) fn factors(&self) -> (f64, f64) {
        let range = self.full.ns() as f64 - self.track.ns() as f64;
        let share = seek_share(self).unwrap_or(SQUARE);
        let root = range * (share - SQUARE) / (ROOT - SQUARE);
        (root, range - root)
    }
}
