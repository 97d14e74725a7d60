//! `cargo xtask fuzz`: libFuzzer over all code that reads bytes from outside.
//!
//! The targets are in `fuzz/`, in the layout of cargo-fuzz, but cargo-fuzz is not required: it only adds the compiler
//! flags below to `cargo build`, and all of them are stable. (With a nightly compiler, `cargo fuzz run` adds the
//! address sanitizer; there is almost no unsafe code here for it to check.)

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use crate::shell::{cargo, output, program, root, run, run_apart};

/// Counters on every edge, a table of their places, and the operands of comparisons: the inputs of libFuzzer.
const FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
];

/// Returns the names of the targets, in order.
fn targets() -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/fuzz_targets");
    let failed = |error| format!("{}: {error}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "rs")
            && let Some(stem) = path.file_stem()
        {
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Returns the seeds of a target: its own folder, or that of the first word of its name (`trace` for `trace_named`).
fn seeds(target: &str) -> Option<PathBuf> {
    let family = target.split('_').next().unwrap_or(target);
    let folders = [target, family].map(|name| root().join("fuzz/seeds").join(name));
    folders.into_iter().find(|folder| folder.is_dir())
}

/// Returns the compiler's name of this machine. Naming it keeps the flags off build scripts, which are not linked with
/// libFuzzer.
fn host() -> Result<String, String> {
    let verbose = output(program("rustc").arg("-vV"))?;
    let host = verbose.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| String::from("`rustc -vV` names no host"))
}

/// Builds the targets and runs each chosen one (all, if none is named) for this number of seconds. Findings are stored
/// in `fuzz/artifacts/`, new inputs in `fuzz/corpus/`. With a seed, a target begins with the same inputs each time if
/// its corpus is unchanged, so a run that passed once passes again.
pub(crate) fn fuzz(chosen: &[&str], seconds: u32, seed: Option<u32>) -> Result<(), String> {
    let all = targets()?;
    if let Some(unknown) = chosen
        .iter()
        .find(|&&name| all.iter().all(|one| one != name))
    {
        return Err(format!(
            "there is no fuzz target `{unknown}`; there are {}",
            all.join(", ")
        ));
    }
    let host = host()?;
    run(
        cargo("build --release --manifest-path fuzz/Cargo.toml --target")
            .arg(&host)
            .args(["--target-dir", "fuzz/target"])
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env("RUSTFLAGS", FLAGS.join(" "))
            // No target needs the engine of pages that simulate, which takes a minute to build.
            .env("DRIVELAB_PAGE_ENGINE", "0"),
    )?;
    let mut commands = Vec::new();
    for target in &all {
        if !chosen.is_empty() && !chosen.contains(&target.as_str()) {
            continue;
        }
        let corpus = root().join("fuzz/corpus").join(target);
        let artifacts = root().join("fuzz/artifacts").join(target);
        for folder in [&corpus, &artifacts] {
            fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let binary = root()
            .join("fuzz/target")
            .join(&host)
            .join("release")
            .join(target);
        let mut command = program(binary);
        // For libFuzzer, 0 means a seed of its own choice.
        command
            .arg(format!("-seed={}", seed.unwrap_or(0)))
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .args([
                "-timeout=30",
                "-rss_limit_mb=2048",
                "-print_final_stats=1",
                "-verbosity=0",
            ])
            .arg(&corpus)
            .args(seeds(target));
        commands.push(command);
    }
    let found = match &mut *commands {
        [one] => Vec::from_iter(run(one).err()),
        _ => run_all(commands),
    };
    if found.is_empty() {
        Ok(())
    } else {
        Err(found.join("; "))
    }
}

/// Runs as many commands at a time as there are processors, each with its output in one piece, and returns the errors.
fn run_all(commands: Vec<Command>) -> Vec<String> {
    let (left, found) = (Mutex::new(commands.into_iter()), Mutex::new(Vec::new()));
    let next = || left.lock().ok()?.next();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(mut command) = next() {
                    if let (Err(error), Ok(mut found)) = (run_apart(&mut command), found.lock()) {
                        found.push(error);
                    }
                }
            });
        }
    });
    found.into_inner().unwrap_or_default()
}

/// `cargo xtask fuzz [TARGET]... [--seconds N] [--seed N]`.
pub(crate) fn command(args: &[&str]) -> Result<(), String> {
    let mut chosen = Vec::new();
    let mut seconds = 60;
    let mut seed = None;
    let mut args = args.iter();
    while let Some(&arg) = args.next() {
        let mut number = || {
            let number = args.next().and_then(|text| text.parse().ok());
            number.ok_or(format!("{arg} needs a whole number"))
        };
        match arg {
            "--seconds" => seconds = number()?,
            "--seed" => seed = Some(number()?),
            target => chosen.push(target),
        }
    }
    fuzz(&chosen, seconds, seed)
}
