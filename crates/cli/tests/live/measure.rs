//! `drivelab measure` on served drives: the fit plan with the installed fio over NBD, killed in the middle and
//! resumed; and on block devices of a guest's kernel, with its refusals.

use std::fs;
use std::path::Path;
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;

use crate::rig::guest::{Guest, Kernel};
use crate::rig::has;
use crate::rig::network::Network;
use crate::rig::process::{Ended, Running, call, mortal, run};
use crate::rig::server::{Folder, Server, fast};

#[test]
fn a_served_drive_is_filled_and_measured_until_it_is_steady() {
    if !has(&["fio", "setpriv"]) {
        return;
    }
    let folder = Folder::new();
    let server = fast(&folder);
    let uri = folder.uri("nbd", "p4800x-375");
    let file = folder.text("m.json");
    let measure = |word: &str| {
        let mut command = mortal(cargo_bin!("drivelab"));
        command.args([
            "measure",
            &uri,
            "--plan",
            "fit",
            "--runtime",
            "100ms",
            "--size",
            "32M",
        ]);
        command.args(["--destroy-data", word, "--output", &file]);
        command
    };
    let limit = Duration::from_secs(300);
    let refused = run(&mut measure("nbd://elsewhere"), limit);
    assert_eq!(refused.code, Some(2), "{}", refused.said);
    assert!(refused.said.contains("its URI is"), "{}", refused.said);
    // Killed as soon as there are results.
    let first = Running::start(&mut measure(&uri), false);
    let begun = std::time::Instant::now();
    while !folder.path("m.json").exists() && begun.elapsed() < limit {
        std::thread::sleep(Duration::from_millis(20));
    }
    first.kill();
    let ended = run(&mut measure(&uri), limit);
    // On a busy machine, 100 ms per round may not reach steady state.
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.said);
    assert!(ended.said.contains("continues after"), "{}", ended.said);
    let text = std::fs::read_to_string(folder.path("m.json")).expect("it was written");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["device"]["kind"], "nbd");
    assert_eq!(document["host"]["engine"], "nbd");
    assert_eq!(document["verdict"]["is_complete"], true);
    let steady = &document["verdict"]["is_steady"];
    assert_eq!(steady, &Value::from(ended.code == Some(0)));
    let steps = document["steps"].as_array().expect("steps");
    let of = |phase: &str| steps.iter().filter(|step| step["phase"] == phase).count();
    assert_eq!((of("prepare"), of("measure")), (1, 15));
    assert!((5..=25).contains(&of("round")));
    // Two fills of the used range.
    let filled = &steps[0]["fio"]["jobs"][0]["write"]["io_bytes"];
    assert_eq!(filled, 2 * (32 << 20));
    server.stop().expect_success();
}

/// The beginning of the guests' scripts.
///
/// `refused PATTERN ARGUMENTS...`: exit code 2 with that reason, and no measurement. `read_well ARGUMENTS...`: the
/// quick plan completes all its reads. `sent FILE`: passes a file to the test.
const SCRIPT: &str = r#"
set -e
NQN=nqn.2026-11.org.drivelab:p4800x-375
nvme connect -t tcp -a $SERVER -s 4420 -n $NQN > /dev/null
DRIVE=/dev/nvme0n1
until_ready 10 test -b $DRIVE
SERIAL=$(sed 's/ *$//' /sys/block/nvme0n1/device/serial)
[ -n "$SERIAL" ] || die "no serial number"
FIT="--plan fit --size 32M --runtime 60ms"
has() { grep -Eq -e "$2" $1 || { cat $1; die "no $2"; }; }
lacks() { ! grep -Eq -e "$2" $1 || { cat $1; die "there is $2"; }; }
refused() {
    pattern=$1; shift; code=0
    drivelab measure "$@" --output refused.json > said 2>&1 || code=$?
    [ $code = 2 ] || { cat said; die "exit code $code: $*"; }
    has said "$pattern"
    [ ! -e refused.json ] || die "something was measured: $*"
}
read_well() {
    rm -f read.json
    drivelab measure "$@" --plan quick --runtime 60ms --output read.json > said 2>&1 || { cat said; die "quick: $*"; }
    has read.json '"step": "read-128k-qd8"'
    has read.json '"is_complete": true'
}
sent() { echo "--file-$1-begins--"; gzip -c $1 | base64; echo "--file-$1-ends--"; }
"#;

