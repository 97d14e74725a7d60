//! The search along one parameter: a coarse look over all its values, Brent's method around the best of them, then the
//! ends of what does as well and of what is within the rows' tolerances.
//!
//! A misfit is a sum of squares in units of the rows' tolerances, so what has at most one more than the best differs
//! from it by no more than one tolerance: that is the interval. Misfits of bounds are flat where they hold, which no
//! descent can decide; therefore the ends are looked for and the recipe says what is taken.

use std::cell::RefCell;

use argmin::core::{CostFunction, Error, Executor};
use argmin::solver::brent::BrentOpt;

use super::recipe::Take;

/// Values of the coarse look.
const COARSE: usize = 9;
/// Steps of Brent's method.
const STEPS: u64 = 8;
/// Halvings on the way to an end.
const HALVINGS: u32 = 7;
/// What does as well: a tenth of a tolerance from the best.
const AS_WELL: f64 = 0.01;
/// What is within a tolerance of the best.
const WITHIN: f64 = 1.0;

/// What a line search may see: the misfit of a value. Failures end the search.
pub(super) type Misfit<'a> = dyn FnMut(f64) -> Result<f64, String> + 'a;

/// A parameter's values from the one to the other, and what is known of them.
pub(super) struct Line<'a> {
    from: f64,
    to: f64,
    whole: bool,
    misfit: RefCell<&'a mut Misfit<'a>>,
    /// Values and misfits, in the order of the values.
    known: RefCell<Vec<(f64, f64)>>,
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

impl<'a> Line<'a> {
    /// A line over these values; whole numbers only if `whole`.
    pub(super) fn new(from: f64, to: f64, whole: bool, misfit: &'a mut Misfit<'a>) -> Line<'a> {
        Line {
            from,
            to,
            whole,
            misfit: RefCell::new(misfit),
            known: RefCell::default(),
        }
    }

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
            false => {
                let digits =
                    libm::pow(10.0, 3.0 - libm::floor(libm::log10(value.abs().max(1e-12))));
                libm::round(value * digits) / digits
            }
        }
    }

    /// Where along the line a value is.
    fn place(&self, value: f64) -> f64 {
        match self.logarithmic() {
            true => libm::log(value / self.from) / libm::log(self.to / self.from),
            false => (value - self.from) / (self.to - self.from),
        }
    }

    /// The misfit of the value at this place.
    fn at(&self, place: f64) -> Result<f64, String> {
        let value = self.value(place);
        let order = |known: &[(f64, f64)]| known.binary_search_by(|one| one.0.total_cmp(&value));
        if let Ok(index) = order(&self.known.borrow()) {
            return Ok(self.known.borrow()[index].1);
        }
        let misfit = (self.misfit.borrow_mut())(value)?;
        let mut known = self.known.borrow_mut();
        if let Err(index) = order(&known) {
            known.insert(index, (value, misfit));
        }
        Ok(misfit)
    }

    /// Index of the least misfit among what is known, the first of equals.
    fn best(&self) -> usize {
        let known = self.known.borrow();
        let all = known.iter().enumerate();
        let least = all.min_by(|a, b| a.1.1.total_cmp(&b.1.1));
        least.map_or(0, |(index, _)| index)
    }

    /// The greatest value (`up`) or the least up to which misfits are at most `limit`, from the known value on.
    fn end(&self, from: f64, limit: f64, up: bool) -> Result<f64, String> {
        let known: Vec<(f64, f64)> = self.known.borrow().clone();
        let beyond: Vec<(f64, f64)> = match up {
            true => known.into_iter().filter(|one| one.0 > from).collect(),
            false => known.into_iter().rev().filter(|one| one.0 < from).collect(),
        };
        let mut inside = from;
        let mut outside = None;
        for (value, misfit) in beyond {
            if misfit > limit {
                outside = Some(value);
                break;
            }
            inside = value;
        }
        let Some(outside) = outside else {
            return Ok(inside);
        };
        let (mut inside, mut outside) = (self.place(inside), self.place(outside));
        for _ in 0..HALVINGS {
            let middle = (inside + outside) / 2.0;
            match self.at(middle)? <= limit {
                true => inside = middle,
                false => outside = middle,
            }
        }
        // Rounding may have carried the last place over the edge.
        let value = self.value(inside);
        Ok(if self.at(inside)? <= limit {
            value
        } else {
            from
        })
    }

    /// Looks for the best value.
    ///
    /// # Errors
    /// No misfit can be computed.
    pub(super) fn search(&self, take: Take) -> Result<Found, String> {
        for step in 0..COARSE {
            self.at(step as f64 / (COARSE - 1) as f64)?;
        }
        self.descend()?;
        let best = self.known.borrow()[self.best()];
        let ends = |over: f64| -> Result<(f64, f64), String> {
            let limit = best.1 + over;
            Ok((
                self.end(best.0, limit, false)?,
                self.end(best.0, limit, true)?,
            ))
        };
        let (least, greatest) = ends(AS_WELL)?;
        let value = match take {
            Take::Smallest => least,
            Take::Largest => greatest,
            Take::Middle => self.value((self.place(least) + self.place(greatest)) / 2.0),
        };
        Ok(Found {
            value,
            interval: ends(WITHIN)?,
            misfit: best.1,
        })
    }

    /// Brent's method between the neighbours of the best known value.
    fn descend(&self) -> Result<(), String> {
        let best = self.best();
        let (low, high) = {
            let known = self.known.borrow();
            let low = known[best.saturating_sub(1)].0;
            let high = known[(best + 1).min(known.len() - 1)].0;
            // Where neighbours do as well too, no descent finds anything.
            let flat = known[best.saturating_sub(1)].1 == known[best].1
                && known[(best + 1).min(known.len() - 1)].1 == known[best].1;
            if flat || low == high {
                return Ok(());
            }
            (self.place(low), self.place(high))
        };
        let solver = BrentOpt::new(low, high).set_tolerance(1e-4, 1e-4);
        let failed = |error: Error| error.to_string();
        Executor::new(Along(self), solver)
            .configure(|state| state.max_iters(STEPS))
            .run()
            .map_err(failed)?;
        Ok(())
    }
}

