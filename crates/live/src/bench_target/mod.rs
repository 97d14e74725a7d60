//! Benchmark of any NVMe/TCP or NBD target, with a client that never sleeps.
//!
//! One connection and one thread that is always busy: due commands are sent with one system call, and received bytes
//! are read with one. So the client adds as little latency as is possible with the kernel's TCP. Latency is measured
//! from before the sending system call to after the receiving one. Not supported: several connections, verification of
//! data.

mod nbd;
mod nvme;
mod uri;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use model::Span;
use model::random::Stream as Random;
use statistics::Histogram;

pub use uri::Uri;

use crate::outbox::Outbox;

/// Bytes read with one system call.
const INPUT: usize = 1 << 20;
/// Time after which a silent target is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Access pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Sequential reads.
    Read,
    /// Sequential writes.
    Write,
    /// Reads at uniformly distributed offsets.
    RandRead,
    /// Writes at uniformly distributed offsets.
    RandWrite,
}

impl Pattern {
    /// All patterns, by fio's names.
    pub const ALL: [(&'static str, Pattern); 4] = [
        ("read", Pattern::Read),
        ("write", Pattern::Write),
        ("randread", Pattern::RandRead),
        ("randwrite", Pattern::RandWrite),
    ];

    const fn writes(self) -> bool {
        matches!(self, Pattern::Write | Pattern::RandWrite)
    }

    const fn random(self) -> bool {
        matches!(self, Pattern::RandRead | Pattern::RandWrite)
    }
}

/// Parameters of a measurement.
#[derive(Clone, Debug)]
pub struct BenchJob {
    /// Access pattern.
    pub pattern: Pattern,
    /// Bytes of a command.
    pub block: u32,
    /// Queue depth.
    pub depth: u16,
    /// Measured time.
    pub time: Duration,
    /// Warm-up time, which is not measured.
    pub ramp: Duration,
    /// Number of measured commands after which the measurement ends early.
    pub commands: u64,
    /// Digests for NVMe/TCP: bit 0 of headers, bit 1 of data.
    pub digests: u8,
}

/// Result of a measurement.
#[derive(Clone, Debug)]
pub struct BenchResult {
    /// Commands that completed in the measured time.
    pub commands: u64,
    /// Commands that failed.
    pub errors: u64,
    /// Measured time in seconds.
    pub seconds: f64,
    /// Latencies of the measured commands.
    pub latencies: Histogram,
    /// CPU seconds of this client, over the whole process.
    pub client_cpu_seconds: f64,
}

impl BenchResult {
    /// Returns the commands per second.
    pub fn iops(&self) -> f64 {
        if self.seconds > 0.0 {
            self.commands as f64 / self.seconds
        } else {
            0.0
        }
    }
}

/// A protocol's client after the connection has been established.
trait Session {
    /// Returns the bytes of the target.
    fn bytes(&self) -> u64;

    /// Returns the maximum bytes of a command.
    fn most(&self) -> u32;

    /// Sends a command; `tag` is below the depth.
    fn send(&mut self, tag: u16, write: bool, offset: u64, payload: &[u8], out: &mut Outbox);

    /// Processes received bytes; calls `done` with the tag of each completed command and whether it succeeded.
    fn input(
        &mut self,
        bytes: &[u8],
        out: &mut Outbox,
        done: &mut dyn FnMut(u16, bool),
    ) -> Result<(), String>;
}

/// A connected socket.
enum ClientSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl ClientSocket {
    fn tcp(address: &str) -> Result<ClientSocket, String> {
        let socket = TcpStream::connect(address).map_err(|error| format!("{address}: {error}"))?;
        socket
            .set_nodelay(true)
            .map_err(|error| error.to_string())?;
        Ok(ClientSocket::Tcp(socket))
    }

    fn unix(path: &str) -> Result<ClientSocket, String> {
        let socket = UnixStream::connect(path).map_err(|error| format!("{path}: {error}"))?;
        Ok(ClientSocket::Unix(socket))
    }

    fn poll(&mut self) -> Result<(), String> {
        match self {
            ClientSocket::Tcp(socket) => socket.set_nonblocking(true),
            ClientSocket::Unix(socket) => socket.set_nonblocking(true),
        }
        .map_err(|error| error.to_string())
    }

    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            ClientSocket::Tcp(socket) => socket.read(buffer),
            ClientSocket::Unix(socket) => socket.read(buffer),
        }
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            ClientSocket::Tcp(socket) => socket.write(bytes),
            ClientSocket::Unix(socket) => socket.write(bytes),
        }
    }
}

/// A non-blocking socket, with the bytes that wait to be sent.
struct Pipe {
    socket: ClientSocket,
    out: Outbox,
    input: Vec<u8>,
}

impl Pipe {
    fn new(mut socket: ClientSocket) -> Result<Pipe, String> {
        socket.poll()?;
        Ok(Pipe {
            socket,
            out: Outbox::default(),
            input: vec![0; INPUT],
        })
    }

