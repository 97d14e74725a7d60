//! A network for one server and one guest: a separate network namespace with a tap device, so that tests share no
//! port.
//!
//! It exists as long as a process that waits in it. Without the permission to create one, the test is skipped.

use std::ffi::OsStr;
use std::process::Command;
use std::time::Duration;

use super::process::{Running, mortal};
use super::{has, skipped};

/// The server's address in the network.
pub(crate) const SERVER: &str = "10.64.0.1";
/// The guest's address in the network.
pub(crate) const GUEST: &str = "10.64.0.2/24";
/// The interface of the guest.
pub(crate) const TAP: &str = "tap0";

/// A network namespace for a test.
#[derive(Debug)]
pub(crate) struct Network {
    keeper: Running,
    /// Whether this process is root: a user creates a user namespace first.
    is_root: bool,
}

impl Network {
    /// Creates a network; `None`, with a message, if that is not permitted.
    pub(crate) fn new() -> Option<Network> {
        if !has(&["ip", "unshare", "nsenter", "setpriv"]) {
            return None;
        }
        let id = Command::new("id").arg("-u").output().ok()?;
        let is_root = id.stdout.trim_ascii() == b"0";
        let set_up = format!(
            "PATH=$PATH:/usr/sbin:/sbin
            ip link set lo up && ip tuntap add dev {TAP} mode tap && ip address add {SERVER}/24 dev {TAP} &&
            ip link set {TAP} up && echo made && exec sleep 3600"
        );
        let mut unshare = mortal("unshare");
        if !is_root {
            unshare.args(["--user", "--map-root-user"]);
        }
        unshare.args(["--net", "sh", "-c", &set_up]);
        let keeper = Running::start(&mut unshare, false);
        let is_made = keeper.wait_for(Duration::from_secs(10), |said| {
            let failed = said.contains("ailed") || said.contains("not permitted");
            (failed || said.contains("made")).then_some(!failed)
        });
        if !is_made {
            skipped(&format!("no network of its own: {}", keeper.said().trim()));
            return None;
        }
        Some(Network { keeper, is_root })
    }

    /// Returns a program in this network, which ends with the test.
    pub(crate) fn program(&self, name: impl AsRef<OsStr>) -> Command {
        let mut command = mortal("nsenter");
        command.args(["--target", &self.keeper.id().to_string(), "--net"]);
        if !self.is_root {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.arg("--").arg(name);
        command
    }
}
