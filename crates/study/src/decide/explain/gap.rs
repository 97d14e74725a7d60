//! Distance of a measured rate from the model's, and limits of the drive that no run can exceed.
//!
//! A rate that is far above every simulated one is not a bottleneck of the drive: another drive or a cache answered.
//! Simple arithmetic decides where it can: bytes per second over the interface, and random I/Os per turn of a disk. The
//! interface is that of the catalogue, not the link of the model: the latter is often set from a data sheet's rate, and
//! good samples exceed their data sheet. Not checked: limits of pools and volumes, and the sum over both directions of an
//! interface (PCIe is full duplex).
//!
//! Source: the raw bit rates of the standards (PCIe 1.0 and 2.0, SATA and SAS with 8b/10b, PCIe 3.0 to 5.0 with
//! 128b/130b), from memory; packet headers are not subtracted.

use std::cmp::Ordering;

use model::Span;
use serde::Serialize;
use text::digits::{bytes_binary, count, digits, megabytes_a_second};
use tier::DriveConfig;

use super::file::RunFacts;
use super::runs::Trial;
use crate::review::results::rounded;

/// Distance of a measured rate from the model's.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RateGap {
    /// Measured rate divided by that of the model with the options of the run.
    pub of_model: f64,
    /// Whether the rate is at least [`FAR`] times every simulated one and above the drive's rating, or exceeds a limit.
    pub beyond_model: bool,
    /// Limit of the drive that the rate exceeds; null if it exceeds none of those that are checked.
    pub exceeds: Option<ExceededLimit>,
}

/// A limit of the drive that the measured rate exceeds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ExceededLimit {
    /// Name of the limit, such as "its interface".
    pub what: &'static str,
    /// Measured value divided by the limit; null if the limit has no exact value.
    pub times: Option<f64>,
    /// The calculation, as a sentence without its period.
    pub arithmetic: String,
}

/// Factor between the measured rate and the fastest simulated one at which another drive or a cache is reported.
pub const FAR: f64 = 1.5;
/// Share of its rating up to which the drive itself may be as fast (assumed): good samples exceed their data sheet.
const OF_RATING: f64 = 1.1;
/// Random I/Os per turn of a disk above which the rotation is named as a limit (assumed).
const PER_TURN: f64 = 10.0;

impl RateGap {
    /// Compares the facts of a run with its simulated cases; `trials` has the case as asked first, and `interface` is the
    /// drive's in the catalogue.
    pub(super) fn new(
        facts: &RunFacts,
        trials: &[&Trial],
        (drive, interface): (&DriveConfig, &str),
    ) -> RateGap {
        let as_asked = trials.first().map_or(0.0, |trial| trial.iops);
        let fastest = trials.iter().map(|trial| trial.iops).fold(0.0, f64::max);
        let is_far = facts.iops >= FAR * fastest.max(1e-9);
        // A disk that sorts a deep queue over a small range, or that caches writes, does many I/Os per turn.
        let turns = || over_turns(facts, drive).filter(|_| is_far);
        // The interface of a pool is that of its members, and several members carry more than one.
        let is_pool = matches!(drive, DriveConfig::Pool(_));
        let link = over_interface(facts, interface).filter(|_| !is_pool);
        let exceeds = link.or_else(turns);
        RateGap {
            of_model: rounded(facts.iops / as_asked.max(1e-9)),
            beyond_model: is_far || exceeds.is_some(),
            exceeds,
        }
    }

    /// Attributes a rate up to the drive's rating to the drive, however slow the model is.
    pub(super) fn with_rating(self, measured: f64, rating: Option<f64>) -> RateGap {
        let is_rated = rating.is_some_and(|rating| measured <= OF_RATING * rating);
        RateGap {
            beyond_model: self.exceeds.is_some() || (self.beyond_model && !is_rated),
            ..self
        }
    }
}

