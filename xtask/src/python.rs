//! `cargo xtask test python`: the wheel, built and installed as a user would, and its tests and notebooks.

use std::path::PathBuf;

use crate::guest::{create, files, remove};
use crate::shell::{program, root, run, target};

/// Packages that build the wheel, and packages that its tests need.
const PACKAGES: &[&str] = &[
    "maturin>=1.9,<2",
    "pytest",
    "mypy>=1.18,<2",
    "pandas",
    "polars",
    "pyarrow",
    "matplotlib",
    "nbclient",
    "distributed",
    "joblib",
    "ipykernel",
];

/// Builds the wheel into `target/wheels` and runs its tests with it in a separate environment.
pub(crate) fn test(install: bool) -> Result<(), String> {
    let environment = target().join("python");
    let python = environment.join("bin/python");
    if install {
        if !python.is_file() {
            run(program("python3").args(["-m", "venv"]).arg(&environment))?;
        }
        run(program(&python)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ])
            .args(PACKAGES))?;
    } else if !python.is_file() {
        println!("SKIPPED: {} is not there", environment.display());
        return Ok(());
    }
    let wheel = wheel(&environment)?;
    run(program(&python)
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ])
        .args(["--force-reinstall", "--no-deps"])
        .arg(wheel))?;
    let crate_folder = root().join("crates/python");
    let mut tests = program(&python);
    tests
        .args(["-m", "pytest", "-q", "tests", "-p", "no:cacheprovider"])
        // The notebooks' kernels are found next to this Python.
        .env("PATH", with_first(&environment.join("bin"))?)
        .current_dir(crate_folder);
    let drivelab = target().join("debug/drivelab");
    if drivelab.is_file() {
        tests.env("DRIVELAB", drivelab);
    }
    run(&mut tests)
}

/// Builds the wheel and returns its path.
fn wheel(environment: &std::path::Path) -> Result<PathBuf, String> {
    let wheels = target().join("wheels");
    remove(&wheels)?;
    create(&wheels)?;
    run(program(environment.join("bin/maturin"))
        .args([
            "build",
            "--quiet",
            "--locked",
            "--profile",
            "wheel",
            "--out",
        ])
        .arg(&wheels)
        .arg("--manifest-path")
        .arg(root().join("crates/python/Cargo.toml"))
        .env("CARGO_TARGET_DIR", target()))?;
    let mut made = files(&wheels)?;
    match made.len() {
        1 => Ok(made.remove(0)),
        count => Err(format!("{count} wheels in {}", wheels.display())),
    }
}

fn with_first(folder: &std::path::Path) -> Result<std::ffi::OsString, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [folder.to_owned()]
        .into_iter()
        .chain(std::env::split_paths(&path));
    std::env::join_paths(folders).map_err(|error| format!("PATH: {error}"))
}
