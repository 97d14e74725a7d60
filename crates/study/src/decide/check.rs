//! Checks a drive against an application's published minimum, with runs of the load that its makers name, with every
//! seed.
//!
//! A check is a file in `checks/`, a fio job whose first comments state the minimum and its source (`; key: value`),
//! and its line in [`CHECKS`]. If no minimum is published there is no verdict: the figures are shown with that note.
//! Assumptions on the load are stated in its `published`. `; endurance_tb: ` and `; power_loss_protection: required` are
//! properties that the drive must have besides, and `; unchecked: ` names a requirement that no catalogue file answers;
//! the first line of the answer names it. A property that is not known does not count as present. A drive protects data
//! against power loss if its file says so, or, without a statement, if its model has no volatile write cache. `aerospike` runs ACT ([`lab::act`]) and has no job.

use catalogue::DriveSheet;
use lab::act::{ActResult, ActTest, LIMITS};
use lab::{Lab, Machine, Outcome, ProgressCallback, Scenario, Work, in_parallel};
use model::Span;
use model::media::Medium;
use serde::Serialize;
use text::problem::{Problems, nearest};
use workload::act::{Config, Generation};

use super::pauses;
use super::slo::{Limit, Slo};
use super::tally::{Reading, Tally};
use super::work::{Conditions, Load};
use crate::review::results::rounded;

/// Name and file of each check.
const CHECKS: [(&str, &str); 6] = [
    ("etcd", include_str!("checks/etcd.fio")),
    ("postgres", include_str!("checks/postgres.fio")),
    ("kafka", include_str!("checks/kafka.fio")),
    ("zil", include_str!("checks/zil.fio")),
    ("vsan", include_str!("checks/vsan.fio")),
    ("aerospike", include_str!("checks/aerospike.fio")),
];

/// Returns the names of the checks.
pub fn names() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|(name, _)| *name)
}

/// Returns how to ask about software that has no check: in general, and a start for some that are often asked for. That they
/// write in this way is assumed, from memory; whether they publish a minimum was not looked for.
pub fn without_check(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let like = match name.as_str() {
        "postgresql" => Some("postgres"),
        _ => nearest(&name, names()),
    };
    if let Some(like) = like {
        return format!("did you mean `{like}`?");
    }
    let start = match name.as_str() {
        "redis" | "valkey" => {
            "as a start, with appendfsync always (assumed): `drivelab choose DRIVE... --load wal --rate RATE --slo LIMITS`; "
        }
        "mysql" | "mariadb" => {
            "as a start, for its log (assumed): `drivelab check postgres DRIVE...`; "
        }
        "zfs" | "slog" => {
            "for a log device: `drivelab choose slog none DRIVE... --main POOL --load nfs-sync`; "
        }
        _ => "",
    };
    format!(
        "{start}its I/O as a fio job and its limit as --slo: `drivelab choose DRIVE... --job FILE --slo 'p99<1ms'`"
    )
}

/// Returns the file with this name.
pub fn text(name: &str) -> Option<&'static str> {
    let found = CHECKS.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

/// Keys that a file may have.
#[cfg(test)]
const KEYS: [&str; 10] = [
    "software",
    "minimum",
    "published",
    "source",
    "figures",
    "act",
    "host",
    "endurance_tb",
    "power_loss_protection",
    "unchecked",
];

/// Work of a check.
#[derive(Clone, Debug)]
enum CheckWorkload {
    /// The file's job.
    Job(Load),
    /// ACT at this multiple of 1x.
    Act(f64),
}

/// A published minimum, and its source.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// Name on the command line.
    pub name: String,
    /// Name of the software.
    pub software: String,
    /// Published text.
    pub published: String,
    /// Source of the publication.
    pub source: String,
    /// Default host of the check.
    pub host: String,
    /// Published limits; empty if there are none.
    pub minimum: Slo,
    /// Minimum rated endurance over five years in 10^12 bytes; null if there is none.
    pub endurance_tb: Option<f64>,
    /// Whether the drive must protect acknowledged data against power loss.
    pub power_loss_protection: bool,
    /// Requirement that is not checked, if there is one.
    pub unchecked: Option<String>,
    /// Whether there is a verdict.
    pub is_judged: bool,
    /// The file: a fio job.
    pub job: String,
    #[serde(skip)]
    figures: Vec<Limit>,
    #[serde(skip)]
    run: CheckWorkload,
}

