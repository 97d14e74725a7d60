//! Traces as text: tracepoints as printed by three tracers, columns with commas, the reason for a detected format,
//! and files that are not traces.

use model::{Op, Span};
use workload::trace::{self, Format, Options, Trace};

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

/// Returns the message for a malformed trace of a format.
fn refused(format: &str, bytes: &[u8]) -> String {
    read_as(format, bytes).expect_err("must be refused")
}

/// Output of ftrace, trace-cmd report and perf script for one read of 16 KiB at sector 80986528.
#[test]
fn tracepoints_read_alike_whoever_prints_them() {
    let ftrace = "# tracer: nop\n\
        db-4000    [000] .....  1008.400196: block_rq_issue: 259,0 R 16384 () 80986528 + 32 none,0,0 [db]\n\
        <idle>-0       [000] d.h1.  1008.400296: block_rq_complete: 259,0 R () 80986528 + 32 none,0,0 [0]\n";
    let trace_cmd = "cpus=8\n\
        fio-4711  [003]  1008.400196: block_rq_issue:       259,0 R 16384 () 80986528 + 32 [fio]\n\
        <idle>-0     [003]  1008.400296: block_rq_complete:    259,0 R () 80986528 + 32 [0]\n";
    let perf = "fio  4711 [003]  1008.400196:     block:block_rq_issue: 259,0 R 16384 () 80986528 + 32 none,0,0 [fio]\n\
        swapper     0 [003]  1008.400296:  block:block_rq_complete: 259,0 R () 80986528 + 32 none,0,0 [0]\n";
    for text in [ftrace, trace_cmd, perf] {
        let trace = read(text.as_bytes(), &Options::default()).expect(text);
        assert_eq!(trace.format.name, "ftrace");
        let one = trace.records[0].request();
        assert_eq!(
            (one.op, one.offset, one.bytes),
            (Op::Read, 80_986_528 * 512, 16_384)
        );
        assert_eq!(one.latency, Some(Span::from_us(100)));
        assert_eq!(trace.volumes, ["259,0"]);
    }
    let flush = "kworker/1:1H-9 [001] 5.000001: block_rq_issue: 8,0 FF 0 () 0 + 0 [kworker/1:1H]\n\
        <idle>-0 [001] 5.000101: block_rq_complete: 8,0 FF () 18446744073709551615 + 0 [0]\n";
    let flush = read_as("ftrace", flush.as_bytes()).expect("a flush");
    assert_eq!(flush.records[0].op(), Op::Flush);
    assert_eq!(flush.records[0].latency(), Some(Span::from_us(100)));
    let untimed = refused(
        "ftrace",
        b"db-1 [000] block_rq_issue: 8,0 R 4096 () 8 + 8 [db]\n",
    );
    assert!(untimed.contains("no time in seconds"), "{untimed}");
}

#[test]
fn a_comma_within_a_column_separates_no_others() {
    let columns =
        trace::Columns::new("time=1,volume=2,op=3,sector=4,sectors=5", Some("us")).unwrap();
    let options = Options {
        columns: Some(columns),
        ..Options::default()
    };
    for text in [
        "10 259,0 R 8 16\n",
        "10,\"259,0\",R,8,16\n",
        "10; 259,0; R; 8; 16\n",
    ] {
        let trace = read(text.as_bytes(), &options).expect(text);
        assert_eq!(
            (&*trace.volumes[0], trace.records[0].request().bytes),
            ("259,0", 8_192)
        );
    }
}

/// Files that users pass to `replay` although they contain no block requests are named in the message.
#[test]
fn what_is_no_block_trace_is_named() {
    for (text, part) in [
        (
            "key,op,size,op_count,key_size\n1,GET,0,1,12\n",
            "key-value cache",
        ),
        ("0,q:q:1:8WTfjZU14ee,17,213,4,get,0\n", "key-value cache"),
        (
            "     usecs  : count distribution\n  0 -> 1  : 0 |                    |\n  2 -> 3  : 9 |********            |\n",
            "histogram",
        ),
    ] {
        let said = read(text.as_bytes(), &Options::default()).expect_err(text);
        assert!(said.contains(part), "{said}");
    }
    let utf16: Vec<u8> = "1,2,3\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let said = read(&utf16, &Options::default()).expect_err("UTF-16");
    assert!(said.contains("is UTF-16"), "{said}");
}

/// Five columns of whole numbers fit many formats: the reader reports its choice, and doubts it if the values are
/// implausible.
#[test]
fn a_guessed_format_gives_its_grounds_and_is_doubted() {
    let sane = read(b"1000 0 8 8 1\n2000 0 16 8 1\n", &Options::default()).unwrap();
    let grounds = sane.grounds().expect("a guess");
    assert!(grounds.starts_with("taken for MQSim"), "{grounds}");
    assert_eq!(sane.doubt(), None);
    assert_eq!(read_as("mqsim", b"1000 0 8 8 1\n").unwrap().grounds(), None);
    let far = read(
        b"1000 0 300000000000 8 1\n2000 0 8 8 1\n",
        &Options::default(),
    )
    .unwrap();
    assert!(far.doubt().is_some_and(|it| it.contains("end at 153 TB")));
    let odd: String = (1..9)
        .map(|n| format!("{n}000 0 {} 200000 1\n", n * 8))
        .collect();
    let odd = read(odd.as_bytes(), &Options::default()).unwrap();
    assert!(odd.doubt().is_some_and(|it| it.contains("102400000 B")));
}