/// Returns the name of an interface and its raw bytes per second in one direction: "PCIe 4.0 x4", "SATA 6 Gb/s". `None`
/// if the text states no speed.
fn raw_rate(interface: &str) -> Option<(&str, f64)> {
    let words: Vec<&str> = interface.split([' ', ',']).collect();
    let until = |word: &str| &interface[..interface.find(word).map_or(0, |at| at + word.len())];
    match words[..] {
        ["PCIe", generation, lanes, ..] => {
            let giga_transfers = match generation {
                "1.0" => 2.5 * 0.8,
                "2.0" => 5.0 * 0.8,
                "3.0" => 8.0 * 128.0 / 130.0,
                "4.0" => 16.0 * 128.0 / 130.0,
                "5.0" => 32.0 * 128.0 / 130.0,
                _ => return None,
            };
            let count: f64 = lanes.strip_prefix('x')?.parse().ok()?;
            Some((until(lanes), giga_transfers * count / 8.0 * 1e9))
        }
        ["SATA" | "SAS", gigabits, "Gb/s", ..] => {
            let gigabits: f64 = gigabits.parse().ok()?;
            Some((until("Gb/s"), gigabits / 10.0 * 1e9))
        }
        _ => None,
    }
}

fn over_interface(facts: &RunFacts, interface: &str) -> Option<ExceededLimit> {
    let (name, raw) = raw_rate(interface)?;
    let over = facts.sides.iter().filter_map(|side| {
        let times = side.mb_s * 1e6 / raw;
        (times > 1.0).then(|| ExceededLimit {
            what: "its interface",
            times: Some(rounded(times)),
            arithmetic: format!(
                "{} {} per second of {} are {}, and {name} carries at most {}",
                count(side.iops),
                side.direction,
                bytes_binary(side.mb_s * 1e6 / side.iops.max(1e-9)),
                megabytes_a_second(side.mb_s),
                megabytes_a_second(raw / 1e6),
            ),
        })
    });
    over.max_by(|a, b| a.times.partial_cmp(&b.times).unwrap_or(Ordering::Equal))
}

