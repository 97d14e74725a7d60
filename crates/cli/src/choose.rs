//! `drivelab choose`: drives that meet a load and its limits, and the recommended drive.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;

use catalogue::DriveSheet;
use clap::ValueEnum;
use lab::Lab;
use report::decide::view;
use study::ask::defaults;
use study::decide::choose::{self, Candidate, ChooseRequest, Measure, Unfit};
use study::decide::feasibility;
use study::decide::half_rate::{self, HalfRate};
use study::decide::life::years;
use study::decide::likeness::{self, Replacements};
use study::decide::memory_need::MachineMemory;
use study::decide::named;
use study::decide::price_list;
use study::decide::prices;
use study::decide::profile::Profile;
use study::decide::rate::OfferedRate;
use study::decide::screening;
use study::decide::slo::Slo;
use study::decide::work::{Load, counted_for};
use study::decide::zilstat::ZilStatistics;
use text::problem::{Problem, Problems};

use crate::answer::{self, collect_problems};
use crate::drive::DriveArgs;
use crate::each::map_drives;
use crate::failure::{Failure, on_command_line};
use crate::load::LoadArgs;
use crate::output;
use crate::profile::profile;
use crate::rate::{RateArg, rate};
use crate::replay::BeyondArg;
use crate::screen::{self, ScreeningAim};
use crate::stop::ImmediateStop;
use crate::zil;

mod candidates;
mod common_rate;
mod fewest;
pub(crate) mod no_log;
mod place;

use candidates::{CandidateSet, candidates, refused};
use common_rate::at_common_rate;

/// Drives and pools that meet a load and its limits, and the recommended drive
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab choose --load oltp --all --slo 'p99<1ms,iops>50k'
  drivelab choose p4800x-375 p3700-1600 --job db.fio --slo 'p99<1ms' --by watt
  drivelab choose p4800x-375 950pro-256 --load web --usd prices.toml --by usd --years 5
  drivelab choose --load oltp --all --like p4800x-375 --in-production
  drivelab choose p5800x-800 p3700-1600 --load kvcache --users 200 --slo 'read.p99<50ms'
  drivelab choose p4800x-375 980pro-1000 --load oltp --rate 20k --usd prices.toml
  drivelab choose slog none p1600x-58 p4801x-100 'mirror(2*p4801x-100)' 950pro-256 \\
      --main 'raidz(6*exos-x18-16tb; parity=2)' --load nfs-sync
  drivelab choose read-cache none p4801x-100 950pro-256 --main exos-x18-16tb --trace vm.vscsi.xz
  drivelab choose vsan-cache p5800x-400 d7-p5600-1600 --capacity '3*d7-p5510-3840' --profile 4k70r
  drivelab choose --print-load oltp

If the first argument is slog, vsan-cache (or cache) or read-cache, each drive is evaluated as that part of a pool. \
prices.toml has lines such as p4800x-375 = \"450 USD\" or \"0.12 USD/GB\" under [drives], power = \"0.30 USD/kWh\", and \
place = \"2.50 USD/month\" for a drive's share of rack and server. prices.csv names its columns in the first line: \
drive, and usd or usd_per_gb. --print-prices and --print-prices=csv print the published prices.

Exit codes: 0 done, 2 bad usage or bad input, 3 no drive is within all limits.")]
pub(crate) struct Args {
    /// Names of drives or pools (see `drivelab drives`), paths of their TOML files, or pool expressions; before them
    /// slog, vsan-cache or read-cache to select a drive for this part of a pool
    #[arg(value_name = "DRIVE")]
    arguments: Vec<String>,

    #[command(flatten)]
    drives: DriveArgs,

    /// All drives of the catalogue except RAM disks
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    load: LoadArgs,

    /// Load in HCIBench's notation: 4k70r is random 4 KiB with 70 % reads
    #[arg(long, value_name = "PROFILE", conflicts_with_all = ["job", "trace", "load"], value_parser = profile)]
    profile: Option<Profile>,

