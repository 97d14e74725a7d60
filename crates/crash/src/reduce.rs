//! Reduction of a failure: the smallest loss, at the first moment, that fails in the same way.

use std::collections::BTreeSet;

use crate::check::{Case, Check, Class, Judgement, case, judge_case};
use crate::lost::Lost;
use crate::moments::Walk;
use crate::needs::{Needs, earlier_cuts};
use crate::shrink::smallest;

/// Maximum number of checks for reducing one failure.
const REDUCING: usize = 200;

/// Maximum number of earlier moments that are tried for a reduced failure.
const EARLIER: u32 = 32;

/// Checks whether smaller images fail in the same way.
pub(crate) struct Trial<'c> {
    check: &'c mut dyn Check,
    class: Class,
    left: usize,
    stopped: bool,
    error: Option<String>,
}

impl<'c> Trial<'c> {
    /// Returns trials for failures of this class.
    pub(crate) fn new(check: &'c mut dyn Check, class: Class) -> Trial<'c> {
        Trial {
            check,
            class,
            left: REDUCING,
            stopped: false,
            error: None,
        }
    }

    /// Returns whether the reduction was stopped.
    ///
    /// # Errors
    /// The error of the first trial that could not be judged.
    pub(crate) fn result(self) -> Result<bool, String> {
        self.error.map_or(Ok(self.stopped), Err)
    }

    fn fails(&mut self, walk: &Walk<'_>, lost: &Lost) -> bool {
        self.fails_case(&case(walk, lost))
    }

    fn fails_case(&mut self, case: &Case<'_>) -> bool {
        if self.left == 0 || self.error.is_some() {
            return false;
        }
        if self.check.reduces().is_break() {
            (self.left, self.stopped) = (0, true);
            return false;
        }
        self.left -= 1;
        self.judges(case)
    }

    /// Checks whether the image fails, without a limit.
    fn judges(&mut self, case: &Case<'_>) -> bool {
        if self.error.is_some() {
            return false;
        }
        match judge_case(case, self.check) {
            Ok(Judgement::Failed(class, _)) => class == self.class,
            Ok(_) => false,
            Err(why) => {
                self.error = Some(why);
                false
            }
        }
    }

    /// Reduces the loss: fewer lost writes; then, if possible, no torn writes; then fewer pieces of the torn ones.
    pub(crate) fn fewer(&mut self, walk: &Walk<'_>, lost: &Lost) -> Lost {
        let pieces = walk.undecided();
        let all: Vec<usize> = (0..pieces.len()).filter(|it| lost.contains(*it)).collect();
        let mut commands: Vec<u32> = all.iter().map(|it| pieces[*it].command).collect();
        commands.dedup();
        let of = |commands: &[u32], whole: bool| {
            Lost::from_fn(pieces.len(), |it| {
                commands.contains(&pieces[it].command) && (whole || lost.contains(it))
            })
        };
        let commands = smallest(&commands, |some| self.fails(walk, &of(some, false)));
        let best = of(&commands, false);
        let whole = of(&commands, true);
        if best == whole || self.fails(walk, &whole) {
            return whole;
        }
        let all: Vec<usize> = all.into_iter().filter(|it| best.contains(*it)).collect();
        let these = |some: &[usize]| Lost::from_fn(pieces.len(), |it| some.contains(&it));
        let few = smallest(&all, |some| self.fails(walk, &these(some)));
        these(&few)
    }

    /// Returns the conditions that the failure needs: those of this image, or of an image of an earlier power cut that
    /// fails in the same way and needs less. The smallest loss is not always the one with the fewest conditions: if one
    /// write is missing and a later one is kept, the drive has lost an acknowledged write. If both are missing, it may
    /// have got neither.
    pub(crate) fn needs(&mut self, walk: &Walk<'_>, lost: &Lost) -> Needs {
        let own = Needs::from_loss(walk, lost);
        for cut in earlier_cuts(walk, lost) {
            if cut.loss >= own.loss {
                break;
            }
            let mut earlier = case(walk, &cut.lost);
            earlier.acks = &earlier.acks[..cut.acks];
            earlier.tries = &earlier.tries[..cut.tries];
            // At most two checks, also after the end of the reduction: without them, the needs would be too large.
            if self.judges(&earlier) {
                return Needs::from_cut(walk, &cut.lost, cut.loss);
            }
        }
        own
    }

    /// Returns a moment at which the loss of nothing fails, and before which it passes: it bisects the moments from
    /// `passed`, which has passed, to `last`, which fails. If the search has tried all moments between them, none is left.
    pub(crate) fn first<'a>(
        &mut self,
        start: &Walk<'a>,
        mut last: Walk<'a>,
        mut passed: u32,
    ) -> Walk<'a> {
        while last.moment().number - passed > 1 {
            let middle = passed.midpoint(last.moment().number);
            let Some(walk) = start.clone().go_to(middle) else {
                break;
            };
            match self.fails(&walk, &Lost::nothing(walk.undecided().len())) {
                true => last = walk,
                false if self.left == 0 => break,
                false => passed = middle,
            }
        }
        last
    }

    /// Returns the first moment at which the same loss fails.
    pub(crate) fn earlier<'a>(
        &mut self,
        start: &Walk<'a>,
        last: Walk<'a>,
        lost: Lost,
    ) -> (Walk<'a>, Lost) {
        let id = |walk: &Walk<'_>, index: usize| {
            let piece = &walk.undecided()[index];
            (piece.command, piece.part)
        };
        let indices = 0..last.undecided().len();
        let wanted: BTreeSet<(u32, u32)> = { indices.filter(|it| lost.contains(*it)) }
            .map(|it| id(&last, it))
            .collect();
        let (mut walk, mut tried) = (start.clone(), 0);
        while tried < EARLIER && walk.advance().is_some() {
            if walk.moment().number >= last.moment().number {
                break;
            }
            let same = Lost::from_fn(walk.undecided().len(), |it| wanted.contains(&id(&walk, it)));
            if same.count() < wanted.len() {
                continue;
            }
            tried += 1;
            if self.fails(&walk, &same) {
                return (walk, same);
            }
        }
        (last, lost)
    }
}

/// Returns the lost ranges by command.
pub(crate) fn ranges(walk: &Walk<'_>, lost: &Lost) -> Vec<(u32, Vec<(u64, u64)>)> {
    let mut list: Vec<(u32, Vec<(u64, u64)>)> = Vec::new();
    for (index, piece) in walk.undecided().iter().enumerate() {
        if !lost.contains(index) {
            continue;
        }
        if list
            .last()
            .is_none_or(|(command, _)| *command != piece.command)
        {
            list.push((piece.command, Vec::new()));
        }
        let Some((_, ranges)) = list.last_mut() else {
            continue;
        };
        for &(start, end) in &piece.extents {
            match ranges.last_mut() {
                Some(last) if last.1 == start => last.1 = end,
                _ => ranges.push((start, end)),
            }
        }
    }
    list
}
