//! Requests with what all interfaces show of their answers: the view, and the verdict.

use study::ask::{Ask, CheckRequest, Fill, Life, Max, Mix, Odds, ResolvedRequest};

use study::decide::life::cycles_end_first;

use super::view::{self, AnswerView};

/// Answers for all drives of a request.
type Answers<A> = [<<A as Ask>::Resolved as ResolvedRequest>::Answer];

/// A request whose answers can be shown.
pub trait AnswerDisplay: Ask {
    /// Returns the view of the answers.
    fn view<'a>(resolved: &'a Self::Resolved, answers: &'a Answers<Self>) -> AnswerView<'a>;

    /// Returns the negative verdict, with the drives that it concerns; `None` if all limits are met, or there are none.
    fn unmet(_resolved: &Self::Resolved, _answers: &Answers<Self>) -> Option<String> {
        None
    }
}

/// Returns the names of drives before `what`; `None` if there are no drives.
fn verdict<'a>(drives: impl Iterator<Item = &'a str>, what: &str) -> Option<String> {
    let drives: Vec<&str> = drives.collect();
    (!drives.is_empty()).then(|| format!("{}: {what}", drives.join(", ")))
}

impl AnswerDisplay for Max {
    fn view<'a>(resolved: &'a Self::Resolved, answers: &'a Answers<Self>) -> AnswerView<'a> {
        view::max(&resolved.request, answers)
    }

    fn unmet(_: &Self::Resolved, answers: &Answers<Self>) -> Option<String> {
        let failed = answers.iter().filter(|answer| !answer.is_met());
        let failed = failed.map(|answer| &*answer.drive);
        verdict(failed, "no load within all limits")
    }
}

impl AnswerDisplay for Mix {
    fn view<'a>(resolved: &'a Self::Resolved, answers: &'a Answers<Self>) -> AnswerView<'a> {
        view::mix(&resolved.request, answers)
    }
}

impl AnswerDisplay for Fill {
    fn view<'a>(resolved: &'a Self::Resolved, answers: &'a Answers<Self>) -> AnswerView<'a> {
        view::fill(&resolved.request, answers)
    }
}

impl AnswerDisplay for Odds {
    fn view<'a>(resolved: &'a Self::Resolved, answers: &'a Answers<Self>) -> AnswerView<'a> {
        view::odds(&resolved.request, answers)
    }
}

impl AnswerDisplay for Life {
    fn view<'a>(resolved: &'a Self::Resolved, answers: &'a Answers<Self>) -> AnswerView<'a> {
        view::life(answers, &resolved.conditions)
    }

    fn unmet(resolved: &Self::Resolved, answers: &Answers<Self>) -> Option<String> {
        let short = answers.iter().filter(|it| it.lasts() == Some(false));
        let short = short.map(|answer| &*answer.drive);
        let by_rating = verdict(short, &format!("not {} years", resolved.years))?;
        // Assumed cycles give no verdict alone, and a reader of the verdict must not miss them.
        let cycles = answers.iter().filter(|it| {
            it.lasts() == Some(true) && cycles_end_first(&it.parts, it.years).is_some()
        });
        let cycles = cycles.map(|answer| &*answer.drive);
        let by_cycles = verdict(cycles, "by the rating, but not by the cycles");
        Some(match by_cycles {
            Some(by_cycles) => format!("{by_rating}; {by_cycles}"),
            None => by_rating,
        })
    }
}

impl AnswerDisplay for CheckRequest {
    fn view<'a>(resolved: &'a Self::Resolved, answers: &'a Answers<Self>) -> AnswerView<'a> {
        view::check(&resolved.check, &resolved.conditions, answers)
    }

    fn unmet(resolved: &Self::Resolved, answers: &Answers<Self>) -> Option<String> {
        let failed = answers.iter().filter(|answer| answer.passes == Some(false));
        let failed = failed.map(|answer| &*answer.drive);
        let what = format!("not what {} asks for", resolved.check.software);
        verdict(failed, &what)
    }
}
