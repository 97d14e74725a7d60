//! Runs one question on many drives, with a line for the progress: on all cores, or one drive after another.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use catalogue::DriveSheet;
use lab::{ProgressCallback, in_parallel};
use text::problem::Problems;

use crate::limit;
use crate::progress::Progress;

/// Returns the answers on drives, one drive after another, with a line that names the drive and the step.
pub(crate) fn in_turn<A>(
    drives: &[DriveSheet],
    answer: impl Fn(&DriveSheet, &dyn Fn(String)) -> Result<A, Problems>,
) -> Result<Vec<A>, Problems> {
    let bar = Progress::new("{elapsed_precise} {spinner} {wide_msg}");
    let answers = limit::all(drives.iter().map(|drive| {
        let tell = |what: String| bar.message(format!("{}: {what}", drive.id));
        (&*drive.id, answer(drive, &tell))
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
