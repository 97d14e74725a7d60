//! The standard workloads of a review, as data: how much each suite measures, and what a point of it is. Which points
//! there are the chapters say ([`super::chapters`]).
//!
//! A workload is written as a fio job and read back by the same reader as a user's own file, so what the review shows
//! is exactly what ran. How long a job runs is set for each drive from a pilot run (see [`super::run`]), because a
//! fixed time would give a fast drive a thousand times the samples of a slow one.

use model::Span;
use model::media::Precondition;

use super::course::Long;
use super::measure::Keep;
use super::results::Settings;

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Suite {
    /// About a minute for three drives on two cores: percentiles to 99.99.
    #[default]
    Quick,
    /// Minutes: percentiles to 99.999 at 4 KiB, and elsewhere as far as they are known to 2 %.
    Full,
    /// The tests of S1 and S4: block sizes and alignments, queue depths from up to four threads and from one, large
    /// sequential I/O, mixes with 16 threads; a quarter of each run dropped, as the first of four minutes was.
    Anandtech2017,
    /// The eight tests of S0, in a virtual machine.
    Virten2017,
    /// S2's `nvmecontrol perftest`: 32 threads in the kernel.
    Perftest,
    /// Synchronous writes, as a log device meets them.
    Slog,
    /// The profiles of VMware's HCIBench, and a run in which the write buffer fills.
    Hcibench,
    /// A cache from cold.
    CacheWarmup,
    /// Paced reads and writes beside random writes.
    UnderLoad,
    /// SNIA's tests, in rounds until steady.
    Snia,
}

impl Suite {
    /// As on the command line.
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
        }
    }

    /// All of them, in the order of the help.
    pub const ALL: [Suite; 10] = [
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
    ];

    /// The suite of this name.
    pub fn named(name: &str) -> Option<Suite> {
        Suite::ALL.into_iter().find(|suite| suite.name() == name)
    }

    /// The host of the catalogue that it runs in: for an article's suite the one that it was first run in.
    pub const fn host(self) -> &'static str {
        match self {
            Suite::Quick | Suite::Full | Suite::UnderLoad | Suite::Snia => catalogue::TYPICAL_HOST,
            Suite::Anandtech2017 | Suite::Slog | Suite::Hcibench | Suite::CacheWarmup => {
                "xeon-2017"
            }
            Suite::Virten2017 => "esxi-nuc",
            Suite::Perftest => "freebsd-perftest",
        }
    }

    /// Whether it is one of our own, which have the chapters that no article has.
    pub(crate) const fn is_ours(self) -> bool {
        matches!(self, Suite::Quick | Suite::Full)
    }

    /// Whether it goes through sizes, depths and mixes.
    pub(crate) const fn sweeps(self) -> bool {
        self.is_ours() || matches!(self, Suite::Anandtech2017)
    }

    /// How much each point measures.
    pub const fn effort(self) -> Effort {
        match self {
            Suite::Quick => Effort {
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
            },
            Suite::Full => Effort {
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
            },
            Suite::Anandtech2017 => Effort {
                deep_ios: 1_050_000,
                bytes: 5 << 30,
                dropped: 1.0 / 3.0,
                known: 0.0,
                ..Suite::Full.effort()
            },
            // As long as the source says.
            Suite::Virten2017 => Effort {
                seeds: 1,
                ios: 1 << 40,
                deep_ios: 1 << 40,
                ramp: Span::ZERO,
                write_ramp: Span::ZERO,
                known: 0.0,
                ..Suite::Full.effort()
            },
            // The number of I/Os that cuts a run short.
            Suite::Slog => Effort {
                sustained_writes: 2_000_000,
                ..Suite::Quick.effort()
            },
            Suite::Hcibench => Effort {
                sustained_writes: 10_000_000,
                ..Suite::Quick.effort()
            },
            Suite::CacheWarmup => Effort {
                sustained_writes: 1_500_000,
                ..Suite::Quick.effort()
            },
            // Ten reads beyond five nines, and ten writes.
            Suite::UnderLoad => Effort {
                deep_ios: 2_100_000,
                ..Suite::Quick.effort()
            },
            Suite::Snia => snia(),
            Suite::Perftest => Effort {
                seeds: 1,
                ios: 1_050_000,
                bytes: 20 << 30,
                ramp: Span::ZERO,
                write_ramp: Span::ZERO,
                known: 0.0,
                ..Suite::Full.effort()
            },
        }
    }
}

