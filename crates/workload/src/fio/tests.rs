//! Job files and command lines as users write them, and the messages about mistakes.

use std::io;
use std::path::{Path, PathBuf};

use model::Span;
use model::host::Engine;
use proptest::prelude::*;

use super::*;
use crate::job::{BlockSizes, Distribution, Extent, Mix, Rate, SteadyMetric, SyncMode};

fn environment(name: &str) -> Option<String> {
    match name {
        "SIZE" => Some("2g".into()),
        "DIRECTION" => Some("randwrite".into()),
        _ => None,
    }
}

fn files(path: &Path) -> io::Result<Vec<u8>> {
    match path.to_str() {
        Some("jobs/common.inc") => Ok(b"bs=16k ; included\niodepth=7\n".to_vec()),
        Some("jobs/loop.inc") => Ok(b"include loop.inc\n".to_vec()),
        Some("jobs/one.fio") => Ok(b"[global]\nrw=randread\n[one]\nbs=4k\n".to_vec()),
        Some("jobs/two.fio") => Ok(b"[two]\nbs=8k\n[three]\n".to_vec()),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
    }
}

mod accepted;
mod wild;

const HERE: Surroundings = Surroundings {
    environment: &environment,
    read: &files,
    processors: 8,
};

fn read_ok(text: &str) -> JobSet {
    read_text("jobs/test.fio", text, &HERE).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Returns the only job of a section with these options (direct, so that there is no warning about buffered I/O).
fn job(options: &str) -> Job {
    read_ok(&format!("[job]\ndirect=1\n{options}\n"))
        .jobs
        .remove(0)
}

#[test]
fn sections_inherit_from_globals_above_them_only() {
    let set = read_ok(
        "; a comment\n\
         # another\n\
         [global]\n\
         direct=1   ; after a value\n\
         size=1g\n\
         ioengine=libaio\n\
         bs=8k\n\
         \n\
         [first]\n\
         rw=randread\n\
         iodepth=32\n\
         [global]\n\
         bs=64k\n\
         [second] # named\n\
         stonewall\n\
         rw=write\n",
    );
    let [first, second] = &set.jobs[..] else {
        panic!("{} jobs", set.jobs.len())
    };
    assert_eq!(first.block_sizes[0], BlockSizes::Fixed(8192));
    assert_eq!(
        (first.iodepth, first.random, first.stonewall),
        (32, true, false)
    );
    assert_eq!(second.block_sizes[1], BlockSizes::Fixed(65536));
    assert_eq!(
        (second.iodepth, second.mix, second.stonewall),
        (1, Mix::Write, true)
    );
    assert_eq!(second.engine, Engine::Libaio);
    assert_eq!(set.warnings, Vec::<String>::new());
    assert_eq!(
        set.globals,
        [
            ("direct", "1"),
            ("size", "1g"),
            ("ioengine", "libaio"),
            ("bs", "64k")
        ]
        .map(|(key, value)| (key.into(), value.into()))
    );
    assert_eq!(
        first.as_written,
        [("rw", "randread"), ("iodepth", "32")].map(|(key, value)| (key.into(), value.into()))
    );
}

#[test]
fn sizes_are_fios() {
    let size = |text: &str| match job(&format!("size={text}\nfilename=/dev/x")).size {
        Some(Extent::Bytes(bytes)) => bytes,
        other => panic!("{other:?}"),
    };
    // With kb_base=1024 (the default), fio reads `kib` as 1000, and `ki`, `kb` and `k` as 1024: observed with fio
    // 3.33.
    for (text, bytes) in [
        ("4096", 4096),
        ("0x1000", 4096),
        ("4k", 4096),
        ("4K", 4096),
        ("4kb", 4096),
        ("4ki", 4096),
        ("4kib", 4000),
        ("1m", 1 << 20),
        ("1MiB", 1_000_000),
        ("2g", 2 << 30),
        ("1t", 1 << 40),
        ("(2^10*4)", 4096),
        ("(1m+4k)", (1 << 20) + 4096),
        ("8*$pagesize", 32768),
        ("$ncpus", 8),
        ("${SIZE}", 2 << 30),
    ] {
        assert_eq!(size(text), bytes, "{text}");
    }
    // kb_base applies anywhere in the section.
    assert_eq!(size("4k\nkb_base=1000"), 4000);
    assert_eq!(size("4kib\nkb_base=1000"), 4096);
    assert_eq!(job("size=25%").size, Some(Extent::Percent(25.0)));
}

#[test]
fn lists_by_direction_are_fios() {
    let sizes = |text: &str| {
        job(&format!("bs={text}"))
            .block_sizes
            .map(|sizes| match sizes {
                BlockSizes::Fixed(bytes) => bytes / 512,
                other => panic!("{other:?}"),
            })
    };
    // Values as fio 3.33 prints them in its first line of output, in units of 512 bytes.
    assert_eq!(sizes("4k,8k"), [8, 16, 16]);
    assert_eq!(sizes(",8k"), [8, 16, 16]);
    assert_eq!(sizes("8k,"), [16, 8, 8]);
    assert_eq!(sizes("8k,,16k"), [16, 8, 32]);
    assert_eq!(sizes("4k:8k"), [8, 16, 16]);
    assert_eq!(sizes("1k,2k,512"), [2, 4, 1]);
    let ranges = job("bsrange=4k-8k,1k-2k").block_sizes;
    assert_eq!(
        ranges[0],
        BlockSizes::Range {
            min: 4096,
            max: 8192,
            step: 4096
        }
    );
    assert_eq!(ranges[1], ranges[2]);
    assert_eq!(
        job("rate=,10m").rate,
        [
            None,
            Some(Rate::Bytes(10 << 20)),
            Some(Rate::Bytes(10 << 20))
        ]
    );
}

#[test]
fn a_range_of_sizes_beats_a_size_wherever_it_stands() {
    let job = read_ok("[global]\ndirect=1\nbsrange=4k-8k\n[a]\nbs=64k\n")
        .jobs
        .remove(0);
    assert_eq!(
        job.block_sizes[0],
        BlockSizes::Range {
            min: 4096,
            max: 8192,
            step: 4096
        }
    );
}

#[test]
fn shares_of_sizes_fill_up_as_in_fio() {
    let split = |text: &str| match &job(&format!("bssplit={text}")).block_sizes[0] {
        BlockSizes::Split(split) => split.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(split("4k/60:64k/40"), [(65536, 40.0), (4096, 60.0)]);
    assert_eq!(
        split("4k/50:8k/:16k"),
        [(8192, 25.0), (16384, 25.0), (4096, 50.0)]
    );
    // The remainder goes to the size with the largest share.
    assert_eq!(split("4k/30:8k/40"), [(4096, 30.0), (8192, 70.0)]);
    assert_eq!(
        split("4k:8k:16k"),
        [(4096, 33.0), (8192, 33.0), (16384, 34.0)]
    );
    let both = job("bssplit=4k/50:8k/50,16k").block_sizes;
    assert_eq!(both[1], BlockSizes::Fixed(16384));
    assert_eq!(both[2], BlockSizes::Fixed(16384));
}

#[test]
fn times_have_the_unit_of_their_option() {
    assert_eq!(job("runtime=90").runtime, Some(Span::from_seconds(90.0)));
    assert_eq!(job("timeout=2m").runtime, Some(Span::from_seconds(120.0)));
    assert_eq!(job("runtime=500ms").runtime, Some(Span::from_ms(500)));
    assert_eq!(job("ramp_time=1h").ramp_time, Span::from_seconds(3600.0));
    assert_eq!(
        job("thinktime=50").think.map(|think| think.pause),
        Some(Span::from_us(50))
    );
    assert_eq!(
        job("thinktime=2ms").think.map(|think| think.pause),
        Some(Span::from_ms(2))
    );
    let delayed = read_ok("[a]\ndirect=1\nsize=1g\nstartdelay=2-5\nfilesize=1g-2g\n");
    assert_eq!(delayed.jobs[0].startdelay, Span::from_seconds(2.0));
    assert_eq!(delayed.warnings.len(), 2);
    assert_eq!(
        job("runtime=(1m+30s)").runtime,
        Some(Span::from_seconds(90.0))
    );
}

#[test]
fn all_modes() {
    for (text, mix, random) in [
        ("read", Mix::Read, false),
        ("write", Mix::Write, false),
        ("trim", Mix::Trim, false),
        ("rw", Mix::ReadWrite, false),
        ("readwrite", Mix::ReadWrite, false),
        ("randread", Mix::Read, true),
        ("randwrite", Mix::Write, true),
        ("randtrim", Mix::Trim, true),
        ("randrw", Mix::ReadWrite, true),
        ("trimwrite", Mix::TrimWrite, false),
        ("randtrimwrite", Mix::TrimWrite, true),
    ] {
        let job = job(&format!("readwrite={text}"));
        assert_eq!((job.mix, job.random), (mix, random), "{text}");
    }
    assert_eq!(job("rw=randread:8").sequence, 8);
    assert_eq!(job("rw=write:4k").skip, 4096);
    assert_eq!(job("rw=read:-8k").skip, -8192);
    assert_eq!(job("rw=rw\nrwmixwrite=30").read_percent, 70);
}

#[test]
fn distributions() {
    let distribution =
        |text: &str| job(&format!("rw=randread\nrandom_distribution={text}")).distribution;
    assert_eq!(
        distribution("zipf")[0],
        Distribution::Zipf {
            theta: 1.1,
            centre: None
        }
    );
    assert_eq!(
        distribution("zipf:0.9:0.25")[1],
        Distribution::Zipf {
            theta: 0.9,
            centre: Some(0.25)
        }
    );
    assert_eq!(
        distribution("normal:12.5")[2],
        Distribution::Normal {
            deviation: 12.5,
            centre: None
        }
    );
    assert_eq!(
        distribution("zoned:60/10:30/20:10/,50/5:50/95")[0],
        Distribution::Zoned(vec![(60.0, 10.0), (30.0, 20.0), (10.0, 70.0)])
    );
    assert_eq!(
        distribution("zoned:60/10:40/90,50/5:50/95")[2],
        Distribution::Zoned(vec![(50.0, 5.0), (50.0, 95.0)])
    );
    assert_eq!(
        distribution("zoned_abs:95/50G:5/100G")[0],
        Distribution::ZonedAbsolute(vec![(95.0, 50 << 30), (5.0, 100 << 30)])
    );
    assert!(job("rw=randread\nrandom_distribution=pareto:0.3").norandommap);
}

#[test]
fn criteria_of_steady_state_and_latency() {
    let steady = job("steadystate=bw:10%\nss_dur=30s\nss_ramp=5")
        .steady_state
        .expect("given");
    assert_eq!(
        (steady.metric, steady.slope, steady.limit, steady.percent),
        (SteadyMetric::Bandwidth, false, 10.0, true)
    );
    assert_eq!(
        (steady.duration, steady.ramp),
        (Span::from_seconds(30.0), Span::from_seconds(5.0))
    );
    assert_eq!(job("steadystate=iops_slope:0.3%").steady_state, None);
    let target = job("latency_target=200us\nlatency_window=10s\nlatency_percentile=99.9")
        .latency_target
        .expect("given");
    assert_eq!(
        (target.target, target.window, target.percentile),
        (Span::from_us(200), Span::from_seconds(10.0), 99.9)
    );
}

#[test]
fn engines_and_durability() {
    assert_eq!(job("").engine_name, "psync");
    let job =
        job("ioengine=io_uring\nhipri\nsync=dsync\nfsync=4\nfsync_on_close=1\nnumjobs=4\nthread");
    assert_eq!(
        (job.engine, job.high_priority, job.sync),
        (Engine::IoUring, true, SyncMode::DataSync)
    );
    assert_eq!(
        (job.fsync, job.end_fsync, job.numjobs, job.thread),
        (4, true, 4, true)
    );
}

#[test]
fn includes_and_environment() {
    let set = read_ok(
        "[global]\ndirect=1\nioengine=libaio\ninclude common.inc\n[a]\nrw=${DIRECTION}\nsize=${UNSET}1g\n",
    );
    let job = &set.jobs[0];
    assert_eq!(
        (job.block_sizes[1].clone(), job.iodepth),
        (BlockSizes::Fixed(16384), 7)
    );
    assert_eq!(
        (job.mix, job.size),
        (Mix::Write, Some(Extent::Bytes(1 << 30)))
    );
    assert_eq!(set.warnings, ["${UNSET} is not set and counts as empty"]);
    let problems = read_text("jobs/x.fio", "[a]\ninclude loop.inc\n", &HERE)
        .expect_err("endless")
        .to_string();
    insta::assert_snapshot!(problems, @"error: jobs/loop.inc:1:1: files include each other more than 16 deep");
}

#[test]
fn a_file_that_includes_itself_twice_is_not_read_without_end() {
    let twice = Surroundings {
        read: &|_| Ok(b"include me\ninclude me\n".to_vec()),
        ..HERE
    };
    let problems = read_text("x.fio", "[a]\ninclude me\n", &twice).expect_err("endless");
    let endless = "more than 256 files are included in all";
    let said = problems.0.iter().filter(|problem| problem.what == endless);
    assert_eq!(said.count(), 1);
    assert!(problems.0.len() <= 257, "{}", problems.0.len());
}

#[test]
fn files_of_jobs_do_not_overlap() {
    let set = read_ok(
        "[global]\ndirect=1\n[a]\nsize=1m\nnumjobs=3\n[b]\nfilename=x\nsize=2m\n[c]\nfilename=x\nsize=1m\noffset=1m\n\
         [d]\nfilename=/dev/nvme0n1\noffset=1g\n",
    );
    let places: Vec<_> = set
        .jobs
        .iter()
        .map(|job| (job.offset, job.offset_increment))
        .collect();
    let bytes = |start: u64, step: u64| (Extent::Bytes(start << 20), Extent::Bytes(step << 20));
    // The shared file first, then a file for each copy of `a`.
    assert_eq!(
        places,
        [bytes(2, 1), bytes(0, 0), bytes(1, 0), bytes(1024, 0)]
    );
}

#[test]
fn a_share_of_a_file_begins_at_a_block() {
    let set = read_ok(
        "[a]\ndirect=1\nbs=128k\nsize=4g\nnumjobs=4\noffset=33%\noffset_increment=10%\nfilesize=8g\n",
    );
    let block = 128 << 10;
    let up = |share: u64| (share * (8 << 30) / 100).next_multiple_of(block);
    let job = &set.jobs[0];
    assert_eq!(job.offset, Extent::Bytes(up(33)));
    assert_eq!(job.offset_increment, Extent::Bytes((8 << 30) + up(10)));
}

#[test]
fn what_a_model_cannot_do_is_said_once() {
    let set = read_ok(
        "[global]\nruntime=5\nioengine=libaio\ncpus_allowed=0-3\nverify_pattern=0xdeadbeef\nnrfiles=1\n[a]\ncpus_allowed=1\nverify=crc32c\n\
         [b]\nioengine=psync\niodepth=8\nwait_for=a\nflow=8\n",
    );
    insta::assert_snapshot!(set.warnings.join("\n"), @r#"
    ignored (no effect on a simulated drive): cpus_allowed, verify_pattern
    not simulated, though it would change what fio does: verify=crc32c, flow=8
    buffered I/O (fio's default; direct=1 bypasses the page cache): through the host's page cache and the journal of ext4, unless --filesystem says otherwise
    ioengine=psync is synchronous: iodepth=8 is capped at 1, as in fio (b)
    wait_for=a waits for all earlier jobs, as stonewall does (b)
    "#);
    assert!(set.jobs[1].stonewall);
    assert_eq!(set.jobs[1].iodepth, 1);
}

#[test]
fn problems_name_line_key_and_cure() {
    let text = "[global]\nrw=randread\nblocksiz=4k\ndirect=1\n[one]\niodepth=zero\nruntime=60sec\n[two\nbs=1.5k\nioengine=pmemblk\n[three]\n\
                rw=randreed\nsize=4q\nbs=4kib\nhipri\nbssplit=4k/60:8k/60:16k:32k\nrate=1m\nrate_iops=5\nrwmixread=101\ndirect=yes\niodepth\n";
    let problems = read_text("bad.fio", text, &HERE).expect_err("full of mistakes");
    insta::assert_snapshot!(problems.to_string(), @r#"
    error: bad.fio:3:1: blocksiz: fio has no such option
      help: did you mean `blocksize`?
    error: bad.fio:6:1: iodepth: `zero` is not a number
      help: a whole number, with an optional suffix, such as 4096, 4k or 10g
    error: bad.fio:7:1: runtime: `60sec` is not a time
      help: a whole number and us, ms, s, m (minutes), h or d, such as 500ms or 5m; a bare one counts seconds
    error: bad.fio:8:1: `[two` is not the head of a section
      help: a name in brackets, such as [job1], on a line of its own
    error: bad.fio:9:1: bs: `.5k` in `1.5k` is not a suffix of a size
      help: a whole number and k, m, g, t or p, alone or with b (see kb_base)
    error: bad.fio:10:1: ioengine: `pmemblk` reads and writes memory, so the kernel decides what reaches a drive and when
      help: for the same I/O on a drive, use one of sync, psync, vsync, pvsync, pvsync2, sg, libzbc, mmap, libaio, posixaio, io_uring, io_uring_cmd, spdk, spdk_nvme, spdk_bdev, nbd, xnvme, libblkio, windowsaio, solarisaio
    error: bad.fio:12:1: rw: there is no `randreed`
      help: did you mean `randread`? There are: read, write, trim, randread, randwrite, randtrim, rw, readwrite, randrw, trimwrite, randtrimwrite
    error: bad.fio:13:1: size: `q` in `4q` is not a suffix of a size
      help: a whole number and k, m, g, t or p, alone or with b (see kb_base)
    error: bad.fio:16:1: bssplit: the shares add up to 120 %, and 2 sizes have none
      help: 100 % or less, or a share for each size
    error: bad.fio:19:1: rwmixread: 101 is too large
      help: at most 100
    error: bad.fio:20:1: direct: `yes` is neither on nor off
      help: 0 or 1
    error: bad.fio:21:1: iodepth: needs a value
      help: iodepth=...
    error: bad.fio:14:1: bs: block size 4000 is not a multiple of 512 bytes
      help: a multiple of 512 with direct=1, such as 4096 or 4k (to fio `4kib` is 4000, and with kb_base=1000 `4k` is)
    error: bad.fio:18:1: rate_iops: rate and rate_iops exclude each other
      help: one of the two
    error: bad.fio:15:1: hipri: is not an option of ioengine=psync
      help: ioengine=io_uring or ioengine=io_uring_cmd or ioengine=pvsync2 or ioengine=sg or ioengine=xnvme or ioengine=libblkio
    "#);
    insta::assert_snapshot!(read_text("empty.fio", "; nothing\n", &HERE).expect_err("empty").to_string(), @r"
    error: empty.fio: holds no job
      help: a section such as [name]; options in [global] alone run nothing
    ");
    insta::assert_snapshot!(read_text("lost.fio", "rw=read\n", &HERE).expect_err("no section").to_string(), @r#"
    error: lost.fio:1:1: `rw=read` is before the first section
      help: a section such as [global] or [job1] above it
    "#);
    insta::assert_snapshot!(problems_of_line(), @r#"
    error: command line:1:26: iodepth: 0 is too small
      help: at least 1
    error: command line:1:38: nmjobs: fio has no such option
      help: did you mean `numjobs`?
    "#);
}

fn problems_of_line() -> String {
    let arguments = ["--rw=randread", "--name=a", "--iodepth=0", "--nmjobs=2"].map(String::from);
    read(&arguments, &[], &[], &HERE)
        .expect_err("wrong")
        .to_string()
}

#[test]
fn a_command_line_is_a_job_file() {
    let arguments = [
        "--direct=1",
        "--bs=8k",
        "--name=a",
        "--rw=randread",
        "--name=b",
        "--stonewall",
        "--rw=write",
    ];
    let set = read(&arguments.map(String::from), &[], &[], &HERE).expect("right");
    let names: Vec<&str> = set.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(
        set.jobs
            .iter()
            .all(|job| job.block_sizes[0] == BlockSizes::Fixed(8192))
    );
    assert!(set.jobs[1].stonewall);
    let alone = read(
        &["--direct=1", "--rw=randread"].map(String::from),
        &[],
        &[],
        &HERE,
    )
    .expect("right");
    assert_eq!((alone.jobs.len(), alone.jobs[0].random), (1, true));
}

#[test]
fn further_files_wait_and_start_afresh() {
    let files = ["jobs/one.fio", "jobs/two.fio"].map(PathBuf::from);
    let set = read(&["--direct=1".into()], &files, &[], &HERE).expect("right");
    let shape: Vec<_> = set
        .jobs
        .iter()
        .map(|job| (job.name.as_str(), job.random, job.stonewall))
        .collect();
    assert_eq!(
        shape,
        [
            ("one", true, false),
            ("two", false, true),
            ("three", false, false)
        ]
    );
    let one = read(&[], &files, &["three".into()], &HERE).expect("right");
    assert_eq!(one.jobs.len(), 1);
    assert!(read(&[], &["gone.fio".into()], &[], &HERE).is_err());
}

/// Every option that fio 3.33 lists for its jobs (`fio --cmdhelp=all`) is in the table.
#[test]
fn no_option_of_fio_is_missing() {
    let known: Vec<&str> = table::names().collect();
    let missing: Vec<&str> = include_str!("fio-3.33-options.txt")
        .split_whitespace()
        .filter(|name| !known.contains(name))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
    let mut sorted = known.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(
        sorted.len(),
        known.len(),
        "a name stands twice in the table"
    );
}

/// The address of a server, as in the engines for network block devices, has no effect on the model.
#[test]
fn an_address_of_a_server_is_read_past() {
    let there = job("uri=nbd://localhost/p\nsize=1m");
    let as_written = there.as_written.clone();
    let here = job("size=1m");
    assert_eq!(there, Job { as_written, ..here });
}

proptest! {
    /// No text makes the reader panic, and what it accepts has at least one job.
    #[test]
    fn any_text_is_read_or_refused(text in "(\\[?[a-z_]{0,12}\\]?[=:/,%0-9a-z${}().*-]{0,12}\n){0,12}") {
        if let Ok(set) = read_text("t.fio", &text, &HERE) {
            prop_assert!(!set.jobs.is_empty());
        }
    }

    /// As above with real keys, so that the values are parsed.
    #[test]
    fn any_value_is_read_or_refused(which in 0usize..400, value in "[-=:/,.%0-9a-zG${}()*^+ ]{0,24}") {
        let names: Vec<&str> = table::names().collect();
        let text = format!("[j]\n{}={value}\n", names[which % names.len()]);
        if let Ok(set) = read_text("t.fio", &text, &HERE) {
            prop_assert!(!set.jobs.is_empty());
        }
    }

    /// Sizes in all units have the right number of bytes, and 0 is the whole drive, as in fio.
    #[test]
    fn sizes_multiply(count in 0u64..1000, power in 0usize..5) {
        let unit = ["", "k", "m", "g", "t"][power];
        let job = job(&format!("filename=/dev/x\nsize={count}{unit}"));
        prop_assert_eq!(job.size, (count > 0).then_some(Extent::Bytes(count << (10 * power))));
    }
}

#[test]
fn ranges_of_numbers_are_told_in_few_words() {
    for (option, meant) in [
        ("percentile_list=99,99.9", "a number above 0 to 100"),
        (
            "random_distribution=zipf:x",
            "a number of at least 0, such as 1.2",
        ),
        ("latency_percentile=101", "a number from 0 to 100"),
    ] {
        let text = format!("[a]\nrw=read\nsize=1m\n{option}\n");
        let wrong = read_text("a.fio", &text, &HERE).expect_err(option);
        let help = wrong.0[0].help.as_deref();
        assert_eq!(help, Some(meant), "{option}");
    }
}
