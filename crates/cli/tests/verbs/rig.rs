//! The program as a user calls it.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;

/// Runs `drivelab` with these arguments, to its end.
pub(crate) fn drivelab(args: &[&str]) -> Output {
    drivelab_in(Path::new("."), args)
}

/// Runs `drivelab` in this folder.
pub(crate) fn drivelab_in(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(cargo_bin!("drivelab"));
    let output = command.args(args).current_dir(folder).output();
    output.expect("the binary runs")
}

/// Runs a command in a shell, in this folder, with `drivelab` in its path.
pub(crate) fn shell_in(folder: &Path, command: &str) -> Output {
    let program = cargo_bin!("drivelab");
    let bin = program.parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", bin.display());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder);
    shell.env("PATH", path).output().expect("there is a shell")
}

/// Runs `drivelab run` on a RAM disk.
pub(crate) fn run(args: &[&str]) -> Output {
    drivelab(&[&["run", "--drive", "ram-disk"], args].concat())
}

/// Returns the output as text.
pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output is UTF-8")
}

/// Reports that a test is skipped, in a way that the test harness does not capture as it does `eprintln!`.
pub(crate) fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// Checks whether this program can be called; if not, reports that, and fails if tools are required.
pub(crate) fn installed(program: &str) -> bool {
    let is_there = Command::new(program).arg("--help").output().is_ok();
    if !is_there {
        let required = std::env::var("DRIVELAB_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        assert!(!required, "{program} is required and not there");
        skipped(&format!("{program} is not installed"));
    }
    is_there
}
