//! Notes on power states of idle drives: what a host with power states does to the results, or that they are left out.
//!
//! Linux lets a drive enter non-operational power states by itself when it is idle (autonomous power state transitions,
//! APST; `model::host::PowerManaged`). Only hosts with `[power_states]` do so here. On other hosts, a note says what is
//! left out if a job pauses for long enough. Not checked on those hosts: gaps in replayed traces.

use catalogue::{DriveSheet, HostSheet};
use model::Span;
use text::digits::digits;
use workload::job::{Job, Rate};

use crate::output::remark;

/// Idle time after which Linux lets a drive enter its first non-operational state.
const ENTERED: Span = Span::from_ms(100);

/// Drives that a note names; it counts the others.
const NAMED: usize = 4;

/// Prints what the power states of idle drives do to the results, if this host lets the drives enter them.
pub(crate) fn note_on_power_states<'a>(
    drives: impl IntoIterator<Item = &'a DriveSheet>,
    host: &HostSheet,
) {
    let mut after = Span::from_ms(0);
    let mut sleepers = Vec::new();
    for drive in drives {
        let transitions = drive.power_transitions(&host.config);
        if let Some(first) = transitions.first() {
            after = first.after;
            let exits = transitions.iter().map(|it| digits(it.exit.us() / 1e3));
            let exits: Vec<String> = exits.collect();
            sleepers.push(format!("{} {} ms", drive.id, exits.join(" or ")));
        }
    }
    if sleepers.is_empty() {
        return;
    }
    let others = sleepers.len().saturating_sub(NAMED);
    sleepers.truncate(NAMED);
    let mut named = sleepers.join(", ");
    if others > 0 {
        named = format!("{named}, and {others} more drives");
    }
    let what = format!(
        "the host {} lets idle drives enter power states: the first command of a run, and a command after {} ms without one, waits until the \
         drive is awake ({named}). These latencies are assumed",
        host.id,
        digits(after.us() / 1e3),
    );
    remark("note", &what);
}

/// As [`note_on_power_states`]. On a host without power states, prints that they are left out, if a job pauses long
/// enough for a drive to enter one.
pub(crate) fn note_on_power_states_of_jobs(drives: &[DriveSheet], host: &HostSheet, jobs: &[Job]) {
    if host.config.power_states.is_some() {
        return note_on_power_states(drives, host);
    }
    if !jobs.iter().any(pauses) {
        return;
    }
    for drive in drives.iter().filter(|drive| drive.has_power_states()) {
        let what = format!(
            "{}: power states during pauses of 100 ms and more are left out, as on a server. On a desktop computer, the first I/O after such a \
             pause waits some milliseconds until the drive wakes (--host linux-desktop)",
            drive.id
        );
        remark("note", &what);
    }
}

/// Whether a job pauses for long enough between I/Os: by its think time, or because its rate is low.
fn pauses(job: &Job) -> bool {
    let slow = |rate: &Rate| match *rate {
        Rate::Iops(rate) => rate <= 10,
        Rate::Bytes(rate) => rate <= 10 * 4096,
        Rate::Every(gap) => gap >= ENTERED,
    };
    job.think.is_some_and(|think| think.pause >= ENTERED) || job.rate.iter().flatten().any(slow)
}
