//! `cargo xtask soak`: pools served to third-party programs, ended in every way, and checked after a restart.
//!
//! A series is one client on one pool. Each of its rounds starts a server on the same store, lets the client check the
//! data that was acknowledged before, lets it work until a number of acknowledgements, and ends the server. Workload,
//! number and order of endings follow from the seed. The interleaving of commands does not, so several attempts may be
//! needed to repeat a finding. Not covered: a crash of the host (the server writes to the file system's cache), and
//! more than one fault in a round.

mod clients;
mod endings;
mod guest;
mod random;
mod report;
mod series;
mod server;
mod shapes;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use clients::{CLIENTS, Client};
use endings::{ENDINGS, Ending};
use report::{Kind, SoakTable};
use series::{Series, Setting};
use shapes::{PoolShape, SHAPES};

use crate::shell::{cargo, run, target};
use crate::tools;

/// Text of the options.
pub(crate) const USAGE: &str = "\
Usage: cargo xtask soak [OPTION]...

  --shape NAME,...     pools [default: all]
  --client NAME,...    clients [default: all]
  --ending NAME,...    how rounds end [default: all]
  --rounds N           rounds of each shape, client and ending [default: 1]
  --seed N             seed of workloads, order and moments [default: 1]
  --limit SECONDS      start no round later than this
  --of-the-day         one shape, another each day (UTC)
  --self-test          faults are planted in a drive: every client must find what they lose
  --binary FILE        the drivelab to test [default: builds target/debug/drivelab]
  --list               list shapes, clients and endings

Exit code 1: something was lost, refused or failed.";

/// Parsed options.
#[derive(Clone, Debug)]
struct SoakOptions {
    shapes: Vec<&'static PoolShape>,
    clients: Vec<Client>,
    endings: Vec<Ending>,
    rounds: u64,
    seed: u64,
    limit: Option<Duration>,
    self_test: bool,
    binary: Option<PathBuf>,
}

/// Returns the elements of a list that are named.
fn named<T: Copy>(
    option: &str,
    names: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<Vec<T>, String> {
    let one = |wanted: &str| {
        let found = all.iter().copied().find(|&it| name(it) == wanted);
        found.ok_or_else(|| {
            let all: Vec<&str> = all.iter().map(|&it| name(it)).collect();
            format!(
                "{option}: there is no `{wanted}`; there are {}",
                all.join(", ")
            )
        })
    };
    names.split(',').map(one).collect()
}

fn shapes() -> Vec<&'static PoolShape> {
    SHAPES.iter().collect()
}

/// Returns the shape that is tested today.
fn of_the_day() -> &'static PoolShape {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let day = since.unwrap_or_default().as_secs() / (24 * 60 * 60);
    &SHAPES[(day % SHAPES.len() as u64) as usize]
}

impl SoakOptions {
    fn read(args: &[&str]) -> Result<SoakOptions, String> {
        let mut options = SoakOptions {
            shapes: shapes(),
            clients: CLIENTS.to_vec(),
            endings: ENDINGS.to_vec(),
            rounds: 1,
            seed: 1,
            limit: None,
            self_test: false,
            binary: None,
        };
        let mut args = args.iter().copied();
        while let Some(option) = args.next() {
            let mut value = || {
                args.next()
                    .ok_or_else(|| format!("{option}: a value is missing"))
            };
            let number = |text: &str| {
                text.parse::<u64>()
                    .map_err(|_| format!("{option}: `{text}` is not a number"))
            };
            match option {
                "--shape" => options.shapes = named(option, value()?, &shapes(), |it| it.name)?,
                "--client" => options.clients = named(option, value()?, &CLIENTS, Client::name)?,
                "--ending" => options.endings = named(option, value()?, &ENDINGS, Ending::name)?,
                "--rounds" => options.rounds = number(value()?)?,
                "--seed" => options.seed = number(value()?)?,
                "--limit" => options.limit = Some(Duration::from_secs(number(value()?)?)),
                "--of-the-day" => options.shapes = vec![of_the_day()],
                "--self-test" => options.self_test = true,
                "--binary" => options.binary = Some(PathBuf::from(value()?)),
                _ => return Err(format!("unknown option {option}\n\n{USAGE}")),
            }
        }
        Ok(options)
    }
}

