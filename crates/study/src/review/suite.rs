//! The standard workloads of a review, as data: the effort of each suite, and the description of a point. The chapters
//! define the points ([`super::chapters`]).
//!
//! A workload is written as a fio job and parsed by the same reader as a user's own file, so the review shows exactly
//! what ran. The length of a job is set for each drive from a pilot run (see [`super::run`]), because with a fixed
//! time a fast drive would have a thousand times the samples of a slow one.

use model::Span;
use model::media::Precondition;

use super::course::Long;
use super::measure::Keep;
use super::results::PointSettings;

/// A suite of workloads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Suite {
    /// About a minute for three drives on two cores; percentiles up to 99.99.
    #[default]
    Quick,
    /// Some minutes; percentiles up to 99.999 at 4 KiB, and elsewhere those that are known to 2 %.
    Full,
    /// The tests of S1 and S4: block sizes and alignments, queue depths from up to four threads and from one, large
    /// sequential I/O, mixes with 16 threads. The first quarter of each run is dropped, as the sources dropped the
    /// first of four minutes.
    Anandtech2017,
    /// The eight tests of S0, in a virtual machine.
    Virten2017,
    /// S2's `nvmecontrol perftest`: 32 kernel threads.
    Perftest,
    /// Synchronous writes as a log device receives them.
    Slog,
    /// The profiles of VMware's HCIBench, and a run in which the write buffer fills.
    Hcibench,
    /// Cache warm-up.
    CacheWarmup,
    /// Rate-limited reads and writes under competing random writes.
    UnderLoad,
    /// SNIA's tests, in rounds until steady state.
    Snia,
    /// Sustained writes with and without heat.
    Heat,
    /// I/O while a pool member is rebuilt.
    Rebuild,
}

/// Effort of suite `quick`.
const QUICK: Effort = Effort {
    ios: 105_000,
    deep_ios: 1_050_000,
    bytes: 5 << 30,
    ramp: Span::from_ms(20),
    write_ramp: Span::from_ms(100),
    dropped: 0.0,
    sustained_writes: 6_000_000,
    seeds: SEEDS,
    fine: false,
    known: 0.0,
};

/// Effort of suite `full`.
const FULL: Effort = Effort {
    ios: 1_050_000,
    deep_ios: 1_050_000,
    bytes: u64::MAX,
    ramp: Span::from_ms(500),
    write_ramp: Span::from_ms(500),
    dropped: 0.0,
    sustained_writes: 10_000_000,
    seeds: SEEDS,
    fine: true,
    known: 0.02,
};

impl Suite {
    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Suite::Quick => "quick",
            Suite::Full => "full",
            Suite::Anandtech2017 => "anandtech-2017",
            Suite::Virten2017 => "virten-2017",
            Suite::Perftest => "perftest",
            Suite::Slog => "slog",
            Suite::Hcibench => "hcibench",
            Suite::CacheWarmup => "cache-warmup",
            Suite::UnderLoad => "under-load",
            Suite::Snia => "snia",
            Suite::Heat => "heat",
            Suite::Rebuild => "rebuild",
        }
    }

    /// All suites, in the order of the help.
    pub const ALL: [Suite; 12] = [
        Suite::Quick,
        Suite::Full,
        Suite::Anandtech2017,
        Suite::Virten2017,
        Suite::Perftest,
        Suite::Slog,
        Suite::Hcibench,
        Suite::CacheWarmup,
        Suite::UnderLoad,
        Suite::Snia,
        Suite::Heat,
        Suite::Rebuild,
    ];

    /// Returns the suite with this name.
    pub fn named(name: &str) -> Option<Suite> {
        Suite::ALL.into_iter().find(|suite| suite.name() == name)
    }

    /// Returns the default host of the suite; for an article's suite, the host that the article used.
    pub const fn host(self) -> &'static str {
        match self {
            Suite::Quick
            | Suite::Full
            | Suite::UnderLoad
            | Suite::Snia
            | Suite::Heat
            | Suite::Rebuild => catalogue::TYPICAL_HOST,
            Suite::Anandtech2017 | Suite::Slog | Suite::Hcibench | Suite::CacheWarmup => {
                "xeon-2017"
            }
            Suite::Virten2017 => "esxi-nuc",
            Suite::Perftest => "freebsd-perftest",
        }
    }

    /// Checks whether the suite is one of our own, which have chapters that no article has.
    pub(crate) const fn is_ours(self) -> bool {
        matches!(self, Suite::Quick | Suite::Full)
    }

    /// Checks whether the suite sweeps sizes, depths and mixes.
    pub(crate) const fn sweeps(self) -> bool {
        self.is_ours() || matches!(self, Suite::Anandtech2017)
    }

    /// Returns the effort of each point.
    pub const fn effort(self) -> Effort {
        match self {
            Suite::Quick => QUICK,
            Suite::Full => FULL,
            Suite::Anandtech2017 => Effort {
                deep_ios: 1_050_000,
                bytes: 5 << 30,
                dropped: 1.0 / 3.0,
                known: 0.0,
                ..FULL
            },
            // As long as the source states.
            Suite::Virten2017 => Effort {
                seeds: 1,
                ios: 1 << 40,
                deep_ios: 1 << 40,
                ramp: Span::ZERO,
                write_ramp: Span::ZERO,
                known: 0.0,
                ..FULL
            },
            // The number of I/Os at which a run is shortened.
            Suite::Slog => Effort {
                sustained_writes: 600_000,
                ..QUICK
            },
            Suite::Hcibench => Effort {
                sustained_writes: 10_000_000,
                ..QUICK
            },
            Suite::CacheWarmup => Effort {
                sustained_writes: 1_500_000,
                ..QUICK
            },
            // Ten reads and ten writes beyond p99.999.
            Suite::UnderLoad => Effort {
                deep_ios: 2_100_000,
                ..QUICK
            },
            Suite::Snia => snia(),
            // Ten minutes at 3 GB/s; a 128 KiB I/O counts as four.
            Suite::Heat => Effort {
                seeds: 1,
                sustained_writes: 60_000_000,
                ..QUICK
            },
            Suite::Rebuild => Effort {
                seeds: 1,
                sustained_writes: 10_000_000,
                ..QUICK
            },
            Suite::Perftest => Effort {
                seeds: 1,
                ios: 1_050_000,
                bytes: 20 << 30,
                ramp: Span::ZERO,
                write_ramp: Span::ZERO,
                known: 0.0,
                ..FULL
            },
        }
    }
}

