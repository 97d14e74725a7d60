//! Crash-consistency tests of ext4 in a guest: with barriers it survives every power cut; without them, only a drive
//! without a volatile cache prevents losses.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::rig::guest::{Guest, Kernel};
use crate::rig::has;
use crate::rig::process::{Ended, run};
use crate::rig::server::{Folder, Server};

const LIMIT: Duration = Duration::from_secs(240);

/// The journal is replayed, no other error is allowed, and each acknowledged file is complete.
const CHECK: &str = r#"e2fsck -E journal_only -y "$DRIVELAB_DEVICE" > /dev/null 2>&1
e2fsck -fn "$DRIVELAB_DEVICE" || { echo "corrupt: e2fsck"; exit 11; }
while read n; do
  debugfs -R "cat /file-$n" "$DRIVELAB_DEVICE" 2> /dev/null | cmp -s - /dev/fd/3 3<<END || { echo "lost $n"; exit 10; }
contents of $n
END
done < "$DRIVELAB_ACKS""#;

/// Writes files on ext4 with these mount options, each acknowledged after its sync, while the drive is recorded.
fn record(folder: &Folder, options: &str) {
    let (disk, store, log) = (
        folder.text("disk"),
        folder.text("store"),
        folder.text("run.dlog"),
    );
    let control = folder.text("control");
    let served = [
        "950pro-256",
        "--state",
        "fresh",
        "--store",
        &store,
        "--vhost-user",
        &disk,
    ];
    let guest = Guest::new(Kernel::UserMode).with_disk(folder.path("disk"));
    let server = Server::start(&[&served[..], &["--size", "64M"]].concat());
    let made = guest.run("mkfs.ext4 -q -F /dev/vda || die mkfs; sync", LIMIT);
    made.expect_success();
    server.stop().expect_success();
    let server = Server::start(&[&served[..], &["--record", &log, "--control", &control]].concat());
    let script = format!(
        r#"mount -t ext4 -o {options} /dev/vda /mnt || die mount
        for n in 1 2 3 4 5 6 7 8; do
            echo "contents of $n" > /mnt/new
            mv /mnt/new /mnt/file-$n
            mkdir /mnt/folder-$n
            [ $n -gt 4 ] && rmdir /mnt/folder-$((n - 4))
            sync
            host ack-$n
        done"#
    );
    let says = |word: &str| say(&folder.path("control"), &word.replace('-', " "));
    guest.run_with(&script, LIMIT, says).expect_success();
    server.stop().expect_success();
}

fn say(control: &Path, line: &str) {
    use std::io::{Read, Write};
    let mut stream = std::os::unix::net::UnixStream::connect(control).expect("it listens");
    writeln!(stream, "{line}").expect("sent");
    let mut ok = [0; 3];
    stream.read_exact(&mut ok).expect("an answer");
    assert_eq!(&ok, b"ok\n");
}

fn crashtest(folder: &Folder, more: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drivelab"));
    command.args(["crashtest", "--from", &folder.text("run.dlog")]);
    command
        .args(["--check", CHECK, "--budget", "120s"])
        .args(more);
    run(&mut command, LIMIT)
}

#[test]
fn ext4_survives_with_barriers_and_without_them_only_on_a_drive_that_loses_nothing() {
    let guest = Guest::new(Kernel::UserMode);
    if !guest.is_there() || !has(&["e2fsck", "debugfs", "cmp"]) {
        return;
    }
    let folder = Folder::new();
    record(&folder, "barrier");
    crashtest(&folder, &["--images", "200"]).expect_success();
    let folder = Folder::new();
    record(&folder, "nobarrier");
    let failed = crashtest(&folder, &["--images", "200"]);
    assert_eq!(failed.code, Some(3), "{}", failed.said);
    assert!(
        failed.said.contains("needs      volatile cache"),
        "{}",
        failed.said
    );
    crashtest(&folder, &["--images", "200", "--drive", "pm9a3-960"]).expect_success();
}
