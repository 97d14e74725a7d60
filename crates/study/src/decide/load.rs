//! One load of a given height, as a fio job that a user can read and run again.
//!
//! In an open loop, I/Os arrive independently as a Poisson process, whether or not previous ones are complete. Reads
//! and writes are separate jobs, since two independent Poisson processes make one. In a closed loop, a constant number
//! of I/Os is kept in flight. Latency is fio's, from the time at which a thread issues an I/O: the time that an
//! arrival waits for a busy thread is not included.

use catalogue::HostSheet;
use model::Span;
use serde::Serialize;
use text::problem::{Problem, Problems};
use workload::fio::{self, Surroundings};
use workload::job::{Job, Mix};

use super::ranges::Ranges;
use crate::review::point_threads;

/// Maximum I/Os in flight of a thread in an open loop: large enough that none waits for another below the drive's
/// limit.
pub(super) const OPEN_DEPTH: u32 = 1024;

/// Minimum rate of an open-loop thread in IOPS: fio's rates are whole numbers.
const LEAST_RATE: f64 = 200.0;

/// Options that the search itself sets.
const OURS: [&str; 20] = [
    "iodepth",
    "numjobs",
    "rate",
    "rate_iops",
    "rate_process",
    "runtime",
    "time_based",
    "ramp_time",
    "number_ios",
    "randseed",
    "name",
    "loops",
    "startdelay",
    "stonewall",
    "thinktime",
    "latency_target",
    "steadystate",
    "io_size",
    "read_iolog",
    "rw",
];

/// Access pattern of a load, without its height.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Pattern {
    /// fio's `rw`: `randrw`, `write`, ...
    pub rw: String,
    /// Percentage of reads in a mix.
    pub read_percent: u32,
    /// Other options of fio's jobs, such as (`bs`, `4k`).
    pub options: Vec<(String, String)>,
    /// Maximum number of threads.
    pub threads: u32,
}

/// Height of a load.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Height {
    /// Arrival rate in I/Os per second.
    Arrivals(f64),
    /// I/Os in flight.
    InFlight(u32),
}

impl Pattern {
    /// Returns the pattern that a user asks for. Without `threads`, the maximum is the number of the host's cores; in order
    /// it is one, as several threads in order would need ranges of their own.
    pub fn new(
        (rw, read_percent): (&str, u32),
        block: &str,
        options: &[(String, String)],
        threads: Option<u32>,
        host: &HostSheet,
    ) -> Pattern {
        let block = (String::from("bs"), block.to_owned());
        let cores = match fio::is_random(rw) {
            true => host.config.cores.into(),
            false => 1,
        };
        Pattern {
            rw: rw.to_owned(),
            read_percent,
            options: [block].into_iter().chain(options.iter().cloned()).collect(),
            threads: threads.unwrap_or(cores).max(1),
        }
    }

    /// Checks whether its I/Os are sequential.
    pub fn is_in_order(&self) -> bool {
        !fio::is_random(&self.rw)
    }

    /// Returns the ranges of its threads.
    fn ranges(&self, threads: u32) -> Ranges {
        let keys = self.options.iter().map(|(key, _)| &**key);
        Ranges::for_threads(&self.rw, keys, threads)
    }

    /// Checks whether reads and writes are mixed.
    fn is_mixed(&self) -> bool {
        matches!(self.rw.as_str(), "randrw" | "rw" | "readwrite")
    }

    /// Returns the share of the rarer of its directions.
    pub fn rarer(&self) -> f64 {
        let reads = f64::from(self.read_percent) / 100.0;
        match self.is_mixed() && (1..=99).contains(&self.read_percent) {
            true => reads.min(1.0 - reads),
            false => 1.0,
        }
    }

    /// Checks whether it writes.
    pub fn writes(&self) -> bool {
        match self.is_mixed() {
            true => self.read_percent < 100,
            false => self.rw.contains("write"),
        }
    }

    /// Checks whether it reads.
    pub fn reads(&self) -> bool {
        match self.is_mixed() {
            true => self.read_percent > 0,
            false => self.rw.contains("read"),
        }
    }

