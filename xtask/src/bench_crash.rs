//! `cargo xtask bench-crash`: the speed of crash tests against their goals.
//!
//! There are three measurements. The first counts images a minute without a checker (`cargo bench`). The second counts
//! checks a minute of a SQLite database on ext4 in guests, by a program for each image and by a resident one. The third
//! is the share of its IOPS that a client keeps while it is recorded. The goals are for two idle cores. Needs `cargo xtask guest`, fio with its nbd engine, e2fsprogs, Python and `sqlite3`.

use std::path::Path;
use std::time::Instant;

use crate::bench_live::recording;
use crate::shell::{cargo, is_there, output, program, root, run, target};

/// Seconds of each measurement of checks.
const BUDGET: u32 = 60;

/// Seconds of each round of the recording.
const SECONDS: u32 = 2;

/// A checker: its option and command, and its goal in checks a minute.
const CHECKERS: [(&str, &str, f64); 2] = [
    (
        "--check",
        "test \"$(sqlite3 $DRIVELAB_DIR/orders.db 'PRAGMA integrity_check')\" = ok",
        1_000.0,
    ),
    (
        "--check-server",
        "/usr/bin/python3 check-server.py",
        5_000.0,
    ),
];

/// Builds in release mode, and runs all measurements, or those after the first if `args` says so.
pub(crate) fn command(args: &[&str]) -> Result<(), String> {
    match args {
        [] => run(&mut cargo("bench -p drivelab-crash --bench images"))?,
        ["--no-images"] => {}
        _ => return Err(format!("`{}`: there is only --no-images", args.join(" "))),
    }
    run(&mut cargo("build --release -p drivelab"))?;
    checks()?;
    match is_there("fio") {
        true => recording::measure(SECONDS),
        false => Err("fio is missing".into()),
    }
}

/// Records the SQLite program of the tutorial, and prints the checks a minute of each checker.
fn checks() -> Result<(), String> {
    let folder = target().join("bench-crash");
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    for name in ["orders.py", "check-server.py"] {
        let text = std::fs::read_to_string(root().join("docs/crashtest").join(name));
        // More orders: more images than can be checked in the time.
        let text = text
            .map_err(failed)?
            .replace("range(1, 11)", "range(1, 1001)");
        std::fs::write(folder.join(name), text).map_err(failed)?;
    }
    let log = folder.join("run.dlog");
    let _ = std::fs::remove_file(&log);
    let mut record = crashtest(&folder);
    record.arg("950pro-256").arg("--keep-log").arg(&log);
    output(record.args(["--", "/usr/bin/python3", "orders.py"]))?;
    for (option, check, goal) in CHECKERS {
        let mut command = crashtest(&folder);
        command.arg("--from").arg(&log).arg("--json");
        command.args(["--budget", &format!("{BUDGET}s"), option, check]);
        let start = Instant::now();
        let text = output(&mut command)?;
        let seconds = start.elapsed().as_secs_f64();
        let checked = checked(&text).ok_or_else(|| format!("no `checked` in `{text}`"))?;
        let minute = checked * 60.0 / seconds;
        println!(
            "{option:16} {minute:>7.0} checks a minute (goal: {goal}), {checked} in {seconds:.1} s"
        );
    }
    Ok(())
}

fn crashtest(folder: &Path) -> std::process::Command {
    let mut command = program(target().join("release/drivelab"));
    command.arg("crashtest").current_dir(folder);
    command
        .arg("--guest-kernel")
        .arg(target().join("guest/linux"));
    command
}

/// Returns the number of checked images in the JSON of a crash test.
fn checked(json: &str) -> Option<f64> {
    let line = json
        .lines()
        .find(|line| line.trim().starts_with("\"checked\":"))?;
    let number = line.split(':').nth(1)?.trim().trim_end_matches(',');
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::checked;

    #[test]
    fn the_number_of_checks_is_found() {
        assert_eq!(
            checked("{\n  \"tried\": 9,\n  \"checked\": 7,\n}"),
            Some(7.0)
        );
        assert_eq!(checked("{}"), None);
    }
}
