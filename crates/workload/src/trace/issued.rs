//! Requests issued to a drive that wait for their completion, for traces that have both as events of their own.

use std::collections::{HashMap, VecDeque};

use super::requests::Requests;

/// A request's index, if it is wanted, and when it was issued, in ns.
type Waiting = (Option<usize>, u64);

/// By device and sector, first in first out.
#[derive(Default)]
pub(super) struct Issued(HashMap<(u64, u64), VecDeque<Waiting>>);

impl Issued {
    /// A request was issued; `index` names it for [`Requests::complete`].
    pub(super) fn issue(&mut self, at: (u64, u64), index: Option<usize>, ns: u64) {
        self.0.entry(at).or_default().push_back((index, ns));
    }

    /// The driver gave it back: it will be issued again, and until then nothing can complete it.
    pub(super) fn requeue(&mut self, at: (u64, u64), requests: &mut Requests) {
        requests.note("requests put back by the driver (each further issue counts)");
        if let Some(waiting) = self.0.get_mut(&at) {
            waiting.pop_back();
        }
    }

    /// The oldest one there has completed.
    pub(super) fn complete(&mut self, at: (u64, u64), ns: u64, requests: &mut Requests) {
        let Some((index, issued_ns)) = self.0.get_mut(&at).and_then(VecDeque::pop_front) else {
            requests.note("completions without an issue");
            return;
        };
        if self.0.get(&at).is_some_and(VecDeque::is_empty) {
            self.0.remove(&at);
        }
        if let Some(index) = index {
            requests.complete(index, ns.saturating_sub(issued_ns));
        }
    }

    /// The trace has ended.
    pub(super) fn finish(self, requests: &mut Requests) {
        let left: usize = self.0.values().map(VecDeque::len).sum();
        for _ in 0..left {
            requests.note("issued requests without a completion");
        }
    }
}