/// A line as the optimiser sees it.
struct Along<'a, 'b>(&'b Line<'a>);

impl CostFunction for Along<'_, '_> {
    type Param = f64;
    type Output = f64;

    fn cost(&self, place: &f64) -> Result<f64, Error> {
        self.0.at(*place).map_err(Error::msg)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(from: f64, to: f64, take: Take, misfit: &dyn Fn(f64) -> f64) -> Found {
        let mut of = |value: f64| Ok(misfit(value));
        let line = Line::new(from, to, false, &mut of);
        line.search(take).expect("it can be computed")
    }

    #[test]
    fn a_parabola_gives_its_bottom_and_a_tolerance_either_way() {
        let bowl = |x: f64| {
            let off = libm::log(x / 27.0) / libm::log(1.05);
            off * off
        };
        let found = search(1.0, 500.0, Take::Middle, &bowl);
        assert!((found.value / 27.0 - 1.0).abs() < 0.005, "{found:?}");
        assert!((found.interval.0 / (27.0 / 1.05) - 1.0).abs() < 0.005);
        assert!((found.interval.1 / (27.0 * 1.05) - 1.0).abs() < 0.005);
    }

    #[test]
    fn a_bound_gives_what_the_recipe_takes() {
        let wall = |x: f64| if x <= 60.0 { 0.0 } else { x - 60.0 };
        let largest = search(1.0, 200.0, Take::Largest, &wall);
        assert!((largest.value / 60.0 - 1.0).abs() < 0.01, "{largest:?}");
        assert_eq!(largest.interval.0, 1.0);
        assert_eq!(search(1.0, 200.0, Take::Smallest, &wall).value, 1.0);
        let middle = search(1.0, 200.0, Take::Middle, &wall).value;
        assert!((middle / libm::sqrt(60.0) - 1.0).abs() < 0.01, "{middle}");
    }

    #[test]
    fn whole_numbers_stay_whole_and_zero_can_be_a_value() {
        let mut of = |value: f64| Ok((value - 12.0) * (value - 12.0));
        let line = Line::new(0.0, 64.0, true, &mut of);
        let found = line.search(Take::Middle).expect("it can be computed");
        assert_eq!((found.value, found.interval), (12.0, (11.0, 13.0)));
        let linear = search(0.0, 10.0, Take::Middle, &|x| 100.0 * x * x);
        assert!(linear.value < 0.01, "{linear:?}");
    }

    #[test]
    fn what_cannot_be_computed_ends_the_search() {
        let mut of = |_| Err("no drive".to_owned());
        let line = Line::new(1.0, 2.0, false, &mut of);
        assert_eq!(line.search(Take::Middle), Err("no drive".into()));
    }
}
