//! Cost over a term: a drive that wears out before the term ends is bought again.
//!
//! A drive ends at its rated endurance; without a rating in the catalogue, when the model's Percentage Used exceeds
//! 100. If its cycles end much earlier than its rating ([`life::cycles_end_first`]), the cost by these is computed too:
//! the rating is the maker's, and rated cycles are assumed, so both amounts are known only together. The first drive may
//! already be used (`--age`); replacements are new. Not modelled: falling prices, labour, failures other than wear.

use catalogue::DriveSheet;

use super::life::{self, DAYS, LifeAnswer, LifePart};
use super::prices::Prices;
use crate::review::results::rounded;

/// A drive that lasts almost the whole term is not bought again, because figures are rounded.
const ROUNDING: f64 = 1e-4;

/// Returns the number of drives bought for this place over `years`: the first, and one more each time a drive wears
/// out.
pub fn bought(part: &LifePart, years: f64) -> u64 {
    count(part.years(), part.years_of_a_new_one(), years)
}

/// Returns the number of drives bought for this place over `years` if the cycles of the medium decide; `None` if they do
/// not end within these years and much earlier than the rating.
pub fn bought_by_cycles(part: &LifePart, years: f64) -> Option<u64> {
    let (_, days) = life::cycles_end_first(std::slice::from_ref(part), years)?;
    let each = part.years_of_new_cycles();
    Some(count(Some(days / DAYS), each, years))
}

/// Returns the number of drives bought over the term if cycles decide where they end much earlier than the rating; `None`
/// if that is nowhere.
pub fn all_bought_by_cycles(life: &LifeAnswer) -> Option<u64> {
    let by_cycles = |part: &LifePart| bought_by_cycles(part, life.years);
    let parts = life.parts.iter();
    let each = parts.map(|part| by_cycles(part).unwrap_or_else(|| bought(part, life.years)));
    let some = life.parts.iter().any(|part| by_cycles(part).is_some());
    some.then(|| each.sum())
}

/// Drives and USD over the term for a candidate; USD are `None` without a price list, or if a drive has no price.
pub(super) struct CandidateCosts {
    /// Drives bought if ratings decide, the first one included.
    pub(super) drives: u64,
    /// Drives bought if cycles decide, where they end much earlier.
    pub(super) drives_by_cycles: Option<u64>,
    /// Price of the first drives.
    pub(super) first: Option<f64>,
    /// Price of all drives and of their keeping.
    pub(super) in_all: Option<f64>,
    /// As `in_all`, if cycles decide.
    pub(super) in_all_by_cycles: Option<f64>,
}

/// Returns the costs of a candidate that draws these watts.
pub(super) fn of_candidate(
    prices: Option<&Prices>,
    drive: &DriveSheet,
    life: &LifeAnswer,
    watts: Option<f64>,
) -> CandidateCosts {
    let cost = prices.and_then(|prices| total_cost(prices, drive, life));
    let keeping = match prices {
        Some(prices) => prices.of_keeping(drive, watts, life.years),
        None => Some(0.0),
    };
    let drives_by_cycles = all_bought_by_cycles(life);
    let both = cost.as_ref().zip(keeping);
    let in_all = both.map(|(cost, keeping)| cost.drives + keeping);
    let by_cycles = both.filter(|_| drives_by_cycles.is_some());
    CandidateCosts {
        drives: (life.parts.iter().map(|part| bought(part, life.years))).sum(),
        drives_by_cycles,
        first: cost.as_ref().map(|cost| cost.first),
        in_all: in_all.map(rounded),
        in_all_by_cycles: by_cycles.map(|(cost, keeping)| rounded(cost.drives_by_cycles + keeping)),
    }
}

/// Returns the number of drives if the first lasts `first` years and a new one `each`.
fn count(first: Option<f64>, each: Option<f64>, years: f64) -> u64 {
    let Some(first) = first else {
        return 1;
    };
    let left = years - first;
    let (true, Some(each)) = (left > years * ROUNDING, each) else {
        return 1;
    };
    // A drive that wears out within hours is bought very often; the range of a float is sufficient.
    1 + libm::ceil(left / each.max(1e-9) - ROUNDING) as u64
}

/// Cost of a drive, or of a pool's members.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// Cost of the first drives, USD.
    pub first: f64,
    /// Cost of all drives bought over the term, USD.
    pub drives: f64,
    /// As `drives`, if the cycles of the medium decide where they end much earlier than the rating.
    pub drives_by_cycles: f64,
}

