//! `drivelab serve`: serves modelled drives with data to clients, against the wall clock.

mod address;
mod asked;
mod ending;
mod known;
mod listen;
mod memory;
mod promise;
mod recorded;
mod sockets;
mod watch;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use indicatif::{MultiProgress, ProgressDrawTarget};
use live::floor::Transport;
use live::protocol::{Address, Clients};
use live::{Clock, ConnectionLimits, EventLoop, Lateness, ServedDevice, Switches};
use model::{Span, Time};
use text::problem::{Place, Problem, Problems};
use workload::faults::Fault;

use crate::drive::DriveArgs;
use crate::failure::{Failure, write_stderr};
use crate::output::remark;
use crate::seed::SeedArg;
use crate::size;
use crate::state::State;
use asked::{AskedFault, ServeRequest};
use listen::Listen;
use sockets::{Bound, SocketFile};

/// Serve drives with data to real clients, in wall-clock time
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab serve p4800x-375 --nvme-tcp 127.0.0.1:4420 --size 8G
  drivelab serve p4800x-375 --nbd 127.0.0.1:10809 --size 8G
  drivelab serve p4800x-375 --nbd unix:p4800x.sock --store disk.img
  drivelab serve p4800x-375 950pro-256 --nbd unix:both.sock --size 8G      two exports
  drivelab serve optane-mirror --nbd unix:m.sock --store folder --control c.sock
  echo 'nda.0: dies' | socat - unix:c.sock                                  a member of the pool
  drivelab serve p4800x-375 --vhost-user disk.sock --size 8G                the disk of a QEMU guest
  drivelab serve p4800x-375 --nvme-tcp 127.0.0.1:4420 --size 8G --power-limit 10W --lba-format 4096
  drivelab serve p4800x-375 --nbd unix:fast.sock --size 8G --speed 0       as fast as it can

  drivelab serve p4800x-375 --nbd 127.0.0.1:10809 --tls pki --tls-verify-peer
  nbdcopy -- disk.img [ drivelab serve p4800x-375 --nbd systemd --size 8G --store copy.img ]

  drivelab serve 950pro-256 --nbd unix:p.sock --control c.sock --size 8G
  echo power-cut | socat - unix:c.sock                                      (or kill -USR1)
  echo 'at write 1234: power-cut' | socat - unix:c.sock                     counted from now
  echo 'error-rate writes 1e-4 range 1GiB..2GiB for 10s' | socat - unix:c.sock

  drivelab serve 950pro-256 --nbd unix:p.sock --control c.sock --size 64M --record run.dlog
  echo 'ack 57' | socat - unix:c.sock             acknowledged, for `drivelab crashtest`

After Ctrl-C, commands in flight complete and all data is made durable.
Only NBD with --tls-verify-peer has authentication. Without it, listen on loopback or on a trusted network only.")]
pub(crate) struct Args {
    /// Names of drives (see `drivelab drives`) or paths of their TOML files
    #[arg(value_name = "DRIVE")]
    arguments: Vec<String>,

    #[command(flatten)]
    drives: DriveArgs,

    #[command(flatten)]
    listen: Listen,

    /// Backing store: `memory`, or one file per drive in order (created if it does not exist); for a pool of mirrors,
    /// stripes and concats a folder with one file per member
    #[arg(long, value_name = "FILE", default_value = "memory")]
    store: Vec<String>,

    /// Size of each namespace [default: that of an existing store, or the whole drive]: 8G and 8GiB are 8 x 2^30
    /// bytes, as in fio. 8GB is 8 x 10^9, as in the catalogue
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Option<u64>,

    /// Speed of the model's clock: 0.1 is ten times slower than the drive, 0 means as fast as possible
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = speed)]
    speed: f64,

    /// Allow addresses that other machines can reach
    #[arg(long)]
    allow_remote: bool,

    /// Subtract the transport's latency, as measured at the start, from each deadline
    #[arg(long)]
    compensate: bool,

    /// Inject faults from this script, one per line, such as `at 10s medium-error 2048 8`, `at write 1234: power-cut`,
    /// `after 10 flushes nda.0: dies`, `unrecovered-read range 1GiB..2GiB` or `error-rate writes 1e-4`
    #[arg(long, value_name = "SCRIPT")]
    fault: Option<PathBuf>,

    /// Record what clients write, for `drivelab crashtest --from FILE`; the file must not exist
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Stop recording when the log exceeds this size
    #[arg(long, value_name = "SIZE", value_parser = size::size, default_value = "4G", requires = "record")]
    log_limit: u64,

    /// End as after a power cut: the contents of the drives' volatile caches are lost
    #[arg(long)]
    power_cut: bool,

    /// Start a pool although one of its logs is missing, its stores are stale, or its structure is known to violate its
    /// durability guarantee: missing data is lost permanently
    #[arg(long)]
    accept_loss: bool,

    /// Initial state of the drives [default: that of an existing store, or steady]
    #[arg(long, value_enum)]
    state: Option<State>,

    /// Let idle drives enter power states, as Linux does on a desktop computer: the first command, and a command after
    /// 100 ms without one, waits until the drive is awake
    #[arg(long)]
    power_states: bool,

    #[command(flatten)]
    seed: SeedArg,
}

