//! Traces as their publishers and tools write them: example lines from their documentation, and variants of some
//! formats.

use model::{Op, Span};
use workload::replay::Pace;
use workload::trace::{self, Columns, Format, Options, Trace};

fn read(bytes: &[u8], options: &Options) -> Result<Trace, String> {
    trace::read_from(bytes, "t", options).map_err(|problems| problems.to_string())
}

fn told(text: &str) -> Trace {
    read(text.as_bytes(), &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Arrival in µs, operation, first byte, bytes, response time in µs.
type Row = (u64, Op, u64, u32, Option<f64>);

fn rows(trace: &Trace) -> Vec<Row> {
    let row = |record: &trace::Record| {
        let got = record.request();
        let arrival_us = got.arrival_ns / 1_000;
        let latency_us = got.latency.map(Span::us);
        (arrival_us, got.op, got.offset, got.bytes, latency_us)
    };
    trace.records.iter().map(row).collect()
}

/// Written by fio 3.33 with `--rw=randrw --fsync=4 --thinktime=1000 --write_iolog`; only the file's name was changed.
#[test]
fn a_log_that_fio_wrote_is_read() {
    let log = b"fio version 3 iolog
18 /dev/nvme0n1 add
119 /dev/nvme0n1 open
122 /dev/nvme0n1 read 0 4096
1393 /dev/nvme0n1 read 45056 4096
3584 /dev/nvme0n1 write 28672 4096
9840 /dev/nvme0n1 sync 61440 0
10114 /dev/nvme0n1 read 4096 4096
17735 /dev/nvme0n1 close
";
    let trace = read(log, &Options::default()).unwrap();
    let got: Vec<_> = trace
        .records
        .iter()
        .map(|record| (record.arrival_ns() / 1_000, record.op()))
        .collect();
    // The sync is a flush of the drive; its offset and length have no meaning.
    let expected = [
        (0, Op::Read),
        (1_271, Op::Read),
        (3_462, Op::Write),
        (9_718, Op::Flush),
        (9_992, Op::Read),
    ];
    assert_eq!(got, expected);
}

#[test]
fn a_log_without_times_has_an_order_only() {
    let log = "fio version 2 iolog\n/f add\n/f open\n/f read 0 4096\n/f write 8192 512\n/f close\n";
    let trace = told(log);
    assert!(!trace.timed);
    assert_eq!(Pace::for_trace(&trace), Pace::Depth(1));
    let waits = log.replace("/f write", "/f wait 500 0\n/f write");
    assert!(told(&waits).timed);
    assert_eq!(Pace::for_trace(&told(&waits)), Pace::Recorded(1.0));
    // Version 3 has a time in each line.
    assert!(told("fio version 3 iolog\n0 /f add\n0 /f read 0 4096\n").timed);
}

/// The examples in the README of alibaba/block-traces, one after another.
#[test]
fn alibabas_example_is_read() {
    let trace = told("0,R,126703644672,4096,1577808000000626\n9,W,0,512,1577808000001626\n");
    assert_eq!(trace.format.name, "alicloud");
    assert_eq!(trace.volumes, ["0", "9"]);
    let wanted = [
        (0, Op::Read, 126_703_644_672, 4096, None),
        (1_000, Op::Write, 0, 512, None),
    ];
    assert_eq!(rows(&trace), wanted);
}

/// The example that readers of FIU's traces quote.
#[test]
fn fius_example_is_read() {
    let trace =
        told("89968195792462 20782 gzip 283193184 8 R 6 0 56f11b711d91a065a2b6458eca924523\n");
    assert_eq!(trace.format.name, "fiu");
    assert_eq!(trace.volumes, ["6,0"]);
    let wanted = [(0, Op::Read, 283_193_184 * 512, 4096, None)];
    assert_eq!(rows(&trace), wanted);
}

/// The example in Baleen's README: "a request made for Block 310 starting at byte 262144 of size 4325376".
#[test]
fn baleens_example_is_read() {
    let trace = told("310 262144 4325376 1572074461.57806 1 24 3 5\n");
    assert_eq!(trace.format.name, "meta");
    assert_eq!(rows(&trace), [(0, Op::Read, 262_144, 4_325_376, None)]);
}

/// A block is identified by its id and its shard. Each has 8 MiB, placed in the order of the first access; a host is
/// a separate drive.
#[test]
fn metas_blocks_lie_in_the_order_of_their_first_touch() {
    let text = "op_time,block_id,block_id_size,io_size,io_offset,user_name,user_namespace,op_name,op_count,host_name,rs_shard_id\n\
                10,77,40,4096,100,u,n,getChunkData.Permanent,1,a,1\n\
                10,77,40,4096,0,u,n,putChunk.NotInitialized,1,a,2\n\
                11,77,40,4096,200,u,n,getChunkData.NotInitialized,3,a,1\n\
                11,77,40,4096,8388607,u,n,getChunkData.Permanent,1,b,1\n";
    let trace = told(text);
    assert_eq!(trace.volumes, ["a", "b"]);
    let wanted = [
        (0, Op::Read, 100, 4096, None),
        (0, Op::Write, 8 << 20, 4096, None),
        (1_000_000, Op::Read, 200, 4096, None),
        (1_000_000, Op::Read, (8 << 20) - 1, 4096, None),
    ];
    assert_eq!(rows(&trace), wanted);
    let notes: Vec<u64> = trace.notes.iter().map(|&(_, count)| count).collect();
    assert_eq!(notes, [1, 1], "{:?}", trace.notes);
}

/// Reads that hit the cache never reach the disk.
#[test]
fn googles_rows_are_what_the_disk_is_asked() {
    let names = "filename,file_offset,application,c_time,io_zone,redundancy_type,op_type,service_class,from_flash_cache,\
                 cache_hit,request_io_size_bytes,disk_io_size_bytes,response_io_size_bytes,start_time,disk_time,\
                 simulated_disk_start_time,simulated_latency";
    let rest = "spanner,100,WARM,REPLICATED";
    let text = format!(
        "{names}\n\
         a,0,{rest},READ,OTHER,0,1,1050624,0,0,10.0,0.0,0.0,0.001\n\
         a,4096,{rest},WRITE,OTHER,0,-1,8192,0,0,12.0,0.0,0.0,0.002\n\
         {names}\n\
         b,8388608,{rest},READ,OTHER,0,0,1000,4096,1000,12.5,0.0125,12.5,0.013\n"
    );
    let trace = told(&text);
    let wanted = [
        (0, Op::Write, 4096, 8192, None),
        (500_000, Op::Read, 8 << 20, 4096, Some(12_500.0)),
    ];
    assert_eq!(rows(&trace), wanted);
    assert_eq!(
        trace.notes,
        [("reads that the server's cache answered, left out".into(), 1)]
    );
}

/// Output of bcc: times are completion times, and the request issued first comes first.
#[test]
fn bccs_biosnoop_is_read() {
    let text = "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n\
                0.000000    jbd2/dm-0-8    231    nvme0n1 W 1000       4096      0.50\n\
                0.004000    tmux: server   88     nvme0n1 R 2000       512       4.20\n";
    let trace = told(text);
    assert_eq!(trace.format.name, "biosnoop");
    // The read was issued at -0.2 ms, the write at -0.5 ms.
    let wanted = [
        (0, Op::Write, 1000 * 512, 4096, Some(500.0)),
        (300, Op::Read, 2000 * 512, 512, Some(4_200.0)),
    ];
    assert_eq!(rows(&trace), wanted);
    let bpftrace = "TIME(ms)     DISK    COMM             PID    LAT(ms)\n611          nvme0n1 bash             4179        10\n";
    let refused = read(bpftrace.as_bytes(), &Options::default()).expect_err("no sectors");
    insta::assert_snapshot!(refused, @r"
    error: t:1: the output of this biosnoop has no columns SECTOR and BYTES (that of bpftrace has none)
      help: biosnoop of bcc (biosnoop-bpfcc) or of libbpf-tools says it
    ");
}

/// Flushes, trims, FUA, a requeue, a command without I/O, and the summary, as in blkparse(1).
#[test]
fn blkparse_prints_more_than_reads_and_writes() {
    let text = "Input file sda.blktrace.0 added\n\
          8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]\n\
          8,0    3        2     0.000001829   697  G   W 223490 + 8 [kjournald]\n\
          8,0    3        3     0.000002000   697  P   N [kjournald]\n\
          8,0    3        4     0.000010000   697  D  WFS 223490 + 8 [kjournald]\n\
          8,0    3        5     0.000020000     0  R  WFS 223490 + 8 [0]\n\
          8,0    3        6     0.000030000   697  D  WFS 223490 + 8 [IPC I/O Parent]\n\
          8,0    1        7     0.000050000     0  C  WFS 223490 + 8 [0]\n\
          8,0    1        8     0.000060000    12  D  FN [kworker/1:1H]\n\
          8,0    1        9     0.000160000     0  C  FN 0 [0]\n\
          8,16   1       10     0.000200000    12  D   D 4096 + 2048 [fstrim]\n\
          8,16   1       11     0.000210000    12  D   N 255 (12 00 00 00 ff 00 ..) [udevd]\n\
          8,16   1       12     0.000300000     0  C   D 4096 + 2048 [0]\n\
        CPU1 (sda):\n Reads Queued:           0,        0KiB\t Writes Queued:           1,        4KiB\n";
    let trace = told(text);
    assert_eq!(trace.format.name, "blkparse");
    assert_eq!(trace.volumes, ["8,0", "8,16"]);
    let wanted = [
        (0, Op::Write, 223_490 * 512, 4096, None),
        (20, Op::Write, 223_490 * 512, 4096, Some(20.0)),
        (50, Op::Flush, 0, 0, Some(100.0)),
        (190, Op::Deallocate, 4096 * 512, 1 << 20, Some(100.0)),
    ];
    assert_eq!(rows(&trace), wanted);
    assert!(trace.records[0].request().fua);
    let notes: Vec<&str> = trace.notes.iter().map(|(what, _)| &**what).collect();
    assert_eq!(
        notes,
        [
            "requests queued",
            "requests put back by the driver (each further issue counts)",
            "pass-through commands"
        ]
    );
    let refused = read(b"8,0 1 1 0.1 1 D R 8 + 8 [a]\nhello\n", &Options::default());
    for malformed in [
        "D R 8 - 8 [a]",
        "C R 8 - 8 [0]",
        "D R 8 8 [a]",
        "R R 8 * 8 [0]",
        "D R 8",
        "C R 8",
    ] {
        let text = format!("8,0 1 1 0.1 1 D R 8 + 8 [a]\n8,0 1 1 0.1 1 {malformed}\n");
        let said = read(text.as_bytes(), &Options::default()).expect_err(malformed);
        assert!(said.contains("t:2: column 9 (sign)"), "{malformed}: {said}");
    }
    insta::assert_snapshot!(refused.expect_err("no event"), @"error: t:2: column 1 (device) is `hello`, not major and minor number, such as 8,0");
}

fn by(list: &str, unit: Option<&str>) -> Options {
    let columns = Columns::new(list, unit).unwrap_or_else(|problems| panic!("{problems}"));
    Options {
        columns: Some(columns),
        ..Options::default()
    }
}

#[test]
fn any_text_is_read_by_its_columns() {
    let csv = b"when,disk,op,offset,size,took\n1.5,a,Read,4096,512,3\n2.5,b,WRITE,0,1024,4\n3,a,trim,8,8,5\n4,a,flush,,,6\n";
    let options = by("time=1,volume=2,op=3,offset=4,size=5,latency=6", Some("us"));
    let trace = read(csv, &options).unwrap();
    assert_eq!((trace.format.name, trace.timed), ("csv", true));
    assert_eq!(trace.volumes, ["a", "b"]);
    let wanted = [
        (0, Op::Read, 4096, 512, Some(3.0)),
        (1, Op::Write, 0, 1024, Some(4.0)),
        (1, Op::Deallocate, 8, 8, Some(5.0)),
        (2, Op::Flush, 0, 0, Some(6.0)),
    ];
    assert_eq!(rows(&trace), wanted);
    // Blanks, sectors, codes, and no times.
    let trace = read(
        b"8 16 0\n24 8 1\n",
        &by("sector=1,sectors=2,op=3,read=0", None),
    )
    .unwrap();
    let wanted = [
        (0, Op::Read, 4096, 8192, None),
        (0, Op::Write, 12_288, 4096, None),
    ];
    assert_eq!((rows(&trace), trace.timed), (wanted.to_vec(), false));
    // Semicolons, and an error in a later line.
    let refused = read(
        b"1;R;0;512\n2;R;x;512\n",
        &by("time=1,op=2,offset=3,size=4", Some("ms")),
    );
    insta::assert_snapshot!(refused.expect_err("no number"), @"error: t:2: column 3 (offset) is `x`, not a whole number");
    let refused = read(
        b"1,7,0,512\n",
        &by("time=1,op=2,offset=3,size=4", Some("ms")),
    );
    insta::assert_snapshot!(refused.expect_err("no word"), @r"
    error: t:1: column 2 (op) is `7`, not a word such as R, write, trim or flush
      help: read=0 in --columns means that 0 is a read, and any other value a write
    ");
}

#[test]
fn all_that_is_wrong_with_columns_is_told() {
    let wrong = Columns::new("tim=1,op=0,op=2,offset=3,sector=4,latency=99", Some("m"));
    insta::assert_snapshot!(wrong.expect_err("wrong"));
    let no_unit = Columns::new("time=1,op=2,offset=3,size=4", None).expect_err("no unit");
    insta::assert_snapshot!(no_unit, @r"
    error: command line: --columns has times, and --time-unit is not given
      help: s, ms, us or ns
    ");
    let format = Format::named("csv");
    let unnamed = read(
        b"1,R,0,512\n",
        &Options {
            format,
            ..Options::default()
        },
    );
    assert!(
        unnamed
            .expect_err("no columns")
            .contains("--columns such as time=1")
    );
}

/// A table whose heading names its columns is read by these names, and the result says so.
#[test]
fn a_table_with_a_heading_is_read_by_its_names() {
    let perf_tools = "Tracing block I/O. Ctrl-C to end.\n\
         STARTs          ENDs            COMM             PID    TYPE DEV      BLOCK        BYTES     LATms\n\
         5982800.302061  5982800.302679  supervise        1809   W    202,1    17039600     4096       0.62\n\
         5982800.302423  5982800.302842  tmux: server     1810   RM   202,1    17039608     8192       0.42\n";
    let trace = told(perf_tools);
    let wanted = [
        (0, Op::Write, 17_039_600 * 512, 4096, Some(620.0)),
        (362, Op::Read, 17_039_608 * 512, 8192, Some(420.0)),
    ];
    assert_eq!(rows(&trace), wanted);
    assert_eq!(trace.volumes, ["202,1"]);
    assert_eq!(
        trace.grounds().expect("names"),
        "read by the names of its columns (time=1,op=5,sector=7,size=8,volume=6,latency=9); --columns says otherwise"
    );
    let windows = "Process,Path,IO Type,Size (B),Offset,Init Time (s),Complete Time (s),IO Time (us),Disk\n\
         System (4),C:\\a,Read,\"4,096\",0x100000,0.012000,0.012080,80,0\n\
         System (4),\"C:\\b,c\",Write,8192,209715200,0.012300,0.012370,70,0\n";
    let wanted = [
        (0, Op::Read, 1 << 20, 4096, Some(80.0)),
        (300, Op::Write, 209_715_200, 8192, Some(70.0)),
    ];
    assert_eq!(rows(&told(windows)), wanted);
    let semicolons = "\u{feff}ts_us;op;lba;sectors\n0;read;8;16\n10;trim;16;8\n";
    let wanted = [
        (0, Op::Read, 4096, 8192, None),
        (10, Op::Deallocate, 8192, 4096, None),
    ];
    assert_eq!(rows(&told(semicolons)), wanted);
    let refused = |text: &str| read(text.as_bytes(), &Options::default()).expect_err("refused");
    assert_eq!(
        refused("time,op,offset,size\n1,R,0,512\n").to_string(),
        "error: t: names its columns, but not the unit of its times\n  \
         help: --columns time=1,op=2,offset=3,size=4 --time-unit UNIT, with s, ms, us or ns"
    );
    assert!(refused("time_us,op,offset,size\n1,R,0\n").contains("the heading names 4"));
    // Beside sectors, a length may count sectors too.
    let lengths = refused("time_us,op,lba,len\n0,R,2048,8\n");
    assert!(
        lengths.contains("a length whose unit is unknown"),
        "{lengths}"
    );
    // `t` with a unit is a time, not an operation.
    let times = refused("t_us,rw,offset,size\n0,R,0\n");
    assert!(times.contains("the heading names 4"), "{times}");
    assert_eq!(
        rows(&told("t_us,rw,offset,size\n7,R,0,512\n9,W,512,512\n"))[1].0,
        2
    );
    assert!(refused("time_us,op,offset,size\n1,R,x,512\n").contains("t:2: column 3"));
}

/// A length beside sectors may count bytes or sectors: the options of the message read the file.
#[test]
fn options_for_a_length_without_a_unit_read_the_file() {
    let refused = |text: &str| read(text.as_bytes(), &Options::default()).expect_err("refused");
    let unknown = "Timestamp,Operation,LBA,Size,Latency\n0,R,2048,8,70\n";
    let known = "time_ms,op,lba,len,lat_ms\n0,R,2048,8,70\n";
    let without = "op,lba,len\nR,2048,8\n";
    let mixed = "time,op,lba,len,lat_ms\n0,R,2048,8,70\n";
    for text in [
        "time_us,op,lba,len\n0,R,2048,8\n",
        unknown,
        known,
        without,
        mixed,
    ] {
        let help = refused(text);
        let mut parts = help.split("--columns ").skip(1);
        for (part, bytes) in [(parts.next(), 8), (parts.next(), 4096)] {
            let words: Vec<&str> = part.expect("two options").split(' ').collect();
            let unit = (words[1] == "--time-unit").then(|| words[2].trim_end_matches(','));
            let rows = rows(&read(text.as_bytes(), &by(words[0], unit)).expect("it reads"));
            let latency = match text {
                _ if text == unknown => Some(70.0),
                _ if text == known => Some(70_000.0),
                _ => None,
            };
            assert_eq!(rows, [(0, Op::Read, 1 << 20, bytes, latency)], "{help}");
        }
    }
}

/// A line of Microsoft's server traces, with and without the processor's column; a flush; and a file without headings.
#[test]
fn disk_events_of_windows_are_read_by_their_headings() {
    let text = "BeginHeader\n\
         \x20 DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID, CPU,             IrpPtr,   ByteOffset,     IOSize, ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,         FileObject, FileName\n\
         \x20 DiskReadInit,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr\n\
         \x20 DiskFlush,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr,                           ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri\n\
         EndHeader\n\
         \x20 DiskReadInit,       8329,        xperf.exe (3984),      11844, 0xffffe288b23f1b20\n\
         \x20 DiskRead,       8612,        xperf.exe (3984),      11844,   1, 0xffffe288b23f1b20, 0x018f0b8000, 0x00001000,         283,        0, 0x060043,         283,       3, Original, 0xffffe288272d0d20, \"C:\\$Mft\"\n\
         \x20 DiskFlush,      9000,        System (   4),         40, 0xffffe288b23f1b20,   500,  0, 0x060043,  500, 3\n";
    let trace = told(text);
    assert_eq!((trace.format.name, trace.grounds()), ("xperf", None));
    let wanted = [
        (0, Op::Read, 0x01_8f0b_8000, 4096, Some(283.0)),
        (171, Op::Flush, 0, 0, Some(500.0)),
    ];
    assert_eq!(rows(&trace), wanted);
    let bare = "DiskRead, 8612, x (1), 1, 0x1, 0x0, 0x1000, 283, 0\n";
    let options = Options {
        format: Format::named("xperf"),
        ..Options::default()
    };
    let refused = read(bare.as_bytes(), &options).expect_err("no names");
    assert!(refused.contains("no heading before this line"), "{refused}");
}

/// Files that people take for block traces are named, with what to record instead.
#[test]
fn traces_of_files_and_of_the_nvme_driver_are_named() {
    for (text, word) in [
        (
            "\"Time of Day\",\"Process Name\",\"PID\",\"Operation\",\"Path\",\"Result\",\"Detail\"\n",
            "Process Monitor",
        ),
        (
            "1234  10:00:00.000100 pread64(5, \"\"..., 4096, 1048576) = 4096 <0.000080>\n",
            "strace",
        ),
        (
            "fio-1  [001] .... 100.000100: nvme_setup_cmd: nvme0: disk=nvme0n1, qid=2, cmd=(nvme_cmd_read slba=256, len=7)\n",
            "NVMe driver",
        ),
        (
            "Access Time : 10:05:37 , File Name: 000012.sst , File Operation: Read , Latency: 5230 ns , Length: 4096 , Offset: 8192\n",
            "RocksDB",
        ),
        (
            "fio-1  [001] ..... 100.000100: block_bio_queue: 259,0 R 1024 + 256 [fio]\n",
            "before a request reaches the drive",
        ),
        (
            "12@1634567890.123456:blk_co_preadv blk 0x55 bs 0x56 offset 4096 bytes 8192 flags 0x0\n",
            "QEMU",
        ),
        (
            "READ usertable user6284781860667377211 [ <all fields>]\n",
            "YCSB",
        ),
        (
            "Attaching 4 probes...\nTIME(ms)     DISK    COMM             PID      LAT(ms)\n611 nvme0n1 bash 4179 10\n",
            "no columns SECTOR and BYTES",
        ),
    ] {
        let refused = read(text.as_bytes(), &Options::default()).expect_err(word);
        assert!(refused.contains(word), "{word}: {refused}");
    }
}
