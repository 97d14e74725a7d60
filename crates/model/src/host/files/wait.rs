//! The latency breakdown of a task that waited for a command of another task or of the file system.

use crate::anatomy::{Anatomy, Part};
use crate::command::Completion;
use crate::time::Time;

/// Converts the latency of a command below to that seen from above: time that kept its thread from issuing it is part
/// of the wait.
pub(super) fn seen(anatomy: &Anatomy) -> Anatomy {
    let busy = anatomy.get(Part::ThreadBusy);
    let mut seen = *anatomy;
    seen.take(Part::ThreadBusy);
    seen.add(Part::HostSubmission, busy);
    seen
}

/// Returns the parts of a wait from `since` for a command that has completed, and may have been sent before.
pub(super) fn waited(now: Time, since: Time, completion: &Completion) -> Anatomy {
    let mut seen = seen(&completion.anatomy);
    let span = now.since(since);
    if seen.total() != span {
        seen = seen.last(span);
        let rest = span.saturating_sub(seen.total());
        seen.add(Part::Tier, rest);
    }
    seen
}
