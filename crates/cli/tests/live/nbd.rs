//! NBD with common clients: fio, qemu's tools, libnbd's.

use std::fs;
use std::time::Duration;

use crate::rig::has;
use crate::rig::process::{Ended, call, mortal, run};
use crate::rig::server::{Folder, Server, fast};

/// Returns bytes in which every block differs.
fn sample(bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    });
    words.flat_map(u64::to_le_bytes).take(bytes).collect()
}

/// Runs fio with its NBD engine.
pub(crate) fn fio(uri: &str, args: &[&str]) -> Ended {
    let uri = format!("--uri={uri}");
    let common = [
        "--name=job",
        "--ioengine=nbd",
        "--minimal",
        "--verify_fatal=1",
        "--verify_state_save=0",
    ];
    let args: Vec<&str> = common.iter().chain(args).copied().collect();
    run(mortal("fio").args(args).arg(uri), Duration::from_secs(120))
}

#[test]
fn fio_verifies_what_it_wrote() {
    if !has(&["fio", "setpriv"]) {
        return;
    }
    let folder = Folder::new();
    let server = fast(&folder);
    let uri = folder.uri("nbd", "p4800x-375");
    for job in [
        [
            "--rw=randwrite",
            "--bs=4k",
            "--size=32M",
            "--iodepth=32",
            "--verify=crc32c",
        ],
        [
            "--rw=write",
            "--bs=256k",
            "--size=128M",
            "--iodepth=8",
            "--verify=sha1",
        ],
        [
            "--rw=randrw",
            "--bsrange=512-64k",
            "--size=16M",
            "--iodepth=16",
            "--verify=md5",
        ],
    ] {
        fio(&uri, &job).expect_success();
    }
    server.stop().expect_success();
}

#[test]
fn a_drive_at_its_own_speed_verifies_too() {
    if !has(&["fio", "setpriv"]) {
        return;
    }
    let folder = Folder::new();
    let nbd = folder.unix("nbd");
    let server = Server::start(&[
        "950pro-256",
        "--size",
        "64M",
        "--state",
        "fresh",
        "--nbd",
        &nbd,
    ]);
    let uri = folder.uri("nbd", "950pro-256");
    let job = [
        "--rw=randwrite",
        "--bs=4k",
        "--size=8M",
        "--iodepth=16",
        "--fsync=64",
        "--verify=crc32c",
    ];
    fio(&uri, &job).expect_success();
    server.stop().expect_success();
}

#[test]
fn qemu_img_copies_and_compares() {
    if !has(&["qemu-img", "setpriv"]) {
        return;
    }
    let folder = Folder::new();
    let server = fast(&folder);
    let uri = folder.uri("nbd", "p4800x-375");
    let image = folder.text("image");
    // Data, a hole, and data at the very end.
    let mut bytes = sample(3 << 20);
    bytes.resize((256 << 20) - 4096, 0);
    bytes.extend(sample(4096));
    fs::write(&image, &bytes).expect("room");
    let information = call("qemu-img", &["info", &uri]).expect_success();
    assert!(information.contains("268435456 bytes"), "{information}");
    let copy = ["convert", "-n", "-f", "raw", "-O", "raw", &image, &uri];
    call("qemu-img", &copy).expect_success();
    let compare = ["compare", "-f", "raw", "-F", "raw", &image, &uri];
    call("qemu-img", &compare).expect_success();
    // The hole is detected, so block status works.
    let map = call("qemu-img", &["map", "--output=json", &uri]).expect_success();
    assert!(map.contains("\"zero\": true"), "{map}");
    let back = folder.text("back");
    call(
        "qemu-img",
        &["convert", "-f", "raw", "-O", "raw", &uri, &back],
    )
    .expect_success();
    assert!(
        fs::read(&back).expect("it is there") == bytes,
        "other data came back"
    );
    server.stop().expect_success();
}

#[test]
fn qemu_io_finds_what_it_wrote() {
    if !has(&["qemu-io", "setpriv"]) {
        return;
    }
    let folder = Folder::new();
    let server = fast(&folder);
    let uri = folder.uri("nbd", "p4800x-375");
    let commands = [
        "write -P 0xab 0 1M",
        "read -P 0xab 0 1M",
        "aio_write -P 0x11 4k 8k",
        "aio_flush",
        "read -P 0x11 4k 8k",
        "read -P 0xab 12k 4k",
        "write -z 64k 64k",
        "read -P 0 64k 64k",
        "write -z -u 128k 64k",
        "read -P 0 128k 64k",
        "discard 256k 64k",
        "write -f -P 0x22 512 512",
        "read -P 0x22 512 512",
        "flush",
        "writev -P 0x33 1M 4k 512 3584",
        "read -P 0x33 1M 8k",
    ];
    let mut args = vec!["-f", "raw"];
    args.extend(commands.iter().flat_map(|command| ["-c", command]));
    args.push(&uri);
    // qemu-io prints "Pattern verification failed" and continues.
    let said = call("qemu-io", &args).expect_success();
    assert!(!said.contains("failed"), "{said}");
    server.stop().expect_success();
}

