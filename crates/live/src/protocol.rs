//! Description of a front end: its option, its settings, how it serves and how clients reach the served drives.
//!
//! A front end is a folder with a [`Protocol`] and an entry in the table at the end of `lib.rs`. The command line, the
//! sockets and the messages at the start are made from these.

use std::net::SocketAddr;
use std::path::PathBuf;

use text::problem::{Place, Problem, Problems};

use crate::port::Front;
use crate::served::ServedDevice;
use crate::setup::Setup;

/// An address; if the kernel chose the port, this is the chosen port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// Address and port of TCP.
    Tcp(SocketAddr),
    /// The file of a Unix socket.
    Unix(PathBuf),
    /// A listening Unix socket that was passed on by systemd's protocol; the index of the socket.
    Passed(usize),
}

/// Where a front end can be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressKind {
    /// At any number of addresses: `HOST:PORT`, `unix:PATH`, and, if `passed`, `systemd`.
    Addresses {
        /// Whether sockets that are passed on are accepted too.
        passed: bool,
    },
    /// At the file of a Unix socket for each drive, in order.
    EachDrive,
    /// At the file of one Unix socket.
    File,
}

/// Kind of clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clients {
    /// Clients of drives, over the socket.
    OverSocket,
    /// Clients of drives, over shared memory.
    OverMemory,
    /// Monitoring or control clients.
    Watchers,
}

/// An option of a front end.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Name without dashes.
    pub name: &'static str,
    /// Placeholder for the value; `None` for a switch.
    pub value: Option<&'static str>,
    /// Allowed values with their meaning, the first is the default; empty if any value is allowed.
    pub values: &'static [(&'static str, &'static str)],
    /// Another option that is required with it.
    pub requires: Option<&'static str>,
    /// Help text.
    pub help: &'static str,
}

/// Parameters from the command line.
#[derive(Clone, Debug, Default)]
pub struct FrontEndOptions {
    /// Number of addresses.
    pub addresses: usize,
    /// Names of the drives, as they are exported.
    pub names: Vec<String>,
    /// Given settings with their values; an empty value for a switch.
    pub settings: Vec<(&'static str, String)>,
}

impl FrontEndOptions {
    /// Returns the value of a setting, if it was given or has a default.
    pub fn value(&self, name: &str) -> Option<&str> {
        let found = self.settings.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Checks whether a switch is on.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }
}

/// A front end with its parameters.
pub trait Service {
    /// Changes the setup of a drive before it is opened.
    fn set_up(&self, _setup: &mut Setup) {}

    /// Checks whether it can serve an open drive.
    ///
    /// # Errors
    /// The reason why not, and what would be right.
    fn accepts(&self, _drive: &ServedDevice) -> Result<(), Problem> {
        Ok(())
    }

    /// Returns the front end for the socket with this number.
    fn front(&self, number: usize) -> Box<dyn Front>;

    /// Returns lines on how to reach the drive with this index, for copying.
    fn drive_lines(&self, _index: usize, _drive: &ServedDevice, _at: &[Address]) -> Vec<String> {
        Vec::new()
    }

    /// Returns lines on how to reach all drives, for copying.
    fn lines(&self, _at: &Address) -> Vec<String> {
        Vec::new()
    }
}

/// Description of a front end.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// Option for its address, without dashes.
    pub option: &'static str,
    /// Placeholder for the address.
    pub value: &'static str,
    /// Help text.
    pub help: &'static str,
    /// Where it can be reached.
    pub places: AddressKind,
    /// Kind of its clients.
    pub clients: Clients,
    /// Options that only this protocol has.
    pub settings: &'static [Setting],
    /// Reads the parameters from the command line.
    pub read: fn(&FrontEndOptions) -> Result<Box<dyn Service>, Problems>,
}

/// Returns a problem of the command line; `help` states what would be right.
pub fn on_command_line(what: impl Into<String>, help: &str) -> Problem {
    Problem {
        origin: "command line".into(),
        place: Place::Whole,
        what: what.into(),
        help: Some(help.into()),
    }
}
