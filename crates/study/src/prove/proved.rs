//! Records of tested pool shapes: results of `drivelab prove --record`, stored in `proved.toml`.
//!
//! Each record has a shape ([`super::shape()`]), the tested pool, the extent of the test, the program version, and the
//! faults that violate the guarantee, if any. Callers that serve a pool look up its shape. A shape without a record
//! has not been tested.

use tier::{DriveConfig, PoolConfig};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};

use super::world::TestPool;
use super::{FaultVerdict, ProveSettings, Report, shape};

/// The records of this version.
pub const TEXT: &str = include_str!("proved.toml");

/// Record of a shape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProofRecord {
    /// The shape, as [`super::shape()`] returns it.
    pub shape: String,
    /// The tested pool, as an expression.
    pub pool: String,
    /// Number of tested points, over all faults.
    pub points: u64,
    /// Minimum number of points of each fault.
    pub each: u64,
    /// Seed of the first program.
    pub seed: u64,
    /// Version of drivelab that ran the test.
    pub version: String,
    /// A line for each fault under which the guarantee does not hold; empty if it holds.
    pub broken: Vec<String>,
}

impl ProofRecord {
    /// Returns the record of a report on a pool.
    pub fn new(
        pool: &str,
        config: &PoolConfig<DriveConfig>,
        settings: &ProveSettings,
        report: &Report,
    ) -> ProofRecord {
        let bad = report.rows.iter().filter_map(|row| match row.verdict {
            FaultVerdict::Broken => Some(format!("{}: the guarantee does not hold", row.fault)),
            FaultVerdict::NoLossFound => Some(format!("{}: the guarantee is too weak", row.fault)),
            _ => None,
        });
        ProofRecord {
            shape: shape(config),
            pool: pool.to_owned(),
            points: report.rows.iter().map(|row| row.tally.points).sum(),
            each: settings.points,
            seed: settings.seed,
            version: version::VERSION.to_owned(),
            broken: bad.collect(),
        }
    }

    /// Checks whether the guarantee held at every point.
    pub fn holds(&self) -> bool {
        self.broken.is_empty()
    }
}

/// Returns the record for the shape of a pool.
pub fn proved(config: &PoolConfig<DriveConfig>) -> Option<ProofRecord> {
    let shape = shape(config);
    // A test parses the built-in text.
    let records = records(TEXT).unwrap_or_default();
    records.into_iter().find(|record| record.shape == shape)
}

/// Returns a statement on the durability guarantee of a pool; `pool` is the expression that names it in the command.
pub fn statement(pool: &str, config: &PoolConfig<DriveConfig>) -> String {
    let known = proved(config);
    if known.is_none()
        && let Err(why) = TestPool::new(config)
    {
        return format!("not proved: it cannot be tried: {why}");
    }
    words(pool, known.as_ref())
}

/// Returns a record as text, with the command that tests the pool.
fn words(pool: &str, known: Option<&ProofRecord>) -> String {
    let command = format!("`drivelab prove '{pool}'`");
    match known {
        None => format!("not proved: no record of a pool of this shape; {command} tries it"),
        Some(known) if known.holds() => format!(
            "proved: its guarantee held at {} points, by version {}; {command} tries it again",
            known.points, known.version,
        ),
        Some(known) => format!(
            "KNOWN NOT TO HOLD, by version {}: {}; {command} shows it",
            known.version,
            known.broken.join("; "),
        ),
    }
}

/// Parses records.
///
/// # Errors
/// The record and its missing key, or that the text is not TOML.
pub fn records(text: &str) -> Result<Vec<ProofRecord>, String> {
    let document: DocumentMut = text.parse().map_err(|why| format!("not TOML: {why}"))?;
    let Some(tables) = document.get("proved") else {
        return Ok(Vec::new());
    };
    let tables = tables.as_array_of_tables();
    let tables = tables.ok_or("`proved` must be an array of tables, `[[proved]]`")?;
    tables.iter().enumerate().map(record).collect()
}

