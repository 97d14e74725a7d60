//! Trace replay: as recorded, scaled in time, or as fast as a queue depth allows.
//!
//! As recorded (open loop), a request arrives at its own time, independent of the drive. Its latency counts from that
//! time, so it shows if the drive is too slow. At most [`OUTSTANDING`] requests are in host and drive at once. Later
//! requests wait before the host, and this wait is part of their latency ([`Part::QueueSlot`]). At a queue depth
//! (closed loop), recorded times have no meaning: the next request starts when one completes.
//!
//! Only the order of the trace is kept. Traces do not record which requests waited for which other requests.

use std::sync::Arc;

use model::{Capacity, Command, Completion, Op, Part, Span, Time};
use serde::{Deserialize, Serialize};

use super::job::{Job, TimedIo};
use super::trace::{self, Options, Record, Request, Trace};
use statistics::Histogram;
use statistics::Measured;
use text::problem::{Problem, Problems};

/// Maximum requests in host and drive: about Linux's limit for a drive with 31 queues (1,023 tags each).
pub const OUTSTANDING: u32 = 32_768;

/// Alignment of adjacent volumes, bytes.
const VOLUME_ALIGN: u64 = 1 << 20;

/// Issue times of requests.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Pace {
    /// Recorded times divided by this factor (1: as recorded).
    Recorded(f64),
    /// As fast as this queue depth allows.
    Depth(u32),
}

impl Pace {
    /// Returns the default pace: as recorded. For a trace with an order but without times, one request after another,
    /// as fio replays such a log unless `iodepth` is set.
    pub fn for_trace(trace: &Trace) -> Pace {
        if trace.timed {
            Pace::Recorded(1.0)
        } else {
            Pace::Depth(1)
        }
    }
}

/// Treatment of addresses beyond the end of the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum OutOfRangePolicy {
    /// Refuse the replay. This is the default, because folding changes the requests of a trace.
    #[default]
    Refuse,
    /// Fold addresses into the drive (modulo its size).
    Wrap,
}

/// A trace mapped to a drive.
#[derive(Clone, Debug)]
pub struct Layout {
    /// First byte of each volume.
    bases: Vec<u64>,
    /// Bytes and block size of the drive.
    capacity: Capacity,
    /// Requests whose addresses were folded.
    pub wrapped: u64,
    /// Reads and writes of zero bytes, which are skipped.
    pub empty: u64,
    /// Requests that were widened to whole blocks of the drive.
    pub widened: u64,
}

impl Layout {
    /// Places the volumes of `trace` one after another from byte 0, each at a multiple of 1 MiB, and checks every
    /// request.
    ///
    /// # Errors
    /// With [`OutOfRangePolicy::Refuse`]: requests beyond the end of the drive (`drive` names it), with their number and the
    /// first one. Always: requests longer than the drive.
    pub fn new(
        trace: &Trace,
        drive: &str,
        capacity: Capacity,
        beyond: OutOfRangePolicy,
    ) -> Result<Layout, Problems> {
        let mut layout = Layout::from_trace(trace, capacity);
        let mut too_long = (0, None);
        let mut out = (0, None);
        for record in &trace.records {
            let request = record.request();
            if request.op == Op::Flush {
                continue;
            }
            if request.bytes == 0 {
                layout.empty += 1;
                continue;
            }
            let (start, bytes) = layout.extent(&request);
            layout.widened += u64::from(bytes != u64::from(request.bytes));
            if bytes > capacity.bytes || bytes > u64::from(u32::MAX) {
                too_long.0 += 1;
                too_long.1.get_or_insert(*record);
            } else if start + bytes > capacity.bytes {
                out.0 += 1;
                out.1.get_or_insert(*record);
            }
        }
        if let (count, Some(first)) = too_long {
            let (of, end) = (trace.records.len(), capacity.bytes);
            let what =
                format!("{count} of {of} requests: longer than all of {drive} ({end} bytes)");
            return Err(layout.refusal(trace, &first, what, None));
        }
        if let (count, Some(first)) = out {
            if beyond == OutOfRangePolicy::Refuse {
                let of = trace.records.len();
                let end = capacity.bytes;
                let what =
                    format!("{count} of {of} requests: beyond the end of {drive} ({end} bytes)");
                if let Some(doubt) = trace.doubt() {
                    return Err(layout.refusal(trace, &first, what, Some(doubt.as_str())));
                }
                let help = if trace.volumes.len() > 1 {
                    "--beyond wrap folds addresses into the drive; --volume NAME replays one volume alone"
                } else {
                    "--beyond wrap folds addresses into the drive"
                };
                return Err(layout.refusal(trace, &first, what, Some(help)));
            }
            layout.wrapped = count;
        }
        Ok(layout)
    }

    /// Places the volumes without checks.
    fn from_trace(trace: &Trace, capacity: Capacity) -> Layout {
        let mut next = 0;
        let ends = trace.summary().ends;
        let bases = ends.iter().map(|end| {
            let base = next;
            next += end.next_multiple_of(VOLUME_ALIGN);
            base
        });
        Layout {
            bases: bases.collect(),
            capacity,
            wrapped: 0,
            empty: 0,
            widened: 0,
        }
    }

