//! `cargo xtask static` and the step `portable`: a binary without shared libraries, which runs on any Linux of its
//! processor, and the Python package's code for 64-bit ARM.
//!
//! The binary is linked with musl; liblzma and ring are C code that musl's compiler builds. It must print the same
//! output as the other builds. The step compiles it without optimisation, in a third of the time. Linking and the C
//! code are what can fail, and a run with equal output without optimisation is stronger evidence than one with it. For
//! ARM nothing is linked or run: the step checks that everything compiles, including C.

use std::path::{Path, PathBuf};

use crate::shell::{cargo, is_there, output, program, run, target};
use crate::tools::{self, Tool};

const STATIC: &str = "x86_64-unknown-linux-musl";
const ARM: &str = "aarch64-unknown-linux-gnu";

/// Tools that both need besides cargo.
pub(crate) const NEEDS: &[&Tool] = &[
    &tools::CC,
    &tools::MUSL,
    &tools::ARM,
    &tools::ARM_LIBC,
    &tools::READELF,
];

/// Options with which the step compiles: build scripts and macros are those of the tests.
const UNOPTIMISED: &[&str] = &[
    "profile.dev.opt-level=0",
    "profile.dev.debug=false",
    "profile.dev.package.'*'.opt-level=0",
];

/// A short job, whose whole output is compared.
const SAMPLE: &str = "run --drive p4800x-375 --name=sample --ioengine=libaio --direct=1 --rw=randrw --bs=4k --iodepth=16 --number_ios=20000 \
     --output-format=json";

/// `cargo xtask static`: builds the binary and prints its path.
pub(crate) fn command() -> Result<(), String> {
    println!("{}", make("static", &[])?.display());
    Ok(())
}

/// The step: builds the binary, checks that it is static and prints the same as the debug build, and compiles the
/// Python package for ARM.
pub(crate) fn test(install: bool) -> Result<(), String> {
    if install {
        add_targets()?;
    }
    let made = make("dev", UNOPTIMISED)?;
    compare(&made)?;
    run(cargo("check --locked --package drivelab-python --target")
        .arg(ARM)
        .env("CC_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-gcc")
        .env("DRIVELAB_PAGE_ENGINE", "0"))
}

fn add_targets() -> Result<(), String> {
    if !is_there("rustup") {
        return Err(format!("rustup is not there to add {STATIC} and {ARM}"));
    }
    run(program("rustup").args(["target", "add", STATIC, ARM]))
}

fn make(profile: &str, settings: &[&str]) -> Result<PathBuf, String> {
    let mut build = cargo("build --locked --package drivelab --profile");
    build.args([profile, "--target", STATIC]);
    for setting in settings {
        build.args(["--config", setting]);
    }
    run(build.env("CC_x86_64_unknown_linux_musl", "musl-gcc"))?;
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(target().join(STATIC).join(folder).join("drivelab"))
}

/// Checks that it needs no loader of shared libraries, and that it prints the same as the debug build.
fn compare(made: &Path) -> Result<(), String> {
    let headers = output(program("readelf").arg("--program-headers").arg(made))?;
    if headers.contains("INTERP") {
        return Err(format!("{} is not static", made.display()));
    }
    let said = output(program(made).env_clear().args(SAMPLE.split_whitespace()))?;
    if !said.contains("\"jobname\"") {
        return Err(format!("{} printed no result", made.display()));
    }
    let debug = target().join("debug/drivelab");
    if !debug.is_file() {
        println!("SKIPPED: {} is not there to compare with", debug.display());
        return Ok(());
    }
    match output(program(&debug).args(SAMPLE.split_whitespace()))? == said {
        true => Ok(()),
        false => Err(format!(
            "{} and {} print different results of `drivelab {SAMPLE}`",
            made.display(),
            debug.display()
        )),
    }
}
