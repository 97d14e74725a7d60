//! Lifetime of drives at a load: by their rating, and by the model's wear.
//!
//! A maker rates the bytes that a host may write. A NAND drive wears by the bytes that it programs, which are the
//! host's bytes times its write amplification. Both are shown: years to the rating, and years until SMART's Percentage
//! Used, as the model computes it (erases against rated cycles for NAND, bytes against the rating for 3D XPoint),
//! exceeds 100 and 105. A drive lasts a term if it reaches its rating at most 0.5 % earlier ([`lasts`]). The write amplification that the rating itself assumes is
//! `rated cycles x raw bytes / rated bytes`; rated cycles are mostly assumed. Rates are those of the run, without an
//! end. Not modelled: idle hours, unless the load has them, and bits that fail independently of wear.
//!
//! Sources: JESD218 for the meaning of a rating in bytes (from memory), NVMe's SMART log for Percentage Used, S4-066
//! and S4-067 for the throttling of 3D XPoint.

use catalogue::{DriveSheet, FigureKind};
use lab::{Lab, Outcome, ProgressCallback};
use model::Gauge;
use model::media::Medium;
use serde::Serialize;
use text::problem::Problems;
use tier::DriveConfig;

use super::arrivals::{self, Completes};
use super::buffer;
use super::few_writes;
use super::read_only;
use super::spread;
use super::tally::Tally;
use super::work::{Conditions, Load, LoadFacts};
use crate::ledger::support;
use crate::review::results::rounded;

pub use super::life_part::{
    Cycles, DestageRate, EnduranceRating, FewWrites, LifePart, WearCrossing, WriteLoad,
};
pub(super) use super::life_part::{DAY, DAYS};

/// Share of a term by which a drive may reach its rating earlier and still last the term. Ratings have two or three
/// digits and runs write whole blocks, so a drive that is written at its rating reaches it at 99.9 to 100.1 % of the
/// term.
const TOLERANCE: f64 = 0.005;

/// Checks whether a drive that reaches its rating after `years` lasts a term, with the tolerance of rounded ratings.
pub fn lasts(years: f64, term: f64) -> bool {
    years >= term * (1.0 - TOLERANCE)
}

/// Parses a number of years.
///
/// # Errors
/// A description of the allowed form.
pub fn years(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('y').parse::<f64>() {
        Ok(years) if years > 0.0 && years <= 100.0 => Ok(years),
        _ => Err(String::from(
            "a number of years above 0, at most 100, such as 5",
        )),
    }
}

/// A verdict names the cycles of a drive too if they end before this share of the time to its rating.
const MUCH_EARLIER: f64 = 0.5;

/// Returns the part whose Percentage Used passes 100 first, and the days until then, if that is within the term and much
/// earlier than its rating. Its load then has a far higher write amplification than the load of the rating.
pub fn cycles_end_first(parts: &[LifePart], term: f64) -> Option<(&LifePart, f64)> {
    let early = parts.iter().filter_map(|part| {
        let days = part.passes.first()?.day;
        let rated = part.years_to_rating()? * DAYS;
        (days > 0.0 && days < MUCH_EARLIER * rated).then_some((part, days))
    });
    let first = early.min_by(|a, b| a.1.total_cmp(&b.1))?;
    (!lasts(first.1 / DAYS, term)).then_some(first)
}

/// Results of one drive or pool.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LifeAnswer {
    /// Name of the drive or pool.
    pub drive: String,
    /// Support level of its model.
    pub model: &'static str,
    /// The supporting rows.
    pub model_text: String,
    /// Load; null if none was given.
    pub load: Option<LoadFacts>,
    /// Requested years.
    pub years: f64,
    /// The drive itself, or each member of a pool.
    pub parts: Vec<LifePart>,
    /// IOPS of the load over all seeds.
    pub iops: Option<f64>,
    /// At a given rate: the completed share of the arriving I/Os.
    #[serde(skip)]
    pub(super) completes: Option<Completes>,
    /// For a pool with one write buffer: seconds of this load until it is full without destaging, if no seed ran for
    /// that long. Later destaging is not included in any member's wear.
    pub buffer_full_seconds: Option<f64>,
}

