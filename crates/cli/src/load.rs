//! A load as an argument of the deciding subcommands: a job file, a trace, or a name.

use std::path::PathBuf;

use catalogue::HostSheet;
use lab::Start;
use model::Span;
use model::media::Precondition;
use study::decide::named;
use study::decide::work::{Conditions, Load};
use text::problem::Problems;
use text::quantity::quantity;

use crate::failure::on_command_line;
use crate::limit::collect_problems;
use crate::review::{job_file, trace_file};
use crate::seed::SeedArg;
use crate::state::Begin;

/// IOPS of one user in an example.
const OF_ONE: u64 = 30;

/// A load and its conditions.
#[derive(clap::Args)]
pub(crate) struct LoadArgs {
    /// A fio job file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["trace", "load"])]
    pub(crate) job: Option<PathBuf>,

    /// A block trace, replayed as recorded, repeatedly
    #[arg(long, value_name = "FILE", conflicts_with = "load")]
    pub(crate) trace: Option<PathBuf>,

    /// Named load (print its fio job with --print-load)
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(named::names()))]
    pub(crate) load: Option<String>,

    /// Print the job file of this load and exit
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(named::names()))]
    pub(crate) print_load: Option<String>,

    /// Number of users of a named load that defines the load of one user (--print-load): their I/Os arrive at random
    /// (open loop). A user of kvcache takes a turn of a chat every 30 s, a user of vector-search makes one query per
    /// second, and a user of training-files or training-shards is an accelerator
    #[arg(long, value_name = "N", requires = "load", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) users: Option<u32>,

    /// Maximum measured time per job; up to 20 times as long if a run completes few I/Os. Only named loads may run
    /// longer than their job file specifies. With a given rate, every job runs until enough I/Os arrive, which may take
    /// hours of virtual time. Traces run completely [default: 500ms; 15s for pools with an intent log, which is three
    /// transaction groups]
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>)]
    pub(crate) runtime: Option<Span>,

    /// Host of the drives: a name or the path of a TOML file
    #[arg(long, default_value = catalogue::TYPICAL_HOST)]
    pub(crate) host: String,

    /// Initial state of the drives
    #[arg(long, value_enum, default_value_t = Begin::Auto)]
    pub(crate) state: Begin,

    #[command(flatten)]
    pub(crate) seed: SeedArg,

    /// Number of seeds, starting at --seed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub(crate) seeds: u32,
}

impl LoadArgs {
    /// Returns the maximum counted time of a job.
    pub(crate) fn at_most(&self, usual: Span) -> Span {
        self.runtime.unwrap_or(usual)
    }

    /// Returns the requested load, if any, with the counted time `usual` unless the user sets another one, and the
    /// conditions; problems are added to the others.
    pub(crate) fn read(&self, usual: Span, problems: &mut Problems) -> (Option<Load>, Conditions) {
        let most = self.at_most(usual);
        let host = collect_problems(catalogue::host(&self.host), problems).unwrap_or_default();
        if most < Span::from_ms(1) {
            let what = "--runtime: too short to measure anything";
            problems.0.push(on_command_line(
                what,
                "at least a millisecond, such as 500ms",
            ));
        }
        if let (Some(users), None) = (self.users, &self.load) {
            let what =
                "--users: a profile, a job file or a trace does not define the load of one user";
            let with = named::with_users().join(", ");
            let help = format!(
                "give the total rate: --rate {} if each of {users} users (or virtual machines) makes {OF_ONE} IOPS, where \
                 the subcommand has --rate; with --load, {with} define users",
                u64::from(users) * OF_ONE
            );
            problems.0.push(on_command_line(what, help));
        }
        let load = self.of_file(&host, usual, problems);
        let load = load.and_then(|load| self.of_users(load, problems));
        let load = load.map(|load| load.at_most(most));
        let conditions = Conditions {
            host,
            // Preliminary, until the load is known.
            state: Start::from(self.state).before(false),
            seed: self.seed.seed,
            seeds: self.seeds,
        };
        (load, conditions)
    }

    /// Returns the state before this load, and prints it.
    pub(crate) fn state_before(&self, load: &Load) -> Precondition {
        self.state.answered(|start| load.begins(start))
    }

    /// Returns a named load with its own length, or a longer one if the user or the drives require it.
    pub(crate) fn lengthen(&self, load: Load, usual: Span) -> Load {
        load.counted_longer(self.at_most(usual))
    }

    /// Returns the load at the rate of its users, if the user gives their number.
    fn of_users(&self, load: Load, problems: &mut Problems) -> Option<Load> {
        let (Some(users), Some(name)) = (self.users, &self.load) else {
            return Some(load);
        };
        match named::rate_of_users(name, f64::from(users)) {
            Ok(rate) => collect_problems(load.at_rate(rate), problems),
            Err(what) => {
                let help = "leave --users out, or give --rate where the subcommand has it";
                problems
                    .0
                    .push(on_command_line(format!("--users: {what}"), help));
                None
            }
        }
    }

    fn of_file(&self, host: &HostSheet, usual: Span, problems: &mut Problems) -> Option<Load> {
        if let Some(path) = &self.job {
            let cores = u32::from(host.config.cores);
            return collect_problems(job_file(path, cores), problems).map(Load::new);
        }
        if let Some(path) = &self.trace {
            return collect_problems(trace_file(path), problems).map(Load::new);
        }
        let name = self.load.as_deref()?;
        collect_problems(named::load(name)?, problems).map(|load| self.lengthen(load, usual))
    }
}
