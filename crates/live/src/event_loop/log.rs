//! Log of the event loop: lines for the server's owner, with a rate limit for lines that clients can trigger.

use super::log_limit::LogRateLimiter;
use crate::clock::Wall;

/// Receives log lines.
pub(super) struct Log {
    say: Box<dyn FnMut(&str)>,
    refusals: LogRateLimiter,
    endings: LogRateLimiter,
}

impl Log {
    pub(super) fn new(say: Box<dyn FnMut(&str)>) -> Log {
        Log {
            say,
            refusals: LogRateLimiter::new("connections refused"),
            endings: LogRateLimiter::new("connections that ended with an error"),
        }
    }

    /// Logs a line.
    pub(super) fn say(&mut self, line: &str) {
        (self.say)(line);
    }

    /// Logs that a connection was rejected.
    pub(super) fn refused(&mut self, now: Wall, line: impl FnOnce() -> String) {
        self.refusals.say(now, &mut self.say, line);
    }

    /// Logs that a connection did not end normally.
    pub(super) fn ended(&mut self, now: Wall, line: impl FnOnce() -> String) {
        self.endings.say(now, &mut self.say, line);
    }

    /// At the end of an interval, logs the number of suppressed lines.
    pub(super) fn rest(&mut self, now: Wall) {
        self.refusals.rest(now, &mut self.say);
        self.endings.rest(now, &mut self.say);
    }

    /// Logs the number of lines suppressed since the last such message.
    pub(super) fn sum_up(&mut self) {
        self.refusals.sum_up(&mut self.say);
        self.endings.sum_up(&mut self.say);
    }

    /// Checks whether suppressed lines have not been reported.
    pub(super) fn some_left_out(&self) -> bool {
        self.refusals.some_left_out() || self.endings.some_left_out()
    }
}