impl LifeAnswer {
    /// Returns the part that ends first, and when: among rated parts, or, if there are none, among those that wear.
    /// `None` if no part has a known end.
    pub fn weakest(&self) -> Option<(&LifePart, f64)> {
        let rated = self.parts.iter().any(|part| part.rating.is_some());
        let known = self
            .parts
            .iter()
            .filter(|part| part.rating.is_some() == rated);
        let ends = known.filter_map(|part| Some((part, part.years()?)));
        ends.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Checks whether a given rate was completed; `None` without a given rate.
    pub fn keeps_up(&self) -> Option<bool> {
        self.completes.map(|it| it.keeps_up)
    }

    /// Checks whether every rated part lasts as long as requested, and no part is read-only; `None` if no part has a
    /// rating or nothing was run.
    pub fn lasts(&self) -> Option<bool> {
        let rated = |part: &LifePart| {
            part.written.is_some() && (part.rating.is_some() || part.years_to_rating().is_some())
        };
        if !self.parts.iter().any(rated) {
            return None;
        }
        let short = |part: &LifePart| {
            let years = part.years_to_rating();
            years.is_some_and(|years| !lasts(years, self.years))
        };
        Some(!self.parts.iter().any(short))
    }
}

/// Computes the lifetime of a drive; `go_on` is called with the completed share of the runs.
///
/// # Errors
/// The load does not fit the drive.
pub fn life(
    drive: &DriveSheet,
    load: Option<&Load>,
    years: f64,
    conditions: &Conditions,
    lab: &Lab,
    go_on: ProgressCallback<'_>,
) -> Result<LifeAnswer, Problems> {
    let outcomes = match load {
        Some(load) => Some(load.run(drive, conditions, lab, go_on)?),
        None => None,
    };
    let facts = load.map(|load| load.facts_on(drive, conditions.seeds));
    let completes = load
        .and_then(Load::offered_iops)
        .and(outcomes.as_deref())
        .and_then(arrivals::completes);
    let offered = load.and_then(Load::offered_writes);
    let offered = offered.filter(|_| completes.is_some_and(|it| it.keeps_up));
    let mut answer = of_outcomes(drive, facts, years, outcomes.as_deref(), offered);
    if let Some(load) = load {
        answer.completes = completes;
        read_only::end(drive, load, &mut answer.parts);
        let outcomes = outcomes.as_deref().unwrap_or_default();
        let seconds = load.seconds_at_low_rate(drive, conditions, outcomes);
        few_writes::leave_out_wear(drive, seconds, &mut answer.parts);
    }
    Ok(answer)
}

/// Computes the lifetime from existing outcomes. `offered` is the rate of writes in bytes per second that a drive which
/// keeps up was asked for: each run draws a few more or fewer, and its wear is scaled by as much.
pub fn of_outcomes(
    drive: &DriveSheet,
    load: Option<LoadFacts>,
    years: f64,
    outcomes: Option<&[Outcome]>,
    offered: Option<f64>,
) -> LifeAnswer {
    let known = support::statement(drive);
    let members = match &drive.pool {
        Some(_) => drive.named_members(),
        None => Vec::new(),
    };
    let mut parts = match members.is_empty() {
        true => {
            let wear = outcomes.map(|outcomes| wear(outcomes, offered, &|one| &one.gauges));
            vec![part(&drive.id, drive, years, wear.as_deref())]
        }
        false => {
            let members = members.iter().copied().enumerate();
            let of = |(index, (name, sheet)): (usize, (&str, &DriveSheet))| {
                let wear = outcomes.map(|outcomes| {
                    wear(outcomes, offered, &|one| {
                        one.members.get(index).map_or(&[], |it| it)
                    })
                });
                part(name, sheet, years, wear.as_deref())
            };
            members.map(of).collect()
        }
    };
    let iops = outcomes.map(|outcomes| {
        let sum: f64 = outcomes.iter().map(super::rate_of).sum();
        rounded(sum / outcomes.len().max(1) as f64)
    });
    let buffer = outcomes.and_then(|outcomes| {
        let tally = Tally::from_runs(&outcomes.iter().collect::<Vec<_>>());
        buffer::not_full(drive, tally.written_bytes_a_second(), outcomes)
    });
    for &(member, mb_s) in buffer.iter().flat_map(|buffer| &buffer.destaged) {
        parts[member].destaged = Some(DestageRate {
            mb_s: rounded(mb_s),
            years_to_rating: years_to_rating(members[member].1, mb_s),
        });
    }
    LifeAnswer {
        drive: drive.id.clone(),
        model: known.grade.name(),
        model_text: known.text,
        load,
        years,
        parts,
        iops,
        completes: None,
        buffer_full_seconds: buffer.map(|buffer| buffer.full_after),
    }
}

/// The part of a drive or pool that reaches its rated endurance first.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FirstEnd {
    /// Name of the member of a pool; null for a drive.
    pub member: Option<String>,
    /// Years until its rated bytes are written.
    pub years: f64,
    /// The part whose cycles are used up first, if that is much earlier than its rating; left out otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles: Option<CyclesEnd>,
}

