//! Lines that somebody outside can cause at will: a few in a time are said, of the rest how many there were.

use model::Span;

use crate::clock::Wall;

/// So many are said in each time.
const LINES: u32 = 10;
const TIME: Span = Span::from_ms(10_000);

/// Lines of one kind.
#[derive(Debug)]
pub(super) struct Few {
    /// What they tell of, in the plural.
    what: &'static str,
    since: Wall,
    said: u32,
    left_out: u64,
}

impl Few {
    pub(super) fn new(what: &'static str) -> Few {
        Few {
            what,
            since: Wall::default(),
            said: 0,
            left_out: 0,
        }
    }

    /// Says a line, unless there have been many.
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

    /// When the time is over: says how many were left out of it.
    pub(super) fn rest(&mut self, now: Wall, log: &mut dyn FnMut(&str)) {
        if now.since(self.since) >= TIME {
            self.since = now;
            self.said = 0;
            self.sum_up(log);
        }
    }

    /// Says how many were left out since that was said last.
    pub(super) fn sum_up(&mut self, log: &mut dyn FnMut(&str)) {
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            log(&format!("and {left_out} more {}", self.what));
        }
    }

    /// Whether some wait to be counted.
    pub(super) fn some_left_out(&self) -> bool {
        self.left_out > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_lines_a_few_are_said_and_the_rest_counted() {
        let mut few = Few::new("things");
        let mut said: Vec<String> = Vec::new();
        for round in 0..1_000 {
            let now = Wall::from_ns(round * 15_000_000);
            few.say(now, &mut |line| said.push(line.into()), || {
                format!("thing {round}")
            });
        }
        few.sum_up(&mut |line| said.push(line.into()));
        // 15 seconds: ten lines of each begun ten seconds, and two sums.
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
