//! Commands that fio's passthrough engine sends instead of plain writes (`write_mode` of io_uring_cmd).
//!
//! Source: fio's HOWTO. Write Zeroes and Write Uncorrectable move no data: both are simulated as Write Zeroes. Verify
//! is simulated as a read, which moves its data over the link where Verify moves none. Zone Append is a write at the
//! write pointer of a zone.

use model::{Op, Stream};
use serde::{Deserialize, Serialize};

/// Command of a write, by its name in NVMe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum WriteMode {
    /// The default: moves data to the drive.
    Write,
    /// Moves no data.
    Zeroes,
    /// Moves no data, and marks the blocks as unreadable.
    Uncorrectable,
    /// Reads the medium and moves no data.
    Verify,
    /// A write to the write pointer of a zone.
    ZoneAppend,
}

/// Returns the command of an I/O: a write is drawn from these modes, with their shares in percent.
#[inline]
pub(crate) fn sent_op(op: Op, modes: &[(WriteMode, u32)], stream: &mut Stream) -> Op {
    if op == Op::Write && !modes.is_empty() {
        draw(modes, stream)
    } else {
        op
    }
}

#[inline(never)]
fn draw(modes: &[(WriteMode, u32)], stream: &mut Stream) -> Op {
    let mut at = match modes {
        [] | [_] => 0,
        _ => stream.uniform_below(100) as u32,
    };
    let drawn = modes
        .iter()
        .find(|(_, share)| match at.checked_sub(*share) {
            Some(rest) => {
                at = rest;
                false
            }
            None => true,
        });
    match drawn.or(modes.last()).map(|drawn| drawn.0) {
        Some(WriteMode::Zeroes | WriteMode::Uncorrectable) => Op::WriteZeroes,
        Some(WriteMode::Verify) => Op::Read,
        Some(WriteMode::Write | WriteMode::ZoneAppend) | None => Op::Write,
    }
}

/// NUMA nodes on whose cores the threads of a job run (`numa_cpu_nodes`). Node 0 is the socket of the drive.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum CpuNodes {
    /// Not given: the cores of the drive's socket.
    #[default]
    Drive,
    /// All nodes of the host.
    All,
    /// Numbers of nodes.
    List(Vec<u16>),
}

impl CpuNodes {
    /// Checks whether no nodes are given.
    pub fn is_drive(&self) -> bool {
        *self == CpuNodes::Drive
    }

    /// Returns the nodes on a host with `sockets` sockets, in their order.
    pub fn on_host(&self, sockets: u16) -> Vec<u16> {
        match self {
            CpuNodes::Drive => vec![0],
            CpuNodes::All => (0..sockets.max(1)).collect(),
            CpuNodes::List(nodes) => nodes.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_drawn_by_their_shares() {
        let mut stream = Stream::new(1, "test");
        let modes = [
            (WriteMode::Write, 60),
            (WriteMode::Zeroes, 30),
            (WriteMode::Verify, 10),
        ];
        let mut seen = [0; 3];
        for _ in 0..10_000 {
            match sent_op(Op::Write, &modes, &mut stream) {
                Op::Write => seen[0] += 1,
                Op::WriteZeroes => seen[1] += 1,
                Op::Read => seen[2] += 1,
                other => panic!("{other:?}"),
            }
        }
        for (seen, wanted) in seen.into_iter().zip([6000, 3000, 1000]) {
            assert!(
                (wanted - 200..wanted + 200).contains(&seen),
                "{seen} of {wanted}"
            );
        }
        assert_eq!(sent_op(Op::Read, &modes, &mut stream), Op::Read);
        let appends = [(WriteMode::ZoneAppend, 100)];
        assert_eq!(sent_op(Op::Write, &appends, &mut stream), Op::Write);
    }
}
