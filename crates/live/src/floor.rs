//! Floor of a transport on this machine: the round trip of a 4 KiB reply without any service time.
//!
//! It is measured between two threads. The server's thread spins as it does before a deadline; the client's thread
//! sleeps in `read` or polls. A reply that is due sooner than the floor after its request must be late. With
//! `--compensate`, the floor of a sleeping client is subtracted from every deadline.
//!
//! Other running programs only make round trips longer. So rounds are taken in batches; each has its median, and the
//! least median counts. If no second batch comes near it, the machine is too busy for a measurement.

use std::hint::black_box;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use model::media::{Medium, Precondition};
use model::{Command, Device, Span, Time};
use rustix::event::{EventfdFlags, eventfd};
use tier::{Drive, DriveConfig};

/// Bytes of a request, as in NBD.
const REQUEST: usize = 28;
/// Bytes of a reply: 4 KiB and a header.
const REPLY: usize = 4096 + 16;
/// Round trips of a batch.
const BATCH: usize = 25;
/// Number of batches of a measurement, and number of uncounted batches before.
const BATCHES: usize = 12;
const WARM_UP: usize = 2;
/// Minimum number of batches, if they take longer than the limit below: on a busy machine a round may take as long as
/// another program's time slice.
const FEW: usize = 4;
const ENOUGH: Duration = Duration::from_millis(100);
/// Time after which the batches so far must suffice.
const LONGEST: Duration = Duration::from_millis(400);
/// A batch confirms the least median if its own median is at most this factor larger.
const NEAR: u64 = 2;
/// Number of polls that takes longer than any reply on a machine with a core for each side.
const LOOKS: u32 = 256;
/// Time after which a round is given up.
const PATIENCE: Duration = Duration::from_secs(2);

/// Transport between clients and server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// TCP over loopback.
    Tcp,
    /// A Unix-domain socket.
    Unix,
    /// Memory shared with a guest, and an eventfd to wake it.
    Memory,
}

/// A measured round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trip {
    /// The least median of a batch.
    pub least: Span,
    /// Whether another batch confirms it. If not, other programs kept the machine busy, and the true value may be
    /// anything below.
    pub sure: bool,
}

impl Trip {
    /// Returns the result of these rounds, in nanoseconds and in their order, including those of the warm-up.
    pub fn from_rounds(rounds: &[u64]) -> Trip {
        let batches = rounds.chunks(BATCH);
        let median = |batch: &[u64]| {
            let mut batch = batch.to_vec();
            batch.sort_unstable();
            batch[batch.len() / 2]
        };
        let warm = WARM_UP.min(batches.len().saturating_sub(FEW));
        let mut medians: Vec<u64> = batches.skip(warm).map(median).collect();
        medians.sort_unstable();
        let least = medians.first().copied().unwrap_or_default();
        let whole = rounds.len() / BATCH >= FEW;
        let borne_out = medians.get(1).is_some_and(|&next| next <= NEAR * least);
        Trip {
            least: Span::from_ns(least),
            sure: whole && borne_out,
        }
    }
}

/// Floor of a transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Floor {
    /// Round trip of a client that sleeps until the reply arrives.
    pub asleep: Trip,
    /// Round trip of a client that polls.
    pub polling: Trip,
}

/// Measures a transport: takes about 30 ms, and at most about 800 ms on a busy machine.
///
/// # Errors
/// Errors of the sockets.
pub fn measure(transport: Transport) -> io::Result<Floor> {
    Ok(Floor {
        asleep: round_trip(transport, false)?,
        polling: round_trip(transport, true)?,
    })
}

fn round_trip(transport: Transport, polls: bool) -> io::Result<Trip> {
    match transport {
        Transport::Memory => in_memory(polls),
        Transport::Unix => {
            let (server, client) = UnixStream::pair()?;
            server.set_nonblocking(true)?;
            client.set_nonblocking(polls)?;
            measure_trip(server, client)
        }
        Transport::Tcp => {
            let listener = TcpListener::bind(("127.0.0.1", 0))?;
            let client = TcpStream::connect(listener.local_addr()?)?;
            let (server, _) = listener.accept()?;
            for socket in [&server, &client] {
                socket.set_nodelay(true)?;
            }
            server.set_nonblocking(true)?;
            client.set_nonblocking(polls)?;
            measure_trip(server, client)
        }
    }
}

