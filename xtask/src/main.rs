//! Tasks for drivelab's developers: `cargo xtask test` installs what the tests need and runs everything that CI runs.

mod bench_crash;
mod bench_live;
mod fuzz;
mod guest;
mod interop;
mod portable;
mod python;
mod shell;
mod soak;
mod stores;
mod test;
mod tools;
mod vendor;
mod wasm;

use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask <TASK>

Tasks:
  test [STEP]... [--no-install]   install what the tests need, then run every step (or only those named)
  test quick                      formatting, lints, unit tests: under two minutes when built; installs nothing
  test nightly                    what takes long: prove at more points, the soak, stores, all answers, long fuzzing, the static binary
  steps                           list the steps of `test`
  vendor                          copy uPlot from npm into the page's sources, with its licence
  guest                           build the Linux that the tests of live drives boot, into target/guest
  interop                         fetch libnbd's own checks, which the tests of live drives run, into target/interop
  static                          a binary without shared libraries, in target/x86_64-unknown-linux-musl/static
  bench-live [--seconds N]        a served drive beside nbdkit and qemu-nbd, NBD and NVMe/TCP: IOPS and p99; each
                                  measurement takes N seconds, or 4
  bench-crash [--no-images]       crash tests: images and checks a minute, and the cost of a recording, with their goals
  soak [OPTION]...                pools served to PostgreSQL, SQLite and fio, ended by kill, power cuts, deaths of members and
                                  SIGTERM, and checked after each restart; `cargo xtask soak --help`
  stores [OPTION]... [STORE]...   crash tests of known stores, with what each must show; `cargo xtask stores --help`
  fuzz [TARGET]... [--seconds N] [--seed N]
                                  fuzz every target (or those named) for a minute (or N seconds) each

Examples:
  cargo xtask test                    everything that CI runs
  cargo xtask test quick              between two edits
  cargo xtask test fmt clippy         two steps
  cargo xtask test --no-install       install nothing; steps that lack a tool are skipped, and said so
  cargo xtask fuzz trace_named --seconds 600";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["test", ref rest @ ..] => test::run(rest),
        ["steps"] => test::list(),
        ["fuzz", ref rest @ ..] => ended(fuzz::command(rest)),
        ["soak", "-h" | "--help"] => {
            println!("{}", soak::USAGE);
            ExitCode::SUCCESS
        }
        ["stores", "-h" | "--help"] => {
            println!("{}", stores::USAGE);
            ExitCode::SUCCESS
        }
        ["stores", ref rest @ ..] => ended(stores::command(rest)),
        ["soak", ref rest @ ..] => ended(soak::command(rest)),
        ["bench-live", ref rest @ ..] => ended(bench_live::command(rest)),
        ["bench-crash", ref rest @ ..] => ended(bench_crash::command(rest)),
        ["vendor"] => ended(vendor::run()),
        ["static"] => ended(portable::command()),
        ["guest"] => ended(guest::command()),
        ["interop"] => ended(interop::command()),
        ["-h" | "--help" | "help"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn ended(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
