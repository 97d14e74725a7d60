//! `drivelab serve` from outside: what it prints and refuses, and what is there after it was killed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use live::nbd::wire::{self, Request, command, option};

const BLOCK: usize = 4096;
const SIZE: &str = "4M";
const BLOCKS: u64 = 1024;

/// A server that is killed when the test ends.
struct Server {
    child: Child,
    socket: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn drivelab(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drivelab"));
    command.arg("serve").args(args);
    command
}

/// Serves this drive from a store in the folder, at full speed; comes back when it listens.
fn serve(folder: &Path, drive: &str, more: &[&str]) -> Server {
    let (socket, store) = (folder.join("nbd.sock"), folder.join("disk.img"));
    // A store that is there keeps its size.
    let size: &[&str] = if store.exists() {
        &[]
    } else {
        &["--size", SIZE]
    };
    let mut child = drivelab(&[drive, "--speed", "0"])
        .args(size)
        .arg("--store")
        .arg(store)
        .arg("--nbd")
        .arg(format!("unix:{}", socket.display()))
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("drivelab starts");
    let mut first = String::new();
    let out = child.stdout.as_mut().expect("piped");
    BufReader::new(out).read_line(&mut first).expect("a line");
    assert!(first.starts_with(drive), "{first}");
    Server { child, socket }
}

/// Enough of an NBD client: simple replies, one or several commands at a time.
struct Client(UnixStream);

impl Client {
    fn connect(server: &Server) -> Client {
        let start = Instant::now();
        let mut stream = loop {
            match UnixStream::connect(&server.socket) {
                Ok(stream) => break stream,
                Err(error) if start.elapsed() > Duration::from_secs(10) => panic!("{error}"),
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).expect("a greeting");
        stream.write_all(&3u32.to_be_bytes()).expect("flags");
        stream
            .write_all(&wire::option(option::EXPORT_NAME, b""))
            .expect("the export");
        let mut export = [0; 10];
        stream.read_exact(&mut export).expect("its size");
        assert_eq!(wire::be64(&export, 0), BLOCKS * BLOCK as u64);
        Client(stream)
    }

    fn send(&mut self, command: u16, block: u64, data: &[u8]) -> std::io::Result<()> {
        let length = match command {
            command::FLUSH => 0,
            _ => BLOCK as u32,
        };
        let request = Request {
            flags: 0,
            command,
            cookie: block,
            offset: if length == 0 { 0 } else { block * BLOCK as u64 },
            length,
        };
        self.0.write_all(&[&request.emit()[..], data].concat())
    }

    /// Reads a block; the error of the answer, 0 if there is none.
    fn error(&mut self, block: u64) -> u32 {
        self.send(command::READ, block, &[]).expect("sent");
        let mut head = [0; wire::SIMPLE_REPLY];
        self.0.read_exact(&mut head).expect("an answer");
        let error = wire::be32(&head, 4);
        if error == 0 {
            self.0.read_exact(&mut [0; BLOCK]).expect("data");
        }
        error
    }

    /// The next reply: the block it is of.
    fn reply(&mut self) -> std::io::Result<u64> {
        let mut head = [0; wire::SIMPLE_REPLY];
        self.0.read_exact(&mut head)?;
        assert_eq!(wire::be32(&head, 4), 0, "an error");
        Ok(wire::be64(&head, 8))
    }

    /// Writes a mebibyte at the beginning by one command.
    fn write_much(&mut self) {
        const MIB: u32 = 1 << 20;
        let request = Request {
            flags: 0,
            command: command::WRITE,
            cookie: 0,
            offset: 0,
            length: MIB,
        };
        self.0.write_all(&request.emit()).expect("sent");
        self.0.write_all(&[1; MIB as usize]).expect("sent");
        self.reply().expect("an answer");
    }

    fn read(&mut self, block: u64) -> Vec<u8> {
        self.send(command::READ, block, &[]).expect("sent");
        self.reply().expect("an answer");
        let mut data = vec![0; BLOCK];
        self.0.read_exact(&mut data).expect("data");
        data
    }
}

/// A block that says in each of its sectors which block it is and when it was written.
fn stamped(block: u64, generation: u64) -> Vec<u8> {
    let mut sector = [0; 512];
    sector[..8].copy_from_slice(&block.to_be_bytes());
    sector[8..16].copy_from_slice(&generation.to_be_bytes());
    sector.repeat(BLOCK / 512)
}

/// Writes generations of stamps, killing the server in the middle of one; then reads everything. What counts as durable
/// are acknowledged writes, or with `flushes` those before the last acknowledged flush.
fn killed_in_the_middle(drive: &str, flushes: bool, after: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = serve(folder.path(), drive, &[]);
    let mut client = Client::connect(&server);
    let mut acknowledged = vec![0u64; BLOCKS as usize];
    let mut sent = vec![0u64; BLOCKS as usize];
    let mut durable = acknowledged.clone();
    let mut generation = 0;
    let mut writes = 0;
    'all: loop {
        generation += 1;
        for first in (0..BLOCKS).step_by(16) {
            for block in first..first + 16 {
                sent[block as usize] = generation;
                if client
                    .send(command::WRITE, block, &stamped(block, generation))
                    .is_err()
                {
                    break 'all;
                }
            }
            for _ in 0..16 {
                writes += 1;
                if writes == after {
                    server.child.kill().expect("kill -9");
                }
                match client.reply() {
                    Ok(block) => acknowledged[block as usize] = generation,
                    Err(_) => break 'all,
                }
            }
        }
        if flushes {
            if client.send(command::FLUSH, 0, &[]).is_err() || client.reply().is_err() {
                break;
            }
            durable = acknowledged.clone();
        }
    }
    if !flushes {
        durable = acknowledged;
    }
    server.child.wait().expect("it was killed");
    let server = serve(folder.path(), drive, &[]);
    let mut client = Client::connect(&server);
    for block in 0..BLOCKS {
        let data = client.read(block);
        let found = wire::be64(&data, 8);
        assert!(
            data.chunks(512).all(|sector| sector == &data[..512]),
            "block {block} is torn"
        );
        let expected = if found == 0 {
            vec![0; BLOCK]
        } else {
            stamped(block, found)
        };
        assert_eq!(data, expected, "block {block} is another's");
        let (least, most) = (durable[block as usize], sent[block as usize]);
        assert!(
            (least..=most).contains(&found),
            "block {block}: {found}, not in {least}..={most}"
        );
    }
    assert!(generation > 1, "killed too early to say anything");
}

#[test]
fn after_kill_9_what_a_drive_without_cache_acknowledged_is_there() {
    for after in [1_500, 2_345] {
        killed_in_the_middle("p4800x-375", false, after);
    }
}

#[test]
fn after_kill_9_what_was_flushed_is_there() {
    for after in [1_500, 3_210] {
        killed_in_the_middle("950pro-256", true, after);
    }
}

#[test]
fn an_orderly_end_loses_nothing_and_is_remembered() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = serve(folder.path(), "950pro-256", &[]);
    let mut client = Client::connect(&server);
    client
        .send(command::WRITE, 5, &stamped(5, 1))
        .expect("sent");
    client.reply().expect("an answer");
    let pid = server.child.id().to_string();
    let asked = Command::new("kill")
        .args(["-INT", &pid])
        .status()
        .expect("kill");
    assert!(asked.success());
    assert!(server.child.wait().expect("it ends").success());
    let state = std::fs::read_to_string(folder.path().join("disk.img.state")).expect("a state");
    assert!(state.contains("clean true"), "{state}");
    assert!(state.contains("host_write_commands 1\n"), "{state}");
    assert!(!server.socket.exists(), "the socket is left behind");
    let server = serve(folder.path(), "950pro-256", &[]);
    assert_eq!(Client::connect(&server).read(5), stamped(5, 1));
}