/// When the cycles of a drive, or of a member of a pool, are used up.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CyclesEnd {
    /// Name of the member of a pool; null for a drive.
    pub member: Option<String>,
    /// Years until Percentage Used exceeds 100.
    pub years: f64,
    /// Kind of the rated cycles: `spec`, `assumed`, ...
    pub kind: &'static str,
}

impl CyclesEnd {
    /// Returns the end of the cycles of these parts, if it is within the term and much earlier than the rating
    /// ([`cycles_end_first`]).
    pub fn from_parts(parts: &[LifePart], term: f64) -> Option<CyclesEnd> {
        let (part, days) = cycles_end_first(parts, term)?;
        Some(CyclesEnd {
            member: (parts.len() > 1).then(|| part.name.clone()),
            years: rounded(days / DAYS),
            kind: part.cycles.as_ref().map_or("not known", |it| it.kind),
        })
    }
}

/// Returns the part that reaches its rated endurance first at the rate of these runs; `None` without a rating or
/// without writes.
pub fn first_end(drive: &DriveSheet, outcomes: &[Outcome]) -> Option<FirstEnd> {
    let life = of_outcomes(drive, None, 1.0, Some(outcomes), None);
    let parts = life.parts.iter();
    let known = parts.filter_map(|part| Some((part, part.years_to_rating()?)));
    let (part, years) = known.min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(FirstEnd {
        member: (life.parts.len() > 1).then(|| part.name.clone()),
        years,
        cycles: CyclesEnd::from_parts(&life.parts, f64::INFINITY),
    })
}

/// Write rates of one run: bytes per second of the host, and of the medium caused by them.
#[derive(Clone, Copy)]
struct Wear {
    host: f64,
    caused: Option<f64>,
}

/// Returns the factor between the offered rate of writes and that of a run, if they differ by the draw of arrivals only: by
/// at most four standard deviations of a Poisson number of writes. Otherwise, and if none is offered, 1.
fn scale(outcome: &Outcome, offered: Option<f64>) -> f64 {
    let Some(offered) = offered else {
        return 1.0;
    };
    let run = Tally::from_runs(&[outcome]).written_bytes_a_second();
    let writes: u64 = outcome.threads.iter().map(|it| it.write.ios).sum();
    let chance = 4.0 / libm::sqrt(writes.max(1) as f64);
    let factor = if run > 0.0 { offered / run } else { 1.0 };
    match (factor - 1.0).abs() <= chance {
        true => factor,
        false => 1.0,
    }
}

fn wear<'a>(
    outcomes: &'a [Outcome],
    offered: Option<f64>,
    gauges: &dyn Fn(&'a Outcome) -> &'a [(Gauge, f64)],
) -> Vec<Wear> {
    let of = |outcome: &'a Outcome| {
        let seconds = outcome.counted.seconds().max(1e-9) / scale(outcome, offered);
        let find = |wanted: Gauge| {
            let mut gauges = gauges(outcome).iter();
            gauges
                .find(|(gauge, _)| *gauge == wanted)
                .map(|(_, value)| value / seconds)
        };
        Wear {
            // For a pool's member: the writes of its tiers.
            host: find(Gauge::BackBytesWritten)
                .or_else(|| find(Gauge::HostBytesWritten))
                .unwrap_or(0.0),
            caused: find(Gauge::CausedBytesWritten),
        }
    };
    outcomes.iter().map(of).collect()
}

fn kind_of(sheet: &DriveSheet, key: &str) -> &'static str {
    sheet
        .figure(key)
        .map_or("not known", |figure| figure.kind.name())
}

