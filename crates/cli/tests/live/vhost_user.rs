//! vhost-user-blk: the drive as the disk of a guest, in user-mode Linux and in QEMU.

use std::time::Duration;

use crate::rig::guest::{Guest, Kernel};
use crate::rig::has;
use crate::rig::server::{Folder, Server};

const LIMIT: Duration = Duration::from_secs(240);

#[test]
fn user_mode_linux_mounts_it() {
    let folder = Folder::new();
    let guest = Guest::new(Kernel::UserMode).with_disk(folder.path("disk"));
    if !guest.is_there() {
        return;
    }
    let disk = folder.text("disk");
    let args = ["p4800x-375", "--size", "1G", "--vhost-user", &disk];
    let server = Server::start(&args);
    let script = r#"[ "$(cat /sys/block/vda/size)" = 2097152 ] || die size
        [ "$(cat /sys/block/vda/queue/physical_block_size)" = 4096 ] || die "physical block"
        [ -n "$(cat /sys/block/vda/serial)" ] || die serial
        file_systems /dev/vda"#;
    guest.run(script, LIMIT).expect_success();
    server.stop().expect_success();
}

#[test]
fn an_emulated_machine_uses_several_queues() {
    let folder = Folder::new();
    let guest = Guest::new(Kernel::Emulated(2))
        .with_fio()
        .with_disk(folder.path("disk"));
    if !guest.is_there() {
        return;
    }
    let disk = folder.text("disk");
    let args = [
        "950pro-256",
        "--size",
        "1G",
        "--state",
        "fresh",
        "--vhost-user",
        &disk,
    ];
    let server = Server::start(&args);
    let script = r#"
        [ "$(ls /sys/block/vda/mq | wc -l)" = 2 ] || die queues
        fio --name=verify --filename=/dev/vda --direct=1 --ioengine=libaio --rw=randwrite --bs=4k --iodepth=16 \
            --size=16M --numjobs=2 --offset_increment=64M --verify=crc32c --verify_fatal=1 --minimal || die fio
        file_systems /dev/vda
    "#;
    guest.run(script, LIMIT).expect_success();
    server.stop().expect_success();
}

#[test]
fn a_guest_goes_on_when_the_server_was_killed() {
    let folder = Folder::new();
    let guest = Guest::new(Kernel::Emulated(1))
        .with_fio()
        .with_disk(folder.path("disk"));
    if !guest.is_there() {
        return;
    }
    let (disk, store) = (folder.text("disk"), folder.text("store"));
    let args = [
        "p4800x-375",
        "--size",
        "1G",
        "--store",
        &store,
        "--vhost-user",
        &disk,
    ];
    let mut server = Some(Server::start(&args));
    // fio records its writes; with lost requests it would never end, with lost data it would not verify.
    let script = r#"
        fio --name=verify --filename=/dev/vda --direct=1 --ioengine=libaio --rw=randwrite --bs=4k --iodepth=16 \
            --size=48M --rate_iops=1500 --verify=crc32c --verify_fatal=1 --minimal > fio.out 2>&1 &
        sleep 2
        host kill
        host start
        wait $! || { cat fio.out; die fio; }
        grep -q . fio.out || die "fio said nothing"
    "#;
    let ended = guest.run_with(script, LIMIT, |word| match word {
        "kill" => server.take().expect("it runs").kill(),
        _ => server = Some(Server::start(&args)),
    });
    ended.expect_success();
    server.expect("started again").stop().expect_success();
}

#[test]
fn it_is_said_what_shared_memory_adds() {
    if !has(&["setpriv"]) {
        return;
    }
    let folder = Folder::new();
    let socket = folder.text("guest");
    let server = Server::start(&["p4800x-375", "--size", "64M", "--vhost-user", &socket]);
    // Its standard error is complete only after it has ended.
    let said = server.stop().expect_success();
    assert!(said.contains("shared memory"), "{said}");
}
