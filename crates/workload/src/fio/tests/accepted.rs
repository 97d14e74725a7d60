//! Inputs that fio accepts and a stricter reader might refuse: names of its profiles, templates, unusual block sizes,
//! files of copies.

use model::host::{Advice, Filesystem};

use super::*;

/// fio 3.33 accepts the options of its profiles in any job without effect ("Starting 1 process").
#[test]
fn options_of_fios_profiles_are_ignored() {
    let set = read_ok("[a]\ndirect=1\nsize=1m\nthreads=1\nprep=1\n");
    assert!(!set.jobs[0].thread);
    assert_eq!(
        set.warnings,
        ["ignored (no effect on a simulated drive): threads, prep"]
    );
}

#[test]
fn a_percent_sign_may_be_doubled() {
    assert_eq!(job("size=50%%").size, Some(Extent::Percent(50.0)));
    let steady = job("steadystate=iops:2%%\nss_dur=10").steady_state;
    assert!(steady.is_some_and(|steady| steady.percent && steady.limit == 2.0));
    let split = job("bssplit=4k/60%%:8k/40%").block_sizes[0].clone();
    assert_eq!(split, BlockSizes::Split(vec![(8192, 40.0), (4096, 60.0)]));
    assert_eq!(
        job("description=100%% random").reporting.description,
        Some("100%% random".into())
    );
}

#[test]
fn memory_is_a_figure_that_is_told() {
    let set = read_ok("[a]\ndirect=1\nfilename=/dev/x\nsize=2*$mb_memory\n");
    assert_eq!(set.jobs[0].size, Some(Extent::Bytes(2 * 65_536)));
    assert_eq!(
        set.warnings,
        ["$mb_memory is read as 65536: no host here says how much memory it has"]
    );
}