/// Runs a guest that measures a served drive over NVMe/TCP, and over NBD at port 10809; `None` without a guest.
fn measured_in_guest(script: &str) -> Option<Ended> {
    let guest = Guest::new(Kernel::UserMode).with_drivelab().with_tiers();
    if !guest.is_there() || !has(&["base64", "gunzip"]) {
        return None;
    }
    let network = Network::new()?;
    let mut args = vec![
        "p4800x-375",
        "--size",
        "256M",
        "--speed",
        "0",
        "--state",
        "fresh",
    ];
    args.extend([
        "--nvme-tcp",
        "10.64.0.1:4420",
        "--nbd",
        "10.64.0.1:10809",
        "--allow-remote",
    ]);
    let server = Server::start_in(&network, &args);
    let script = format!("{SCRIPT}\n{script}");
    let ended = guest
        .within(&network)
        .run(&script, Duration::from_secs(170));
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.said, server.said());
    server.stop().expect_success();
    Some(ended)
}

/// Writes a file that a guest has sent into a folder.
fn received(ended: &Ended, name: &str, to: &Path) {
    let (_, rest) = ended
        .said
        .split_once(&format!("--file-{name}-begins--\n"))
        .expect("it was sent");
    let (text, _) = rest.split_once("--file-").expect("all of it");
    fs::write(to.with_extension("base64"), text).expect("room");
    let unpack = "base64 -d < \"$1.base64\" | gunzip > \"$1.json\"";
    let stem = to.with_extension("").display().to_string();
    call("sh", &["-c", unpack, "sh", &stem]).expect_success();
}

/// Every use and every kind of data that may be lost, on one drive in sequence.
#[test]
fn what_is_in_use_in_a_guest_is_not_touched() {
    measured_in_guest(
        r#"
        mkfs.ext4 -q -F $DRIVE
        refused "has signatures: ext4" $DRIVE $FIT
        has said "--destroy-data '$SERIAL', its serial number"
        refused "names .$SERIAL-no., but its serial number is .$SERIAL." $DRIVE $FIT --destroy-data $SERIAL-no
        mount -t ext4 $DRIVE /mnt
        date > /mnt/kept
        refused "nvme0n1 is mounted at /mnt" $DRIVE $FIT --destroy-data $SERIAL
        lacks said "signatures"
        read_well $DRIVE
        has said "in use meanwhile: nvme0n1 is mounted at /mnt"
        umount /mnt
        # Two partitions, one of them under device mapper.
        dd if=/dev/zero of=$DRIVE bs=1M count=1 2> /dev/null
        printf 'o\nn\np\n1\n\n+64M\nn\np\n2\n\n\nw\n' | fdisk $DRIVE > fdisk.said 2>&1 || { cat fdisk.said; die fdisk; }
        until_ready 10 test -b ${DRIVE}p2
        refused "has partitions: nvme0n1p1 and nvme0n1p2" $DRIVE $FIT
        has said "has signatures: dos"
        refused "its serial number is .$SERIAL-part2." ${DRIVE}p2 $FIT --destroy-data $SERIAL
        sectors=$(blockdev --getsz ${DRIVE}p2)
        dmsetup create held --noudevsync --table "0 $sectors linear ${DRIVE}p2 0"
        refused "nvme0n1p2 is part of dm-0" $DRIVE $FIT --destroy-data $SERIAL
        refused "nvme0n1p2 is part of dm-0" ${DRIVE}p2 $FIT --destroy-data $SERIAL-part2
        dmsetup remove held --noudevsync
        # A root on the first partition: its neighbour is refused too.
        mkfs.ext4 -q -F ${DRIVE}p1
        mount -t ext4 ${DRIVE}p1 /mnt
        for folder in bin lib lib64 usr dev proc sys tmp; do mkdir -p /mnt/$folder; mount --bind /$folder /mnt/$folder; done
        code=0
        chroot /mnt drivelab measure ${DRIVE}p2 $FIT --destroy-data $SERIAL-part2 --output /tmp/refused.json > said 2>&1 || code=$?
        [ $code = 2 ] || { cat said; die "exit code $code on the root disk"; }
        has said "the root file system is on nvme0n1"
        [ ! -e refused.json ] || die "the root disk was measured"
        for folder in tmp sys proc dev usr lib64 lib bin; do umount /mnt/$folder; done
        umount /mnt
        # By its name a partition is measured, and its neighbour is as it was.
        sum=$(md5sum < ${DRIVE}p1)
        code=0
        drivelab measure ${DRIVE}p2 $FIT --destroy-data $SERIAL-part2 --output part.json > said 2>&1 || code=$?
        [ $code = 0 ] || [ $code = 3 ] || { cat said; die "exit code $code on a partition"; }
        has part.json '"name": "'$SERIAL-part2'"'
        [ "$(md5sum < ${DRIVE}p1)" = "$sum" ] || die "the neighbour was written"
        "#,
    );
}

