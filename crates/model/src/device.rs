//! The contract that drives, host paths and tiers share.
//!
//! Laws, checked by [`crate::conformance`]:
//! 1. Time never decreases: no call has an earlier `now` than the previous call.
//! 2. `advance` is called with exactly [`Device::next_event`], never later.
//! 3. Each submitted id completes once, with `at` equal to the time that this `advance` returned.
//! 4. After `advance` has returned `now`, `next_event()` is later than `now`. (A `submit` at `now` may cause an event
//!    at `now`.)
//! 5. At a tie, completions come before arrivals: `advance(now, ..)` is called before `submit(now, ..)`, and again
//!    after it where the submission causes an event at `now`.
//! 6. Interrupting a run at any point and continuing it gives the same result as an uninterrupted run.
//! 7. The anatomy of a completion sums to `at` minus the time of its submission.
//! 8. A horizon only limits how far one call may proceed: the result does not depend on it, and equals that of stepping
//!    from event to event.
//! 9. After `power_cut`, no earlier command completes. Data that was acknowledged by a flush, or by a write with force
//!    unit access, is not among the lost data, which was in the buffer.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::command::{Command, Completion};
use crate::time::Time;

/// Range of bytes of a device, in whole units of its medium.
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

/// Implemented by drives, host paths and tiers. The laws are at the head of this module.
pub trait Device {
    /// Returns size and block size.
    fn capacity(&self) -> Capacity;

    /// Accepts a command. Rejected commands (out of range) also return as completions.
    fn submit(&mut self, now: Time, command: Command);

    /// Returns the time of the next event; [`Time::NEVER`] when idle.
    fn next_event(&self) -> Time;

    /// Processes the events due at `now`, which must be [`Device::next_event`]. May continue through the device's own
    /// events that are earlier than `horizon`: the caller will submit nothing before that time. Stops after a time at
    /// which commands complete, and appends them to `done`. Returns the time of the last event, which is the time of
    /// all completions. If `horizon` equals `now`, only events due at `now` are processed; with a later horizon, `done`
    /// must be empty. (A device that has many events per command avoids a return to the engine for each of them.)
    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time;

    /// Appends the data that a power cut at this moment would lose: the units whose newest data, acknowledged or
    /// incoming, is in a buffer that needs power and not on the medium. A medium without such a buffer has no data at
    /// risk.
    fn at_risk(&self, ranges: &mut Vec<Range>) {
        let _ = ranges;
    }

