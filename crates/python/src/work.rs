//! Long work: runs without the interpreter's lock, can be ended by Ctrl-C, and never passes a panic to Python.

use std::any::Any;
use std::ops::{ControlFlow, RangeInclusive};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use text::problem::{Problem, Problems};

create_exception!(
    drivelab,
    Error,
    PyException,
    "An operation of drivelab failed."
);
create_exception!(
    drivelab,
    InputError,
    Error,
    "Invalid input: all problems, each with the allowed values, as the program prints them."
);
create_exception!(
    drivelab,
    Defect,
    Error,
    "A fault of drivelab itself, worth a report."
);

/// Interval of checks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// Whether the user has asked to stop.
#[derive(Default)]
pub(crate) struct Stop(AtomicBool);

/// Unwinds from work that cannot return a partial result.
struct InterruptPanic;

impl Stop {
    /// Stops the work after the user has asked to.
    pub(crate) fn check(&self) -> ControlFlow<()> {
        match self.0.load(Ordering::Relaxed) {
            false => ControlFlow::Continue(()),
            true => ControlFlow::Break(()),
        }
    }

    /// Leaves the work by unwinding after the user has asked to stop: for work that only reports progress and cannot
    /// be stopped otherwise.
    pub(crate) fn or_leave(&self) {
        if self.check().is_break() {
            resume_unwind(Box::new(InterruptPanic));
        }
    }
}

/// Checks that the process was not forked from one that had begun to work: its threads do not exist in the fork, and
/// waiting for them would never end.
///
/// # Errors
/// This is such a process.
pub(crate) fn not_forked() -> PyResult<()> {
    static FIRST: OnceLock<u32> = OnceLock::new();
    let own = std::process::id();
    match *FIRST.get_or_init(|| own) == own {
        true => Ok(()),
        false => Err(Error::new_err(
            "this process was forked from one that had used drivelab already: start processes by \"spawn\", such as \
             ProcessPoolExecutor(mp_context=multiprocessing.get_context(\"spawn\"))",
        )),
    }
}

/// Runs work without the interpreter's lock. Ctrl-C asks the work to stop; its partial result is then returned.
///
/// # Errors
/// `KeyboardInterrupt` if it left by [`Stop::or_leave`], and [`Defect`] if it panicked.
pub(crate) fn away<T: Send>(py: Python<'_>, work: impl FnOnce(&Stop) -> T + Send) -> PyResult<T> {
    not_forked()?;
    let stop = Stop::default();
    let asked = &stop;
    thread::scope(|scope| {
        let (done, mut ended) = channel::<()>();
        let worker = scope.spawn(move || {
            // Dropped when the work is done, which the other end detects.
            let _done = done;
            catch_unwind(AssertUnwindSafe(|| work(asked)))
        });
        let mut interrupt = None;
        loop {
            let heard = py.detach(move || {
                let heard = ended.recv_timeout(LOOK);
                (ended, heard)
            });
            ended = heard.0;
            if heard.1 != Err(RecvTimeoutError::Timeout) {
                break;
            }
            if let Err(signal) = py.check_signals() {
                asked.0.store(true, Ordering::Relaxed);
                interrupt = Some(signal);
            }
        }
        match worker.join().and_then(|result| result) {
            Ok(result) => Ok(result),
            Err(panic) => Err(match interrupt.filter(|_| panic.is::<InterruptPanic>()) {
                Some(signal) => signal,
                None => Defect::new_err(panic_message(&*panic)),
            }),
        }
    })
}

/// Panics as a defect would: the package's tests check that it becomes an exception.
#[pyfunction]
#[pyo3(name = "_broken_off")]
pub(crate) fn broken_off(py: Python<'_>, words: String) -> PyResult<()> {
    away(py, |_| std::panic::panic_any(words))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
    let words = words.or_else(|| panic.downcast_ref::<String>().cloned());
    format!(
        "a fault of drivelab itself: {}",
        words.unwrap_or_else(|| String::from("it panicked"))
    )
}

/// Returns problems as a Python exception with the text that the program prints; options are named as arguments.
pub(crate) fn raised(problems: Problems) -> PyErr {
    let each = problems.0.into_iter().map(as_argument);
    let problems = Problems(each.collect());
    let text = problems.render(false);
    match problems.is_defect() {
        true => Defect::new_err(text),
        false => InputError::new_err(text),
    }
}

/// Returns a problem of the command line with the names of Python arguments: `--replace-after` becomes `replace_after`.
/// Text between backticks is a command and is not changed.
fn as_argument(problem: Problem) -> Problem {
    let is_option = problem.origin.starts_with("--");
    if problem.origin != "command line" && !is_option {
        return problem;
    }
    Problem {
        origin: match is_option {
            true => arguments(&problem.origin),
            false => String::from("arguments"),
        },
        what: arguments(&problem.what),
        help: problem.help.as_deref().map(arguments),
        ..problem
    }
}

/// Returns a text with options of the command line as arguments.
fn arguments(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(index, part)| match index % 2 {
        0 => {
            let words = part.split(' ').map(|word| match word.strip_prefix("--") {
                Some(option) => {
                    let end = option.find('=').unwrap_or(option.len());
                    option[..end].replace('-', "_") + &option[end..]
                }
                None => word.to_owned(),
            });
            words.collect::<Vec<String>>().join(" ")
        }
        _ => part.to_owned(),
    });
    parts.collect::<Vec<String>>().join("`")
}

/// Returns a problem of an argument, with what would be right.
pub(crate) fn of_argument(what: impl Into<String>, help: impl Into<String>) -> Problems {
    let whole = Problems::whole("arguments", what);
    let help = help.into();
    let with_help = whole.0.into_iter().map(|problem| Problem {
        help: Some(help.clone()),
        ..problem
    });
    Problems(with_help.collect())
}

/// Returns the value that was read; its problems are added to the others.
pub(crate) fn collect_problems<T>(read: Result<T, Problems>, problems: &mut Problems) -> Option<T> {
    read.map_err(|more| problems.0.extend(more.0)).ok()
}

/// Returns a whole number within its limits, or reports a problem.
pub(crate) fn check_range<T: TryFrom<i64>>(
    name: &str,
    number: Option<i64>,
    limits: RangeInclusive<i64>,
    problems: &mut Problems,
) -> Option<T> {
    let number = number?;
    if limits.contains(&number) {
        return T::try_from(number).ok();
    }
    let help = format!("from {} to {}", limits.start(), limits.end());
    problems
        .0
        .extend(of_argument(format!("{name}: {number}"), help).0);
    None
}