/// Returns the cost of a drive or pool over `life.years`; `None` if a price is missing.
pub fn total_cost(prices: &Prices, drive: &DriveSheet, life: &LifeAnswer) -> Option<Cost> {
    let members: Vec<&DriveSheet> = match drive.pool {
        Some(_) => {
            let named = drive.named_members().into_iter();
            named.map(|(_, sheet)| sheet).collect()
        }
        None => vec![drive],
    };
    let mut cost = Cost {
        first: 0.0,
        drives: 0.0,
        drives_by_cycles: 0.0,
    };
    for (sheet, part) in members.into_iter().zip(&life.parts) {
        let price = prices.price(sheet)?;
        cost.first += price;
        let by_rating = bought(part, life.years);
        let by_cycles = bought_by_cycles(part, life.years).unwrap_or(by_rating);
        cost.drives += price * by_rating as f64;
        cost.drives_by_cycles += price * by_cycles as f64;
    }
    Some(cost)
}

#[cfg(test)]
mod tests {
    use super::super::life::worn;
    use super::*;

    /// Seconds per year.
    const YEAR: f64 = 365.0 * 86_400.0;

    /// Returns a part whose writes use up this drive's rating in this number of years.
    fn lasting(drive: &str, years: f64) -> LifePart {
        let sheet = catalogue::drive(drive).expect("built in");
        let rated = sheet.endurance_bytes.expect("rated") as f64;
        let rate = rated / (years * YEAR);
        worn(drive, rate, rate)
    }

    #[test]
    fn a_drive_that_wears_out_is_bought_again() {
        for (lasts, drives) in [
            (0.104, 49),
            (0.5, 10),
            (1.7, 3),
            (4.9, 2),
            (5.0, 1),
            (80.0, 1),
        ] {
            let part = lasting("980pro-1000", lasts);
            assert_eq!(bought(&part, 5.0), drives, "{lasts} years");
        }
    }

    #[test]
    fn a_drive_that_does_not_wear_is_bought_once() {
        assert_eq!(bought(&worn("exos-x18-16tb", 1e8, 1e8), 5.0), 1);
    }

    /// By hand: a rating of 3.24 years takes 2 drives in 5 years, and cycles of 303 days 7 of them.
    #[test]
    fn cycles_that_end_much_earlier_have_a_number_of_their_own() {
        let mut part = lasting("980pro-1000", 3.24);
        assert_eq!(bought_by_cycles(&part, 5.0), None);
        let at = |days: f64, part: &mut LifePart| {
            part.passes[0].day = days;
            part.used_percent_a_year = Some(100.0 * 365.0 / days);
        };
        at(303.0, &mut part);
        assert_eq!(
            (bought(&part, 5.0), bought_by_cycles(&part, 5.0)),
            (2, Some(7))
        );
        // Not much earlier than the rating.
        at(3.0 * 365.0, &mut part);
        assert_eq!(bought_by_cycles(&part, 5.0), None);
    }

    /// 0.5 years each, the first half used: 0.25 years, then 4.75 years of new ones.
    #[test]
    fn replacements_are_new_where_the_first_drive_is_used() {
        let mut part = lasting("980pro-1000", 0.5);
        let written = part.written.as_mut().expect("a load");
        written.years_to_rating = Some(0.25);
        part.used_percent = 50.0;
        assert_eq!(bought(&part, 5.0), 11);
        let written = part.written.as_mut().expect("a load");
        written.years_to_rating = Some(0.0);
        assert_eq!(bought(&part, 5.0), 11);
    }

    #[test]
    fn a_cost_has_all_drives_that_are_bought() {
        let text = "[drives]\n980pro-1000 = \"90 USD\"\n";
        let prices = Prices::read("prices.toml", text, &[]).expect("it is right");
        let pool = catalogue::drive("mirror(2*980pro-1000)").expect("built in");
        let life = LifeAnswer {
            completes: None,
            drive: pool.id.clone(),
            model: "",
            model_text: String::new(),
            load: None,
            years: 5.0,
            parts: vec![lasting("980pro-1000", 1.7), lasting("980pro-1000", 80.0)],
            iops: None,
            buffer_full_seconds: None,
        };
        let cost = total_cost(&prices, &pool, &life).expect("a price");
        assert_eq!((cost.first, cost.drives), (180.0, 360.0));
        let other = catalogue::drive("mirror(2*p4800x-375)").expect("built in");
        assert_eq!(total_cost(&prices, &other, &life), None);
    }
}
