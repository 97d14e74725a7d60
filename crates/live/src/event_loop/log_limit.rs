//! Rate limiter for log lines that remote clients can trigger: a few lines per interval are logged, the others are
//! counted.

use model::Span;

use crate::clock::Wall;

/// Maximum number of lines logged per interval.
const LINES: u32 = 10;
const TIME: Span = Span::from_ms(10_000);

/// Log lines of one kind.
#[derive(Debug)]
pub(super) struct LogRateLimiter {
    /// Subject of the lines, in the plural.
    what: &'static str,
    since: Wall,
    said: u32,
    left_out: u64,
}

impl LogRateLimiter {
    pub(super) fn new(what: &'static str) -> LogRateLimiter {
        LogRateLimiter {
            what,
            since: Wall::default(),
            said: 0,
            left_out: 0,
        }
    }

    /// Logs a line, unless there have been too many.
    pub(super) fn say(
        &mut self,
        now: Wall,
        log: &mut dyn FnMut(&str),
        line: impl FnOnce() -> String,
    ) {
        self.rest(now, log);
        if self.said < LINES {
            self.said += 1;
            log(&line());
        } else {
            self.left_out += 1;
        }
    }

    /// At the end of an interval, logs the number of suppressed lines.
    pub(super) fn rest(&mut self, now: Wall, log: &mut dyn FnMut(&str)) {
        if now.since(self.since) >= TIME {
            self.since = now;
            self.said = 0;
            self.sum_up(log);
        }
    }

    /// Logs the number of lines suppressed since the last such message.
    pub(super) fn sum_up(&mut self, log: &mut dyn FnMut(&str)) {
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            log(&format!("and {left_out} more {}", self.what));
        }
    }

    /// Checks whether suppressed lines have not been reported.
    pub(super) fn some_left_out(&self) -> bool {
        self.left_out > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_lines_a_few_are_said_and_the_rest_counted() {
        let mut few = LogRateLimiter::new("things");
        let mut said: Vec<String> = Vec::new();
        for round in 0..1_000 {
            let now = Wall::from_ns(round * 15_000_000);
            few.say(now, &mut |line| said.push(line.into()), || {
                format!("thing {round}")
            });
        }
        few.sum_up(&mut |line| said.push(line.into()));
        // 15 seconds: ten lines in each of two intervals, and two sums.
        assert_eq!(said.len(), 22, "{said:?}");
        let told: u64 = said
            .iter()
            .filter_map(|line| {
                line.strip_prefix("and ")?
                    .split(' ')
                    .next()?
                    .parse::<u64>()
                    .ok()
            })
            .sum();
        assert_eq!(told, 980);
    }
}
