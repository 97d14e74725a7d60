//! Recordings agree with QEMU's blklogwrites: QEMU logs the same commands above its NBD client, and both logs have the same
//! durable contents, byte for byte.

use std::path::Path;
use std::process::Command;

use crash::{Log, log_writes};

use crate::contents::{durable, same};
use crate::rig::{end, serve};

/// Runs commands of qemu-io on a drive that is recorded; returns our log and QEMU's.
fn recorded(commands: &[String]) -> (Log, Log) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let log = path("run.dlog").display().to_string();
    let server = serve(folder.path(), "950pro-256", &["--record", &log]);
    std::fs::write(path("qemu.log"), []).expect("a file");
    let options = [
        "driver=blklogwrites,discard=unmap,file.driver=nbd,file.discard=unmap,file.server.type=unix",
        &format!("file.server.path={}", server.socket.display()),
        "file.export=950pro-256,log.driver=file",
        &format!("log.filename={}", path("qemu.log").display()),
    ];
    let mut qemu = Command::new("qemu-io");
    qemu.args(["-t", "none", "--image-opts", &options.join(",")]);
    qemu.args(commands.iter().flat_map(|it| ["-c", it]));
    let output = qemu.output().expect("qemu-io starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    end(server);
    let read = |path: &Path| std::fs::read(path).expect("a log");
    let ours = Log::read(read(&path("run.dlog"))).expect("a log");
    let qemus = log_writes::read(&read(&path("qemu.log")), &ours.head, &[]);
    (ours, qemus.expect("a log of QEMU"))
}

/// Returns random writes, trims, zeroes and flushes. Writes that are in flight together do not overlap.
fn random_commands(mut seed: u64) -> Vec<String> {
    let mut below = |limit: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % limit
    };
    let mut commands = Vec::new();
    for number in 0..120 {
        let (offset, length) = (8 * below(100), 1 + below(8));
        let pattern = number % 250 + 1;
        match below(10) {
            0..4 => commands.push(format!(
                "write -P {pattern} {}k {}k",
                4 * offset,
                4 * length
            )),
            4 => {
                for part in 0..3 {
                    let offset = 4 * (offset + 8 * part);
                    commands.push(format!(
                        "aio_write -q -P {pattern} {offset}k {}k",
                        4 * length
                    ));
                }
                commands.push("aio_flush".into());
            }
            5 => commands.push(format!("discard {}k {}k", 4 * offset, 4 * length)),
            6 => commands.push(format!("write -z {}k {}k", 4 * offset, 4 * length)),
            _ => commands.push("flush".into()),
        }
    }
    commands
}

fn has_qemu() -> bool {
    let found = Command::new("qemu-io").arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: qemu-io is not installed");
    }
    found
}

#[test]
fn durable_contents_are_those_of_qemu_at_each_flush() {
    if !has_qemu() {
        return;
    }
    for seed in 1..4 {
        let (ours, qemus) = recorded(&random_commands(seed));
        let (ours, qemus) = (durable(&ours), durable(&qemus));
        assert!(ours.len() > 20, "seed {seed}: {}", ours.len());
        assert_eq!(ours.len(), qemus.len(), "seed {seed}");
        let differs = ours.iter().zip(&qemus).position(|(a, b)| !same(a, b));
        assert_eq!(differs, None, "seed {seed}");
    }
}

/// QEMU's filter does not log force unit access. QEMU emulates it above the filter by a flush. If nothing was written since
/// the last flush, QEMU skips this flush above the filter and sends it below. So such a write is durable in our log only.
#[test]
fn qemu_does_not_log_that_a_write_with_force_unit_access_is_durable() {
    if !has_qemu() {
        return;
    }
    let commands = [
        "write -P 1 0 4k",
        "write -f -P 2 4k 4k",
        "flush",
        "write -f -P 3 8k 4k",
        "write -P 4 12k 4k",
        "flush",
        "write -f -P 5 16k 4k",
        "write -P 6 20k 4k",
        "flush",
    ];
    let (ours, qemus) = recorded(&commands.map(String::from));
    let (ours, qemus) = (durable(&ours), durable(&qemus));
    assert_eq!((ours.len(), qemus.len()), (6, 4));
    let mut rest = ours.iter();
    for content in &qemus {
        assert!(rest.any(|it| same(it, content)));
    }
}