/// Results of a drive.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CheckAnswer {
    /// Name of the drive.
    pub drive: String,
    /// Support level of its model.
    pub model: &'static str,
    /// The supporting rows.
    pub model_text: String,
    /// Whether every seed meets the minimum; null if no minimum is published.
    pub passes: Option<bool>,
    /// Limits of the minimum, each with the worst value of all seeds.
    pub minimum: Vec<BySeed>,
    /// Other figures of the load.
    pub figures: Vec<BySeed>,
}

/// A figure with its range over seeds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BySeed {
    /// The figure of the seed with the smallest margin; without a limit, the figure of all seeds together.
    pub reading: Reading,
    /// The least and the greatest; null if some seed has too few I/Os.
    pub by_seed: Option<[f64; 2]>,
    /// Whether some seed meets the limit and another one misses it.
    pub depends_on_seed: bool,
}

impl Check {
    /// Returns the check with this name.
    ///
    /// # Errors
    /// No such check, or its file is invalid (a test ensures that none is).
    pub fn named(name: &str) -> Result<Check, Problems> {
        let Some(text) = text(name) else {
            let all = names().collect::<Vec<_>>().join(", ");
            let mut problems = Problems::whole(name, format!("no such check; there are {all}"));
            problems.0[0].help = Some(without_check(name));
            return Err(problems);
        };
        Check::read(name, text)
    }

    fn read(name: &str, text: &str) -> Result<Check, Problems> {
        let of = |key: &str| {
            let lines = text.lines().filter_map(|line| line.strip_prefix("; "));
            let mut values = lines.filter_map(|line| line.split_once(": "));
            values
                .find(|(known, _)| *known == key)
                .map(|(_, value)| value)
        };
        let wanted = |key: &str| {
            let missing = || Problems::whole(name, format!("the file has no line `; {key}: `"));
            of(key).map(str::to_owned).ok_or_else(missing)
        };
        let minimum = of("minimum")
            .map(Slo::read)
            .transpose()?
            .unwrap_or_default();
        let figures = of("figures").unwrap_or_default();
        let figures = figures.split(", ").filter(|one| !one.is_empty());
        let figures: Result<Vec<Limit>, Problems> = figures.map(Limit::figure_alone).collect();
        let endurance_tb = of("endurance_tb").map(str::parse::<f64>).transpose();
        let endurance_tb = endurance_tb.map_err(|_| {
            Problems::whole(name, "`; endurance_tb: ` must be followed by a number")
        })?;
        let run = match of("act").map(str::parse::<f64>) {
            Some(Ok(load)) => CheckWorkload::Act(load),
            Some(Err(_)) => {
                return Err(Problems::whole(
                    name,
                    "`; act: ` must be followed by a number",
                ));
            }
            None => CheckWorkload::Job(Load::of_text(name, text.to_owned())?),
        };
        Ok(Check {
            name: name.to_owned(),
            software: wanted("software")?,
            published: wanted("published")?,
            source: wanted("source")?,
            host: of("host").unwrap_or(catalogue::TYPICAL_HOST).to_owned(),
            endurance_tb,
            power_loss_protection: of("power_loss_protection") == Some("required"),
            unchecked: of("unchecked").map(str::to_owned),
            is_judged: !minimum.limits.is_empty() || matches!(run, CheckWorkload::Act(_)),
            minimum,
            job: text.to_owned(),
            figures: figures?,
            run,
        })
    }

