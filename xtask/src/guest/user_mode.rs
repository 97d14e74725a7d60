//! User-mode Linux: a kernel that runs as a program. It boots in a fraction of a second and has one processor.

use std::path::Path;
use std::thread::available_parallelism;

use super::{copy, create, is_made, made, remove, unpack, write};
use crate::shell::{program, root, run};

/// Debian's source package, and the name of the archive in it.
const SOURCE: &str = "linux-source-6.12";

/// Parts of the source that this configuration does not use; they are most of it.
const LEFT_OUT: &[&str] = &[
    "*/arch/*/boot/dts",
    "*/drivers/gpu/drm/*/include",
    "*/tools/testing",
];

/// A change of the source: file, line, and its replacement.
///
/// 6.12 reserves 2,696 bytes for a process's vector registers, including AVX-512. A host with AMX has 11,008 and
/// refuses to accept fewer (`PTRACE_SETREGSET`, EFAULT), and the guest's first program ends with SIGSEGV. Linux 6.13
/// asks the host for the size. One of these areas is on the kernel's stack, hence `CONFIG_KERNEL_STACK_ORDER`.
const CHANGED: (&str, &str, &str) = (
    "arch/x86/um/user-offsets.c",
    "DEFINE_LONGS(HOST_FP_SIZE, 2696);",
    "DEFINE_LONGS(HOST_FP_SIZE, 12288);",
);

/// Builds `folder/linux`, which takes 4 to 9 minutes on two processors.
pub(super) fn make(folder: &Path) -> Result<(), String> {
    let config = root().join("xtask/guest/kernel.config");
    let wanted = read(&config)?;
    let linux = folder.join("linux");
    let (file, line, becomes) = CHANGED;
    let from = format!("{SOURCE}\n{file}: {becomes}\n{wanted}");
    if is_made(&linux, &from) {
        return Ok(());
    }
    let (unpacked, source, build) = (
        folder.join("unpacked"),
        folder.join("source"),
        folder.join("build"),
    );
    unpack(SOURCE, &unpacked)?;
    remove(&source)?;
    create(&source)?;
    run(program("tar")
        .args(["--extract", "--strip-components=1", "--directory"])
        .arg(&source)
        .args(LEFT_OUT.iter().map(|path| format!("--exclude={path}")))
        .arg("--file")
        .arg(unpacked.join(format!("usr/src/{SOURCE}.tar.xz"))))?;
    remove(&unpacked)?;
    let text = read(&source.join(file))?;
    if !text.contains(line) {
        return Err(format!("{SOURCE}: {file} has no line `{line}` to change"));
    }
    write(&source.join(file), text.replace(line, becomes))?;
    remove(&build)?;
    create(&build)?;
    let kbuild = || {
        let mut make = program("make");
        make.args(["--silent", "ARCH=um", "-C"]).arg(&source);
        make.arg(format!("O={}", build.display()));
        make
    };
    run(kbuild()
        .arg(format!("KCONFIG_ALLCONFIG={}", config.display()))
        .arg("allnoconfig"))?;
    check(&wanted, &read(&build.join(".config"))?)?;
    let jobs = available_parallelism().map_or(1, std::num::NonZero::get);
    run(kbuild().arg(format!("-j{jobs}")).arg("linux"))?;
    run(program("strip").arg("-g").arg(build.join("linux")))?;
    copy(&build.join("linux"), &linux)?;
    made(&linux, &from)?;
    remove(&source)?;
    remove(&build)
}

/// Checks that every requested line is in kconfig's result: kconfig silently drops options with missing dependencies.
fn check(wanted: &str, config: &str) -> Result<(), String> {
    let lines = || wanted.lines().filter(|line| line.starts_with("CONFIG_"));
    let dropped: Vec<&str> = lines()
        .filter(|line| config.lines().all(|other| other != *line))
        .collect();
    if dropped.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "xtask/guest/kernel.config: this kernel does not take {}",
            dropped.join(", ")
        ))
    }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