/// Measures rounds of a client with an answering thread.
fn measure_trip<S: Read + Write + Send>(mut server: S, mut client: S) -> io::Result<Trip> {
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut request = [0; REQUEST];
            // Ends when the client has disconnected.
            while spin(REQUEST, |done| server.read(&mut request[done..])).is_ok()
                && spin(REPLY, |done| server.write(&[0; REPLY][done..])).is_ok()
            {}
        });
        let mut reply = [0; REPLY];
        let trip = timed(|_| {
            spin(REQUEST, |done| client.write(&[0; REQUEST][done..]))?;
            spin(REPLY, |done| client.read(&mut reply[done..]))
        });
        drop(client);
        trip
    })
}

/// Times rounds; `round` is called with the number of each, starting with 1.
fn timed(mut round: impl FnMut(u64) -> io::Result<()>) -> io::Result<Trip> {
    let mut rounds = Vec::with_capacity((WARM_UP + BATCHES) * BATCH);
    let begin = Instant::now();
    let most = (WARM_UP + BATCHES) * BATCH;
    let goes_on = |rounds: &[u64]| {
        let limit = match rounds.len() < (WARM_UP + FEW) * BATCH {
            true => LONGEST,
            false => ENOUGH,
        };
        rounds.is_empty() || (rounds.len() < most && begin.elapsed() < limit)
    };
    while goes_on(&rounds) {
        let start = Instant::now();
        round(rounds.len() as u64 + 1)?;
        rounds.push(start.elapsed().as_nanos() as u64);
    }
    Ok(Trip::from_rounds(&rounds))
}

/// Value that ends the rounds.
const OVER: u64 = u64::MAX;

/// Measures rounds through shared memory, as in rings: the client polls for the reply, or an eventfd wakes it.
fn in_memory(polls: bool) -> io::Result<Trip> {
    let bell = eventfd(0, EventfdFlags::CLOEXEC)?;
    let (asked, answered) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| -> io::Result<()> {
            let (store, mut reply) = ([1_u8; REPLY], [0_u8; REPLY]);
            for round in 1.. {
                until(&asked, round)?;
                if asked.load(Ordering::Acquire) == OVER {
                    break;
                }
                reply.copy_from_slice(black_box(&store));
                black_box(&reply);
                answered.store(round, Ordering::Release);
                if !polls {
                    rustix::io::write(&bell, &1_u64.to_ne_bytes())?;
                }
            }
            Ok(())
        });
        let trip = timed(|round| {
            asked.store(round, Ordering::Release);
            if !polls {
                rustix::io::read(&bell, &mut [0; 8][..])?;
            }
            until(&answered, round)
        });
        asked.store(OVER, Ordering::Release);
        trip
    })
}

/// Spins until the counter has reached this value.
fn until(counter: &AtomicU64, round: u64) -> io::Result<()> {
    let mut patience = SpinDeadline::default();
    while counter.load(Ordering::Acquire) < round {
        patience.wait()?;
    }
    Ok(())
}

/// Repeats a check without sleeping, for the maximum time of a round.
#[derive(Default)]
struct SpinDeadline {
    start: Option<Instant>,
    looks: u32,
}

impl SpinDeadline {
    fn wait(&mut self) -> io::Result<()> {
        if self.start.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            return Err(ErrorKind::TimedOut.into());
        }
        self.looks += 1;
        if self.looks.is_multiple_of(LOOKS) {
            // The other side may be waiting for this core.
            thread::yield_now();
        }
        std::hint::spin_loop();
        Ok(())
    }
}