    fn refusal(&self, trace: &Trace, first: &Record, what: String, help: Option<&str>) -> Problems {
        let request = first.request();
        let (start, _) = self.extent(&request);
        let volume = &trace.volumes[usize::from(request.volume)];
        let mut what = format!(
            "{what}; the first is {} bytes at {}",
            request.bytes, request.offset
        );
        if trace.volumes.len() > 1 {
            what.push_str(&format!(
                " of volume {volume}, which is byte {start} of the drive"
            ));
        }
        Problems(vec![Problem {
            origin: trace.origin.clone(),
            place: trace.locate(first),
            what,
            help: help.map(String::from),
        }])
    }

    /// Returns first byte and length in whole blocks, before folding.
    #[inline]
    fn extent(&self, request: &Request) -> (u64, u64) {
        let block = u64::from(self.capacity.block.max(512));
        let from = self.bases[usize::from(request.volume)] + request.offset;
        let start = from - from % block;
        let end = (from + u64::from(request.bytes)).next_multiple_of(block);
        (start, end - start)
    }

    /// Returns first byte and length on the drive.
    #[inline]
    fn place(&self, request: &Request) -> (u64, u32) {
        let (mut start, bytes) = self.extent(request);
        if start + bytes > self.capacity.bytes {
            let block = u64::from(self.capacity.block.max(512));
            let whole = self.capacity.bytes - self.capacity.bytes % block;
            start %= whole;
            start = start.min(whole - bytes);
        }
        (start, u32::try_from(bytes).unwrap_or(u32::MAX - 4_095))
    }
}

/// Reads the recorded I/Os of every job with a log (fio's `read_iolog`), in any trace format, into [`Job::records`].
/// Files of a log are placed one after another. Lengths are rounded up to 512 B, and I/Os without a length are
/// skipped.
///
/// # Errors
/// All logs that cannot be read, with the problem of each.
pub fn read_iologs(jobs: &mut [Job]) -> Result<(), Problems> {
    let mut problems = Problems::default();
    for job in jobs.iter_mut().filter(|job| job.records.is_none()) {
        let Some(log) = &job.iolog else { continue };
        match trace::read(&log.path, &Options::default()) {
            Ok(trace) => job.records = Some(timed_ios(&trace)),
            Err(more) => problems.0.extend(more.0),
        }
    }
    problems.or(())
}

/// Converts a trace into the I/Os of a job.
fn timed_ios(trace: &Trace) -> Arc<[TimedIo]> {
    let anywhere = Capacity {
        bytes: u64::MAX,
        block: 512,
    };
    let layout = Layout::from_trace(trace, anywhere);
    let requests = trace.records.iter().map(Record::request);
    let kept = requests.filter(|request| request.bytes > 0 || request.op == Op::Flush);
    kept.map(|request| {
        let (offset, bytes) = match request.op {
            Op::Flush => (0, 0),
            _ => layout.place(&request),
        };
        TimedIo {
            at: Span::from_ns(request.arrival_ns),
            op: request.op,
            offset,
            bytes,
        }
    })
    .collect()
}

/// Number of requests whose simulated latency is close to the recorded one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SingleLatencies {
    /// Requests with a recorded latency above zero.
    pub compared: u64,
    /// Requests whose simulated latency differs from the recorded one by at most 10 %.
    pub close: u64,
}

impl SingleLatencies {
    /// Maximum difference of a close latency, as a share of the recorded one.
    pub const CLOSE: f64 = 0.1;

    /// Returns the share of close latencies, 0 to 1; `None` if none was compared.
    pub fn share(&self) -> Option<f64> {
        (self.compared > 0).then(|| self.close as f64 / self.compared as f64)
    }

    fn add(&mut self, recorded: Span, simulated: Span) {
        let (recorded, simulated) = (recorded.us(), simulated.us());
        if recorded > 0.0 {
            self.compared += 1;
            self.close += u64::from((simulated - recorded).abs() <= recorded * Self::CLOSE);
        }
    }
}

/// State of an outstanding command.
#[derive(Clone, Copy, Debug, Default)]
struct OutstandingRequest {
    due: Time,
    submitted: Time,
    bytes: u32,
    kind: u8,
    /// Recorded latency.
    recorded: Option<Span>,
}

/// A running trace.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    records: &'a [Record],
    layout: &'a Layout,
    /// Fixed-point factor: recorded nanoseconds times this, shifted right by [`SCALE_BITS`], are nanoseconds of the
    /// run; 0 at a queue depth.
    scale: u64,
    most: u32,
    threads: u16,
    next: usize,
    /// Arrival of the next request; never if there is none.
    due: Time,
    now: Time,
    free: Vec<u32>,
    slots: Vec<OutstandingRequest>,
    /// Results for reads, writes, trims, flushes.
    pub measured: [Measured; 4],
    /// Requests issued at each depth, in fio's depth classes.
    pub depths: [u64; 7],
    /// Recorded response times of reads and of writes.
    pub recorded: [Histogram; 2],
    /// Simulated latencies compared one by one with the recorded ones, of reads and of writes.
    pub singles: [SingleLatencies; 2],
    series_every: Span,
}

