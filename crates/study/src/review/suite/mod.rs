//! The standard workloads of a review, as data: one file a chapter, each a list of [`PointSpec`]s.
//!
//! A workload is written as a fio job and read back by the same reader as a user's own file, so what the review shows
//! is exactly what ran. How long a job runs is set for each drive from a pilot run (see [`super::run`]), because a
//! fixed time would give a fast drive a thousand times the samples of a slow one.

mod block_size;
mod mix;
mod one_thread;
mod paced;
mod perftest;
mod queue_depth;
mod sequential;
pub(crate) mod sustained;
mod virten;

use model::Span;
use model::media::Precondition;

use super::results::Settings;

pub(crate) use paced::{Saturation, points as paced_points};
pub(crate) use sustained::{FILLS, point as sustained_point};

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Suite {
    /// About a minute for three drives on two cores: percentiles to 99.99.
    #[default]
    Quick,
    /// Minutes: percentiles to 99.999.
    Full,
    /// The tests of S1 and S4: block sizes and alignments, queue depths from up to four threads and from one, large
    /// sequential I/O, mixes with 16 threads; a quarter of each run dropped, as the first of four minutes was.
    Anandtech2017,
    /// The eight tests of S0, in a virtual machine.
    Virten2017,
    /// S2's `nvmecontrol perftest`: 32 threads in the kernel.
    Perftest,
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
        }
    }

    /// All of them, in the order of the help.
    pub const ALL: [Suite; 5] = [
        Suite::Quick,
        Suite::Full,
        Suite::Anandtech2017,
        Suite::Virten2017,
        Suite::Perftest,
    ];

    /// The suite of this name.
    pub fn named(name: &str) -> Option<Suite> {
        Suite::ALL.into_iter().find(|suite| suite.name() == name)
    }

    /// The host it was first run in, in the catalogue.
    pub const fn host(self) -> &'static str {
        match self {
            Suite::Quick | Suite::Full | Suite::Anandtech2017 => "xeon-2017",
            Suite::Virten2017 => "esxi-nuc",
            Suite::Perftest => "freebsd-perftest",
        }
    }

    /// Whether it has the chapters whose points depend on the results of others: paced and sustained.
    pub(crate) const fn goes_on(self) -> bool {
        matches!(self, Suite::Quick | Suite::Full)
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
            },
            Suite::Full => Effort {
                ios: 1_050_000,
                deep_ios: 1_500_000,
                bytes: u64::MAX,
                ramp: Span::from_ms(500),
                write_ramp: Span::from_ms(500),
                dropped: 0.0,
                sustained_writes: 60_000_000,
                seeds: SEEDS,
                fine: true,
            },
            Suite::Anandtech2017 => Effort {
                deep_ios: 1_050_000,
                bytes: 5 << 30,
                dropped: 1.0 / 3.0,
                ..Suite::Full.effort()
            },
            // As long as the source says.
            Suite::Virten2017 => Effort {
                seeds: 1,
                ios: 1 << 40,
                deep_ios: 1 << 40,
                ramp: Span::ZERO,
                write_ramp: Span::ZERO,
                ..Suite::Full.effort()
            },
            Suite::Perftest => Effort {
                seeds: 1,
                ios: 1_050_000,
                bytes: 20 << 30,
                ramp: Span::ZERO,
                write_ramp: Span::ZERO,
                ..Suite::Full.effort()
            },
        }
    }
}

/// Seeds of each point: as many as a sentence of the verdict needs.
pub(crate) const SEEDS: u32 = 3;

/// Fewest I/Os of a seed where tails are shown: ten beyond the 99.99th percentile, and beyond the 99.999th where a
/// sentence is made of it.
const TAIL: u64 = 105_000;
const DEEP_TAIL: u64 = 1_050_000;

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
    /// Writes of the sustained-write chapter: sets the scale of the drive it runs on.
    pub sustained_writes: u64,
    /// With how many seeds each point is measured: at least three where sentences are made of it.
    pub seeds: u32,
    /// More rates of arrival, and as many I/Os in the rarer direction of a mix as elsewhere.
    pub fine: bool,
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
    /// I/Os a second over all threads, if it is paced.
    pub(crate) rate_iops: Option<u64>,
    /// The longest it runs, as its source says.
    pub(crate) longest: Option<Span>,
    /// The only drive it is for.
    pub(crate) only: Option<usize>,
}