    /// Checks whether it syncs.
    pub fn syncs(&self) -> bool {
        let mut options = self.options.iter();
        options.any(|(key, value)| matches!(key.as_str(), "fsync" | "fdatasync") && value != "0")
    }

    /// Returns the text of the job file.
    pub fn text(&self, height: Height, ramp: Span, runtime: Span) -> String {
        let mut lines = vec![
            String::from("[global]"),
            String::from("ioengine=libaio"),
            String::from("direct=1"),
            String::from("norandommap=1"),
        ];
        lines.extend(
            self.options
                .iter()
                .map(|(key, value)| format!("{key}={value}")),
        );
        lines.push(String::from("time_based=1"));
        lines.push(format!("ramp_time={}us", ramp.ns() / 1000));
        lines.push(format!("runtime={}us", runtime.ns() / 1000));
        lines.push(String::from("group_reporting=1"));
        match height {
            Height::InFlight(depth) => self.closed(depth, &mut lines),
            Height::Arrivals(rate) => self.open(rate, &mut lines),
        }
        lines.push(String::new());
        lines.join("\n")
    }

    fn closed(&self, depth: u32, lines: &mut Vec<String>) {
        let groups = point_threads(depth, self.threads);
        let threads = groups.iter().map(|(copies, _)| *copies).sum();
        let mut ranges = self.ranges(threads);
        for (copies, each) in groups {
            lines.push(format!("\n[depth-{each}]\nrw={}", self.rw));
            if self.is_mixed() {
                lines.push(format!("rwmixread={}", self.read_percent));
            }
            lines.push(format!("iodepth={each}\nnumjobs={copies}"));
            lines.extend(ranges.next(copies));
        }
    }

    /// Returns the flows for this arrival rate: fio's `rw`, threads, and the rate of each, whole as in fio.
    fn flows(&self, rate: f64) -> Vec<(String, u32, f64)> {
        let reads = f64::from(self.read_percent) / 100.0;
        let random = match fio::is_random(&self.rw) {
            true => "rand",
            false => "",
        };
        let flows = match self.is_mixed() {
            true => vec![
                (format!("{random}read"), reads),
                (format!("{random}write"), 1.0 - reads),
            ],
            false => vec![(self.rw.clone(), 1.0)],
        };
        let flows = flows.into_iter().filter(|(_, share)| *share > 0.0);
        flows
            .map(|(rw, share)| {
                let threads = f64::from(self.threads) * share;
                let copies = libm::round(threads.min(rate * share / LEAST_RATE)).max(1.0);
                let each = libm::round(rate * share / copies).max(1.0);
                (rw, copies as u32, each)
            })
            .collect()
    }

    /// Returns the jobs' actual arrival rate for this requested rate.
    pub fn offered(&self, rate: f64) -> f64 {
        let flows = self.flows(rate).into_iter();
        flows
            .map(|(_, copies, each)| f64::from(copies) * each)
            .sum()
    }

    fn open(&self, rate: f64, lines: &mut Vec<String>) {
        let flows = self.flows(rate);
        let threads = flows.iter().map(|(_, copies, _)| copies).sum();
        let mut ranges = self.ranges(threads);
        for (rw, copies, each) in flows {
            lines.push(format!("\n[{rw}]\nrw={rw}"));
            lines.push(format!("iodepth={OPEN_DEPTH}\nnumjobs={copies}"));
            lines.extend(ranges.next(copies));
            lines.push(format!("rate_iops={each}\nrate_process=poisson"));
        }
    }

    /// Returns the jobs of this height.
    ///
    /// # Errors
    /// Options that fio or the simulation does not accept.
    pub fn jobs(&self, height: Height, ramp: Span, runtime: Span) -> Result<Vec<Job>, Problems> {
        let text = self.text(height, ramp, runtime);
        let surroundings = Surroundings {
            environment: &|_| None,
            read: &|_| Err(std::io::ErrorKind::NotFound.into()),
            processors: self.threads,
        };
        fio::read_text("options of the job", &text, &surroundings).map(|set| set.jobs)
    }

