//! One request of a trace, in 24 bytes, so that hundreds of millions fit in memory.

use model::{Op, Span};
use serde::{Deserialize, Serialize};

/// Bits of a record's arrival: 36 years in nanoseconds.
const ARRIVAL_BITS: u32 = 60;
/// Bits of a record's offset: 256 TiB per volume.
const OFFSET_BITS: u32 = 48;
/// Maximum arrival time relative to the first request, in nanoseconds.
pub(super) const LAST_ARRIVAL: u64 = (1 << ARRIVAL_BITS) - 1;
/// Upper limit of offsets in bytes (exclusive).
pub(super) const OFFSETS: u64 = 1 << OFFSET_BITS;
/// Marker for a latency that was not recorded.
const NO_LATENCY: u32 = u32::MAX;
/// Latencies of 2^31 ns and above are stored in units of 1,024 ns, marked by the top bit.
const COARSE: u32 = 1 << 31;

/// A packed request of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Operation in 3 bits, force unit access in 1, arrival in 60.
    when: u64,
    /// Volume in 16 bits, offset in 48.
    place: u64,
    bytes: u32,
    latency: u32,
}

/// An unpacked request, as formats return it and users see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Nanoseconds since the first request of the trace.
    pub arrival_ns: u64,
    /// Operation of the request.
    pub op: Op,
    /// Force unit access.
    pub fua: bool,
    /// First byte in its volume; not always a multiple of 512.
    pub offset: u64,
    /// Length in bytes; may be 0, and not always a multiple of 512.
    pub bytes: u32,
    /// Index into [`super::Trace::volumes`].
    pub volume: u16,
    /// Recorded response time. Exact below 2.1 s, to 1,024 ns above, at most 36 minutes.
    pub latency: Option<Span>,
}

impl Record {
    /// Packs a request. `arrival_ns` must be below 2^60 and `offset` below 2^48 (higher bits are dropped).
    pub fn new(request: &Request) -> Record {
        let op = match request.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Flush => 2,
            Op::Deallocate => 3,
            Op::WriteZeroes => 4,
        };
        let flags = op << 1 | u64::from(request.fua);
        let mut record = Record {
            when: flags << ARRIVAL_BITS | request.arrival_ns & LAST_ARRIVAL,
            place: u64::from(request.volume) << OFFSET_BITS | request.offset & (OFFSETS - 1),
            bytes: request.bytes,
            latency: NO_LATENCY,
        };
        record.set_latency(request.latency);
        record
    }

    /// Unpacks the request.
    #[inline]
    pub fn request(&self) -> Request {
        Request {
            arrival_ns: self.arrival_ns(),
            op: self.op(),
            fua: self.when >> ARRIVAL_BITS & 1 == 1,
            offset: self.place & (OFFSETS - 1),
            bytes: self.bytes,
            volume: (self.place >> OFFSET_BITS) as u16,
            latency: self.latency(),
        }
    }

    /// Returns the arrival in nanoseconds since the first request.
    #[inline]
    pub fn arrival_ns(&self) -> u64 {
        self.when & LAST_ARRIVAL
    }

    /// Returns the operation.
    #[inline]
    pub fn op(&self) -> Op {
        match self.when >> (ARRIVAL_BITS + 1) {
            0 => Op::Read,
            1 => Op::Write,
            2 => Op::Flush,
            3 => Op::Deallocate,
            _ => Op::WriteZeroes,
        }
    }

    /// Returns the recorded response time.
    #[inline]
    pub fn latency(&self) -> Option<Span> {
        if self.latency == NO_LATENCY {
            None
        } else if self.latency & COARSE == 0 {
            Some(Span::from_ns(u64::from(self.latency)))
        } else {
            Some(Span::from_ns(u64::from(self.latency & !COARSE) << 10))
        }
    }

    pub(super) fn set_latency(&mut self, latency: Option<Span>) {
        self.latency = match latency.map(Span::ns) {
            None => NO_LATENCY,
            Some(ns) if ns < u64::from(COARSE) => ns as u32,
            Some(ns) => COARSE | (ns >> 10).min(u64::from(COARSE) - 2) as u32,
        };
    }

    pub(super) fn set_arrival(&mut self, ns: u64) {
        self.when = self.when & !LAST_ARRIVAL | ns & LAST_ARRIVAL;
    }
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.request().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_record_is_24_bytes() {
        assert_eq!(size_of::<Record>(), 24);
    }

    proptest! {
        #[test]
        fn packing_loses_nothing(
            arrival_ns in 0..=LAST_ARRIVAL,
            op in prop::sample::select(vec![Op::Read, Op::Write, Op::Flush, Op::Deallocate, Op::WriteZeroes]),
            fua: bool,
            offset in 0..OFFSETS,
            bytes: u32,
            volume: u16,
            latency in prop::option::of(0u64..1 << 31),
        ) {
            let latency = latency.map(Span::from_ns);
            let request = Request { arrival_ns, op, fua, offset, bytes, volume, latency };
            prop_assert_eq!(Record::new(&request).request(), request);
        }

        #[test]
        fn long_latencies_keep_their_microseconds(ns in 1u64 << 31..2_000_000_000_000) {
            let mut record = Record::new(&Request {
                arrival_ns: 0, op: Op::Read, fua: false, offset: 0, bytes: 0, volume: 0, latency: None,
            });
            record.set_latency(Some(Span::from_ns(ns)));
            let kept = record.latency().unwrap().ns();
            prop_assert!(kept <= ns && ns - kept < 1_024);
        }
    }
}
