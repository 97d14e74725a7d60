//! Trace writers, one function per format: inputs for the tests of the readers.

use std::fmt::Write as _;
use std::io::Write as _;

#[path = "xperf.rs"]
mod xperf;

/// One request, in units that all formats can represent: microseconds, sectors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Io {
    pub(crate) at_us: u64,
    pub(crate) write: bool,
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
    pub(crate) volume: u8,
    pub(crate) latency_us: u64,
}

impl Io {
    fn bytes(&self) -> u64 {
        u64::from(self.sectors) * 512
    }
    fn letter(&self, read: &'static str, write: &'static str) -> &'static str {
        if self.write { write } else { read }
    }
}

/// The properties of an [`Io`] that a format preserves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keeps {
    pub(crate) volume: bool,
    pub(crate) latency: bool,
    /// Nanoseconds per tick of its clock.
    pub(crate) tick_ns: u64,
    /// Whether the format names files, which the reader places.
    pub(crate) files: bool,
}

pub(crate) type Writer = fn(&[Io]) -> Vec<u8>;

/// Name on the command line, preserved properties, and writer. (Two entries each for vscsi, iolog and meta: their
/// versions.)
pub(crate) const WRITERS: &[(&str, Keeps, Writer)] = &[
    (
        "vscsi",
        Keeps {
            volume: false,
            latency: false,
            tick_ns: 1_000,
            files: false,
        },
        vscsi_1,
    ),
    (
        "vscsi",
        Keeps {
            volume: false,
            latency: true,
            tick_ns: 1_000,
            files: false,
        },
        vscsi_2,
    ),
    (
        "mqsim",
        Keeps {
            volume: true,
            latency: false,
            tick_ns: 1,
            files: false,
        },
        mqsim,
    ),
    (
        "disksim",
        Keeps {
            volume: true,
            latency: false,
            tick_ns: 1_000,
            files: false,
        },
        disksim,
    ),
    (
        "msr",
        Keeps {
            volume: true,
            latency: true,
            tick_ns: 100,
            files: false,
        },
        msr,
    ),
    (
        "systor",
        Keeps {
            volume: true,
            latency: true,
            tick_ns: 1,
            files: false,
        },
        systor,
    ),
    (
        "tencent",
        Keeps {
            volume: true,
            latency: false,
            tick_ns: 1_000_000_000,
            files: false,
        },
        tencent,
    ),
    (
        "spc",
        Keeps {
            volume: true,
            latency: false,
            tick_ns: 1_000,
            files: false,
        },
        spc,
    ),
    (
        "blktrace",
        Keeps {
            volume: true,
            latency: true,
            tick_ns: 1,
            files: false,
        },
        blktrace,
    ),
    (
        "iolog",
        Keeps {
            volume: true,
            latency: false,
            tick_ns: 1_000,
            files: false,
        },
        iolog_2,
    ),
    (
        "iolog",
        Keeps {
            volume: true,
            latency: false,
            tick_ns: 1_000,
            files: false,
        },
        iolog_3,
    ),
    (
        "alicloud",
        Keeps {
            volume: true,
            latency: false,
            tick_ns: 1_000,
            files: false,
        },
        alicloud,
    ),
    (
        "fiu",
        Keeps {
            volume: true,
            latency: false,
            tick_ns: 1,
            files: false,
        },
        fiu,
    ),
    (
        "meta",
        Keeps {
            volume: true,
            latency: false,
            tick_ns: 1_000,
            files: true,
        },
        meta_blanks,
    ),
    (
        "meta",
        Keeps {
            volume: true,
            latency: false,
            tick_ns: 1_000_000_000,
            files: true,
        },
        meta_csv,
    ),
    (
        "google",
        Keeps {
            volume: false,
            latency: false,
            tick_ns: 1_000,
            files: true,
        },
        google,
    ),
    (
        "blkparse",
        Keeps {
            volume: true,
            latency: true,
            tick_ns: 1,
            files: false,
        },
        blkparse,
    ),
    (
        "biosnoop",
        Keeps {
            volume: true,
            latency: true,
            tick_ns: 1_000,
            files: false,
        },
        biosnoop,
    ),
    (
        "ftrace",
        Keeps {
            volume: true,
            latency: true,
            tick_ns: 1_000,
            files: false,
        },
        ftrace,
    ),
    xperf::WRITER,
];

