//! Waiting until a descriptor is ready or the time is over, to the microsecond.
//!
//! `epoll_wait` takes whole milliseconds, and rounded up a wait of 0.3 ms is 0.7 ms too long. `epoll_pwait2` takes
//! nanoseconds, but kernels before 5.11 do not have it, and some sandboxes end a program that tries it. `ppoll`, of the
//! whole set as one descriptor, takes nanoseconds on every kernel: one call more, and only for a wait with an end.

use std::os::fd::AsFd;

use model::Span;
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::{Errno, Result};

/// Waits until something in the set is ready, a signal arrives, or `limit` has passed (`None`: never), and puts the
/// ready descriptors into `events`. With `exact`, the limit is as precise as the kernel's timers; without, it is
/// rounded up to milliseconds.
///
/// # Errors
/// Errors of `epoll_wait` and `ppoll`.
pub(super) fn wait(
    set: impl AsFd,
    events: &mut Vec<epoll::Event>,
    limit: Option<Span>,
    exact: bool,
) -> Result<()> {
    events.clear();
    let mut limit = limit.map(timespec);
    if let Some(time) = &mut limit
        && exact
        && *time != Timespec::default()
    {
        let any = PollFd::new(&set, PollFlags::IN);
        uninterrupted(poll(&mut [any], Some(time)))?;
        *time = Timespec::default();
    }
    uninterrupted(epoll::wait(&set, spare_capacity(events), limit.as_ref()))
}

/// Treats an interruption by a signal as success.
fn uninterrupted<T>(result: Result<T>) -> Result<()> {
    match result {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}

fn timespec(span: Span) -> Timespec {
    Timespec {
        tv_sec: (span.ns() / 1_000_000_000) as i64,
        tv_nsec: (span.ns() % 1_000_000_000) as i64,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    use super::*;

    /// Returns the median lateness of these waits, and the lateness of sleeps between them: other programs may keep
    /// the machine busy.
    fn lateness(limit: Duration, mut wait: impl FnMut()) -> (Duration, Duration) {
        let timed = |what: &mut dyn FnMut()| {
            let start = Instant::now();
            what();
            let took = start.elapsed();
            assert!(took >= limit, "{took:?} is before {limit:?}");
            took - limit
        };
        let mut late: [Vec<Duration>; 2] = Default::default();
        for _ in 0..31 {
            late[0].push(timed(&mut wait));
            late[1].push(timed(&mut || std::thread::sleep(limit)));
        }
        late.iter_mut().for_each(|all| all.sort_unstable());
        (late[0][15], late[1][15])
    }

    #[test]
    fn a_wait_ends_when_its_time_is_over_and_never_before() {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a set");
        let mut events = Vec::with_capacity(1);
        for us in [100, 300, 1_000, 1_300, 3_000] {
            let limit = Some(Span::from_us(us));
            let mut attempt = || {
                lateness(Duration::from_micros(us), || {
                    wait(&set, &mut events, limit, true).expect("a wait");
                })
            };
            // A systematic error would occur in each attempt.
            let in_time = (0..10).any(|_| {
                let (late, sleep) = attempt();
                late < sleep + Duration::from_micros(350)
            });
            assert!(in_time, "{us} us: {:?}", attempt());
        }
    }

    #[test]
    fn what_is_ready_ends_a_wait() {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a set");
        let (hear, mut tell) = UnixStream::pair().expect("sockets");
        let data = epoll::EventData::new_u64(7);
        epoll::add(&set, &hear, data, epoll::EventFlags::IN).expect("watched");
        let mut events = Vec::with_capacity(4);
        let found = |events: &mut Vec<epoll::Event>, limit, exact| {
            wait(&set, events, limit, exact).expect("a wait");
            events.iter().map(|event| event.data.u64()).sum::<u64>()
        };
        assert_eq!(found(&mut events, Some(Span::ZERO), true), 0);
        assert_eq!(found(&mut events, Some(Span::from_us(50)), true), 0);
        tell.write_all(&[1]).expect("sent");
        let long = Some(Span::from_ms(600_000));
        for (limit, exact) in [
            (long, true),
            (long, false),
            (None, true),
            (Some(Span::ZERO), true),
        ] {
            assert_eq!(found(&mut events, limit, exact), 7);
        }
    }
}
