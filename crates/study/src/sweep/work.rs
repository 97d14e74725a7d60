//! Runs a sweep on several threads. Each thread takes the next scenario in order, so that scenarios with the same
//! initial state run at the same time and few parts are unfinished at any time. The rows do not depend on which thread
//! runs which scenario.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lab::Lab;

use super::Sweep;
use super::parts::{PART, Parts, SweepError};
use super::table::SweepRow;

/// Callbacks of a running sweep.
pub struct Watch<'a> {
    /// Decides whether to continue.
    pub go_on: &'a (dyn Fn() -> ControlFlow<()> + Sync),
    /// Called when a scenario is done.
    pub done: &'a (dyn Fn() + Sync),
}

/// The rows of a part so far.
struct PartRows {
    rows: Vec<Option<SweepRow>>,
    left: usize,
}

/// State that the threads share.
struct Shared<'a> {
    sweep: &'a Sweep,
    parts: &'a Parts<'a>,
    missing: &'a [usize],
    lab: &'a Lab,
    watch: &'a Watch<'a>,
    /// Position of the next scenario among the missing parts, each of length [`PART`].
    next: AtomicUsize,
    unfinished: Mutex<BTreeMap<usize, PartRows>>,
    trouble: Mutex<Option<SweepError>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the missing scenarios on this number of threads, until all are done or `watch` stops the run. If it stops
/// within a part, that part's rows are lost.
///
/// # Errors
/// A part cannot be read or written.
pub fn run(
    sweep: &Sweep,
    parts: &Parts<'_>,
    threads: usize,
    watch: &Watch<'_>,
) -> Result<(), SweepError> {
    let missing = parts.missing()?;
    let lab = Lab::with_drives(threads);
    let shared = Shared {
        sweep,
        parts,
        missing: &missing,
        lab: &lab,
        watch,
        next: AtomicUsize::new(0),
        unfinished: Mutex::default(),
        trouble: Mutex::default(),
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| while shared.step().is_continue() {});
        }
    });
    let trouble = shared.trouble.into_inner();
    match trouble.unwrap_or_else(PoisonError::into_inner) {
        Some(trouble) => Err(trouble),
        None => Ok(()),
    }
}

impl Shared<'_> {
    fn check_stop(&self) -> ControlFlow<()> {
        match locked(&self.trouble).is_some() {
            true => ControlFlow::Break(()),
            false => (self.watch.go_on)(),
        }
    }

    /// Takes the next scenario and runs it.
    fn step(&self) -> ControlFlow<()> {
        self.check_stop()?;
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(&part) = self.missing.get(place / PART) else {
            return ControlFlow::Break(());
        };
        let range = self.sweep.part(part);
        let within = place % PART;
        if within >= range.len() {
            return ControlFlow::Continue(());
        }
        let go_on = |_| self.check_stop();
        let Some(row) = self.sweep.row(range.start + within, self.lab, &go_on) else {
            return ControlFlow::Break(());
        };
        if let Err(trouble) = self.keep(part, within, row) {
            *locked(&self.trouble) = Some(trouble);
            return ControlFlow::Break(());
        }
        (self.watch.done)();
        ControlFlow::Continue(())
    }

    /// Stores a row, and writes its part if the row was the last.
    fn keep(&self, part: usize, within: usize, row: SweepRow) -> Result<(), SweepError> {
        let mut all = locked(&self.unfinished);
        let count = self.sweep.part(part).len();
        let unfinished = all.entry(part).or_insert_with(|| PartRows {
            rows: vec![None; count],
            left: count,
        });
        unfinished.rows[within] = Some(row);
        unfinished.left -= 1;
        if unfinished.left > 0 {
            return Ok(());
        }
        let whole = all.remove(&part);
        drop(all);
        let rows = whole.into_iter().flat_map(|it| it.rows).flatten();
        self.parts.keep(part, &rows.collect::<Vec<SweepRow>>())
    }
}