/// The effort of each step of each round.
const fn snia() -> Effort {
    Effort {
        ios: 10_000,
        deep_ios: 10_000,
        bytes: 512 << 20,
        sustained_writes: 3_000_000,
        ..QUICK
    }
}

/// Seeds of each point: as many as a sentence of the verdict needs.
pub(crate) const SEEDS: u32 = 3;

/// Time until queues that the previous run left empty are filled.
const QUEUES: Span = Span::from_ms(20);

/// I/Os of all seeds after which percentiles are first checked: 350 beyond p99. The number of bytes is limited too:
/// 5,120 I/Os of 1 MiB.
const FIRST: u64 = 35_000;
const FIRST_BYTES: u64 = 5 << 30;

/// Effort of each point of a review.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effort {
    /// Minimum number of I/Os counted at each point.
    pub ios: u64,
    /// Minimum number of I/Os at points where the page shows the tail.
    pub deep_ios: u64,
    /// Maximum number of bytes of each point.
    pub bytes: u64,
    /// Warm-up time; at most a quarter of the counted time.
    pub ramp: Span,
    /// Warm-up time of points that write: long enough for the transient above the steady rate, until the drive's
    /// buffer is full and garbage collection is due.
    pub write_ramp: Span,
    /// Warm-up time as a share of the counted time; if not zero, it takes precedence.
    pub dropped: f64,
    /// Number of writes of the sustained-write chapter, which sets the scale of its drive. For a run that ends by time
    /// ([`super::long`]), the number of I/Os at which it is shortened.
    pub sustained_writes: u64,
    /// Number of seeds of each point: at least three where sentences are made.
    pub seeds: u32,
    /// Whether there are more arrival rates, and as many I/Os in the rarer direction of a mix as elsewhere.
    pub fine: bool,
    /// If not zero, a point with blocks other than 4 KiB, or one between others, counts only until its median and p99
    /// are known to this share.
    pub known: f64,
}

impl Effort {
    /// Returns the effort with this number of I/Os at each point, for a quick look or a test.
    #[must_use]
    pub const fn with_ios(self, ios: u64) -> Effort {
        let writes = ios.saturating_mul(60);
        Effort {
            ios,
            deep_ios: ios,
            sustained_writes: if writes < self.sustained_writes {
                writes
            } else {
                self.sustained_writes
            },
            ..self
        }
    }
}

/// How a point is run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum RunPolicy {
    /// On a preconditioned drive, until its mean is known ([`super::point`]).
    UntilKnown,
    /// On a drive with fewer blocks, from fresh to steady state ([`super::cliff`]).
    UntilSteady,
    /// For a given length ([`super::long`]).
    Long(Long),
    /// As a step of this plan of `drivelab measure`, in rounds until steady state ([`super::rounds`]).
    Rounds(&'static str),
}