fn part(name: &str, sheet: &DriveSheet, years: f64, wear: Option<&[Wear]>) -> LifePart {
    let seconds = years * DAYS * DAY;
    let rating = sheet.endurance_bytes.map(|bytes| EnduranceRating {
        tbw: rounded(bytes as f64 * 1e-12),
        warranty_years: sheet.warranty_years,
        dwpd: sheet.drive_writes_per_day().map(rounded),
        lasting_mb_s: rounded(bytes as f64 / seconds * 1e-6),
        kind: kind_of(sheet, "endurance"),
    });
    let cycles = match &sheet.config {
        DriveConfig::Nand(config) => Some(Cycles {
            rated: config.rated_cycles,
            kind: kind_of(sheet, "nand.wear.rated_cycles"),
            rated_write_amplification: sheet.endurance_bytes.zip(config.raw_bytes()).map(
                |(rated, raw)| rounded(f64::from(config.rated_cycles) * raw as f64 / rated as f64),
            ),
        }),
        _ => None,
    };
    let written = wear.map(|wear| written(sheet, seconds, wear));
    let used = sheet.config.percentage_used();
    let a_year = wear.and_then(|wear| used_a_year(sheet, wear));
    let rate = written.as_ref().map_or(0.0, |written| written.mb_s[0]);
    LifePart {
        name: name.to_owned(),
        drive: sheet.id.clone(),
        is_disk: matches!(sheet.config, DriveConfig::Hdd(_)),
        capacity_bytes: sheet.capacity,
        rating,
        cycles,
        written,
        used_percent: rounded(used),
        used_percent_a_year: a_year.map(|more| rounded(used + more)),
        passes: a_year.map_or_else(Vec::new, |more| passes(sheet, used, more, rate)),
        destaged: None,
        few_writes: None,
    }
}

/// Returns the years until a drive's rated bytes are written at this rate; `None` without a rating or without writes.
fn years_to_rating(sheet: &DriveSheet, mb_s: f64) -> Option<f64> {
    let left = (1.0 - sheet.config.percentage_used() / 100.0).max(0.0);
    let rated = sheet.endurance_bytes? as f64 * left;
    (mb_s > 0.0).then(|| rounded(rated / (mb_s * 1e6) / DAY / DAYS))
}

fn written(sheet: &DriveSheet, seconds: f64, wear: &[Wear]) -> WriteLoad {
    let rates = spread(wear.iter().map(|one| one.host * 1e-6));
    let rate = rates[0] * 1e6;
    let amplification = wear
        .iter()
        .map(|one| (one.host > 0.0).then(|| Some(one.caused? / one.host))?);
    let amplification: Option<Vec<f64>> = amplification.collect();
    let years = |mb_s| years_to_rating(sheet, mb_s);
    WriteLoad {
        mb_s: rates,
        write_amplification: amplification.map(|values| spread(values.into_iter())),
        dwpd: rounded(rate * DAY / sheet.capacity as f64),
        tbw: rounded(rate * seconds * 1e-12),
        years_to_rating: years(rates[0]),
        years_to_rating_by_seed: years(rates[2])
            .zip(years(rates[1]))
            .map(|(least, most)| [least, most]),
    }
}

/// Returns the increase of Percentage Used in a year at this load, as the model computes it.
fn used_a_year(sheet: &DriveSheet, wear: &[Wear]) -> Option<f64> {
    let count = wear.len().max(1) as f64;
    let second = match &sheet.config {
        DriveConfig::Nand(config) => {
            let caused: f64 = wear.iter().filter_map(|one| one.caused).sum();
            let raw = config.raw_bytes()? as f64;
            100.0 * config.wear_factor * caused / count / raw / f64::from(config.rated_cycles)
        }
        DriveConfig::XPoint(config) => {
            let host: f64 = wear.iter().map(|one| one.host).sum();
            100.0 * config.wear.factor * host / count / config.wear.endurance_bytes as f64
        }
        _ => return None,
    };
    (second > 0.0).then_some(second * DAY * DAYS)
}

/// Returns when Percentage Used exceeds 100 and 105, and the model's behaviour then.
fn passes(sheet: &DriveSheet, used: f64, a_year: f64, mb_s: f64) -> Vec<WearCrossing> {
    let day = |percent: f64| rounded(((percent - used).max(0.0)) / a_year * DAYS);
    let retention = sheet.management.retention.map_or(String::new(), |span| {
        format!(
            "; from then on it keeps data for {} without power",
            text::digits::duration(span.seconds())
        )
    });
    let mut all = vec![WearCrossing {
        percent: 100.0,
        day: day(100.0),
        then: format!(
            "SMART's critical warning \"reliability degraded\"; the drive continues to work{retention}"
        ),
    }];
    let throttle = match &sheet.config {
        DriveConfig::XPoint(config) => Some((
            config.wear.protect_at_percent,
            config.wear.protected_bytes_per_second as f64 * 1e-6,
            kind_of(sheet, "xpoint.wear.protect_at"),
        )),
        _ => None,
    };
    all.push(match (throttle, sheet.config.read_only_percent()) {
        (Some((at, rate, kind)), _) => WearCrossing {
            percent: at,
            day: day(at),
            then: format!(
                "writes are throttled to {} ({kind}){}",
                text::digits::megabytes_a_second(rate),
                match rate < mb_s {
                    true => format!(
                        ": the load's {} no longer fit",
                        text::digits::megabytes_a_second(mb_s)
                    ),
                    // A drive that already throttles stays below that rate, whatever was requested.
                    false if used >= at => String::new(),
                    false => String::from(", which this load stays below"),
                }
            ),
        },
        (None, Some(at)) => WearCrossing {
            percent: at,
            day: day(at),
            then: format!(
                "the drive becomes read-only ({}): writes fail",
                kind_of(sheet, "nand.wear.read_only_at")
            ),
        },
        (None, None) => WearCrossing {
            percent: 105.0,
            day: day(105.0),
            then: String::from("no change in the model; a real drive may become read-only"),
        },
    });
    all
}