pub(crate) fn vscsi_1(ios: &[Io]) -> Vec<u8> {
    let mut out = Vec::new();
    for (serial, io) in ios.iter().enumerate() {
        out.extend((serial as u32).to_le_bytes());
        out.extend((io.bytes() as u32).to_le_bytes());
        out.extend(1u32.to_le_bytes());
        out.extend(if io.write { 0x2au16 } else { 0x28 }.to_le_bytes());
        out.extend(0x0100u16.to_le_bytes());
        out.extend(io.sector.to_le_bytes());
        out.extend(io.at_us.to_le_bytes());
    }
    out
}

pub(crate) fn vscsi_2(ios: &[Io]) -> Vec<u8> {
    let mut out = Vec::new();
    for (serial, io) in ios.iter().enumerate() {
        out.extend(if io.write { 0x8au16 } else { 0x88 }.to_le_bytes());
        out.extend(0x0200u16.to_le_bytes());
        out.extend((serial as u32).to_le_bytes());
        out.extend((io.bytes() as u32).to_le_bytes());
        out.extend(1u32.to_le_bytes());
        out.extend(io.sector.to_le_bytes());
        out.extend(io.at_us.to_le_bytes());
        out.extend(io.latency_us.to_le_bytes());
    }
    out
}

fn lines(ios: &[Io], line: impl Fn(&Io) -> String) -> Vec<u8> {
    let mut out = String::new();
    for io in ios {
        writeln!(out, "{}", line(io)).unwrap();
    }
    out.into_bytes()
}

pub(crate) fn mqsim(ios: &[Io]) -> Vec<u8> {
    lines(ios, |io| {
        let kind = io.letter("1", "0");
        format!(
            "{} {} {} {} {kind}",
            io.at_us * 1_000,
            io.volume,
            io.sector,
            io.sectors
        )
    })
}

pub(crate) fn disksim(ios: &[Io]) -> Vec<u8> {
    lines(ios, |io| {
        let (ms, us) = (io.at_us / 1_000, io.at_us % 1_000);
        format!(
            "{ms}.{us:03} {} {} {} {}",
            io.volume,
            io.sector,
            io.sectors,
            io.letter("1", "0")
        )
    })
}

pub(crate) fn msr(ios: &[Io]) -> Vec<u8> {
    lines(ios, |io| {
        let ticks = 128_166_385_295_514_663 + io.at_us * 10;
        let kind = io.letter("Read", "Write");
        format!(
            "{ticks},h,{},{kind},{},{},{}",
            io.volume,
            io.sector * 512,
            io.bytes(),
            io.latency_us * 10
        )
    })
}

pub(crate) fn systor(ios: &[Io]) -> Vec<u8> {
    let mut out = b"Timestamp,Response,IOType,LUN,Offset,Size\n".to_vec();
    out.extend(lines(ios, |io| {
        let (s, us) = (1_456_095_145 + io.at_us / 1_000_000, io.at_us % 1_000_000);
        let (response_s, response_us) = (io.latency_us / 1_000_000, io.latency_us % 1_000_000);
        let (lun, offset, bytes) = (io.volume, io.sector * 512, io.bytes());
        let kind = io.letter("R", "W");
        format!("{s}.{us:06}000,{response_s}.{response_us:06}000,{kind},{lun},{offset},{bytes}")
    }));
    out
}

pub(crate) fn tencent(ios: &[Io]) -> Vec<u8> {
    lines(ios, |io| {
        let s = 1_538_323_200 + io.at_us / 1_000_000;
        format!(
            "{s},{},{},{},{}",
            io.sector,
            io.sectors,
            io.letter("0", "1"),
            io.volume
        )
    })
}

pub(crate) fn spc(ios: &[Io]) -> Vec<u8> {
    lines(ios, |io| {
        let (s, us) = (io.at_us / 1_000_000, io.at_us % 1_000_000);
        format!(
            "{},{},{},{},{s}.{us:06}",
            io.volume,
            io.sector,
            io.bytes(),
            io.letter("r", "W")
        )
    })
}

/// Writes one event of blktrace; `action` has the kind of request in its high half.
pub(crate) fn event(out: &mut Vec<u8>, time_ns: u64, io: &Io, action: u32) {
    out.extend(0x6561_7407u32.to_le_bytes());
    out.extend(0u32.to_le_bytes());
    out.extend(time_ns.to_le_bytes());
    out.extend(io.sector.to_le_bytes());
    out.extend((io.bytes() as u32).to_le_bytes());
    out.extend(action.to_le_bytes());
    out.extend(1u32.to_le_bytes());
    out.extend((259 << 20 | u32::from(io.volume)).to_le_bytes());
    out.extend(0u32.to_le_bytes());
    out.extend(0u16.to_le_bytes());
    out.extend(3u16.to_le_bytes());
    out.extend(b"abc");
}