#[test]
fn a_power_cut_takes_what_a_volatile_cache_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path(), "950pro-256", &["--power-cut"]);
    let mut client = Client::connect(&server);
    client
        .send(command::WRITE, 1, &stamped(1, 1))
        .expect("sent");
    client.reply().expect("an answer");
    client.send(command::FLUSH, 0, &[]).expect("sent");
    client.reply().expect("an answer");
    client
        .send(command::WRITE, 1, &stamped(1, 2))
        .expect("sent");
    client.reply().expect("an answer");
    let pid = server.child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-USR1", &pid])
            .status()
            .expect("kill")
            .success()
    );
    // The connection ends, as a drive's does that loses its power.
    assert!(client.reply().is_err());
    let found = Client::connect(&server).read(1);
    assert!(
        found == stamped(1, 1) || found == stamped(1, 2),
        "neither old nor new"
    );
}

/// Waits for the server to end in order.
fn end(mut server: Server) {
    let pid = server.child.id().to_string();
    let kill = Command::new("kill").args(["-INT", &pid]).status();
    assert!(kill.expect("kill").success());
    assert!(server.child.wait().expect("it ends").success());
}

#[test]
fn what_is_set_on_the_drive_is_remembered() {
    let folder = tempfile::tempdir().expect("a folder");
    let set = [
        "--lba-format",
        "4096+8",
        "--percentage-used",
        "104",
        "--power-limit",
        "12W",
        "--uptime",
        "1h",
    ];
    end(serve(folder.path(), "p4800x-375", &set));
    let state = || std::fs::read_to_string(folder.path().join("disk.img.state")).expect("a state");
    for line in ["\nlba_format 4\n", "\npercentage_used 104\n"] {
        assert!(state().contains(line), "{line}: {}", state());
    }
    // An existing store: wear is set anew, the format is what it is.
    end(serve(
        folder.path(),
        "p4800x-375",
        &["--percentage-used", "50"],
    ));
    assert!(state().contains("\nlba_format 4\npr"), "{}", state());
    assert!(state().contains("\npercentage_used 50\n"), "{}", state());
    let store = folder.path().join("disk.img").display().to_string();
    for (drive, option, value, word) in [
        (
            "p4800x-375",
            "--lba-format",
            "512",
            "it is in LBA format 4096+8",
        ),
        ("p4800x-375", "--lba-format", "4096+3", "it offers 512"),
        ("p4800x-375", "--power-limit", "1W", "idle power"),
        ("950pro-256", "--power-limit", "10W", "--power-limit"),
        ("950pro-256", "--uptime", "1h", "--uptime"),
    ] {
        let args = [
            drive, "--size", SIZE, "--nbd", "unix:x", "--store", &store, option, value,
        ];
        let output = drivelab(&args).output().expect("drivelab starts");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(word), "{word}: {message}");
    }
}

