//! The program as a user calls it.

use std::path::Path;
use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;

/// `drivelab` with these arguments, to its end.
pub(crate) fn drivelab(args: &[&str]) -> Output {
    drivelab_in(Path::new("."), args)
}

/// The same, called in this folder.
pub(crate) fn drivelab_in(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(cargo_bin!("drivelab"));
    let output = command.args(args).current_dir(folder).output();
    output.expect("the binary runs")
}

/// `drivelab run` on a RAM disk.
pub(crate) fn run(args: &[&str]) -> Output {
    drivelab(&[&["run", "--drive", "ram-disk"], args].concat())
}

/// What was printed.
pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output is UTF-8")
}
