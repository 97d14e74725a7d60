//! What ends a loop or cuts the power of its drives from outside: a signal's handler, another thread.
//!
//! They can be there before the loop is, so that a signal that comes while a server starts is not lost.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Ends a running loop, from any thread.
#[derive(Clone, Debug)]
pub struct Stop(Arc<UnixStream>);

impl Stop {
    /// Asks the loop to drain and return.
    pub fn stop(&self) {
        use std::io::Write;
        // A full pipe has been asked often enough.
        let _ = (&*self.0).write(&[1]);
    }

    /// A descriptor of which any byte written ends the loop, for signals.
    ///
    /// # Errors
    /// When descriptors have run out.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.0.as_fd().try_clone_to_owned()
    }
}

/// A loop's switches, and where it hears of them.
#[derive(Debug)]
pub struct Switches {
    pub(super) stopped: UnixStream,
    stop: Stop,
    pub(super) cut: UnixStream,
    power: UnixStream,
}

impl Switches {
    /// New ones, which nobody has touched.
    ///
    /// # Errors
    /// When descriptors have run out.
    pub fn new() -> io::Result<Switches> {
        let (stopped, stop) = UnixStream::pair()?;
        let (cut, power) = UnixStream::pair()?;
        for end in [&stopped, &stop, &cut, &power] {
            end.set_nonblocking(true)?;
        }
        Ok(Switches {
            stopped,
            stop: Stop(Arc::new(stop)),
            cut,
            power,
        })
    }

    /// The power has been cut as often as was asked for by now.
    pub(super) fn forget_cut(&self) {
        let mut bytes = [0; 64];
        while rustix::io::read(&self.cut, &mut bytes).is_ok_and(|read| read == bytes.len()) {}
    }

    /// What ends the loop.
    pub fn stopper(&self) -> Stop {
        self.stop.clone()
    }

    /// A descriptor of which any byte written cuts the power of all drives, for signals.
    ///
    /// # Errors
    /// When descriptors have run out.
    pub fn power_switch(&self) -> io::Result<OwnedFd> {
        self.power.as_fd().try_clone_to_owned()
    }
}
