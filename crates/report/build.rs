//! Builds the engine of pages that simulate: `crates/page-engine` for wasm32-unknown-unknown, compressed by gzip.
//!
//! It takes most of a minute, so only release builds include it; `DRIVELAB_PAGE_ENGINE=1` requests it in any build,
//! `0` omits it. If the compiler lacks this target, the build continues without the engine and reports that, unless
//! the engine was requested. Pages without the engine are complete except for the chapter that simulates
//! (docs/decisions/0076-pages-that-simulate.md).

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::{Compression, GzBuilder};

const TARGET: &str = "wasm32-unknown-unknown";
const SWITCH: &str = "DRIVELAB_PAGE_ENGINE";
/// Sources of the engine, relative to the project's folder.
const SOURCES: [&str; 12] = [
    "Cargo.toml",
    "Cargo.lock",
    "catalogue",
    "pools",
    "crates/model",
    "crates/tier",
    "crates/text",
    "crates/statistics",
    "crates/catalogue",
    "crates/workload",
    "crates/lab",
    "crates/page-engine",
];

fn main() {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../..");
    let out = PathBuf::from(variable("OUT_DIR"));
    println!("cargo:rerun-if-env-changed={SWITCH}");
    println!("cargo:rerun-if-changed=build.rs");
    let switch = env::var(SWITCH).unwrap_or_default();
    let wanted = match switch.as_str() {
        "" => variable("PROFILE") == "release",
        "0" => false,
        "1" => true,
        other => panic!("{SWITCH}={other}: neither 0 nor 1"),
    };
    let mut engine = Vec::new();
    if wanted {
        watch_targets();
        for source in SOURCES {
            println!("cargo:rerun-if-changed={}", root.join(source).display());
        }
        match make(&root, &out) {
            Ok(made) => engine = made,
            Err(why) if switch == "1" => panic!("{why}"),
            Err(why) => println!("cargo:warning=pages cannot simulate: {why}"),
        }
    }
    fs::write(out.join("page-engine.wasm.gz"), engine).expect("OUT_DIR is there to be written");
}

fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"))
}

/// Returns the compressed engine.
fn make(root: &Path, out: &Path) -> Result<Vec<u8>, String> {
    if !has_target() {
        return Err(format!(
            "the compiler has no {TARGET}; `rustup target add {TARGET}` brings it"
        ));
    }
    // A separate folder: the current one is locked by the running build. All profiles share it (`out` is
    // TARGET/PROFILE/build/PACKAGE/out), because the engine is the same in each.
    let folder = out.ancestors().nth(4).unwrap_or(out).join("page-engine");
    let made = Command::new(variable("CARGO"))
        .args(["rustc", "--locked", "--quiet", "--lib"])
        .args(["--package", "drivelab-page-engine"])
        .args(["--crate-type", "cdylib", "--target", TARGET])
        .args(["--profile", "page", "--target-dir"])
        .arg(&folder)
        .current_dir(root)
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_BUILD_TARGET")
        .env("CARGO_ENCODED_RUSTFLAGS", without_paths(root))
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr);
        return Err(said.trim().replace('\n', "; "));
    }
    let file = folder.join(TARGET).join("page/page_engine.wasm");
    let bytes = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut packed = GzBuilder::new().write(Vec::new(), Compression::best());
    packed
        .write_all(&bytes)
        .and_then(|()| packed.finish())
        .map_err(|error| error.to_string())
}

/// Returns the folder of the target's libraries, whether or not the target is installed.
fn libraries() -> Option<PathBuf> {
    let printed = Command::new(variable("RUSTC"))
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .ok()?;
    let folder = String::from_utf8_lossy(&printed.stdout);
    Some(PathBuf::from(folder.trim()))
}

fn has_target() -> bool {
    libraries()
        .is_some_and(|folder| fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some()))
}

/// Makes cargo run this script again when a target is added or removed. Otherwise a build from before the target's
/// installation would keep its pages without an engine.
fn watch_targets() {
    // .../lib/rustlib/TARGET/lib: the folder of all targets exists even if this target does not.
    let targets = libraries().and_then(|folder| folder.ancestors().nth(2).map(PathBuf::from));
    if let Some(folder) = targets.filter(|it| it.is_dir()) {
        println!("cargo:rerun-if-changed={}", folder.display());
    }
}

/// Returns flags that keep this machine's folder names out of the page.
fn without_paths(root: &Path) -> OsString {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let mut flags = OsString::new();
    for (folder, name) in [(Some(root), "drivelab"), (home, "cargo")] {
        let Some(folder) = folder else { continue };
        if !flags.is_empty() {
            flags.push("\x1f");
        }
        flags.push("--remap-path-prefix=");
        flags.push(folder);
        flags.push("=");
        flags.push(name);
    }
    flags
}
