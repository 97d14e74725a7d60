//! What the loop says of itself: lines for its owner, few of those that clients can cause at will.

use super::few::Few;
use crate::clock::Wall;

/// Takes lines.
pub(super) struct Log {
    say: Box<dyn FnMut(&str)>,
    refusals: Few,
    endings: Few,
}

impl Log {
    pub(super) fn new(say: Box<dyn FnMut(&str)>) -> Log {
        Log {
            say,
            refusals: Few::new("connections refused"),
            endings: Few::new("connections that did not end well"),
        }
    }

    /// Says a line.
    pub(super) fn say(&mut self, line: &str) {
        (self.say)(line);
    }

    /// A connection was refused.
    pub(super) fn refused(&mut self, now: Wall, line: impl FnOnce() -> String) {
        self.refusals.say(now, &mut self.say, line);
    }

    /// A connection has not ended well.
    pub(super) fn ended(&mut self, now: Wall, line: impl FnOnce() -> String) {
        self.endings.say(now, &mut self.say, line);
    }

    /// When the time is over: says how many lines were left out of it.
    pub(super) fn rest(&mut self, now: Wall) {
        self.refusals.rest(now, &mut self.say);
        self.endings.rest(now, &mut self.say);
    }

    /// Says how many lines were left out since that was said last.
    pub(super) fn sum_up(&mut self) {
        self.refusals.sum_up(&mut self.say);
        self.endings.sum_up(&mut self.say);
    }

    /// Whether lines that were left out are still to be counted.
    pub(super) fn some_left_out(&self) -> bool {
        self.refusals.some_left_out() || self.endings.some_left_out()
    }
}