    /// For a trace with addresses beyond the end of a drive: refuse excludes the drive, wrap folds the addresses into
    /// it
    #[arg(long, value_enum, default_value_t = BeyondArg::Refuse)]
    beyond: BeyondArg,

    /// Limits, such as p99<1ms,iops>50k,years>5,capacity>1500GB (see `drivelab max --help`)
    #[arg(long, value_name = "LIMITS")]
    slo: Option<String>,

    /// Total rate on every drive, of reads and writes together: 50k (IOPS), 300MB/s, 20GB/day, or max: each drive's own
    /// maximum. [default: the iops or bw
    /// of --slo, otherwise max; slog: max, then half of the fastest drive's rate on all]
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with_all = ["trace", "users"])]
    rate: Option<RateArg>,

    /// Rate of the writes of the load on every drive, such as 600GB/day or 100MB/s; its reads arrive in proportion
    #[arg(long, value_name = "RATE", value_parser = OfferedRate::read_writes, conflicts_with_all = ["trace", "users", "rate", "zilstat"])]
    writes: Option<OfferedRate>,

    /// slog: text of `zilstat -i 1` or of `zpool iostat -w`, `-r` or `-q` of your pool. If nothing was logged, you
    /// need no log. Otherwise the busiest interval of zilstat is the rate on all logs, as with --rate
    #[arg(long, value_name = "FILE", conflicts_with_all = ["trace", "users", "rate"])]
    zilstat: Option<PathBuf>,

    /// slog: the load overwrites existing files; by default clients write new files
    #[arg(long)]
    overwrite: bool,

    /// Ranking criterion [default: usd with --usd; p99 for a log, for a trace or at a rate, and power among drives with
    /// ample room; otherwise iops]
    #[arg(long, value_enum)]
    by: Option<RankingCriterion>,

    /// Required lifetime of drives in years, and the years for which power is paid
    #[arg(long, value_name = "YEARS", default_value_t = defaults::YEARS, value_parser = years)]
    years: f64,

    /// Your prices, in a TOML file, or in a price list whose name ends in .csv
    #[arg(long, value_name = "FILE")]
    usd: Option<PathBuf>,

    /// Print the prices in the catalogue's sources as a file for --usd, and exit: toml, or csv with all published
    /// prices, dates and USD per GB
    #[arg(long, value_name = "FORM", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "toml")]
    print_prices: Option<PriceFile>,

    /// Leave out drives that are no longer made (see `drivelab show`); a drive with an unknown status stays
    #[arg(long)]
    in_production: bool,

    /// Run each drive as the smallest stripe of up to 16 that keeps up with the rate and meets the limits: how many drives
    #[arg(long, conflicts_with_all = ["all", "like", "main", "capacity"])]
    fewest: bool,

    /// Find the closest replacement for this drive, and show the differences; without a rate, at half of its maximum
    #[arg(long, value_name = "DRIVE")]
    like: Option<String>,

    /// Main pool (for slog and read-cache), such as 'raidz(6*exos-x18-16tb; parity=2)'
    #[arg(long, value_name = "EXPR")]
    main: Option<String>,

    /// Capacity tier (for vsan-cache), such as '3*d7-p5510-3840'
    #[arg(long, value_name = "EXPR")]
    capacity: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also write a CSV file with one line per drive and limit
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Also write a page: latency over IOPS of each drive, with the limit
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Form of a file with prices.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PriceFile {
    /// TOML, with one price for each drive
    Toml,
    /// CSV, with all published prices
    Csv,
}

/// Ranking criterion.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RankingCriterion {
    /// Lowest cost
    Usd,
    /// Highest IOPS per watt
    Watt,
    /// Highest IOPS
    Iops,
    /// Lowest 99th percentile
    P99,
    /// Longest time to the rated endurance
    Years,
}

