//! Checks that the engine of pages that simulate (model, catalogue, workload, lab) compiles for
//! wasm32-unknown-unknown, without files, threads and compression, in one of two ways:
//!
//! 1. With the target of the current toolchain, if it is installed or rustup can add it.
//! 2. Otherwise with Debian's `rustc-web` and the source of its standard library, unpacked under `target/` (nothing is
//!    installed): cargo checks the standard library for the target too, which takes half a minute.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::shell::{cargo, is_there, output, program, run, target};

const TARGET: &str = "wasm32-unknown-unknown";
/// The engine of pages: the lab and its dependencies, without files, threads and compression.
const ENGINE: &str = "--package drivelab-page-engine --lib --target wasm32-unknown-unknown";

/// Checks whether the compiler has the target, or can get it: then the page's engine can be built.
pub(crate) fn is_there_or_comes(install: bool) -> Result<bool, String> {
    Ok(has_target()? || (install && rustup_adds_target()))
}

pub(crate) fn check(install: bool) -> Result<(), String> {
    if is_there_or_comes(install)? {
        return run(&mut cargo(&format!("check {ENGINE}")));
    }
    let rustc = debian_rustc(install)?;
    run(cargo(&format!("check {ENGINE}"))
        .args(["-Zbuild-std=std,panic_abort", "--target-dir"])
        .arg(target().join("wasm"))
        .env("RUSTC", rustc)
        // Building the standard library requires a nightly toolchain; this setting enables it on a stable one.
        .env("RUSTC_BOOTSTRAP", "1"))
}

fn rustc() -> std::ffi::OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

fn has_target() -> Result<bool, String> {
    let folder = output(program(rustc()).args(["--print", "target-libdir", "--target", TARGET]))?;
    let files = fs::read_dir(folder.trim());
    Ok(files.is_ok_and(|mut files| files.next().is_some()))
}

fn rustup_adds_target() -> bool {
    is_there("rustup")
        && match run(program("rustup").args(["target", "add", TARGET])) {
            Ok(()) => true,
            Err(error) => {
                println!("{error}; trying Debian's compiler");
                false
            }
        }
}

/// Returns a script that calls Debian's compiler, downloaded if needed.
fn debian_rustc(install: bool) -> Result<PathBuf, String> {
    let folder = target().join("rustc-web");
    let script = folder.join("rustc");
    if script.is_file() {
        return Ok(script);
    }
    if !install {
        return Err(format!(
            "{TARGET} is not installed: `rustup target add {TARGET}`"
        ));
    }
    if !is_there("apt-get") || !is_there("dpkg-deb") {
        return Err(format!(
            "rustup cannot add {TARGET}, and this is not Debian, whose rustc-web could take its place"
        ));
    }
    fetch(&folder)?;
    let root = folder.join("root");
    let text = format!(
        "#!/bin/sh\nLD_LIBRARY_PATH='{0}/usr/lib/x86_64-linux-gnu' exec '{0}/usr/bin/rustc' \"$@\"\n",
        root.display()
    );
    let failed = |error| format!("{}: {error}", script.display());
    fs::write(&script, text).map_err(failed)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    Ok(script)
}

/// Downloads the packages and unpacks them into `folder/root`.
fn fetch(folder: &Path) -> Result<(), String> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let depends = output(program("apt-cache").args([
        "depends",
        "--recurse",
        "--no-suggests",
        "--no-recommends",
        "--no-conflicts",
        "--no-breaks",
        "--no-replaces",
        "--no-enhances",
        "rustc-web",
    ]))?;
    // The compiler's libraries have versions in their names.
    let mut packages: Vec<&str> = depends
        .lines()
        .filter(|line| !line.starts_with([' ', '<']))
        .filter(|name| name.starts_with("libllvm") || name.starts_with("libstd-rust-web"))
        .collect();
    packages.extend(["rustc-web", "rust-web-src"]);
    run(program("apt-get")
        .arg("download")
        .args(&packages)
        .current_dir(folder))?;
    let files = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for file in files.flatten() {
        if file
            .path()
            .extension()
            .is_some_and(|extension| extension == "deb")
        {
            run(program("dpkg-deb")
                .arg("-x")
                .arg(file.path())
                .arg(folder.join("root")))?;
            let _ = fs::remove_file(file.path());
        }
    }
    Ok(())
}