#[test]
fn what_the_map_was_like_is_remembered() {
    let folder = tempfile::tempdir().expect("a folder");
    let ftl = || {
        let state = std::fs::read_to_string(folder.path().join("disk.img.state")).expect("a state");
        let line = state.lines().find_map(|line| line.strip_prefix("ftl "));
        line.expect("a line").to_owned()
    };
    end(serve(folder.path(), "950pro-256", &["--state", "fresh"]));
    assert_eq!(ftl(), "fresh");
    end(serve(folder.path(), "950pro-256", &[]));
    assert_eq!(ftl(), "fresh");
    end(serve(folder.path(), "950pro-256", &["--state", "filled"]));
    assert_eq!(ftl(), "filled");
    end(serve(folder.path(), "950pro-256", &[]));
    assert_eq!(ftl(), "filled");
}

/// Every figure that the dashboard shows is one that the server gives, and all that a user must see are shown.
#[test]
fn the_dashboard_asks_for_figures_that_there_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let metrics = folder.path().join("metrics");
    let address = format!("unix:{}", metrics.display());
    let _server = serve(folder.path(), "p4800x-375", &["--metrics", &address]);
    let mut stream = UnixStream::connect(metrics).expect("it listens");
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\n\r\n")
        .expect("sent");
    let mut scraped = String::new();
    stream.read_to_string(&mut scraped).expect("figures");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/grafana.json");
    let text = std::fs::read_to_string(path).expect("the dashboard");
    let dashboard: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let mut asked = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().expect("an expression");
            let words = expression.split(|it: char| !it.is_alphanumeric() && it != '_');
            let names = words.filter(|word| word.starts_with("drivelab_"));
            asked.extend(names.map(String::from));
        }
    }
    for name in &asked {
        let given = scraped.lines().any(|line| {
            let rest = line.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.starts_with('{') || rest.starts_with(' '))
        });
        assert!(given, "{name} is not in:\n{scraped}");
    }
    for shown in [
        "reads_total",
        "written_bytes_total",
        "model_latency_seconds_total",
        "lateness_seconds",
        "late_ratio",
        "queue_depth",
        "percentage_used",
        "write_amplification_ratio",
    ] {
        assert!(
            asked.contains(&format!("drivelab_{shown}")),
            "{shown}: {asked:?}"
        );
    }
}

