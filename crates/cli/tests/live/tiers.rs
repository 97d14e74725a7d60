//! The kernel's own tiers for comparison with ours: md raid1, dm-writecache and bcache on individually served members,
//! and our pools of the same drives, with the same writer and the same power cuts.
//!
//! A guest writes stamped blocks, each with an fsync, four at a time. Then the servers of all members and the guest
//! are killed at once, so the content of the members' volatile caches is lost. Another guest assembles the tier again
//! and reads each block twice: it must be complete, belong to its address, and be no older than the flushed version.
//! Not covered: members that fail individually, and every order in which a cut could leave the writes; `prove` tests
//! that for our pools.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use crate::rig::guest::{Guest, Kernel};
use crate::rig::process::Ended;
use crate::rig::server::{Folder, Server};

const LIMIT: Duration = Duration::from_secs(400);

/// Number of power cuts of members that lie, of which at least one must lose data.
const CUTS: u32 = 8;

/// Returns the number of power cuts of a stack; each boots a guest.
fn cuts() -> u32 {
    match std::env::var_os("DRIVELAB_NIGHTLY") {
        Some(_) => CUTS,
        None => 3,
    }
}

/// Time for a guest to report acknowledgements after the last one. Linux was observed to report success for writes to
/// a missing disk, so later reports are ignored.
const WORDS: Duration = Duration::from_millis(400);

/// A drive with a volatile cache: unflushed data can be lost.
const MEMBER: &str = "950pro-256";

/// A tier that a guest builds from the members.
#[derive(Clone, Copy, Debug)]
struct Stack {
    /// The served drives or pools, each by a process of its own: `/dev/vda`, `/dev/vdb`.
    served: &'static [&'static str],
    /// Command that creates it.
    create: &'static str,
    /// Command that assembles it again.
    assemble: &'static str,
    /// The device that is written.
    device: &'static str,
}

const RAID1: Stack = Stack {
    served: &[MEMBER, MEMBER],
    create: "mdadm --create /dev/md0 --quiet --level=1 --raid-devices=2 --bitmap=internal --assume-clean --run /dev/vda /dev/vdb",
    assemble: "mdadm --assemble --quiet --run /dev/md0 /dev/vda /dev/vdb",
    device: "/dev/md0",
};

const DM_WRITECACHE: Stack = Stack {
    served: &[MEMBER, MEMBER],
    create: "dmsetup create cached --noudevsync --table \"0 $(blockdev --getsz /dev/vdb) writecache s /dev/vdb /dev/vda 4096 0\"",
    assemble: "dmsetup create cached --noudevsync --table \"0 $(blockdev --getsz /dev/vdb) writecache s /dev/vdb /dev/vda 4096 0\"",
    device: "/dev/dm-0",
};

const REGISTER: &str = "echo /dev/vda > /sys/fs/bcache/register; echo /dev/vdb > /sys/fs/bcache/register; \
     until_ready 10 test -b /dev/bcache0";

const BCACHE: Stack = Stack {
    served: &[MEMBER, MEMBER],
    create: "make-bcache --bucket 64k --block 4k --writeback -C /dev/vda -B /dev/vdb > made 2>&1 || { cat made; die make; }; register",
    assemble: "register",
    device: "/dev/bcache0",
};

/// As [`RAID1`], on members that support fault injection.
const RAID1_OF_POOLS: Stack = Stack {
    served: &["concat(950pro-256)", "concat(950pro-256)"],
    ..RAID1
};

const OUR_MIRROR: Stack = Stack {
    served: &["mirror(2*950pro-256)"],
    create: "true",
    assemble: "true",
    device: "/dev/vda",
};

const OUR_CACHE: Stack = Stack {
    served: &["write-back-cache(cache=950pro-256, capacity=950pro-256; like=dm-writecache)"],
    ..OUR_MIRROR
};

