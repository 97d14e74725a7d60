//! `drivelab serve`: modelled drives against the wall clock, with data, for real clients.

mod promise;
mod watch;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use live::control::Control;
use live::faults::Fault;
use live::floor::Transport;
use live::metrics::Metrics;
use live::nbd::Nbd;
use live::nvme::{self, NvmeTcp};
use live::{
    Clock, EventLoop, Front, Lateness, Limits, Served, Setup, StoreChoice, VhostUser, Wall,
};
use model::Span;
use study::catalogue;
use study::problem::{Place, Problem, Problems};

use crate::failure::Failure;
use crate::state::State;

/// Serve drives against the wall clock, with data, to real clients
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab serve p4800x-375 --nvme-tcp 127.0.0.1:4420 --size 8G
  drivelab serve p4800x-375 --nbd 127.0.0.1:10809 --size 8G
  drivelab serve p4800x-375 --nbd unix:p4800x.sock --store disk.img
  drivelab serve p4800x-375 950pro-256 --nbd unix:both.sock --size 8G      two exports
  drivelab serve p4800x-375 --vhost-user disk.sock --size 8G                the disk of a QEMU guest
  drivelab serve p4800x-375 --nbd unix:fast.sock --size 8G --speed 0       as fast as this machine can

  drivelab serve 950pro-256 --nbd unix:p.sock --control c.sock --size 8G
  echo power-cut | socat - unix:c.sock                                      (or kill -USR1)

Ctrl-C lets what is in flight complete and leaves everything durable.
There is no authentication: listen on loopback or on a trusted network only.")]
pub(crate) struct Args {
    /// Names of drives (see `drivelab drives`) or paths of drives' TOML files
    #[arg(required = true, value_name = "DRIVE")]
    drives: Vec<String>,

    /// Serve NBD at this address: HOST:PORT or unix:PATH; may be given several times
    #[arg(long, value_name = "ADDR")]
    nbd: Vec<String>,

    /// Serve NVMe/TCP at this address: HOST:PORT; may be given several times
    #[arg(long, value_name = "ADDR")]
    nvme_tcp: Vec<String>,

    /// Insert and strip metadata in the server, so that hosts see plain blocks on formats with protection information
    #[arg(long)]
    strip_metadata: bool,

    /// Serve a drive as the disk of a guest (vhost-user-blk) at this path; a socket for each drive in order
    #[arg(long, value_name = "SOCKET")]
    vhost_user: Vec<PathBuf>,

    /// Where the data is: `memory`, or a file for each drive in order (made if it does not exist)
    #[arg(long, value_name = "FILE", default_value = "memory")]
    store: Vec<String>,

    /// Size of each namespace, such as 8G [default: the whole drive]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Option<u64>,

