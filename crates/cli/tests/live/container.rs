//! A crash test under the restrictions of an ordinary container: no capabilities, and Docker's filter of system calls.
//!
//! The filter denies the system calls that Docker's documentation lists as blocked ("Significant syscalls blocked by
//! the default profile", docs.docker.com/engine/security/seccomp), io_uring, and clone with namespaces. clone3 fails with
//! ENOSYS, as there. Docker's profile is a list of allowed calls, so it also denies rare calls that this filter allows.
//! This test binary, run again, sets the filter and then becomes the command.

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use seccompiler::{BpfMap, apply_filter, compile_from_json};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::programs::UNPRIVILEGED;
use crate::rig::{guest_file, has};

/// Variable with the command that [`filtered`] becomes; without it, the test does nothing.
const COMMAND: &str = "DRIVELAB_TEST_FILTERED";

/// System calls of x86-64 that fail with EPERM.
const DENIED: &[&str] = &[
    "acct",
    "add_key",
    "adjtimex",
    "bpf",
    "clock_adjtime",
    "clock_settime",
    "create_module",
    "delete_module",
    "finit_module",
    "get_kernel_syms",
    "get_mempolicy",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "ioperm",
    "iopl",
    "kcmp",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "lookup_dcookie",
    "mbind",
    "mount",
    "move_pages",
    "nfsservctl",
    "open_by_handle_at",
    "perf_event_open",
    "personality",
    "pivot_root",
    "process_vm_readv",
    "process_vm_writev",
    "query_module",
    "quotactl",
    "reboot",
    "request_key",
    "set_mempolicy",
    "setns",
    "settimeofday",
    "swapoff",
    "swapon",
    "sysfs",
    "umount2",
    "unshare",
    "uselib",
    "userfaultfd",
    "ustat",
    "vhangup",
];

/// Flags of clone for new namespaces: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
const NAMESPACES: [u64; 7] = [
    0x2_0000,
    0x200_0000,
    0x400_0000,
    0x800_0000,
    0x1000_0000,
    0x2000_0000,
    0x4000_0000,
];

/// Returns a filter in which these rules fail with an error.
fn filter(errno: u32, rules: &[Value]) -> Value {
    json!({ "mismatch_action": "allow", "match_action": { "errno": errno }, "filter": rules })
}

fn install(name: &str, filter: Value) {
    let text = json!({ name: filter }).to_string();
    let arch = std::env::consts::ARCH.try_into().expect("x86-64");
    let filters: BpfMap = compile_from_json(text.as_bytes(), arch).expect("a filter");
    apply_filter(&filters[name]).expect("applied");
}

/// Sets the filter, and becomes the command.
#[test]
fn filtered() {
    let Ok(command) = env::var(COMMAND) else {
        return;
    };
    let namespaces = NAMESPACES.map(|flag| {
        let op = json!({ "masked_eq": flag });
        let flags = json!({ "index": 0, "type": "qword", "op": op, "val": flag });
        json!({ "syscall": "clone", "args": [flags] })
    });
    let denied = DENIED.iter().map(|name| json!({ "syscall": name }));
    let rules: Vec<Value> = denied.chain(namespaces).collect();
    install("denied", filter(1, &rules));
    // ENOSYS: C libraries then use clone.
    install("missing", filter(38, &[json!({ "syscall": "clone3" })]));
    let error = Command::new("sh")
        .args(["-c", &command])
        .env_remove(COMMAND)
        .exec();
    panic!("{error}");
}

/// Runs a line of shell without capabilities and under the filter; returns its exit code and its output.
fn contained(folder: &Path, line: &str) -> (i32, String) {
    let own = env::current_exe().expect("this test");
    let output = Command::new("sh")
        .args(["-c", UNPRIVILEGED, "sh"])
        .arg(own)
        .args(["--exact", "--nocapture", "container::filtered"])
        .env(COMMAND, line)
        .env("TMPDIR", folder.join("tmp"))
        // python3 of the system: that of pyenv is a slow script.
        .env(
            "PATH",
            format!("/usr/bin:/bin:{}", env::var("PATH").unwrap_or_default()),
        )
        .current_dir(folder)
        .output()
        .expect("setpriv starts");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    (output.status.code().expect("an exit code"), said)
}

#[test]
fn the_sqlite_story_runs_in_an_ordinary_container() {
    let is_ready = guest_file("linux").is_some()
        && has(&["mkfs.ext4", "losetup", "setpriv", "unshare", "python3"]);
    if !is_ready {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let recipes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/crashtest");
    fs::create_dir(folder.path().join("tmp")).expect("a folder");
    for name in ["orders.py", "check.py"] {
        fs::copy(recipes.join(name), folder.path().join(name)).expect("copied");
    }
    // The filter is there: these work for root, and fail here.
    for (line, part) in [
        ("unshare -m true", "Operation not permitted"),
        ("mount -t tmpfs none tmp", "permission denied"),
        (
            "grep Seccomp: /proc/self/status; grep CapBnd /proc/self/status",
            "0000000000000000",
        ),
    ] {
        let (_, said) = contained(folder.path(), line);
        assert!(said.contains(part), "{line}: {said}");
    }
    let drivelab = cargo_bin!("drivelab");
    let line = |synchronous: &str| {
        format!(
            "ORDERS_SYNCHRONOUS={synchronous} exec {} crashtest 950pro-256 --images 60 --budget 5min \
             --limit 60s --keep-log {synchronous}.dlog --check 'python3 check.py' -- python3 orders.py",
            drivelab.display()
        )
    };
    let (code, said) = contained(folder.path(), &line("EXTRA"));
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("held       no image of "), "{said}");
    assert!(said.contains("10 acknowledgements"), "{said}");
    let (code, said) = contained(folder.path(), &line("FULL"));
    assert_eq!(code, 3, "{said}");
    for part in [
        "FAILED     lost ",
        "needs      nothing",
        "orders.db-journal",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
