//! Job files by class, in the forms that projects publish them: which run, with which remark, and which are refused,
//! with which reason. The files are short ones of this project.

use super::*;
use crate::job::{CpuNodes, WriteMode};
use crate::strided::StridedZones;

/// Files that run: name of the class, text, and a part of a warning that must be among the warnings.
const RUN: &[(&str, &str, &str)] = &[
    (
        "a device without a size, until a time",
        "[global]\nioengine=libaio\ndirect=1\nfilename=/dev/nvme0n1\ntime_based\nruntime=60\nramp_time=5\ngroup_reporting\n\
         [randread]\nrw=randread\nbs=4k\niodepth=32\nnumjobs=4\nstonewall\n",
        "",
    ),
    (
        "size=0 is the whole device",
        "[global]\nioengine=io_uring\ndirect=1\nfilename=/dev/sdb\nsize=0\nruntime=30s\ntime_based\n[r]\nreadwrite=randread\nblocksize=512\n",
        "",
    ),
    (
        "a size beyond filesize",
        "[a]\ndirect=1\nfilesize=1g\nsize=4g\nfilename=data\nrw=randwrite\n",
        "job a: size 4294967296 goes beyond the filesize of 1073741824 B and ends there",
    ),
    (
        "zones of a drive, one after another",
        "[a]\nbs=64k\ndirect=1\nrw=read\nioengine=libaio\niodepth=2\nzonemode=strided\nzonesize=256m\nzoneskip=2g\nfilename=/dev/sdb\nwrite_bw_log\nlog_offset=1\n",
        "write_bw_log",
    ),
    (
        "several devices in one job",
        "[a]\nfilename=/dev/nvme0n1:/dev/nvme1n1\ndirect=1\nrw=randread\nsize=1g\n",
        "several devices are treated as one drive",
    ),
    (
        "data verification",
        "[a]\ndirect=1\nsize=1g\nrw=randwrite\nverify=crc32c-intel\nverify_backlog=1024\ndo_verify=1\n",
        "not simulated, though it would change what fio does: verify=crc32c-intel",
    ),
    (
        "a user-space driver",
        "[global]\nioengine=spdk\nthread=1\ndirect=1\nnorandommap=1\nfilename=trtype=PCIe traddr=0000.04.00.0 ns=1\n[a]\nrw=randrw\nrwmixread=70\nbs=4k\niodepth=128\nruntime=10\ntime_based=1\n",
        "",
    ),
    (
        "passthrough with data placement",
        "[a]\nfilename=/dev/ng0n1\nioengine=io_uring_cmd\ncmd_type=nvme\nfdp=1\nfdp_pli=0,1\nrw=randwrite\nbs=4k\nsize=1g\niodepth=8\n",
        "ignored (no effect on a simulated drive): cmd_type, fdp, plids",
    ),
    (
        "buffered files in a directory",
        "[global]\ndirectory=/mnt/test\nsize=128m\n[writer]\nrw=write\nfsync=32\n[reader]\nrw=randread\n",
        "buffered I/O (fio's default",
    ),
];