/// Script of the guest: creates or assembles the tier, reports the content, writes until power fails.
///
/// A block consists of its number and a generation, 256 times. The script prints `sent BLOCK GENERATION` before a
/// write, `kept` after its fsync, and `read` for the content that it finds.
const GUEST: &str = r#"
stamp() { # BLOCK GENERATION
    text=$(printf '%07d %07d ' $1 $2)
    for _ in 1 2 3 4 5 6 7 8; do text=$text$text; done
}
sum() { dd if=$DEVICE bs=4096 count=$BLOCKS 2>/dev/null | md5sum; }
look() {
    first=$(sum)
    echo 3 > /proc/sys/vm/drop_caches
    [ "$(sum)" = "$first" ] || die "two reads differ"
    block=0
    while [ $block -lt $BLOCKS ]; do
        found=$(dd if=$DEVICE bs=4096 skip=$block count=1 2>/dev/null | tr -d '\000')
        if [ -n "$found" ]; then
            set -- ${found%"${found#????????????????}"}
            stamp $(echo $1 | sed 's/^0*\(.\)/\1/') $(echo $2 | sed 's/^0*\(.\)/\1/')
            [ "$text" = "$found" ] || die "block $block is torn"
            echo "read $block $1 $2"
        else
            echo "read $block empty"
        fi
        block=$((block + 1))
    done
}
writer() { # FIRST COUNT
    generation=$FROM
    while true; do
        block=$1
        while [ $block -lt $(($1 + $2)) ]; do
            stamp $block $generation
            echo "sent $block $generation"
            printf %s "$text" | dd of=$DEVICE bs=4096 seek=$block conv=notrunc,fsync 2>/dev/null || return
            echo "kept $block $generation"
            block=$((block + 1))
        done
        [ $generation != $FROM ] || touch flushed.$1
        generation=$((generation + 1))
    done
}
all_flushed() { # FIRST...
    for first in $*; do [ -e flushed.$first ] || return 1; done
}
"#;

/// Number of blocks that are written.
const BLOCKS: usize = 32;

/// State of a block: the last generation that was flushed, and the last that was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    kept: u32,
    sent: u32,
}

/// Cuts power repeatedly, with some members that ignore flushes. Returns the number of blocks that were older than
/// their flushed version; `None` without a guest.
fn lost(stack: Stack, cuts: u32, liars: &[&str]) -> Option<u32> {
    let folder = Folder::new();
    let disk = |at: usize| format!("disk{at}");
    let mut guest = Guest::new(Kernel::UserMode).with_tiers();
    for at in 0..stack.served.len() {
        guest = guest.with_disk(folder.path(&disk(at)));
    }
    if !guest.is_there() {
        return None;
    }
    let faults: String = liars
        .iter()
        .map(|name| format!("at 0s {name}: lies\n"))
        .collect();
    std::fs::write(folder.path("faults"), &faults).expect("room");
    let script = folder.text("faults");
    let serve = |at: usize, name: &str| {
        let (socket, store) = (folder.text(&disk(at)), folder.text(&format!("store{at}")));
        let mut args = vec![name, "--size", "64M", "--state", "fresh"];
        args.extend(["--vhost-user", &socket, "--store", &store]);
        if !faults.is_empty() {
            args.extend(["--fault", &script]);
        }
        Server::start(&args)
    };
    let mut known = BTreeMap::<usize, Known>::new();
    let mut lost = 0;
    for cut in 0..=cuts {
        let mut servers: Vec<Server> = (0..)
            .zip(stack.served)
            .map(|(at, name)| serve(at, name))
            .collect();
        let script = script_of(stack, cut, cuts);
        let ended = guest.run_with(&script, LIMIT, |_| {
            servers.iter().for_each(Server::pause);
            thread::sleep(WORDS);
            servers.drain(..).for_each(Server::kill);
        });
        for line in ended.said.lines().filter(|line| line.starts_with("read ")) {
            lost += u32::from(is_lost(line, &known));
        }
        note(&ended, &mut known);
        if !liars.is_empty() && ended.code != Some(0) {
            // The tier itself is lost.
            return Some(lost + 1);
        }
        ended.expect_success();
    }
    let kept = known.values().filter(|one| one.kept > 0).count();
    assert_eq!(kept, BLOCKS, "each block was flushed: {known:?}");
    Some(lost)
}

