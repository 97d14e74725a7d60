//! Search along one parameter: a coarse scan of all its values, then successively finer ones.
//!
//! The rows' figures are known at the tried values. Between two tried values, each figure is interpolated linearly in
//! logarithms: a throughput or a time usually bends once and slowly, while the misfit made from it has corners. The
//! interpolation gives the best value, the range of equally good values, and the range within the rows' tolerances.
//! The values at these points are tried next, all at once on all cores, and the interpolation is repeated until no
//! point moves.
//!
//! A misfit is a sum of squares in units of the rows' tolerances. If the misfit of a value exceeds the best by at most
//! one, the value differs from the best by at most one tolerance: that is the interval. The misfit of a bound is flat
//! where the bound holds, and a descent cannot choose on a flat surface. So the search finds the ends, and the recipe
//! states which value is taken.

use rayon::prelude::*;

use super::recipe::TieBreak;

/// Number of values of the coarse scan.
const COARSE: usize = 9;
/// Maximum number of scans after the coarse one.
const LOOKS: usize = 6;
/// Every n-th scan tries the middle between two known values, because interpolation alone may converge slowly.
const HALVING: usize = 3;
/// Two values are equal if they differ by less than this share (of the whole range, if the range begins at zero).
const SAME: f64 = 0.003;
/// Values within this misfit of the best, a tenth of a tolerance, are equally good.
const AS_WELL: f64 = 0.01;
/// Misfit, above the best, of values within a tolerance.
pub(super) const WITHIN: f64 = 1.0;
/// Points between two known values at which the misfit is interpolated.
const BETWEEN: usize = 64;

/// Returns the misfit of these figures of the rows.
pub(super) type MisfitFunction<'a> = dyn Fn(&[f64]) -> f64 + Sync + 'a;

/// The range of a parameter, and the rows' figures over it.
pub(super) struct Line<'a> {
    /// Lower bound.
    pub(super) from: f64,
    /// Upper bound.
    pub(super) to: f64,
    /// Whether only whole numbers are allowed.
    pub(super) whole: bool,
    /// Returns the rows' figures at a value; NaN where a row has none.
    pub(super) figures: Box<dyn Fn(f64) -> Vec<f64> + Sync + 'a>,
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LineMinimum {
    /// The value that is taken.
    pub(super) value: f64,
    /// The least and the greatest value within a tolerance.
    pub(super) interval: (f64, f64),
    /// The least misfit.
    pub(super) misfit: f64,
}

/// A value that was tried.
struct TriedValue {
    value: f64,
    place: f64,
    figures: Vec<f64>,
}

/// A stretch of positions (0 to 1) along the range.
type SearchInterval = (f64, f64);

