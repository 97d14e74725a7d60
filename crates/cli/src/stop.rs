//! Ctrl-C and SIGTERM during a run. With partial results, the first signal asks the run to end and to print them
//! ([`Stop`]). Without partial results, the program ends at once, unless it is writing its results, which are
//! completed ([`ImmediateStop`]). A second signal always ends the program at once.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::{Failure, write_stderr};

/// Whether the user has asked to stop.
pub(crate) struct Stop {
    /// The signal; 0 if there was none.
    signal: Arc<AtomicUsize>,
}

impl Stop {
    /// Begins to handle the signals.
    pub(crate) fn on_signals() -> Result<Stop, Failure> {
        let signal = Arc::new(AtomicUsize::new(0));
        let once = Arc::new(AtomicBool::new(false));
        let failed = |error: io::Error| Failure::failed("taking signals", error);
        for number in [SIGINT, SIGTERM] {
            // Handlers run in the order of registration: only the second signal finds the flag set.
            let code = i32::from(exit_code(number));
            flag::register_conditional_shutdown(number, code, once.clone()).map_err(failed)?;
            flag::register(number, once.clone()).map_err(failed)?;
            flag::register_usize(number, signal.clone(), number as usize).map_err(failed)?;
        }
        Ok(Stop { signal })
    }

    /// Stops the work after the user has asked to.
    pub(crate) fn check(&self) -> ControlFlow<()> {
        match self.signal.load(Ordering::Relaxed) {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    /// Prints that the following results are incomplete, if the user has asked to stop.
    pub(crate) fn announce(&self) {
        match self.signal.load(Ordering::Relaxed) {
            0 => {}
            signal => write_stderr(&format!(
                "stopped by signal {signal}: these are the results so far"
            )),
        }
    }

    /// Returns the exit of a stopped program, after it has printed its partial results.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        match self.signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(Failure::Stopped(exit_code(signal as i32))),
        }
    }
}

/// Ends the program at once, but never between two files of one result or within one.
pub(crate) struct ImmediateStop {
    /// Set unless results are being written, and by a signal during writing.
    ends: Arc<AtomicBool>,
    /// The signal that arrived while results were being written; 0 if there was none.
    signal: Arc<AtomicUsize>,
}

impl ImmediateStop {
    /// Begins to handle the signals.
    pub(crate) fn on_signals() -> Result<ImmediateStop, Failure> {
        let ends = Arc::new(AtomicBool::new(true));
        let signal = Arc::new(AtomicUsize::new(0));
        let failed = |error: io::Error| Failure::failed("taking signals", error);
        for number in [SIGINT, SIGTERM] {
            // Handlers run in the order of registration: a signal that does not end the program lets the next one do
            // it.
            let code = i32::from(exit_code(number));
            flag::register_conditional_shutdown(number, code, ends.clone()).map_err(failed)?;
            flag::register(number, ends.clone()).map_err(failed)?;
            flag::register_usize(number, signal.clone(), number as usize).map_err(failed)?;
        }
        Ok(ImmediateStop { ends, signal })
    }

    /// Writes results: all of them, or none if the user has asked to stop before. Fails as `write` does, or because
    /// the user asked to stop meanwhile.
    pub(crate) fn results(
        &self,
        write: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.ends.store(false, Ordering::SeqCst);
        let written = write();
        self.ends.store(true, Ordering::SeqCst);
        match self.signal.load(Ordering::SeqCst) {
            0 => written,
            signal => written.and(Err(Failure::Stopped(exit_code(signal as i32)))),
        }
    }
}

/// Returns the exit code as a shell reports it: 130 after Ctrl-C.
fn exit_code(signal: i32) -> u8 {
    128 + signal as u8
}
