//! The negotiation before the first command: fixed newstyle.
//!
//! A client is disconnected if it does not support fixed newstyle, sends an option without its magic or one larger
//! than 8 KiB, or sends more than a thousand options.

use super::wire::{
    FIXED_NEWSTYLE, MAGIC, NO_ZEROES, OPTION_MAGIC, about, answer, be16, be32, can, option,
    option_reply,
};
use super::{CONTEXT, CONTEXT_ID, LARGEST, NegotiatedOptions};
use crate::outbox::Outbox;
use crate::port::{ConnectionEnd, Port};
use crate::served::ServedDevice;

/// Maximum bytes of an option.
const LARGEST_OPTION: u32 = 8192;

/// Maximum number of options.
const MOST_OPTIONS: u32 = 1000;

/// State of the negotiation.
#[derive(Debug, Default)]
pub(super) struct Handshake {
    /// The client's flags, after it has sent them.
    flags: Option<u32>,
    options: u32,
    structured: bool,
    /// Export for which block status was negotiated.
    context: Option<usize>,
    encryption: Encryption,
}

/// Whether the connection is encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Encryption {
    /// Not encrypted, and TLS is not offered.
    #[default]
    None,
    /// Not encrypted yet: nothing is revealed before the client has begun TLS.
    Awaited,
    /// TLS is active.
    Begun,
}

/// Next step of the negotiation.
pub(super) enum HandshakeProgress {
    /// The negotiation continues.
    More,
    /// TLS begins, followed by the negotiation from its beginning.
    Tls,
    /// Commands follow.
    Commands(NegotiatedOptions),
}

/// Returns the transmission flags of an export.
fn abilities(structured: bool, drive: &ServedDevice) -> u16 {
    let mut can =
        can::HAS_FLAGS | can::FLUSH | can::FUA | can::TRIM | can::WRITE_ZEROES | can::MULTI_CONN;
    if structured {
        can |= can::DF;
    }
    if drive.read_only() {
        can |= can::READ_ONLY;
    }
    can
}

impl Handshake {
    /// Returns the state for a client that must begin TLS.
    pub(super) fn awaiting_tls() -> Handshake {
        Handshake {
            encryption: Encryption::Awaited,
            ..Handshake::default()
        }
    }

    /// Discards everything negotiated without encryption, because an attacker may have sent it.
    fn begin_tls(&mut self) {
        *self = Handshake {
            flags: self.flags,
            options: self.options,
            encryption: Encryption::Begun,
            ..Handshake::default()
        };
    }

    pub(super) fn greet(out: &mut Outbox) {
        out.push(MAGIC);
        out.push(OPTION_MAGIC);
        out.push(&(FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
    }

    /// Processes input: returns the number of bytes used, and the next step.
    pub(super) fn input(
        &mut self,
        bytes: &[u8],
        names: &[String],
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<(usize, HandshakeProgress), ConnectionEnd> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            if self.flags.is_none() {
                if rest.len() < 4 {
                    return Ok((used, HandshakeProgress::More));
                }
                let flags = be32(rest, 0);
                if flags & u32::from(FIXED_NEWSTYLE) == 0
                    || flags & !u32::from(FIXED_NEWSTYLE | NO_ZEROES) != 0
                {
                    return Err(ConnectionEnd::broke(format!("client flags {flags:#x}")));
                }
                self.flags = Some(flags);
                used += 4;
                continue;
            }
            if rest.len() < 16 {
                return Ok((used, HandshakeProgress::More));
            }
            if rest[..8] != *OPTION_MAGIC {
                return Err(ConnectionEnd::broke("an option without its magic"));
            }
            let (number, length) = (be32(rest, 8), be32(rest, 12));
            self.options += 1;
            if length > LARGEST_OPTION || self.options > MOST_OPTIONS {
                return Err(ConnectionEnd::broke(format!(
                    "option {number} of {length} bytes, the {}th",
                    self.options
                )));
            }
            let whole = 16 + length as usize;
            if rest.len() < whole {
                // Counted again when it is complete.
                self.options -= 1;
                return Ok((used, HandshakeProgress::More));
            }
            used += whole;
            match self.option(number, &rest[16..whole], names, out, port)? {
                HandshakeProgress::More => {}
                progress => return Ok((used, progress)),
            }
        }
    }

    fn option(
        &mut self,
        number: u32,
        data: &[u8],
        names: &[String],
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<HandshakeProgress, ConnectionEnd> {
        match number {
            option::ABORT => {
                out.push(&option_reply(number, answer::ACK, 0));
                return Err(ConnectionEnd::Left);
            }
            option::STARTTLS if self.encryption == Encryption::Awaited && data.is_empty() => {
                out.push(&option_reply(number, answer::ACK, 0));
                self.begin_tls();
                return Ok(HandshakeProgress::Tls);
            }
            option::STARTTLS if self.encryption != Encryption::None => {
                refuse(out, number, answer::ERR_INVALID, "TLS has begun, or data");
            }
            // The reply to this option cannot carry an error.
            option::EXPORT_NAME if self.encryption == Encryption::Awaited => {
                return Err(ConnectionEnd::broke("a client without TLS"));
            }
            _ if self.encryption == Encryption::Awaited => {
                refuse(out, number, answer::ERR_TLS_REQD, "TLS is required");
            }
            option::EXPORT_NAME => return self.export_name(data, names, out, port),
            option::LIST if data.is_empty() => {
                for name in names {
                    let length = name.len() as u32;
                    out.push(&option_reply(number, answer::SERVER, length + 4));
                    out.push(&length.to_be_bytes());
                    out.push(name.as_bytes());
                }
                out.push(&option_reply(number, answer::ACK, 0));
            }
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.structured = true;
                out.push(&option_reply(number, answer::ACK, 0));
            }
            option::LIST | option::STRUCTURED_REPLY => {
                refuse(out, number, answer::ERR_INVALID, "it takes no data");
            }
            option::INFO | option::GO => return Ok(self.info(number, data, names, out, port)),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
                self.contexts(number, data, names, out);
            }
            _ => refuse(out, number, answer::ERR_UNSUP, "not supported"),
        }
        Ok(HandshakeProgress::More)
    }

