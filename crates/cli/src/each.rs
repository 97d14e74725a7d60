//! Runs one question on many drives, with a line for the progress: on all cores, or one drive after another.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use lab::{Lab, ProgressCallback, in_parallel, to_the_end};
use study::ask::{AnswerListener, ResolvedRequest, all};
use text::problem::Problems;

use crate::progress::Progress;

/// Returns the answers to a request for all drives, with a line that names the drive and the step.
pub(crate) fn answers<R: ResolvedRequest>(resolved: &R) -> Result<Vec<R::Answer>, Problems> {
    let lab = Lab::new();
    let drives: Vec<(usize, &str)> = resolved.names().into_iter().enumerate().collect();
    let names = drives.iter().map(|(_, name)| *name);
    if !R::IS_IN_TURN {
        let share = |&(index, _): &(usize, &str), go_on: ProgressCallback<'_>| {
            let (share, step) = (go_on, &|_| ());
            resolved.answer(index, &lab, &AnswerListener { share, step })
        };
        return all(names.zip(map_drives(&drives, |(_, name)| name, share)));
    }
    let bar = Progress::new("{elapsed_precise} {spinner} {wide_msg}");
    let answers = all(drives.iter().map(|&(index, name)| {
        let step = |what: String| bar.message(format!("{name}: {what}"));
        let listener = AnswerListener {
            share: &to_the_end,
            step: &step,
        };
        (name, resolved.answer(index, &lab, &listener))
    }));
    bar.finish();
    answers
}

/// Returns the answer for each drive, in the order of `drives`.
pub(crate) fn map_drives<T: Sync, R: Send>(
    drives: &[T],
    name: impl Fn(&T) -> &str + Sync,
    answer: impl Fn(&T, ProgressCallback<'_>) -> R + Sync,
) -> Vec<R> {
    let bar = Progress::new("{elapsed_precise} [{bar:16}] {percent} %, {left}  {wide_msg}");
    let done = AtomicUsize::new(0);
    let share = |share: f64| {
        bar.share(share);
        ControlFlow::Continue(())
    };
    let answers = in_parallel(drives, &share, |drive, go_on| {
        let tell = |done: usize| {
            bar.name(format!(
                "{done} of {} drives done, {}",
                drives.len(),
                name(drive)
            ));
        };
        tell(done.load(Ordering::Relaxed));
        let answer = answer(drive, go_on);
        tell(done.fetch_add(1, Ordering::Relaxed) + 1);
        answer
    });
    bar.finish();
    answers
}
