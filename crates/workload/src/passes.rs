//! A job's passes over its range, each as long as what it is to transfer.
//!
//! At the end of one fio waits for all I/Os in flight and looks at them together, when the last of them has completed
//! (`backend.c`, end of `do_io`; docs/decisions/0108). Left out: the same where time or a number of I/Os ends a job.

/// How far a thread is.
#[derive(Clone, Debug)]
pub(crate) struct Passes {
    /// Bytes issued in this one.
    bytes: u64,
    /// With this one.
    left: u32,
    /// It is over: the I/Os in flight are reaped together.
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

    /// An I/O of so many bytes is issued.
    #[inline]
    pub(crate) fn issue(&mut self, bytes: u32) {
        self.bytes += u64::from(bytes);
    }

    /// Whether this one has issued so many bytes.
    #[inline]
    pub(crate) fn is_over(&self, bytes: u64) -> bool {
        self.bytes >= bytes
    }

    /// This one is over, with so many I/Os in flight; returns whether it was the last.
    pub(crate) fn end(&mut self, in_flight: u32) -> bool {
        self.reaps_all = in_flight > 0;
        self.left -= 1;
        self.left == 0
    }

    /// The I/Os in flight are reaped together.
    #[inline]
    pub(crate) fn reaps_all(&self) -> bool {
        self.reaps_all
    }

    /// The next one begins.
    pub(crate) fn begin(&mut self) {
        self.bytes = 0;
        self.reaps_all = false;
    }

    /// The share done of so many passes of so many bytes.
    pub(crate) fn share(&self, bytes: u64, loops: u32) -> f64 {
        let whole = f64::from(loops - self.left.min(loops));
        (whole + self.bytes as f64 / bytes as f64) / f64::from(loops)
    }
}
