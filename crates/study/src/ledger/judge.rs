//! Whether a model's figure agrees with the published one.

use super::Published;

/// How a row's figure is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judgement {
    /// It is the published number within a tolerance.
    Equals(Tolerance),
    /// It is below this.
    Below(f64),
    /// It is above this.
    Above(f64),
    /// It is from the one to the other.
    Between(f64, f64),
}

/// How far a figure may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// By this share of the published figure: 0.05 is 5 %.
    Share(f64),
    /// By this factor, either way.
    Factor(f64),
}

/// What came of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The figure agrees, or the claim holds.
    Holds,
    /// It does not.
    Misses,
    /// The figure agrees, but its seeds differ by more than the figure itself, so that others might not.
    TooWide,
    /// The model has no figure: a claim that presumes something that never happens, too few samples.
    NoFigure,
}

impl Verdict {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Misses => "MISSES",
            Verdict::TooWide => "TOO WIDE",
            Verdict::NoFigure => "NO FIGURE",
        }
    }
}

impl Judgement {
    /// In words for a table: `= ±5 %`, `> 1`.
    pub fn words(self) -> String {
        match self {
            Judgement::Equals(Tolerance::Share(share)) => format!("= ±{} %", share * 100.0),
            Judgement::Equals(Tolerance::Factor(factor)) => format!("= ×÷{factor}"),
            Judgement::Below(limit) => format!("< {limit}"),
            Judgement::Above(limit) => format!("> {limit}"),
            Judgement::Between(low, high) => format!("{low} to {high}"),
        }
    }

    /// Whether it compares with a number, so that there is an error; otherwise it is a claim that holds or does not.
    pub fn has_error(self) -> bool {
        matches!(self, Judgement::Equals(_))
    }
}

/// The verdict on a model's figure, and its error as a share of the published one where that makes sense.
pub fn judge(judgement: Judgement, published: &Published, model: f64) -> (Verdict, Option<f64>) {
    if !model.is_finite() {
        return (Verdict::NoFigure, None);
    }
    let (holds, error) = match (judgement, published) {
        (Judgement::Equals(tolerance), Published::Number(published)) => {
            let error = if *published == model {
                0.0
            } else {
                model / published - 1.0
            };
            // A hair of slack: 5 % off is not further off because of binary fractions.
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
        Verdict::Holds
    } else {
        Verdict::Misses
    };
    (verdict, error)
}

/// As [`judge`], of a figure with its 95 % interval: one whose half is larger than the figure holds only if both ends of
/// it would, too.
pub fn judge_spread(
    judgement: Judgement,
    published: &Published,
    model: f64,
    interval: Option<(f64, f64)>,
) -> (Verdict, Option<f64>) {
    let (verdict, error) = judge(judgement, published, model);
    let holds = |end: f64| judge(judgement, published, end).0 == Verdict::Holds;
    let unsure = interval.is_some_and(|(low, high)| {
        (high - low) / 2.0 > model.abs() && !(holds(low) && holds(high))
    });
    match verdict {
        Verdict::Holds if unsure => (Verdict::TooWide, error),
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
            judge_spread(judgement, &Published::Number(1000.0), model, ends).0
        };
        let factor = Judgement::Equals(Tolerance::Factor(1.5));
        assert_eq!(of(factor, 1110.0, 1196.0), Verdict::TooWide);
        assert_eq!(of(factor, 1110.0, 900.0), Verdict::Holds);
        assert_eq!(of(factor, 5000.0, 6000.0), Verdict::Misses);
        assert_eq!(
            of(Judgement::Above(500.0), 1110.0, 1196.0),
            Verdict::TooWide
        );
        // A difference near zero may vary by more than itself, and yet never leave the range that is asked for.
        let near = Judgement::Between(-50.0, 50.0);
        assert_eq!(of(near, 3.0, 20.0), Verdict::Holds);
        assert_eq!(of(near, 3.0, 60.0), Verdict::TooWide);
        let alone = judge_spread(factor, &Published::Number(1000.0), 1110.0, None);
        assert_eq!(alone.0, Verdict::Holds);
    }

    #[test]
    fn tolerances_have_two_sides() {
        let verdict = |judgement, model| judge(judgement, &Published::Number(200.0), model).0;
        let five = Judgement::Equals(Tolerance::Share(0.05));
        assert_eq!(verdict(five, 190.0), Verdict::Holds);
        assert_eq!(verdict(five, 210.0), Verdict::Holds);
        assert_eq!(verdict(five, 189.9), Verdict::Misses);
        assert_eq!(verdict(five, 210.1), Verdict::Misses);
        let factor = Judgement::Equals(Tolerance::Factor(1.5));
        assert_eq!(verdict(factor, 300.0), Verdict::Holds);
        assert_eq!(verdict(factor, 134.0), Verdict::Holds);
        assert_eq!(verdict(factor, 133.0), Verdict::Misses);
        assert_eq!(verdict(factor, 301.0), Verdict::Misses);
        assert_eq!(verdict(factor, f64::NAN), Verdict::NoFigure);
        assert_eq!(verdict(Judgement::Below(200.0), 200.0), Verdict::Misses);
        assert_eq!(verdict(Judgement::Between(1.0, 2.0), 2.0), Verdict::Holds);
        let (_, error) = judge(five, &Published::Number(200.0), 150.0);
        assert_eq!(error, Some(-0.25));
    }
}
