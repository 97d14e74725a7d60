//! NBD over TLS with common clients: libnbd's tools and qemu's, which are built with GnuTLS.

use std::fs;

use crate::rig::process::{Ended, call};
use crate::rig::server::{Folder, Server};
use crate::rig::{certificates, has};

/// Returns a server of one export that accepts only clients with TLS.
fn encrypted(folder: &Folder, more: &[&str]) -> Server {
    certificates::make(&folder.path("pki"));
    let (nbd, pki) = (folder.unix("nbd"), folder.text("pki"));
    let mut args = vec!["p4800x-375", "--size", "64M", "--speed", "0", "--nbd", &nbd];
    args.extend(["--nbd", "127.0.0.1:0", "--tls", &pki]);
    args.extend(more);
    Server::start(&args)
}

/// Returns the URI of its export, with these certificates.
fn uri(folder: &Folder, pki: &str) -> String {
    format!(
        "nbds+unix:///p4800x-375?socket={}&tls-certificates={}",
        folder.text("nbd"),
        folder.text(pki)
    )
}

/// Runs qemu-img on a drive over TLS.
fn qemu_img(folder: &Folder, words: &[&str], more: &[&str]) -> Ended {
    let pki = folder.text("pki");
    let credentials = format!("tls-creds-x509,id=tls0,endpoint=client,dir={pki}");
    let mut args = vec![words[0], "--object", &credentials];
    args.extend(&words[1..]);
    args.extend(more);
    call("qemu-img", &args)
}

#[test]
fn libnbd_copies_inside_tls() {
    if !has(&["nbdcopy", "nbdinfo", "setpriv"]) {
        return;
    }
    let folder = Folder::new();
    let server = encrypted(&folder, &["--tls-verify-peer"]);
    let uri = uri(&folder, "pki");
    let said = call("nbdinfo", &["--json", &uri]).expect_success();
    assert!(said.contains("\"TLS\": true"), "{said}");
    let (image, back) = (folder.text("image"), folder.text("back"));
    let bytes: Vec<u8> = (0..64u32 << 20).map(|at| (at ^ at >> 9) as u8).collect();
    fs::write(&image, &bytes).expect("room");
    let several = ["--connections=4", "--requests=16"];
    call("nbdcopy", &[several[0], several[1], &image, &uri]).expect_success();
    call("nbdcopy", &[several[0], &uri, &back]).expect_success();
    assert!(
        fs::read(&back).expect("there") == bytes,
        "other data came back"
    );
    server.stop().expect_success();
}

#[test]
fn qemu_copies_inside_tls() {
    if !has(&["qemu-img", "setpriv"]) {
        return;
    }
    let folder = Folder::new();
    let server = encrypted(&folder, &["--tls-verify-peer"]);
    let socket = folder.text("nbd");
    let drive = format!(
        "driver=nbd,server.type=unix,server.path={socket},export=p4800x-375,tls-creds=tls0,tls-hostname=localhost"
    );
    let image = folder.text("image");
    let mut bytes: Vec<u8> = (0..8u32 << 20).map(|at| (at ^ at >> 9) as u8).collect();
    bytes.resize(64 << 20, 0);
    fs::write(&image, &bytes).expect("room");
    let of = format!("driver=raw,file.driver=file,file.filename={image}");
    let convert = ["convert", "-n", "--image-opts", "--target-image-opts"];
    let target = format!("driver=raw,file.{}", drive.replace(',', ",file."));
    qemu_img(&folder, &convert, &[&of, &target]).expect_success();
    qemu_img(&folder, &["compare", "--image-opts"], &[&of, &target]).expect_success();
    server.stop().expect_success();
}

#[test]
fn who_must_not_in_is_kept_out() {
    if !has(&["nbdinfo", "setpriv"]) {
        return;
    }
    let folder = Folder::new();
    let server = encrypted(&folder, &["--tls-verify-peer"]);
    // Without encryption.
    let plain = call("nbdinfo", &[&folder.uri("nbd", "p4800x-375")]);
    assert_ne!(plain.code, Some(0), "{}", plain.said);
    assert!(plain.said.contains("TLS"), "{}", plain.said);
    // With a certificate of another authority.
    certificates::make(&folder.path("other"));
    let other = call("nbdinfo", &[&uri(&folder, "other")]);
    assert_ne!(other.code, Some(0), "{}", other.said);
    // Without any certificate.
    for name in ["client-cert.pem", "client-key.pem"] {
        fs::remove_file(folder.path("other").join(name)).expect("it was there");
    }
    let none = call("nbdinfo", &[&uri(&folder, "other")]);
    assert_ne!(none.code, Some(0), "{}", none.said);
    server.says("TLS: ");
    server.stop().expect_success();
}
