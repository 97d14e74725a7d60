//! Does the program survive power cuts? `drivelab` must be in the path; the test starts it as a process.

use std::process::Command;

/// Runs a crash test of the program; returns the output.
fn crashtest(drive: &str, variables: &[(&str, &str)]) -> Result<String, String> {
    let program = env!("CARGO_BIN_EXE_orders");
    let output = Command::new("drivelab")
        .args(["crashtest", drive, "--images", "60", "--budget", "120s", "--limit", "60s"])
        .args(["--check", &format!("'{program}' check"), "--", program])
        .envs(variables.iter().copied())
        .output()
        .expect("drivelab is in the path");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    match output.status.code() {
        Some(0) => Ok(said),
        // The text names the smallest failure, the files that were lost, and the command that repeats it.
        Some(3) => Err(said),
        _ => panic!("{said}"),
    }
}

#[test]
fn orders_survive_power_cuts() {
    for drive in ["950pro-256", "pm9a3-960"] {
        if let Err(said) = crashtest(drive, &[]) {
            panic!("{said}");
        }
    }
}

/// Without `sync_all`, the test must fail: it can find a loss.
#[test]
fn the_test_finds_a_missing_sync() {
    let said = crashtest("950pro-256", &[("ORDERS_CARELESS", "1")]).expect_err("a loss");
    assert!(said.contains("FAILED     lost "), "{said}");
}