/// Files that are refused: name of the class, text, a part of the problem, and a part of its help.
const REFUSED: &[(&str, &str, &str, &str)] = &[
    (
        "several zones in a trim",
        "[a]\nzonemode=zbd\nzonesize=256m\nrw=randtrim\nbs=256m\nnum_range=2\ndirect=1\nfilename=/dev/sdb\nsize=1g\n",
        "num_range: with zonemode=zbd, a trim resets one zone",
        "no num_range",
    ),
    (
        "sizes in zones",
        "[a]\nrw=read\nfilename=/dev/sdb\nsize=8z\n",
        "size: counts zones, and only zonemode=zbd has zones of one size",
        "zonemode=zbd and zonesize",
    ),
    (
        "zones that are skipped",
        "[a]\nzonemode=zbd\nzonesize=256m\nzoneskip=1g\nrw=randwrite\ndirect=1\nfilename=/dev/sdb\nsize=1g\n",
        "zoneskip: must be 0 with zonemode=zbd",
        "zonemode=strided",
    ),
    (
        "zones smaller than their capacity",
        "[a]\nzonemode=zbd\nzonesize=64m\nzonecapacity=128m\nrw=randwrite\ndirect=1\nfilename=/dev/sdb\nsize=1g\n",
        "zonecapacity: is larger than zonesize",
        "at most zonesize",
    ),
    (
        "trims of parts of zones",
        "[a]\nzonemode=zbd\nzonesize=64m\nrw=randtrim\nbs=4k\ndirect=1\nfilename=/dev/sdb\nsize=1g\n",
        "bs: trims with zonemode=zbd reset whole zones",
        "bs equal to zonesize",
    ),
    (
        "zone append without zones",
        "[a]\nioengine=io_uring_cmd\ncmd_type=nvme\nfilename=/dev/ng0n1\nrw=write\nwrite_mode=zone_append\nsize=1g\n",
        "write_mode: zone_append requires zonemode=zbd",
        "zonemode=zbd",
    ),
    (
        "commands whose shares do not sum to 100",
        "[a]\nioengine=io_uring_cmd\nfilename=/dev/ng0n1\nrw=write\nwrite_mode=write/60:zeroes/30\nsize=1g\n",
        "write_mode: the shares sum to 90, not 100",
        "write_mode=write/60:zeroes/40",
    ),
    (
        "several ranges that are not trimmed",
        "[a]\nioengine=io_uring_cmd\nfilename=/dev/ng0n1\nrw=randread\nnum_range=8\nsize=1g\n",
        "num_range: is for trims only",
        "rw=randtrim",
    ),
    (
        "no NUMA node",
        "[a]\nfilename=/dev/nvme0n1\nrw=randread\nnuma_cpu_nodes=1-0\nsize=1g\n",
        "numa_cpu_nodes: `1-0` is not a node or a range of nodes",
        "0-1, or all",
    ),
    (
        "zone sizes without a mode",
        "[a]\nrw=read\nfilename=/dev/sdb\nzonesize=256m\nsize=1g\n",
        "zonesize: has no meaning in zonemode=none, and fio refuses the two together",
        "zonemode=strided and zonesize, or neither",
    ),
    (
        "strided zones without a size",
        "[a]\nrw=read\nfilename=/dev/sdb\nzonemode=strided\nsize=1g\n",
        "zonemode: strided needs zonesize",
        "zonesize=256m",
    ),
    (
        "no drive",
        "[a]\nioengine=null\nsize=1g\n",
        "ioengine: `null` does no I/O on a drive",
        "libaio",
    ),
    (
        "network",
        "[a]\nioengine=net\nhostname=localhost\nport=8888\nsize=1g\n",
        "ioengine: `net` does no I/O on a drive",
        "libaio",
    ),
    (
        "storage services",
        "[a]\nioengine=rbd\npool=rbd\nrbdname=test\nrw=randwrite\nsize=1g\n",
        "ioengine: `rbd` talks to a storage service",
        "libaio",
    ),
    (
        "memory",
        "[a]\nioengine=libpmem\nfilename=/mnt/pmem/a\nsize=1g\n",
        "ioengine: `libpmem` reads and writes memory",
        "libaio",
    ),
    (
        "operations of file systems",
        "[a]\nioengine=falloc\nsize=1g\n",
        "ioengine: `falloc` exercises a file system",
        "libaio",
    ),
    (
        "a template's variable",
        "[a]\nfilename=${DEVICE}\nsize=${SIZE}\nrw=read\n",
        "filename: ${DEVICE} is not set",
        "DEVICE=... drivelab run",
    ),
    (
        "a misspelt option",
        "[a]\nio_engine=libaio\nsize=1g\n",
        "io_engine: fio has no such option",
        "did you mean `ioengine`?",
    ),
];

#[test]
fn classes_that_run() {
    for (class, text, warning) in RUN {
        let set =
            read_text("wild.fio", text, &HERE).unwrap_or_else(|wrong| panic!("{class}: {wrong}"));
        let said = set.warnings.iter().any(|line| line.contains(warning));
        assert!(said || warning.is_empty(), "{class}: {:?}", set.warnings);
    }
}

#[test]
fn classes_that_are_refused() {
    for (class, text, what, help) in REFUSED {
        let wrong = read_text("wild.fio", text, &HERE).expect_err(class);
        let found = wrong.0.iter().any(|problem| {
            problem.what.contains(what) && problem.help.as_deref().unwrap_or("").contains(help)
        });
        assert!(found, "{class}: {wrong}");
    }
}

