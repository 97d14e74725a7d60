//! Collects the requests that the formats read: numbers volumes, makes times relative to the first request, and sorts
//! at the end.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;

use model::{Op, Span};

use super::record::{LAST_ARRIVAL, OFFSETS, Record, Request};
use super::{Options, TraceError};
use text::problem::Place;

/// Offset of arrivals until all are known, so that a request before the first one in the file has a non-negative
/// time.
const BIAS: u64 = 1 << 59;

/// A request as a format reads it.
pub(super) struct RawRequest {
    /// Time in nanoseconds since the origin of the format.
    pub at_ns: u128,
    pub op: Op,
    pub fua: bool,
    /// Offset in bytes from the start of the volume.
    pub offset: u64,
    pub bytes: u64,
    pub latency_ns: Option<u64>,
}

impl RawRequest {
    /// Creates a request without flags or latency.
    pub(super) fn new(at_ns: u128, op: Op, offset: u64, bytes: u64) -> RawRequest {
        RawRequest {
            at_ns,
            op,
            fua: false,
            offset,
            bytes,
            latency_ns: None,
        }
    }
}

/// Index of a volume, and whether its requests are selected.
#[derive(Clone, Copy)]
pub(super) struct Volume {
    index: u16,
    wanted: bool,
}

/// The requests of a trace that is being read.
pub(super) struct Requests<'a> {
    options: &'a Options,
    records: Vec<Record>,
    volumes: Vec<String>,
    by_key: HashMap<Box<[u8]>, Volume>,
    /// The most recent volume, because most traces stay on one volume for many requests.
    last: Option<(Vec<u8>, Volume)>,
    start: Option<u128>,
    earliest: u64,
    latest: u64,
    sorted: bool,
    other_volumes: u64,
    notes: Vec<(Cow<'static, str>, u64)>,
    timed: bool,
    /// The request (as in the finished trace) whose place in the file is searched.
    pub(super) sought: Option<Record>,
    pub(super) found: Option<Place>,
}