    /// Model seconds in a second: 0.1 is ten times slower than the drive, 0 as fast as this machine can
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = speed)]
    speed: f64,

    /// Allow addresses that other machines can reach
    #[arg(long)]
    allow_remote: bool,

    /// Subtract what the transport adds, as measured at the start, from each deadline
    #[arg(long)]
    compensate: bool,

    /// Figures for Prometheus at this address
    #[arg(long, value_name = "ADDR")]
    metrics: Vec<String>,

    /// Take faults and questions, a line each, at this Unix socket (`help` lists them)
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,

    /// Faults to happen: a script, a line each, such as `at 10s medium-error 2048 8`
    #[arg(long, value_name = "SCRIPT")]
    fault: Option<PathBuf>,

    /// End as a power cut would, instead of in order: what the drives' caches hold is lost
    #[arg(long)]
    power_cut: bool,

    /// The drives' state at the start
    #[arg(long, value_enum, default_value_t = State::Steady)]
    state: State,

    /// Seed of every random stream
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// An address as it was given.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| "not a whole number")?;
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return Err("the units are K, M, G and T, of 1024".into()),
    };
    number
        .checked_mul(1 << shift)
        .filter(|bytes| bytes % 4096 == 0 && *bytes > 0)
        .ok_or_else(|| "must be a multiple of 4096, above zero".into())
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
    let mut problems = Problems::default();
    let nbd = addresses("--nbd", &args.nbd, args.allow_remote, &mut problems);
    let nvme = addresses(
        "--nvme-tcp",
        &args.nvme_tcp,
        args.allow_remote,
        &mut problems,
    );
    let metrics = addresses("--metrics", &args.metrics, args.allow_remote, &mut problems);
    let setups = setups(args, &mut problems);
    let names: Vec<String> = setups.iter().map(|setup| setup.name.clone()).collect();
    let faults = faults(args, &names, &mut problems);
    check_sockets(args, &mut problems);
    let none = nbd.is_empty() && nvme.is_empty() && args.vhost_user.is_empty();
    if none && problems.0.is_empty() {
        problems.0.push(on_command_line(
            "no address to serve at",
            "give --nvme-tcp 127.0.0.1:4420, --nbd 127.0.0.1:10809, or --nbd unix:drive.sock",
        ));
    }
    problems.or(())?;
    let mut drives = Vec::new();
    for setup in setups {
        drives.push(setup.open()?);
    }
    let mut clock = Clock::new(args.speed);
    promise(args, &drives, &[&nbd[..], &nvme].concat(), &mut clock)?;
    let mut server = EventLoop::new(
        drives,
        clock,
        Limits::default(),
        Box::new(|line| eprintln!("{line}")),
    )
    .map_err(|error| Failure::failed("starting", error))?;
    let mut sockets = Vec::new();
    for address in &metrics {
        listen(
            &mut server,
            "--metrics",
            address,
            Box::new(Metrics),
            &mut sockets,
        )?;
    }
    if let Some(path) = &args.control {
        let address = Address::Unix(path.clone());
        listen(
            &mut server,
            "--control",
            &address,
            Box::new(Control),
            &mut sockets,
        )?;
    }
    for address in &nbd {
        let front = Box::new(Nbd::new(names.clone()));
        listen(&mut server, "--nbd", address, front, &mut sockets)?;
    }
    let subsystem = nvme_options(args, &names);
    let nqn = subsystem.nqn.clone();
    let target = NvmeTcp::new(subsystem);
    for address in &nvme {
        listen(
            &mut server,
            "--nvme-tcp",
            address,
            Box::new(target.again()),
            &mut sockets,
        )?;
    }
    listen_to_guests(&mut server, &args.vhost_user, &mut sockets)?;
    let mut out = io::stdout().lock();
    for line in connect_lines(server.drives(), &nbd, &args.vhost_user) {
        writeln!(out, "{line}")?;
    }
    for address in &nvme {
        for line in nvme_lines(address, &nqn) {
            writeln!(out, "{line}")?;
        }
    }
    out.flush()?;
    drop(out);
    stop_on_signals(&server)?;
    server.plan(faults);
    if io::stderr().is_terminal() {
        let mut watch = watch::Watch::default();
        let every = Span::from_ms(1_000);
        let show = move |now, drives: &[Served], late: &Lateness| watch.show(now, drives, late);
        server.observe(every, Box::new(show));
    }
    server
        .run()
        .map_err(|error| Failure::failed("serving", error))?;
    if let Some(summary) = watch::summary(server.lateness()) {
        eprintln!("\n{summary}");
    }
    if args.power_cut {
        server.end_by_power_cut();
        return Ok(());
    }
    for drive in server.drives_mut() {
        drive
            .shut_down()
            .map_err(|error| Failure::failed(format!("{}: saving", drive.name()), error))?;
    }
    if io::stderr().is_terminal() {
        eprintln!("all is saved");
    }
    Ok(())
}

/// Says what this machine can keep of what the drives promise, and compensates if that is asked for.
fn promise(
    args: &Args,
    drives: &[Served],
    addresses: &[Address],
    clock: &mut Clock,
) -> Result<(), Failure> {
    if args.speed == 0.0 {
        return Ok(());
    }
    let transports: Vec<Transport> = addresses
        .iter()
        .map(|address| match address {
            Address::Tcp(_) => Transport::Tcp,
            Address::Unix(_) => Transport::Unix,
        })
        .collect();
    let floors = promise::floors(&transports)
        .map_err(|error| Failure::failed("measuring the transport", error))?;
    for line in promise::lines(drives, &floors, args.state.into(), args.seed, args.speed) {
        eprintln!("{line}");
    }
    if args.compensate {
        let floor = promise::compensation(&floors);
        eprintln!(
            "each deadline is {:.1} us earlier, for the transport",
            floor.us()
        );
        clock.compensate(floor);
    }
    Ok(())
}