/// Of each step of each round.
const fn snia() -> Effort {
    Effort {
        ios: 10_000,
        deep_ios: 10_000,
        bytes: 512 << 20,
        sustained_writes: 3_000_000,
        ..Suite::Quick.effort()
    }
}

/// Seeds of each point: as many as a sentence of the verdict needs.
pub(crate) const SEEDS: u32 = 3;

/// Until queues that a run before has left empty are as full as they stay.
const QUEUES: Span = Span::from_ms(20);

/// I/Os, all seeds together, after which it is first asked whether percentiles are known: 350 beyond the 99th. But no more
/// than so many bytes: of 1 MiB 5,120.
const FIRST: u64 = 35_000;
const FIRST_BYTES: u64 = 5 << 30;

/// How much each point of a review measures.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effort {
    /// I/Os counted at each point, at the least.
    pub ios: u64,
    /// The same at the points where the page shows the tail.
    pub deep_ios: u64,
    /// But no more than this many bytes.
    pub bytes: u64,
    /// Run before counting begins; at most a quarter of the counted time.
    pub ramp: Span,
    /// The same for points that write: long enough for what a drive takes beyond its steady rate until its buffer is
    /// full and it owes collection.
    pub write_ramp: Span,
    /// Run before counting begins, as a share of the counted time; where it is not zero it decides.
    pub dropped: f64,
    /// Writes of the sustained-write chapter: sets the scale of the drive it runs on. Of a run that ends by time
    /// ([`super::long`]), the I/Os at which it is cut short.
    pub sustained_writes: u64,
    /// With how many seeds each point is measured: at least three where sentences are made of it.
    pub seeds: u32,
    /// More rates of arrival, and as many I/Os in the rarer direction of a mix as elsewhere.
    pub fine: bool,
    /// Where it is not zero, a point in other blocks than 4 KiB, or one that is between others, counts only until its
    /// median and its 99th percentile are known to this share of them.
    pub known: f64,
}

impl Effort {
    /// The same with this many I/Os at each point, for a quick look or a test.
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
pub(crate) enum Course {
    /// On a prepared drive, until its mean is known ([`super::point`]).
    UntilKnown,
    /// On a drive with fewer blocks, from fresh until steady ([`super::cliff`]).
    UntilSteady,
    /// For as long as it says ([`super::long`]).
    Long(Long),
    /// As a step of this plan of `drivelab measure`, in rounds until steady ([`super::rounds`]).
    Rounds(&'static str),
}

/// One workload of the suite.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct PointSpec {
    /// Unique in the review.
    pub(crate) name: String,
    /// Id of its chapter.
    pub(crate) chapter: &'static str,
    /// What varies.
    pub(crate) settings: Settings,
    /// The state drives begin in.
    pub(crate) state: Precondition,
    /// Options common to all sections, without ending and seed.
    pub(crate) options: Vec<(&'static str, String)>,
    /// (copies, depth of each), one section each.
    pub(crate) threads: Vec<(u32, u32)>,
    /// Sections behind these.
    pub(crate) more: String,
    /// Whether only what reports in the first group is shown and counted: what is beside it is load.
    pub(crate) shows_first_group: bool,
    /// Whether the page shows the reads of its mix only: five nines are wanted of them.
    pub(crate) shows_reads: bool,
    /// I/Os a second over all threads, if it is paced.
    pub(crate) rate_iops: Option<u64>,
    /// The longest it runs, as its source says.
    pub(crate) longest: Option<Span>,
    /// The only drive it is for.
    pub(crate) only: Option<usize>,
    /// How it is run.
    pub(crate) course: Course,
    /// What is kept of its runs.
    pub(crate) keep: Keep,
    /// Whether its whole distribution is shown: it counts as many I/Os as five nines need.
    pub(crate) is_deep: bool,
    /// Whether it is there for the course of a line, between points of which five nines are wanted.
    pub(crate) is_between: bool,
    /// Fewest I/Os of a seed, where the page shows its tail.
    pub(crate) fewest: u64,
    /// Whether it begins elsewhere on the drive with each seed, because what the run before it has touched may still lie
    /// in the drive's buffer.
    pub(crate) begins_elsewhere: bool,
}

impl Default for PointSpec {
    fn default() -> PointSpec {
        PointSpec {
            name: String::new(),
            chapter: "",
            settings: Settings::default(),
            state: Precondition::Steady,
            options: Vec::new(),
            threads: Vec::new(),
            more: String::new(),
            shows_first_group: false,
            shows_reads: false,
            rate_iops: None,
            longest: None,
            only: None,
            course: Course::UntilKnown,
            keep: Keep { bands: true },
            is_deep: false,
            is_between: false,
            fewest: 0,
            begins_elsewhere: false,
        }
    }
}

/// `4k`, `1m`, `512`: a size as in a job file.
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

/// A depth spread over up to `most` threads as evenly as it goes.
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
    /// I/Os to count: fewer where they are large and the suite is quick, more where the page shows five nines.
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