/// Fraction bits of [`Replay::scale`].
const SCALE_BITS: u32 = 32;

impl<'a> Replay<'a> {
    /// Creates a replay of `trace` on the drive to which it has been mapped, issued in turn by this many threads (at
    /// least one). A speed must be from 1e-6 to 1e6, a depth at least 1.
    pub fn new(
        trace: &'a Trace,
        layout: &'a Layout,
        pace: Pace,
        threads: u16,
        series_every: Span,
    ) -> Replay<'a> {
        let (scale, most) = match pace {
            Pace::Recorded(speed) => {
                let scale = libm::round((1u64 << SCALE_BITS) as f64 / speed);
                (scale.clamp(1.0, u64::MAX as f64) as u64, OUTSTANDING)
            }
            Pace::Depth(depth) => (0, depth.max(1)),
        };
        let mut replay = Replay {
            records: &trace.records,
            layout,
            scale,
            most,
            threads: threads.max(1),
            next: 0,
            due: Time::ZERO,
            now: Time::ZERO,
            free: Vec::new(),
            slots: Vec::new(),
            measured: Default::default(),
            depths: [0; 7],
            recorded: Default::default(),
            singles: Default::default(),
            series_every,
        };
        replay.look_ahead();
        replay
    }

    /// Returns the arrival of the last request, scaled; the start time at a queue depth.
    pub fn last_arrival(&self) -> Time {
        self.records
            .last()
            .map_or(Time::ZERO, |last| self.scaled(last.arrival_ns()))
    }

    #[inline]
    fn scaled(&self, recorded_ns: u64) -> Time {
        let fine = u128::from(recorded_ns) * u128::from(self.scale);
        Time::from_ns(u64::try_from(fine >> SCALE_BITS).unwrap_or(u64::MAX - 1))
    }

    /// Returns the share of the requests issued, 0 to 1.
    pub fn share(&self) -> f64 {
        self.next as f64 / self.records.len().max(1) as f64
    }

    fn outstanding(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    /// Skips requests that are not replayed, and finds when the next one is due.
    fn look_ahead(&mut self) {
        while let Some(record) = self.records.get(self.next) {
            let request = record.request();
            if request.bytes > 0 || request.op == Op::Flush {
                self.due = self.scaled(request.arrival_ns);
                return;
            }
            self.next += 1;
        }
        self.due = Time::NEVER;
    }

    fn issue(&mut self, now: Time, submit: &mut impl FnMut(Command)) {
        let request = self.records[self.next].request();
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(OutstandingRequest::default());
            self.slots.len() as u32 - 1
        });
        let (offset, bytes) = match request.op {
            Op::Flush => (0, 0),
            _ => self.layout.place(&request),
        };
        let kind = match request.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Deallocate | Op::WriteZeroes => 2,
            Op::Flush => 3,
        };
        if let (Some(latency), Some(recorded)) =
            (request.latency, self.recorded.get_mut(usize::from(kind)))
        {
            recorded.record(latency);
        }
        // In a closed loop, a request starts when a slot is free.
        let due = if self.scale == 0 { now } else { self.due };
        self.slots[id as usize] = OutstandingRequest {
            due,
            submitted: now,
            bytes,
            kind,
            recorded: request.latency,
        };
        let class = u32::BITS - 1 - self.outstanding().leading_zeros();
        self.depths[class.min(6) as usize] += 1;
        let mut command = Command::new(id, request.op, offset, bytes);
        command.fua = request.fua;
        command.queue = (self.next % usize::from(self.threads)) as u16;
        self.next += 1;
        self.look_ahead();
        submit(command);
    }
}

impl model::engine::Workload for Replay<'_> {
    #[inline]
    fn next_arrival(&self) -> Time {
        if self.outstanding() >= self.most {
            Time::NEVER
        } else {
            // A request that is overdue because no slot was free is due now.
            self.due.max(self.now)
        }
    }

    #[inline]
    fn arrive(&mut self, now: Time, submit: &mut impl FnMut(Command)) {
        self.now = now;
        while self.due <= now && self.outstanding() < self.most {
            self.issue(now, submit);
        }
    }

    #[inline]
    fn complete(&mut self, now: Time, completion: &Completion) {
        self.now = now;
        let slot = self.slots[completion.id as usize];
        self.free.push(completion.id);
        let mut completion = *completion;
        completion
            .anatomy
            .add(Part::QueueSlot, slot.submitted.since(slot.due));
        let latency = now.since(slot.due);
        let single = self.singles.get_mut(usize::from(slot.kind));
        if let (Some(recorded), Some(single)) = (slot.recorded, single) {
            single.add(recorded, latency);
        }
        let measured = &mut self.measured[usize::from(slot.kind)];
        measured.count(&completion, slot.bytes, latency, None, self.series_every);
    }

    #[inline]
    fn finished(&self) -> bool {
        self.due == Time::NEVER && self.free.len() == self.slots.len()
    }
}
