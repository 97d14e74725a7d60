//! `[ratings]`: a maker's ratings of a drive, with their conditions. The model does not use them directly: `drivelab
//! fit --sheet` solves figures so that the model meets the ratings, and a test checks the drives of the catalogue
//! against them.
//!
//! A file that names its document (`sheet = "..."`) may give a figure as the sheet prints it, without kind and
//! source. Bounds on percentiles (`[[ratings.qos]]`) are in `qos.rs`. Not included: ratings of mixes, because sheets give
//! them in too many forms.

use model::Span;
use text::quantity::Rate;

use super::qos::{self, QosBound};
use super::section::Section;

/// A rated quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RatedQuantity {
    /// Sequential reads, bytes per second.
    SequentialRead,
    /// Sequential writes, bytes per second; for a drive with an SLC cache, while the cache lasts.
    SequentialWrite,
    /// Sequential writes once the SLC cache is full, bytes per second.
    FullCacheWrite,
    /// Random reads per second.
    RandomRead,
    /// Random writes per second: sustained, or on a new drive ([`Ratings::sustained`]).
    RandomWrite,
    /// Mean latency of a random 4 KiB read at QD1, seconds.
    ReadLatency,
    /// Mean latency of a random 4 KiB write at QD1, seconds.
    WriteLatency,
    /// Random 4 KiB reads per second at QD1.
    ReadsAtOne,
    /// Random 4 KiB writes per second at QD1.
    WritesAtOne,
}

impl RatedQuantity {
    /// All ratings, in the order in which figures are solved: ratings that bound others come first.
    pub const ALL: [RatedQuantity; 9] = [
        RatedQuantity::ReadLatency,
        RatedQuantity::ReadsAtOne,
        RatedQuantity::WriteLatency,
        RatedQuantity::WritesAtOne,
        RatedQuantity::SequentialRead,
        RatedQuantity::RandomRead,
        RatedQuantity::SequentialWrite,
        RatedQuantity::FullCacheWrite,
        RatedQuantity::RandomWrite,
    ];

    /// Returns the key in `[ratings]`.
    pub const fn key(self) -> &'static str {
        match self {
            RatedQuantity::SequentialRead => "sequential_read",
            RatedQuantity::SequentialWrite => "sequential_write",
            RatedQuantity::FullCacheWrite => "full_cache_write",
            RatedQuantity::RandomRead => "random_read",
            RatedQuantity::RandomWrite => "random_write",
            RatedQuantity::ReadLatency => "read_latency",
            RatedQuantity::WriteLatency => "write_latency",
            RatedQuantity::ReadsAtOne => "random_read_qd1",
            RatedQuantity::WritesAtOne => "random_write_qd1",
        }
    }

    /// Formats a value as a data sheet prints it.
    pub fn words(self, value: f64) -> String {
        match self {
            RatedQuantity::SequentialRead
            | RatedQuantity::SequentialWrite
            | RatedQuantity::FullCacheWrite => {
                format!("{:.0} MB/s", value * 1e-6)
            }
            RatedQuantity::ReadLatency | RatedQuantity::WriteLatency => {
                format!("{:.1} us", value * 1e6)
            }
            _ if value < 1e6 => format!("{:.1} kIOPS", value * 1e-3),
            _ => format!("{:.0} kIOPS", value * 1e-3),
        }
    }

    fn read(self, section: &mut Section<'_>) -> Option<f64> {
        section.maybe(self.key(), |section, key| match self {
            RatedQuantity::SequentialRead
            | RatedQuantity::SequentialWrite
            | RatedQuantity::FullCacheWrite => {
                let bounds = Rate(1e6)..=Rate(1e11);
                section.get(key, bounds).0
            }
            RatedQuantity::ReadLatency | RatedQuantity::WriteLatency => {
                let bounds = Span::from_us(1)..=Span::from_ms(10);
                section.span(key, bounds).seconds()
            }
            _ => section.get(key, 100.0..=1e8),
        })
    }
}

