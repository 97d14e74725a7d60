//! A load as an argument of the deciding subcommands: a job file, a trace, or a name.

use std::path::PathBuf;

use lab::Start;
use model::Span;
use model::media::Precondition;
use study::ask::defaults;
use study::ask::load::{LoadSpec, NamedLoad};
use study::decide::named;
use study::decide::work::{Conditions, Load};
use text::problem::Problems;
use text::quantity::quantity;

use crate::answer::{collect_problems, written};
use crate::output::remark;
use crate::seed::SeedArg;
use crate::state::Begin;

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
    #[arg(long, value_name = "N", requires = "load", value_parser = clap::value_parser!(u32).range(defaults::USERS_RANGE))]
    pub(crate) users: Option<u32>,

    /// Maximum measured time per job; up to 20 times as long if a run completes few I/Os. Only named loads may run
    /// longer than their job file specifies. With a given rate, every job runs until enough I/Os arrive, which may take
    /// hours of virtual time. Traces run completely [default: 500ms; 15s for pools with an intent log, which is three
    /// transaction groups]
    #[arg(long, value_name = "TIME", value_parser = |text: &str| written(text, quantity::<Span>))]
    pub(crate) runtime: Option<String>,

    /// Host of the drives: a name or the path of a TOML file
    #[arg(long, default_value = catalogue::TYPICAL_HOST)]
    pub(crate) host: String,

    /// Initial state of the drives
    #[arg(long, value_enum, default_value = defaults::AUTO)]
    pub(crate) state: Begin,

    #[command(flatten)]
    pub(crate) seed: SeedArg,

    /// Number of seeds, starting at --seed
    #[arg(long, value_name = "N", default_value_t = defaults::SEEDS, value_parser = clap::value_parser!(u32).range(defaults::SEEDS_RANGE))]
    pub(crate) seeds: u32,
}

impl LoadArgs {
    /// Returns the maximum counted time of a job.
    pub(crate) fn at_most(&self, usual: Span) -> Span {
        self.spec().runtime.unwrap_or(usual)
    }

    /// Returns the load as requests have it.
    pub(crate) fn spec(&self) -> LoadSpec {
        let runtime = self.runtime.as_deref();
        LoadSpec {
            load: self.load.clone().map(NamedLoad::Name),
            job: self.job.clone(),
            trace: self.trace.clone(),
            users: self.users,
            runtime: runtime.and_then(|text| quantity(text).ok()),
        }
    }

    /// Returns the requested load, if any, with the counted time `usual` unless the user sets another one, and the
    /// conditions; problems are added to the others.
    pub(crate) fn read(&self, usual: Span, problems: &mut Problems) -> (Option<Load>, Conditions) {
        let host = collect_problems(catalogue::host(&self.host), problems).unwrap_or_default();
        let read = self.spec().read(&host, usual, problems);
        for warning in &read.warnings {
            remark("warning", warning);
        }
        let conditions = Conditions {
            host,
            // Preliminary, until the load is known.
            state: Start::from(self.state).before(false),
            seed: self.seed.seed,
            seeds: self.seeds,
        };
        (read.load, conditions)
    }

    /// Returns a named load with its own length, or a longer one if the user or the drives require it.
    pub(crate) fn lengthen(&self, load: Load, usual: Span) -> Load {
        load.counted_longer(self.at_most(usual))
    }

    /// Returns the state before this load, and prints it.
    pub(crate) fn state_before(&self, load: &Load) -> Precondition {
        self.state.answered(|start| load.begins(start))
    }
}
