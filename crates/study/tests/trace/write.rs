//! Writes traces, one function a format: what the readers are tested against.

use std::fmt::Write as _;
use std::io::Write as _;

/// One request, in the units all formats can hold: microseconds, sectors.
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

/// What a format keeps of an [`Io`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keeps {
    pub(crate) volume: bool,
    pub(crate) latency: bool,
    /// Nanoseconds to a tick of its clock.
    pub(crate) tick_ns: u64,
}

pub(crate) type Writer = fn(&[Io]) -> Vec<u8>;

/// Name on the command line, what it keeps, and how to write it. (Two of vscsi and of iolog: their versions.)
pub(crate) const WRITERS: &[(&str, Keeps, Writer)] = &[
    (
        "vscsi",
        Keeps {
            volume: false,
            latency: false,
            tick_ns: 1_000,
        },
        vscsi_1,
    ),
    (
        "vscsi",
        Keeps {
            volume: false,
            latency: true,
            tick_ns: 1_000,
        },
        vscsi_2,
    ),
    (
        "mqsim",
        Keeps {
            volume: true,
            latency: false,
            tick_ns: 1,
        },
        mqsim,
    ),
    (
        "disksim",
        Keeps {
            volume: true,
            latency: false,
            tick_ns: 1_000,
        },
        disksim,
    ),
    (
        "msr",
        Keeps {
            volume: true,
            latency: true,
            tick_ns: 100,
        },
        msr,
    ),
    (
        "systor",
        Keeps {
            volume: true,
            latency: true,
            tick_ns: 1,
        },
        systor,
    ),
    (
        "tencent",
        Keeps {
            volume: true,
            latency: false,
            tick_ns: 1_000_000_000,
        },
        tencent,
    ),
    (
        "spc",
        Keeps {
            volume: true,
            latency: false,
            tick_ns: 1_000,
        },
        spc,
    ),
    (
        "blktrace",
        Keeps {
            volume: true,
            latency: true,
            tick_ns: 1,
        },
        blktrace,
    ),
    (
        "iolog",
        Keeps {
            volume: true,
            latency: false,
            tick_ns: 1_000,
        },
        iolog_2,
    ),
    (
        "iolog",
        Keeps {
            volume: true,
            latency: false,
            tick_ns: 1_000,
        },
        iolog_3,
    ),
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

/// One event of blktrace; `action` has the kind of request in its high half.
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

/// Issues and completions in order of time, each with a payload to be passed over.
pub(crate) fn blktrace(ios: &[Io]) -> Vec<u8> {
    let mut events: Vec<(u64, usize, u32)> = Vec::new();
    for (index, io) in ios.iter().enumerate() {
        let kind = if io.write { 1 << 1 } else { 1 } << 16;
        events.push((io.at_us, index, kind | 7));
        events.push((io.at_us + io.latency_us, index, kind | 8));
    }
    // Stable: requests at one time stay in order, and each issue comes before its own completion.
    events.sort_by_key(|&(at, _, _)| at);
    let mut out = Vec::new();
    for (at_us, index, action) in events {
        event(&mut out, 7_000_000_000 + at_us * 1_000, &ios[index], action);
    }
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

/// Compressed as gzip does.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Compressed as xz does.
pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
