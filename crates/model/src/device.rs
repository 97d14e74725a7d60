//! The contract that drives, host paths and tiers share.
//!
//! Laws, checked by [`crate::conformance`]:
//! 1. Time never goes back: no call has an earlier `now` than the one before.
//! 2. `advance` is called with exactly [`Device::next_event`], never later.
//! 3. Each submitted id completes once, with `at` equal to what that `advance` returned.
//! 4. After `advance` has returned `now`, `next_event()` is later than `now`. (A `submit` at `now` may cause an event at
//!    `now`.)
//! 5. At a tie, completions come before arrivals: `advance(now, ..)` is called before `submit(now, ..)`, and again after
//!    it where the submission causes an event at `now`.
//! 6. Cutting a run at any point and going on gives the unbroken run.
//! 7. The anatomy of a completion sums to `at` minus the time of its submission.
//! 8. A horizon only says how far one call may go: any leads to what going from event to event leads to.
//! 9. After `power_cut` nothing of before completes; what a flush, or a write with force unit access, has acknowledged is
//!    not among what is lost, which is what the buffer held.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::command::{Command, Completion};
use crate::time::Time;

/// Bytes of a device, whole units of its medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// First byte.
    pub offset: u64,
    /// Length.
    pub bytes: u64,
}

/// Size and granularity of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// Bytes a host can address.
    pub bytes: u64,
    /// Logical block size in bytes (512 or 4096).
    pub block: u32,
}

/// Drive, host path and tier are all this. See the laws at the head of this file.
pub trait Device {
    /// Size and block size.
    fn capacity(&self) -> Capacity;

    /// Takes a command. Refusals (out of range) come back as completions too.
    fn submit(&mut self, now: Time, command: Command);

    /// When something will happen next; [`Time::NEVER`] when idle.
    fn next_event(&self) -> Time;

    /// Lets happen what is due at `now`, which must be [`Device::next_event`], and may go on through events of the
    /// device's own that are earlier than `horizon`: the caller will submit nothing before it. Stops after a time at which
    /// commands complete, and appends them to `done`. Returns the time of the last event, which is that of all
    /// completions. With a `horizon` of `now` only what is due at `now` happens; with a later one `done` must be empty.
    /// (A device that has many events for a command saves the way out to the engine and back for each of them.)
    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time;

    /// What would be lost if power went now: appends the units whose newest data, acknowledged or coming in, are in a buffer
    /// that needs power and not on the medium. A medium without such a buffer has nothing at risk.
    fn at_risk(&self, ranges: &mut Vec<Range>) {
        let _ = ranges;
    }

    /// Power goes at `now`, not before the last event and not after [`Device::next_event`], and comes back at once: returns
    /// from when on the device takes commands. Appends what was lost, which is what [`Device::at_risk`] said. Commands inside
    /// are gone: nothing of them completes, and their ids may be used again. The medium keeps what it has, and cumulative
    /// gauges what they have counted.
    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time;

    /// Reports figures about itself as of `now` (not earlier than the last event).
    fn inspect(&self, now: Time, gauges: &mut dyn Gauges);
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn capacity(&self) -> Capacity {
        (**self).capacity()
    }
    #[inline]
    fn submit(&mut self, now: Time, command: Command) {
        (**self).submit(now, command);
    }
    #[inline]
    fn next_event(&self) -> Time {
        (**self).next_event()
    }
    #[inline]
    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        (**self).advance(now, horizon, done)
    }
    fn at_risk(&self, ranges: &mut Vec<Range>) {
        (**self).at_risk(ranges);
    }
    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        (**self).power_cut(now, lost)
    }
    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        (**self).inspect(now, gauges);
    }
}

impl<D: Device + ?Sized> Device for &mut D {
    fn capacity(&self) -> Capacity {
        (**self).capacity()
    }
    #[inline(always)]
    fn submit(&mut self, now: Time, command: Command) {
        (**self).submit(now, command);
    }
    #[inline]
    fn next_event(&self) -> Time {
        (**self).next_event()
    }
    #[inline]
    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        (**self).advance(now, horizon, done)
    }
    fn at_risk(&self, ranges: &mut Vec<Range>) {
        (**self).at_risk(ranges);
    }
    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        (**self).power_cut(now, lost)
    }
    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        (**self).inspect(now, gauges);
    }
}

