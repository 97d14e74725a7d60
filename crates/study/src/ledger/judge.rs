//! Whether a model's figure agrees with the published one.

use super::PublishedValue;

/// How a row's figure is compared with the published one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judgement {
    /// Equal to the published number within a tolerance.
    Equals(Tolerance),
    /// Below this value.
    Below(f64),
    /// Above this value.
    Above(f64),
    /// Within this range.
    Between(f64, f64),
}

/// Maximum error of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// As a share of the published figure: 0.05 is 5 %.
    Share(f64),
    /// As a factor in either direction.
    Factor(f64),
}

/// Verdict on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowVerdict {
    /// The figure agrees, or the claim holds.
    Holds,
    /// The figure does not agree, or the claim does not hold.
    Misses,
    /// The figure agrees, but its spread over seeds exceeds the figure itself, so other seeds might not agree.
    TooWide,
    /// The model has no figure: the claim presumes an event that never occurs, or there are too few samples.
    NoFigure,
}

impl RowVerdict {
    /// Returns the name of the verdict.
    pub const fn name(self) -> &'static str {
        match self {
            RowVerdict::Holds => "holds",
            RowVerdict::Misses => "MISSES",
            RowVerdict::TooWide => "TOO WIDE",
            RowVerdict::NoFigure => "NO FIGURE",
        }
    }
}

impl Judgement {
    /// Returns the comparison as text for a table: `= ±5 %`, `> 1`.
    pub fn words(self) -> String {
        match self {
            Judgement::Equals(Tolerance::Share(share)) => format!("= ±{} %", share * 100.0),
            Judgement::Equals(Tolerance::Factor(factor)) => format!("= ×÷{factor}"),
            Judgement::Below(limit) => format!("< {limit}"),
            Judgement::Above(limit) => format!("> {limit}"),
            Judgement::Between(low, high) => format!("{low} to {high}"),
        }
    }

    /// Checks whether the comparison is with a number, so that there is an error. Otherwise the row is a claim that
    /// holds or does not hold.
    pub fn has_error(self) -> bool {
        matches!(self, Judgement::Equals(_))
    }
}

/// Returns the verdict on a model's figure, and its error as a share of the published figure where that is meaningful.
pub fn judge(
    judgement: Judgement,
    published: &PublishedValue,
    model: f64,
) -> (RowVerdict, Option<f64>) {
    if !model.is_finite() {
        return (RowVerdict::NoFigure, None);
    }
    let (holds, error) = match (judgement, published) {
        (Judgement::Equals(tolerance), PublishedValue::Number(published)) => {
            let error = if *published == model {
                0.0
            } else {
                model / published - 1.0
            };
            // A small slack, so that an error of exactly 5 % is not exceeded through rounding of binary fractions.
            let within = match tolerance {
                Tolerance::Share(share) => error.abs() <= share + 1e-9,
                Tolerance::Factor(factor) => {
                    let ratio = model / published;
                    (1.0 / factor - 1e-9..=factor + 1e-9).contains(&ratio)
                }
            };
            (within, error.is_finite().then_some(error))
        }
        (Judgement::Equals(_), _) => (false, None),
        (Judgement::Below(limit), _) => (model < limit, None),
        (Judgement::Above(limit), _) => (model > limit, None),
        (Judgement::Between(low, high), _) => (low <= model && model <= high, None),
    };
    let verdict = if holds {
        RowVerdict::Holds
    } else {
        RowVerdict::Misses
    };
    (verdict, error)
}

/// Judges as [`judge`] does, for a figure with a 95 % interval. A figure whose half-interval exceeds the figure itself
/// holds only if both ends of the interval hold too.
pub fn judge_spread(
    judgement: Judgement,
    published: &PublishedValue,
    model: f64,
    interval: Option<(f64, f64)>,
) -> (RowVerdict, Option<f64>) {
    let (verdict, error) = judge(judgement, published, model);
    let holds = |end: f64| judge(judgement, published, end).0 == RowVerdict::Holds;
    let unsure = interval.is_some_and(|(low, high)| {
        (high - low) / 2.0 > model.abs() && !(holds(low) && holds(high))
    });
    match verdict {
        RowVerdict::Holds if unsure => (RowVerdict::TooWide, error),
        _ => (verdict, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_its_seeds_do_not_agree_on_does_not_hold() {
        let of = |judgement, model, spread: f64| {
            let ends = Some((model - spread, model + spread));
            judge_spread(judgement, &PublishedValue::Number(1000.0), model, ends).0
        };
        let factor = Judgement::Equals(Tolerance::Factor(1.5));
        assert_eq!(of(factor, 1110.0, 1196.0), RowVerdict::TooWide);
        assert_eq!(of(factor, 1110.0, 900.0), RowVerdict::Holds);
        assert_eq!(of(factor, 5000.0, 6000.0), RowVerdict::Misses);
        assert_eq!(
            of(Judgement::Above(500.0), 1110.0, 1196.0),
            RowVerdict::TooWide
        );
        // A difference near zero may vary by more than itself and still stay in the required range.
        let near = Judgement::Between(-50.0, 50.0);
        assert_eq!(of(near, 3.0, 20.0), RowVerdict::Holds);
        assert_eq!(of(near, 3.0, 60.0), RowVerdict::TooWide);
        let alone = judge_spread(factor, &PublishedValue::Number(1000.0), 1110.0, None);
        assert_eq!(alone.0, RowVerdict::Holds);
    }

    #[test]
    fn tolerances_have_two_sides() {
        let verdict = |judgement, model| judge(judgement, &PublishedValue::Number(200.0), model).0;
        let five = Judgement::Equals(Tolerance::Share(0.05));
        assert_eq!(verdict(five, 190.0), RowVerdict::Holds);
        assert_eq!(verdict(five, 210.0), RowVerdict::Holds);
        assert_eq!(verdict(five, 189.9), RowVerdict::Misses);
        assert_eq!(verdict(five, 210.1), RowVerdict::Misses);
        let factor = Judgement::Equals(Tolerance::Factor(1.5));
        assert_eq!(verdict(factor, 300.0), RowVerdict::Holds);
        assert_eq!(verdict(factor, 134.0), RowVerdict::Holds);
        assert_eq!(verdict(factor, 133.0), RowVerdict::Misses);
        assert_eq!(verdict(factor, 301.0), RowVerdict::Misses);
        assert_eq!(verdict(factor, f64::NAN), RowVerdict::NoFigure);
        assert_eq!(verdict(Judgement::Below(200.0), 200.0), RowVerdict::Misses);
        assert_eq!(
            verdict(Judgement::Between(1.0, 2.0), 2.0),
            RowVerdict::Holds
        );
        let (_, error) = judge(five, &PublishedValue::Number(200.0), 150.0);
        assert_eq!(error, Some(-0.25));
    }
}