/// Headings by chapter id, in the order of the review.
pub(crate) const CHAPTERS: [(&str, &str); 11] = [
    ("block-size", "One at a time: block sizes"),
    ("queue-depth", "Many at a time: 4 KiB by queue depth"),
    (
        "one-thread",
        "Many at a time from one thread: 4 KiB by queue depth",
    ),
    (
        "sequential",
        "Large and in order, overwritten at random before: 128 KiB by queue depth",
    ),
    (
        "sequential-filled",
        "Large and in order, filled in order before: 128 KiB by queue depth",
    ),
    ("mix", "Reads among writes"),
    ("paced", "At a fixed pace"),
    ("sustained", "Writing without end"),
    ("virten", "Eight tests in a virtual machine"),
    ("perftest", "nvmecontrol perftest: 32 threads"),
    ("yours", "Your jobs and traces"),
];

/// All points that need no result of another, in the order of the review.
pub(crate) fn points(suite: Suite, effort: Effort) -> Vec<PointSpec> {
    let mut all = match suite {
        Suite::Virten2017 => return virten::points(),
        Suite::Perftest => return perftest::points(),
        Suite::Quick | Suite::Full | Suite::Anandtech2017 => block_size::points(effort),
    };
    all.extend(queue_depth::points(effort));
    if suite == Suite::Anandtech2017 {
        all.extend(one_thread::points());
        all.extend(sequential::points(queue_depth::depths()));
    } else {
        all.extend(sequential::points(sequential::DEPTHS));
        all.extend(sequential::filled_points());
    }
    all.extend(mix::points());
    all
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
fn spread(depth: u32, most: u32) -> Vec<(u32, u32)> {
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
        let ios = if self.is_deep() {
            effort.deep_ios
        } else {
            effort.ios
        };
        let rarer = match self.settings.read_percent {
            Some(percent @ 1..=99) if effort.fine => percent.min(100 - percent),
            _ => 100,
        };
        (ios * 100 / u64::from(rarer)).min(effort.bytes / bytes)
    }

    /// The same for each of its seeds: they share the number, but for points that show tails, which need enough samples
    /// of each seed to show how far they differ.
    pub(crate) fn ios_of_seed(&self, effort: Effort) -> u64 {
        let all = self.ios(effort);
        let fewest = match (self.chapter, self.settings.queue_depth) {
            ("queue-depth", Some(16)) => DEEP_TAIL,
            ("queue-depth", _) => TAIL,
            _ => 0,
        };
        all.div_ceil(u64::from(effort.seeds)).max(fewest.min(all))
    }

    /// Whether its whole distribution is shown.
    pub(crate) fn is_deep(&self) -> bool {
        match self.chapter {
            "queue-depth" => matches!(self.settings.queue_depth, Some(1 | 16 | 64)),
            "mix" => self.settings.read_percent == Some(70),
            _ => false,
        }
    }

    /// Run before counting begins, of a run that counts for this long.
    pub(crate) fn ramp(&self, effort: Effort, runtime: Span) -> Span {
        if effort.dropped > 0.0 {
            return Span::from_ms((runtime.ns() as f64 * effort.dropped / 1e6).ceil() as u64);
        }
        self.settling(effort).min(Span::from_ns(runtime.ns() / 4))
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
        // Without a size fio would stop after one fill of the range.
        let mut ending = vec!["loops=1000".to_owned()];
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
        lines.join("\n")
    }

    /// Where a sequential run begins, in percent of the drive: elsewhere with each seed, because what the run before it
    /// has touched may still lie in the drive's buffer.
    fn start_percent(&self, seed: u64) -> Option<u64> {
        let chapters = ["block-size", "sequential", "sequential-filled"];
        let placed = self.options.iter().any(|(key, _)| *key == "offset");
        let in_order = self.settings.pattern == Some("sequential");
        (in_order && !placed && chapters.contains(&self.chapter)).then_some(seed % 90)
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

    fn all(suite: Suite) -> Vec<PointSpec> {
        let saturation = Saturation {
            read: Some(5e5),
            mix: Some(4e5),
            write: Some(3e5),
        };
        let mut all = points(suite, suite.effort());
        all.extend(paced_points(suite.effort(), &[saturation]));
        all
    }

    #[test]
    fn the_full_suite_has_ten_samples_beyond_five_nines_in_each_direction() {
        for spec in all(Suite::Full) {
            let rarer = match spec.settings.read_percent {
                Some(percent @ 1..=99) => percent.min(100 - percent),
                _ => 100,
            };
            // Runs end when 97 % of the wanted number has been counted.
            let counted = spec.ios(Suite::Full.effort()) as f64 * 0.97 * f64::from(rarer) / 100.0;
            assert!(counted >= 1e6, "{}: {counted}", spec.name);
        }
    }

    #[test]
    fn points_that_write_have_a_ramp_that_outlasts_a_buffer() {
        let effort = Suite::Quick.effort();
        let ramp = |direction, ms| {
            let all = all(Suite::Quick);
            let mut found = all
                .iter()
                .filter(|one| one.settings.direction == Some(direction));
            let spec = found.next().expect(direction);
            spec.ramp(effort, Span::from_ms(ms))
        };
        assert_eq!(ramp("read", 500), Span::from_ms(20));
        assert_eq!(ramp("write", 500), Span::from_ms(100));
        assert_eq!(ramp("mix", 200), Span::from_ms(50));
        let dropped = Effort {
            dropped: 1.0 / 3.0,
            ..effort
        };
        let spec = &all(Suite::Quick)[0];
        assert_eq!(spec.ramp(dropped, Span::from_ms(300)), Span::from_ms(100));
    }

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

    #[test]
    fn tails_have_enough_of_each_seed_and_the_rest_shares() {
        let effort = Suite::Quick.effort();
        let all = all(Suite::Quick);
        let each = |name: &str| {
            let spec = all.iter().find(|spec| spec.name == name).expect("a point");
            spec.ios_of_seed(effort)
        };
        assert_eq!(each("queue-depth/read/16"), 1_050_000);
        assert_eq!(each("queue-depth/read/64"), 350_000);
        assert_eq!(each("queue-depth/write/7"), 105_000);
        assert_eq!(each("mix/70"), 350_000);
        assert_eq!(each("mix/50"), 35_000);
        let few = effort.with_ios(300);
        let spec = |name: &str| all.iter().find(|spec| spec.name == name).expect("a point");
        assert_eq!(spec("queue-depth/read/16").ios_of_seed(few), 300);
        assert_eq!(spec("mix/50").ios_of_seed(few), 100);
        // All in all no more than twice what one seed would take.
        let sum = |seeds| -> u64 {
            let effort = Effort { seeds, ..effort };
            let of = |spec: &PointSpec| u64::from(seeds) * spec.ios_of_seed(effort);
            all.iter().map(of).sum::<u64>() + u64::from(seeds) * effort.sustained_writes
        };
        assert!(sum(3) < 2 * sum(1), "{} of {}", sum(3), sum(1));
    }

    #[test]
    fn seeds_together_have_five_nines_where_the_page_shows_them() {
        for suite in [Suite::Quick, Suite::Full, Suite::Anandtech2017] {
            let effort = suite.effort();
            let all = all(suite);
            let mut depths: Vec<u32> = Vec::new();
            for spec in all.iter().filter(|spec| spec.is_deep()) {
                let together = u64::from(effort.seeds) * spec.ios_of_seed(effort);
                // A run may end with 3 % fewer than were asked for.
                assert!(together * 97 / 100 >= 1_000_000, "{}", spec.name);
                depths.extend(spec.settings.queue_depth);
            }
            for depth in [1, 16, 64] {
                assert!(depths.contains(&depth), "{suite:?}: QD{depth}");
            }
        }
    }

    #[test]
    fn runs_in_order_begin_elsewhere_with_each_seed() {
        let all = all(Suite::Quick);
        let named = |name: &str| all.iter().find(|spec| spec.name == name).expect("a point");
        let offset = |name: &str, seed| {
            let text = named(name).text(seed, Span::ZERO, Span::from_ms(5));
            let line = text.lines().find_map(|line| line.strip_prefix("offset="));
            line.map(str::to_owned)
        };
        let percent = |percent: &str| Some(percent.to_owned());
        assert_eq!(offset("sequential/read/8", 97), percent("7%"));
        assert_eq!(offset("sequential-filled/write/1", 98), percent("8%"));
        assert_eq!(
            offset("block-size/sequential-read/block/4k", 5),
            percent("5%")
        );
        assert_eq!(
            offset("block-size/sequential-read/sector/4k", 5),
            percent("512")
        );
        assert_eq!(offset("queue-depth/read/8", 5), None);
    }

    #[test]
    fn jobs_read_as_fio_would() {
        let spec = &all(Suite::Quick)[0];
        insta::assert_snapshot!(spec.text(7, Span::from_ms(20), Span::from_ms(900)), @r"
        [global]
        ioengine=libaio
        direct=1
        norandommap=1
        rw=randread
        bs=512
        time_based=1
        ramp_time=20000us
        runtime=900000us
        group_reporting=1

        [depth-1]
        iodepth=1
        numjobs=1
        randseed=7
        ");
    }
}
