//! The search along one parameter: a coarse look over all its values, then closer and closer ones.
//!
//! Known are the rows' figures at the values tried. Between two of them each figure is taken to go on a straight line
//! of logarithms: a throughput or a time mostly bends once and slowly, where the misfit made of it has corners. From
//! these lines follow the best value, the ends of what does as well and of what is within the rows' tolerances; the
//! values that this names are tried, all at once on all cores, and the lines are drawn again until nothing moves.
//!
//! A misfit is a sum of squares in units of the rows' tolerances, so what has at most one more than the best differs
//! from it by no more than one tolerance: that is the interval. Misfits of bounds are flat where they hold, which no
//! descent can decide; therefore the ends are looked for and the recipe says what is taken.

use rayon::prelude::*;

use super::recipe::Take;

/// Values of the coarse look.
const COARSE: usize = 9;
/// Looks after it at the most.
const LOOKS: usize = 6;
/// In every so many looks it is the middle between two known values that is tried, where a line may creep.
const HALVING: usize = 3;
/// Values nearer to each other than this share (of the whole line, where it begins at zero) are one.
const SAME: f64 = 0.003;
/// What does as well: a tenth of a tolerance from the best.
const AS_WELL: f64 = 0.01;
/// What is within a tolerance of the best.
pub(super) const WITHIN: f64 = 1.0;
/// Places on a line between two known values at which the misfit is computed.
const BETWEEN: usize = 64;

/// How far such figures of rows are from where they should be.
pub(super) type Misfit<'a> = dyn Fn(&[f64]) -> f64 + Sync + 'a;

/// A parameter's values from the one to the other, and what rows make of them.
pub(super) struct Line<'a> {
    /// The least.
    pub(super) from: f64,
    /// The greatest.
    pub(super) to: f64,
    /// Whole numbers only.
    pub(super) whole: bool,
    /// The rows' figures at a value; NaN where there is none.
    pub(super) figures: Box<dyn Fn(f64) -> Vec<f64> + Sync + 'a>,
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    /// The value taken.
    pub(super) value: f64,
    /// The least and greatest within a tolerance.
    pub(super) interval: (f64, f64),
    /// The least misfit.
    pub(super) misfit: f64,
}

/// A value that was tried.
struct Tried {
    value: f64,
    place: f64,
    figures: Vec<f64>,
}

/// Places of 0 to 1 along the line from the one to the other.
type Stretch = (f64, f64);