impl From<RankingCriterion> for Measure {
    fn from(by: RankingCriterion) -> Measure {
        match by {
            RankingCriterion::Usd => Measure::Usd,
            RankingCriterion::Watt => Measure::Watt,
            RankingCriterion::Iops => Measure::Iops,
            RankingCriterion::P99 => Measure::P99,
            RankingCriterion::Years => Measure::Years,
        }
    }
}

/// A candidate: its name, and the drive or pool that is simulated.
struct NamedDrive {
    name: String,
    sheet: DriveSheet,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(text) = args.load.print_load.as_deref().and_then(named::text) {
        return Ok(io::stdout().lock().write_all(text.as_bytes())?);
    }
    if let Some(form) = args.print_prices {
        let text = match form {
            PriceFile::Toml => prices::example(),
            PriceFile::Csv => price_list::published().to_owned(),
        };
        return Ok(io::stdout().lock().write_all(text.as_bytes())?);
    }
    let zil = zil::read(args.zilstat.as_deref(), is_slog(args))?;
    let (CandidateSet { drives, mut unfit }, request) = read(args, zil.as_ref())?;
    let files = [("--csv", &args.csv), ("--output", &args.output)];
    if zil::is_answer(zil.as_ref(), args.json, &files)? {
        return Ok(());
    }
    let sheets = drives.iter().map(|one| &one.sheet);
    let syncs = is_slog(args)
        .then(|| no_log::of_load(&request.load, sheets))
        .flatten();
    if no_log::is_answer(&request.load, syncs, args.json, &files)? {
        return Ok(());
    }
    args.drives.note_on_years();
    let stop = ImmediateStop::on_signals()?;
    let lab = Lab::new();
    let halved = at_half_of_the_replaced(args, &drives, &request, &lab);
    let at_half_of_its_maximum = halved.as_ref().is_some_and(|halved| halved.is_half);
    let request = halved.map_or(request, |halved| halved.request);
    let paced = request.load.is_trace() || request.load.offered_iops().is_some();
    let by = criterion(args, paced);
    let mut candidates = all_ran(args, &drives, &request, by, &lab, &mut unfit);
    let request = match is_slog(args) && args.rate.is_none() && !paced {
        true => at_common_rate(&drives, request, &lab, &mut candidates)?,
        false => request,
    };
    if candidates.is_empty() {
        let what = unfit.iter().map(|one| {
            on_command_line(
                format!("{}: {}", one.drive, one.why),
                "another load, or other drives",
            )
        });
        return Err(Problems(what.collect()).into());
    }
    likeness::check_replaced(args.like.as_deref(), &unfit)?;
    let like = args.like.as_ref().and_then(|wanted| {
        let (all, years) = (&candidates, request.years);
        Replacements::from_candidates(wanted, at_half_of_its_maximum, all, years)
    });
    if is_slog(args) && choose::reads(&request.load.user_workload().workload) {
        candidates = candidates
            .into_iter()
            .map(Candidate::judged_as_log)
            .collect();
    }
    // The latency of a log is the reason for buying it, and a replacement is compared in all figures.
    let by_default = args.by.is_none() && !is_slog(args) && args.like.is_none();
    let (mut answer, by) = match by_default {
        true => choose::answer_by_default(&request, candidates, unfit, by),
        false => (choose::answer(candidates, unfit, by), by),
    };
    answer.syncs = syncs;
    let view = view::choose(&request, &answer, like.as_ref(), by);
    stop.results(|| answer::show(&view, args.json, &args.csv, &args.output))?;
    let is_met = likeness::is_met(&answer.candidates, like.as_ref());
    let none = || Failure::Verdict(String::from("no drive is within all limits"));
    is_met.then_some(()).ok_or_else(none)
}

/// Returns the ranking criterion: the user's, or the default.
fn criterion(args: &Args, paced: bool) -> Measure {
    match (args.by, &args.usd) {
        (Some(by), _) => Measure::from(by),
        (None, Some(_)) => Measure::Usd,
        // A slow log throttles clients that wait for it, so at a common rate its latency is decisive.
        (None, None) if paced || is_slog(args) => Measure::P99,
        (None, None) => Measure::Iops,
    }
}

