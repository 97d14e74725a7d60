//! Switches that end a loop or cut the power of its drives from outside: from a signal handler or another thread.
//!
//! They can be created before the loop, so that a signal during the server's start is not lost.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Ends a running loop, from any thread.
#[derive(Clone, Debug)]
pub struct StopSwitch(Arc<UnixStream>);

impl StopSwitch {
    /// Asks the loop to drain and return.
    pub fn stop(&self) {
        use std::io::Write;
        // If the pipe is full, enough requests are pending.
        let _ = (&*self.0).write(&[1]);
    }

    /// Returns a descriptor, for signals: writing any byte to it ends the loop.
    ///
    /// # Errors
    /// No descriptors are left.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.0.as_fd().try_clone_to_owned()
    }
}

/// The switches of a loop, and their receiving ends.
#[derive(Debug)]
pub struct Switches {
    pub(super) stopped: UnixStream,
    stop: StopSwitch,
    pub(super) cut: UnixStream,
    power: UnixStream,
}

impl Switches {
    /// Returns new, unused switches.
    ///
    /// # Errors
    /// No descriptors are left.
    pub fn new() -> io::Result<Switches> {
        let (stopped, stop) = UnixStream::pair()?;
        let (cut, power) = UnixStream::pair()?;
        for end in [&stopped, &stop, &cut, &power] {
            end.set_nonblocking(true)?;
        }
        Ok(Switches {
            stopped,
            stop: StopSwitch(Arc::new(stop)),
            cut,
            power,
        })
    }

    /// Discards requests for power cuts that have been executed by now.
    pub(super) fn forget_cut(&self) {
        let mut bytes = [0; 64];
        while rustix::io::read(&self.cut, &mut bytes).is_ok_and(|read| read == bytes.len()) {}
    }

    /// Returns the switch that ends the loop.
    pub fn stopper(&self) -> StopSwitch {
        self.stop.clone()
    }

    /// Returns a descriptor, for signals: writing any byte to it cuts the power of all drives.
    ///
    /// # Errors
    /// No descriptors are left.
    pub fn power_switch(&self) -> io::Result<OwnedFd> {
        self.power.as_fd().try_clone_to_owned()
    }
}
