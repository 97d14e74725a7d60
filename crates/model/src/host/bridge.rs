//! A PCIe switch between host and drive: latency of its crossings, and bandwidth of its lanes to the host. Latency of the
//! link between two sockets.
//!
//! The switch forwards packets as they arrive. Data is therefore late by one crossing and not by its whole transfer,
//! unless more data arrives than its lanes carry. Not modelled: completions and requests share the lanes with data.

use super::config::Bridge;
use crate::command::{Command, Op};
use crate::time::{Span, Time};

/// State of the switch's lanes, in both directions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crossings {
    /// When the lanes from the host, and to the host, become free.
    from_host: Time,
    to_host: Time,
}

impl Crossings {
    /// A command is sent to the drive at `now`. Returns when it has arrived, including the data of a write.
    pub(super) fn down(&mut self, now: Time, bridge: &Bridge, command: &Command) -> Time {
        if command.op == Op::Write {
            let at = now + bridge.crossing * 5;
            carry(&mut self.from_host, at, bridge, command.bytes)
        } else {
            now + bridge.crossing * 3
        }
    }

    /// The drive has completed a command at `now`. Returns when the host sees the completion.
    pub(super) fn up(&mut self, now: Time, bridge: &Bridge, command: &Command) -> Time {
        let at = now + bridge.crossing;
        if command.op == Op::Read {
            carry(&mut self.to_host, at, bridge, command.bytes)
        } else {
            at
        }
    }
}

/// Returns how long a command takes from the socket of its thread to the drive's. `crossing` is the time of one
/// crossing: the doorbell, and for a write the request for its data and the data.
pub(super) fn crossing_down(crossing: Span, command: &Command) -> Span {
    if command.op == Op::Write {
        crossing * 3
    } else {
        crossing
    }
}

/// Returns when data that arrives steadily until `at` has passed lanes that are busy until `free`.
fn carry(free: &mut Time, at: Time, bridge: &Bridge, bytes: u32) -> Time {
    let takes = Span::per_bytes(bridge.ps_per_byte, u64::from(bytes));
    *free = (*free + takes).max(at);
    *free
}