/// A figure that a device reports about itself.
///
/// *Cumulative* gauges only grow: an observer reads them twice and takes the difference. *Level* gauges are the state
/// at the moment. A composition of devices (RAID-0) sums cumulative gauges by reporting each member's in turn: an
/// observer adds up what it is given under one name; levels marked "mean" below are averaged over the reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Gauge {
    /// Cumulative: bytes the host has read.
    HostBytesRead,
    /// Cumulative: bytes the host has written.
    HostBytesWritten,
    /// Cumulative: bytes that a pool's members were asked to read.
    BackBytesRead,
    /// Cumulative: bytes that a pool's members were asked to write.
    BackBytesWritten,
    /// Cumulative: bytes read that a cache had.
    HitBytes,
    /// Cumulative: bytes read that a cache did not have.
    MissBytes,
    /// Cumulative: bytes of log blocks that a tier has written, wherever they went.
    LogBytesWritten,
    /// Cumulative: how often a log block found no room on the logs that a tier has, full or dead; once more for each try.
    LogFullBlocks,
    /// Cumulative: bytes that a write-back cache has moved to its capacity tier, so that they are clean.
    DestagedBytes,
    /// Cumulative: bytes in a write-back cache that were overwritten or trimmed before they were moved.
    AbsorbedBytes,
    /// Cumulative: bytes written past a write-back cache, to its capacity tier.
    PassedBytes,
    /// Cumulative: bytes read from the medium, for the host or by the drive itself.
    MediumBytesRead,
    /// Cumulative: bytes programmed into the medium, for the host or by the drive itself.
    MediumBytesWritten,
    /// Cumulative: bytes that the medium is to program on account of what the host wrote: its data, padding, and of what
    /// the drive moves by itself the part that made the room they use. What it moves for later writes is not in it.
    CausedBytesWritten,
    /// Cumulative: blocks erased.
    Erases,
    /// Cumulative: joules taken, idle power included.
    EnergyJoules,
    /// Cumulative: seconds the controller was busy (of one controller; of several drives their mean).
    ControllerBusySeconds,
    /// Cumulative: seconds the link or data path was busy (of one link; of several drives their mean).
    LinkBusySeconds,
    /// Cumulative: die-seconds busy, divided by the number of dies (of several drives their mean).
    MediumBusySeconds,
    /// Cumulative: seconds of host CPU spent, over all cores.
    HostCpuSeconds,
    /// Level: commands inside the device.
    QueueDepth,
    /// Level, mean: percent of rated endurance used, as SMART's Percentage Used but with fractions.
    PercentageUsed,
    /// Level: bytes in the write buffer, not yet in the medium.
    BufferedBytes,
    /// Level: bytes that a tier has acknowledged and not yet moved to where they stay.
    DirtyBytes,
    /// Level: the most bytes of log blocks that a log has held at once since it was made; of several logs, each one's most.
    MostLogBytesHeld,
    /// Level, mean: by how much a tier holds writes back, 0 (not at all) to 255.
    Congestion,
    /// Level, mean: share of physical pages that are erased and ready, 0 to 1.
    FreeShare,
}

impl Gauge {
    /// Its name in tables and JSON, with its unit where it has one.
    pub const fn name(self) -> &'static str {
        match self {
            Gauge::HostBytesRead => "host_bytes_read",
            Gauge::HostBytesWritten => "host_bytes_written",
            Gauge::BackBytesRead => "back_bytes_read",
            Gauge::BackBytesWritten => "back_bytes_written",
            Gauge::HitBytes => "hit_bytes",
            Gauge::MissBytes => "miss_bytes",
            Gauge::LogBytesWritten => "log_bytes_written",
            Gauge::LogFullBlocks => "log_full_blocks",
            Gauge::DestagedBytes => "destaged_bytes",
            Gauge::AbsorbedBytes => "absorbed_bytes",
            Gauge::PassedBytes => "passed_bytes",
            Gauge::MediumBytesRead => "medium_bytes_read",
            Gauge::MediumBytesWritten => "medium_bytes_written",
            Gauge::CausedBytesWritten => "caused_bytes_written",
            Gauge::Erases => "erases",
            Gauge::EnergyJoules => "energy_joules",
            Gauge::ControllerBusySeconds => "controller_busy_seconds",
            Gauge::LinkBusySeconds => "link_busy_seconds",
            Gauge::MediumBusySeconds => "medium_busy_seconds",
            Gauge::HostCpuSeconds => "host_cpu_seconds",
            Gauge::QueueDepth => "queue_depth",
            Gauge::PercentageUsed => "percentage_used",
            Gauge::BufferedBytes => "buffered_bytes",
            Gauge::DirtyBytes => "dirty_bytes",
            Gauge::MostLogBytesHeld => "most_log_bytes_held",
            Gauge::Congestion => "congestion",
            Gauge::FreeShare => "free_share",
        }
    }

    /// Whether observers take differences.
    pub const fn cumulative(self) -> bool {
        !matches!(
            self,
            Gauge::QueueDepth
                | Gauge::PercentageUsed
                | Gauge::BufferedBytes
                | Gauge::DirtyBytes
                | Gauge::MostLogBytesHeld
                | Gauge::Congestion
                | Gauge::FreeShare
        )
    }
}

/// Takes what [`Device::inspect`] reports.
pub trait Gauges {
    /// One figure; may come several times under one name (see [`Gauge`]).
    fn gauge(&mut self, gauge: Gauge, value: f64);

    /// What follows is of this member of a pool, from 0, until [`Gauges::leave`].
    fn enter(&mut self, member: u16) {
        let _ = member;
    }

    /// What follows is of the pool again.
    fn leave(&mut self) {}
}
