//! NVMe/TCP with the Linux kernel's own initiator and nvme-cli, in a guest.

use std::time::Duration;

use crate::rig::guest::{Guest, Kernel};
use crate::rig::network::Network;
use crate::rig::server::{Folder, Server};

const LIMIT: Duration = Duration::from_secs(240);

/// The beginning of the scripts. `die` at the end of a pipe ends only the pipe, hence `set -e`.
const CONNECT: &str = r#"
set -e
NQN=nqn.2026-11.org.drivelab:p4800x-375
connect() { nvme connect -t tcp -a $SERVER -s 4420 -n $NQN "$@" && until_ready 10 test -b /dev/nvme0n1; }
has() { grep -Eq "$1" || die "no $1"; }
"#;

/// Serves a P4800X and runs a script in a guest that can reach it.
fn with_p4800x(script: &str, args: &[&str], with_fio: bool) {
    let mut guest = Guest::new(Kernel::UserMode);
    if with_fio {
        guest = guest.with_fio();
    }
    if !guest.is_there() {
        return;
    }
    let Some(network) = Network::new() else {
        return;
    };
    let mut all = vec![
        "p4800x-375",
        "--size",
        "1G",
        "--nvme-tcp",
        "10.64.0.1:4420",
        "--allow-remote",
    ];
    all.extend(args);
    let server = Server::start_in(&network, &all);
    let ended = guest
        .within(&network)
        .run(&format!("{CONNECT}\n{script}"), LIMIT);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.said, server.said());
    server.stop().expect_success();
}

#[test]
fn nvme_cli_finds_the_drive_and_asks_it_everything() {
    let script = r#"
        nvme discover -t tcp -a $SERVER -s 4420 | has "subnqn: +$NQN"
        connect || die connect
        nvme list | has "/dev/nvme0n1.*INTEL SSDPED1K375GA.*1.07 +GB"
        nvme id-ctrl /dev/nvme0 > c; has "^mn +: INTEL SSDPED1K375GA" < c; has "^mdts +: 5" < c; has "^cntrltype +: 1" < c
        nvme id-ns /dev/nvme0n1 > n; has "^nsze +: 0x200000" < n; has "^nlbaf +: 6" < n; has "lbaf +0 : ms:0 +lbads:9.*in use" < n
        nvme ns-descs /dev/nvme0n1 | has "^nguid"
        nvme list-ns /dev/nvme0 | has "0x1"
        nvme list-subsys | has "tcp traddr=$SERVER"
        nvme smart-log /dev/nvme0 > s; has "^available_spare\s*: 100%" < s; has "^percentage_used\s*: 0%" < s
        nvme error-log /dev/nvme0 | has "entries:"
        nvme fw-log /dev/nvme0 | has "frs1"
        nvme supported-log-pages /dev/nvme0 | has "SMART"
        nvme effects-log /dev/nvme0 > /dev/null || die effects-log
        for feature in 1 2 4 5 7 0xb 0xe 0xf; do
            nvme get-feature /dev/nvme0 -f $feature > /dev/null || die "get-feature $feature"
        done
        nvme set-feature /dev/nvme0 -f 2 -v 1 > /dev/null || die set-feature
        nvme get-feature /dev/nvme0 -f 2 | has "value:0x0*1$"
        nvme flush /dev/nvme0n1 || die flush
        nvme write-zeroes /dev/nvme0n1 -s 0 -c 7 || die write-zeroes
        nvme verify /dev/nvme0n1 -s 0 -c 7 || die verify
        dd if=/dev/urandom of=data bs=4k count=1 2>/dev/null
        nvme write /dev/nvme0n1 -s 8 -c 7 -z 4096 -d data || die write
        nvme compare /dev/nvme0n1 -s 8 -c 7 -z 4096 -d data || die compare
        nvme compare /dev/nvme0n1 -s 0 -c 7 -z 4096 -d data 2>/dev/null && die "compares with other data"
        nvme read /dev/nvme0n1 -s 8 -c 7 -z 4096 -d back 2>/dev/null; cmp data back || die read
        nvme dsm /dev/nvme0n1 -d -s 8 -b 8 || die dsm
        dd if=/dev/zero of=zeroes bs=4k count=1 2>/dev/null
        nvme read /dev/nvme0n1 -s 8 -c 7 -z 4096 -d back 2>/dev/null; cmp zeroes back || die "deallocated blocks"
        nvme read /dev/nvme0n1 -s 2097152 -c 7 -z 4096 -d back 2>/dev/null && die "beyond the end"
        nvme reset /dev/nvme0 || die reset
        until_ready 10 nvme read /dev/nvme0n1 -s 0 -c 7 -z 4096 -d back
        nvme disconnect -n $NQN | has "disconnected 1"
        [ ! -e /dev/nvme0n1 ] || die "still there"
    "#;
    with_p4800x(script, &[], false);
}

