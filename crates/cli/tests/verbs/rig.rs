//! The program as a user calls it.

use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;

/// `drivelab` with these arguments, to its end.
pub(crate) fn drivelab(args: &[&str]) -> Output {
    let output = Command::new(cargo_bin!("drivelab")).args(args).output();
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
