//! A program that is recorded: its time limit, and progress while it runs.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{Args, source};
use crate::failure::Failure;
use crate::progress::Progress;

/// A program that is waited for.
pub(super) struct TimedProgram<'a> {
    /// Command line for messages.
    program: &'a str,
    log: &'a Path,
    limit: Duration,
    begin: Instant,
    is_late: AtomicBool,
    bar: Progress,
}

impl<'a> TimedProgram<'a> {
    pub(super) fn new(args: &Args, program: &'a str, log: &'a Path) -> TimedProgram<'a> {
        TimedProgram {
            program,
            log,
            limit: args.program_limit,
            begin: Instant::now(),
            is_late: AtomicBool::new(false),
            bar: Progress::new("recording {elapsed}, {msg}"),
        }
    }

    /// Shows progress; breaks when the time is over, or when `go_on` does.
    pub(super) fn goes_on(&self, go_on: &dyn Fn() -> ControlFlow<()>) -> ControlFlow<()> {
        let bytes = self.log.metadata().map_or(0, |it| it.len());
        let recorded = text::digits::bytes_decimal(bytes as f64);
        let limit = source::seconds(self.limit);
        self.bar.message(format!(
            "{} runs, {recorded} recorded (--program-limit {limit})",
            self.program
        ));
        if self.begin.elapsed() > self.limit {
            self.is_late.store(true, Ordering::Relaxed);
            return ControlFlow::Break(());
        }
        go_on()
    }

    /// Checks that the program has ended within its limit. `printed` is the end of its output.
    ///
    /// # Errors
    /// It has not.
    pub(super) fn in_time(&self, printed: &str) -> Result<(), Failure> {
        self.bar.finish();
        if !self.is_late.load(Ordering::Relaxed) {
            return Ok(());
        }
        let printed = match printed.trim_end() {
            "" => String::new(),
            printed => format!("\nthe end of its output:\n{printed}"),
        };
        Err(Failure::Failed(format!(
            "{}: did not end within {} (--program-limit) and was killed: the recording ends with the program, so it must \
             end by itself and stop the servers that it has started; --program-limit 1h allows more time{printed}",
            self.program,
            source::seconds(self.limit)
        )))
    }
}