#[test]
fn unreadable_blocks_are_unreadable_until_written() {
    let script = r#"
        connect || die connect
        dd if=/dev/urandom of=data bs=4k count=1 2>/dev/null
        nvme write-uncor /dev/nvme0n1 -s 80 -c 7 || die write-uncor
        nvme read /dev/nvme0n1 -s 80 -c 7 -z 4096 -d back 2>&1 | has "Unrecovered Read|0x281|0x4281"
        nvme read /dev/nvme0n1 -s 88 -c 7 -z 4096 -d back || die "the block behind it"
        dd if=/dev/nvme0n1 of=/dev/null bs=4k skip=10 count=1 iflag=direct 2>/dev/null && die "dd reads it"
        nvme error-log /dev/nvme0 -e 1 | has "lba\s*: 0x50"
        nvme smart-log /dev/nvme0 | has "media_errors\s*: [1-9]"
        nvme write /dev/nvme0n1 -s 80 -c 7 -z 4096 -d data || die write
        nvme read /dev/nvme0n1 -s 80 -c 7 -z 4096 -d back 2>/dev/null; cmp data back || die "written again"
    "#;
    with_p4800x(script, &[], false);
}

/// A FORMAT takes the drive's time, so this server runs at a high speed.
#[test]
fn formats_change_blocks_and_protect_them() {
    let script = r#"
        connect || die connect
        dd if=/dev/urandom of=/dev/nvme0n1 bs=4k count=1 oflag=direct 2>/dev/null
        nvme format /dev/nvme0n1 -l 3 --force -t 100000 || die "format to 4 KiB"
        until_ready 10 grep -q 4096 /sys/block/nvme0n1/queue/logical_block_size
        nvme id-ns /dev/nvme0n1 | has "lbaf +3 : ms:0 +lbads:12.*in use"
        [ "$(dd if=/dev/nvme0n1 bs=4k count=1 iflag=direct 2>/dev/null | tr -d '\0' | wc -c)" = 0 ] || die "not empty"
        # 512 + 8 bytes of protection information, type 1: the kernel's block device refuses it, passing through works.
        nvme format /dev/nvme0n1 -l 1 -i 1 -m 1 --force -t 100000 || die "format with protection"
        nvme id-ns /dev/nvme0n1 > n; has "lbaf +1 : ms:8 +lbads:9.*in use" < n; has "^dps +: 0x1" < n
        dd if=/dev/urandom of=data bs=512 count=8 2>/dev/null
        # PRACT: the controller makes the protection information and checks it.
        nvme write /dev/ng0n1 -s 0 -c 7 -z 4096 -d data -p 8 || die "write with PRACT"
        nvme read /dev/ng0n1 -s 0 -c 7 -z 4096 -d back -p 15 2>/dev/null || die "read with PRACT"
        cmp data back || die "other data"
        nvme read /dev/ng0n1 -s 0 -c 7 -z 4160 -d extended -p 7 2>/dev/null || die "read with checks"
        # The reference tag of the last block of eight is its address.
        tag=$(tail -c 4 extended | od -An -tx1 | tr -d ' \n')
        [ "$tag" = 00000007 ] || die "reference tag $tag"
        nvme write /dev/ng0n1 -s 0 -c 7 -z 4160 -d extended -p 7 || die "write with checks"
        # Type 1 wants the address as reference tag, and a wrong guard is refused.
        nvme read /dev/ng0n1 -s 0 -c 7 -z 4160 -d back -p 1 -r 5 2>&1 | has "Invalid Protection Information|Reference Tag"
        dd if=/dev/urandom of=bad bs=520 count=8 2>/dev/null
        nvme write /dev/ng0n1 -s 8 -c 7 -z 4160 -d bad -p 4 2>&1 | has "Guard Check"
        nvme format /dev/nvme0n1 -l 0 -i 0 --force -t 100000 || die "format back"
        until_ready 10 grep -q 2097152 /sys/block/nvme0n1/size
        nvme format /dev/nvme0n1 -l 12 --force 2>/dev/null && die "a format that is not there"
        dd if=/dev/zero of=/dev/nvme0n1 bs=4k count=1 oflag=direct 2>/dev/null || die "write after all"
    "#;
    with_p4800x(script, &["--speed", "0"], false);
}

