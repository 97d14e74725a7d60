//! What a volume is made of.

use alloc::string::String;
use alloc::vec::Vec;

use crate::time::Span;

/// Widest spread there may be: two thirds of the latencies lie within a factor of e^2 of the median.
pub const WIDEST_SPREAD: f64 = 2.0;
/// A pace lasts as long at the least.
pub const SHORTEST_PACE: Span = Span::from_us(1);
/// Most I/Os in service.
pub const MOST_WIDTH: u32 = 65_536;

/// What a volume is made of.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct VolumeConfig {
    /// Bytes a host can address.
    pub bytes: u64,
    /// Bytes in a logical block.
    pub block: u32,
    /// What carries I/Os between the machine and the store.
    pub path: IoPath,
    /// Where the data are.
    pub store: Store,
    /// What the volume is limited to.
    pub limits: Limits,
    /// What the machine that it is attached to is limited to; all of that is for this volume.
    pub instance: Limits,
}

/// One thread (of a hypervisor, of a card) that carries I/Os in rounds: those that wait when a round begins are of it, one
/// after the other; those that come later are of the next.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IoPath {
    /// Once a round: it is woken, looks for what there is, and tells of what is done.
    pub round: Span,
    /// For each I/O.
    pub each: Span,
    /// Picoseconds for each byte read.
    pub read_ps_per_byte: u64,
    /// Picoseconds for each byte written.
    pub write_ps_per_byte: u64,
    /// Its pace differs from one time to the next: standard deviation of the logarithm, 0.2 for two thirds within a fifth.
    pub spread: f64,
    /// How long one pace lasts, in time of work. What takes longer meets several, and so differs less.
    pub pace: Span,
    /// When somebody else has its processor.
    pub pause: Option<Pause>,
}

/// Pauses of the path, at random and of random length (exponential both).
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Pause {
    /// Mean of the work between two of them.
    pub every: Span,
    /// Mean length.
    pub mean: Span,
}

/// Servers that keep the data, behind a network or not: each I/O takes its time there, beside the others.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Store {
    /// Median time of a read without its data.
    pub read: Span,
    /// Median time of a write without its data.
    pub write: Span,
    /// Picoseconds for each byte read.
    pub read_ps_per_byte: u64,
    /// Picoseconds for each byte written.
    pub write_ps_per_byte: u64,
    /// Standard deviation of the logarithm of these times.
    pub spread: f64,
    /// I/Os in service; others wait, in their order.
    pub width: u32,
}

/// Limits of IOPS and of bytes, as clouds have them: token buckets.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Limits {
    /// I/Os a second.
    pub iops: Option<Limit>,
    /// Bytes a second.
    pub bytes: Option<Limit>,
    /// Bytes that count as one I/O: a larger one counts as several.
    pub io_size: u32,
    /// So much of a second's rate may be asked for at once.
    pub window: Span,
}

/// A limit: tokens come at a rate, and each I/O or byte takes one.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Limit {
    /// Tokens a second.
    pub rate: u64,
    /// Beyond that, as long as there are credits.
    pub burst: Option<Burst>,
}

/// Credits: what was not taken of the rate is saved, and spent faster.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Burst {
    /// Tokens a second while there are credits.
    pub rate: u64,
    /// Most tokens that are saved.
    pub credits: u64,
}

impl Limits {
    /// None.
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
                "a limit lets something through",
            ),
            (
                all.clone().any(|it| below(&it)),
                "a burst is no slower than what follows it",
            ),
            (
                all.clone().count() > 0 && self.window == Span::ZERO,
                "a limit is kept over some time",
            ),
            (
                self.io_size < 512,
                "an I/O that counts as one has 512 B at the least",
            ),
        ];
        said(
            checks
                .into_iter()
                .map(|(wrong, what)| (wrong, alloc::format!("{whose}: {what}"))),
        )
    }
}

impl VolumeConfig {
    /// Everything that makes this no volume, a sentence each; nothing if it is one.
    pub fn problems(&self) -> Vec<String> {
        let (path, store) = (&self.path, &self.store);
        let spreads = [path.spread, store.spread];
        let checks = [
            (
                self.bytes < 4096 || !self.bytes.is_multiple_of(4096),
                "the capacity is whole units of 4 KiB",
            ),
            (
                spreads.iter().any(|it| !(0.0..=WIDEST_SPREAD).contains(it)),
                "a spread is 0 to 200 %",
            ),
            (
                !(1..=MOST_WIDTH).contains(&store.width),
                "one I/O to 65,536 are in service",
            ),
            (
                path.round + path.each == Span::ZERO && store.read.min(store.write) == Span::ZERO,
                "an I/O takes some time",
            ),
            (
                path.spread > 0.0 && path.pace < SHORTEST_PACE,
                "a pace lasts for 1 us at the least",
            ),
            (
                path.pause.is_some_and(|it| it.every == Span::ZERO),
                "between two pauses there is some work",
            ),
        ];
        let mut all = said(checks.map(|(wrong, what)| (wrong, what.into())).into_iter());
        all.extend(self.limits.problems("the volume's limits"));
        all.extend(self.instance.problems("the instance's limits"));
        all
    }
}

fn said(checks: impl Iterator<Item = (bool, String)>) -> Vec<String> {
    checks
        .filter(|(wrong, _)| *wrong)
        .map(|(_, what)| what)
        .collect()
}