/// Parses the size of a namespace.
///
/// # Errors
/// A description of the allowed form.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let bytes = size::size(text)?;
    match bytes % 4096 == 0 && bytes > 0 {
        true => Ok(bytes),
        false => Err("must be a multiple of 4096, above zero".into()),
    }
}

fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "not a number")?;
    if speed == 0.0 || (1e-6..=1e3).contains(&speed) {
        Ok(speed)
    } else {
        Err("must be 0, or from 1e-6 to 1000".into())
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let asked = ServeRequest::read(args)?;
    known::check(&asked.setups)?;
    // A socket has a file from this point, and computing a map may take a second: a signal in the meantime must cause
    // an orderly shutdown.
    let switches = stop_on_signals().map_err(|error| Failure::failed("signals", error))?;
    let sockets = sockets::bind_all(&asked)?;
    let mut drives = opened(args, &asked)?;
    check_faults(args, &asked, &mut drives)?;
    drives.iter_mut().for_each(ServedDevice::prepare);
    recorded::begin(args, &mut drives)?;
    // Nothing is drawn without a terminal.
    let screen = MultiProgress::new();
    let above = screen.clone();
    let mut server = EventLoop::with_switches(
        switches,
        drives,
        Clock::new(args.speed),
        ConnectionLimits::default(),
        Box::new(move |line| above.suspend(|| write_stderr(line))),
    )
    .map_err(|error| Failure::failed("starting", error))?;
    promise(args, &asked, &mut server)?;
    // Kept until the end; their files are then removed.
    let _files = listen_at_all(&asked, sockets, &mut server)?;
    let faults = asked.faults.into_iter();
    server.plan(
        faults
            .map(|one| (one.when, one.target, one.fault))
            .collect(),
    );
    if io::stderr().is_terminal() {
        let mut watch = watch::Watch::new(screen.clone());
        let every = Span::from_ms(1_000);
        let show =
            move |now, drives: &[ServedDevice], late: &Lateness| watch.show(now, drives, late);
        server.observe(every, Box::new(show));
    }
    server
        .run()
        .map_err(|error| Failure::failed("serving", error))?;
    // The terminal may be gone.
    let _ = screen.clear();
    screen.set_draw_target(ProgressDrawTarget::hidden());
    for drive in server.drives_mut() {
        drive.end_log("the server ended");
    }
    for line in watch::summary(server.drives(), server.lateness()) {
        write_stderr(&line);
    }
    if args.power_cut {
        server.end_by_power_cut();
        return Ok(());
    }
    shut_down(server.drives_mut())?;
    if io::stderr().is_terminal() {
        write_stderr("all is saved");
    }
    Ok(())
}

/// Ends the service of all drives in order, also if one fails, and prints messages that are pending.
///
/// # Errors
/// The first drive that could not be saved; others are printed.
fn shut_down(drives: &mut [ServedDevice]) -> Result<(), Failure> {
    let ending = ending::Ending::new();
    let mut result = Ok(());
    for drive in drives {
        let name = drive.name().to_owned();
        let saved = drive.shut_down_telling(&mut |what| ending.set_step(&name, what));
        for line in drive.last_complaints() {
            write_stderr(&line);
        }
        match (saved, &result) {
            (Ok(()), _) => {}
            (Err(error), Ok(())) => {
                result = Err(Failure::failed(format!("{name}: saving"), error));
            }
            (Err(error), Err(_)) => write_stderr(&format!("error: {name}: saving: {error}")),
        }
    }
    result
}

/// Returns the requested drives with their stores.
fn opened(args: &Args, asked: &ServeRequest) -> Result<Vec<ServedDevice>, Problems> {
    let mut drives = Vec::new();
    for setup in asked.setups.clone() {
        let mut drive = setup.open()?;
        // Requested values override the saved state of an existing store.
        if let Some(percent) = args.drives.settings().percentage_used {
            drive
                .suffer(Time::ZERO, &Fault::Wear(percent))
                .map_err(|what| Problems::whole("--percentage-used", what))?;
        }
        for line in drive.findings() {
            write_stderr(&format!("{}: {line}", drive.name()));
        }
        if drive.sheet().pool.is_some() && !drive.is_by_member() {
            write_stderr(&format!(
                "{}: its data are kept as one drive's, for not all of its tiers can be found again on its members: these cannot fail alone",
                drive.name()
            ));
        }
        if let (true, Some(file)) = (drive.read_only(), drive.store_file()) {
            let (name, file) = (drive.name(), file.display());
            write_stderr(&format!(
                "warning: {name}: {file}: no space on its disk for the changed data: served read-only"
            ));
        }
        for front in &asked.fronts {
            let accepts = front.service.accepts(&drive);
            accepts.map_err(|problem| Problems(vec![problem]))?;
        }
        drives.push(drive);
    }
    for line in memory::warnings(&drives) {
        write_stderr(&line);
    }
    Ok(drives)
}