/// Writes issues and completions in order of time, each with a payload that the reader skips.
pub(crate) fn blktrace(ios: &[Io]) -> Vec<u8> {
    let mut events: Vec<(u64, usize, u32)> = Vec::new();
    for (index, io) in ios.iter().enumerate() {
        let kind = if io.write { 1 << 1 } else { 1 } << 16;
        events.push((io.at_us, index, kind | 7));
        events.push((io.at_us + io.latency_us, index, kind | 8));
    }
    // A stable sort: simultaneous requests stay in order, and each issue comes before its own completion.
    events.sort_by_key(|&(at, _, _)| at);
    let mut out = Vec::new();
    for (at_us, index, action) in events {
        event(&mut out, 7_000_000_000 + at_us * 1_000, &ios[index], action);
    }
    out
}

pub(crate) fn alicloud(ios: &[Io]) -> Vec<u8> {
    lines(ios, |io| {
        let at = 1_577_808_000_000_000 + io.at_us;
        let (offset, bytes) = (io.sector * 512, io.bytes());
        format!(
            "{},{},{offset},{bytes},{at}",
            io.volume,
            io.letter("R", "W")
        )
    })
}

/// Writes FIU's format; one process in three has a blank in its name.
pub(crate) fn fiu(ios: &[Io]) -> Vec<u8> {
    lines(ios, |io| {
        let process = ["gzip", "pdflush", "tmux: server"][io.sector as usize % 3];
        format!(
            "{} 20782 {process} {} {} {} 6 {} 56f11b711d91a065a2b6458eca924523",
            89_968_195_792_462 + io.at_us * 1_000,
            io.sector,
            io.sectors,
            io.letter("R", "W"),
            io.volume
        )
    })
}

/// Returns block and offset, in blocks of 8 MiB.
fn block(io: &Io) -> (u64, u64) {
    ((io.sector * 512) >> 23, (io.sector * 512) & ((8 << 20) - 1))
}

pub(crate) fn meta_blanks(ios: &[Io]) -> Vec<u8> {
    let mut out = b"# a sample\n# block_id io_offset io_size op_time op_name user_namespace user_name rs_shard_id op_count host_name\n".to_vec();
    out.extend(lines(ios, |io| {
        let (block, offset) = block(io);
        let (s, us) = (1_572_074_461 + io.at_us / 1_000_000, io.at_us % 1_000_000);
        let (bytes, op) = (io.bytes(), io.letter("2", "4"));
        format!(
            "{block} {offset} {bytes} {s}.{us:06} {op} 3 5 1 1 {}",
            io.volume
        )
    }));
    out
}

pub(crate) fn meta_csv(ios: &[Io]) -> Vec<u8> {
    let mut out = b"op_time,block_id,block_id_size,io_size,io_offset,user_name,user_namespace,op_name,op_count,host_name,rs_shard_id\n".to_vec();
    out.extend(lines(ios, |io| {
        let (block, offset) = block(io);
        let op = io.letter("getChunkData.Permanent", "putChunk.Permanent");
        let s = 1_572_074_461 + io.at_us / 1_000_000;
        format!(
            "{s},{block},40,{},{offset},u,n,{op},1,host-{},2",
            io.bytes(),
            io.volume
        )
    }));
    out
}

pub(crate) fn google(ios: &[Io]) -> Vec<u8> {
    let mut out = b"filename,file_offset,application,c_time,io_zone,redundancy_type,op_type,service_class,from_flash_cache,cache_hit,request_io_size_bytes,disk_io_size_bytes,response_io_size_bytes,start_time,disk_time,simulated_disk_start_time,simulated_latency\n".to_vec();
    out.extend(lines(ios, |io| {
        let (block, offset) = block(io);
        let (s, us) = (1_705_305_600 + io.at_us / 1_000_000, io.at_us % 1_000_000);
        let bytes = io.bytes();
        let (hit, on_disk) = if io.write { (-1, 0) } else { (0, bytes) };
        format!(
            "f{block},{offset},bigtable,1,WARM,REPLICATED,{},OTHER,0,{hit},{bytes},{on_disk},{bytes},{s}.{us:06},0.001,0,0.002",
            io.letter("READ", "WRITE")
        )
    }));
    out
}