#[test]
fn a_variable_that_is_not_set_is_named() {
    let text = "[a]\nrw=read\nsize=${NOPE}\nbs=${ONE}${TWO}\niodepth=${NOPE}x\n";
    let problems = read_text("t.fio", text, &HERE).expect_err("nothing is set");
    insta::assert_snapshot!(problems, @r"
    error: t.fio:3:1: size: ${NOPE} is not set
      help: set it, such as NOPE=... drivelab run ...
    error: t.fio:4:1: bs: ${ONE} or ${TWO} is not set
      help: set it, such as ONE=... drivelab run ...
    error: t.fio:5:1: iodepth: ${NOPE} is not set
      help: set it, such as NOPE=... drivelab run ...
    ");
}

/// etcd's disk test: the page cache writes whole pages, and fio counts 2,300 B.
#[test]
fn buffered_blocks_may_have_any_size() {
    let etcd = "rw=write\nioengine=sync\nfdatasync=1\nsize=22m\nbs=2300\n";
    let set = read_ok(&format!("[etcd]\n{etcd}"));
    let job = &set.jobs[0];
    assert_eq!(job.block_sizes[1], BlockSizes::Fixed(2300));
    assert!(job.whole_pages);
    insta::assert_snapshot!(set.warnings.join("\n"), @"buffered I/O (fio's default; direct=1 bypasses the page cache): through the host's page cache and the journal of ext4, unless --filesystem says otherwise");
    let usual = read_ok("[a]\nsize=1m\nbs=512\n");
    assert!(!usual.jobs[0].whole_pages);
    for nothing_between in ["direct=1\nrw=write", "ioengine=nbd\nrw=write", "rw=trim"] {
        let text = format!("[a]\nsize=1m\nbs=2300\n{nothing_between}\n");
        let problems = read_text("t.fio", &text, &HERE).expect_err(nothing_between);
        assert!(problems.0[0].what.contains("not a multiple of 512"));
    }
}

/// I/O without `direct=1` is buffered, as in fio: it uses a page cache, and a journal unless a device is named. Replays
/// of recorded I/O are direct, with a warning. A warning says that the page cache follows from fio's default.
#[test]
fn io_is_buffered_unless_a_job_says_otherwise() {
    let of = |options: &str| {
        let set = read_ok(&format!("[a]\nsize=1m\n{options}\n"));
        let told = set
            .warnings
            .iter()
            .any(|one| one.contains("run as direct=1"));
        (set.jobs[0].direct, set.jobs[0].filesystem, told)
    };
    let ext4 = Some(Filesystem::Ext4);
    assert_eq!(of("rw=write\nfdatasync=1"), (false, ext4, false));
    assert_eq!(of("rw=randwrite\nsync=dsync"), (false, ext4, false));
    assert_eq!(
        of("rw=write\nfsync=8\nfilename=/dev/x"),
        (false, None, false)
    );
    assert_eq!(of("rw=write\nfdatasync=1\ndirect=1"), (true, None, false));
    for other in [
        "rw=write",
        "rw=read",
        "rw=rw\nfdatasync=1",
        "rw=write\nend_fsync=1",
    ] {
        for asked in ["", "direct=0", "buffered=1"] {
            let asked = of(&format!("{other}\n{asked}"));
            assert_eq!(asked, (false, ext4, false), "{other}");
        }
    }
    assert_eq!(of("ioengine=mmap\ndirect=1"), (false, ext4, false));
    for direct in ["direct=1", "buffered=0", "ioengine=nbd", "ioengine=sg"] {
        let direct = of(&format!("rw=read\n{direct}"));
        assert_eq!((direct.0, direct.1), (true, None));
    }
    let told = |options: &str| read_ok(&format!("[a]\nsize=1m\n{options}\n")).warnings;
    let default = told("rw=read\nfilename=/dev/x");
    assert_eq!(
        default,
        [
            "buffered I/O (fio's default; direct=1 bypasses the page cache): through the host's page cache"
        ]
    );
    assert_eq!(told("rw=read\ndirect=1"), [""; 0]);
    assert_eq!(of("rw=trim"), (true, None, false));
    assert_eq!(of("read_iolog=log"), (true, None, true));
    let mut set =
        read_ok("[global]\nrw=write\nfsync=1\nsize=1m\n[a]\n[b]\nfilename=/dev/x\n[c]\ndirect=1\n");
    in_filesystem(&mut set, Some(Filesystem::Xfs));
    let all = |set: &JobSet| -> Vec<_> {
        set.jobs
            .iter()
            .map(|job| (job.direct, job.filesystem))
            .collect()
    };
    let xfs = Some(Filesystem::Xfs);
    assert_eq!(all(&set), [(false, xfs), (false, None), (true, xfs)]);
    in_filesystem(&mut set, None);
    assert_eq!(all(&set), [(true, None); 3]);
}

/// fio advises the kernel by the job's accesses, unless `fadvise_hint` states otherwise. `dd` gives no advice.
#[test]
fn advice_to_the_page_cache_follows_the_job() {
    let advice =
        |options: &str| read_ok(&format!("[a]\nsize=1m\ndirect=0\n{options}\n")).jobs[0].advice;
    assert_eq!(advice("rw=read"), Advice::Sequential);
    assert_eq!(advice("rw=randread"), Advice::Random);
    assert_eq!(
        advice("rw=randread\nfadvise_hint=sequential"),
        Advice::Sequential
    );
    assert_eq!(advice("rw=read\nfadvise_hint=0"), Advice::Normal);
    let options = dd("if=/dev/x of=/dev/null count=8").expect("valid").options;
    let set = read(&options, &[], &[], &HERE).expect("fio's");
    let job = &set.jobs[0];
    assert_eq!(
        (job.advice, job.invalidate, job.direct),
        (Advice::Normal, false, false)
    );
    let depth = read_ok("[a]\nsize=1m\ndirect=0\nioengine=libaio\niodepth=8\n");
    assert!(
        depth.warnings[1].contains("iodepth=8 keeps one in flight"),
        "{:?}",
        depth.warnings
    );
}

/// Each copy has its own file, with its own end.
#[test]
fn a_file_size_is_that_of_each_copys_file() {
    let place = |options: &str| {
        let job = job(options);
        (job.offset, job.offset_increment, job.size, job.filesize)
    };
    let bytes = |bytes: u64| Extent::Bytes(bytes << 20);
    assert_eq!(
        place("filesize=1g\nnumjobs=2"),
        (bytes(0), bytes(1024), Some(bytes(1024)), None)
    );
    assert_eq!(
        place("filesize=1g\nnumjobs=2\noffset=256m"),
        (bytes(256), bytes(1024), Some(bytes(768)), None)
    );
    assert_eq!(
        place("filesize=1g\nnumjobs=2\nsize=25%"),
        (bytes(0), bytes(1024), Some(bytes(256)), None)
    );
}

/// If an engine is refused, its own options and the consequences of the missing engine cause no further problems.
#[test]
fn a_refused_engine_brings_no_further_problems() {
    for (engine, options) in [
        ("cpuio", "cpuload=50\ncpuchunks=10"),
        ("net", "hostname=there\nport=8000\nlisten"),
        ("rbd", "pool=p\nrbdname=image\nclientname=admin"),
        ("libaoi", "userspace_reap"),
    ] {
        let text = format!("[a]\nioengine={engine}\nsize=1m\n{options}\n");
        let problems = read_text("t.fio", &text, &HERE).expect_err(engine);
        assert_eq!(problems.0.len(), 1, "{problems}");
        assert!(problems.0[0].what.starts_with("ioengine: "), "{problems}");
    }
    let libaio = "[a]\nioengine=libaio\nsize=1m\ncpuload=50\n";
    let problems = read_text("t.fio", libaio, &HERE).expect_err("cpuio's option");
    insta::assert_snapshot!(problems, @r"
    error: t.fio:4:1: cpuload: is not an option of ioengine=libaio
      help: ioengine=cpuio
    ");
}

/// Options of fio 3.34 and later: hints are ignored; options that change the I/O are refused with their version.
#[test]
fn options_of_newer_versions_are_known() {
    let hints = "[a]\ndirect=1\nsize=1m\nioengine=io_uring_cmd\nfdp=1\nfdp_pli=0,1\nplid_select=roundrobin\ndataplacement=fdp\n\
                 cmdprio_hint=1\nthinkcycles=5\nlog_issue_time=1\njob_start_clock_id=1\nnum_range=1\nsprandom=0\n";
    let set = read_ok(hints);
    assert_eq!(
        set.warnings,
        [
            "ignored (no effect on a simulated drive): fdp, plids, plid_select, dataplacement, cmdprio_hint, thinkcycles, \
             log_issue_time, job_start_clock_id"
        ]
    );
    for (option, version) in [("ramp_size=1g", "fio 3.42"), ("sprandom=1", "fio 3.41")] {
        let text = format!("[a]\nsize=1m\nioengine=io_uring_cmd\n{option}\n");
        let said = read_text("t.fio", &text, &HERE).expect_err(option);
        assert!(said.to_string().contains(version), "{said}");
        assert!(!said.to_string().contains("no such option"), "{said}");
    }
    let steady = "steadystate=lat:2%\nss_dur=10s\nss_interval=2s\nsize=1m";
    let steady = job(steady).steady_state.expect("a criterion");
    assert_eq!(steady.interval, Span::from_seconds(2.0));
    assert_eq!(steady.metric, SteadyMetric::Latency);
    let odd = "[a]\nsize=1m\nsteadystate=iops:2%\nss_dur=10s\nss_interval=3s\n";
    let said = read_text("t.fio", odd, &HERE).expect_err("three and ten");
    assert!(said.to_string().contains("does not divide"), "{said}");
}

/// Terminal control characters are shown as escapes, and the message names UTF-16 files as such.
#[test]
fn names_are_harmless_and_utf_16_is_named() {
    assert_eq!(
        read_ok("[a\u{1b}[2J]\nsize=1m\n").jobs[0].name,
        "a\\u{1b}[2J"
    );
    let utf16: Vec<u8> = "[a]\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let here = Surroundings {
        read: &|_: &Path| Ok(utf16.clone()),
        ..HERE
    };
    let said = super::read(&[], &["j.fio".into()], &[], &here).expect_err("UTF-16");
    assert!(
        said.to_string().contains("is UTF-16 (little-endian)"),
        "{said}"
    );
}

/// With `thinktime_iotime` alone, blocks do not count.
#[test]
fn a_time_of_io_stands_in_place_of_blocks() {
    let think = |options: &str| job(&format!("size=1m\nthinktime=500ms\n{options}")).think;
    let timed = think("thinktime_iotime=100ms").expect("pauses");
    assert_eq!((timed.iotime, timed.blocks), (Span::from_ms(100), u32::MAX));
    let both = think("thinktime_iotime=2\nthinktime_blocks=8").expect("pauses");
    assert_eq!((both.iotime, both.blocks), (Span::from_seconds(2.0), 8));
    assert_eq!(think("").expect("pauses").blocks, 1);
}

/// fio's example for protection information: 4 KiB of data and 64 B of metadata in one block.
#[test]
fn blocks_of_a_format_with_metadata_stand_for_their_data() {
    let set =
        read_ok("[a]\nioengine=io_uring_cmd\nbs=4160\nmd_per_io_size=64\npi_act=0\nsize=1m\n");
    let job = &set.jobs[0];
    assert_eq!(job.block_sizes[0], BlockSizes::Fixed(4096));
    assert_eq!(job.block_align[0], 4096);
    assert!(
        set.warnings
            .iter()
            .any(|it| it.contains("4096 B with 64 B of metadata"))
    );
    let plain = read_text(
        "t.fio",
        "[a]\nioengine=libaio\ndirect=1\nbs=4160\nsize=1m\n",
        &HERE,
    );
    assert!(plain.is_err());
}

/// Options without a job file measure the drive itself, with a warning, unless they ask for the page cache or need it.
#[test]
fn options_without_a_job_file_are_direct() {
    let of = |options: &str| {
        let arguments: Vec<String> = options.split(' ').map(String::from).collect();
        let set = read(&arguments, &[], &[], &HERE).expect("right");
        let told = set
            .warnings
            .iter()
            .any(|what| what.starts_with("options without a job file measure the drive itself"));
        (set.jobs[0].direct, told)
    };
    assert_eq!(of("--rw=read --size=1m"), (true, true));
    assert_eq!(of("--name=a --rw=randwrite --size=1m"), (true, true));
    assert_eq!(of("--rw=read --size=1m --direct=1"), (true, false));
    for buffered in [
        "--direct=0 --rw=read",
        "--rw=read --buffered=1",
        "--ioengine=mmap --rw=read",
        "--rw=write --fdatasync=1",
        "--rw=write --bs=2300",
    ] {
        assert_eq!(of(&format!("{buffered} --size=1m")), (false, false));
    }
}

/// A pass over a whole drive in blocks of 3 bytes is what fio does too; a remark says how long it is.
#[test]
fn a_pass_of_more_than_a_thousand_million_blocks_is_told() {
    let said = |options: &str| {
        let set = read_ok(&format!("[a]\nfilename=/dev/x\nrw=read\n{options}\n"));
        crate::settings::long_passes(&set.jobs, 375_000_000_000)
    };
    assert_eq!(
        said("bs=3"),
        [
            "job a: up to 125.0 thousand million I/Os of 3 B or more, as in fio; --runtime or --size ends it earlier"
        ]
    );
    for short in [
        "bs=4k",
        "bs=3\nruntime=1",
        "bs=3\nsize=1g",
        "bs=3\nnumber_ios=9",
    ] {
        assert!(said(short).is_empty(), "{short}");
    }
    assert_eq!(said("bs=4k\nloops=20").len(), 1);
}

/// A range beyond the end of a block device is cut; a file that does not fit is refused.
#[test]
fn a_size_beyond_a_device_is_cut() {
    let capacity = model::Capacity {
        bytes: 1 << 30,
        block: 512,
    };
    let set = |name: &str| {
        read_ok(&format!(
            "[a]\ndirect=1\nfilename={name}\nsize=20TB\noffset=4k\nrw=randread\n"
        ))
    };
    let device = set("/dev/nvme0n1").jobs;
    assert!(crate::settings::check(&device, capacity).is_ok());
    let said = crate::settings::cut(&device, capacity.bytes);
    assert!(
        said[0].starts_with("job a: its range goes beyond"),
        "{said:?}"
    );
    let file = set("/data/f").jobs;
    assert!(crate::settings::check(&file, capacity).is_err());
    assert!(crate::settings::cut(&file, capacity.bytes).is_empty());
}

/// Shares above 100 % as in fio 3.33: the smallest are allocated first, and the last gets the remainder.
#[test]
fn shares_above_a_hundred_are_cut() {
    let split = |text: &str| match &job(&format!("bssplit={text}")).block_sizes[0] {
        BlockSizes::Split(split) => split.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        split("4k/1:16k/1:64k/1:128k/100"),
        [(4096, 1.0), (16384, 1.0), (65536, 1.0), (131_072, 97.0)]
    );
    assert_eq!(split("4k/60:8k/60"), [(4096, 60.0), (8192, 40.0)]);
}
