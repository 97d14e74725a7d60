//! The `drivelab` command: one file for each subcommand, with its arguments and a `run` that returns a [`Failure`] or
//! nothing.
//!
//! To add a subcommand: a file here, a line in `mod`, a line in [`Verb`] and one in [`run()`]. Results are written to
//! standard output through [`std::io::Write`] (so that a closed pipe ends the program quietly), progress and messages
//! to standard error.

#![warn(clippy::print_stdout)]

mod act;
mod answer;
#[cfg(test)]
mod asked;
mod bench_target;
mod check;
mod choose;
mod completions;
mod crashtest;
mod drive;
mod drives;
mod each;
mod explain;
mod failure;
mod fault;
mod fill;
mod fit;
mod fleet;
mod guests;
mod heat;
mod idle;
mod interval;
mod lab_page;
mod life;
mod load;
mod man;
mod max;
mod measure;
mod memory;
mod mix;
mod odds;
mod output;
mod profile;
mod progress;
mod prove;
mod rate;
mod refit;
mod replay;
mod reproduce;
mod review;
mod run;
mod scheduler;
mod screen;
mod seed;
mod serve;
mod setting;
mod show;
mod size;
mod sizing;
mod state;
mod stop;
mod sweep;
mod verbs;
mod zil;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use text::problem::Problems;

use failure::Failure;

/// Simulate SSDs and storage tiers in virtual time, side by side.
#[derive(Parser)]
#[command(name = "drivelab", version = version::VERSION, propagate_version = true)]
#[command(after_help = "\
Examples:
  drivelab drives                                        list of the drives, pools and hosts
  drivelab show p4800x-375                               one drive, with the source of every figure
  drivelab review p4800x-375 p3700-1600 9100max-2400     drives side by side, as review.html
  drivelab lab                                           drives, pools and jobs on one page
  drivelab run job.fio p4800x-375                        a fio job file, with fio's output
  drivelab replay vm.vscsi.xz p3700-1600                 a block trace
  drivelab act p4800x-375 p3700-1600                     Aerospike's certification test
  drivelab reproduce                                     published figures against the models
  drivelab sweep sweep.toml                              thousands of scenarios into a Parquet file
  drivelab prove 'mirror(2*950pro-256)'                  power cuts and faults on a small pool
  drivelab max p4800x-375 --slo p99=1ms                  the highest load within a limit
  drivelab choose --all --load oltp --slo 'p99<1ms'      the recommended drive for a load
  drivelab size slog --help                              the size of a log or a read cache
  drivelab life 950pro-256 --writes 20MB/s               the lifetime at a load
  drivelab explain results.json p4800x-375               the bottleneck of a fio run
  drivelab check etcd p4800x-375 950pro-256              whether drives meet etcd's minimum
  drivelab measure /dev/nvme1n1 --output measured.json   a real drive, with fio
  drivelab fit --jobs                                    how to make a model of your own drive
  drivelab serve p4800x-375 --nbd unix:p.sock --size 8G  a drive for real clients
  drivelab crashtest --from run.dlog --check ./check.sh  power cuts in what a program wrote

Exit codes: 0 done, 1 it failed, 2 bad usage or bad input, 3 a verdict failed, 130 stopped by Ctrl-C.")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Act(act::Args),
    BenchTarget(bench_target::Args),
    Check(check::Args),
    Choose(Box<choose::Args>),
    Completions(completions::Args),
    Crashtest(Box<crashtest::Args>),
    Drives(drives::Args),
    Explain(Box<explain::Args>),
    Fill(fill::Args),
    Fit(fit::Args),
    Lab(lab_page::Args),
    Life(Box<life::Args>),
    Man(man::Args),
    Max(Box<max::Args>),
    Measure(measure::Args),
    Mix(Box<mix::Args>),
    Odds(Box<odds::Args>),
    Prove(prove::Args),
    #[command(display_order = 1000)]
    Refit(refit::Args),
    Replay(replay::Args),
    Reproduce(reproduce::Args),
    Review(review::Args),
    Run(Box<run::Args>),
    Serve(serve::Args),
    Show(show::Args),
    Size(Box<sizing::Args>),
    Sweep(sweep::Args),
}

fn run(verb: &Verb) -> Result<(), Failure> {
    match verb {
        Verb::Act(args) => act::run(args),
        Verb::BenchTarget(args) => bench_target::run(args),
        Verb::Check(args) => check::run(args),
        Verb::Choose(args) => choose::run(args),
        Verb::Completions(args) => completions::run(args, Cli::command()),
        Verb::Crashtest(args) => crashtest::run(args),
        Verb::Drives(args) => drives::run(args),
        Verb::Explain(args) => explain::run(args),
        Verb::Fill(args) => fill::run(args),
        Verb::Fit(args) => fit::run(args),
        Verb::Lab(args) => lab_page::run(args),
        Verb::Life(args) => life::run(args),
        Verb::Man(args) => man::run(args, Cli::command()),
        Verb::Max(args) => max::run(args),
        Verb::Measure(args) => measure::run(args),
        Verb::Mix(args) => mix::run(args),
        Verb::Odds(args) => odds::run(args),
        Verb::Prove(args) => prove::run(args),
        Verb::Refit(args) => refit::run(args),
        Verb::Replay(args) => replay::run(args),
        Verb::Reproduce(args) => reproduce::run(args),
        Verb::Review(args) => review::run(args),
        Verb::Run(args) => run::run(args),
        Verb::Serve(args) => serve::run(args),
        Verb::Show(args) => show::run(args),
        Verb::Size(args) => sizing::run(args),
        Verb::Sweep(args) => sweep::run(args),
    }
}

fn main() -> ExitCode {
    if crashtest::first_process() {
        return ExitCode::SUCCESS;
    }
    let arguments = run::separate(std::env::args_os());
    let asked: Vec<&str> = arguments
        .iter()
        .skip(1)
        .map_while(|it| it.to_str())
        .collect();
    let command = Cli::command();
    let problem = verbs::unknown(&command, &asked).or_else(|| heat::without_heat(&command, &asked));
    if let Some(problem) = problem {
        return Failure::BadInput(Problems(vec![problem])).report();
    }
    let matches = verbs::grouped(command).get_matches_from(arguments);
    let parsed = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match run(&parsed.verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
