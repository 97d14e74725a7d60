//! Clients that disconnect, send incomplete messages, or never read: nothing of them remains, and no other client is
//! delayed.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::rig::has;
use crate::rig::process::{mortal, run};
use crate::rig::server::{Folder, Server, fast};

const REQUEST: u32 = 0x2560_9513;
const READ: u16 = 0;
const LIMIT: Duration = Duration::from_secs(30);

/// Returns a raw NBD connection, past the negotiation.
fn nbd(socket: &Path, export: &str) -> UnixStream {
    let mut stream = UnixStream::connect(socket).expect("a connection");
    stream.set_read_timeout(Some(LIMIT)).expect("a time");
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).expect("a greeting");
    let mut hello = 3_u32.to_be_bytes().to_vec();
    hello.extend(b"IHAVEOPT");
    hello.extend(1_u32.to_be_bytes());
    hello.extend((export.len() as u32).to_be_bytes());
    hello.extend(export.as_bytes());
    stream.write_all(&hello).expect("taken");
    let mut size_and_flags = [0; 10];
    stream.read_exact(&mut size_and_flags).expect("an export");
    stream
}

fn request(kind: u16, cookie: u64, offset: u64, bytes: u32) -> Vec<u8> {
    let mut message = REQUEST.to_be_bytes().to_vec();
    message.extend(0_u16.to_be_bytes());
    message.extend(kind.to_be_bytes());
    message.extend(cookie.to_be_bytes());
    message.extend(offset.to_be_bytes());
    message.extend(bytes.to_be_bytes());
    message
}

/// Waits until the server has as few descriptors as before.
fn settles(server: &Server, before: usize) {
    let end = Instant::now() + LIMIT;
    while server.descriptors() > before {
        assert!(
            Instant::now() < end,
            "{} descriptors left",
            server.descriptors() - before
        );
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn ten_thousand_connections_leave_nothing() {
    if !has(&["setpriv"]) {
        return;
    }
    let folder = Folder::new();
    let address = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let address = address.expect("a port").to_string();
    let args = [
        "p4800x-375",
        "--size",
        "64M",
        "--speed",
        "0",
        "--state",
        "fresh",
        "--nbd",
        &folder.unix("nbd"),
        "--vhost-user",
        &folder.text("disk"),
        "--nvme-tcp",
        &address,
    ];
    let server = Server::start(&args);
    let socket = folder.path("nbd");
    let come_and_go = |rounds: u32| {
        for round in 0..rounds {
            match round % 10 {
                0 => {
                    // A command, and its answer.
                    let mut stream = nbd(&socket, "p4800x-375");
                    stream.write_all(&request(READ, 1, 0, 4096)).expect("taken");
                    stream.read_exact(&mut [0; 16 + 4096]).expect("an answer");
                }
                1 => {
                    // Half a request; and one whose answer is never read.
                    let mut stream = nbd(&socket, "p4800x-375");
                    stream
                        .write_all(&request(READ, 1, 0, 1 << 20))
                        .expect("taken");
                    stream.write_all(&REQUEST.to_be_bytes()).expect("taken");
                }
                2 => {
                    // An NVMe/TCP connection that sends half an ICReq.
                    let mut stream = TcpStream::connect(&address).expect("a connection");
                    stream
                        .write_all(&[0, 0, 128, 0, 128, 0, 0, 0])
                        .expect("taken");
                }
                3 => drop(UnixStream::connect(folder.path("disk")).expect("a connection")),
                4 => {
                    // Invalid bytes.
                    let mut stream = UnixStream::connect(&socket).expect("a connection");
                    let _ = stream.write_all(&[0x5a; 64]);
                }
                _ => drop(UnixStream::connect(&socket).expect("a connection")),
            }
        }
    };
    // Descriptors and memory that are allocated once and kept.
    come_and_go(1_000);
    thread::sleep(Duration::from_millis(500));
    let before = server.descriptors();
    let memory = server.memory_kib();
    come_and_go(10_000);
    settles(&server, before);
    let more = server.memory_kib().saturating_sub(memory);
    assert!(more < 1024, "{more} KiB more after 10,000 connections");
    server.stop().expect_success();
}

#[test]
fn clients_that_do_not_listen_hold_up_nobody() {
    if !has(&["fio", "setpriv"]) {
        return;
    }
    let folder = Folder::new();
    let server = fast(&folder);
    let socket = folder.path("nbd");
    let mut deaf = Vec::new();
    for _ in 0..8 {
        let mut stream = nbd(&socket, "p4800x-375");
        stream.set_nonblocking(true).expect("a socket");
        // A gigabyte each, none of which is read.
        for cookie in 0..1024 {
            if stream
                .write_all(&request(READ, cookie, 0, 1 << 20))
                .is_err()
            {
                break;
            }
        }
        deaf.push(stream);
    }
    let mut silent = nbd(&socket, "p4800x-375");
    silent
        .write_all(&request(READ, 1, 0, 4096)[..9])
        .expect("taken");
    let uri = format!("--uri={}", folder.uri("nbd", "p4800x-375"));
    let mut fio = mortal("fio");
    fio.args([
        "--name=job",
        "--ioengine=nbd",
        "--rw=randwrite",
        "--bs=4k",
        "--size=16M",
        "--iodepth=8",
    ]);
    fio.args([
        "--verify=crc32c",
        "--verify_fatal=1",
        "--verify_state_save=0",
        "--minimal",
        &uri,
    ]);
    run(&mut fio, Duration::from_secs(60)).expect_success();
    // All together may keep 256 MiB of answers waiting, not their eight gigabytes; the namespace uses as much.
    let memory = server.memory_kib() / 1024;
    assert!(memory < 640, "{memory} MiB");
    drop(deaf);
    server.stop().expect_success();
}

#[test]
fn an_idle_server_sleeps() {
    if !has(&["setpriv"]) {
        return;
    }
    let folder = Folder::new();
    let args = [
        "950pro-256",
        // In steady state the idle model would collect garbage in advance for seconds.
        "--state",
        "fresh",
        "--size",
        "64M",
        "--nbd",
        &folder.unix("nbd"),
        "--vhost-user",
        &folder.text("disk"),
    ];
    let server = Server::start(&args);
    let mut stream = nbd(&folder.path("nbd"), "950pro-256");
    let _guest = UnixStream::connect(folder.path("disk")).expect("a connection");
    stream.write_all(&request(READ, 1, 0, 4096)).expect("taken");
    stream.read_exact(&mut [0; 16 + 4096]).expect("an answer");
    thread::sleep(Duration::from_millis(500));
    let before = server.processor_time();
    thread::sleep(Duration::from_secs(2));
    let used = server.processor_time() - before;
    assert!(
        used < Duration::from_millis(60),
        "{used:?} in two idle seconds"
    );
    server.stop().expect_success();
}
