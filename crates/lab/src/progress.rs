//! Many pieces of work at once: how much is done, and whether to go on.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};

/// Is told the share that is done, 0 to 1, now and then, and says whether to go on. What is stopped gives what there is so
/// far; that depends on when it was, so nothing that must come out the same twice may be stopped.
pub type GoOn<'a> = &'a (dyn Fn(f64) -> ControlFlow<()> + Sync);

/// Goes on, whatever share is done.
pub fn to_the_end(_: f64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Does independent work on all cores; results in the order of `items`. `go_on` is told the share of all that is done,
/// and stops each piece of work.
pub fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    go_on: GoOn<'_>,
    work: impl Fn(&T, GoOn<'_>) -> R + Sync,
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
        // What it says matters to those that are not done.
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

/// Something of each item, on all cores; in the order of the items.
#[cfg(feature = "threads")]
pub(crate) fn each<T: Sync, R: Send>(items: &[T], of: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    use rayon::prelude::*;
    let items = items.par_iter().enumerate();
    items.map(|(index, item)| of(index, item)).collect()
}

/// Something of each item, one after the other.
#[cfg(not(feature = "threads"))]
pub(crate) fn each<T: Sync, R: Send>(items: &[T], of: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let items = items.iter().enumerate();
    items.map(|(index, item)| of(index, item)).collect()
}
