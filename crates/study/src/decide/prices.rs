//! Prices given by the user: `prices.toml`. No price is invented: a drive without a price in this file has no cost in
//! an answer.
//!
//! ```toml
//! power = "0.30 USD/kWh"            # what a kilowatt-hour costs, cooling included; optional
//! place = "2.50 USD/month"          # what a drive's share of rack and server costs; optional
//!
//! [drives]
//! p4800x-375 = "450 USD"            # a drive
//! d7-p5510-3840 = "0.12 USD/GB"     # or a decimal gigabyte of one
//! ```
//!
//! A file whose name ends in `.csv` is a price list instead (`price_list.rs`).
//!
//! A pool costs as much as its members. Labour is not included. [`example`] is such a file with the prices that the
//! catalogue's sources give, each with its date; they are historical and not offers of any shop.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalogue::DriveSheet;
use text::problem::{Problems, nearest};
use text::toml::{Cursor, Page, SourceFile, parse};

/// Prices of drives and power.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Prices {
    /// USD per kilowatt-hour.
    pub kwh: Option<f64>,
    /// USD per month for the place of one drive: its share of rack and server.
    pub place: Option<f64>,
    drives: BTreeMap<String, Price>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Price {
    /// USD per drive.
    Drive(f64),
    /// USD per 10^9 bytes.
    Gigabyte(f64),
}

/// Hours per year.
const HOURS: f64 = 365.0 * 24.0;
/// Months per year.
const MONTHS: f64 = 12.0;

/// Returns an example file with the prices that sources of the catalogue give.
pub fn example() -> String {
    let mut text = String::from(
        "# An example: prices as the sources of the catalogue give them, each of its day. Yours go here.\n\
         # power = \"0.30 USD/kWh\"     a kilowatt-hour, cooling included\n\
         # place = \"2.50 USD/month\"   a drive's share of rack and server\n\n[drives]\n",
    );
    for name in catalogue::drive_names() {
        let Ok(sheet) = catalogue::drive(name) else {
            continue;
        };
        if let Some(price) = sheet.price_usd {
            let date = sheet.price_date.as_deref().unwrap_or("no date");
            let per_gb = sheet
                .usd_per_gb()
                .map_or(String::new(), |usd| format!(", {usd:.2} USD/GB"));
            text += &format!("{name} = \"{price} USD\"  # {date}{per_gb}\n");
        }
    }
    text
}

impl Prices {
    /// Checks whether no drive has a price.
    pub(super) fn is_empty(&self) -> bool {
        self.drives.is_empty()
    }

    /// Reads the prices in a TOML file's text; `also` are the user's own drives, besides those of the catalogue.
    ///
    /// # Errors
    /// All problems of the text.
    pub fn read(origin: &str, text: &str, also: &[&str]) -> Result<Prices, Problems> {
        let file = SourceFile {
            origin: origin.to_owned(),
            text: Arc::from(text),
        };
        let document = parse(&file)?;
        let page = Page::new(&file);
        let mut prices = Prices::default();
        {
            let mut root = Cursor::new(&page, "prices", document.as_table(), None);
            if let Some(written) = root.maybe_text("power") {
                prices.kwh = number(&written, "USD/kWh");
                if prices.kwh.is_none() {
                    root.add_problem(
                        "power",
                        format!("`{written}` is not a price of power"),
                        "write it as \"0.30 USD/kWh\"",
                    );
                }
            }
            if let Some(written) = root.maybe_text("place") {
                prices.place = number(&written, "USD/month");
                if prices.place.is_none() {
                    root.add_problem(
                        "place",
                        format!("`{written}` is not a price of a drive slot"),
                        "write the price per drive as \"2.50 USD/month\"",
                    );
                }
            }
            for (name, value) in root.pairs("drives") {
                if let Some(help) = unknown_drive(&name, also) {
                    page.add_problem(
                        value.span(),
                        format!("drives: there is no drive `{name}`"),
                        help,
                    );
                }
                let written = value.as_str().unwrap_or_default();
                let price = number(written, "USD").map(Price::Drive);
                match price.or_else(|| number(written, "USD/GB").map(Price::Gigabyte)) {
                    Some(price) => {
                        prices.drives.insert(name, price);
                    }
                    None => page.add_problem(
                        value.span(),
                        format!("drives.{name}: no price"),
                        "write it as \"450 USD\" for a drive, \"0.12 USD/GB\", or \"0 USD\" for one that you have",
                    ),
                }
            }
        }
        Problems(page.problems.into_inner()).or(prices)
    }

    /// Adds the price of a drive.
    pub(super) fn add(&mut self, name: String, price: Price) {
        self.drives.insert(name, price);
    }