/// Returns the request at half of the maximum of the drive that is replaced, if the user gives no rate. A log runs at a
/// common rate anyway.
fn at_half_of_the_replaced(
    args: &Args,
    drives: &[NamedDrive],
    request: &ChooseRequest,
    lab: &Lab,
) -> Option<HalfRate> {
    let wanted = args
        .like
        .as_ref()
        .filter(|_| args.rate.is_none() && args.writes.is_none() && !is_slog(args))?;
    let drive = drives.iter().find(|one| one.name == *wanted)?;
    half_rate::at_half_of(&drive.sheet, request, lab)
}

/// Runs this load on the drives; those that cannot run it are added to the unfit ones.
fn ran<D: std::borrow::Borrow<NamedDrive> + Sync>(
    drives: &[D],
    request: &ChooseRequest,
    lab: &Lab,
    unfit: &mut Vec<Unfit>,
) -> Vec<Candidate> {
    let memory = MachineMemory::read();
    let results = map_drives(
        drives,
        |drive| &drive.borrow().name,
        |drive, go_on| {
            let sheet = &drive.borrow().sheet;
            memory.check(sheet, request.conditions.seeds)?;
            choose::candidate(request, sheet, lab, go_on)
        },
    );
    let mut candidates = Vec::new();
    for (drive, result) in drives.iter().zip(results) {
        let drive = drive.borrow();
        match result {
            Ok(mut one) => {
                one.drive.clone_from(&drive.name);
                candidates.push(one);
            }
            Err(problems) => unfit.push(refused(&drive.name, &problems)),
        }
    }
    candidates
}

/// Runs the drives: those of `--all` briefly first, with `--fewest` as stripes, otherwise all in full.
fn all_ran(
    args: &Args,
    drives: &[NamedDrive],
    request: &ChooseRequest,
    by: Measure,
    lab: &Lab,
    unfit: &mut Vec<Unfit>,
) -> Vec<Candidate> {
    if args.fewest {
        return fewest::ran(drives, &args.drives.settings(), request, lab, unfit);
    }
    screened(args, drives, request, by, lab, unfit)
        .unwrap_or_else(|| ran(drives, request, lab, unfit))
}

/// Runs many drives of `--all` briefly, and then those in full that can be the best. `None` if the question is not
/// screened.
fn screened(
    args: &Args,
    drives: &[NamedDrive],
    request: &ChooseRequest,
    by: Measure,
    lab: &Lab,
    unfit: &mut Vec<Unfit>,
) -> Option<Vec<Candidate>> {
    let is_in_place = args.main.is_some() || args.capacity.is_some();
    if !args.all || is_in_place || drives.len() < screening::MANY {
        return None;
    }
    let named = args.drives.names(&args.arguments);
    let run = |request: &ChooseRequest, only: Option<&BTreeSet<String>>, unfit: &mut Vec<Unfit>| {
        let is_wanted = |one: &&NamedDrive| only.is_none_or(|names| names.contains(&one.name));
        let wanted: Vec<&NamedDrive> = drives.iter().filter(is_wanted).collect();
        ran(&wanted, request, lab, unfit)
    };
    let aim = match &args.like {
        Some(drive) => ScreeningAim::Replace(drive),
        None => ScreeningAim::Best(by),
    };
    screen::screened(request, &named, aim, unfit, &run)
}

/// Checks whether drives are chosen as the log of a pool.
fn is_slog(args: &Args) -> bool {
    let names = args.drives.names(&args.arguments);
    names.first().is_some_and(|first| first == "slog")
}