/// Writes issues and completions in order of time, lines in between that the reader skips, and the summary.
pub(crate) fn blkparse(ios: &[Io]) -> Vec<u8> {
    let mut events: Vec<(u64, usize, char)> = Vec::new();
    for (index, io) in ios.iter().enumerate() {
        events.push((io.at_us, index, 'Q'));
        events.push((io.at_us, index, 'D'));
        events.push((io.at_us + io.latency_us, index, 'C'));
    }
    events.sort_by_key(|&(at, _, _)| at);
    let mut out = String::from("  8,0    1        1     0.000000000     0  m   N served: 0\n");
    for (number, (at_us, index, action)) in events.into_iter().enumerate() {
        let io = &ios[index];
        let (s, us) = (at_us / 1_000_000, at_us % 1_000_000);
        let (letters, process) = (
            io.letter("R", "WS"),
            ["[fio]", "[0]"][usize::from(action == 'C')],
        );
        writeln!(
            out,
            "  8,{}    1 {number:>8} {s:>5}.{us:06}000   697 {action:>2} {letters:>3} {} + {} {process}",
            io.volume, io.sector, io.sectors
        )
        .unwrap();
    }
    out.push_str("CPU1 (sda):\n Reads Queued:           1,        4KiB\n\nTotal (sda):\n");
    out.into_bytes()
}

/// Writes the format of ftrace, with a task whose name contains a blank.
pub(crate) fn ftrace(ios: &[Io]) -> Vec<u8> {
    let issues = ios.iter().map(|io| (io.at_us, io, false));
    let completions = ios.iter().map(|io| (io.at_us + io.latency_us, io, true));
    let mut events: Vec<(u64, &Io, bool)> = issues.chain(completions).collect();
    events.sort_by_key(|&(at, ..)| at);
    let mut out = String::from("# tracer: nop\n#\n#  TASK-PID  CPU#  TIMESTAMP  FUNCTION\n");
    for (at_us, io, done) in events {
        let (s, us) = (1_008 + at_us / 1_000_000, at_us % 1_000_000);
        let (task, event, bytes) = match done {
            false => ("my: db 7-40", "issue", format!("{} ", io.bytes())),
            true => ("<idle>-0", "complete", String::new()),
        };
        let (letters, sector) = (io.letter("R", "WS"), io.sector);
        writeln!(out, "  {task} [000] d.h1.  {s}.{us:06}: block_rq_{event}: 259,{} {letters} {bytes}() {sector} + {} none,0,0 [x]", io.volume, io.sectors).unwrap();
    }
    out.into_bytes()
}

/// Writes the format of libbpf-tools, with the time in the queue. (The lines are in order of arrival here, not of
/// completion.)
pub(crate) fn biosnoop(ios: &[Io]) -> Vec<u8> {
    let mut out =
        b"TIME(s)     COMM           PID     DISK    T    SECTOR     BYTES   QUE(ms) LAT(ms)\n"
            .to_vec();
    out.extend(lines(ios, |io| {
        let done = 5_000_000 + io.at_us + io.latency_us;
        let process = ["fio", "IPC I/O Parent"][io.sector as usize % 2];
        format!(
            "{}.{:06} {process:<14} 711 sd{} {} {} {} 0.010 {}.{:03}",
            done / 1_000_000,
            done % 1_000_000,
            io.volume,
            io.letter("R", "W"),
            io.sector,
            io.bytes(),
            io.latency_us / 1_000,
            io.latency_us % 1_000
        )
    }));
    out
}

fn files(ios: &[Io]) -> Vec<u8> {
    let mut files: Vec<u8> = ios.iter().map(|io| io.volume).collect();
    files.sort_unstable();
    files.dedup();
    files
}

pub(crate) fn iolog_2(ios: &[Io]) -> Vec<u8> {
    let mut out = String::from("fio version 2 iolog\n");
    for file in files(ios) {
        write!(out, "/dev/{file} add\n/dev/{file} open\n").unwrap();
    }
    let mut now = 0;
    for io in ios {
        let file = io.volume;
        if io.at_us > now {
            writeln!(out, "/dev/{file} wait {} 0", io.at_us - now).unwrap();
            now = io.at_us;
        }
        let action = io.letter("read", "write");
        writeln!(
            out,
            "/dev/{file} {action} {} {}",
            io.sector * 512,
            io.bytes()
        )
        .unwrap();
    }
    out.into_bytes()
}

pub(crate) fn iolog_3(ios: &[Io]) -> Vec<u8> {
    let mut out = String::from("fio version 3 iolog\n");
    for file in files(ios) {
        write!(out, "0 /dev/{file} add\n0 /dev/{file} open\n").unwrap();
    }
    for io in ios {
        let (at, file, action) = (io.at_us, io.volume, io.letter("read", "write"));
        writeln!(
            out,
            "{at} /dev/{file} {action} {} {}",
            io.sector * 512,
            io.bytes()
        )
        .unwrap();
    }
    out.into_bytes()
}

/// Compresses as gzip.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Compresses as xz.
pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