    /// Runs the check on a drive with every seed; `go_on` is called with the completed share.
    ///
    /// # Errors
    /// The load does not fit the drive, or the host lacks a required property.
    pub fn answer(
        &self,
        drive: &DriveSheet,
        conditions: &Conditions,
        lab: &Lab,
        go_on: ProgressCallback<'_>,
    ) -> Result<CheckAnswer, Problems> {
        let mut writes = true;
        let (mut minimum, figures) = match &self.run {
            CheckWorkload::Job(load) => {
                let outcomes = load.run(drive, conditions, lab, go_on)?;
                writes = pauses::writes(&outcomes);
                let limits =
                    |limits: &[Limit]| limits.iter().map(|one| by_seed(one, &outcomes)).collect();
                (limits(&self.minimum.limits), limits(&self.figures))
            }
            CheckWorkload::Act(times) => (act(*times, drive, conditions, lab, go_on)?, Vec::new()),
        };
        minimum.extend(self.properties(drive));
        let passes = |all: &Vec<BySeed>| all.iter().all(|one| one.reading.met == Some(true));
        // Every check has a percentile, or a share of slow reads.
        let known = pauses::statement(drive, writes);
        Ok(CheckAnswer {
            drive: drive.id.clone(),
            model: known.grade.name(),
            model_text: known.text,
            passes: self.is_judged.then(|| passes(&minimum)),
            minimum,
            figures,
        })
    }

    /// Returns the properties that the drive must have, besides figures of the load. None depends on a seed.
    fn properties(&self, drive: &DriveSheet) -> Vec<BySeed> {
        let endurance = self.endurance_tb.map(|least| {
            let rated = drive
                .endurance_bytes
                .map(|bytes| rounded(bytes as f64 * 1e-12));
            plain_reading(
                format!("rated >= {least} TB"),
                "TB",
                rated,
                rated.map(|rated| rated >= least),
                rated.map(|rated| rounded(rated / least - 1.0)),
            )
        });
        let protection = self.power_loss_protection.then(|| {
            let stated = drive.power_loss_protection;
            let has = stated.unwrap_or(!drive.config.volatile_write_cache());
            let value = if has { 1.0 } else { 0.0 };
            plain_reading(
                String::from("power-loss protection"),
                "yes/no",
                Some(value),
                Some(has),
                None,
            )
        });
        let readings = endurance.into_iter().chain(protection);
        let alone = readings.map(|reading| BySeed {
            reading,
            by_seed: None,
            depends_on_seed: false,
        });
        alone.collect()
    }
}

/// Returns a limit's figure with every seed.
fn by_seed(limit: &Limit, outcomes: &[Outcome]) -> BySeed {
    let one = |outcome: &Outcome| Tally::from_runs(&[outcome]).reading(limit, None);
    let seeds: Vec<Reading> = outcomes.iter().map(one).collect();
    let all: Vec<&Outcome> = outcomes.iter().collect();
    let values: Option<Vec<f64>> = seeds.iter().map(|reading| reading.value).collect();
    let is_bounded = limit.bound.is_finite();
    // A limit with an unknown figure does not count as met.
    let unknown = seeds.iter().find(|reading| reading.met.is_none());
    let room = |reading: &&Reading| reading.room.unwrap_or(f64::NEG_INFINITY);
    let worst = unknown.or_else(|| seeds.iter().min_by(|a, b| room(a).total_cmp(&room(b))));
    let reading = match (is_bounded, worst) {
        (true, Some(worst)) => worst.clone(),
        // The figure has no limit.
        _ => Reading {
            met: None,
            room: None,
            ..Tally::from_runs(&all).reading(limit, None)
        },
    };
    BySeed {
        reading,
        by_seed: values.and_then(|values| ends(&values)),
        depends_on_seed: [true, false]
            .iter()
            .all(|met| seeds.iter().any(|seed| seed.met == Some(*met))),
    }
}

fn ends(values: &[f64]) -> Option<[f64; 2]> {
    let least = values.iter().copied().min_by(f64::total_cmp)?;
    let most = values.iter().copied().max_by(f64::total_cmp)?;
    Some([least, most])
}

/// Run time of ACT, and its uncounted part.
const ACT_SECONDS: Span = Span::from_ms(10_000);
const ACT_WARM_UP: Span = Span::from_ms(2_000);

