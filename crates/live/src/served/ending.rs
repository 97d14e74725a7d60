//! Orderly end of service, and messages that are pending.
//!
//! A pool flushes its members, finishes its internal work, and is then synced to the host's disk. If the flush fails,
//! or does not end within [`REST`], acknowledged data is lost with the memory of this program: the end then fails, and
//! the state is not saved as clean. A resync or rebuild that does not end within [`REBUILDS`] is continued at the next
//! start. A member that its pool does not need does not make the flush fail. Pools in memory
//! lose everything at the end, so their flush does not matter.

use std::io;
use std::time::{Duration, Instant};

use model::{Command, Gauge, Op, Payload, Span, Status};

use super::machine::Machine;
use super::{InFlightCommand, ServedDevice};
use crate::clock::Wall;

/// Maximum time at shutdown until a pool without requests is idle: its tiers finish delayed work within this time.
const REST: Span = Span::from_ms(11_000);

/// Maximum wall-clock time that resyncs and rebuilds continue at shutdown.
const REBUILDS: Duration = Duration::from_secs(2);

/// Interval of progress messages while a pool comes to rest.
const STEP: Span = Span::from_ms(50);

/// Token of the flush at the end; other commands without a client have token 0.
const LAST_FLUSH: u64 = 1;

/// Outcome of a rebuild that does not end with the service.
const CONTINUED: &str = "the next start continues this";

impl ServedDevice {
    /// Writes data and state to the host's disk: the orderly end of service.
    ///
    /// # Errors
    /// Errors of the file system; acknowledged data of a pool that could not be written.
    pub fn shut_down(&mut self) -> io::Result<()> {
        self.shut_down_telling(&mut |_| {})
    }

    /// Shuts down as [`ServedDevice::shut_down`] does; `stage` is called with each step when it begins.
    ///
    /// # Errors
    /// Errors of the file system; acknowledged data of a pool that could not be written.
    pub fn shut_down_telling(&mut self, stage: &mut dyn FnMut(&str)) -> io::Result<()> {
        self.end_within(REBUILDS, stage)
    }

    /// Shuts down, with this limit for resyncs and rebuilds.
    fn end_within(&mut self, rebuilds: Duration, stage: &mut dyn FnMut(&str)) -> io::Result<()> {
        let flushed = self.rest(rebuilds, stage);
        let synced = match &mut self.machine {
            Machine::Drive(it) => {
                stage("its data go to the host's disk");
                it.data.sync()
            }
            Machine::Pool(pool) => pool.sync(self.now, stage),
        };
        let synced = synced.map_err(|error| self.of_store(error));
        match flushed {
            Ok(()) => synced.and_then(|()| self.save(true)),
            Err(error) => {
                // The lost data is more important than an error of these steps.
                let _ = synced.and_then(|()| self.save(false));
                Err(error)
            }
        }
    }

    /// Lets a pool flush its members and come to rest, so that no recovery is needed.
    ///
    /// # Errors
    /// The flush failed; the message names the data that is lost.
    fn rest(&mut self, rebuilds: Duration, stage: &mut dyn FnMut(&str)) -> io::Result<()> {
        if !matches!(&self.machine, Machine::Pool(pool) if !pool.is_broken()) {
            return Ok(());
        }
        self.has_room();
        self.flush_unheard(LAST_FLUSH);
        let mut reached = self.now;
        let until = reached + REST;
        let (start, mut paused) = (Instant::now(), false);
        while reached < until {
            let left = self.gauge(Gauge::DirtyBytes) / f64::from(1 << 20);
            let Machine::Pool(pool) = &mut self.machine else {
                return Ok(());
            };
            let work = match pool.rebuilds().filter(|_| !paused) {
                Some(work) if start.elapsed() < rebuilds => work,
                Some(work) => {
                    pool.pause_rebuilds();
                    paused = true;
                    let line = format!("{work}; {CONTINUED}");
                    self.news.push_back(line);
                    continue;
                }
                None if left > 0.0 => format!(
                    "it finishes its internal work: {left:.0} MiB are not at their final place yet"
                ),
                None => "it flushes its members and finishes its internal work".into(),
            };
            stage(&work);
            reached = (reached + STEP).min(until);
            self.run_until(reached);
        }
        // A slow rebuild may use all of the virtual time within less wall-clock time.
        if let (false, Machine::Pool(pool)) = (paused, &mut self.machine)
            && let Some(work) = pool.rebuilds()
        {
            self.news.push_back(format!("{work}; {CONTINUED}"));
        }
        let ended = self.last_flush.take();
        let errors = self.take_host_errors();
        let matters = self.store_file().is_some() && !self.read_only;
        match ended {
            Some(Status::Success | Status::ReadOnly) => {
                self.news.extend(errors);
                Ok(())
            }
            _ if !matters => Ok(()),
            _ => Err(self.lost(ended.is_some(), &errors)),
        }
    }