/// The faults of the script, with the wall time and the drive of each.
fn faults(args: &Args, names: &[String], problems: &mut Problems) -> Vec<(Wall, usize, Fault)> {
    let Some(path) = &args.fault else {
        return Vec::new();
    };
    let origin = path.display().to_string();
    let mut wrong = |place, what| {
        problems.0.push(Problem {
            origin: origin.clone(),
            place,
            what,
            help: None,
        });
    };
    let planned = match fs::read_to_string(path) {
        Err(error) => {
            wrong(Place::Whole, format!("cannot be read: {error}"));
            return Vec::new();
        }
        Ok(text) => match live::faults::script(&text) {
            Ok(planned) => planned,
            Err(all) => {
                for (line, what) in all {
                    wrong(Place::Line(line), what);
                }
                return Vec::new();
            }
        },
    };
    let mut faults = Vec::new();
    for planned in planned {
        let drive = match &planned.drive {
            None => Some(0),
            Some(name) => names.iter().position(|known| known == name),
        };
        let at = Wall::default().plus(planned.at.unwrap_or(Span::ZERO));
        match drive {
            Some(drive) => faults.push((at, drive, planned.fault)),
            None => wrong(
                Place::Whole,
                format!("there is no drive `{}`", planned.drive.unwrap_or_default()),
            ),
        }
    }
    faults
}

/// Serves connections to this address by this front end.
fn listen(
    server: &mut EventLoop,
    option: &str,
    address: &Address,
    front: Box<dyn Front>,
    sockets: &mut Vec<Socket>,
) -> Result<(), Failure> {
    let listening = match address {
        Address::Tcp(address) => {
            TcpListener::bind(address).and_then(|socket| server.listen(socket, front))
        }
        Address::Unix(path) => {
            sockets.push(Socket(path.clone()));
            listen_unix(path).and_then(|socket| server.listen(socket, front))
        }
    };
    listening.map_err(|error| Failure::failed(format!("{option} {}", shown(address)), error))
}

/// One subsystem, named after the first drive, with all drives as its namespaces.
fn nvme_options(args: &Args, names: &[String]) -> nvme::Options {
    let id = names.first().map_or("drives", String::as_str);
    nvme::Options {
        strip_metadata: args.strip_metadata,
        ..nvme::Options::new(id, names.len())
    }
}

/// How to connect over NVMe/TCP: lines to be copied.
fn nvme_lines(address: &Address, nqn: &str) -> Vec<String> {
    match address {
        Address::Tcp(address) => {
            let (host, port) = (address.ip(), address.port());
            vec![
                format!("  nvme discover -t tcp -a {host} -s {port}"),
                format!("  nvme connect -t tcp -a {host} -s {port} -n {nqn}"),
                format!("  drivelab bench-target nvme-tcp://{address}"),
            ]
        }
        // For programs that bring their own socket.
        Address::Unix(path) => vec![format!("  {nqn} at unix:{}", path.display())],
    }
}

/// A socket for each drive at most.
fn check_sockets(args: &Args, problems: &mut Problems) {
    if args.vhost_user.len() > args.drives.len() {
        problems.0.push(on_command_line(
            "more sockets than drives",
            "give --vhost-user at most once for each drive",
        ));
    }
}

/// Offers the drives in order to guests at these sockets.
fn listen_to_guests(
    server: &mut EventLoop,
    paths: &[PathBuf],
    sockets: &mut Vec<Socket>,
) -> Result<(), Failure> {
    for (drive, path) in paths.iter().enumerate() {
        let front = Box::new(VhostUser::new(drive));
        let address = Address::Unix(path.clone());
        listen(server, "--vhost-user", &address, front, sockets)?;
    }
    Ok(())
}

/// A socket's file, removed when the server ends.
struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        // It may have been removed by somebody else.
        let _ = fs::remove_file(&self.0);
    }
}

/// Listens at a path; a socket that nobody listens at any more is replaced.
fn listen_unix(path: &Path) -> io::Result<UnixListener> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        fs::remove_file(path)?;
    }
    UnixListener::bind(path)
}

fn on_command_line(what: impl Into<String>, help: &str) -> Problem {
    Problem {
        origin: "command line".into(),
        place: Place::Whole,
        what: what.into(),
        help: Some(help.into()),
    }
}