    /// Sends waiting bytes until the socket accepts no more.
    #[inline]
    fn send(&mut self) -> Result<(), String> {
        while !self.out.is_empty() {
            match self.socket.write(self.out.unsent()) {
                Ok(sent) => self.out.sent(sent),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("sending: {error}")),
            }
        }
        Ok(())
    }

    /// Receives bytes into `self.input`; `None` if there are none.
    #[inline]
    fn receive(&mut self) -> Result<Option<usize>, String> {
        match self.socket.read(&mut self.input) {
            Ok(0) => Err("the target closed the connection".into()),
            Ok(bytes) => Ok(Some(bytes)),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Ok(None)
            }
            Err(error) => Err(format!("receiving: {error}")),
        }
    }

    /// Exchanges bytes until `step`, which is called with received bytes, returns a result.
    fn until<T>(
        &mut self,
        mut step: impl FnMut(&[u8], &mut Outbox) -> Result<Option<T>, String>,
    ) -> Result<T, String> {
        let start = Instant::now();
        loop {
            self.send()?;
            let came = self.receive()?.unwrap_or(0);
            if let Some(found) = step(&self.input[..came], &mut self.out)? {
                return Ok(found);
            }
            if start.elapsed() > PATIENCE {
                return Err("the target does not answer".into());
            }
        }
    }
}

/// Measures a target.
///
/// # Errors
/// The reason why it cannot be measured.
pub fn measure(uri: &Uri, job: &BenchJob) -> Result<BenchResult, String> {
    match uri {
        Uri::NvmeTcp { address, nqn } => {
            let (pipe, session, _admin) = nvme::connect(address, nqn.as_deref(), job)?;
            run(pipe, session, job)
        }
        Uri::NbdTcp { address, export } => {
            let (pipe, session) = nbd::connect(ClientSocket::tcp(address)?, export, job)?;
            run(pipe, session, job)
        }
        Uri::NbdUnix { path, export } => {
            let (pipe, session) = nbd::connect(ClientSocket::unix(path)?, export, job)?;
            run(pipe, session, job)
        }
    }
}

/// Addresses of the next commands.
struct Offsets {
    random: Option<Random>,
    blocks: u64,
    next: u64,
    block: u64,
}

impl Offsets {
    #[inline]
    fn draw(&mut self) -> u64 {
        let index = match &mut self.random {
            Some(random) => random.uniform_below(self.blocks),
            None => {
                let index = self.next;
                self.next = if index + 1 == self.blocks {
                    0
                } else {
                    index + 1
                };
                index
            }
        };
        index * self.block
    }
}

fn run<S: Session>(mut pipe: Pipe, mut session: S, job: &BenchJob) -> Result<BenchResult, String> {
    let blocks = session.bytes() / u64::from(job.block);
    if blocks == 0 || job.block > session.most() {
        return Err(format!(
            "blocks of {} bytes: the target has {} bytes and takes {} in a command",
            job.block,
            session.bytes(),
            session.most()
        ));
    }
    let mut offsets = Offsets {
        random: job.pattern.random().then(|| Random::new(1, "bench-target")),
        blocks,
        next: 0,
        block: job.block.into(),
    };
    let write = job.pattern.writes();
    let mut payload = vec![0; job.block as usize];
    let mut random = Random::new(2, "payload");
    for chunk in payload.chunks_mut(8) {
        chunk.copy_from_slice(&random.bits().to_le_bytes()[..chunk.len()]);
    }
    let mut sent = vec![Instant::now(); usize::from(job.depth)];
    let mut idle: Vec<u16> = (0..job.depth).collect();
    let start = Instant::now();
    let (begin, end) = (start + job.ramp, start + job.ramp + job.time);
    let mut measured = BenchResult {
        commands: 0,
        errors: 0,
        seconds: 0.0,
        latencies: Histogram::default(),
        client_cpu_seconds: cpu_seconds(),
    };
    let mut now = start;
    let mut heard = start;
    let mut done = Vec::with_capacity(usize::from(job.depth));
    while now < end && measured.commands < job.commands {
        for tag in idle.drain(..) {
            sent[usize::from(tag)] = now;
            session.send(tag, write, offsets.draw(), &payload, &mut pipe.out);
        }
        pipe.send()?;
        let came = pipe.receive()?;
        now = Instant::now();
        let Some(came) = came else {
            if now.duration_since(heard) > PATIENCE {
                return Err("the target does not answer".into());
            }
            continue;
        };
        heard = now;
        session.input(&pipe.input[..came], &mut pipe.out, &mut |tag, success| {
            done.push((tag, success));
        })?;
        for (tag, success) in done.drain(..) {
            idle.push(tag);
            measured.errors += u64::from(!success);
            if now >= begin && now < end {
                let latency = now.duration_since(sent[usize::from(tag)]);
                measured.commands += 1;
                measured
                    .latencies
                    .record(Span::from_ns(latency.as_nanos() as u64));
            }
        }
    }
    measured.seconds = now.min(end).saturating_duration_since(begin).as_secs_f64();
    measured.client_cpu_seconds = cpu_seconds() - measured.client_cpu_seconds;
    Ok(measured)
}

/// Returns the CPU time of this process so far.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
