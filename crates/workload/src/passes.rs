//! Passes of a job over its range, each as long as the bytes to transfer.
//!
//! At the end of a pass, fio waits for all outstanding I/Os and reaps them together when the last has completed
//! (`backend.c`, end of `do_io`; docs/decisions/0108). Not modelled: a joint reap if time or a number of I/Os ends a
//! job.

/// Progress of a thread through its passes.
#[derive(Clone, Debug)]
pub(crate) struct Passes {
    /// Bytes issued in the current pass.
    bytes: u64,
    /// Remaining passes, including the current one.
    left: u32,
    /// Whether the current pass is over and its outstanding I/Os are reaped together.
    reaps_all: bool,
}

impl Passes {
    pub(crate) fn new(loops: u32) -> Passes {
        Passes {
            bytes: 0,
            left: loops,
            reaps_all: false,
        }
    }

    /// Counts an issued I/O of `bytes` bytes.
    #[inline]
    pub(crate) fn issue(&mut self, bytes: u32) {
        self.bytes += u64::from(bytes);
    }

    /// Checks whether the current pass has issued `bytes` bytes.
    #[inline]
    pub(crate) fn is_over(&self, bytes: u64) -> bool {
        self.bytes >= bytes
    }

    /// Ends the current pass with `in_flight` outstanding I/Os; returns whether it was the last pass.
    pub(crate) fn end(&mut self, in_flight: u32) -> bool {
        self.reaps_all = in_flight > 0;
        self.left -= 1;
        self.left == 0
    }

    /// Checks whether the outstanding I/Os are reaped together.
    #[inline]
    pub(crate) fn reaps_all(&self) -> bool {
        self.reaps_all
    }

    /// Starts the next pass.
    pub(crate) fn begin(&mut self) {
        self.bytes = 0;
        self.reaps_all = false;
    }

    /// Returns the completed share of `loops` passes of `bytes` bytes.
    pub(crate) fn share(&self, bytes: u64, loops: u32) -> f64 {
        let whole = f64::from(loops - self.left.min(loops));
        (whole + self.bytes as f64 / bytes as f64) / f64::from(loops)
    }
}