fn read(
    args: &Args,
    zil: Option<&ZilStatistics>,
) -> Result<(CandidateSet, ChooseRequest), Problems> {
    let mut problems = Problems::default();
    let found = candidates(args, &mut problems);
    let usual = counted_for(found.drives.iter().map(|one| &one.sheet));
    let (mut load, mut conditions) = args.load.read(usual, &mut problems);
    crate::idle::note_on_power_states(found.drives.iter().map(|one| &one.sheet), &conditions.host);
    let state = args.load.state;
    state.check(&args.drives.settings(), &mut problems);
    if let Some(profile) = &args.profile {
        load = collect_problems(profile.load(), &mut problems).map(|load| {
            args.load
                .lengthen(load, usual)
                .at_most(args.load.at_most(usual))
        });
    }
    if let Some(load) = &load {
        conditions.state = args.load.state_before(load);
    }
    let none_given = [
        args.load.job.is_some(),
        args.load.trace.is_some(),
        args.load.load.is_some(),
    ];
    if load.is_none() && !none_given.contains(&true) && args.profile.is_none() {
        problems.0.push(no_load());
    }
    let slo = match &args.slo {
        None => Slo::default(),
        Some(text) => collect_problems(Slo::read(text), &mut problems).unwrap_or_default(),
    };
    let prices = args.usd.as_ref().and_then(|path| {
        let origin = path.display().to_string();
        let text = text::bounded::text(path, text::bounded::WRITTEN)
            .map_err(|error| Problems::whole(&origin, format!("cannot be read: {error}")));
        let also: Vec<&str> = found.drives.iter().map(|one| &*one.sheet.id).collect();
        collect_problems(
            text.and_then(|text| price_list::read_prices(&origin, &text, &also)),
            &mut problems,
        )
    });
    if args.by == Some(RankingCriterion::Usd) && args.usd.is_none() {
        let what = "--by usd: there are no prices";
        let help = "--usd prices.toml; none is invented";
        problems.0.push(on_command_line(what, help));
    }
    let inputs = [
        args.load.job.as_deref(),
        args.load.trace.as_deref(),
        args.usd.as_deref(),
    ];
    let inputs: Vec<_> = inputs.into_iter().flatten().collect();
    let outputs = output::requested_files([("--csv", &args.csv), ("--output", &args.output)]);
    problems.0.extend(output::problems(&outputs, &inputs).0);
    match load {
        Some(load) if problems.0.is_empty() => {
            let load = paced(args, zil, load, &slo)?.with_out_of_range(args.beyond.into());
            let request = ChooseRequest {
                load,
                slo,
                years: args.years,
                prices,
                conditions,
            };
            Ok((found, request))
        }
        _ => Err(problems),
    }
}

/// There is no load; the help names those that have a name.
fn no_load() -> Problem {
    let names = named::names().collect::<Vec<_>>().join(", ");
    on_command_line(
        "there is no load to choose for",
        format!("--load NAME ({names}), --job FILE, --trace FILE or --profile 4k70r"),
    )
}

/// Returns the load at the requested rate, at that of a real log, or at the rate that the limits require. Limits above a
/// requested rate are problems.
fn paced(
    args: &Args,
    zil: Option<&ZilStatistics>,
    load: Load,
    slo: &Slo,
) -> Result<Load, Problems> {
    let of_log = zil.and_then(ZilStatistics::rate);
    let (load, option) = match (args.writes, args.rate, of_log) {
        (Some(writes), ..) => (load.at_rate_by("--writes", writes)?, Some("--writes")),
        (None, Some(RateArg::At(rate)), _) => (load.at_rate(rate)?, Some("--rate")),
        (None, Some(RateArg::Max), _) => (load, None),
        (None, None, Some(rate)) => (zil::paced(load, rate)?, Some("--zilstat")),
        (None, None, None) if args.load.users.is_some() => (load, Some("--users")),
        (None, None, None) => (feasibility::at_required_rate(load, slo), None),
    };
    feasibility::check(&load, slo, option)?;
    if args.fewest && load.offered_iops().is_none() && slo.limits.is_empty() {
        let what = "--fewest: neither a rate nor a limit says how many drives are enough";
        let help = "add --rate 300MB/s, --users, or --slo 'iops>50k'";
        return Err(Problems(vec![on_command_line(what, help)]));
    }
    Ok(load)
}