impl Line<'_> {
    /// Over a decade or more, and never from zero, a parameter's scale is its logarithm.
    fn logarithmic(&self) -> bool {
        self.from > 0.0
    }

    /// The value at a place of 0 to 1 along the line.
    fn value(&self, place: f64) -> f64 {
        let place = place.clamp(0.0, 1.0);
        let value = match self.logarithmic() {
            true => self.from * libm::exp(place * libm::log(self.to / self.from)),
            false => self.from + place * (self.to - self.from),
        };
        match self.whole {
            true => libm::round(value),
            // Four digits: as files have them, and so that a value is not tried twice.
            false => text::digits::rounded(value, 4),
        }
    }

    /// Where along the line a value is.
    fn place(&self, value: f64) -> f64 {
        match self.logarithmic() {
            true => libm::log(value / self.from) / libm::log(self.to / self.from),
            false => (value - self.from) / (self.to - self.from),
        }
    }

    /// Places nearer to each other than this are one.
    fn same(&self) -> f64 {
        match self.logarithmic() {
            true => SAME / libm::log(self.to / self.from),
            false => SAME,
        }
    }

    /// Tries the values at these places, without those that are known.
    fn look(&self, places: &[f64], tried: &mut Vec<Tried>) -> bool {
        let mut values: Vec<f64> = places.iter().map(|place| self.value(*place)).collect();
        values.retain(|value| tried.iter().all(|one| one.value != *value));
        values.sort_by(f64::total_cmp);
        values.dedup();
        let new: Vec<Tried> = values
            .par_iter()
            .map(|&value| Tried {
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

    /// Looks for the value with the least misfit.
    pub(super) fn search(&self, take: Take, misfit: &Misfit<'_>) -> Found {
        let mut tried = Vec::new();
        let coarse: Vec<f64> = (0..COARSE)
            .map(|step| step as f64 / (COARSE - 1) as f64)
            .collect();
        self.look(&coarse, &mut tried);
        // A line may name a place near a known whole number, while there are others on the way to it.
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
                let known = |one: &Tried| (one.place - place).abs() <= same;
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

    /// What follows from all that was tried. What is taken does as well where it was tried, not on a line.
    fn found(&self, tried: &[Tried], take: Take, misfit: &Misfit<'_>) -> Found {
        let known = known(tried, misfit);
        let best = least(&known);
        let limit = as_well(known[best].1);
        let does = |at: &usize| known[*at].1 <= limit;
        let down = (0..=best).rev().take_while(does).last();
        let up = (best..known.len()).take_while(does).last();
        let (low, high) = (&tried[down.unwrap_or(best)], &tried[up.unwrap_or(best)]);
        let value = match take {
            Take::Smallest => low.value,
            Take::Largest => high.value,
            Take::Middle => self.value((low.place + high.place) / 2.0),
        };
        let drawn = drawn(tried, misfit);
        let at = drawn.partition_point(|one| one.0 < known[best].0);
        let (lowest, highest) = stretch(&drawn, at, known[best].1 + WITHIN);
        Found {
            value,
            interval: (self.value(lowest), self.value(highest)),
            misfit: known[best].1,
        }
    }
}

/// Places and misfits of what was tried.
fn known(tried: &[Tried], misfit: &Misfit<'_>) -> Vec<(f64, f64)> {
    let known = tried.iter().map(|one| (one.place, misfit(&one.figures)));
    known.collect()
}

/// Places and misfits along the lines between all that is known.
fn drawn(tried: &[Tried], misfit: &Misfit<'_>) -> Vec<(f64, f64)> {
    let known = known(tried, misfit);
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

/// The misfit up to which a value does as well as the best: where all rows are bounds and hold, only what holds does.
pub(super) fn as_well(least: f64) -> f64 {
    if least == 0.0 { 0.0 } else { least + AS_WELL }
}

/// A figure between two known ones. Where one of them is none, the nearer end is all that can be said.
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

/// Index of the least misfit, the first of equals.
fn least(misfits: &[(f64, f64)]) -> usize {
    let all = misfits.iter().enumerate();
    let least = all.min_by(|a, b| a.1.1.total_cmp(&b.1.1));
    least.map_or(0, |(index, _)| index)
}

/// How far either way from a place misfits are at most `limit`.
fn stretch(drawn: &[(f64, f64)], from: usize, limit: f64) -> Stretch {
    // The place on the way from the last within to the first without.
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

    /// A search of one row's figure, and how many values it tried.
    fn search(
        (from, to): (f64, f64),
        take: Take,
        figure: &(dyn Fn(f64) -> f64 + Sync),
        misfit: &(dyn Fn(f64) -> f64 + Sync),
    ) -> (Found, usize) {
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

    /// A published figure of 100 and a tolerance of 5 %.
    fn of_hundred(figure: f64) -> f64 {
        let off = libm::log(figure / 100.0) / libm::log(1.05);
        (off * off).min(400.0)
    }

    #[test]
    fn a_throughput_gives_its_value_and_a_tolerance_either_way() {
        // 100 at 27; saturates below 10.
        let figure = |x: f64| 2700.0 / x.max(10.0);
        let (found, tried) = search((1.0, 500.0), Take::Middle, &figure, &of_hundred);
        assert!((found.value / 27.0 - 1.0).abs() < 0.005, "{found:?}");
        assert!((found.interval.0 / (27.0 / 1.05) - 1.0).abs() < 0.005);
        assert!((found.interval.1 / (27.0 * 1.05) - 1.0).abs() < 0.005);
        assert!(tried < 30, "{tried}");
    }

    #[test]
    fn a_time_that_is_but_a_part_of_a_latency_is_found_too() {
        let figure = |x: f64| 80.0 + x;
        let (found, tried) = search((0.5, 60.0), Take::Middle, &figure, &of_hundred);
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
        let (largest, _) = search(line, Take::Largest, &|x| x, &wall);
        assert!((largest.value / 60.0 - 1.0).abs() < 0.01, "{largest:?}");
        assert!(largest.value <= 60.0, "{largest:?}");
        assert_eq!(largest.interval.0, 1.0);
        let (smallest, _) = search(line, Take::Smallest, &|x| x, &wall);
        assert_eq!(smallest.value, 1.0);
        let (middle, _) = search(line, Take::Middle, &|x| x, &wall);
        assert!((middle.value / libm::sqrt(60.0) - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_step_is_found_by_halving() {
        // A percentile that jumps from 20 to 2000 at 70: the row wants less than 60.
        let figure = |x: f64| if x <= 70.0 { 20.0 } else { 2000.0 };
        let wall = |figure: f64| if figure < 60.0 { 0.0 } else { 400.0 };
        let (found, _) = search((1.0, 200.0), Take::Largest, &figure, &wall);
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
        let found = line.search(Take::Middle, &|figures| figures[0] * figures[0]);
        assert_eq!((found.value, found.interval), (12.0, (11.0, 13.0)));
        let squares = |x: f64| 100.0 * x * x;
        let (linear, _) = search((0.0, 10.0), Take::Middle, &|x| x, &squares);
        assert!(linear.value < 0.02, "{linear:?}");
    }

    #[test]
    fn the_last_whole_number_that_holds_is_found() {
        // 13 is just over the bound, so the line from 8 to 13 names 13 itself.
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
        assert_eq!(line.search(Take::Largest, &below).value, 12.0);
    }

    #[test]
    fn values_without_a_figure_are_left() {
        let figure = |x: f64| if x < 5.0 { f64::NAN } else { x * 10.0 };
        let misfit = |figure: f64| match figure.is_finite() {
            true => of_hundred(figure),
            false => 400.0,
        };
        let (found, _) = search((1.0, 100.0), Take::Middle, &figure, &misfit);
        assert!((found.value / 10.0 - 1.0).abs() < 0.005, "{found:?}");
    }
}
