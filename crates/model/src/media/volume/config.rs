//! Configuration of a volume.

use alloc::string::String;
use alloc::vec::Vec;

use crate::time::Span;

/// Maximum spread: two thirds of the latencies are within a factor of e^2 of the median.
pub const WIDEST_SPREAD: f64 = 2.0;
/// Minimum duration of a pace.
pub const SHORTEST_PACE: Span = Span::from_us(1);
/// Maximum number of I/Os in service.
pub const MOST_WIDTH: u32 = 65_536;

/// Configuration of a volume.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct VolumeConfig {
    /// Bytes a host can address.
    pub bytes: u64,
    /// Bytes in a logical block.
    pub block: u32,
    /// I/O thread between the machine and the store.
    pub path: IoPath,
    /// Servers that store the data.
    pub store: Store,
    /// Limits of the volume.
    pub limits: Limits,
    /// Limits of the instance that the volume is attached to; all of them are available to this volume.
    pub instance: Limits,
}

/// One thread (of a hypervisor or of a card) that processes I/Os in rounds. I/Os that wait when a round begins belong
/// to it and are processed one after another; later arrivals belong to the next round.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IoPath {
    /// Cost per round: the thread is woken, looks for I/Os, and reports completions.
    pub round: Span,
    /// Cost per I/O.
    pub each: Span,
    /// Picoseconds per byte read.
    pub read_ps_per_byte: u64,
    /// Picoseconds per byte written.
    pub write_ps_per_byte: u64,
    /// Variation of the thread's pace over time: standard deviation of the logarithm; at 0.2, two thirds are within a
    /// fifth of the median.
    pub spread: f64,
    /// Duration of one pace, in time of work. Longer work spans several paces, and so varies less.
    pub pace: Span,
    /// Pauses, when other work occupies its processor.
    pub pause: Option<Pause>,
}

/// Pauses of the thread, at random times and of random length (exponential both).
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Pause {
    /// Mean time of work between two of them.
    pub every: Span,
    /// Mean length of a pause.
    pub mean: Span,
}

/// Servers that store the data, behind a network or not. Each I/O takes its own time there, in parallel with others.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Store {
    /// Median time of a read without its data transfer.
    pub read: Span,
    /// Median time of a write without its data transfer.
    pub write: Span,
    /// Picoseconds per byte read.
    pub read_ps_per_byte: u64,
    /// Picoseconds per byte written.
    pub write_ps_per_byte: u64,
    /// Standard deviation of the logarithm of these times.
    pub spread: f64,
    /// Maximum number of I/Os in service; others wait, in order.
    pub width: u32,
}

/// Limits of IOPS and of bytes per second, as in clouds: token buckets.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Limits {
    /// I/Os per second.
    pub iops: Option<Limit>,
    /// Bytes per second.
    pub bytes: Option<Limit>,
    /// Bytes that count as one I/O: a larger I/O counts as several.
    pub io_size: u32,
    /// Time whose tokens at the rate can be used at once.
    pub window: Span,
}

/// A limit: tokens arrive at a rate, and each I/O or byte consumes one.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Limit {
    /// Tokens per second.
    pub rate: u64,
    /// Higher rate while there are credits.
    pub burst: Option<Burst>,
}

/// Credits: unused tokens of the rate are saved, and can be spent at a higher rate.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Burst {
    /// Tokens per second while there are credits.
    pub rate: u64,
    /// Maximum number of saved tokens.
    pub credits: u64,
}

impl Limits {
    /// No limits.
    pub const NONE: Limits = Limits {
        iops: None,
        bytes: None,
        io_size: 262_144,
        window: Span::from_ms(10),
    };

    fn problems(&self, whose: &str) -> Vec<String> {
        let all = [self.iops, self.bytes].into_iter().flatten();
        let below = |limit: &Limit| limit.burst.is_some_and(|burst| burst.rate < limit.rate);
        let empty =
            |limit: &Limit| limit.rate == 0 || limit.burst.is_some_and(|burst| burst.credits == 0);
        let checks = [
            (
                all.clone().any(|it| empty(&it)),
                "a limit, and its burst credits if any, must be above zero",
            ),
            (
                all.clone().any(|it| below(&it)),
                "the burst rate must be at least the rate after the burst",
            ),
            (
                all.clone().count() > 0 && self.window == Span::ZERO,
                "the period of a limit must be above zero",
            ),
            (
                self.io_size < 512,
                "the size that counts as one I/O must be at least 512 B",
            ),
        ];
        failed_checks(
            checks
                .into_iter()
                .map(|(wrong, what)| (wrong, alloc::format!("{whose}: {what}"))),
        )
    }
}

impl VolumeConfig {
    /// Returns a sentence for each invalid value; empty if the configuration is valid.
    pub fn problems(&self) -> Vec<String> {
        let (path, store) = (&self.path, &self.store);
        let spreads = [path.spread, store.spread];
        let checks = [
            (
                self.bytes < 4096 || !self.bytes.is_multiple_of(4096),
                "the capacity must be a multiple of 4 KiB",
            ),
            (
                spreads.iter().any(|it| !(0.0..=WIDEST_SPREAD).contains(it)),
                "a spread must be from 0 to 200 %",
            ),
            (
                !(1..=MOST_WIDTH).contains(&store.width),
                "the store must serve from 1 to 65,536 I/Os at a time",
            ),
            (
                path.round + path.each == Span::ZERO && store.read.min(store.write) == Span::ZERO,
                "an I/O takes some time",
            ),
            (
                path.spread > 0.0 && path.pace < SHORTEST_PACE,
                "a pace must last at least 1 us",
            ),
            (
                path.pause.is_some_and(|it| it.every == Span::ZERO),
                "the work between two pauses must be above zero",
            ),
        ];
        let mut all = failed_checks(checks.map(|(wrong, what)| (wrong, what.into())).into_iter());
        all.extend(self.limits.problems("the volume's limits"));
        all.extend(self.instance.problems("the instance's limits"));
        all
    }
}

fn failed_checks(checks: impl Iterator<Item = (bool, String)>) -> Vec<String> {
    checks
        .filter(|(wrong, _)| *wrong)
        .map(|(_, what)| what)
        .collect()
}