/// What is refused, with exit code 2 and a word that must be in the message.
#[test]
fn bad_arguments_and_foreign_stores_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("foreign.img"), "not ours").expect("written");
    drop(serve(folder.path(), "p4800x-375", &[]));
    let state = path("disk.img.state");
    let good = std::fs::read_to_string(&state).expect("a state");
    let refused = |args: &[&str], word: &str| {
        let output = drivelab(args).output().expect("drivelab starts");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(word), "{word}: {message}");
    };
    let nbd = format!("unix:{}", path("other.sock"));
    refused(&["p4800x-375"], "no address");
    refused(&["p4800x-375", "--nbd", "0.0.0.0:10809"], "--allow-remote");
    refused(&["p4800x-375", "--nbd", "nowhere"], "not an address");
    let unknown = ["p4800x-375", "--nbd", "no-such-host.invalid:10809"];
    refused(&unknown, "no such host");
    refused(&["p4800x-357", "--nbd", &nbd], "p4800x-375");
    refused(
        &["p4800x-375", "--nbd", &nbd, "--size", "400G"],
        "a multiple of 4096",
    );
    let both = ["p4800x-375", "--nbd", &nbd, "--compensate", "--speed", "0"];
    refused(&both, "leave one of them out");
    let store = path("foreign.img");
    refused(&["p4800x-375", "--nbd", &nbd, "--store", &store], "no ");
    let store = path("disk.img");
    let ours = [
        "p4800x-375",
        "--nbd",
        &nbd,
        "--store",
        &store,
        "--size",
        SIZE,
    ];
    refused(
        &["900p-280", "--nbd", &nbd, "--store", &store, "--size", SIZE],
        "belongs to",
    );
    refused(
        &[
            "p4800x-375",
            "--nbd",
            &nbd,
            "--store",
            &store,
            "--size",
            "8M",
        ],
        "belongs to",
    );
    std::fs::write(&state, good.replace("power_cycles 1", "power_cycles 7")).expect("written");
    refused(&ours, "checksum");
    std::fs::write(&state, good.replace("store 2", "store 9")).expect("written");
    refused(&ours, "version");
    std::fs::write(&state, &good).expect("written");
    let _server = serve(folder.path(), "p4800x-375", &[]);
    refused(&ours, "in use");
}

/// An address that cannot be had is told before anything is opened or measured, with what would be right.
#[test]
fn an_address_that_cannot_be_had_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let unix = |name: &str| format!("unix:{}", path(name));
    std::fs::write(path("file"), "mine").expect("written");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken_address(&taken);
    let _other = UnixListener::bind(folder.path().join("taken")).expect("a socket");
    let refused = |args: &[&str], words: &[&str]| {
        let store = path("new.img");
        let mut command = drivelab(&["p4800x-375", "--size", SIZE, "--store", &store]);
        let output = command.args(args).output().expect("drivelab starts");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        for word in words {
            assert!(message.contains(word), "{args:?}: {word}: {message}");
        }
        assert!(
            !message.contains("this machine adds"),
            "measured: {message}"
        );
        let left: Vec<_> = std::fs::read_dir(folder.path())
            .expect("a folder")
            .collect();
        assert_eq!(left.len(), 2, "{left:?}");
    };
    let already = "listens there already";
    for option in ["--nbd", "--nvme-tcp", "--metrics"] {
        let option_and_address = format!("{option} {taken}");
        refused(
            &["--nbd", &unix("new"), option, &taken],
            &[&option_and_address, already, "another port"],
        );
    }
    refused(&["--nbd", &unix("taken")], &[already, "another path"]);
    refused(&["--nbd", &unix("file")], &["not a socket"]);
    let nowhere = unix("none/nbd");
    refused(&["--nbd", &nowhere], &["no such folder", "make it first"]);
    let long = path(&"long".repeat(40));
    refused(&["--vhost-user", &long], &["too long", "at most 107"]);
    // Reserved for documentation: no machine has it.
    let foreign = ["--allow-remote", "--nbd", "192.0.2.1:10809"];
    refused(&foreign, &["no such address", "127.0.0.1"]);
    // Everything that is wrong at once.
    refused(
        &["--nbd", &taken, "--control", &path("none/control")],
        &["--nbd", "--control", already, "no such folder"],
    );
}

