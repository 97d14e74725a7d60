//! S3's Table 1, the bytes that may be written per day for five years, by its own arithmetic and corrected.

use serde::Serialize;
use text::problem::Problems;

use super::life::{DAY, DAYS};
use crate::review::results::rounded;

/// A row of S3's Table 1: the printed value, the value by its own units, and the correct value.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TableRow {
    /// Id of the ledger's row.
    pub id: String,
    /// Subject of the row.
    pub what: String,
    /// Printed value.
    pub printed: f64,
    /// Value by the table's own arithmetic: a TB of 1000 GB of 1024 MB.
    pub own: f64,
    /// Value in decimal units.
    pub right: f64,
    /// Unit of the values.
    pub unit: &'static str,
    /// Error in the printed value; empty if there is none.
    pub slip: String,
}

/// Subject of S3's Table 1: writes that last five years, and mixed I/O of a mirror.
struct S3TableInputs {
    years: f64,
    /// Bytes of an I/O, in KiB.
    io_kib: f64,
    writes: f64,
    copies: f64,
}

const TABLE: S3TableInputs = S3TableInputs {
    years: 5.0,
    io_kib: 32.0,
    writes: 0.3,
    copies: 2.0,
};

/// Recomputes S3's Table 1 (rows S3-048, S3-049, S3-052, S3-053 of the ledger) from the drives' ratings.
///
/// # Errors
/// The ledger or the catalogue lacks an input: a defect.
pub fn table_of_s3() -> Result<Vec<TableRow>, Problems> {
    let ledger = crate::ledger::built_in()?;
    let printed = |id: &str| {
        let mut rows = ledger.iter().flat_map(|file| &file.rows);
        match rows.find(|row| row.id == id).map(|row| &row.published) {
            Some(crate::ledger::PublishedValue::Number(number)) => Ok(*number),
            _ => Err(Problems::defect("ledger", format!("{id} is not a number"))),
        }
    };
    let mut rows = Vec::new();
    let drives = [
        ("d7-p5600-1600", "S3-048", "S3-049"),
        ("p5800x-800", "S3-052", "S3-053"),
    ];
    // The second drive's I/Os were printed as scaled from the first one's.
    let mut first: Option<(f64, f64)> = None;
    for (drive, rate_id, io_id) in drives {
        let sheet = catalogue::drive(drive)?;
        let Some(bytes) = sheet.endurance_bytes else {
            return Err(Problems::defect(drive, "has no rating"));
        };
        let seconds = TABLE.years * DAYS * DAY;
        let right = bytes as f64 / seconds * 1e-6;
        let own = bytes as f64 * 1e-12 * 1000.0 * 1024.0 / seconds;
        let (rate, ios) = (printed(rate_id)?, printed(io_id)?);
        rows.push(TableRow {
            id: rate_id.into(),
            what: format!("{drive}: writes for five years"),
            printed: rate,
            own: rounded(own),
            right: rounded(right),
            unit: "MB/s",
            slip: format!(
                "a TB of 1000 GB but a GB of 1024 MB: {:.1} % too much",
                (own / right - 1.0) * 100.0
            ),
        });
        let io = |mb_s: f64, per_mb: f64| mb_s * per_mb / TABLE.copies / TABLE.writes;
        let own_ios = io(own, 1024.0 / TABLE.io_kib);
        let scaled = first.map(|(rate0, ios0)| ios0 * rate / rate0);
        let scaled = scaled.filter(|scaled| libm::floor(*scaled) == ios);
        rows.push(TableRow {
            id: io_id.into(),
            what: format!("{drive}: 70/30 of 32 KiB for five years, mirrored"),
            printed: ios,
            own: rounded(own_ios),
            right: rounded(io(right, 1e6 / (TABLE.io_kib * 1024.0))),
            unit: "IOPS",
            slip: match scaled {
                Some(scaled) => format!(
                    "not computed from its own {rate} MB/s but scaled from the other drive's rounded figures: {scaled:.1}"
                ),
                None => format!(
                    "the same units, and from its own rounded {rate} MB/s: {:.1}, then rounded",
                    io(rate, 1024.0 / TABLE.io_kib)
                ),
            },
        });
        first = Some((rate, ios));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_1_comes_out_as_printed_and_as_it_should_be() {
        let rows = table_of_s3().expect("the ledger is built in");
        let of = |id: &str| rows.iter().find(|row| row.id == id).expect("a row");
        let near = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 1e-4;
        let nand = of("S3-048");
        assert!(
            near(nand.own, 55.8498) && near(nand.right, 54.5408),
            "{nand:?}"
        );
        assert_eq!(nand.printed, libm::round(nand.own));
        let optane = of("S3-052");
        assert!(
            near(optane.own, 948.148) && near(optane.right, 925.926),
            "{optane:?}"
        );
        assert!(near(of("S3-049").right, 2774.1), "{:?}", of("S3-049"));
        assert!(near(of("S3-053").right, 47_095.2), "{:?}", of("S3-053"));
        assert!(of("S3-053").slip.contains("50785.7"), "{:?}", of("S3-053"));
    }
}
