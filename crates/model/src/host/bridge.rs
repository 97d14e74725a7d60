//! A PCIe switch in the way: latency of its crossings, and the bandwidth of its lanes to the host.
//!
//! It passes packets on as they come, so that data is late by a crossing and not by its whole transfer, unless more comes
//! than its lanes carry. Left out: that completions and requests share the lanes with data.

use super::config::Bridge;
use crate::command::{Command, Op};
use crate::time::{Span, Time};

/// What goes through it both ways.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crossings {
    /// When the lanes from and to the host are free.
    from_host: Time,
    to_host: Time,
}

impl Crossings {
    /// A command is given to the drive at `now`: when the drive has it, and the data of a write.
    pub(super) fn down(&mut self, now: Time, bridge: &Bridge, command: &Command) -> Time {
        if command.op == Op::Write {
            let at = now + bridge.crossing * 5;
            carry(&mut self.from_host, at, bridge, command.bytes)
        } else {
            now + bridge.crossing * 3
        }
    }

    /// The drive has completed a command at `now`: when the host sees it.
    pub(super) fn up(&mut self, now: Time, bridge: &Bridge, command: &Command) -> Time {
        let at = now + bridge.crossing;
        if command.op == Op::Read {
            carry(&mut self.to_host, at, bridge, command.bytes)
        } else {
            at
        }
    }
}

/// When data that comes steadily until `at` has passed lanes that are busy until `free`.
fn carry(free: &mut Time, at: Time, bridge: &Bridge, bytes: u32) -> Time {
    let takes = Span::per_bytes(bridge.ps_per_byte, u64::from(bytes));
    *free = (*free + takes).max(at);
    *free
}
