//! Parsing and display of addresses.

use live::protocol::{Address, AddressKind, Protocol};
use std::net::{SocketAddr, ToSocketAddrs};

use text::problem::{Problem, Problems};

use crate::failure::on_command_line;

/// Returns the addresses of a front end, parsed according to their kind.
pub(super) fn addresses(
    protocol: &Protocol,
    texts: &[String],
    remote: bool,
    problems: &mut Problems,
) -> Vec<Address> {
    let option = &format!("--{}", protocol.option);
    let passes = match protocol.places {
        AddressKind::EachDrive | AddressKind::File => {
            return texts
                .iter()
                .map(|path| Address::Unix(path.into()))
                .collect();
        }
        AddressKind::Addresses { passed } => passed,
    };
    let mut addresses = Vec::new();
    for text in texts {
        if let Some(path) = text.strip_prefix("unix:") {
            addresses.push(Address::Unix(path.into()));
            continue;
        }
        if passes && text == "systemd" {
            let before = addresses
                .iter()
                .filter(|it| matches!(it, Address::Passed(_)));
            addresses.push(Address::Passed(before.count()));
            continue;
        }
        match host_and_port(option, text) {
            Ok(address) if !address.ip().is_loopback() && !remote => {
                problems.0.push(on_command_line(
                    format!("{option} {text}: other machines could reach it"),
                    "there is no authentication: if the network is trusted, add --allow-remote",
                ));
            }
            Ok(address) => addresses.push(Address::Tcp(address)),
            Err(problem) => problems.0.push(problem),
        }
    }
    addresses
}

/// Returns the address given by numbers or by a host name; of several, the first IPv4 address.
fn host_and_port(option: &str, text: &str) -> Result<SocketAddr, Problem> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let such_as = "such as 127.0.0.1:10809, localhost:10809, [::1]:10809 or unix:drive.sock";
    let named = text.rsplit_once(':').is_some_and(|(host, port)| {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        !host.is_empty() && host.chars().all(word) && port.parse::<u16>().is_ok()
    });
    if !named {
        let what = format!("{option} {text}: not an address");
        return Err(on_command_line(what, such_as));
    }
    let found: Vec<SocketAddr> = match text.to_socket_addrs() {
        Ok(found) => found.collect(),
        Err(_) => Vec::new(),
    };
    let first = found.iter().find(|it| it.is_ipv4()).or(found.first());
    first
        .copied()
        .ok_or_else(|| on_command_line(format!("{option} {text}: no such host is known"), such_as))
}

pub(super) fn shown(address: &Address) -> String {
    match address {
        Address::Tcp(address) => address.to_string(),
        Address::Unix(path) => format!("unix:{}", path.display()),
        Address::Passed(_) => String::from("systemd"),
    }
}