/// In fio, 0 is the default of `size` and `io_size`: the whole file, or the drive.
#[test]
fn a_size_of_zero_is_the_default() {
    let none = job("filename=/dev/x\nsize=0\nio_size=0");
    assert_eq!((none.size, none.io_size), (None, None));
}

/// fio 3.33 transfers 1 MiB with filesize=1m and size=3m, and 512 KiB with offset=512k.
#[test]
fn a_size_ends_with_filesize() {
    let capacity = model::Capacity {
        bytes: 1 << 30,
        block: 512,
    };
    for (options, wanted) in [
        ("filename=f\nfilesize=1m\nsize=3m", 1 << 20),
        ("filename=f\nfilesize=1m\nsize=3m\noffset=512k", 512 << 10),
        ("filesize=1m\nsize=3m\nnumjobs=2", 1 << 20),
    ] {
        let copies = crate::settings::resolve(&[job(options)], capacity).expect(options);
        for copy in copies {
            assert_eq!((copy.len, copy.io_size), (wanted, wanted), "{options}");
        }
    }
}

#[test]
fn a_zone_is_as_long_as_its_share_unless_zonerange_says_otherwise() {
    let strided =
        |options: &str| job(&format!("filename=/dev/x\nzonemode=strided\n{options}")).strided;
    let zones = |size, range, skip| Some(StridedZones { size, range, skip });
    assert_eq!(strided("zonesize=64k"), zones(65_536, 65_536, 0));
    assert_eq!(
        strided("zonesize=64k\nzonerange=1m\nzoneskip=2m"),
        zones(65_536, 1 << 20, 2 << 20)
    );
    // zonerange and zoneskip alone have no effect in fio, too.
    assert_eq!(job("filename=/dev/x\nzoneskip=2m").strided, None);
}

/// Jobs for zoned drives, passthrough commands and NUMA nodes, as fio's examples have them.
#[test]
fn zones_commands_and_nodes_have_the_meaning_that_fio_gives_them() {
    let zoned = |options: &str| {
        job(&format!(
            "filename=/dev/x\ndirect=1\nzonemode=zbd\n{options}"
        ))
    };
    let set =
        zoned("zonesize=256m\nmax_open_zones=32\nnumjobs=16\nrw=randwrite\nsize=8z\noffset=524z");
    let zones = set.zoned.expect("zones");
    assert_eq!(
        (zones.size, zones.capacity, zones.max_open),
        (256 << 20, 256 << 20, 2)
    );
    assert_eq!(set.size, Some(Extent::Bytes(2 << 30)));
    assert_eq!(set.offset, Extent::Bytes(140_660_178_944));
    let collected = zoned(
        "zonesize=64m\nzonecapacity=48m\nzone_reset_threshold=0.7\nzone_reset_frequency=0.125",
    );
    let zones = collected.zoned.expect("zones");
    assert_eq!((zones.capacity, zones.reset_every), (48 << 20, 8));
    assert_eq!(zones.reset_threshold, 0.7);
    // Zones of a drive that states them are 256 MiB.
    assert_eq!(zoned("size=2z").size, Some(Extent::Bytes(512 << 20)));
    assert_eq!(zoned("size=0z").size, None);
    let passthrough = |options: &str| {
        job(&format!(
            "filename=/dev/ng0n1\nioengine=io_uring_cmd\ncmd_type=nvme\nsize=1g\n{options}"
        ))
    };
    assert_eq!(
        passthrough("rw=write\nwrite_mode=write/50:zeroes/:uncor/").write_modes,
        [
            (WriteMode::Write, 50),
            (WriteMode::Zeroes, 25),
            (WriteMode::Uncorrectable, 25)
        ]
    );
    assert_eq!(passthrough("rw=write\nwrite_mode=write").write_modes, []);
    let trims = passthrough("rw=randtrim\nbs=4k\nnum_range=8");
    assert_eq!(trims.block_sizes[2], BlockSizes::Fixed(32 << 10));
    assert_eq!(trims.block_align[2], 4096);
    let nodes = |text: &str| job(&format!("filename=/dev/x\nnuma_cpu_nodes={text}")).cpu_nodes;
    assert_eq!(nodes("0-1,3"), CpuNodes::List(vec![0, 1, 3]));
    assert_eq!(nodes("all").on_host(2), [0, 1]);
}