/// Functions that no drive of the catalogue has, with `--controller full`.
#[test]
fn hosts_divide_a_drive_copy_and_test_it() {
    let script = r#"
        connect || die connect
        nvme id-ctrl /dev/nvme0 > c; has "^oacs +: 0x21a" < c; has "^ocfs +: 0xf" < c; has "^nn +: 16" < c
        id=$(($(cat /sys/class/nvme/nvme0/cntlid)))
        nvme get-feature /dev/nvme0 -f 8 > /dev/null || die "interrupt coalescing"
        nvme get-feature /dev/nvme0 -f 9 --cdw11=1 | has "value:0x0*1$"
        nvme write-uncor /dev/nvme0n1 -s 80 -c 7 || die write-uncor
        # nvme-cli 2.3 asks for no data here: passed through, and the first descriptor's bytes.
        nvme get-lba-status /dev/nvme0n1 -n 1 -s 0 -m 1 -a 17 -l 1 > /dev/null || die get-lba-status
        nvme admin-passthru /dev/nvme0 -o 0x86 -n 1 --cdw12=1023 --cdw13=0x11000000 -l 4096 -r -b > l 2>/dev/null
        [ "$(head -c 20 l | od -An -v -tx1 | tr -d ' \n')" = 0100000002000000500000000000000008000000 ] || die "LBA status"
        nvme lba-status-log /dev/nvme0 > l || die lba-status-log
        has "RSLBA.0.: 80" < l; has "RNLB.0.: 8" < l
        nvme device-self-test /dev/nvme0 -n 1 -s 2 || die device-self-test
        nvme self-test-log /dev/nvme0 > t || die self-test-log
        has "Operation Result *: 0x7" < t; has "Self Test Code *: 2" < t; has "Failing LBA *: 0x50" < t
        nvme persistent-event-log /dev/nvme0 -a 1 -l 0 > /dev/null || die "event context"
        nvme persistent-event-log /dev/nvme0 -a 0 -l 0 > p || die persistent-event-log
        has "Power-on or Reset" < p
        nvme persistent-event-log /dev/nvme0 -a 2 -l 0 > /dev/null || die "release"
        dd if=/dev/urandom of=data bs=4k count=1 2>/dev/null
        nvme write /dev/nvme0n1 -s 1000 -c 7 -z 4096 -d data || die write
        nvme copy /dev/nvme0n1 -d 80 -s 1000 -b 7 || die copy
        nvme read /dev/nvme0n1 -s 80 -c 7 -z 4096 -d back 2>/dev/null; cmp data back || die "other data"
        nvme delete-ns /dev/nvme0 -n 0xffffffff || die delete-ns
        until_ready 10 test ! -b /dev/nvme0n1
        nvme create-ns /dev/nvme0 -s 1048576 -c 1048576 -f 0 | has "nsid:1"
        nvme create-ns /dev/nvme0 -s 65536 -c 65536 -f 0 | has "nsid:2"
        nvme list-ns /dev/nvme0 --all | has "0x2"
        [ ! -e /dev/nvme0n1 ] || die "it is not attached"
        for n in 1 2; do
            nvme attach-ns /dev/nvme0 -n $n -c $id || die attach-ns
            until_ready 10 test -b /dev/nvme0n$n
            dd if=data of=/dev/nvme0n$n bs=4k seek=$n oflag=direct 2>/dev/null || die "write to $n"
        done
        file_systems /dev/nvme0n1
        dd if=/dev/nvme0n2 bs=4k skip=2 count=1 iflag=direct 2>/dev/null | cmp - data || die "of the other"
        nvme detach-ns /dev/nvme0 -n 2 -c $id || die detach-ns
        until_ready 10 test ! -b /dev/nvme0n2
        nvme reset /dev/nvme0 || die reset
        until_ready 10 test -b /dev/nvme0n1
        [ $(($(cat /sys/class/nvme/nvme0/cntlid))) = $id ] || die "another controller"
        nvme delete-ns /dev/nvme0 -n 1 || die "delete 1"
        nvme delete-ns /dev/nvme0 -n 2 || die "delete 2"
        # 64-bit guard, type 1: the kernel's block device refuses it, passing through works.
        nvme create-ns /dev/nvme0 -s 1000 -c 1000 -f 0x18 -d 1 | has "nsid:1"
        nvme attach-ns /dev/nvme0 -n 1 -c $id || die "attach again"
        until_ready 10 test -c /dev/ng0n1
        nvme nvm-id-ns /dev/ng0n1 > g || die nvm-id-ns
        has "pif:2" < g
        nvme write /dev/ng0n1 -s 0 -c 0 -z 4096 -d data -p 8 || die "write with PRACT"
        nvme read /dev/ng0n1 -s 0 -c 0 -z 4096 -d back -p 12 2>/dev/null || die "read with PRACT"
        cmp data back || die "protected data"
    "#;
    with_p4800x(script, &["--speed", "0", "--controller", "full"], false);
}