/// Returns the guest's script before the cut with this number; after the last cut it only reads.
fn script_of(stack: Stack, cut: u32, cuts: u32) -> String {
    let Stack {
        create,
        assemble,
        device,
        ..
    } = stack;
    let (set_up, from) = (if cut == 0 { create } else { assemble }, 1 + 10_000 * cut);
    let quarter = BLOCKS / 4;
    let write = if cut == cuts {
        String::new()
    } else {
        // Each block once, however slow the machine is, and then some more, so that each cut is at another moment.
        let firsts = [0, 1, 2, 3].map(|at| (at * quarter).to_string()).join(" ");
        let first = format!(
            "for first in {firsts}; do writer $first {quarter} & done\n\
             until_ready 200 all_flushed {firsts}\n\
             usleep {}\n",
            37_000 * cut
        );
        format!("{first}host power-cut\n")
    };
    format!(
        "{GUEST}\nregister() {{ {REGISTER}; }}\nDEVICE={device} BLOCKS={BLOCKS} FROM={from}\n{{ {set_up}; }} || die assemble\n\
         until_ready 10 test -b {device}\nlook\n{write}exit 0\n"
    )
}

/// Checks whether the content is older than the flushed version; panics if it was never sent, or belongs to another
/// block.
fn is_lost(line: &str, known: &BTreeMap<usize, Known>) -> bool {
    let mut words = line.split_whitespace().skip(1);
    let block: usize = words
        .next()
        .and_then(|word| word.parse().ok())
        .expect("a block");
    let known = known.get(&block).copied().unwrap_or_default();
    let generation = match (words.next(), words.next()) {
        (Some(place), Some(generation)) => {
            assert_eq!(place.parse(), Ok(block), "another block's: {line}");
            generation.parse().expect("a generation")
        }
        _ => 0,
    };
    assert!(generation <= known.sent, "never sent: {line}, {known:?}");
    generation < known.kept
}

/// Records sent and flushed versions.
fn note(ended: &Ended, known: &mut BTreeMap<usize, Known>) {
    for line in ended.said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [word @ ("sent" | "kept"), block, generation] = words[..] else {
            continue;
        };
        // The last line may be truncated.
        let (Ok(block), Ok(generation)) = (block.parse(), generation.parse::<u32>()) else {
            continue;
        };
        let one = known.entry(block).or_default();
        let field = if word == "sent" {
            &mut one.sent
        } else {
            &mut one.kept
        };
        *field = generation.max(*field);
    }
}

fn keeps(stack: Stack) {
    if let Some(lost) = lost(stack, cuts(), &[]) {
        assert_eq!(lost, 0);
    }
}

#[test]
fn the_kernels_mirror_keeps_what_was_flushed() {
    keeps(RAID1);
}

#[test]
fn dm_writecache_keeps_what_was_flushed() {
    keeps(DM_WRITECACHE);
}

#[test]
fn bcache_keeps_what_was_flushed() {
    keeps(BCACHE);
}

#[test]
fn our_mirror_keeps_what_was_flushed() {
    keeps(OUR_MIRROR);
}

#[test]
fn our_cache_keeps_what_was_flushed() {
    keeps(OUR_CACHE);
}

/// The check can fail: if flushes do nothing, flushed data is lost, on the kernel's mirror as on ours.
#[test]
fn members_that_lie_about_flushes_lose_some() {
    for (stack, members) in [
        (RAID1_OF_POOLS, &["950pro-256"][..]),
        (OUR_MIRROR, &["950pro-256.0", "950pro-256.1"]),
    ] {
        if let Some(lost) = lost(stack, CUTS, members) {
            assert!(lost > 0, "{stack:?}");
        }
    }
}

/// Writes, bytes and flushes that a member received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    writes: u64,
    bytes: u64,
    flushes: u64,
}