    fn negotiated(&self, export: usize, port: &mut Port<'_>) -> NegotiatedOptions {
        NegotiatedOptions {
            export,
            block: port.drive(export).block(),
            structured: self.structured,
            contexts: self.context == Some(export),
        }
    }

    /// Executes the old way to begin: the reply has only the size.
    fn export_name(
        &self,
        data: &[u8],
        names: &[String],
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> Result<HandshakeProgress, ConnectionEnd> {
        let export = find(names, data)
            .ok_or_else(|| ConnectionEnd::broke(format!("no export `{}`", data.escape_ascii())))?;
        out.push(&port.drive(export).bytes().to_be_bytes());
        out.push(&abilities(self.structured, port.drive(export)).to_be_bytes());
        if self.flags.unwrap_or(0) & u32::from(NO_ZEROES) == 0 {
            out.push(&[0; 124]);
        }
        Ok(HandshakeProgress::Commands(self.negotiated(export, port)))
    }

    fn info(
        &self,
        number: u32,
        data: &[u8],
        names: &[String],
        out: &mut Outbox,
        port: &mut Port<'_>,
    ) -> HandshakeProgress {
        let Some((name, wanted)) = name_and_numbers(data) else {
            refuse(out, number, answer::ERR_INVALID, "lengths do not fit");
            return HandshakeProgress::More;
        };
        let Some(export) = find(names, name) else {
            refuse(out, number, answer::ERR_UNKNOWN, "no such export");
            return HandshakeProgress::More;
        };
        let drive = port.drive(export);
        let mut tell = |kind: u16, data: &[u8]| {
            out.push(&option_reply(number, answer::INFO, data.len() as u32 + 2));
            out.push(&kind.to_be_bytes());
            out.push(data);
        };
        let mut size = drive.bytes().to_be_bytes().to_vec();
        size.extend(abilities(self.structured, drive).to_be_bytes());
        tell(about::EXPORT, &size);
        for kind in wanted {
            match kind {
                about::NAME => tell(kind, names[export].as_bytes()),
                about::DESCRIPTION => tell(kind, drive.sheet().name.as_bytes()),
                _ => {}
            }
        }
        // Sent whether requested or not: the protocol allows it, and a client that obeys it sends only aligned
        // requests.
        let sizes = [drive.block(), 4096, LARGEST];
        tell(about::BLOCK_SIZE, &sizes.map(u32::to_be_bytes).concat());
        out.push(&option_reply(number, answer::ACK, 0));
        if number == option::GO {
            HandshakeProgress::Commands(self.negotiated(export, port))
        } else {
            HandshakeProgress::More
        }
    }

    fn contexts(&mut self, number: u32, data: &[u8], names: &[String], out: &mut Outbox) {
        let Some((name, queries)) = name_and_queries(data) else {
            refuse(out, number, answer::ERR_INVALID, "lengths do not fit");
            return;
        };
        if !self.structured {
            let why = "structured replies must be negotiated first";
            refuse(out, number, answer::ERR_INVALID, why);
            return;
        }
        let Some(export) = find(names, name) else {
            refuse(out, number, answer::ERR_UNKNOWN, "no such export");
            return;
        };
        let sets = number == option::SET_META_CONTEXT;
        let wanted = (!sets && queries.is_empty())
            || queries
                .iter()
                .any(|&query| query == CONTEXT || (!sets && query == b"base:"));
        if sets {
            self.context = wanted.then_some(export);
        }
        if wanted {
            let length = 4 + CONTEXT.len() as u32;
            out.push(&option_reply(number, answer::META_CONTEXT, length));
            out.push(&CONTEXT_ID.to_be_bytes());
            out.push(CONTEXT);
        }
        out.push(&option_reply(number, answer::ACK, 0));
    }
}

fn refuse(out: &mut Outbox, number: u32, answer: u32, why: &str) {
    out.push(&option_reply(number, answer, why.len() as u32));
    out.push(why.as_bytes());
}

/// Returns the export with this name; an empty name is the first.
fn find(names: &[String], name: &[u8]) -> Option<usize> {
    if name.is_empty() {
        return (!names.is_empty()).then_some(0);
    }
    names.iter().position(|known| known.as_bytes() == name)
}

/// Splits off a string with its length before it.
fn string(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = data.get(..4).map(|bytes| be32(bytes, 0))? as usize;
    data[4..].split_at_checked(length)
}

/// Returns an export's name and 16-bit numbers.
fn name_and_numbers(data: &[u8]) -> Option<(&[u8], Vec<u16>)> {
    let (name, rest) = string(data)?;
    let count = rest.get(..2).map(|bytes| be16(bytes, 0))? as usize;
    let numbers = &rest[2..];
    (numbers.len() == count * 2).then(|| {
        let numbers = numbers.chunks(2).map(|number| be16(number, 0));
        (name, numbers.collect())
    })
}

/// Returns an export's name and strings.
fn name_and_queries(data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let (name, rest) = string(data)?;
    let count = rest.get(..4).map(|bytes| be32(bytes, 0))?;
    let mut rest = &rest[4..];
    let mut queries = Vec::new();
    for _ in 0..count {
        let (query, after) = string(rest)?;
        queries.push(query);
        rest = after;
    }
    rest.is_empty().then_some((name, queries))
}