fn addresses(
    option: &str,
    texts: &[String],
    remote: bool,
    problems: &mut Problems,
) -> Vec<Address> {
    let mut addresses = Vec::new();
    for text in texts {
        if let Some(path) = text.strip_prefix("unix:") {
            addresses.push(Address::Unix(path.into()));
            continue;
        }
        match text.parse::<SocketAddr>() {
            Ok(address) if !address.ip().is_loopback() && !remote => {
                problems.0.push(on_command_line(
                    format!("{option} {text}: other machines could reach it"),
                    "there is no authentication: if the network is trusted, add --allow-remote",
                ));
            }
            Ok(address) => addresses.push(Address::Tcp(address)),
            Err(_) => problems.0.push(on_command_line(
                format!("{option} {text}: not an address"),
                "such as 127.0.0.1:10809, [::1]:10809 or unix:drive.sock",
            )),
        }
    }
    addresses
}

/// What is to be served, with a name and a store for each.
fn setups(args: &Args, problems: &mut Problems) -> Vec<Setup> {
    let memory = args.store.len() == 1 && args.store[0] == "memory";
    if !memory && args.store.len() != args.drives.len() {
        problems.0.push(on_command_line(
            format!(
                "{} drives, and {} stores",
                args.drives.len(),
                args.store.len()
            ),
            "give --store once for each drive, or --store memory",
        ));
    }
    let mut setups: Vec<Setup> = Vec::new();
    for (index, id) in args.drives.iter().enumerate() {
        let sheet = match catalogue::drive(id) {
            Ok(sheet) => sheet,
            Err(all) => {
                problems.0.extend(all.0);
                continue;
            }
        };
        let before = setups.iter().filter(|it| it.sheet.id == sheet.id).count();
        let name = match before {
            0 => sheet.id.clone(),
            _ => format!("{}-{}", sheet.id, before + 1),
        };
        let store = args.store.get(index).map_or("memory", String::as_str);
        setups.push(Setup {
            serial: sheet.nvme.serial(u64::from(sum_of(&name))),
            sheet,
            name,
            size: args.size,
            store: match store {
                "memory" => StoreChoice::Memory,
                path => StoreChoice::File(path.into()),
            },
            precondition: args.state.into(),
            seed: args.seed + index as u64,
        });
    }
    setups
}

/// A number of the name, for a serial number that stays the same.
fn sum_of(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |sum, byte| {
        (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

fn shown(address: &Address) -> String {
    match address {
        Address::Tcp(address) => address.to_string(),
        Address::Unix(path) => format!("unix:{}", path.display()),
    }
}

/// How to reach what is served: lines to be copied.
fn connect_lines(drives: &[Served], nbd: &[Address], vhost_user: &[PathBuf]) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, drive) in drives.iter().enumerate() {
        let sheet = drive.sheet();
        lines.push(format!(
            "{}: {}, {:.3} GB",
            drive.name(),
            sheet.name,
            drive.bytes() as f64 * 1e-9
        ));
        for address in nbd {
            let uri = match address {
                Address::Tcp(address) => format!("nbd://{address}/{}", drive.name()),
                Address::Unix(path) => {
                    let path = path.canonicalize().unwrap_or(path.clone());
                    format!("nbd+unix:///{}?socket={}", drive.name(), path.display())
                }
            };
            lines.push(format!("  nbdinfo '{uri}'"));
            lines.push(format!(
                "  fio --name=job --ioengine=nbd --uri='{uri}' --rw=randread --bs=4k --iodepth=1 --time_based --runtime=10"
            ));
            lines.push(format!(
                "  qemu-system-x86_64 ... -drive if=virtio,format=raw,file='{uri}'"
            ));
        }
        if let Some(path) = vhost_user.get(index) {
            lines.push(format!(
                "  qemu-system-x86_64 ... -object memory-backend-memfd,id=mem,size=4G,share=on -numa node,memdev=mem \
                 -chardev socket,id=disk{index},path={},reconnect=1 -device vhost-user-blk-pci,chardev=disk{index}",
                path.canonicalize().unwrap_or(path.clone()).display()
            ));
        }
    }
    lines
}

/// SIGINT and SIGTERM end the loop in order; SIGUSR1 cuts the power of all drives.
fn stop_on_signals(server: &EventLoop) -> Result<(), Failure> {
    use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
    let failed = |error| Failure::failed("signals", error);
    for signal in [SIGINT, SIGTERM] {
        let descriptor = server.stopper().descriptor().map_err(failed)?;
        signal_hook::low_level::pipe::register(signal, descriptor).map_err(failed)?;
    }
    let switch = server.power_switch().map_err(failed)?;
    signal_hook::low_level::pipe::register(SIGUSR1, switch).map_err(failed)?;
    Ok(())
}
