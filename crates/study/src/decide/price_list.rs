//! A price list in CSV, as a shop or a spreadsheet exports it.
//!
//! ```csv
//! drive,usd,usd_per_gb,date,source
//! p4800x-375,450,,2026-11,a shop
//! d7-p5510-3840,,0.12,,
//! power,0.30
//! place,2.50
//! ```
//!
//! The first line names the columns, in any order. A line has a price per drive or per 10^9 bytes; both only if they
//! agree within 1 %. The line `power` has USD per kilowatt-hour, `place` USD per month and drive. Lines that begin with
//! `#` and empty lines are ignored. `date`, `source` and `note` are for readers.

use std::collections::BTreeMap;

use catalogue::DriveSheet;
use csv::{ReaderBuilder, StringRecord, Trim};
use text::digits::significant;
use text::problem::{Place, Problem, Problems, nearest};

use super::prices::{Price, Prices, unknown_drive};

/// Columns of a price list.
const COLUMNS: [&str; 6] = ["drive", "usd", "usd_per_gb", "date", "source", "note"];

/// Share by which two prices of one line may differ.
const ROUNDING: f64 = 0.01;

/// A problem with a line: what is wrong, and what would be right.
type LineProblem = (String, String);

/// Returns the prices that the catalogue's sources give, with their dates and USD per gigabyte.
pub fn published() -> &'static str {
    include_str!("prices.csv")
}

/// Reads the prices in a file's text: a price list if the name of the file ends in `.csv`, otherwise TOML. `also` are
/// the user's own drives, besides those of the catalogue.
///
/// # Errors
/// All problems of the text.
pub fn read_prices(origin: &str, text: &str, also: &[&str]) -> Result<Prices, Problems> {
    let (prices, help) = match origin.to_ascii_lowercase().ends_with(".csv") {
        true => (
            read(origin, text, also)?,
            "add a line such as p4800x-375,450",
        ),
        false => (
            Prices::read(origin, text, also)?,
            "add a line such as p4800x-375 = \"450 USD\" below [drives]",
        ),
    };
    match prices.is_empty() {
        true => Err(Problems(vec![Problem {
            origin: origin.to_owned(),
            place: Place::Whole,
            what: String::from("there is no price of a drive"),
            help: Some(String::from(help)),
        }])),
        false => Ok(prices),
    }
}

/// A list that is being read.
struct PriceList<'a> {
    /// Column of each name of [`COLUMNS`].
    columns: [Option<usize>; COLUMNS.len()],
    /// The user's own drives.
    also: &'a [&'a str],
    prices: Prices,
    /// Line of each name.
    lines: BTreeMap<String, u64>,
}

/// Reads a price list; `also` are the user's own drives, besides those of the catalogue.
///
/// # Errors
/// All problems, each with its line.
fn read(origin: &str, text: &str, also: &[&str]) -> Result<Prices, Problems> {
    let mut problems = Vec::new();
    let mut note = |line: u64, (what, help): LineProblem| {
        problems.push(Problem {
            origin: origin.to_owned(),
            place: Place::Line(line as usize),
            what,
            help: Some(help),
        });
    };
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = ReaderBuilder::new()
        .comment(Some(b'#'))
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .from_reader(text.as_bytes());
    let mut list = None;
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let line = line_of(text, error.position());
                note(
                    line,
                    (error.to_string(), String::from("write CSV in UTF-8")),
                );
                continue;
            }
        };
        let line = line_of(text, record.position());
        let Some(list) = &mut list else {
            match header(&record) {
                Ok(columns) => {
                    list = Some(PriceList {
                        columns,
                        also,
                        prices: Prices::default(),
                        lines: BTreeMap::new(),
                    });
                }
                Err(wrong) => {
                    note(line, wrong);
                    break;
                }
            }
            continue;
        };
        if let Err(wrong) = list.line(line, &record) {
            note(line, wrong);
        }
    }
    if list.is_none() && problems.is_empty() {
        return Err(Problems(vec![Problem {
            origin: origin.to_owned(),
            place: Place::Whole,
            what: String::from("the price list is empty"),
            help: Some(String::from("the first line names the columns: drive,usd")),
        }]));
    }
    Problems(problems).or(list.map(|list| list.prices).unwrap_or_default())
}

/// Returns the line of a record. The CSV reader notes the position before it skips comments and empty lines; this
/// function counts them.
fn line_of(text: &str, position: Option<&csv::Position>) -> u64 {
    let Some(position) = position else {
        return 1;
    };
    let mut line = position.line();
    let mut rest = text.get(position.byte() as usize..).unwrap_or("");
    while let Some(first) = rest.chars().next() {
        let skipped = match first {
            '\n' | '\r' => 1,
            '#' => rest.find('\n').map_or(rest.len(), |end| end + 1),
            _ => break,
        };
        line += u64::from(rest[..skipped].ends_with('\n'));
        rest = &rest[skipped..];
    }
    line
}