/// A drive with a serial number: killed once and stopped once, protected against mounts meanwhile, with the remaining
/// time shown; then `explain` reads the result.
#[test]
fn a_guests_drive_is_measured_by_its_serial_number() {
    let folder = Folder::new();
    let Some(ended) = measured_in_guest(
        r#"
        read_well $DRIVE
        mkfs.ext4 -q -F $DRIVE
        measure() { exec drivelab measure $DRIVE $FIT --destroy-data $SERIAL --output m.json; }
        steps() { [ -e m.json ] && [ $(grep -c '"phase": ' m.json) -ge $1 ]; }
        (measure) > /dev/console 2>&1 & pid=$!
        until_ready 60 steps 2
        mount -t ext4 $DRIVE /mnt 2> /dev/null && die "it can be mounted"
        kill -KILL $pid
        wait $pid || true
        before=$(grep -c '"phase": ' m.json)
        (measure) > second 2>&1 & pid=$!
        until_ready 60 steps $((before + 3))
        kill -TERM $pid
        code=0; wait $pid || code=$?
        [ $code != 0 ] && [ $code != 3 ] || { cat second; die "stopped, and exit code $code"; }
        has second "continues after $before steps"
        has second "run the same command again to continue"
        code=0
        (measure) > third 2>&1 || code=$?
        [ $code = 0 ] || [ $code = 3 ] || { cat third; die "exit code $code"; }
        has third "continues after"
        dd if=$DRIVE bs=1M count=32 2> /dev/null | md5sum > after
        mount -t ext4 $DRIVE /mnt 2> /dev/null && die "the file system is still there"
        sent m.json
        # NBD by the guest's own client: a device without a serial number.
        nbd-client $SERVER 10809 /dev/nbd0 -N p4800x-375 > nbd.said 2>&1 || { cat nbd.said; die nbd-client; }
        read_well /dev/nbd0
        mkfs.ext4 -q -F /dev/nbd0
        refused "add --destroy-data ./dev/nbd0., what tells it from others" /dev/nbd0 $FIT
        "#,
    ) else {
        return;
    };
    assert!(ended.said.contains(" left"), "no time left: {}", ended.said);
    received(&ended, "m.json", &folder.path("m.json"));
    let text = fs::read_to_string(folder.path("m.json")).expect("it was unpacked");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["device"]["kind"], "block");
    assert_eq!(document["device"]["model"], "INTEL SSDPED1K375GA");
    assert_eq!(document["device"]["name"], document["device"]["serial"]);
    assert_eq!(document["verdict"]["is_complete"], true);
    let filled = &document["steps"][0]["fio"]["jobs"][0]["write"]["io_bytes"];
    assert_eq!(filled, 2 * (32 << 20));
    let file = folder.text("m.json");
    // Steps are too short here for `fit`, which needs whole I/Os.
    let mut explain = mortal(cargo_bin!("drivelab"));
    let said = run(explain.args(["explain", &file]), Duration::from_secs(120)).expect_success();
    assert!(said.contains("read-qd16"), "{said}");
}
