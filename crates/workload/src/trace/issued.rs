//! Issued requests that wait for their completion, for traces with issue and completion as separate events.

use std::collections::{HashMap, VecDeque};

use super::requests::Requests;

/// Index of a request, if it is selected, and its issue time in ns.
type IssuedRequest = (Option<usize>, u64);

/// Waiting requests by device and sector, first in, first out.
#[derive(Default)]
pub(super) struct IssueTable(HashMap<(u64, u64), VecDeque<IssuedRequest>>);

impl IssueTable {
    /// Records an issue; `index` identifies the request for [`Requests::complete`].
    pub(super) fn issue(&mut self, at: (u64, u64), index: Option<usize>, ns: u64) {
        self.0.entry(at).or_default().push_back((index, ns));
    }

    /// Handles a requeue: the request will be issued again, and cannot complete before that.
    pub(super) fn requeue(&mut self, at: (u64, u64), requests: &mut Requests) {
        requests.note("requests put back by the driver (each further issue counts)");
        if let Some(waiting) = self.0.get_mut(&at) {
            waiting.pop_back();
        }
    }

    /// Completes the oldest request at this sector.
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

    /// Handles the end of the trace.
    pub(super) fn finish(self, requests: &mut Requests) {
        let left: usize = self.0.values().map(VecDeque::len).sum();
        for _ in 0..left {
            requests.note("issued requests without a completion");
        }
    }
}