/// Transfers all of `bytes`, retrying when the socket would block.
fn spin(bytes: usize, mut step: impl FnMut(usize) -> io::Result<usize>) -> io::Result<()> {
    let mut patience = SpinDeadline::default();
    let mut done = 0;
    while done < bytes {
        match step(done) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(more) => done += more,
            Err(error) if error.kind() == ErrorKind::WouldBlock => patience.wait()?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the drive's latency of a 4 KiB read at QD1: the median of a short simulation.
pub fn read_latency(config: &DriveConfig, state: Precondition, seed: u64) -> Span {
    const READS: u64 = 101;
    let mut drive = Drive::new(config, state, seed);
    let blocks = (config.capacity_bytes() / 4096).max(1);
    let mut now = Time::ZERO;
    let mut done = Vec::new();
    let mut latencies = Vec::new();
    for read in 0..READS {
        // Spread over the drive, so that no die or line of the map is preferred.
        let block = read.wrapping_mul(0x9e37_79b9_7f4a_7c15) % blocks;
        drive.submit(now, Command::read(0, block * 4096, 4096));
        while done.is_empty() && drive.next_event() != Time::NEVER {
            now = drive.next_event();
            drive.advance(now, now, &mut done);
        }
        latencies.extend(done.drain(..).map(|completion| completion.anatomy.total()));
        now += Span::from_us(100);
        while drive.next_event() <= now {
            let event = drive.next_event();
            drive.advance(event, event, &mut done);
        }
    }
    latencies.sort_unstable();
    latencies
        .get(latencies.len() / 2)
        .copied()
        .unwrap_or(Span::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_is_measured() {
        for transport in [Transport::Tcp, Transport::Unix, Transport::Memory] {
            let floor = measure(transport).expect("sockets");
            assert!(floor.asleep.least > Span::ZERO && floor.polling.least > Span::ZERO);
        }
    }

    /// Returns rounds of 20 us each, some of which take 180 ms because other programs run.
    fn rounds(count: usize, busy: impl Fn(usize) -> bool) -> Vec<u64> {
        let rounds = (0..count).map(|round| match busy(round) {
            true => 180_000_000,
            false => 20_000 + round as u64 % 7,
        });
        rounds.collect()
    }

    #[test]
    fn a_machine_that_is_busy_at_times_does_not_make_the_floor_higher() {
        let near = |trip: Trip| trip.least >= Span::from_us(20) && trip.least < Span::from_us(21);
        // On an idle machine; then busy half of the time, in the first half, or for every third round.
        let whole = (WARM_UP + BATCHES) * BATCH;
        for busy in [
            &(|_| false) as &dyn Fn(usize) -> bool,
            &|round| round / 60 % 2 == 0,
            &|round| round < 200,
            &|round| round % 3 == 0,
        ] {
            let trip = Trip::from_rounds(&rounds(whole, busy));
            assert!(trip.sure && near(trip), "{trip:?}");
        }
    }

    #[test]
    fn a_machine_that_is_too_busy_is_not_taken_for_a_slow_one() {
        // This case made `serve` advise a speed of 0: a single round, which other programs delayed.
        assert!(!Trip::from_rounds(&[179_974_000]).sure);
        assert!(!Trip::from_rounds(&[]).sure);
        assert!(!Trip::from_rounds(&rounds(60, |_| false)).sure, "too few");
        // Only one batch is undisturbed.
        let trip = Trip::from_rounds(&rounds(300, |round| !(200..225).contains(&round)));
        assert!(!trip.sure, "{trip:?}");
        // A slow machine is slow in each batch.
        let slow = Trip::from_rounds(&rounds(300, |_| true));
        assert_eq!((slow.sure, slow.least), (true, Span::from_ms(180)));
    }

    #[test]
    fn a_fast_drive_is_known_to_be_fast() {
        let sheet = catalogue::drive("p4800x-375").expect("a drive");
        let latency = read_latency(&sheet.config, Precondition::Steady, 1);
        // S1: about 10 us with a host path; without it less, but more than zero.
        assert!(
            latency > Span::from_us(4) && latency < Span::from_us(12),
            "{latency:?}"
        );
    }
}
