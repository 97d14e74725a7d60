//! Parallel work with progress reports and cancellation.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};

/// Callback that receives the completed share, 0 to 1, at intervals, and decides whether to continue. Stopped work
/// returns its results so far. These depend on the time of the stop, so work with reproducible results must not be
/// stopped.
pub type ProgressCallback<'a> = &'a (dyn Fn(f64) -> ControlFlow<()> + Sync);

/// Continues for every share.
pub fn to_the_end(_: f64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Runs independent work on all cores; returns the results in the order of `items`. `go_on` receives the completed
/// share of all work, and can stop each piece of work.
pub fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    go_on: ProgressCallback<'_>,
    work: impl Fn(&T, ProgressCallback<'_>) -> R + Sync,
) -> Vec<R> {
    let shares: Vec<AtomicU32> = items.iter().map(|_| AtomicU32::new(0)).collect();
    let report = |index: usize, share: f64| {
        shares[index].store((share * 1e6) as u32, Ordering::Relaxed);
        let sum: f64 = shares
            .iter()
            .map(|share| f64::from(share.load(Ordering::Relaxed)))
            .sum();
        go_on(sum / 1e6 / items.len() as f64)
    };
    each(items, |index, item| {
        let result = work(item, &|share| report(index, share));
        // Its decision affects the items that are not finished.
        let _ = report(index, 1.0);
        result
    })
}

#[cfg(feature = "threads")]
pub(crate) fn cores() -> usize {
    rayon::current_num_threads()
}

#[cfg(not(feature = "threads"))]
pub(crate) fn cores() -> usize {
    1
}

/// Applies `of` to each item, on all cores; returns the results in the order of the items.
#[cfg(feature = "threads")]
pub(crate) fn each<T: Sync, R: Send>(items: &[T], of: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    use rayon::prelude::*;
    let items = items.par_iter().enumerate();
    items.map(|(index, item)| of(index, item)).collect()
}

/// Applies `of` to each item in turn.
#[cfg(not(feature = "threads"))]
pub(crate) fn each<T: Sync, R: Send>(items: &[T], of: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let items = items.iter().enumerate();
    items.map(|(index, item)| of(index, item)).collect()
}
