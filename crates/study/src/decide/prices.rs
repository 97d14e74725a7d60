//! Prices of a user's own: `prices.toml`. None is invented: a drive without a price there has no cost in an answer.
//!
//! ```toml
//! power = "0.30 USD/kWh"            # what a kilowatt-hour costs, cooling included; optional
//!
//! [drives]
//! p4800x-375 = "450 USD"            # a drive
//! d7-p5510-3840 = "0.12 USD/GB"     # or a decimal gigabyte of one
//! ```
//!
//! A pool costs what its members do. What racks, servers and hands cost is not in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalogue::DriveSheet;
use text::problem::{Problems, nearest};
use text::toml::{Cursor, Page, SourceFile, parse};

/// What drives and power cost.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Prices {
    /// USD for a kilowatt-hour.
    pub kwh: Option<f64>,
    drives: BTreeMap<String, Price>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Price {
    /// USD for a drive.
    Drive(f64),
    /// USD for 10^9 bytes.
    Gigabyte(f64),
}

/// Hours in a year.
const HOURS: f64 = 365.0 * 24.0;

impl Prices {
    /// The prices in a file's text; `also` are drives of the user's own, besides those of the catalogue.
    ///
    /// # Errors
    /// Everything wrong with it.
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
                    root.wrong(
                        "power",
                        format!("`{written}` is no price of power"),
                        "write it as \"0.30 USD/kWh\"",
                    );
                }
            }
            let known = catalogue::drive_names();
            for (name, value) in root.pairs("drives") {
                if !known.contains(&&*name) && !also.contains(&&*name) {
                    let near = nearest(&name, known.iter().copied());
                    let help = near.map_or_else(
                        || String::from("`drivelab drives` lists the drives"),
                        |near| format!("did you mean `{near}`?"),
                    );
                    page.wrong(
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
                    None => page.wrong(
                        value.span(),
                        format!("drives.{name}: no price"),
                        "write it as \"450 USD\" for a drive or \"0.12 USD/GB\"",
                    ),
                }
            }
        }
        Problems(page.problems.into_inner()).or(prices)
    }

    /// What a drive, or all members of a pool, cost; `None` if a price is missing.
    pub fn of(&self, drive: &DriveSheet) -> Option<f64> {
        if drive.pool.is_some() {
            return drive
                .named_members()
                .into_iter()
                .map(|(_, member)| self.of(member))
                .sum();
        }
        Some(match self.drives.get(&drive.id)? {
            Price::Drive(usd) => *usd,
            Price::Gigabyte(usd) => usd * drive.capacity as f64 * 1e-9,
        })
    }

    /// What so many watts cost over so many years.
    pub fn of_power(&self, watts: f64, years: f64) -> Option<f64> {
        Some(self.kwh? * watts * 1e-3 * HOURS * years)
    }
}

/// The number before this unit, above zero.
fn number(written: &str, unit: &str) -> Option<f64> {
    let number = written.trim().strip_suffix(unit)?.trim_end();
    let number: f64 = number.parse().ok()?;
    (number > 0.0 && number.is_finite()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_and_pools_cost_what_the_file_says() {
        let text = "power = \"0.30 USD/kWh\"\n[drives]\np4801x-100 = \"109 USD\"\nd7-p5510-3840 = \"0.10 USD/GB\"\n";
        let prices = Prices::read("prices.toml", text, &[]).expect("it is right");
        let of = |name: &str| prices.of(&catalogue::drive(name).expect("built in"));
        assert_eq!(of("mirror(2*p4801x-100)"), Some(218.0));
        let gigabytes = of("d7-p5510-3840").expect("a price");
        assert!((gigabytes - 384.0).abs() < 0.1, "{gigabytes}");
        assert_eq!(of("p4800x-375"), None);
        assert_eq!(of("stripe(p4801x-100,p4800x-375)"), None);
        // 10 W for 5 years are 438 kWh.
        let power = prices.of_power(10.0, 5.0).expect("a price of power");
        assert!((power - 131.4).abs() < 1e-9, "{power}");
    }

    #[test]
    fn everything_wrong_is_told_at_once() {
        let text = "pwer = \"1 USD/kWh\"\npower = \"0.3\"\n[drives]\np4800x-376 = \"1 USD\"\np4800x-375 = 450\n600p-256 = \"-1 USD\"\n";
        let problems = Prices::read("prices.toml", text, &[]).expect_err("all of it is wrong");
        insta::assert_snapshot!(problems.render(false));
    }
}
