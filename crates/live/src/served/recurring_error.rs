//! Problems of a store on the host's side (its disk is full): reported at once, then at intervals with their count.

use std::io::Error;

use model::Span;

use crate::clock::Wall;

/// Interval between messages.
const AGAIN: Span = Span::from_ms(60_000);

/// Problems of one kind.
#[derive(Debug, Default)]
pub(super) struct RecurringError {
    what: String,
    count: u64,
    told: u64,
    next: Wall,
}

impl RecurringError {
    /// Records one more occurrence of this error.
    pub(super) fn note(&mut self, error: &Error) {
        self.count += 1;
        self.what = error.to_string();
    }

    /// Returns a message that is due at `now`.
    pub(super) fn next_message(&mut self, now: Wall) -> Option<String> {
        if self.count == self.told || now < self.next {
            return None;
        }
        self.told = self.count;
        self.next = now.plus(AGAIN);
        Some(match self.count {
            1 => self.what.clone(),
            count => format!("{}, {count} times by now", self.what),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn trouble_is_told_at_once_and_then_once_a_minute() {
        let mut trouble = RecurringError::default();
        let mut told = Vec::new();
        for second in 0..130 {
            let now = Wall::from_ns(1 + second * 1_000_000_000);
            trouble.note(&Error::from(ErrorKind::StorageFull));
            told.extend(trouble.next_message(now));
            assert_eq!(trouble.next_message(now), None);
        }
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[2].ends_with("121 times by now"), "{told:?}");
    }
}