    /// Power is cut at `now`, not before the last event and not after [`Device::next_event`], and is restored at once.
    /// Returns the time from which the device accepts commands. Appends the lost data, which equals the result of
    /// [`Device::at_risk`]. Outstanding commands are discarded: none of them completes, and their ids may be reused.
    /// The medium keeps its data, and cumulative gauges keep their counts.
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

/// A metric that a device reports about itself.
///
/// *Cumulative* gauges only grow: an observer reads them twice and takes the difference. *Level* gauges are the current
/// state. A composition of devices (RAID-0) sums cumulative gauges by reporting those of each member in turn: an
/// observer adds up the values of one name. Levels marked "mean" below are averaged over the reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Gauge {
    /// Cumulative: bytes the host has read.
    HostBytesRead,
    /// Cumulative: bytes the host has written.
    HostBytesWritten,
    /// Cumulative: bytes of read commands to a pool's members.
    BackBytesRead,
    /// Cumulative: bytes of write commands to a pool's members.
    BackBytesWritten,
    /// Cumulative: bytes read that hit a cache.
    HitBytes,
    /// Cumulative: bytes read that missed a cache.
    MissBytes,
    /// Cumulative: bytes of log blocks that a tier has written, to a log device or elsewhere.
    LogBytesWritten,
    /// Cumulative: how often a log block did not fit on the log devices of a tier, because they were full or failed.
    /// Each attempt counts.
    LogFullBlocks,
    /// Cumulative: bytes that a write-back cache has destaged to its capacity tier, so that they are clean.
    DestagedBytes,
    /// Cumulative: bytes in a write-back cache that were overwritten or trimmed before they were destaged.
    AbsorbedBytes,
    /// Cumulative: bytes written directly to the capacity tier, bypassing a write-back cache.
    PassedBytes,
    /// Cumulative: bytes read from the medium, for the host or by the drive itself.
    MediumBytesRead,
    /// Cumulative: bytes programmed into the medium, for the host or by the drive itself.
    MediumBytesWritten,
    /// Cumulative: bytes that the medium must program because of host writes: their data, padding, and the share of
    /// garbage collection that freed the space which they use. Data that the drive moves to free space for later writes
    /// is not included.
    CausedBytesWritten,
    /// Cumulative: blocks erased.
    Erases,
    /// Cumulative: energy in joules, idle power included.
    EnergyJoules,
    /// Cumulative: seconds the controller was busy (of one controller; of several drives their mean).
    ControllerBusySeconds,
    /// Cumulative: seconds the link or data path was busy (of one link; of several drives their mean).
    LinkBusySeconds,
    /// Cumulative: die-seconds busy, divided by the number of dies (of several drives their mean).
    MediumBusySeconds,
    /// Cumulative: seconds of host CPU spent, over all cores.
    HostCpuSeconds,
    /// Cumulative: bytes that programs have read through the host's page cache.
    PageCacheBytesRead,
    /// Cumulative: bytes that the host's page cache has read from the drive, read-ahead included.
    PageCacheBytesFetched,
    /// Cumulative: bytes that programs have written into the host's page cache.
    PageCacheBytesWritten,
    /// Cumulative: seconds that writers have waited because too many pages were dirty, over all threads.
    PageCacheThrottledSeconds,
    /// Level: bytes in the host's page cache that are not yet on the drive.
    PageCacheDirtyBytes,
    /// Level: commands outstanding at the device.
    QueueDepth,
    /// Level, mean: percent of rated endurance used, like SMART's Percentage Used, but with fractions.
    PercentageUsed,
    /// Level: bytes in the write buffer, not yet in the medium.
    BufferedBytes,
    /// Level: bytes that a tier has acknowledged and not yet moved to their final location.
    DirtyBytes,
    /// Level: the maximum of bytes of log blocks that a log has held at once since it was created; for several logs,
    /// the maximum of each.
    MostLogBytesHeld,
    /// Level, mean: how strongly a tier delays writes, from 0 (not at all) to 255.
    Congestion,
    /// Level, mean: temperature in degrees Celsius, if the run has heat.
    Celsius,
    /// Cumulative: seconds during which a drive throttled itself because it was too hot.
    ThermalThrottleSeconds,
    /// Level, mean: share of physical pages that are erased and ready, 0 to 1.
    FreeShare,
    /// Cumulative: seconds in non-operational power states, if the host lets the drive enter them.
    LowPowerSeconds,
    /// Cumulative: how often a command has woken the drive from a non-operational power state.
    WakeUps,
}

impl Gauge {
    /// Returns the gauge's name in tables and JSON, with its unit if it has one.
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
            Gauge::PageCacheBytesRead => "page_cache_bytes_read",
            Gauge::PageCacheBytesFetched => "page_cache_bytes_fetched",
            Gauge::PageCacheBytesWritten => "page_cache_bytes_written",
            Gauge::PageCacheThrottledSeconds => "page_cache_throttled_seconds",
            Gauge::PageCacheDirtyBytes => "page_cache_dirty_bytes",
            Gauge::QueueDepth => "queue_depth",
            Gauge::PercentageUsed => "percentage_used",
            Gauge::BufferedBytes => "buffered_bytes",
            Gauge::DirtyBytes => "dirty_bytes",
            Gauge::MostLogBytesHeld => "most_log_bytes_held",
            Gauge::Congestion => "congestion",
            Gauge::Celsius => "celsius",
            Gauge::ThermalThrottleSeconds => "thermal_throttle_seconds",
            Gauge::FreeShare => "free_share",
            Gauge::LowPowerSeconds => "low_power_seconds",
            Gauge::WakeUps => "wake_ups",
        }
    }

    /// Whether observers take differences of this gauge.
    pub const fn cumulative(self) -> bool {
        !matches!(
            self,
            Gauge::QueueDepth
                | Gauge::PercentageUsed
                | Gauge::BufferedBytes
                | Gauge::DirtyBytes
                | Gauge::PageCacheDirtyBytes
                | Gauge::MostLogBytesHeld
                | Gauge::Congestion
                | Gauge::Celsius
                | Gauge::FreeShare
        )
    }
}

/// Receives the values that [`Device::inspect`] reports.
pub trait Gauges {
    /// Receives one value; a name may occur several times (see [`Gauge`]).
    fn gauge(&mut self, gauge: Gauge, value: f64);

    /// Later values belong to this member of a pool, counted from 0, until [`Gauges::leave`].
    fn enter(&mut self, member: u16) {
        let _ = member;
    }

    /// Later values belong to the pool again.
    fn leave(&mut self) {}
}