fn record((index, table): (usize, &Table)) -> Result<ProofRecord, String> {
    let missing = |key: &str, kind: &str| format!("record {}: `{key}` must be {kind}", index + 1);
    let text = |key: &str| {
        let text = table.get(key).and_then(Item::as_str);
        text.map(str::to_owned).ok_or_else(|| missing(key, "text"))
    };
    let number = |key: &str| {
        let number = table.get(key).and_then(Item::as_integer);
        let number = number.and_then(|it| u64::try_from(it).ok());
        number.ok_or_else(|| missing(key, "a whole number, 0 or more"))
    };
    let broken = table.get("broken").and_then(Item::as_array);
    let broken = broken.ok_or_else(|| missing("broken", "an array of texts"))?;
    let broken = broken.iter().map(|it| it.as_str().map(str::to_owned));
    Ok(ProofRecord {
        shape: text("shape")?,
        pool: text("pool")?,
        points: number("points")?,
        each: number("each")?,
        seed: number("seed")?,
        version: text("version")?,
        broken: broken
            .collect::<Option<_>>()
            .ok_or_else(|| missing("broken", "an array of texts"))?,
    })
}

/// Inserts a record: replaces the one with the same shape, or appends it.
pub fn enter(records: &mut Vec<ProofRecord>, record: ProofRecord) {
    match records.iter_mut().find(|it| it.shape == record.shape) {
        Some(old) => *old = record,
        None => records.push(record),
    }
}

/// Returns records as TOML.
pub fn write(records: &[ProofRecord]) -> String {
    let mut tables = ArrayOfTables::new();
    for record in records {
        let mut table = Table::new();
        let number = |it: u64| value(it as i64);
        table["shape"] = value(&record.shape);
        table["pool"] = value(&record.pool);
        table["points"] = number(record.points);
        table["each"] = number(record.each);
        table["seed"] = number(record.seed);
        table["version"] = value(&record.version);
        table["broken"] = value(record.broken.iter().collect::<Array>());
        tables.push(table);
    }
    let mut document = DocumentMut::new();
    document["proved"] = Item::ArrayOfTables(tables);
    format!("{HEAD}\n{document}")
}

const HEAD: &str = "# Written by `drivelab prove POOL --record FILE`; read by `serve` and tests. Do not edit by hand.
# `points`: power cuts tried, over all faults; `each`: minimum per fault; `broken`: faults under which the guarantee is violated.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn record(shape: &str, broken: &[&str]) -> ProofRecord {
        ProofRecord {
            shape: shape.into(),
            pool: "mirror(2*a)".into(),
            points: 7,
            each: 2,
            seed: 1,
            version: "0.1.0".into(),
            broken: broken.iter().map(|&it| it.into()).collect(),
        }
    }

    #[test]
    fn records_are_read_as_they_were_written_and_a_newer_one_replaces_an_older() {
        let mut all = vec![record("one", &[]), record("two", &["a dies: \"x\""])];
        assert_eq!(records(&write(&all)), Ok(all.clone()));
        enter(&mut all, record("two", &[]));
        enter(&mut all, record("three", &[]));
        let shapes: Vec<&str> = all.iter().map(|it| &*it.shape).collect();
        assert_eq!(shapes, ["one", "two", "three"]);
        assert!(all[1].holds());
    }

    #[test]
    fn it_is_said_what_is_known_and_how_to_find_out() {
        let line = words("m(2*a)", None);
        assert!(line.contains("not proved") && line.contains("`drivelab prove 'm(2*a)'`"));
        let line = words("m(2*a)", Some(&record("m(2*a)", &[])));
        assert!(
            line.contains("held at 7 points, by version 0.1.0"),
            "{line}"
        );
        let bad = record("m(2*a)", &["a dies: the guarantee does not hold"]);
        let line = words("m(2*a)", Some(&bad));
        assert!(line.contains("KNOWN NOT TO HOLD, by version 0.1.0: a dies"));
    }

    #[test]
    fn a_record_without_a_key_is_refused_with_its_number_and_the_key() {
        let text = write(&[record("one", &[])]).replace("seed = 1", "seed = -1");
        let why = records(&text).expect_err("it has no seed");
        assert_eq!(why, "record 1: `seed` must be a whole number, 0 or more");
        assert!(records(TEXT).is_ok());
    }
}