    /// Checks the pattern.
    ///
    /// # Errors
    /// All problems at once.
    pub fn check(&self) -> Result<(), Problems> {
        let mut problems = Problems::default();
        let mut wrong = |what: String, help: &str| {
            problems.0.push(Problem {
                origin: String::from("command line"),
                place: text::problem::Place::Whole,
                what,
                help: Some(String::from(help)),
            });
        };
        for (key, _) in self
            .options
            .iter()
            .filter(|(key, _)| OURS.contains(&&**key))
        {
            wrong(
                format!("{key}: is set by the search, or follows from it"),
                "leave it out; --rw, --rwmixread, --bs, --numjobs and --fio say what the load is",
            );
        }
        problems.or(())?;
        let jobs = self.jobs(Height::InFlight(2), Span::ZERO, Span::from_ms(1))?;
        let mut problems = Problems::default();
        for job in &jobs {
            if matches!(job.mix, Mix::Trim | Mix::TrimWrite) {
                problems.0.extend(
                    Problems::whole(
                        "--rw",
                        "the search does not support trims: use reads, writes or both",
                    )
                    .0,
                );
            } else if job.iodepth < 2 && self.threads < 2 {
                let what = format!(
                    "ioengine={} always has one I/O in flight, so there is no load to search for",
                    job.engine_name
                );
                problems.0.extend(Problems::whole("command line", what).0);
            }
        }
        problems.0.dedup();
        problems.or(())
    }
}

