//! Writer of Windows' disk events.

use super::{Io, Keeps, Writer, lines};

/// Entry of the list of writers.
pub(crate) const WRITER: (&str, Keeps, Writer) = (
    "xperf",
    Keeps {
        volume: true,
        latency: true,
        tick_ns: 1_000,
        files: false,
    },
    xperf,
);

/// Writes the events of Windows' disks, between others, as `xperf -a dumper` does.
fn xperf(ios: &[Io]) -> Vec<u8> {
    let columns = "TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr,   ByteOffset,     IOSize, ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,         FileObject, FileName";
    let mut out = format!(
        "BeginHeader\n  DiskRead,  {columns}\n  DiskWrite,  {columns}\n  DiskReadInit,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr\nEndHeader\n"
    )
    .into_bytes();
    out.extend(lines(ios, |io| {
        let done = 5_000_000 + io.at_us + io.latency_us;
        format!(
            "  {}, {done}, System (   4), 1234, 0xffffe000, {:#012x}, {:#010x}, {}, {}, 0x060043, 1, Normal, Original, 0xffffe001, \"C:\\a, b\"",
            io.letter("DiskRead", "DiskWrite"),
            io.sector * 512,
            io.bytes(),
            io.latency_us,
            io.volume,
        )
    }));
    out
}