#[test]
fn file_systems_and_fio_with_digests() {
    let script = r#"
        connect --hdr-digest --data-digest || die connect
        verify="fio --name=verify --filename=/dev/nvme0n1 --direct=1 --ioengine=libaio --verify=crc32c --verify_fatal=1 --minimal"
        $verify --rw=randwrite --bs=4k --iodepth=16 --size=16M > /dev/null || die "fio, small"
        $verify --rw=randwrite --bsrange=512-64k --iodepth=8 --size=32M > /dev/null || die "fio, mixed"
        $verify --rw=write --bs=512k --iodepth=4 --size=64M > /dev/null || die "fio, large"
        file_systems /dev/nvme0n1
        nvme disconnect -n $NQN | has "disconnected 1"
    "#;
    with_p4800x(script, &[], true);
}

#[test]
fn several_queues_of_an_emulated_machine() {
    let guest = Guest::new(Kernel::Emulated(2)).with_fio();
    if !guest.is_there() {
        return;
    }
    // The port was free, and another process is unlikely to take it at once.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|socket| socket.local_addr())
        .expect("a port")
        .port();
    let address = format!("127.0.0.1:{port}");
    let server = Server::start(&["p4800x-375", "--size", "1G", "--nvme-tcp", &address]);
    let script = format!(
        "{CONNECT}
        nvme connect -t tcp -a $SERVER -s {port} -n $NQN || die connect
        until_ready 20 test -b /dev/nvme0n1
        # Two of I/O, and the admin queue.
        [ $(cat /sys/class/nvme/nvme0/queue_count) = 3 ] || die queues
        fio --name=verify --filename=/dev/nvme0n1 --direct=1 --ioengine=libaio --rw=randwrite --bs=4k --iodepth=16 \\
            --size=16M --numjobs=2 --offset_increment=64M --verify=crc32c --verify_fatal=1 --minimal || die fio
        nvme disconnect -n $NQN"
    );
    let ended = guest.run(&script, LIMIT);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.said, server.said());
    server.stop().expect_success();
}

