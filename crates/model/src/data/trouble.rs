//! What may go wrong with one drive and its data, beside a power cut: as people who studied fleets of drives tell it
//! (whole drives die; writes are acknowledged and lost or land elsewhere; sectors rot; flushes lie).
//!
//! Left out: errors and delays by range, rate or count, which are an [`super::Injector`]'s.

use crate::time::{Span, Time};

/// A drive that lost its power alone answers again after so long: CAP.TO of NVMe drives is some seconds at most, most are
/// ready sooner (assumed, 0.2 to 5 s; a hard disk takes 10 to 30 s).
pub const READY: Span = Span::from_ms(1000);

/// Something that befalls a drive from now on, or once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Trouble {
    /// It answers nothing any more: commands inside, and those to come, end with [`crate::Status::Gone`].
    Dies,
    /// Its power goes, and it answers nothing until it returns: what its volatile cache held and what was inside is lost as the
    /// drive's model says.
    LosesPower,
    /// It answers again, with what is on its medium; of the writes that were inside when it died every other one is done.
    Returns,
    /// What it completes before `until` is answered later, with the data moved in time.
    Slows {
        /// How much later.
        by: Span,
        /// From when on it is itself again.
        until: Time,
    },
    /// From now on it acknowledges flushes, and writes with force unit access, and does nothing about them.
    Lies,
    /// The next write ends with [`crate::Status::WriteFault`] and changes nothing.
    FailsWrite,
    /// The next write is acknowledged, and nothing is written.
    LosesWrite,
    /// The data of the next write land this many bytes further on (a multiple of 512; around the end to the beginning).
    Misdirects {
        /// How far.
        by: u64,
    },
    /// A bit of the sector at this byte flips, and nobody notices.
    Rots {
        /// Where: any byte.
        at: u64,
    },
    /// The sectors of the range become unreadable until they are written.
    Unreadable {
        /// First byte.
        at: u64,
        /// Length.
        bytes: u64,
    },
}