fn taken_address(listener: &TcpListener) -> String {
    listener.local_addr().expect("an address").to_string()
}

/// The value of a figure in what `status` answers.
fn figure(control: &Path, name: &str) -> f64 {
    let status = tell(control, "status");
    let of_line = |line: &str| {
        let (key, value) = line.rsplit_once(' ')?;
        let key = key.split('{').next()?;
        (key.strip_prefix("drivelab_") == Some(name)).then(|| value.parse().ok())?
    };
    let value = status.lines().find_map(of_line);
    value.unwrap_or_else(|| panic!("no {name}: {status}"))
}

/// What is measured at the start is what is subtracted.
#[test]
fn compensation_subtracts_what_was_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let (socket, control) = (folder.path().join("nbd"), folder.path().join("control"));
    let run = |more: &[&str]| {
        let said = folder.path().join("said");
        let mut child = drivelab(&["p4800x-375", "--size", SIZE, "--nbd"])
            .arg(format!("unix:{}", socket.display()))
            .arg("--control")
            .arg(&control)
            .args(more)
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&said).expect("a file"))
            .spawn()
            .expect("drivelab starts");
        let out = child.stdout.as_mut().expect("piped");
        BufReader::new(out)
            .read_line(&mut String::new())
            .expect("a line");
        let server = Server {
            child,
            socket: socket.clone(),
        };
        let seconds = figure(&control, "compensation_seconds");
        end(server);
        (seconds, std::fs::read_to_string(said).expect("text"))
    };
    let (seconds, said) = run(&[]);
    assert!(seconds == 0.0 && !said.contains("earlier"), "{said}");
    let (seconds, said) = run(&["--compensate"]);
    let line = said.lines().find(|line| line.contains("us earlier"));
    let told: Option<f64> = line.and_then(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.iter().find_map(|word| word.parse().ok())
    });
    let told = told.unwrap_or_else(|| panic!("not told: {said}"));
    assert!(
        told > 0.0 && (told - seconds * 1e6).abs() < 0.06,
        "{said} {seconds}"
    );
}

/// Says a line at the control socket; all that is answered to it.
fn tell(socket: &Path, line: &str) -> String {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    writeln!(stream, "{line}").expect("sent");
    let mut lines = BufReader::new(stream).lines();
    let mut said = String::new();
    while !(said.ends_with("ok\n") || said.starts_with("error: ")) {
        let line = lines.next().expect("it answers");
        said += &(line.expect("text") + "\n");
    }
    said
}