/// Checks that the drives can have the faults of the script.
///
/// # Errors
/// Every fault that they cannot have, and why.
fn check_faults(
    args: &Args,
    asked: &ServeRequest,
    drives: &mut [ServedDevice],
) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let script = args.fault.iter().map(|path| path.display().to_string());
    let script = script.collect::<String>();
    for AskedFault {
        line,
        target,
        fault,
        ..
    } in &asked.faults
    {
        let drive = &mut drives[target.drive];
        let could = match target.member {
            None => drive.could_suffer(fault),
            Some(member) => drive.member_could_suffer(member, fault),
        };
        if let Err(why) = could {
            let name = match target.member {
                None => drive.name(),
                Some(member) => drive.members()[usize::from(member)],
            };
            problems.0.push(Problem {
                origin: script.clone(),
                place: Place::Line(*line),
                what: format!("{name}: `{fault}`: {why}"),
                help: None,
            });
        }
    }
    problems.or(())
}

/// Listens at all sockets, and prints how to connect.
fn listen_at_all(
    asked: &ServeRequest,
    sockets: Vec<Vec<Bound>>,
    server: &mut EventLoop,
) -> Result<Vec<SocketFile>, Failure> {
    let at =
        |bound: &[Bound]| -> Vec<Address> { bound.iter().map(|it| it.address.clone()).collect() };
    let places: Vec<Vec<Address>> = sockets.iter().map(|it| at(it)).collect();
    let fronts = || asked.fronts.iter().zip(&places);
    let mut lines = Vec::new();
    for (index, drive) in server.drives().iter().enumerate() {
        let (name, sheet, size) = (drive.name(), drive.sheet(), drive.bytes() as f64 * 1e-9);
        lines.push(format!("{name}: {}, {size:.3} GB", sheet.name));
        lines.extend(asked.setups.get(index).and_then(known::line));
        for (front, at) in fronts() {
            lines.extend(front.service.drive_lines(index, drive, at));
        }
    }
    for (front, at) in fronts() {
        lines.extend(at.iter().flat_map(|address| front.service.lines(address)));
    }
    let mut files = Vec::new();
    for (front, bound) in asked.fronts.iter().zip(sockets) {
        for (number, socket) in bound.into_iter().enumerate() {
            socket.listen(server, front.service.front(number), &mut files)?;
        }
    }
    say(asked, &lines)?;
    Ok(files)
}

/// Prints how to connect, unless standard output belongs to the program that has started this one.
fn say(asked: &ServeRequest, lines: &[String]) -> Result<(), Failure> {
    let addresses = asked.fronts.iter().flat_map(|front| &front.addresses);
    let passed = { addresses }.any(|it| matches!(it, Address::Passed(_)));
    let mut out: Box<dyn Write> = if passed {
        Box::new(io::stderr())
    } else {
        Box::new(io::stdout())
    };
    let written = lines.iter().try_for_each(|line| writeln!(out, "{line}"));
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            // The disk of a log may be full: that must not end the server.
            remark(
                "warning",
                &format!("writing to standard output: {error}; the drives are served"),
            );
            Ok(())
        }
        written => Ok(written?),
    }
}

/// Prints whether this machine can meet the drives' latencies, and compensates if requested.
fn promise(args: &Args, asked: &ServeRequest, server: &mut EventLoop) -> Result<(), Failure> {
    if args.speed == 0.0 {
        return Ok(());
    }
    let mut transports = Vec::new();
    for front in &asked.fronts {
        transports.extend(front.addresses.iter().filter_map(|address| {
            match (front.protocol.clients, address) {
                (Clients::Watchers, _) => None,
                (Clients::OverMemory, _) => Some(Transport::Memory),
                (Clients::OverSocket, Address::Tcp(_)) => Some(Transport::Tcp),
                (Clients::OverSocket, Address::Unix(_) | Address::Passed(_)) => {
                    Some(Transport::Unix)
                }
            }
        }));
    }
    let floors = promise::floors(&transports)
        .map_err(|error| Failure::failed("measuring the transport", error))?;
    for line in promise::lines(server.drives(), &floors, args.seed.seed, args.speed) {
        write_stderr(&line);
    }
    if args.compensate {
        let floor = promise::compensation(&floors);
        write_stderr(&format!(
            "each deadline is {:.1} us earlier, for the transport",
            floor.us()
        ));
        server.compensate(floor);
    }
    Ok(())
}

/// Handles signals: SIGINT and SIGTERM end the loop in order, SIGUSR1 cuts the power of all drives, even before the
/// loop runs. Exceeding the file size limit causes a write error instead of ending the program.
fn stop_on_signals() -> io::Result<Switches> {
    use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
    use signal_hook::low_level::pipe::register;
    let switches = Switches::new()?;
    for signal in [SIGINT, SIGTERM] {
        register(signal, switches.stopper().descriptor()?)?;
    }
    register(SIGUSR1, switches.power_switch()?)?;
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    Ok(switches)
}