impl<'a> Requests<'a> {
    pub(super) fn new(options: &'a Options) -> Requests<'a> {
        Requests {
            options,
            records: Vec::new(),
            volumes: Vec::new(),
            by_key: HashMap::new(),
            last: None,
            start: None,
            earliest: u64::MAX,
            latest: 0,
            sorted: true,
            other_volumes: 0,
            notes: Vec::new(),
            timed: true,
            sought: None,
            found: None,
        }
    }

    /// Returns the volume with this key in the file; `name` returns its name for users.
    pub(super) fn volume(
        &mut self,
        key: &[u8],
        place: &Place,
        name: impl FnOnce() -> String,
    ) -> Result<Volume, TraceError> {
        if let Some((last, volume)) = &self.last
            && *last == key
        {
            return Ok(*volume);
        }
        let volume = match self.by_key.get(key) {
            Some(&volume) => volume,
            None => {
                let Ok(index) = u16::try_from(self.volumes.len()) else {
                    let what = "the trace has more than 65,536 volumes";
                    return Err(TraceError::new(place.clone(), what));
                };
                let name = name();
                let wanted = self
                    .options
                    .volume
                    .as_ref()
                    .is_none_or(|only| *only == name);
                self.volumes.push(name);
                let volume = Volume { index, wanted };
                self.by_key.insert(key.into(), volume);
                volume
            }
        };
        let mut last = self.last.take().map_or_else(Vec::new, |(last, _)| last);
        last.clear();
        last.extend_from_slice(key);
        self.last = Some((last, volume));
        Ok(volume)
    }

    /// Adds a request; returns `Break` when enough have been read. `Continue(Some(index))` identifies it for
    /// [`Self::complete`].
    pub(super) fn push(
        &mut self,
        volume: Volume,
        found: &RawRequest,
        place: impl Fn() -> Place,
    ) -> Result<ControlFlow<(), Option<usize>>, TraceError> {
        let fault = |what: String| Err(TraceError::new(place(), what));
        if !volume.wanted {
            self.other_volumes += 1;
            return Ok(ControlFlow::Continue(None));
        }
        let Ok(bytes) = u32::try_from(found.bytes) else {
            return fault(format!(
                "the request has {} bytes; at most 4,294,967,295 are possible",
                found.bytes
            ));
        };
        if found.offset >= OFFSETS {
            let what = format!(
                "the offset is {} bytes; volumes can have 256 TiB at most",
                found.offset
            );
            return fault(what);
        }
        let Some(arrival_ns) = self.arrival(found.at_ns) else {
            return fault("the time is more than 18 years from that of the first request".into());
        };
        let request = Request {
            arrival_ns,
            op: found.op,
            fua: found.fua,
            offset: found.offset,
            bytes,
            volume: volume.index,
            latency: None,
        };
        let mut record = Record::new(&request);
        if let Some(sought) = self.sought {
            return Ok(self.compare(record, sought, place));
        }
        if self.records.len() >= self.options.most_records {
            let what = format!(
                "the trace has more than {} requests",
                self.options.most_records
            );
            return Err(
                TraceError::new(place(), what).help("use --first N to read only the beginning")
            );
        }
        record.set_latency(found.latency_ns.map(Span::from_ns));
        self.sorted &= arrival_ns >= self.latest;
        self.latest = self.latest.max(arrival_ns);
        self.earliest = self.earliest.min(arrival_ns);
        self.records.push(record);
        let enough = self
            .options
            .first
            .is_some_and(|first| self.records.len() as u64 >= first);
        Ok(if enough {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(Some(self.records.len() - 1))
        })
    }

    /// Converts a time to the scale of records, relative to the first request; `None` if it is too far from it.
    fn arrival(&mut self, at_ns: u128) -> Option<u64> {
        let start = *self.start.get_or_insert(at_ns);
        let after = if at_ns >= start {
            let later = u64::try_from(at_ns - start).ok()?;
            later.checked_add(BIAS)?
        } else {
            let earlier = u64::try_from(start - at_ns).ok()?;
            BIAS.checked_sub(earlier)?
        };
        (after <= LAST_ARRIVAL).then_some(after)
    }

    /// Compares with the searched request, and stops at the first equal one. Arrivals have the reader's bias.
    fn compare(
        &mut self,
        record: Record,
        mut sought: Record,
        place: impl Fn() -> Place,
    ) -> ControlFlow<(), Option<usize>> {
        sought.set_latency(None);
        if record == sought {
            self.found = Some(place());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(None)
    }

    /// Returns the options for reading the trace.
    pub(super) fn options(&self) -> &'a Options {
        self.options
    }

    /// Records that the trace has no times, only an order.
    pub(super) fn untimed(&mut self) {
        self.timed = false;
    }

    /// Sets the response time of an earlier request.
    pub(super) fn complete(&mut self, index: usize, latency_ns: u64) {
        if let Some(record) = self.records.get_mut(index) {
            record.set_latency(Some(Span::from_ns(latency_ns)));
        }
    }

    /// Counts an observation for the summary.
    pub(super) fn note(&mut self, what: &'static str) {
        match self.notes.iter_mut().find(|(known, _)| *known == what) {
            Some((_, count)) => *count += 1,
            None => self.notes.push((Cow::Borrowed(what), 1)),
        }
    }

    /// Returns everything read, sorted by arrival; simultaneous requests stay in the order of the file.
    pub(super) fn finish(mut self) -> AllRequests {
        for record in &mut self.records {
            record.set_arrival(record.arrival_ns() - self.earliest);
        }
        if !self.sorted {
            self.records.sort_by_key(Record::arrival_ns);
        }
        AllRequests {
            first_arrival: self.earliest,
            records: self.records,
            volumes: self.volumes,
            in_order: self.sorted,
            other_volumes: self.other_volumes,
            notes: self.notes,
            timed: self.timed,
        }
    }
}

/// Result of [`Requests`] at the end of the file.
pub(super) struct AllRequests {
    pub first_arrival: u64,
    pub records: Vec<Record>,
    pub volumes: Vec<String>,
    pub in_order: bool,
    pub other_volumes: u64,
    pub notes: Vec<(Cow<'static, str>, u64)>,
    pub timed: bool,
}