#[test]
fn the_host_reconnects_to_a_killed_server() {
    let guest = Guest::new(Kernel::UserMode).with_fio();
    if !guest.is_there() {
        return;
    }
    let Some(network) = Network::new() else {
        return;
    };
    let folder = Folder::new();
    let store = folder.text("store");
    let args = [
        "p4800x-375",
        "--size",
        "1G",
        "--nvme-tcp",
        "10.64.0.1:4420",
        "--allow-remote",
        "--store",
        &store,
    ];
    let mut server = Some(Server::start_in(&network, &args));
    let script = r#"
        connect --reconnect-delay=1 --ctrl-loss-tmo=100 --keep-alive-tmo=2 || die connect
        fio --name=verify --filename=/dev/nvme0n1 --direct=1 --ioengine=libaio --rw=randwrite --bs=4k --iodepth=16 \
            --size=32M --rate_iops=2000 --verify=crc32c --verify_fatal=1 --minimal > fio.out 2>&1 &
        sleep 2
        host kill
        host start
        wait $! || { cat fio.out; die fio; }
        nvme disconnect -n $NQN | has "disconnected 1"
    "#;
    let guest = guest.within(&network);
    let ended = guest.run_with(&format!("{CONNECT}\n{script}"), LIMIT, |word| match word {
        "kill" => server.take().expect("it runs").kill(),
        _ => server = Some(Server::start_in(&network, &args)),
    });
    ended.expect_success();
    server.expect("started again").stop().expect_success();
}

/// Commits of SQLite on ext4, then a kill of server and guest at once: committed data is present.
#[test]
fn committed_rows_survive_server_and_guest() {
    let guest = Guest::new(Kernel::UserMode);
    if !guest.is_there() {
        return;
    }
    let Some(network) = Network::new() else {
        return;
    };
    let folder = Folder::new();
    let store = folder.text("store");
    // A drive with a volatile write cache: the file system's flushes must work.
    let args = [
        "950pro-256",
        "--size",
        "1G",
        "--state",
        "fresh",
        "--nvme-tcp",
        "10.64.0.1:4420",
        "--allow-remote",
        "--store",
        &store,
    ];
    let connect = CONNECT.replace("p4800x-375", "950pro-256");
    let mut server = Some(Server::start_in(&network, &args));
    let commits = r#"
        connect || die connect
        mkfs.ext4 -q -F /dev/nvme0n1 && mount /dev/nvme0n1 /mnt || die mount
        sqlite3 /mnt/rows "create table rows(number integer primary key, text)" || die sqlite
        sync
        (
            number=1
            while sqlite3 /mnt/rows "pragma synchronous=extra; insert into rows values($number, hex(randomblob(300)))"; do
                echo "committed $number."; number=$((number + 1))
                [ $number -lt 6 ] || touch committed
            done
        ) &
        until_ready 100 test -e committed
        sleep 2
        host kill
    "#;
    let guest = guest.within(&network);
    let ended = guest.run_with(&format!("{connect}\n{commits}"), LIMIT, |_| {
        server.take().expect("it runs").kill();
    });
    let said = ended.expect_success();
    let committed = said.matches("committed ").count();
    assert!(committed >= 5, "{said}");
    let server = Server::start_in(&network, &args);
    let check = r#"
        connect || die connect
        mount /dev/nvme0n1 /mnt || die mount
        echo "integrity $(sqlite3 /mnt/rows 'pragma integrity_check')."
        echo "rows $(sqlite3 /mnt/rows 'select count(*) from rows')."
        umount /mnt && e2fsck -f -n /dev/nvme0n1 || die "file system"
    "#;
    let said = guest
        .run(&format!("{connect}\n{check}"), LIMIT)
        .expect_success();
    assert!(said.contains("integrity ok."), "{said}");
    let rows = said
        .split("rows ")
        .nth(1)
        .and_then(|rest| rest.split('.').next());
    let rows: usize = rows.and_then(|rows| rows.parse().ok()).expect("a number");
    assert!(
        rows >= committed,
        "{committed} were committed, {rows} are there"
    );
    server.stop().expect_success();
}