    /// The same for each of its seeds: they share the number, but for points that show tails, which need enough samples
    /// of each seed to show how far they differ.
    pub(crate) fn ios_of_seed(&self, effort: Effort) -> u64 {
        let mut all = self.ios(effort);
        if self.stops_when_known(effort) {
            let bytes = self.settings.block_bytes.unwrap_or(4096);
            all = all.min(FIRST).min(FIRST_BYTES / bytes);
        }
        all.div_ceil(u64::from(effort.seeds))
            .max(self.fewest.min(all))
    }

    /// Whether it ends as soon as its percentiles are known: nobody asks for five nines of it.
    pub(crate) fn stops_when_known(&self, effort: Effort) -> bool {
        let is_large = self.settings.block_bytes.is_some_and(|bytes| bytes != 4096);
        effort.known > 0.0 && (is_large || self.is_between)
    }

    /// Run before counting begins, of a run that counts for this long.
    pub(crate) fn ramp(&self, effort: Effort, runtime: Span) -> Span {
        if effort.dropped > 0.0 {
            return Span::from_ms((runtime.ns() as f64 * effort.dropped / 1e6).ceil() as u64);
        }
        self.settling(effort).min(Span::from_ns(runtime.ns() / 4))
    }

    /// The same behind other runs of this point on the same drive, which took so long: what they settled need not settle
    /// again, but for the queues.
    pub(crate) fn ramp_after(&self, effort: Effort, runtime: Span, ran: Span) -> Span {
        let whole = self.ramp(effort, runtime);
        if effort.dropped > 0.0 {
            return whole;
        }
        whole.min(self.settling(effort).saturating_sub(ran).max(QUEUES))
    }

    /// How long a drive may take until it is at its steady rate.
    pub(crate) fn settling(&self, effort: Effort) -> Span {
        match self.settings.direction {
            Some("read") => effort.ramp,
            _ => effort.write_ramp,
        }
    }

    /// Whether one thread does it all: then it can end after as many I/Os as are wanted. Threads beside each other
    /// must end at one time.
    pub(crate) fn is_counted(&self) -> bool {
        self.rate_iops.is_none() && matches!(self.threads[..], [(1, _)])
    }

    /// The job as fio reads it, ended by time.
    pub(crate) fn text(&self, seed: u64, ramp: Span, runtime: Span) -> String {
        let mut ending = vec!["time_based=1".to_owned()];
        ending.extend(ramp_time(ramp));
        ending.push(format!("runtime={}us", runtime.ns() / 1000));
        self.job(seed, ending)
    }

    /// The job as fio reads it, ended by the number of I/Os over all threads, those of the ramp included.
    pub(crate) fn fixed_text(&self, seed: u64, ramp: Span, ios: u64) -> String {
        let copies: u32 = self.threads.iter().map(|&(copies, _)| copies).sum();
        // Without that fio would stop after one fill of the range.
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

    /// Where a run begins, in percent of the drive, if each seed begins elsewhere.
    fn start_percent(&self, seed: u64) -> Option<u64> {
        let placed = self.options.iter().any(|(key, _)| *key == "offset");
        (self.begins_elsewhere && !placed).then_some(seed % 90)
    }

    /// The share of one thread, for reads and writes apart where there are both, as fio wants it.
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
