//! How long a point on a pool runs, over what of it, and what comes before.

use model::Span;

/// When a run ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Ends {
    /// After so long.
    After(Span),
    /// After so many I/Os for each line of the drive's cache.
    AfterReads(f64),
}

/// How a point is run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Long {
    /// Its end.
    pub(crate) ends: Ends,
    /// The same workload before anything is counted, for so long.
    pub(crate) warm: Span,
    /// Whether its range is written in order before.
    pub(crate) filled: bool,
    /// Whether each seed begins with a drive in the point's state, and is told over time.
    pub(crate) over_time: bool,
    /// Bytes that it asks for.
    pub(crate) range: Within,
    /// Whether a smaller drive may stand for the whole one.
    pub(crate) scaled: bool,
}

/// The part of a drive that a workload asks for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Within {
    /// So many bytes, or all if it has less.
    Bytes(u64),
    /// So many times its cache.
    Cache(f64),
    /// So many times what of its write buffer can be used, but of 600 GB at most; of what has no write buffer, of itself.
    Buffer(f64),
    /// This share of it.
    Share(f64),
}