impl Line<'_> {
    /// Checks whether the scale is logarithmic: the range spans a decade or more and does not begin at zero.
    fn logarithmic(&self) -> bool {
        self.from > 0.0
    }

    /// Returns the value at a position of 0 to 1 along the range.
    fn value(&self, place: f64) -> f64 {
        let place = place.clamp(0.0, 1.0);
        let value = match self.logarithmic() {
            true => self.from * libm::exp(place * libm::log(self.to / self.from)),
            false => self.from + place * (self.to - self.from),
        };
        match self.whole {
            true => libm::round(value),
            // Four digits, as in the files, and so that no value is tried twice.
            false => text::digits::rounded(value, 4),
        }
    }

    /// Returns the position of a value along the range.
    fn place(&self, value: f64) -> f64 {
        match self.logarithmic() {
            true => libm::log(value / self.from) / libm::log(self.to / self.from),
            false => (value - self.from) / (self.to - self.from),
        }
    }

    /// Returns the distance below which two positions are equal.
    fn same(&self) -> f64 {
        match self.logarithmic() {
            true => SAME / libm::log(self.to / self.from),
            false => SAME,
        }
    }

    /// Tries the values at these positions, except those that are known.
    fn look(&self, places: &[f64], tried: &mut Vec<TriedValue>) -> bool {
        let mut values: Vec<f64> = places.iter().map(|place| self.value(*place)).collect();
        values.retain(|value| tried.iter().all(|one| one.value != *value));
        values.sort_by(f64::total_cmp);
        values.dedup();
        let new: Vec<TriedValue> = values
            .par_iter()
            .map(|&value| TriedValue {
                value,
                place: self.place(value),
                figures: (self.figures)(value),
            })
            .collect();
        let any = !new.is_empty();
        tried.extend(new);
        tried.sort_by(|a, b| a.value.total_cmp(&b.value));
        any
    }

    /// Searches for the value with the least misfit.
    pub(super) fn search(&self, take: TieBreak, misfit: &MisfitFunction<'_>) -> LineMinimum {
        let mut tried = Vec::new();
        let coarse: Vec<f64> = (0..COARSE)
            .map(|step| step as f64 / (COARSE - 1) as f64)
            .collect();
        self.look(&coarse, &mut tried);
        // Interpolation may name a position near a known whole number, while other whole numbers lie between.
        let same = if self.whole { 1e-9 } else { self.same() };
        for look in 1..=LOOKS {
            let drawn = drawn(&tried, misfit);
            let least = least(&drawn);
            let best = drawn[least];
            let (low, high) = stretch(&drawn, least, as_well(best.1));
            let (lowest, highest) = stretch(&drawn, least, best.1 + WITHIN);
            let middle = (low + high) / 2.0;
            let mut wanted = Vec::new();
            for place in [best.0, low, high, lowest, highest, middle] {
                let after = tried.partition_point(|one| one.place < place);
                let near = &tried[after.saturating_sub(1)..(after + 1).min(tried.len())];
                let known = |one: &TriedValue| (one.place - place).abs() <= same;
                match near {
                    _ if near.iter().any(known) => {}
                    [left, right]
                        if look % HALVING == 0
                            || near.iter().any(|one| one.value == self.value(place)) =>
                    {
                        wanted.push((left.place + right.place) / 2.0);
                    }
                    _ => wanted.push(place),
                }
            }
            if !self.look(&wanted, &mut tried) {
                break;
            }
        }
        self.found(&tried, take, misfit)
    }

    /// Returns the result that follows from all tried values. The value taken is one that was tried, not an
    /// interpolated one.
    fn found(
        &self,
        tried: &[TriedValue],
        take: TieBreak,
        misfit: &MisfitFunction<'_>,
    ) -> LineMinimum {
        let known = tried_misfits(tried, misfit);
        let best = least(&known);
        let limit = as_well(known[best].1);
        let does = |at: &usize| known[*at].1 <= limit;
        let down = (0..=best).rev().take_while(does).last();
        let up = (best..known.len()).take_while(does).last();
        let (low, high) = (&tried[down.unwrap_or(best)], &tried[up.unwrap_or(best)]);
        let value = match take {
            TieBreak::Smallest => low.value,
            TieBreak::Largest => high.value,
            TieBreak::Middle => self.value((low.place + high.place) / 2.0),
        };
        let drawn = drawn(tried, misfit);
        let at = drawn.partition_point(|one| one.0 < known[best].0);
        let (lowest, highest) = stretch(&drawn, at, known[best].1 + WITHIN);
        LineMinimum {
            value,
            interval: (self.value(lowest), self.value(highest)),
            misfit: known[best].1,
        }
    }
}

/// Returns positions and misfits of the tried values.
fn tried_misfits(tried: &[TriedValue], misfit: &MisfitFunction<'_>) -> Vec<(f64, f64)> {
    let known = tried.iter().map(|one| (one.place, misfit(&one.figures)));
    known.collect()
}

