//! The `drivelab` command: one file a verb, each with its arguments and a `run` that returns a [`Failure`] or nothing.
//!
//! To add a verb: a file here, a line in `mod`, a line in [`Verb`] and one in [`run()`].
//! Results go to standard output through [`std::io::Write`] (so that a closed pipe ends the program quietly), progress
//! and messages to standard error.

#![warn(clippy::print_stdout)]

mod act;
mod bench_target;
mod drive;
mod drives;
mod failure;
mod fit;
mod output;
mod progress;
mod refit;
mod replay;
mod reproduce;
mod review;
mod run;
mod seed;
mod serve;
mod setting;
mod show;
mod size;
mod state;
mod stop;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;

/// Simulate SSDs and storage tiers in virtual time, side by side.
#[derive(Parser)]
#[command(name = "drivelab", version, propagate_version = true)]
#[command(after_help = "\
Examples:
  drivelab drives                                        the drives there are
  drivelab show p4800x-375                               one drive, with the source of every figure
  drivelab review p4800x-375 p3700-1600 9100max-2400     drives side by side, as review.html
  drivelab run job.fio p4800x-375                        a fio job file, with fio's output
  drivelab replay vm.vscsi.xz p3700-1600                 a block trace
  drivelab act p4800x-375 p3700-1600                     Aerospike's certification test
  drivelab reproduce                                     published figures against the models
  drivelab fit --jobs                                    how to make a model of your own drive
  drivelab serve p4800x-375 --nbd unix:p.sock --size 8G  a drive for real clients

Exit codes: 0 done, 1 it failed, 2 bad usage or bad input, 3 a verdict failed, 130 stopped by Ctrl-C.")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Act(act::Args),
    BenchTarget(bench_target::Args),
    Drives(drives::Args),
    Fit(fit::Args),
    #[command(display_order = 1000)]
    Refit(refit::Args),
    Replay(replay::Args),
    Reproduce(reproduce::Args),
    Review(review::Args),
    Run(Box<run::Args>),
    Serve(serve::Args),
    Show(show::Args),
}

fn run(verb: &Verb) -> Result<(), Failure> {
    match verb {
        Verb::Act(args) => act::run(args),
        Verb::BenchTarget(args) => bench_target::run(args),
        Verb::Drives(args) => drives::run(args),
        Verb::Fit(args) => fit::run(args),
        Verb::Refit(args) => refit::run(args),
        Verb::Replay(args) => replay::run(args),
        Verb::Reproduce(args) => reproduce::run(args),
        Verb::Review(args) => review::run(args),
        Verb::Run(args) => run::run(args),
        Verb::Serve(args) => serve::run(args),
        Verb::Show(args) => show::run(args),
    }
}

fn main() -> ExitCode {
    match run(&Cli::parse_from(run::separate(std::env::args_os())).verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
