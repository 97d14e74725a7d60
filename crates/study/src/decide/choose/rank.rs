//! Order of candidates, the best by each criterion, and the candidates that are tied with it.

use super::{
    AmpleRoom, BestCandidate, CLOSE, Candidate, ChooseAnswer, ChooseRequest, Measure, Tie, Unfit,
};

/// Returns those of `others` that are tied with the best, the better first.
fn ties<'a>(
    by: Measure,
    best: &Candidate,
    others: impl Iterator<Item = &'a Candidate>,
) -> Vec<Tie> {
    let Some((value, ends)) = by.value(best).zip(by.by_seed(best)) else {
        return Vec::new();
    };
    let tie = |other: &Candidate| {
        let (theirs, their_ends) = by.value(other).zip(by.by_seed(other))?;
        let overlap = ends[0] <= their_ends[1] && their_ends[0] <= ends[1];
        let close = (theirs - value).abs() <= CLOSE * value.abs().max(theirs.abs());
        // Prices are exact, so only equal costs are tied.
        let same = match by {
            Measure::Usd => overlap,
            _ => overlap || close,
        };
        same.then(|| Tie {
            drive: other.drive.clone(),
            value: theirs,
            by_seed: their_ends,
        })
    };
    let others = others.filter(|other| other.drive != best.drive);
    let mut ties: Vec<Tie> = others.filter_map(tie).collect();
    ties.sort_by(|a, b| {
        let order = (a.value - value).abs().total_cmp(&(b.value - value).abs());
        order.then(a.drive.cmp(&b.drive))
    });
    ties
}

/// Returns a figure such that a lower one is better; infinity if it is unknown.
fn key(candidate: &Candidate, by: Measure) -> f64 {
    let value = by.value(candidate).map(|value| match by.least_is_best() {
        true => value,
        false => -value,
    });
    value.unwrap_or(f64::INFINITY)
}

/// Returns the best of these candidates by a criterion; `None` if it is known of none.
fn best<'a>(by: Measure, among: impl Iterator<Item = &'a Candidate>) -> Option<BestCandidate> {
    let known: Vec<&Candidate> = among.filter(|one| by.value(one).is_some()).collect();
    let best = known
        .iter()
        .min_by(|a, b| key(a, by).total_cmp(&key(b, by)))?;
    Some(BestCandidate {
        by,
        drive: best.drive.clone(),
        value: by.value(best)?,
        by_seed: by.by_seed(best)?,
        ties: ties(by, best, known.iter().copied()),
    })
}

/// Orders candidates, and determines the recommended ones.
pub fn answer(candidates: Vec<Candidate>, unfit: Vec<Unfit>, by: Measure) -> ChooseAnswer {
    ranked(candidates, unfit, by, None)
}

/// Returns the criterion, or another one if it is p99 and too few I/Os completed to know it of any drive that meets the
/// limits, as in short runs of large sequential writes.
fn known_of_some(candidates: &[Candidate], by: Measure) -> Measure {
    let is_known = |by: &Measure| {
        let mut met = candidates.iter().filter(|one| one.is_met());
        met.any(|one| by.value(one).is_some())
    };
    let others = [by, Measure::Watt, Measure::Years, Measure::Iops];
    match by {
        Measure::P99 => others.into_iter().find(is_known).unwrap_or(by),
        _ => by,
    }
}

/// As [`answer`], by the default criterion `by`: if p99 is the default and does not decide ([`AmpleRoom`]), another
/// criterion does. Returns that criterion too.
pub fn answer_by_default(
    request: &ChooseRequest,
    candidates: Vec<Candidate>,
    unfit: Vec<Unfit>,
    by: Measure,
) -> (ChooseAnswer, Measure) {
    let ample = match by {
        Measure::P99 => AmpleRoom::from_candidates(request, &candidates),
        _ => None,
    };
    let by = match &ample {
        Some(ample) => ample.by,
        None => known_of_some(&candidates, by),
    };
    (ranked(candidates, unfit, by, ample), by)
}

/// Orders candidates. With ample room, the best by `by` is one of the drives with ample room.
fn ranked(
    mut candidates: Vec<Candidate>,
    unfit: Vec<Unfit>,
    by: Measure,
    ample_room: Option<AmpleRoom>,
) -> ChooseAnswer {
    let has_room = |one: &Candidate| ample_room.as_ref().is_none_or(|it| it.contains(one));
    candidates.sort_by(|a, b| {
        let order = b.is_met().cmp(&a.is_met());
        order
            .then(a.screened.cmp(&b.screened))
            .then(has_room(b).cmp(&has_room(a)))
            .then(key(a, by).total_cmp(&key(b, by)))
            .then(a.drive.cmp(&b.drive))
    });
    let of = |criterion: Measure| {
        let met = candidates.iter().filter(|one| one.is_met());
        best(
            criterion,
            met.filter(|one| criterion != by || has_room(one)),
        )
    };
    ChooseAnswer {
        best: Measure::ALL.into_iter().filter_map(of).collect(),
        candidates,
        unfit,
        syncs: None,
        ample_room,
    }
}