fn act(
    times: f64,
    drive: &DriveSheet,
    conditions: &Conditions,
    lab: &Lab,
    go_on: ProgressCallback<'_>,
) -> Result<Vec<BySeed>, Problems> {
    let scenario = |seed| {
        let host = &conditions.host;
        let generation = Generation::version_6(host.config.cores);
        let test = ActTest {
            config: Config::load(times, generation, ACT_SECONDS),
            warm_up: ACT_WARM_UP,
            slice: ACT_SECONDS,
            latency_only: false,
        };
        let machine = Machine::new(drive, host);
        let work = Work::Act(test);
        let mut scenario = Scenario::new(machine, conditions.state, work, seed);
        scenario.warm_seed = Some(conditions.seed);
        scenario
    };
    let seeds = conditions.seed..conditions.seed + u64::from(conditions.seeds);
    let scenarios: Vec<Scenario> = seeds.map(scenario).collect();
    let tested = in_parallel(&scenarios, go_on, |one, _| lab::act::tested(lab, one));
    let all = tested.into_iter().collect::<Result<Vec<ActResult>, _>>()?;
    let share = |(power, limit): (usize, f64)| {
        let shares: Vec<f64> = all.iter().map(|one| rounded(one.worst()[power])).collect();
        let by_seed = ends(&shares);
        let most = by_seed.map(|[_, most]| most);
        BySeed {
            reading: plain_reading(
                format!("reads over {} ms < {limit} %", 1 << power),
                "%",
                most,
                most.map(|most| most < limit),
                most.map(|most| rounded(1.0 - most / limit)),
            ),
            by_seed,
            depends_on_seed: by_seed.is_some_and(|[least, most]| least < limit && most >= limit),
        }
    };
    let mut found: Vec<BySeed> = LIMITS.into_iter().map(share).collect();
    let passed = all.iter().filter(|one| one.passes()).count();
    found.push(BySeed {
        reading: plain_reading(
            format!("seeds that pass {times}x = {}", all.len()),
            "",
            Some(passed as f64),
            Some(passed == all.len()),
            None,
        ),
        by_seed: None,
        depends_on_seed: passed > 0 && passed < all.len(),
    });
    Ok(found)
}

fn plain_reading(
    limit: String,
    unit: &'static str,
    value: Option<f64>,
    met: Option<bool>,
    room: Option<f64>,
) -> Reading {
    Reading {
        limit,
        unit,
        value,
        interval: None,
        met,
        room,
        is_latency: false,
        is_exact: false,
        slowest: None,
        too_few: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_says_what_is_asked_and_by_whom() {
        for name in names() {
            let text = text(name).expect("it has a name");
            let check = Check::named(name).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
            for line in text.lines().filter_map(|line| line.strip_prefix("; ")) {
                if let Some((key, _)) = line.split_once(": ").filter(|(key, _)| !key.contains(' '))
                {
                    assert!(KEYS.contains(&key), "{name}: `{key}` means nothing");
                }
            }
            assert_eq!(
                check.is_judged,
                !check.published.starts_with("none"),
                "{name}"
            );
        }
    }

    /// The 990 PRO 2 TB is rated for 1,200 TB and has a volatile write cache.
    #[test]
    fn a_cache_tier_needs_endurance_and_power_loss_protection() {
        let check = Check::named("vsan").expect("built in");
        let met = |drive: &str| {
            let sheet = catalogue::drive(drive).expect("built in");
            let properties = check.properties(&sheet);
            properties
                .iter()
                .map(|one| one.reading.met)
                .collect::<Vec<_>>()
        };
        assert_eq!(met("990pro-2000"), [Some(false), Some(false)]);
        for drive in ["p4800x-375", "p5800x-400", "d7-p5600-1600"] {
            assert_eq!(met(drive), [Some(true), Some(true)], "{drive}");
        }
        assert!(check.unchecked.is_some());
    }

    #[test]
    fn a_file_without_a_source_is_refused() {
        let wrong = Check::read(
            "mine",
            "; software: mine\n; published: x\n[a]\nsize=1m\ndirect=1\n",
        );
        assert!(wrong.is_err_and(|wrong| wrong.to_string().contains("source")));
    }
}