/// One workload of the suite.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct PointSpec {
    /// Name, unique in the review.
    pub(crate) name: String,
    /// Id of its chapter.
    pub(crate) chapter: &'static str,
    /// Settings that vary.
    pub(crate) settings: PointSettings,
    /// Initial state of the drives.
    pub(crate) state: Precondition,
    /// Options common to all sections, without ending and seed.
    pub(crate) options: Vec<(&'static str, String)>,
    /// One section for each pair of copies and depth of each copy.
    pub(crate) threads: Vec<(u32, u32)>,
    /// Additional sections after these.
    pub(crate) more: String,
    /// Whether only the first reporting group is shown and counted; the other groups are competing load.
    pub(crate) shows_first_group: bool,
    /// Whether the page shows only the reads of the mix, for which p99.999 is required.
    pub(crate) shows_reads: bool,
    /// Arrival rate over all threads in IOPS, if rate-limited.
    pub(crate) rate_iops: Option<u64>,
    /// Maximum run time, as its source states.
    pub(crate) longest: Option<Span>,
    /// The only drive that runs the point, by index.
    pub(crate) only: Option<usize>,
    /// How the point is run.
    pub(crate) course: RunPolicy,
    /// Results that are kept.
    pub(crate) keep: Keep,
    /// Whether the whole distribution is shown: the point counts as many I/Os as p99.999 needs.
    pub(crate) is_deep: bool,
    /// Whether the point only shapes a line, between points for which p99.999 is required.
    pub(crate) is_between: bool,
    /// Minimum number of I/Os of a seed, where the page shows the tail.
    pub(crate) fewest: u64,
    /// Whether each seed begins at another place on the drive, because data of the previous run may still be in the
    /// drive's buffer.
    pub(crate) begins_elsewhere: bool,
}

impl Default for PointSpec {
    fn default() -> PointSpec {
        PointSpec {
            name: String::new(),
            chapter: "",
            settings: PointSettings::default(),
            state: Precondition::Steady,
            options: Vec::new(),
            threads: Vec::new(),
            more: String::new(),
            shows_first_group: false,
            shows_reads: false,
            rate_iops: None,
            longest: None,
            only: None,
            course: RunPolicy::UntilKnown,
            keep: Keep { bands: true },
            is_deep: false,
            is_between: false,
            fewest: 0,
            begins_elsewhere: false,
        }
    }
}

/// Returns a size as in a job file: `4k`, `1m`, `512`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        _ => bytes.to_string(),
    }
}

fn ramp_time(ramp: Span) -> Option<String> {
    (ramp > Span::ZERO).then(|| format!("ramp_time={}us", ramp.ns() / 1000))
}

/// Spreads a depth over up to `most` threads as evenly as possible.
pub(crate) fn spread(depth: u32, most: u32) -> Vec<(u32, u32)> {
    let threads = depth.min(most);
    let (each, deeper) = (depth / threads, depth % threads);
    let mut sections = Vec::new();
    if deeper > 0 {
        sections.push((deeper, each + 1));
    }
    sections.push((threads - deeper, each));
    sections
}

impl PointSpec {
    /// Returns the number of I/Os to count: fewer if they are large and the suite is quick, more where the page shows
    /// p99.999.
    pub(crate) fn ios(&self, effort: Effort) -> u64 {
        let bytes = self.settings.block_bytes.unwrap_or(4096);
        let ios = if self.is_deep {
            effort.deep_ios
        } else {
            effort.ios
        };
        let rarer = match self.settings.read_percent {
            Some(percent @ 1..=99) if effort.fine && self.shows_reads => percent,
            Some(percent @ 1..=99) if effort.fine => percent.min(100 - percent),
            _ => 100,
        };
        (ios * 100 / u64::from(rarer)).min(effort.bytes / bytes)
    }

    /// Returns the number of I/Os of each seed. Seeds share the number, except at points that show tails, where each
    /// seed needs enough samples to show the range.
    pub(crate) fn ios_of_seed(&self, effort: Effort) -> u64 {
        let mut all = self.ios(effort);
        if self.stops_when_known(effort) {
            let bytes = self.settings.block_bytes.unwrap_or(4096);
            all = all.min(FIRST).min(FIRST_BYTES / bytes);
        }
        all.div_ceil(u64::from(effort.seeds))
            .max(self.fewest.min(all))
    }

    /// Checks whether the point ends as soon as its percentiles are known, because p99.999 is not required.
    pub(crate) fn stops_when_known(&self, effort: Effort) -> bool {
        let is_large = self.settings.block_bytes.is_some_and(|bytes| bytes != 4096);
        effort.known > 0.0 && (is_large || self.is_between)
    }

