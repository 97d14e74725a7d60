//! libnbd's own interoperability checks, compiled for this server from Debian's source of the installed libnbd.
//!
//! From its folder `interop/` these are applicable: `interop.c` without encryption, with TLS, with optional TLS and
//! with the fallback from it, `list-exports.c` and `socket-activation.c`. The others need functions of qemu alone
//! (`dirty-bitmap.c`, the block sizes of qemu-nbd and its storage daemon), an image of 3 KiB whose holes are read as
//! holes (`structured-read.c`), or TLS with pre-shared keys.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;

use crate::rig::process::{mortal, run};
use crate::rig::server::Folder;
use crate::rig::{certificates, has, libnbd_file};

/// Arguments of all servers: 1 MiB, which is the size that the checks expect, on the socket that they pass on.
const SERVE: [&str; 8] = [
    "serve",
    "--size",
    "1M",
    "--speed",
    "0",
    "--nbd",
    "systemd",
    "p4800x-375",
];

/// Returns a list of C strings.
fn strings(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    quoted.join(", ")
}

/// Compiles a check for a server with these arguments, and runs it where it finds certificates.
fn check(name: &str, args: &[&str], defines: &[&str]) {
    let Some(source) = libnbd_file(&format!("interop/{name}.c")) else {
        return;
    };
    if !has(&["cc", "setpriv"]) {
        return;
    }
    if !Path::new("/usr/include/libnbd.h").is_file() {
        return crate::rig::skipped("libnbd-dev not installed");
    }
    let libnbd = source.parent().and_then(Path::parent).expect("two folders");
    let folder = Folder::new();
    certificates::make(&folder.path("tests/pki"));
    fs::create_dir(folder.path("interop")).expect("room");
    // These checks do not use the results of libnbd's configuration.
    fs::write(folder.path("config.h"), "").expect("room");
    let server = cargo_bin!("drivelab").display().to_string();
    let binary = folder.path("interop/check");
    let mut cc = Command::new("cc");
    cc.args(["-w", "-DSOCKET_ACTIVATION=1", "-o"]).arg(&binary);
    cc.arg(format!("-DSERVER={server:?}"));
    cc.arg(format!("-DSERVER_PARAMS={}", strings(args)));
    cc.args(defines.iter().map(|define| format!("-D{define}")));
    cc.arg("-I").arg(folder.path(""));
    for include in ["common/include", "tests"] {
        cc.arg("-I").arg(libnbd.join(include));
    }
    cc.arg(&source)
        .arg(libnbd.join("tests/requires.c"))
        .arg("-lnbd");
    run(&mut cc, Duration::from_secs(60)).expect_success();
    let mut command = mortal(&binary);
    command
        .current_dir(folder.path("interop"))
        .env("LIBNBD_DEBUG", "1");
    // Exit code 77 means in libnbd that a check was skipped, which is not a success here.
    run(&mut command, Duration::from_secs(60)).expect_success();
}

/// Returns the server's arguments with additional ones.
fn serve(more: &[&'static str]) -> Vec<&'static str> {
    [&SERVE, more].concat()
}

#[test]
fn libnbd_understands_the_server() {
    check("interop", &SERVE, &["EXPORT_NAME=\"\""]);
    check("interop", &SERVE, &["EXPORT_NAME=\"p4800x-375\""]);
    check("socket-activation", &SERVE, &[]);
}

#[test]
fn libnbd_understands_the_server_inside_tls() {
    let tls = serve(&["--tls", "../tests/pki", "--tls-verify-peer"]);
    let export = "EXPORT_NAME=\"p4800x-375\"";
    for mode in ["REQUIRE", "ALLOW"] {
        let mode = format!("TLS_MODE=LIBNBD_TLS_{mode}");
        check("interop", &tls, &[export, "CERTS=1", &mode]);
    }
    let falls_back = ["CERTS=1", "TLS_MODE=LIBNBD_TLS_ALLOW", "TLS_FALLBACK=1"];
    check("interop", &SERVE, &[&[export], &falls_back[..]].concat());
}

#[test]
fn libnbd_lists_the_exports() {
    // Ordered by name, as the check compares them.
    let names = "EXPORTS=\"950pro-256\", \"p4800x-375\"";
    check(
        "list-exports",
        &serve(&["950pro-256"]),
        &[names, "DESCRIPTIONS=\"\", \"\""],
    );
}