    /// Returns the price of a drive, or of all members of a pool; `None` if a price is missing.
    pub fn price(&self, drive: &DriveSheet) -> Option<f64> {
        if drive.pool.is_some() {
            return drive
                .named_members()
                .into_iter()
                .map(|(_, member)| self.price(member))
                .sum();
        }
        Some(match self.drives.get(&drive.id)? {
            Price::Drive(usd) => *usd,
            Price::Gigabyte(usd) => usd * drive.capacity as f64 * 1e-9,
        })
    }

    /// Returns the cost of this power over this number of years.
    pub fn of_power(&self, watts: f64, years: f64) -> Option<f64> {
        Some(self.kwh? * watts * 1e-3 * HOURS * years)
    }
}

impl Prices {
    /// Returns the cost of power and of the places of a drive, or of all members of a pool, over this number of years.
    /// Items without a price cost nothing; `None` if power has a price and the watts are unknown.
    pub fn of_keeping(&self, drive: &DriveSheet, watts: Option<f64>, years: f64) -> Option<f64> {
        let drives = match drive.pool {
            Some(_) => drive.named_members().len(),
            None => 1,
        };
        let place = self.place.unwrap_or(0.0) * drives as f64 * MONTHS * years;
        match self.kwh {
            Some(_) => Some(place + self.of_power(watts?, years)?),
            None => Some(place),
        }
    }
}

/// Returns help on a drive that is neither in the catalogue nor one of the user's own; `None` for a known one.
pub(super) fn unknown_drive(name: &str, also: &[&str]) -> Option<String> {
    let known = catalogue::drive_names();
    if known.contains(&name) || also.contains(&name) {
        return None;
    }
    let near = nearest(name, known.iter().copied());
    Some(near.map_or_else(
        || String::from("`drivelab drives` lists the drives"),
        |near| format!("did you mean `{near}`?"),
    ))
}

/// Returns the number before this unit; zero for an item without further cost, such as a drive that the user already
/// has.
fn number(written: &str, unit: &str) -> Option<f64> {
    let number = written.trim().strip_suffix(unit)?.trim_end();
    let number: f64 = number.parse().ok()?;
    (number >= 0.0 && number.is_finite()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_and_pools_cost_what_the_file_says() {
        let text = "power = \"0.30 USD/kWh\"\n[drives]\np4801x-100 = \"109 USD\"\nd7-p5510-3840 = \"0.10 USD/GB\"\n";
        let prices = Prices::read("prices.toml", text, &[]).expect("it is right");
        let of = |name: &str| prices.price(&catalogue::drive(name).expect("built in"));
        assert_eq!(of("mirror(2*p4801x-100)"), Some(218.0));
        let gigabytes = of("d7-p5510-3840").expect("a price");
        assert!((gigabytes - 384.0).abs() < 0.1, "{gigabytes}");
        assert_eq!(of("p4800x-375"), None);
        assert_eq!(of("stripe(p4801x-100,p4800x-375)"), None);
        // 10 W for 5 years is 438 kWh.
        let power = prices.of_power(10.0, 5.0).expect("a price of power");
        assert!((power - 131.4).abs() < 1e-9, "{power}");
        let alone = prices.of_keeping(
            &catalogue::drive("p4801x-100").expect("built in"),
            None,
            5.0,
        );
        assert_eq!(alone, None);
    }

    #[test]
    fn a_place_costs_each_month_for_each_drive() {
        let text = "place = \"2 USD/month\"\n[drives]\np4801x-100 = \"109 USD\"\n";
        let prices = Prices::read("prices.toml", text, &[]).expect("it is right");
        let mirror = catalogue::drive("mirror(2*p4801x-100)").expect("built in");
        assert_eq!(prices.of_keeping(&mirror, None, 5.0), Some(240.0));
    }

    #[test]
    fn the_example_is_read_and_has_the_prices_of_the_sources() {
        let text = example();
        let prices = Prices::read("prices.toml", &text, &[]).expect("it is right");
        let sheet = catalogue::drive("p4800x-375").expect("built in");
        assert_eq!(prices.price(&sheet), sheet.price_usd);
        assert!(sheet.price_usd.is_some());
        assert_eq!((prices.kwh, prices.place), (None, None));
    }

    #[test]
    fn everything_wrong_is_told_at_once() {
        let text = "pwer = \"1 USD/kWh\"\npower = \"0.3\"\nplace = \"a shelf\"\n[drives]\np4800x-376 = \"1 USD\"\np4800x-375 = 450\n600p-256 = \"-1 USD\"\n";
        let problems = Prices::read("prices.toml", text, &[]).expect_err("all of it is wrong");
        insta::assert_snapshot!(problems.render(false));
    }
}