/// Returns the place of each column.
fn header(record: &StringRecord) -> Result<[Option<usize>; COLUMNS.len()], LineProblem> {
    let mut columns = [None; COLUMNS.len()];
    for (place, name) in record.iter().enumerate() {
        let name = name.to_ascii_lowercase();
        let Some(column) = COLUMNS.iter().position(|known| *known == name) else {
            let help = match (name.contains(';'), nearest(&name, COLUMNS)) {
                (true, _) => String::from("separate columns by commas, not by semicolons"),
                (false, Some(near)) => format!("did you mean `{near}`?"),
                (false, None) => format!("the columns are {}", COLUMNS.join(", ")),
            };
            return Err((format!("unknown column `{name}`"), help));
        };
        if columns[column].replace(place).is_some() {
            let help = String::from("leave one of them out");
            return Err((format!("the column `{name}` occurs twice"), help));
        }
    }
    match columns {
        [Some(_), Some(_), ..] | [Some(_), None, Some(_), ..] => Ok(columns),
        [None, ..] => Err((
            String::from("there is no column `drive`"),
            String::from("the first line names the columns: drive,usd"),
        )),
        _ => Err((
            String::from("there is no column with prices"),
            String::from("add `usd` (per drive) or `usd_per_gb`"),
        )),
    }
}

impl PriceList<'_> {
    /// Reads a line with a price.
    fn line(&mut self, line: u64, record: &StringRecord) -> Result<(), LineProblem> {
        let cell = |column: usize| -> &str {
            let place = self.columns[column];
            place.and_then(|place| record.get(place)).unwrap_or("")
        };
        let widest = self.columns.iter().flatten().max();
        if widest.is_some_and(|widest| record.len() > widest + 1) {
            let what = format!("{} cells in a line", record.len());
            let help =
                String::from("as many as the first line has; put \" around a cell with a comma");
            return Err((what, help));
        }
        let name = cell(0).to_owned();
        let usd = amount(COLUMNS[1], cell(1))?;
        let per_gb = amount(COLUMNS[2], cell(2))?;
        let price = match (usd, per_gb) {
            (None, None) => {
                let help =
                    String::from("write a number in `usd` or `usd_per_gb`, or leave the line out");
                return Err((format!("`{name}` has no price"), help));
            }
            (None, Some(usd)) => Price::Gigabyte(usd),
            (Some(usd), _) => Price::Drive(usd),
        };
        if let Some(first) = self.lines.insert(name.clone(), line) {
            let help = format!("the first one is in line {first}: leave one of them out");
            return Err((format!("a second price of `{name}`"), help));
        }
        match (&*name, usd) {
            ("power" | "place", None) => {
                let help = String::from(
                    "write it in `usd`: the price of a kilowatt-hour (power), or of a slot per month (place)",
                );
                return Err((format!("`{name}` has no price in `usd`"), help));
            }
            ("power", usd) => self.prices.kwh = usd,
            ("place", usd) => self.prices.place = usd,
            _ => {
                if let Some(help) = unknown_drive(&name, self.also) {
                    return Err((format!("there is no drive `{name}`"), help));
                }
                if let (Some(usd), Some(per_gb)) = (usd, per_gb) {
                    agree(&name, usd, per_gb)?;
                }
                self.prices.add(name, price);
            }
        }
        Ok(())
    }
}

/// Reads a cell with an amount of money; `None` if it is empty.
fn amount(column: &str, text: &str) -> Result<Option<f64>, LineProblem> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse::<f64>() {
        Ok(amount) if amount >= 0.0 && amount.is_finite() => Ok(Some(amount)),
        _ => Err((
            format!("`{column}` is not a price: `{text}`"),
            String::from(
                "write a number without a currency or thousands separators, such as 1520 or 0.12",
            ),
        )),
    }
}

