//! Disk events of Windows in the text of `xperf -a dumper`: Microsoft's server traces (SNIA IOTTA, "Microsoft
//! Enterprise" and "Production Server") and logs of Windows Performance Recorder.
//!
//! Lines: `DiskRead` or `DiskWrite`, time in us, process, thread, (processor,) IRP, hexadecimal offset and size in bytes,
//! elapsed us, number of the disk, and others. `DiskFlush` has neither offset nor size. A heading names the columns of
//! each event, and the reader uses those names. The event is written at completion (Microsoft, class
//! `DiskIo_TypeGroup1`: the event has the response time), so a request arrives at its time minus the elapsed time. Not
//! included: processes, files, priorities and all other events. Sources: the headings in the traces above; that
//! `TimeStamp` is the time of completion is assumed from the class.

use model::Op;

use super::fields::Fields;
use super::lines::each_line;
use super::requests::{RawRequest, Requests};
use super::{Format, TraceError, input::Input};

pub(super) const FORMAT: Format = Format {
    name: "xperf",
    title: "disk events of Windows (xperf -a dumper)",
    about: "Windows: xperf -a dumper, and Microsoft's server traces, with response times",
    looks: |head| {
        head.lines
            .iter()
            .any(|line| EventColumns::of_line(line).is_some())
    },
    read,
};

const US: u64 = 1_000;
/// Requests issued before the first completion would arrive before time 0: all arrivals are shifted by this.
const BEFORE_NS: u128 = 3_600 * 1_000_000_000;

const EVENTS: [(&[u8], Op); 3] = [
    (b"DiskRead", Op::Read),
    (b"DiskWrite", Op::Write),
    (b"DiskFlush", Op::Flush),
];

/// Columns of one event.
#[derive(Clone, Copy)]
struct EventColumns {
    /// Index in [`EVENTS`].
    event: usize,
    time: usize,
    elapsed: usize,
    disk: usize,
    /// Offset and size; flushes have neither.
    place: Option<(usize, usize)>,
}

fn event_of(fields: &Fields) -> Option<usize> {
    EVENTS.iter().position(|(name, _)| *name == fields.text(0))
}

impl EventColumns {
    /// Returns the columns that a heading names; `None` for every other line.
    fn named(fields: &Fields) -> Option<EventColumns> {
        let event = event_of(fields)?;
        let place = fields.position("ByteOffset").zip(fields.position("IOSize"));
        if EVENTS[event].1 != Op::Flush && place.is_none() {
            return None;
        }
        Some(EventColumns {
            event,
            time: fields.position("TimeStamp")?,
            elapsed: fields.position("ElapsedTime")?,
            disk: fields.position("DiskNum")?,
            place,
        })
    }

    fn of_line(line: &[u8]) -> Option<EventColumns> {
        line.starts_with(b"Disk")
            .then(|| EventColumns::named(&Fields::commas(1, line)))?
    }
}

fn read(input: &mut Input, requests: &mut Requests) -> Result<(), TraceError> {
    let mut known: [Option<EventColumns>; EVENTS.len()] = [None; EVENTS.len()];
    each_line(
        input,
        requests,
        |line, text| Fields::commas(line, text),
        |fields, volume, _| {
            let Some(event) = event_of(fields) else {
                return Ok(None);
            };
            if let Some(columns) = EventColumns::named(fields) {
                known[columns.event] = Some(columns);
                return Ok(None);
            }
            let Some(columns) = known[event] else {
                let what = "no heading before this line names the columns of its event";
                return Err(fields.fault(what).help(
                    "a line such as DiskRead, TimeStamp, ..., ByteOffset, IOSize, ElapsedTime, DiskNum",
                ));
            };
            volume.extend_from_slice(fields.text(columns.disk));
            request(fields, &columns).map(Some)
        },
    )
}

fn request(fields: &Fields, columns: &EventColumns) -> Result<RawRequest, TraceError> {
    let done_ns = fields.time(columns.time, "TimeStamp in us", US)?;
    let latency_ns = fields.time(columns.elapsed, "ElapsedTime in us", US)?;
    let (offset, bytes) = match columns.place {
        Some((offset, size)) => (
            fields.either(offset, "ByteOffset")?,
            fields.either(size, "IOSize")?,
        ),
        None => (0, 0),
    };
    let issued_ns = (done_ns + BEFORE_NS).saturating_sub(latency_ns);
    let mut found = RawRequest::new(issued_ns, EVENTS[columns.event].1, offset, bytes);
    found.latency_ns = u64::try_from(latency_ns).ok();
    Ok(found)
}
