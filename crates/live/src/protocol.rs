//! What the program knows of a front end: its option, its settings, how to serve by it and how to reach what is served.
//!
//! A front end is a folder with a [`Protocol`] and a word in the table at the end of `lib.rs`. The command line, the
//! sockets and what is said at the start are made from these.

use std::net::SocketAddr;
use std::path::PathBuf;

use text::problem::{Place, Problem, Problems};

use crate::port::Front;
use crate::served::Served;
use crate::setup::Setup;

/// An address, with the port that the kernel chose if that was left to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// Of TCP.
    Tcp(SocketAddr),
    /// The file of a Unix socket.
    Unix(PathBuf),
    /// A Unix socket that listens already and was passed on by systemd's protocol: the first, the second, ...
    Passed(usize),
}

/// Where a front end can be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Places {
    /// At any number of addresses: `HOST:PORT`, `unix:PATH`, and, if `passed`, `systemd`.
    Addresses {
        /// Sockets that are passed on are taken too.
        passed: bool,
    },
    /// At the file of a Unix socket for each drive, in order.
    EachDrive,
    /// At the file of one Unix socket.
    File,
}

/// Who connects to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clients {
    /// Users of drives, over the socket.
    OverSocket,
    /// Users of drives, over memory that they share.
    OverMemory,
    /// Those who watch or control.
    Watchers,
}

/// An option that is a front end's own.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Without dashes.
    pub name: &'static str,
    /// What is shown in place of its value; none for a switch.
    pub value: Option<&'static str>,
    /// The values that it can have, the first by default, and what each means; none if it can have any.
    pub values: &'static [(&'static str, &'static str)],
    /// Another that must be given with it.
    pub requires: Option<&'static str>,
    /// For those who ask.
    pub help: &'static str,
}

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// At how many addresses.
    pub addresses: usize,
    /// Names of the drives, as they are exported.
    pub names: Vec<String>,
    /// Settings that were given, with their values; an empty one for a switch.
    pub settings: Vec<(&'static str, String)>,
}

impl Asked {
    /// The value of a setting, if it was given or has one by default.
    pub fn value(&self, name: &str) -> Option<&str> {
        let found = self.settings.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether a switch is on.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }
}

/// A front end as it was asked for.
pub trait Service {
    /// What it changes of a drive before it is opened.
    fn set_up(&self, _setup: &mut Setup) {}

    /// Whether it can serve a drive that has been opened.
    ///
    /// # Errors
    /// Why not, and what would be right.
    fn accepts(&self, _drive: &Served) -> Result<(), Problem> {
        Ok(())
    }

    /// The front end behind the socket of this number.
    fn front(&self, number: usize) -> Box<dyn Front>;

    /// How to reach the drive of this index: lines to be copied.
    fn drive_lines(&self, _index: usize, _drive: &Served, _at: &[Address]) -> Vec<String> {
        Vec::new()
    }

    /// How to reach all of it: lines to be copied.
    fn lines(&self, _at: &Address) -> Vec<String> {
        Vec::new()
    }
}

/// A front end.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// The option that says where, without dashes.
    pub option: &'static str,
    /// What is shown in place of an address.
    pub value: &'static str,
    /// For those who ask.
    pub help: &'static str,
    /// Where it can be reached.
    pub places: Places,
    /// Who connects.
    pub clients: Clients,
    /// Options of its own.
    pub settings: &'static [Setting],
    /// Reads what was asked for.
    pub read: fn(&Asked) -> Result<Box<dyn Service>, Problems>,
}

/// This is wrong with the command line; `help` says what would be right.
pub fn on_command_line(what: impl Into<String>, help: &str) -> Problem {
    Problem {
        origin: "command line".into(),
        place: Place::Whole,
        what: what.into(),
        help: Some(help.into()),
    }
}
