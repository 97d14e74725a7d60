//! Length, range and preparation of a point's run on a pool.

use model::Span;

/// End of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum StopCondition {
    /// After this time.
    After(Span),
    /// After this number of I/Os for each line of the drive's cache.
    AfterReads(f64),
}

/// Parameters of a long run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Long {
    /// End of the run.
    pub(crate) ends: StopCondition,
    /// Warm-up time with the same workload, which is not counted.
    pub(crate) warm: Span,
    /// Whether the range is written sequentially first.
    pub(crate) filled: bool,
    /// Whether each seed begins with a drive in the point's state, and results are shown over time.
    pub(crate) over_time: bool,
    /// Range of the workload.
    pub(crate) range: WorkloadRange,
    /// Whether a smaller drive may represent the whole one.
    pub(crate) scaled: bool,
    /// What happens to the drive during the run; other than [`Condition::None`] only with `over_time`.
    pub(crate) condition: Condition,
}

/// What happens to a drive during a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    /// Nothing.
    None,
    /// The drive warms up by its thermal figures.
    Heat,
    /// A pool member fails after an eighth of the run, and returns after a quarter.
    Returns,
    /// A pool member fails after an eighth of the run, and is replaced after a quarter.
    Replaced,
}

/// The range of a workload on a drive.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum WorkloadRange {
    /// This number of bytes, or the whole drive if it is smaller.
    Bytes(u64),
    /// This multiple of the drive's cache.
    Cache(f64),
    /// This multiple of the usable write buffer, at most 600 GB; without a write buffer, of the drive's capacity.
    Buffer(f64),
    /// This share of the drive.
    Share(f64),
}