/// Checks whether the figure's kind is assumed, without a published source.
pub fn is_assumed(kind: &str) -> bool {
    kind == FigureKind::Assumed.name()
}

/// Returns a drive at this rate of the host's writes, and of the medium's writes caused by them, in bytes per second.
#[cfg(test)]
pub(super) fn worn(drive: &str, host: f64, caused: f64) -> LifePart {
    let sheet = catalogue::drive(drive).expect("built in");
    let wear = Wear {
        host,
        caused: Some(caused),
    };
    part(drive, &sheet, 5.0, Some(&[wear]))
}

#[cfg(test)]
mod rated;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_written_at_its_rating_lasts_its_warranty() {
        let sheet = catalogue::drive("p4800x-375").expect("built in");
        let rated = sheet.endurance_bytes.expect("rated") as f64;
        let years = sheet.warranty_years.expect("known");
        let rate = rated / (years * DAYS * DAY);
        let part = worn("p4800x-375", rate, rate);
        let written = part.written.as_ref().expect("a load");
        let to_rating = written.years_to_rating.expect("rated");
        assert!((to_rating / years - 1.0).abs() < 1e-4, "{to_rating}");
        let dwpd = part
            .rating
            .as_ref()
            .and_then(|rating| rating.dwpd)
            .expect("rated");
        assert!((written.dwpd / dwpd - 1.0).abs() < 1e-4);
        // 3D XPoint counts bytes against the rating; above 105 %, 30 MB/s are left.
        let [full, throttled] = &part.passes[..] else {
            panic!("two")
        };
        assert!((full.day / (years * DAYS) - 1.0).abs() < 1e-4);
        assert!((throttled.day / full.day - 1.05).abs() < 1e-4);
        assert!(throttled.then.contains("30 MB/s") && throttled.then.contains("no longer fit"));
    }

    /// Ratings are rounded: `960` GB at 1 DWPD for 5 years is rated 1,752 TB, and the drive has 960.2 GB.
    #[test]
    fn a_drive_at_its_rating_lasts_the_term_and_one_a_percent_above_does_not() {
        let verdict = |factor: f64| {
            let sheet = catalogue::drive("pm9a3-960").expect("built in");
            let rate = factor * sheet.capacity as f64 / DAY;
            let mut answer = of_outcomes(&sheet, None, 5.0, None, None);
            answer.parts = vec![worn("pm9a3-960", rate, rate)];
            answer.lasts()
        };
        assert_eq!(verdict(1.0), Some(true));
        assert_eq!(verdict(1.003), Some(true));
        assert_eq!(verdict(1.01), Some(false));
        assert!(lasts(4.98, 5.0) && !lasts(4.97, 5.0));
    }

    #[test]
    fn write_amplification_shortens_what_cycles_last_and_not_the_rating() {
        let (few, many) = (worn("950pro-256", 1e6, 1e6), worn("950pro-256", 1e6, 4e6));
        let rating = |part: &LifePart| part.written.as_ref().and_then(|it| it.years_to_rating);
        assert_eq!(rating(&few), rating(&many));
        let ratio = few.passes[0].day / many.passes[0].day;
        assert!((ratio - 4.0).abs() < 1e-4, "{ratio}");
        let cycles = few.cycles.expect("NAND");
        assert_eq!(cycles.kind, "assumed");
    }

    #[test]
    fn what_is_not_rated_says_so() {
        let part = worn("exos-x18-16tb", 1e6, 1e6);
        assert_eq!(part.years(), None);
        assert!(part.passes.is_empty());
    }
}