fn over_turns(facts: &RunFacts, drive: &DriveConfig) -> Option<ExceededLimit> {
    let DriveConfig::Hdd(config) = drive else {
        return None;
    };
    let random = facts.asked.as_ref()?.rw.starts_with("rand");
    let turn: Span = config.disk.turn;
    let per_turn = facts.iops * turn.seconds();
    (random && per_turn >= PER_TURN).then(|| ExceededLimit {
        what: "the disk's rotation",
        times: None,
        arithmetic: format!(
            "One turn of the disk takes {} ms, so {} random IOPS are {} I/Os in each turn; the arm reaches only a few",
            digits(turn.seconds() * 1e3),
            count(facts.iops),
            digits(per_turn),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::explain::file;

    fn facts(rw: &str, iops: f64, block: f64) -> RunFacts {
        let side = if rw.ends_with("read") {
            "read"
        } else {
            "write"
        };
        let text = format!(
            r#"{{"fio version": "fio-3.33", "jobs": [{{"jobname": "a", "groupid": 0, "usr_cpu": 10, "sys_cpu": 10,
            "job options": {{"rw": "{rw}", "bs": "{block}", "iodepth": "32", "ioengine": "libaio", "direct": "1"}},
            "{side}": {{"iops": {iops}, "total_ios": 100000, "bw_bytes": {}, "lat_ns": {{"mean": 100000}}}}}}]}}"#,
            iops * block
        );
        file::read("r.json", &text).expect("fio's").remove(0).facts
    }

    fn gap(drive: &str, facts: &RunFacts, simulated: &[f64]) -> RateGap {
        let trials: Vec<Trial> = simulated.iter().map(|&iops| Trial::of_rate(iops)).collect();
        let sheet = catalogue::drive(drive).expect("built in");
        RateGap::new(
            facts,
            &trials.iter().collect::<Vec<_>>(),
            (&sheet.config, &sheet.interface),
        )
    }

    #[test]
    fn a_rate_beyond_the_link_is_reported_with_its_arithmetic() {
        let gap_of = |iops: f64| gap("990pro-2000", &facts("randread", iops, 4096.0), &[1.2e6]);
        let over = gap_of(6.0e6);
        assert!(over.beyond_model && over.of_model == 5.0, "{over:?}");
        let limit = over.exceeds.expect("the link");
        assert!(
            limit.arithmetic.contains("4 KiB are 24.6 GB/s"),
            "{limit:?}"
        );
        assert!(
            limit.times > Some(3.1) && limit.times < Some(3.2),
            "{limit:?}"
        );
        // Far from the model, but possible; and a fast condition is enough.
        assert_eq!(gap_of(1.85e6).exceeds, None);
        assert!(gap_of(1.85e6).beyond_model);
        assert!(!gap_of(1.7e6).beyond_model);
        let run = facts("randwrite", 450_000.0, 4096.0);
        assert!(!gap("970evo-1000", &run, &[36_100.0, 451_000.0]).beyond_model);
    }

    /// Four drives of PCIe 3.0 x4 carry 15.8 GB/s, and one carries 3.94 GB/s.
    #[test]
    fn a_pool_is_not_limited_by_the_interface_of_one_member() {
        let iops = 13.6e9 / 1_048_576.0;
        let run = facts("read", iops, 1_048_576.0);
        let pool = gap("stripe(4*970evo-1000)", &run, &[iops]);
        assert!(pool.exceeds.is_none() && !pool.beyond_model, "{pool:?}");
        let alone = gap("970evo-1000", &run, &[iops]);
        assert!(alone.exceeds.is_some(), "{alone:?}");
    }

    /// The model's link of an A2000 is its rating, 2 GB/s; four lanes of PCIe 3.0 carry 3.94 GB/s.
    #[test]
    fn a_rate_above_the_data_sheet_is_below_the_interface() {
        let of = |mb_s: f64| {
            let run = facts("read", mb_s * 1e6 / 131_072.0, 131_072.0);
            gap("a2000-250", &run, &[2e9 / 131_072.0])
        };
        assert_eq!(of(2250.0).exceeds, None);
        assert!(!of(2250.0).beyond_model);
        let limit = of(4100.0).exceeds.expect("the interface");
        assert!(limit.arithmetic.contains("PCIe 3.0 x4"), "{limit:?}");
        assert!(limit.arithmetic.contains("3.94 GB/s"), "{limit:?}");
    }

    #[test]
    fn interfaces_have_the_rates_of_their_standards() {
        for (interface, expected) in [
            ("PCIe 3.0 x4, NVMe", Some(("PCIe 3.0 x4", 3938))),
            (
                "PCIe 3.0 x8, two NVMe controllers",
                Some(("PCIe 3.0 x8", 7877)),
            ),
            ("PCIe 4.0 x4 or 5.0 x2, NVMe", Some(("PCIe 4.0 x4", 7877))),
            ("SATA 6 Gb/s", Some(("SATA 6 Gb/s", 600))),
            ("SAS 12 Gb/s", Some(("SAS 12 Gb/s", 1200))),
            ("NVMe", None),
            ("virtio", None),
        ] {
            let found = raw_rate(interface);
            let found = found.map(|(name, rate)| (name, (rate / 1e6).round() as u32));
            assert_eq!(found, expected, "{interface}");
        }
        // A drive of the catalogue with a speed in its interface is recognised.
        for name in catalogue::drive_names() {
            let interface = catalogue::drive(name).expect("built in").interface;
            let has_speed = interface.contains(" x") || interface.contains("Gb/s");
            assert_eq!(raw_rate(&interface).is_some(), has_speed, "{interface}");
        }
    }

    /// The model of the P3700 800 GB writes at 1250 MB/s; its data sheet has 1900 MB/s.
    #[test]
    fn a_drive_may_be_as_fast_as_its_rating() {
        let run = facts("write", 1.9e9 / 131_072.0, 131_072.0);
        let of = |rating: Option<f64>| {
            let gap = gap("p3700-800", &run, &[1.25e9 / 131_072.0]);
            gap.with_rating(run.iops, rating).beyond_model
        };
        assert!(of(None) && of(Some(1.7e9 / 131_072.0)));
        assert!(!of(Some(1.9e9 / 131_072.0)));
        let run = facts("randread", 6.0e6, 4096.0);
        let over = gap("990pro-2000", &run, &[1.2e6]);
        assert!(over.with_rating(6.0e6, Some(7e6)).beyond_model, "the link");
    }

    #[test]
    fn a_disk_turns_too_slowly_for_a_solid_state_rate() {
        let of = |rw: &str, simulated: f64| {
            let run = facts(rw, 36_100.0, 4096.0);
            gap("wd6001fzwx", &run, &[simulated])
        };
        let limit = of("randwrite", 265.0).exceeds.expect("the rotation");
        assert!(limit.arithmetic.contains("8.33 ms"), "{limit:?}");
        assert!(of("randwrite", 265.0).of_model > 136.0);
        assert_eq!(of("write", 265.0).exceeds, None);
        assert!(!of("randwrite", 30_000.0).beyond_model);
    }
}
