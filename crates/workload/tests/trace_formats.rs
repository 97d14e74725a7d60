//! Trace readers: the samples of the shared folder, round trips through every format, and refused inputs.

#[path = "trace/write.rs"]
mod write;

use std::io::Write as _;
use std::path::PathBuf;

use model::{Op, Span};
use proptest::prelude::*;
use text::problem::Place;
use workload::trace::{self, FORMATS, Format, Options, Trace};
use write::{Io, Keeps, WRITERS};

/// Prints that a test is skipped, to a stream that the test harness does not capture (it captures `eprintln!`).
macro_rules! skip {
    ($($what:tt)*) => {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {}", format_args!($($what)*));
    };
}

fn read(bytes: &[u8], options: &Options) -> Result<Trace, String> {
    trace::read_from(bytes, "t", options).map_err(|problems| problems.to_string())
}

fn read_as(format: &str, bytes: &[u8]) -> Result<Trace, String> {
    let format = Format::named(format);
    assert!(format.is_some());
    read(
        bytes,
        &Options {
            format,
            ..Options::default()
        },
    )
}

fn shared(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/traces"
    ))
    .join(name);
    if !path.exists() {
        skip!("no sample trace at {}", path.display());
        return None;
    }
    Some(path)
}

/// File, format, reads, writes, volumes, milliseconds from first to last arrival.
const SAMPLES: &[(&str, &str, u64, u64, usize, u64)] = &[
    (
        "cloudphysics-sample.vscsi.xz",
        "vscsi",
        46_974,
        66_898,
        1,
        7_200_089,
    ),
    ("mqsim-tpcc-small.trace.xz", "mqsim", 4_381, 2_618, 16, 136),
    ("mqsim-wsrch-small.trace.xz", "mqsim", 24_779, 4, 6, 60_055),
    ("msr-hm0-sample.csv.xz", "msr", 508, 492, 1, 127_233),
    ("systor17-sample.csv.xz", "systor", 826, 173, 1, 2_447),
    (
        "ssdsim-example.ascii.xz",
        "mqsim",
        4_077,
        5_923,
        22,
        259_601,
    ),
    (
        "disksim-iozone-100k.trace.xz",
        "disksim",
        0,
        100_000,
        1,
        936_449,
    ),
    ("nvme-sample.blktrace.0.xz", "blktrace", 963, 0, 1, 345),
];

#[test]
fn every_sample_reads_as_its_readme_says() {
    for &(name, format, reads, writes, volumes, ms) in SAMPLES {
        let Some(path) = shared(name) else { return };
        let trace =
            trace::read(&path, &Options::default()).unwrap_or_else(|error| panic!("{error}"));
        let summary = trace.summary();
        let got = (
            trace.format.name,
            summary.read.requests,
            summary.write.requests,
            trace.volumes.len(),
            summary.duration.ns() / 1_000_000,
        );
        assert_eq!(got, (format, reads, writes, volumes, ms), "{name}");
        assert_eq!(trace.records.len() as u64, reads + writes, "{name}");
        assert_eq!(trace.records[0].arrival_ns(), 0);
        assert!(trace.records.is_sorted_by_key(|record| record.arrival_ns()));
    }
}

#[test]
fn recorded_latencies_are_as_the_readme_says() {
    let Some(path) = shared("nvme-sample.blktrace.0.xz") else {
        return;
    };
    let trace = trace::read(&path, &Options::default()).unwrap();
    let mut ns: Vec<u64> = trace
        .records
        .iter()
        .filter_map(|record| record.latency())
        .map(Span::ns)
        .collect();
    ns.sort_unstable();
    let mean = ns.iter().sum::<u64>() as f64 / ns.len() as f64;
    let tenths = |ns: f64| (ns / 100.0).round() / 10.0;
    let max = *ns.last().unwrap() as f64;
    let figures = (
        tenths(mean),
        tenths(ns[ns.len() / 2] as f64),
        tenths(ns[ns.len() * 99 / 100] as f64),
        tenths(max),
    );
    assert_eq!(figures, (55.9, 54.3, 92.6, 102.5));

    let path = shared("systor17-sample.csv.xz").unwrap();
    let trace = trace::read(&path, &Options::default()).unwrap();
    assert!(!trace.in_order);
    let summary = trace.summary();
    let timed = summary.read.timed + summary.write.timed;
    let mean_ns = (summary.read.latency_ns + summary.write.latency_ns) as f64 / timed as f64;
    assert!((3.86e6..3.87e6).contains(&mean_ns), "{mean_ns}");
}