/// Load on the members by two programs: 64 writes of 4 KiB, each with an fsync, then 256 with one fsync after them, no
/// two adjacent. The numbers are the disks' own (Documentation/block/stat.rst).
const COUNT: &str = r#"
asked() { # NAME
    for disk in vda vdb; do
        [ -e /sys/block/$disk ] && set -- $1 $disk $(cat /sys/block/$disk/stat) && echo "asked $1 $disk $7 $(($9 * 512)) ${18}"
    done
}
write() { printf %s "$text" | dd of=$DEVICE bs=4096 seek=$1 conv=notrunc$2 2>/dev/null || die write; }
stamp 0 1
sleep 1; asked before
at=0; while [ $at -lt 64 ]; do write $((at * 37)) ,fsync; at=$((at + 1)); done
asked one
at=0; while [ $at -lt 256 ]; do write $((at * 37 + 5)); at=$((at + 1)); done
dd of=$DEVICE if=/dev/null count=0 conv=notrunc,fsync 2>/dev/null
asked many
exit 0
"#;

/// Returns the load of each program, by member.
fn asked(stack: Stack) -> Option<Vec<[Asked; 2]>> {
    let folder = Folder::new();
    let mut guest = Guest::new(Kernel::UserMode).with_tiers();
    let disks: Vec<String> = (0..stack.served.len())
        .map(|at| format!("disk{at}"))
        .collect();
    for disk in &disks {
        guest = guest.with_disk(folder.path(disk));
    }
    if !guest.is_there() {
        return None;
    }
    let serve = |(disk, name): (&String, &&str)| {
        Server::start(&[
            name,
            "--size",
            "64M",
            "--state",
            "fresh",
            "--vhost-user",
            &folder.text(disk),
        ])
    };
    let _servers: Vec<Server> = disks.iter().zip(stack.served).map(serve).collect();
    let Stack { create, device, .. } = stack;
    let script = format!(
        "{GUEST}\nregister() {{ {REGISTER}; }}\nDEVICE={device}\n{{ {create}; }} || die create\nuntil_ready 10 test -b {device}\n{COUNT}"
    );
    let ended = guest.run(&script, LIMIT);
    let said = |when: &str, disk: &str| {
        let head = format!("asked {when} {disk} ");
        let line = ended
            .said
            .lines()
            .find_map(|line| line.strip_prefix(&head[..]));
        let words: Vec<u64> = line
            .expect("it was said")
            .split_whitespace()
            .map(|word| word.parse().expect("a number"))
            .collect();
        let [writes, bytes, flushes] = words[..] else {
            panic!("{words:?}")
        };
        Asked {
            writes,
            bytes,
            flushes,
        }
    };
    let between = |from: Asked, to: Asked| Asked {
        writes: to.writes - from.writes,
        bytes: to.bytes - from.bytes,
        flushes: to.flushes - from.flushes,
    };
    let members = ["vda", "vdb"].into_iter().take(stack.served.len());
    let all = members.map(|disk| {
        let [before, one, many] = ["before", "one", "many"].map(|when| said(when, disk));
        [between(before, one), between(one, many)]
    });
    Some(all.collect())
}

/// Prints the table in docs/tiers.md (`--nocapture`).
#[test]
fn what_the_kernels_tiers_ask_of_their_members() {
    for stack in [RAID1, DM_WRITECACHE, BCACHE] {
        let Some(members) = asked(stack) else {
            return;
        };
        for (disk, [one, many]) in ["vda", "vdb"].into_iter().zip(&members) {
            eprintln!("{} {disk}: {one:?} {many:?}", stack.device);
        }
        // Every client's write reaches some member, and so does each fsync.
        let [one, many] = [0, 1].map(|at| members.iter().map(|member| member[at].bytes).max());
        assert!(
            one >= Some(64 * 4096) && many >= Some(256 * 4096),
            "{members:?}"
        );
        assert!(members[0][0].flushes >= 64, "{members:?}");
    }
}