    /// Returns the warm-up time of a run with this counted time.
    pub(crate) fn ramp(&self, effort: Effort, runtime: Span) -> Span {
        if effort.dropped > 0.0 {
            return Span::from_ms((runtime.ns() as f64 * effort.dropped / 1e6).ceil() as u64);
        }
        self.settling(effort).min(Span::from_ns(runtime.ns() / 4))
    }

    /// Returns the warm-up time after other runs of this point on the same drive, which took `ran` in total. Only
    /// queues must settle again.
    pub(crate) fn ramp_after(&self, effort: Effort, runtime: Span, ran: Span) -> Span {
        let whole = self.ramp(effort, runtime);
        if effort.dropped > 0.0 {
            return whole;
        }
        whole.min(self.settling(effort).saturating_sub(ran).max(QUEUES))
    }

    /// Returns the time that a drive may take to reach its steady rate.
    pub(crate) fn settling(&self, effort: Effort) -> Span {
        match self.settings.direction {
            Some("read") => effort.ramp,
            _ => effort.write_ramp,
        }
    }

    /// Checks whether one thread issues all I/Os, so that the run can end after a number of I/Os. Concurrent threads
    /// must end at the same time.
    pub(crate) fn is_counted(&self) -> bool {
        self.rate_iops.is_none() && matches!(self.threads[..], [(1, _)])
    }

    /// Returns the job as fio reads it, ended by time.
    pub(crate) fn text(&self, seed: u64, ramp: Span, runtime: Span) -> String {
        let mut ending = vec!["time_based=1".to_owned()];
        ending.extend(ramp_time(ramp));
        ending.push(format!("runtime={}us", runtime.ns() / 1000));
        self.job(seed, ending)
    }

    /// Returns the job as fio reads it, ended by the number of I/Os over all threads, including the ramp.
    pub(crate) fn fixed_text(&self, seed: u64, ramp: Span, ios: u64) -> String {
        let copies: u32 = self.threads.iter().map(|&(copies, _)| copies).sum();
        // Without this option fio would stop after one pass over the range.
        let mut ending = vec!["io_size=1000t".to_owned()];
        ending.extend(ramp_time(ramp));
        ending.push(format!("number_ios={}", ios / u64::from(copies)));
        self.job(seed, ending)
    }

    fn job(&self, seed: u64, ending: Vec<String>) -> String {
        let mut lines = vec![
            "[global]".to_owned(),
            "ioengine=libaio".to_owned(),
            "direct=1".to_owned(),
            "norandommap=1".to_owned(),
        ];
        lines.extend(
            self.options
                .iter()
                .map(|(key, value)| format!("{key}={value}")),
        );
        if let Some(percent) = self.start_percent(seed) {
            lines.push(format!("offset={percent}%"));
        }
        lines.extend(ending);
        lines.push("group_reporting=1".to_owned());
        let copies: u32 = self.threads.iter().map(|&(copies, _)| copies).sum();
        for (seed, &(copies_here, depth)) in (seed..).zip(&self.threads) {
            lines.push(String::new());
            lines.push(format!("[depth-{depth}]"));
            lines.push(format!("iodepth={depth}"));
            lines.push(format!("numjobs={copies_here}"));
            lines.push(format!("randseed={seed}"));
            if let Some(rate) = self.rate_iops {
                lines.push(format!("rate_iops={}", self.rates(rate, copies)));
                lines.push("rate_process=poisson".to_owned());
            }
        }
        lines.push(String::new());
        lines.join("\n") + &self.more
    }

    /// Returns the start of a run, in percent of the drive, if each seed begins at another place.
    fn start_percent(&self, seed: u64) -> Option<u64> {
        let placed = self.options.iter().any(|(key, _)| *key == "offset");
        (self.begins_elsewhere && !placed).then_some(seed % 90)
    }

    /// Returns the rate of one thread, separately for reads and writes if there are both, as fio requires.
    fn rates(&self, rate: u64, copies: u32) -> String {
        let each = |percent: u32| (rate * u64::from(percent) / 100 / u64::from(copies)).max(1);
        match self.settings.read_percent {
            Some(percent) => format!("{},{}", each(percent), each(100 - percent)),
            None => each(100).to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_are_spread_over_threads() {
        for depth in 1..=64 {
            let sections = spread(depth, 4);
            let total: u32 = sections.iter().map(|&(copies, each)| copies * each).sum();
            let threads: u32 = sections.iter().map(|&(copies, _)| copies).sum();
            assert_eq!((total, threads), (depth, depth.min(4)));
        }
        assert_eq!(spread(6, 4), [(2, 2), (2, 1)]);
    }
}