/// Ratings of a drive, and their conditions.
#[derive(Clone, PartialEq, Debug)]
pub struct Ratings {
    /// Given ratings, in the order of [`RatedQuantity::ALL`].
    pub given: Vec<(RatedQuantity, f64)>,
    /// Whether the model was solved to meet the ratings. For a drive built from measurements, they are only printed
    /// values of the maker (`met = false`).
    pub met: bool,
    /// Whether writes are rated in steady state (data-centre drives), or on a new drive while its SLC cache accepts
    /// them.
    pub sustained: bool,
    /// Outstanding sequential commands.
    pub sequential_depth: u32,
    /// Bytes per sequential command.
    pub sequential_block: u32,
    /// Outstanding random reads, over all threads.
    pub random_read_depth: u32,
    /// Outstanding random writes, over all threads.
    pub random_write_depth: u32,
    /// Bytes per random write (random reads are 4 KiB): the indirection unit of drives whose unit is larger.
    pub random_write_block: u32,
    /// Address range of the rated random I/O in bytes; `None` means the whole drive.
    pub span: Option<u64>,
    /// Bytes of host data that the SLC cache of an empty drive holds, if published.
    pub slc_cache: Option<u64>,
    /// Bounds on percentiles of random 4 KiB I/Os.
    pub qos: Vec<QosBound>,
}

impl Ratings {
    /// Returns the value of this rating, if given.
    pub fn value(&self, rated: RatedQuantity) -> Option<f64> {
        let found = self.given.iter().find(|(one, _)| *one == rated);
        found.map(|&(_, value)| value)
    }

    /// Returns the ratings at QD1, which depend on the host most, with the same conditions.
    #[must_use]
    pub fn at_depth_one(&self) -> Ratings {
        use RatedQuantity::{ReadLatency, ReadsAtOne, WriteLatency, WritesAtOne};
        let mut at_one = self.clone();
        let alone = [ReadLatency, ReadsAtOne, WriteLatency, WritesAtOne];
        at_one.given.retain(|(rated, _)| alone.contains(rated));
        at_one
    }
}

/// Reads `[ratings]`, if the file has it.
pub(super) fn read(root: &mut Section<'_>) -> Option<Ratings> {
    if !root.has("ratings") {
        return None;
    }
    let mut section = root.section("ratings");
    let given = RatedQuantity::ALL
        .into_iter()
        .filter_map(|rated| Some((rated, rated.read(&mut section)?)))
        .collect();
    let ratings = Ratings {
        given,
        met: section.maybe("met", Section::flag).unwrap_or(true),
        sustained: section.choice("writes", &[("sustained", true), ("new", false)]),
        sequential_depth: section.count("sequential_depth", 1..=1024u32),
        sequential_block: section.bytes("sequential_block", 4096..=1 << 24) as u32,
        random_read_depth: section.count("random_read_depth", 1..=4096u32),
        random_write_depth: section.count("random_write_depth", 1..=4096u32),
        random_write_block: section.bytes("random_write_block", 4096..=1 << 20) as u32,
        span: section.maybe("span", |section, key| section.bytes(key, 1 << 20..=1 << 50)),
        slc_cache: section.maybe("slc_cache", |section, key| {
            section.bytes(key, 1_000_000..=1 << 50)
        }),
        qos: qos::read(&mut section),
    };
    for (one, other) in [
        (RatedQuantity::ReadLatency, RatedQuantity::ReadsAtOne),
        (RatedQuantity::WriteLatency, RatedQuantity::WritesAtOne),
    ] {
        if ratings.value(one).is_some() && ratings.value(other).is_some() {
            section.problem(
                other.key(),
                format!("`{}` and `{}` say the same thing", other.key(), one.key()),
                "keep the one that the sheet gives for the condition nearer to QD1 and 4 KiB",
            );
        }
    }
    if let Some(latency) = [RatedQuantity::ReadLatency, RatedQuantity::WriteLatency]
        .into_iter()
        .find(|&one| {
            ratings
                .value(one)
                .is_some_and(|seconds| seconds * 1e6 < 3.0)
        })
    {
        let what = format!("`{}` is less than NVMe over PCIe takes", latency.key());
        section.problem(
            latency.key(),
            what,
            "write what the sheet has at QD1, such as \"80 us\"",
        );
    }
    (!ratings.given.is_empty()).then_some(ratings)
}
