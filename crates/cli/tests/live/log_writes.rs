//! Recordings agree with Linux's dm-log-writes: in a guest, the kernel logs what it sends to a drive that is recorded.
//!
//! A virtio disk has no force unit access. For a write with it, dm-log-writes logs that this write is durable, and the
//! drive gets a flush after it, which covers all writes before. So a program with flushes alone must give the same
//! durable contents at each flush. A file system with forced writes gives contents of the kernel's log that are all
//! among those of the recording, in the same order.

use std::time::Duration;

use crash::{Log, log_writes};

use crate::contents::{durable, same};
use crate::rig::guest::{Guest, Kernel};
use crate::rig::server::{Folder, Server};

const LIMIT: Duration = Duration::from_secs(240);

/// Arguments of a served drive of 64 MiB.
fn served<'a>(socket: &'a str, store: &'a str) -> [&'a str; 9] {
    [
        "950pro-256",
        "--state",
        "fresh",
        "--size",
        "64M",
        "--vhost-user",
        socket,
        "--store",
        store,
    ]
}

/// Runs a script on `/dev/dm-0`, which the kernel logs, above a drive that is recorded; returns our log and the
/// kernel's.
fn recorded(script: &str) -> Option<(Log, Log)> {
    let mut guest = Guest::new(Kernel::UserMode).with_tiers();
    if !guest.is_there() {
        return None;
    }
    let folder = Folder::new();
    let [disk, store, log_disk, kernel_log, log] =
        ["disk", "store", "log-disk", "log-store", "run.dlog"].map(|it| folder.text(it));
    let recorded = [&served(&disk, &store)[..], &["--record", &log]].concat();
    let servers = [
        Server::start(&recorded),
        Server::start(&served(&log_disk, &kernel_log)),
    ];
    for name in ["disk", "log-disk"] {
        guest = guest.with_disk(folder.path(name));
    }
    let script = format!(
        r#"dmsetup create logged --noudevsync \
            --table "0 $(blockdev --getsz /dev/vda) log-writes /dev/vda /dev/vdb" || die "dm-log-writes"
        until_ready 10 test -b /dev/dm-0
        {script}
        dmsetup remove logged --noudevsync || die "remove"
        dd if=/dev/zero of=/dev/vdb bs=512 count=1 seek=131071 conv=fsync 2>/dev/null || die "log""#
    );
    guest.run(&script, LIMIT).expect_success();
    for server in servers {
        server.stop().expect_success();
    }
    let read = |path: &str| std::fs::read(path).expect("a file");
    let ours = Log::read(read(&log)).expect("a log");
    let kernels = log_writes::read(&read(&kernel_log), &ours.head, &[]);
    Some((ours, kernels.expect("a log of the kernel")))
}

#[test]
fn durable_contents_are_those_of_the_kernel_at_each_flush() {
    let script = r#"number=0
        while [ $number -lt 40 ]; do
            for place in $((number * 7 % 60)) $((number * 11 % 60 + 64)); do
                printf '%032768d' $((number * 1000 + place)) |
                    dd of=/dev/dm-0 bs=32k seek=$place conv=notrunc oflag=direct iflag=fullblock 2>/dev/null ||
                    die "write"
            done
            [ $((number % 8)) != 5 ] || blkdiscard -o $((number * 32768)) -l 65536 /dev/dm-0 || die "discard"
            dd if=/dev/zero of=/dev/dm-0 bs=4k count=1 seek=$((1000 + number)) conv=notrunc,fsync 2>/dev/null ||
                die "flush"
            number=$((number + 1))
        done"#;
    let Some((ours, kernels)) = recorded(script) else {
        return;
    };
    let (ours, kernels) = (durable(&ours), durable(&kernels));
    assert!(ours.len() >= 40, "{}", ours.len());
    assert_eq!(ours.len(), kernels.len());
    let differs = ours.iter().zip(&kernels).position(|(a, b)| !same(a, b));
    assert_eq!(differs, None);
}

#[test]
fn durable_contents_of_a_file_system_in_the_log_of_the_kernel_are_among_ours() {
    let script = r#"mkfs.ext4 -q -F /dev/dm-0 || die mkfs
        mount -t ext4 /dev/dm-0 /mnt || die mount
        for n in 1 2 3 4 5 6 7 8; do
            echo "contents of $n" > /mnt/new
            mv /mnt/new /mnt/file-$n
            mkdir /mnt/folder-$n
            [ $n -gt 4 ] && rmdir /mnt/folder-$((n - 4))
            sync
        done
        umount /mnt || die umount"#;
    let Some((ours, kernels)) = recorded(script) else {
        return;
    };
    let (ours, kernels) = (durable(&ours), durable(&kernels));
    assert!(kernels.len() > 20, "{}", kernels.len());
    let mut rest = ours.iter();
    for (number, content) in kernels.iter().enumerate() {
        let found = rest.any(|it| same(it, content));
        assert!(found, "content {number} of {}", kernels.len());
    }
}