/// Checks that both prices of a drive of the catalogue agree.
fn agree(name: &str, usd: f64, per_gb: f64) -> Result<(), LineProblem> {
    let own = catalogue::drive(name).ok();
    let Some(derived) = own.map(|sheet: DriveSheet| usd / (sheet.capacity as f64 * 1e-9)) else {
        return Ok(());
    };
    // Written with two decimals, small prices are rounded by more.
    if (derived - per_gb).abs() <= (derived * ROUNDING).max(0.006) {
        return Ok(());
    }
    Err((
        format!(
            "`{name}`: the two prices disagree: {usd} USD are {} USD/GB",
            significant(derived, 3)
        ),
        String::from("leave one of them out"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(prices: &Prices, name: &str) -> Option<f64> {
        prices.price(&catalogue::drive(name).expect("built in"))
    }

    #[test]
    fn columns_are_named_and_in_any_order() {
        let text = "\u{feff}Source,USD_per_GB,Drive,usd\n\
                    \"a shop, online\",,p4800x-375,450.5\n\n# a comment\n\
                    ,0.10,d7-p5510-3840,\n,,power,0.30\n,,place,2\nmine,,my-drive,7\n";
        let prices = read("p.csv", text, &["my-drive"]).expect("it is right");
        assert_eq!(price(&prices, "p4800x-375"), Some(450.5));
        let gigabytes = price(&prices, "d7-p5510-3840").expect("a price");
        assert!((gigabytes - 384.0).abs() < 0.1, "{gigabytes}");
        assert_eq!((prices.kwh, prices.place), (Some(0.3), Some(2.0)));
        assert_eq!(price(&prices, "950pro-256"), None);
    }

    /// The list has the same prices and dates as the catalogue, and USD per gigabyte agree with them.
    #[test]
    fn the_published_list_is_read_and_agrees_with_the_catalogue() {
        let prices = read("prices.csv", published(), &[]).expect("it is right");
        for name in catalogue::drive_names() {
            let sheet = catalogue::drive(name).expect("built in");
            assert_eq!(prices.price(&sheet), sheet.price_usd, "{name}");
            let (Some(_), Some(date)) = (sheet.price_usd, &sheet.price_date) else {
                continue;
            };
            let line = published()
                .lines()
                .find(|line| line.starts_with(&format!("{name},")));
            assert_eq!(
                line.and_then(|line| line.split(',').nth(3)),
                Some(&**date),
                "{name}"
            );
        }
        // Further prices are right as well, one by one.
        let lines = published()
            .lines()
            .filter_map(|line| line.strip_prefix("# p"));
        let mut further = 0;
        for line in lines.filter(|line| line.contains(",S2-")) {
            let text = format!("{}\np{line}\n", COLUMNS.join(","));
            read("prices.csv", &text, &[]).expect(line);
            further += 1;
        }
        assert_eq!(further, 6);
    }

    /// Comments and empty lines count as lines, with either line ending.
    #[test]
    fn problems_have_their_line_below_comments_and_empty_lines() {
        for (text, line) in [
            (
                "drive,usd\n# one\n# two\n\np4801x-100,109\n# three\n950pro-256,cheap\n",
                7,
            ),
            ("# c\n# d\n\ndrive;usd\n", 4),
            (
                "drive,usd,note\np4801x-100,109,\"two\nlines\"\n\n# c\n950pro-256,cheap\n",
                6,
            ),
        ] {
            for text in [text.to_owned(), text.replace('\n', "\r\n")] {
                let problems = read("l.csv", &text, &[]).expect_err("a line is wrong");
                assert_eq!(problems.0.len(), 1, "{text}");
                assert_eq!(problems.0[0].place, Place::Line(line), "{text}");
            }
        }
    }

    #[test]
    fn everything_wrong_is_told_at_once() {
        let text = "drive,usd,usd_per_gb\np4800x-376,450\np4800x-375,$450\np4800x-375,1,520\n950pro-256,170,5\n\
                    600p-256,,\n960evo-250,-1\n960evo-250,1,2,3\npower,,1\n960pro-512,1\n960pro-512,2\n";
        let told = |text| {
            let told = read("p.csv", text, &[]).expect_err("all of it is wrong");
            told.render(false)
        };
        let said = told(text);
        for part in [
            "p.csv:2",
            "did you mean `p4800x-375`?",
            "p.csv:3",
            "`usd` is not a price: `$450`",
            "such as 1520 or 0.12",
            "p.csv:5",
            "170 USD are 0.664 USD/GB",
            "`600p-256` has no price",
            "`usd` is not a price: `-1`",
            "4 cells in a line",
            "`power` has no price in `usd`",
            "a second price of `960pro-512`",
            "the first one is in line 10",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        for (text, part) in [
            ("", "the price list is empty"),
            ("drive;usd\np4800x-375;450\n", "not by semicolons"),
            ("drive,prize\n", "unknown column `prize`"),
            ("usd\n5\n", "no column `drive`"),
            ("drive,date\n", "no column with prices"),
            ("drive,usd,usd\n", "occurs twice"),
        ] {
            let said = told(text);
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