fn ios() -> impl Strategy<Value = Vec<Io>> {
    let io = (
        0u64..2_000_000,
        any::<bool>(),
        0u64..1 << 30,
        0u32..2_000,
        0u8..5,
        0u64..900_000,
    );
    let io = io.prop_map(|(gap_us, write, sector, sectors, volume, latency_us)| Io {
        at_us: gap_us,
        write,
        sector,
        sectors,
        volume,
        latency_us,
    });
    // Gaps become times. Sectors are made distinct, so that a completion belongs to one issue.
    prop::collection::vec(io, 1..60).prop_map(|mut ios| {
        let mut now = 0;
        for (index, io) in ios.iter_mut().enumerate() {
            now += io.at_us;
            io.at_us = now;
            io.sector = io.sector << 8 | index as u64;
        }
        ios
    })
}

fn check(name: &str, keeps: Keeps, ios: &[Io], trace: &Trace) -> Result<(), TestCaseError> {
    prop_assert_eq!(trace.format.name, name);
    prop_assert_eq!(trace.records.len(), ios.len());
    let ticks = |us: u64| us * 1_000 / keeps.tick_ns * keeps.tick_ns;
    for (io, record) in ios.iter().zip(&trace.records) {
        let got = record.request();
        prop_assert_eq!(got.arrival_ns, ticks(io.at_us) - ticks(ios[0].at_us));
        prop_assert_eq!(got.op, if io.write { Op::Write } else { Op::Read });
        if keeps.files {
            // The offset within its extent of 8 MiB is preserved.
            prop_assert_eq!(got.offset % (8 << 20), io.sector * 512 % (8 << 20));
        } else {
            prop_assert_eq!(got.offset, io.sector * 512);
        }
        prop_assert_eq!(u64::from(got.bytes), u64::from(io.sectors) * 512);
        if keeps.latency || name != "google" {
            let latency = keeps.latency.then(|| Span::from_us(io.latency_us));
            prop_assert_eq!(got.latency, latency);
        }
        if keeps.volume {
            let volume = &trace.volumes[usize::from(got.volume)];
            prop_assert!(volume.ends_with(char::from(b'0' + io.volume)), "{}", volume);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// A written trace is read back: with its format named, with detection from the content, and compressed.
    #[test]
    fn what_is_written_is_read(ios in ios()) {
        for &(name, keeps, writer) in WRITERS {
            let bytes = writer(&ios);
            check(name, keeps, &ios, &read_as(name, &bytes).unwrap())?;
            for bytes in [write::gzip(&bytes), write::xz(&bytes), bytes] {
                // One or two seconds of a clock with whole seconds may look like DiskSim's format; no other confusion
                // is allowed.
                check(name, keeps, &ios, &read(&bytes, &Options::default()).unwrap())?;
            }
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&bytes, &Options::default());
        for format in FORMATS {
            let _ = read_as(format.name, &bytes);
        }
    }

    #[test]
    fn no_damage_makes_a_reader_panic(
        ios in ios(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        keep in any::<prop::sample::Index>(),
    ) {
        for &(name, _, writer) in WRITERS {
            let mut bytes = writer(&ios);
            for (at, byte) in &damage {
                *at.get_mut(&mut bytes) = *byte;
            }
            bytes.truncate(keep.index(bytes.len()) + 1);
            let _ = read_as(name, &bytes);
            let _ = read(&bytes, &Options::default());
        }
    }

    #[test]
    fn truncated_compression_is_an_error(ios in ios(), keep in 0.0f64..1.0) {
        let plain = write::msr(&ios);
        for packed in [write::gzip(&plain), write::xz(&plain)] {
            let kept = &packed[..(packed.len() as f64 * keep) as usize];
            prop_assert!(read(kept, &Options::default()).is_err());
        }
    }
}

const WRITE: Io = Io {
    at_us: 5,
    write: true,
    sector: 8,
    sectors: 8,
    volume: 0,
    latency_us: 9,
};

/// The round trips above cover all formats with a meaning of their own, and the documentation describes each.
#[test]
fn every_format_is_tested_and_documented() {
    let documents = include_str!("../../../docs/traces.md");
    for format in FORMATS {
        let name = format.name;
        // One format has the reader of another, and one has no layout of its own: see the test of columns.
        let alone = ["ssdsim", "csv"];
        let written = alone.contains(&name) || WRITERS.iter().any(|(writer, ..)| *writer == name);
        assert!(written, "{name} has no writer in tests/trace/write.rs");
        assert!(
            documents.contains(&format!("`{name}`")),
            "{name} is not in docs/traces.md"
        );
    }
}

/// Returns the message for a malformed trace of a format.
fn refused(format: &str, bytes: &[u8]) -> String {
    read_as(format, bytes).expect_err("must be refused")
}

#[test]
fn malformed_lines_are_named_by_line_and_column() {
    let cases: &[(&str, &str)] = &[
        ("mqsim", "1000 0 8 8 1\n2000 0 8 8 2\n"),
        ("mqsim", "1000 0 8 8 1\n\n2000 0 8 8\n"),
        ("ssdsim", "1000 0 -8 8 1\n"),
        ("mqsim", "1000 0 36028797018963968 8 1\n"),
        ("mqsim", "1000 0 549755813888 8 1\n"),
        ("disksim", "1.5 0 8 8 1\n2.5x 0 8 8 1\n"),
        ("disksim", "1.5 0 8 8 read\n"),
        (
            "msr",
            "128166385295514663,hm,0,Write,9056014336,2048,2833\n128166385295514878,hm,0,Erase,0,512,2617\n",
        ),
        ("msr", "128166385295514663,hm,0,Write,9056014336\n"),
        (
            "systor",
            "Timestamp,Response,IOType,LUN,Offset,Size\n1.5,0.1,R,0,0,4294967296\n",
        ),
        ("systor", "1.5,0.1,R,0,0,4096\n1.6,0.1,R,0,0,4096,7\n"),
        ("tencent", "1538323200,8,8,7,1283\n"),
        (
            "spc",
            "0,20941264,8192,W,0.551706\n0,20939840,8192,x,0.554041\n",
        ),
        ("iolog", "fio version 1 iolog\n"),
        ("iolog", "fio version 2 iolog\n/f add\n/f read 0\n"),
        ("iolog", "fio version 2 iolog\n/f read 0 4096\n"),
        ("iolog", "fio version 3 iolog\n0 /f add\n1 /f wait 10 0\n"),
        (
            "msr",
            "1,hm,0,Write,0,512,1\n18446744073709551615,hm,0,Write,0,512,1\n",
        ),
    ];
    let messages: Vec<String> = cases
        .iter()
        .map(|(format, text)| refused(format, text.as_bytes()))
        .collect();
    insta::assert_snapshot!(messages.join("\n"), @r#"
error: t:2: column 5 (type) is `2`, not 0 (write) or 1 (read)
error: t:3: has 4 columns, not 5: time, device, sector, sectors, type
error: t:1: column 3 (first sector) is `-8`, not a whole number
error: t:1: column 3 (first sector) is `36028797018963968`, not a number of 512 B sectors below 2^55
error: t:1: the offset is 281474976710656 bytes; volumes can have 256 TiB at most
error: t:2: column 1 (time in ms) is `2.5x`, not a decimal number that is not negative
error: t:1: column 5 (flags) is `read`, not a hexadecimal number
error: t:2: column 4 (type) is `Erase`, not Read or Write
error: t:1: has 5 columns, not 7: time, host, disk, type, offset, size, response time
error: t:2: the request has 4294967296 bytes; at most 4,294,967,295 are possible
error: t:2: has 7 columns, not 6: time, response, type, LUN, offset, size
error: t:1: column 4 (type) is `7`, not 0 (read) or 1 (write)
error: t:2: column 4 (type) is `x`, not r or w
error: t:1: the first line is neither `fio version 2 iolog` nor `fio version 3 iolog`
error: t:3: has 3 columns, not 4: file, action, offset and length (version 3: the time first)
error: t:2: file `/f` has not been added
  help: a line `FILE add` must come first
error: t:3: column 3 (action) is `wait`, not add, open, close, read, write, trim, sync, datasync or sync_file_range
error: t:2: the time is more than 18 years from that of the first request
"#);
}

#[test]
fn malformed_records_are_named_by_byte() {
    let three = [WRITE; 3];
    let mut messages = Vec::new();
    let mut refuse = |format: &str, bytes: &[u8]| messages.push(refused(format, bytes));

    let mut vscsi = write::vscsi_1(&three);
    refuse("vscsi", &vscsi[..90]);
    vscsi[32 + 12] = 0xff;
    refuse("vscsi", &vscsi);
    vscsi[32 + 15] = 2;
    refuse("vscsi", &vscsi);
    vscsi[15] = 0;
    refuse("vscsi", &vscsi);

    let mut blktrace = write::blktrace(&three);
    refuse("blktrace", &blktrace[..51 + 20]);
    refuse("blktrace", &blktrace[..51 + 49]);
    blktrace[51] = 6;
    refuse("blktrace", &blktrace);
    blktrace[52] = 0;
    refuse("blktrace", &blktrace);
    insta::assert_snapshot!(messages.join("\n"), @r#"
error: t: byte 64: the last record is cut off: 26 of 32 bytes
error: t: byte 32: the record's SCSI operation code is 0xff, which is not known
error: t: byte 32: the record's version is 0x0200, not 1
error: t: byte 0: the first record is of neither version 1 (32 bytes) nor version 2 (40 bytes)
error: t: byte 51: the last record is cut off: 20 of 48 bytes
error: t: byte 99: 3 bytes of payload are announced here, but 2 of them are missing
error: t: byte 51: the event is of version 6; only 7 is known
error: t: byte 51: the magic number of an event is missing: found 0x65610006
"#);
}

#[test]
fn what_cannot_be_told_is_refused() {
    let refused = |bytes: &[u8]| read(bytes, &Options::default()).expect_err("must be refused");
    let mut messages = Vec::new();
    // These could be whole milliseconds of DiskSim, or nanoseconds with distances of 40.
    let close: String = (0..20)
        .map(|index| format!("{} 0 {} 8 1\n", index * 40, index * 8))
        .collect();
    messages.push(refused(close.as_bytes()));
    messages.push(refused(b"hello, world\n"));
    messages.push(refused(b""));
    messages.push(refused(&[0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3]));
    let mut tar = vec![0u8; 512];
    tar[257..262].copy_from_slice(b"ustar");
    messages.push(refused(&write::gzip(&tar)));
    let packed = write::xz(&write::msr(&[WRITE; 99]));
    messages.push(refused(&packed[..packed.len() / 2]));
    let packed = write::gzip(&write::msr(&[WRITE; 99]));
    messages.push(refused(&packed[..packed.len() - 4]));
    messages.push(refused(b"fio version 2 iolog\n/f add\n"));
    insta::assert_snapshot!(messages.join("\n"), @r#"
error: t: could be mqsim or disksim: the content fits each of them, and they have different meanings
  help: select one with --format mqsim or --format disksim
error: t: is in no known format; its first line is `hello, world`
  help: name the format with --format: vscsi, mqsim, ssdsim, disksim, msr, systor, tencent, alicloud, fiu, meta, google, spc, blktrace, blkparse, ftrace, biosnoop, xperf, iolog, csv; or assign the columns with --columns
error: t: is empty
error: t: is compressed with zstd, which is not supported
  help: decompress it first; gzip and xz are read as they are
error: t: is a tar archive, not a trace
  help: unpack it first (tar -xf)
error: t: the compressed data ends too early, after 32 bytes of content: the file is truncated
error: t: the compressed data ends too early, after 4158 bytes of content: the file is truncated
error: t: holds no request (read as fio iolog)
"#);
    // With the format named, it is read.
    assert_eq!(
        read_as("mqsim", close.as_bytes()).unwrap().records[1].arrival_ns(),
        40
    );
    assert_eq!(
        read_as("disksim", close.as_bytes()).unwrap().records[1].arrival_ns(),
        40_000_000
    );
}

#[test]
fn one_volume_or_the_first_requests_can_be_read() {
    let ios: Vec<Io> = (0..10)
        .map(|index| Io {
            at_us: index,
            write: false,
            sector: index * 8,
            sectors: 8,
            volume: (index % 3) as u8,
            latency_us: 0,
        })
        .collect();
    let bytes = write::mqsim(&ios);
    let only = |volume: &str| {
        read(
            &bytes,
            &Options {
                volume: Some(volume.into()),
                ..Options::default()
            },
        )
    };
    let trace = only("1").unwrap();
    assert_eq!((trace.records.len(), trace.other_volumes), (3, 7));
    insta::assert_snapshot!(only("7").unwrap_err(), @r#"
error: t: has no volume `7`
  help: its volumes are 0, 1, 2
"#);
    let first = read(
        &bytes,
        &Options {
            first: Some(4),
            ..Options::default()
        },
    )
    .unwrap();
    assert_eq!(first.records.len(), 4);
    insta::assert_snapshot!(read(&bytes, &Options { most_records: 4, ..Options::default() }).unwrap_err(), @r#"
error: t:5: the trace has more than 4 requests
  help: use --first N to read only the beginning
"#);
}

#[test]
fn requests_at_one_time_stay_in_order_and_late_rows_are_sorted_in() {
    let rows =
        b"5.0,0.1,R,0,0,512\n4.0,0.1,R,0,512,512\n5.0,0.1,R,0,1024,512\n4.0,0.1,R,0,1536,512\n";
    let trace = read(rows, &Options::default()).unwrap();
    let got: Vec<_> = trace
        .records
        .iter()
        .map(|record| (record.arrival_ns(), record.request().offset))
        .collect();
    assert_eq!(
        got,
        [
            (0, 512),
            (0, 1536),
            (1_000_000_000, 0),
            (1_000_000_000, 1024)
        ]
    );
    assert!(!trace.in_order);
}

#[test]
fn a_record_is_found_in_its_file_again() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        file.path(),
        b"5.0,0.1,R,0,0,512\n\n4.0,0.1,R,0,512,512\n5.0,0.1,R,0,1024,512\n",
    )
    .unwrap();
    let options = Options::default();
    let trace = trace::read(file.path(), &options).unwrap();
    let lines: Vec<_> = trace
        .records
        .iter()
        .map(|record| trace.locate(record))
        .collect();
    assert_eq!(lines, [Place::Line(3), Place::Line(1), Place::Line(4)]);
}

#[test]
fn blktrace_of_a_big_endian_machine_is_read() {
    let io = Io {
        at_us: 5,
        write: true,
        sector: 8,
        sectors: 16,
        volume: 1,
        latency_us: 9,
    };
    let swap = |bytes: Vec<u8>| -> Vec<u8> {
        let widths = [4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2];
        let mut out = Vec::new();
        for event in bytes.chunks(51) {
            let mut at = 0;
            for width in widths {
                out.extend(event[at..at + width].iter().rev());
                at += width;
            }
            out.extend(&event[48..]);
        }
        out
    };
    let little = read(&write::blktrace(&[io]), &Options::default()).unwrap();
    let big = read(&swap(write::blktrace(&[io])), &Options::default()).unwrap();
    assert_eq!(little.records, big.records);
    assert_eq!(big.volumes, ["259,1"]);
}

/// Small traces as seeds for the fuzz targets. To rewrite them after a change of the writers: `DRIVELAB_WRITE_SEEDS=1
/// cargo test -p drivelab-workload --test trace_formats seeds`.
#[test]
fn the_fuzz_seeds_are_what_the_writers_write_and_are_read() {
    let dir = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/seeds/trace"
    ));
    let ios: Vec<Io> = (0..5)
        .map(|index| Io {
            at_us: index * 1_500,
            write: index % 3 == 1,
            sector: 2_048 + index * 24,
            sectors: 8 << (index % 2),
            volume: (index / 3) as u8,
            latency_us: 90 + index,
        })
        .collect();
    let mut seeds: Vec<(String, Vec<u8>)> = WRITERS
        .iter()
        .enumerate()
        .map(|(index, (name, _, writer))| (format!("{index:02}-{name}"), writer(&ios)))
        .collect();
    seeds.push(("msr.gz".into(), write::gzip(&write::msr(&ios))));
    seeds.push(("vscsi.xz".into(), write::xz(&write::vscsi_1(&ios))));
    for (name, bytes) in seeds {
        let path = dir.join(&name);
        if std::env::var_os("DRIVELAB_WRITE_SEEDS").is_some() {
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(&path, &bytes).unwrap();
        }
        let seed =
            std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // Compressed bytes may differ between versions of the compressor; their content may not.
        let trace = read(&seed, &Options::default()).unwrap();
        assert_eq!(
            trace.records,
            read(&bytes, &Options::default()).unwrap().records,
            "{name}"
        );
        assert_eq!(trace.records.len(), ios.len(), "{name}");
    }
}
