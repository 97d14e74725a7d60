//! A served drive, with minimal clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use live::nbd::wire::{self, NbdRequest, command, option};

pub(crate) const BLOCK: usize = 4096;
pub(crate) const SIZE: &str = "4M";
pub(crate) const BLOCKS: u64 = 1024;

/// A server that is killed when the test ends.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) socket: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn drivelab(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drivelab"));
    command.arg("serve").args(args);
    command
}

/// Serves this drive from a store in the folder, at full speed; returns when it listens.
pub(crate) fn serve(folder: &Path, drive: &str, more: &[&str]) -> Server {
    serve_with(folder, drive, more, Stdio::inherit())
}

/// Serves with its messages in the file `log` in the folder.
pub(crate) fn serve_logged(folder: &Path, drive: &str, more: &[&str]) -> Server {
    let log = std::fs::File::create(folder.join("log")).expect("a file");
    serve_with(folder, drive, more, Stdio::from(log))
}

/// Serves with this standard error.
pub(crate) fn serve_with(folder: &Path, drive: &str, more: &[&str], stderr: Stdio) -> Server {
    let (socket, store) = (folder.join("nbd.sock"), folder.join("disk.img"));
    // An existing store keeps its size.
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
        .stderr(stderr)
        .spawn()
        .expect("drivelab starts");
    let first = first_line(&mut child);
    let log = || std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    assert!(first.starts_with(drive), "{first}{}", log());
    Server { child, socket }
}

/// Returns the first line of its output, which must be piped: at that time it listens.
pub(crate) fn first_line(child: &mut Child) -> String {
    let mut first = String::new();
    let out = child.stdout.as_mut().expect("piped");
    BufReader::new(out).read_line(&mut first).expect("a line");
    first
}

/// Connects to a server that is starting. A socket refuses connections between its creation and listening.
pub(crate) fn connected(server: &Server) -> UnixStream {
    let start = Instant::now();
    loop {
        match UnixStream::connect(&server.socket) {
            Ok(stream) => break stream,
            Err(error) if start.elapsed() > Duration::from_secs(10) => panic!("{error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// A minimal NBD client: simple replies, one or several commands at a time.
pub(crate) struct Client(pub(crate) UnixStream);

impl Client {
    pub(crate) fn connect(server: &Server) -> Client {
        Client::over(connected(server))
    }

    /// Chooses the default export over this connection.
    pub(crate) fn over(mut stream: UnixStream) -> Client {
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

    pub(crate) fn send(&mut self, command: u16, block: u64, data: &[u8]) -> std::io::Result<()> {
        let length = match command {
            command::FLUSH => 0,
            _ => BLOCK as u32,
        };
        let request = NbdRequest {
            flags: 0,
            command,
            cookie: block,
            offset: if length == 0 { 0 } else { block * BLOCK as u64 },
            length,
        };
        self.0.write_all(&[&request.emit()[..], data].concat())
    }

    /// Reads a block; returns the error of the answer, 0 for success.
    pub(crate) fn error(&mut self, block: u64) -> u32 {
        self.send(command::READ, block, &[]).expect("sent");
        let mut head = [0; wire::SIMPLE_REPLY];
        self.0.read_exact(&mut head).expect("an answer");
        let error = wire::be32(&head, 4);
        if error == 0 {
            self.0.read_exact(&mut [0; BLOCK]).expect("data");
        }
        error
    }

    /// Returns the block number of the next reply.
    pub(crate) fn reply(&mut self) -> std::io::Result<u64> {
        let mut head = [0; wire::SIMPLE_REPLY];
        self.0.read_exact(&mut head)?;
        assert_eq!(wire::be32(&head, 4), 0, "an error");
        Ok(wire::be64(&head, 8))
    }

    /// Writes a mebibyte at the beginning with one command.
    pub(crate) fn write_much(&mut self) {
        const MIB: u32 = 1 << 20;
        let request = NbdRequest {
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

    pub(crate) fn read(&mut self, block: u64) -> Vec<u8> {
        self.send(command::READ, block, &[]).expect("sent");
        self.reply().expect("an answer");
        let mut data = vec![0; BLOCK];
        self.0.read_exact(&mut data).expect("data");
        data
    }
}

/// Returns a block whose sectors each contain its number and generation.
pub(crate) fn stamped(block: u64, generation: u64) -> Vec<u8> {
    let mut sector = [0; 512];
    sector[..8].copy_from_slice(&block.to_be_bytes());
    sector[8..16].copy_from_slice(&generation.to_be_bytes());
    sector.repeat(BLOCK / 512)
}

/// Waits for the server to shut down in order.
pub(crate) fn end(mut server: Server) {
    let pid = server.child.id().to_string();
    let kill = Command::new("kill").args(["-INT", &pid]).status();
    assert!(kill.expect("kill").success());
    assert!(server.child.wait().expect("it ends").success());
}

/// Sends a line to the control socket; returns the whole answer.
pub(crate) fn tell(socket: &Path, line: &str) -> String {
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

/// Returns the value of a figure in the answer to `status`.
pub(crate) fn figure(control: &Path, name: &str) -> f64 {
    let status = tell(control, "status");
    let of_line = |line: &str| {
        let (key, value) = line.rsplit_once(' ')?;
        let key = key.split('{').next()?;
        (key.strip_prefix("drivelab_") == Some(name)).then(|| value.parse().ok())?
    };
    let value = status.lines().find_map(of_line);
    value.unwrap_or_else(|| panic!("no {name}: {status}"))
}
