//! A mirror whose members store the data, under fio: a member fails and returns meanwhile, the server is killed, and
//! all data is verified.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use crate::nbd::fio;
use crate::rig::has;
use crate::rig::server::{Folder, Server};

/// Sends a line to the control socket, which must succeed.
#[track_caller]
fn tell(folder: &Folder, line: &str) {
    let mut stream = UnixStream::connect(folder.text("control")).expect("it listens");
    writeln!(stream, "{line}").expect("sent");
    let mut answer = String::new();
    let read = BufReader::new(stream).read_line(&mut answer);
    read.expect("an answer");
    assert_eq!(answer, "ok\n", "{line}");
}

#[test]
fn fio_verifies_through_a_leg_that_dies_and_returns_and_a_killed_server() {
    if !has(&["fio", "setpriv"]) {
        return;
    }
    let folder = Folder::new();
    let (nbd, store, control) = (
        folder.unix("nbd"),
        folder.text("store"),
        folder.text("control"),
    );
    let serve = || {
        Server::start(&[
            "optane-mirror",
            "--speed",
            "0",
            "--size",
            "256M",
            "--nbd",
            &nbd,
            "--store",
            &store,
            "--control",
            &control,
        ])
    };
    let uri = folder.uri("nbd", "optane-mirror");
    let server = serve();
    thread::scope(|scope| {
        let job = scope.spawn(|| {
            let job = ["--rw=randwrite", "--bs=4k", "--size=32M", "--loops=4"];
            let verified = ["--iodepth=16", "--verify=crc32c"];
            fio(&uri, &[&job[..], &verified].concat()).expect_success();
        });
        for _ in 0..4 {
            thread::sleep(Duration::from_millis(150));
            tell(&folder, "nda.1: dies");
            thread::sleep(Duration::from_millis(150));
            tell(&folder, "nda.1: returns");
        }
        job.join().expect("fio is content");
    });
    // The failed member gets time for its resync.
    thread::sleep(Duration::from_secs(5));
    tell(&folder, "nda.0: dies");
    let written = ["--rw=write", "--bs=16k", "--size=200M", "--iodepth=8"];
    let unverified = ["--verify=crc32c", "--do_verify=0"];
    fio(&uri, &[&written[..], &unverified].concat()).expect_success();
    server.kill();

    let read = ["--rw=read", "--bs=16k", "--size=200M", "--iodepth=8"];
    let checked = [&read[..], &["--verify=crc32c"]].concat();
    let server = serve();
    server.says("nda.0 is being resynchronised");
    server.says("nda.0 is in sync with mirror again");
    fio(&uri, &checked).expect_success();
    // Each mirror member alone has all data.
    tell(&folder, "nda.1: dies");
    fio(&uri, &checked).expect_success();
    tell(&folder, "nda.1: returns");
    thread::sleep(Duration::from_secs(5));
    tell(&folder, "nda.0: dies");
    fio(&uri, &checked).expect_success();
    server.kill();
    let server = serve();
    fio(&uri, &checked).expect_success();
    server.stop().expect_success();
    serve().stop().expect_success();
}
