//! Control of a running server by text lines: faults, power cut, status.
//!
//! For each input line, one or more lines are returned; the last is `ok` or `error: ...`. Input lines are those of
//! [`workload::faults`], whose times and counts begin with the line, and `status`, `help`, `save`. `ack TOKEN`,
//! `try TOKEN` and `mark TEXT` are written to the log of the recorded drive. If a client waits for the `ok` before it
//! continues, they are in the log in causal order.

use std::fmt::Write as _;

use crash::log::Note;
use workload::faults::{DriveNames, SYNTAX, ScheduledFault, TIMINGS, Target};

use crate::metrics;
use crate::outbox::Outbox;
use crate::port::{ConnectionEnd, Endpoint, Front, Port, Socket};
use crate::protocol::{AddressKind, Clients, Protocol, Service};
use crate::served::{Reply, ServedDevice};
use crate::stream::{Connection, Stream};

/// Maximum length of a line.
const LONGEST: usize = 4096;

/// Commands whose text is written to the log of the recorded drive.
const NOTES: [(&str, Note); 3] = [("ack", Note::Ack), ("try", Note::Try), ("mark", Note::Mark)];

/// The control protocol.
pub const PROTOCOL: Protocol = Protocol {
    option: "control",
    value: "SOCKET",
    help: "Accept faults and queries, one per line, on this Unix socket (`help` lists them)",
    places: AddressKind::File,
    clients: Clients::Watchers,
    settings: &[],
    read: |_| Ok(Box::new(Control)),
};

/// Front end for control connections.
#[derive(Debug, Default)]
pub struct Control;

impl Service for Control {
    fn front(&self, _: usize) -> Box<dyn Front> {
        Box::new(Control)
    }
}

impl Front for Control {
    fn name(&self) -> &'static str {
        "control"
    }

    fn accept(&mut self, socket: Socket, _peer: &str) -> Result<Box<dyn Endpoint>, String> {
        Ok(Box::new(Stream::new(socket, ControlConnection)))
    }
}

/// Connection of one client of the control socket; each request is a line of text.
#[derive(Debug)]
pub struct ControlConnection;

impl Connection for ControlConnection {
    fn is_client(&self) -> bool {
        false
    }

    fn input(
        &mut self,
        bytes: &[u8],
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<usize, ConnectionEnd> {
        let mut used = 0;
        while let Some(end) = bytes[used..].iter().position(|&byte| byte == b'\n') {
            let line = String::from_utf8_lossy(&bytes[used..used + end]);
            used += end + 1;
            let answer = match obey(line.trim(), port) {
                Ok(text) => text + "ok\n",
                Err(why) => format!("error: {why}\n"),
            };
            out.push(answer.as_bytes());
        }
        if bytes.len() - used > LONGEST {
            return Err(ConnectionEnd::broke("a line without end"));
        }
        Ok(used)
    }

    fn reply(&mut self, _: &Reply, _: &mut Outbox, _: &mut Port<'_>) -> Result<(), ConnectionEnd> {
        Ok(())
    }
}

fn obey(line: &str, port: &mut Port<'_>) -> Result<String, String> {
    match line {
        "" => return Ok(String::new()),
        "status" => return Ok(metrics::text(port)),
        "help" => {
            let mut text = String::from("status\nsave\n");
            text.push_str("ack TOKEN, try TOKEN or mark TEXT, into the log of --record\n");
            let _ = writeln!(text, "[{}] [DRIVE: or MEMBER:] FAULT", TIMINGS.join(" or "));
            text.push_str("FAULT is one of:\n");
            for fault in SYNTAX {
                // Writing to a string does not fail.
                let _ = writeln!(text, "  {fault}");
            }
            return Ok(text);
        }
        "save" => {
            for index in 0..port.drives() {
                let drive = port.drive(index);
                drive.save(false).map_err(|error| error.to_string())?;
            }
            return Ok(String::new());
        }
        _ => {}
    }
    for (word, note) in NOTES {
        let text = line.strip_prefix(word).and_then(|it| it.strip_prefix(' '));
        if let Some(text) = text {
            let recorded = (0..port.drives()).find(|it| port.drive(*it).is_recorded());
            let drive = port.drive(recorded.unwrap_or_default());
            return drive.note(note, text.trim()).map(|()| String::new());
        }
    }
    let planned: ScheduledFault = line.parse()?;
    let drives: Vec<DriveNames> = (0..port.drives()).map(|it| whole(port.drive(it))).collect();
    let target = Target::named(planned.drive.as_deref(), &drives)?;
    let remark = port.drive(target.drive).remark(&planned.fault);
    port.fault_when(planned.when, target, planned.fault)?;
    Ok(remark.into())
}

fn whole(drive: &ServedDevice) -> DriveNames {
    DriveNames {
        name: drive.name().to_owned(),
        members: drive.members().iter().map(ToString::to_string).collect(),
    }
}