/// `cargo xtask soak`.
pub(crate) fn command(args: &[&str]) -> Result<(), String> {
    if args == ["--list"] {
        for shape in SHAPES {
            println!("shape   {:<18} {}", shape.name, shape.pool);
        }
        CLIENTS
            .iter()
            .for_each(|client| println!("client  {}", client.name()));
        ENDINGS
            .iter()
            .for_each(|ending| println!("ending  {}", ending.name()));
        return Ok(());
    }
    let options = SoakOptions::read(args)?;
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => {
            run(&mut cargo(
                "build --locked --package drivelab --bin drivelab",
            ))?;
            target().join("debug/drivelab")
        }
    };
    let guests = options.clients.iter().any(|client| client.is_guest());
    let with_postgresql = options
        .clients
        .iter()
        .any(|client| client.name().starts_with("postgresql"));
    let found = if guests {
        guest::tools(with_postgresql)?
    } else {
        guest::Tools::default()
    };
    let place = std::env::temp_dir().join(format!("drivelab-soak-{}", std::process::id()));
    crate::guest::create(&place)?;
    let setting = Setting {
        binary: &binary,
        tools: &found,
        seed: options.seed,
        place: &place,
        plant: None,
    };
    if options.self_test {
        let tested = self_test(&options, setting);
        crate::guest::remove(&place)?;
        return tested;
    }
    let table = soak(&options, &setting)?;
    println!("\n{table}");
    judge(&table, &place)
}

/// Planted faults, and whether all clients must find them or only those that check each block.
const PLANTS: [(&str, bool); 2] = [("lies", true), ("loses-write", false)];

/// Checks that each client finds the data that a planted fault of the drive loses.
fn self_test(options: &SoakOptions, mut setting: Setting<'_>) -> Result<(), String> {
    let mut blind = Vec::new();
    for (plant, is_everyones) in PLANTS {
        setting.plant = Some(plant);
        let clients = options.clients.iter().copied();
        let clients: Vec<Client> = clients
            .filter(|&client| is_everyones || client == Client::Records)
            .collect();
        let one_drive = SoakOptions {
            shapes: vec![&SHAPES[0]],
            clients,
            ..options.clone()
        };
        let table = soak(&one_drive, &setting)?;
        println!("\nplanted: {plant}\n{table}");
        let finds = |client: Client| {
            table
                .findings
                .iter()
                .any(|it| it.client == client && it.kind == Kind::Lost)
        };
        let missed = one_drive.clients.iter().filter(|&&client| !finds(client));
        blind.extend(missed.map(|client| format!("{} ({plant})", client.name())));
    }
    if blind.is_empty() {
        println!("self-test: every client found what the planted faults lost");
        return Ok(());
    }
    Err(format!(
        "planted faults lost data, and these clients did not find it: {}",
        blind.join(", ")
    ))
}

/// Runs all rounds: in each turn, every client in sequence on every shape.
fn soak(options: &SoakOptions, setting: &Setting<'_>) -> Result<SoakTable, String> {
    let mut table = SoakTable::default();
    let start = Instant::now();
    let is_late = || options.limit.is_some_and(|limit| start.elapsed() > limit);
    for shape in &options.shapes {
        let mut all = Vec::new();
        for &client in &options.clients {
            all.push(Series::new(setting, shape, client, &options.endings)?);
        }
        'rounds: for _ in 0..options.rounds * options.endings.len() as u64 {
            for series in &mut all {
                if is_late() {
                    break 'rounds;
                }
                series.round(&mut table)?;
            }
        }
        for series in &mut all {
            series.finish(&mut table)?;
        }
    }
    Ok(table)
}

/// Checks the results; folders with findings are kept.
fn judge(table: &SoakTable, place: &Path) -> Result<(), String> {
    if table.findings.is_empty() {
        return crate::guest::remove(place);
    }
    println!("\nfindings:");
    table
        .findings
        .iter()
        .for_each(|finding| println!("{finding}"));
    Err(format!(
        "{} losses, {} refused openings, {} errors",
        table.count(Kind::Lost),
        table.count(Kind::Refused),
        table.count(Kind::Error)
    ))
}

/// Tools that the soak needs besides the guest.
pub(crate) const NEEDS: &[&tools::Tool] = &[&tools::FIO, &tools::LIBNBD_PYTHON, &tools::POSTGRESQL];

/// Seconds after which the step of `cargo xtask test` starts no further rounds.
const SHORT: u64 = 60;

/// The step of `cargo xtask test`: checks that the clients find planted faults, then tests the shape of the day for a
/// minute.
pub(crate) fn step(install: bool) -> Result<(), String> {
    if install {
        crate::guest::prepare()?;
    }
    let clients = match guest::tools(true) {
        Ok(_) => String::new(),
        Err(why) => {
            println!("without guests: {why}");
            String::from("records,fio")
        }
    };
    let choose = |words: &[&str]| -> Result<(), String> {
        let mut words = words.to_vec();
        if !clients.is_empty() {
            words.extend(["--client", clients.as_str()]);
        }
        command(&words)
    };
    println!("the shape of the day is {}", of_the_day().name);
    command(&["--self-test", "--client", "records"])?;
    choose(&["--of-the-day", "--limit", &SHORT.to_string()])
}