    /// Submits a flush for which no client waits.
    pub(super) fn flush_unheard(&mut self, token: u64) {
        let Machine::Pool(pool) = &mut self.machine else {
            return;
        };
        let slot = InFlightCommand {
            token,
            submitted: self.now,
            op: Op::Flush,
            fua: false,
            offset: 0,
            bytes: 0,
            heard: false,
            before: Default::default(),
            payload: Payload::default(),
            logged: None,
            verdict: Default::default(),
        };
        let id = self.slots.insert(slot) as u32;
        pool.submit(self.now, Command::flush(id));
    }

    /// Takes note of the completion of a command for which no client waits.
    #[cold]
    pub(super) fn heard_last(&mut self, slot: &InFlightCommand, status: Status) {
        if slot.op == Op::Flush && slot.token == LAST_FLUSH {
            self.last_flush = Some(status);
        }
    }

    /// Takes the host's errors for the members' stores that have not been reported.
    fn take_host_errors(&mut self) -> Vec<String> {
        let Machine::Pool(pool) = &mut self.machine else {
            return Vec::new();
        };
        let errors = std::iter::from_fn(|| pool.take_failure());
        errors.map(|error| error.to_string()).collect()
    }

    /// Returns the error of an end that loses data. `ended`: whether the flush has ended; `errors`: those of the host.
    fn lost(&self, ended: bool, errors: &[String]) -> io::Error {
        let flush = match ended {
            true => String::from("the flush at the end failed"),
            false => format!(
                "the flush at the end did not finish within {} s",
                REST.ns() / 1_000_000_000
            ),
        };
        let mut reasons = errors.to_vec();
        let mut lost = String::from("acknowledged writes since the last successful flush are lost");
        if let Machine::Pool(pool) = &self.machine {
            reasons.extend(pool.dead().map(|name| format!("{name} does not answer")));
            let members = pool.unflushed();
            let members = members.map(|(name, bytes)| format!("{name} ({bytes} bytes)"));
            let members: Vec<String> = members.collect();
            if !members.is_empty() {
                lost += &format!(", in the volatile cache of {}", members.join(", "));
            }
        }
        let what = match reasons.is_empty() {
            true => format!("{flush}: {lost}"),
            false => format!("{flush}: {}: {lost}", reasons.join("; ")),
        };
        self.of_store(io::Error::other(what))
    }

    /// Returns a line on unreported problems with the files of the store; `now` is the time since the server started.
    pub(crate) fn complaint(&mut self, now: Wall) -> Option<String> {
        self.save_log(true);
        let trouble = self.troubles.iter_mut().find_map(|it| it.next_message(now));
        let what = match &mut self.machine {
            Machine::Pool(pool) => trouble.or_else(|| pool.progress(now)),
            Machine::Drive(_) => trouble,
        };
        let what = what.or_else(|| self.news.pop_front())?;
        Some(format!("{}: {what}", self.setup.name))
    }

    /// Returns all lines on problems that have not been reported, for the end of service.
    pub fn last_complaints(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.complaint(Wall::NEVER)).collect()
    }
}

#[cfg(test)]
mod tests {
    use workload::faults::Fault;

    use super::*;
    use crate::served::full::{Client, open};

    /// Without time for it, a resync waits for the next start, and the end loses nothing. With time, it ends.
    #[test]
    fn an_end_does_not_wait_for_a_long_resync() {
        for pool in [
            "mirror(2*950pro-256; resync_rate=1MB/s)",
            "raid5(3*p4801x-100; chunk=64KiB, resync_rate=1MB/s)",
        ] {
            for limit in [Duration::ZERO, Duration::from_secs(600)] {
                let folder = tempfile::tempdir().expect("a folder");
                let mut client = Client::new(open(pool, folder.path()).expect("a new pool"));
                let suffers = |client: &mut Client, fault: &Fault| {
                    let now = client.drive.now();
                    let done = client.drive.member_suffers(now, 1, fault);
                    done.expect("a fault of a member");
                };
                client.fill(100, 0);
                suffers(&mut client, &Fault::Dies);
                client.fill(100, 100);
                client.flush();
                suffers(&mut client, &Fault::Returns);
                client.fill(10, 200);
                let ended = client.drive.end_within(limit, &mut |_| {});
                ended.expect("an orderly end");
                let out = client.drive.out_of_sync();
                let lines = client.drive.last_complaints().join("\n");
                let waits = lines.contains("the next start continues this");
                assert_eq!(waits, out > 0, "{pool}: {lines}");
                // The array still has to rebuild a whole region.
                if limit.is_zero() || pool.starts_with("mirror") {
                    assert_eq!(out > 0, limit.is_zero(), "{pool}: {lines}");
                }
                let may_be = client.kill();
                let mut client = Client::opened_again(pool, folder.path(), may_be);
                client.check(pool);
                for _ in 0..600 {
                    let at = client.drive.now() + Span::from_ms(100);
                    client.drive.settle(at);
                }
                assert_eq!(client.drive.out_of_sync(), 0, "{pool}");
                client.check(&format!("{pool}, in sync"));
            }
        }
    }
}