#[test]
fn libnbd_copies_and_asks() {
    if !has(&["nbdcopy", "nbdinfo", "setpriv"]) {
        return;
    }
    let folder = Folder::new();
    let nbd = folder.unix("nbd");
    let args = [
        "p4800x-375",
        "950pro-256",
        "--size",
        "64M",
        "--speed",
        "0",
        "--state",
        "fresh",
        "--nbd",
        &nbd,
    ];
    let server = Server::start(&args);
    let uri = folder.uri("nbd", "p4800x-375");
    let other = folder.uri("nbd", "950pro-256");
    let list = call("nbdinfo", &["--list", "--json", &folder.uri("nbd", "")]).expect_success();
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    let exports = list["exports"].as_array().expect("exports");
    let names: Vec<&str> = exports
        .iter()
        .filter_map(|it| it["export-name"].as_str())
        .collect();
    assert_eq!(names, ["p4800x-375", "950pro-256"]);
    for export in exports {
        for can in [
            "can_flush",
            "can_fua",
            "can_multi_conn",
            "can_trim",
            "can_zero",
        ] {
            assert_eq!(export[can], true, "{can}: {export}");
        }
        assert_eq!(export["export-size"], 64 << 20);
        assert_eq!(export["is_read_only"], false);
    }
    let (image, back) = (folder.text("image"), folder.text("back"));
    fs::write(&image, sample(64 << 20)).expect("room");
    // Several connections and requests at once.
    call(
        "nbdcopy",
        &["--connections=4", "--requests=16", &image, &uri],
    )
    .expect_success();
    call("nbdcopy", &[&uri, &other]).expect_success();
    call("nbdcopy", &["--connections=2", &other, &back]).expect_success();
    let same = fs::read(&image).expect("there") == fs::read(&back).expect("there");
    assert!(same, "other data came back");
    assert!(call("nbdinfo", &[&folder.uri("nbd", "no-such")]).code != Some(0));
    server.stop().expect_success();
}

/// The operations of libnbd's interoperability tests: each negotiation and command separately.
const INTEROP: &str = r#"
import nbd, sys
path, size = sys.argv[1], 64 << 20

def connection(**set):
    h = nbd.NBD()
    h.set_export_name("p4800x-375")
    for name, value in set.items():
        getattr(h, "set_" + name)(value)
    return h

# With and without structured replies.
for structured in (True, False):
    h = connection(request_structured_replies=structured)
    h.connect_unix(path)
    assert h.get_structured_replies_negotiated() == structured
    assert h.get_size() == size and not h.is_read_only()
    data = bytes(range(256)) * 4096
    h.pwrite(data, 4096)
    assert h.pread(len(data), 4096) == data
    h.pwrite(data[:512], 512, nbd.CMD_FLAG_FUA)
    h.flush()
    h.zero(65536, 65536)
    assert h.pread(65536, 65536) == bytes(65536)
    h.zero(65536, 65536 * 2, nbd.CMD_FLAG_NO_HOLE)
    h.trim(65536, 131072)
    try:
        h.set_strict_mode(0)
        h.pread(4096, size - 512)
        raise SystemExit("a read beyond the end succeeded")
    except nbd.Error as error:
        assert error.errno in ("EINVAL", "ENOSPC"), error.errno
    try:
        h.pwrite(bytes(1024), size - 512)
        raise SystemExit("a write beyond the end succeeded")
    except nbd.Error as error:
        assert error.errno in ("ENOSPC", "EINVAL"), error.errno
    # And the connection lives.
    assert h.pread(512, 512) == data[:512]
    h.shutdown()

# Block status.
h = connection()
h.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
h.connect_unix(path)
assert h.can_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
extents = []
def extent(context, offset, entries, error):
    extents.extend(zip(entries[::2], entries[1::2]))
h.zero(1 << 20, 32 << 20)
h.block_status(32 << 20, 16 << 20, extent)
assert extents and all(length > 0 for length, _ in extents), extents
extents.clear()
h.block_status(4096, 32 << 20, extent, nbd.CMD_FLAG_REQ_ONE)
assert len(extents) == 1, extents
h.shutdown()

# Options before the export is chosen.
h = nbd.NBD()
h.set_opt_mode(True)
h.connect_unix(path)
names = []
h.opt_list(lambda name, description: names.append(name))
assert "p4800x-375" in names, names
h.set_export_name("p4800x-375")
h.opt_info()
assert h.get_size() == size
minimum, preferred, maximum = (h.get_block_size(n) for n in (nbd.SIZE_MINIMUM, nbd.SIZE_PREFERRED, nbd.SIZE_MAXIMUM))
assert minimum in (1, 512, 4096) and preferred >= minimum and maximum >= 1 << 20, (minimum, preferred, maximum)
h.set_export_name("no-such")
try:
    h.opt_info()
    raise SystemExit("an export that is not there")
except nbd.Error:
    pass
h.set_export_name("p4800x-375")
h.opt_go()
assert len(h.pread(512, 0)) == 512
h.shutdown()
h = nbd.NBD()
h.set_opt_mode(True)
h.connect_unix(path)
h.opt_abort()

# Many commands at once, that may end in any order.
h = connection()
h.connect_unix(path)
ended = []
for index in range(256):
    buffer = nbd.Buffer.from_bytearray(bytearray([index] * 4096))
    h.aio_pwrite(buffer, index * 8192, lambda error, index=index: ended.append((index, error.value)) or 1)
while len(ended) < 256:
    h.poll(10000)
assert all(error == 0 for _, error in ended) and len({index for index, _ in ended}) == 256
for index in range(256):
    assert h.pread(4096, index * 8192) == bytes([index]) * 4096, index
h.shutdown()
print("all is well")
"#;

#[test]
fn libnbd_negotiates_everything() {
    // Only Debian's Python has the binding.
    let python = "/usr/bin/python3";
    if !has(&["nbdsh", "setpriv"]) || !std::path::Path::new(python).is_file() {
        return;
    }
    let folder = Folder::new();
    let nbd = folder.unix("nbd");
    let server = Server::start(&["p4800x-375", "--size", "64M", "--speed", "0", "--nbd", &nbd]);
    let mut command = mortal(python);
    command.args(["-c", INTEROP, &folder.text("nbd")]);
    let said = run(&mut command, Duration::from_secs(60)).expect_success();
    assert!(said.contains("all is well"), "{said}\n{}", server.said());
    server.stop().expect_success();
}