/// Returns positions and interpolated misfits between all known values.
fn drawn(tried: &[TriedValue], misfit: &MisfitFunction<'_>) -> Vec<(f64, f64)> {
    let known = tried_misfits(tried, misfit);
    let mut drawn: Vec<(f64, f64)> = Vec::with_capacity(tried.len() * BETWEEN);
    for (pair, left_known) in tried.windows(2).zip(&known) {
        let (left, right) = (&pair[0], &pair[1]);
        drawn.push(*left_known);
        for step in 1..BETWEEN {
            let share = step as f64 / BETWEEN as f64;
            let figures = left.figures.iter().zip(&right.figures);
            let figures: Vec<f64> = figures.map(|(a, b)| on_line(*a, *b, share)).collect();
            let place = left.place + share * (right.place - left.place);
            drawn.push((place, misfit(&figures)));
        }
    }
    drawn.extend(known.last());
    drawn
}

/// Returns the maximum misfit of values that are as good as the best. If all rows are bounds and hold at the best
/// value, only values at which they hold qualify.
pub(super) fn as_well(least: f64) -> f64 {
    if least == 0.0 { 0.0 } else { least + AS_WELL }
}

/// Interpolates a figure between two known ones. If one of them is missing, returns the figure of the nearer end.
fn on_line(a: f64, b: f64, share: f64) -> f64 {
    if !a.is_finite() || !b.is_finite() {
        return if share < 0.5 { a } else { b };
    }
    if a > 0.0 && b > 0.0 {
        a * libm::pow(b / a, share)
    } else {
        a + share * (b - a)
    }
}

/// Returns the index of the least misfit, the first of equals.
fn least(misfits: &[(f64, f64)]) -> usize {
    let all = misfits.iter().enumerate();
    let least = all.min_by(|a, b| a.1.1.total_cmp(&b.1.1));
    least.map_or(0, |(index, _)| index)
}