/// Returns arrival rates, lowest first: from `lowest` to 1.1 times this maximum, at equal ratios of `step`.
pub(super) fn rates(most: f64, lowest: f64, step: f64) -> Vec<Height> {
    let top = most * 1.1;
    let steps = libm::ceil(libm::log(1.0 / lowest) / libm::log(step)) as i32;
    let rate = |at: i32| top * libm::exp(-f64::from(at) * libm::log(step));
    // Four digits, so that an answer is a round number; whole, as fio's rates are.
    let round = |rate: f64| libm::round(text::digits::rounded(rate, 4)).max(1.0);
    let mut rates: Vec<f64> = (0..=steps).rev().map(|at| round(rate(at))).collect();
    rates.dedup();
    rates.into_iter().map(Height::Arrivals).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::job::{Extent, Rate, RateProcess};

    fn pattern(rw: &str, threads: u32) -> Pattern {
        Pattern {
            rw: rw.into(),
            read_percent: 70,
            options: vec![("bs".into(), "4k".into())],
            threads,
        }
    }

    #[test]
    fn arrivals_add_up_to_the_rate_that_was_asked_for() {
        for rate in [150.0, 5_000.0, 123_456.0, 2_000_000.0] {
            let jobs = pattern("randrw", 16)
                .jobs(Height::Arrivals(rate), Span::ZERO, Span::from_ms(1))
                .expect("a job of fio's");
            let mut sums = [0.0; 2];
            for job in &jobs {
                assert_eq!(job.rate_process, RateProcess::Poisson);
                let at = usize::from(job.mix == Mix::Write);
                let Some(Rate::Iops(each)) = job.rate[at] else {
                    panic!("a rate")
                };
                sums[at] += each as f64 * f64::from(job.numjobs);
            }
            assert!(
                (sums[0] / (0.7 * rate) - 1.0).abs() < 0.005,
                "{rate}: {sums:?}"
            );
            assert!(
                (sums[1] / (0.3 * rate) - 1.0).abs() < 0.02,
                "{rate}: {sums:?}"
            );
        }
    }

    #[test]
    fn so_many_are_in_flight_as_were_asked_for() {
        for depth in [1, 3, 16, 37, 1024] {
            let jobs = pattern("randrw", 16)
                .jobs(Height::InFlight(depth), Span::ZERO, Span::from_ms(1))
                .expect("a job of fio's");
            let sum: u32 = jobs.iter().map(|job| job.numjobs * job.iodepth).sum();
            assert_eq!(sum, depth);
            assert!(jobs.iter().all(|job| job.read_percent == 70));
        }
    }

    /// At low rates, the actual rate differs from the requested one, because fio's rates are whole. Comparisons use
    /// the actual rate.
    #[test]
    fn what_arrives_is_known_however_low_the_rate() {
        for rate in [1.0, 2.17, 12.4, 311.5, 50_000.0] {
            for (rw, threads) in [("randread", 16), ("randrw", 16), ("write", 1)] {
                let pattern = pattern(rw, threads);
                let jobs = pattern
                    .jobs(Height::Arrivals(rate), Span::ZERO, Span::from_ms(1))
                    .expect("a job of fio's");
                let rates = jobs.iter().map(|job| {
                    let rate = job.rate.iter().flatten().next();
                    let Some(Rate::Iops(each)) = rate else {
                        panic!("a rate")
                    };
                    *each as f64 * f64::from(job.numjobs)
                });
                assert_eq!(rates.sum::<f64>(), pattern.offered(rate), "{rate} of {rw}");
            }
        }
    }

    /// Otherwise sequential threads would find in the drive's memory what others have just read or written.
    #[test]
    fn threads_in_order_have_ranges_of_their_own() {
        let percent = |extent| match extent {
            Extent::Percent(percent) => percent,
            Extent::Bytes(bytes) => panic!("{bytes} bytes"),
        };
        for height in [Height::InFlight(37), Height::Arrivals(90_000.0)] {
            for rw in ["read", "rw"] {
                let jobs = pattern(rw, 16)
                    .jobs(height, Span::ZERO, Span::from_ms(1))
                    .expect("a job of fio's");
                let ranges = jobs.iter().flat_map(|job| {
                    let (first, step) = (percent(job.offset), percent(job.offset_increment));
                    let copies = (0..job.numjobs).map(f64::from);
                    copies.map(move |copy| (first + copy * step, job.size.map_or(100.0, percent)))
                });
                let mut ranges: Vec<(f64, f64)> = ranges.collect();
                ranges.sort_by(|one, other| one.0.total_cmp(&other.0));
                assert!(ranges.len() >= 15, "{ranges:?}");
                ranges.push((100.0, 0.0));
                for pair in ranges.windows(2) {
                    assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{rw}: {ranges:?}");
                }
            }
            let mut told = pattern("read", 16);
            told.options.push(("size".into(), "50%".into()));
            for pattern in [pattern("randread", 16), told, pattern("read", 1)] {
                let text = pattern.text(height, Span::ZERO, Span::from_ms(1));
                assert!(!text.contains("offset"), "{text}");
            }
        }
    }

    #[test]
    fn what_a_load_does_is_known() {
        let of = |rw: &str, read_percent| {
            let pattern = Pattern {
                read_percent,
                ..pattern(rw, 4)
            };
            (pattern.reads(), pattern.writes())
        };
        for rw in ["read", "randread"] {
            assert_eq!(of(rw, 0), (true, false), "{rw}");
        }
        for rw in ["write", "randwrite"] {
            assert_eq!(of(rw, 100), (false, true), "{rw}");
        }
        for rw in ["rw", "readwrite", "randrw"] {
            assert_eq!(of(rw, 0), (false, true), "{rw}");
            assert_eq!(of(rw, 70), (true, true), "{rw}");
            assert_eq!(of(rw, 100), (true, false), "{rw}");
        }
        for (value, syncs) in [("0", false), ("8", true)] {
            let mut pattern = pattern("write", 4);
            pattern.options.push(("fdatasync".into(), value.into()));
            assert_eq!(pattern.syncs(), syncs, "{value}");
        }
    }

    #[test]
    fn what_the_search_sets_itself_is_refused() {
        let mut mine = pattern("randrw", 4);
        mine.options.push(("iodepth".into(), "4".into()));
        mine.options.push(("runtime".into(), "4".into()));
        let problems = mine.check().expect_err("two options too many");
        assert_eq!(problems.0.len(), 2);
        let odd = Pattern {
            rw: "randreed".into(),
            ..pattern("", 4)
        };
        odd.check().expect_err("no such word of fio's");
        pattern("randtrim", 4).check().expect_err("no limit");
        pattern("randread", 1).check().expect("a job");
    }
}
