//! Data after the server was killed or stopped: each block is old or new but complete, and never older than
//! guaranteed.

use std::path::Path;
use std::time::Duration;

use crate::rig::has;
use crate::rig::process::{Running, mortal, run};
use crate::rig::server::{Folder, Server};

/// Debian's Python, which has libnbd's binding.
const PYTHON: &str = "/usr/bin/python3";

/// Writes consecutive generations into 512 blocks, 16 in flight, until the server is gone; records which generation of
/// each block was flushed, and which was acknowledged.
const WRITE: &str = r#"
import json, nbd, random, struct, sys
path, export, notes = sys.argv[1:]
BLOCKS = 512
h = nbd.NBD()
h.set_export_name(export)
h.connect_unix(path)
stamp = lambda block, generation: struct.pack("<II", block, generation) * 512
flushed, acknowledged, sent = [0] * BLOCKS, [0] * BLOCKS, [0] * BLOCKS
choose = random.Random(1)
generation = 0
try:
    while True:
        generation += 1
        waiting = set()
        for block in choose.sample(range(BLOCKS), 64):
            buffer = nbd.Buffer.from_bytearray(bytearray(stamp(block, generation)))
            def done(error, block=block, generation=generation):
                if error.value == 0:
                    acknowledged[block] = generation
                waiting.discard(block)
                return 1
            waiting.add(block)
            sent[block] = generation
            h.aio_pwrite(buffer, block * 4096, done)
            while len(waiting) >= 16:
                h.poll(10000)
        while waiting:
            h.poll(10000)
        if generation % 4 == 0:
            h.flush()
            flushed = list(acknowledged)
        if generation == 40:
            print("enough", flush=True)
        if len(sys.argv) > 4 or generation == 2000:
            break
except nbd.Error:
    pass
json.dump([flushed, acknowledged, sent], open(notes, "w"))
"#;

/// Checks each block against the records; `durable`: acknowledged data must be present.
const CHECK: &str = r#"
import json, nbd, struct, sys
path, export, notes, durable = sys.argv[1:]
flushed, acknowledged, sent = json.load(open(notes))
assert sum(acknowledged) > 0
h = nbd.NBD()
h.set_export_name(export)
h.connect_unix(path)
newer = 0
for block in range(512):
    data = h.pread(4096, block * 4096)
    found, generation = struct.unpack_from("<II", data)
    assert data == data[:8] * 512, f"block {block} is torn"
    assert generation == 0 or found == block, f"block {block} has the data of block {found}"
    least = acknowledged[block] if durable == "durable" else flushed[block]
    assert least <= generation <= sent[block], f"block {block}: generation {generation}, not {least} to {sent[block]}"
    newer += generation > flushed[block]
print(f"whole; {newer} newer than the last flush")
"#;

/// Writes to `drive`, ends the server by `end`, starts it again, and checks.
fn ends(drive: &str, end: impl FnOnce(Server), promise: &str) {
    if !has(&["nbdsh", "setpriv"]) || !Path::new(PYTHON).is_file() {
        return;
    }
    let folder = Folder::new();
    let (nbd, store) = (folder.unix("nbd"), folder.text("store"));
    let args = [
        drive, "--size", "64M", "--state", "fresh", "--nbd", &nbd, "--store", &store,
    ];
    let server = Server::start(&args);
    let (socket, notes) = (folder.text("nbd"), folder.text("notes"));
    let mut write = mortal(PYTHON);
    write.args(["-c", WRITE, &socket, drive, &notes]);
    let writer = Running::start(&mut write, false);
    writer.wait_for(Duration::from_secs(60), |said| {
        said.contains("enough").then_some(())
    });
    end(server);
    writer.end(Duration::from_secs(30)).expect_success();
    let server = Server::start(&args);
    let mut check = mortal(PYTHON);
    check.args(["-c", CHECK, &socket, drive, &notes, promise]);
    run(&mut check, Duration::from_secs(60)).expect_success();
    server.stop().expect_success();
}

#[test]
fn a_killed_drive_without_cache_keeps_what_it_acknowledged() {
    ends("p4800x-375", Server::kill, "durable");
}

#[test]
fn a_killed_drive_with_a_cache_keeps_what_was_flushed() {
    ends("950pro-256", Server::kill, "flushed");
}

#[test]
fn a_stopped_drive_keeps_everything() {
    let stop = |server: Server| {
        server.stop().expect_success();
    };
    ends("950pro-256", stop, "durable");
}