/// Returns the stretch around a position in which misfits are at most `limit`.
fn stretch(drawn: &[(f64, f64)], from: usize, limit: f64) -> SearchInterval {
    // Returns the position between the last point within the limit and the first point beyond it.
    let edge = |inside: (f64, f64), outside: (f64, f64)| {
        let share = (limit - inside.1) / (outside.1 - inside.1);
        inside.0 + share.clamp(0.0, 1.0) * (outside.0 - inside.0)
    };
    let walk = |others: &mut dyn Iterator<Item = &(f64, f64)>| {
        let mut inside = drawn[from];
        for &next in others {
            if next.1 > limit {
                return edge(inside, next);
            }
            inside = next;
        }
        inside.0
    };
    (
        walk(&mut drawn[..from].iter().rev()),
        walk(&mut drawn[from + 1..].iter()),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Searches with the figure of one row, and counts the values tried.
    fn search(
        (from, to): (f64, f64),
        take: TieBreak,
        figure: &(dyn Fn(f64) -> f64 + Sync),
        misfit: &(dyn Fn(f64) -> f64 + Sync),
    ) -> (LineMinimum, usize) {
        let tried = AtomicUsize::new(0);
        let line = Line {
            from,
            to,
            whole: false,
            figures: Box::new(|value| {
                tried.fetch_add(1, Ordering::Relaxed);
                vec![figure(value)]
            }),
        };
        let found = line.search(take, &|figures| misfit(figures[0]));
        drop(line);
        (found, tried.into_inner())
    }

    /// Returns the misfit for a published figure of 100 and a tolerance of 5 %.
    fn of_hundred(figure: f64) -> f64 {
        let off = libm::log(figure / 100.0) / libm::log(1.05);
        (off * off).min(400.0)
    }

    #[test]
    fn a_throughput_gives_its_value_and_a_tolerance_either_way() {
        // 100 at 27; saturates below 10.
        let figure = |x: f64| 2700.0 / x.max(10.0);
        let (found, tried) = search((1.0, 500.0), TieBreak::Middle, &figure, &of_hundred);
        assert!((found.value / 27.0 - 1.0).abs() < 0.005, "{found:?}");
        assert!((found.interval.0 / (27.0 / 1.05) - 1.0).abs() < 0.005);
        assert!((found.interval.1 / (27.0 * 1.05) - 1.0).abs() < 0.005);
        assert!(tried < 30, "{tried}");
    }

    #[test]
    fn a_time_that_is_but_a_part_of_a_latency_is_found_too() {
        let figure = |x: f64| 80.0 + x;
        let (found, tried) = search((0.5, 60.0), TieBreak::Middle, &figure, &of_hundred);
        assert!((found.value / 20.0 - 1.0).abs() < 0.01, "{found:?}");
        assert!((found.interval.0 / 15.24 - 1.0).abs() < 0.01, "{found:?}");
        assert!((found.interval.1 / 25.0 - 1.0).abs() < 0.01, "{found:?}");
        assert!(tried < 30, "{tried}");
    }

    #[test]
    fn a_bound_gives_what_the_recipe_takes() {
        let wall = |figure: f64| match figure <= 60.0 {
            true => 0.0,
            false => libm::pow(libm::log(figure / 60.0) / 0.05, 2.0),
        };
        let line = (1.0, 200.0);
        let (largest, _) = search(line, TieBreak::Largest, &|x| x, &wall);
        assert!((largest.value / 60.0 - 1.0).abs() < 0.01, "{largest:?}");
        assert!(largest.value <= 60.0, "{largest:?}");
        assert_eq!(largest.interval.0, 1.0);
        let (smallest, _) = search(line, TieBreak::Smallest, &|x| x, &wall);
        assert_eq!(smallest.value, 1.0);
        let (middle, _) = search(line, TieBreak::Middle, &|x| x, &wall);
        assert!((middle.value / libm::sqrt(60.0) - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_step_is_found_by_halving() {
        // A percentile that jumps from 20 to 2000 at 70; the row requires less than 60.
        let figure = |x: f64| if x <= 70.0 { 20.0 } else { 2000.0 };
        let wall = |figure: f64| if figure < 60.0 { 0.0 } else { 400.0 };
        let (found, _) = search((1.0, 200.0), TieBreak::Largest, &figure, &wall);
        assert!(found.value <= 70.0, "{found:?}");
        assert!(found.value > 63.0, "{found:?}");
    }

    #[test]
    fn whole_numbers_stay_whole_and_zero_can_be_a_value() {
        let line = Line {
            from: 0.0,
            to: 64.0,
            whole: true,
            figures: Box::new(|value| vec![value - 12.0]),
        };
        let found = line.search(TieBreak::Middle, &|figures| figures[0] * figures[0]);
        assert_eq!((found.value, found.interval), (12.0, (11.0, 13.0)));
        let squares = |x: f64| 100.0 * x * x;
        let (linear, _) = search((0.0, 10.0), TieBreak::Middle, &|x| x, &squares);
        assert!(linear.value < 0.02, "{linear:?}");
    }

    #[test]
    fn the_last_whole_number_that_holds_is_found() {
        // 13 is just above the bound, so interpolation between 8 and 13 gives 13 itself.
        let line = Line {
            from: 1.0,
            to: 64.0,
            whole: true,
            figures: Box::new(|value| vec![4.62 * value]),
        };
        let below = |figures: &[f64]| match figures[0] < 60.0 {
            true => 0.0,
            false => libm::pow(libm::log(figures[0] / 60.0) / 0.05, 2.0),
        };
        assert_eq!(line.search(TieBreak::Largest, &below).value, 12.0);
    }

    #[test]
    fn values_without_a_figure_are_left() {
        let figure = |x: f64| if x < 5.0 { f64::NAN } else { x * 10.0 };
        let misfit = |figure: f64| match figure.is_finite() {
            true => of_hundred(figure),
            false => 400.0,
        };
        let (found, _) = search((1.0, 100.0), TieBreak::Middle, &figure, &misfit);
        assert!((found.value / 10.0 - 1.0).abs() < 0.005, "{found:?}");
    }
}