#[test]
fn faults_happen_by_script_and_by_control() {
    const EIO: u32 = 5;
    let folder = tempfile::tempdir().expect("a folder");
    let (control, script) = (folder.path().join("control"), folder.path().join("script"));
    // Blocks 10 and 11, of eight sectors.
    std::fs::write(&script, "# unreadable\nmedium-error 80 16\n").expect("written");
    let text = |path: &Path| path.display().to_string();
    let more = ["--control", &text(&control), "--fault", &text(&script)];
    let server = serve(folder.path(), "p4800x-375", &more);
    let mut client = Client::connect(&server);
    let ok = |line: &str| assert_eq!(tell(&control, line), "ok\n", "{line}");
    // The script's faults come at the first tick of the loop.
    let start = Instant::now();
    while client.error(10) == 0 {
        assert!(start.elapsed() < Duration::from_secs(10), "no fault");
    }
    assert_eq!([client.error(9), client.error(11)], [0, EIO]);
    client
        .send(command::WRITE, 10, &stamped(10, 1))
        .expect("sent");
    assert_eq!(client.reply().expect("an answer"), 10);
    assert_eq!([client.error(10), client.error(11)], [0, EIO]);
    ok("heal 88 8");
    ok("p4800x-375: medium-error 8 1");
    assert_eq!([client.error(11), client.error(1)], [0, EIO]);
    ok("wear 104");
    ok("ambient 95");
    ok("refresh");
    let figure = r#"drivelab_percentage_used{drive="p4800x-375"} 104"#;
    assert!(tell(&control, "status").contains(figure));
    assert!(tell(&control, "nonsense").starts_with("error: "));
    assert!(tell(&control, "other: stuck").starts_with("error: "));
    // Nothing completes until it is freed.
    ok("stuck");
    client.send(command::READ, 10, &[]).expect("sent");
    let wait = |client: &Client, time| client.0.set_read_timeout(time).expect("a time");
    wait(&client, Some(Duration::from_millis(100)));
    assert!(client.reply().is_err(), "it is stuck");
    wait(&client, None);
    ok("unstuck");
    assert_eq!(client.reply().expect("an answer"), 10);
    // Connections of users end, those of control do not.
    for fault in ["drop", "power-cut"] {
        let mut client = Client::connect(&server);
        ok(fault);
        assert_eq!(client.0.read(&mut [0]).expect("an end"), 0, "{fault}");
    }
    assert_eq!(Client::connect(&server).read(10), stamped(10, 1));
}

/// Heat by the control socket is felt by commands of a client, and ends when the air has cooled down.
#[test]
fn a_served_drive_throttles_while_it_is_too_hot() {
    let folder = tempfile::tempdir().expect("a folder");
    let control = folder.path().join("control");
    let text = control.display().to_string();
    let server = serve(folder.path(), "p4800x-375", &["--control", &text]);
    let mut client = Client::connect(&server);
    let ok = |line: &str| assert_eq!(tell(&control, line), "ok\n", "{line}");
    // Of 300 MiB, more than the governor lets through in its window; by the model, in seconds.
    let latency = |client: &mut Client| {
        let before = figure(&control, "model_latency_seconds_total");
        (0..300).for_each(|_| client.write_much());
        figure(&control, "model_latency_seconds_total") - before
    };
    // At full speed the model's time is that of its commands: ten minutes are a read that takes so long.
    let in_air_of = |celsius: u32, client: &mut Client| {
        ok(&format!("ambient {celsius}"));
        ok("slow 10min");
        client.read(0);
        ok("slow 0us");
    };
    let cool = latency(&mut client);
    in_air_of(120, &mut client);
    assert!(figure(&control, "temperature_celsius") > 100.0);
    let hot = latency(&mut client);
    in_air_of(25, &mut client);
    assert!(figure(&control, "temperature_celsius") < 70.0);
    let again = latency(&mut client);
    assert!(hot > 1.5 * cool, "{hot} s, cool {cool} s");
    assert!(
        (again / cool - 1.0).abs() < 0.05,
        "{again} s, before {cool} s"
    );
}

/// What follows a power-on in the background, begun by the control socket, makes a client's reads wait until it is done.
#[test]
fn reads_of_a_served_drive_wait_for_the_refresh() {
    let folder = tempfile::tempdir().expect("a folder");
    let control = folder.path().join("control");
    let text = control.display().to_string();
    let server = serve(folder.path(), "p4800x-375", &["--control", &text]);
    let mut client = Client::connect(&server);
    let ok = |line: &str| assert_eq!(tell(&control, line), "ok\n", "{line}");
    let latency = |client: &mut Client| {
        let before = figure(&control, "model_latency_seconds_total");
        for read in 0..10_000_u64 {
            client.read(read.wrapping_mul(0x9e37_79b9) % BLOCKS);
        }
        figure(&control, "model_latency_seconds_total") - before
    };
    let before = latency(&mut client);
    ok("refresh");
    let during = latency(&mut client);
    // Three hours later, as the model counts.
    ok("slow 4h");
    client.read(0);
    ok("slow 0us");
    let after = latency(&mut client);
    println!("{before} {during} {after}");
    assert!(
        during - before > 3.0 * (after - before).abs(),
        "{before} {during} {after}"
    );
}
