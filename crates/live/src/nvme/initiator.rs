//! The host's side of a connection, without a socket: for benchmarks of targets and for tests.
//!
//! It opens the connection, sends commands, answers R2Ts and returns completions. The caller interprets the commands.
//! Source: NVM Express TCP Transport Specification 1.0; NVMe over Fabrics 1.1, chapter 3.3.

use zerocopy::{FromZeros, IntoBytes};

use super::FABRICS;
use super::fabrics::{ConnectData, kind};
use super::identify::name;
use super::wire::encode::Transfer;
use super::wire::pdu::{DataPdu, FLAG_LAST, FLAG_SUCCESS};
use super::wire::{Cqe, Decoder, Encoder, Header, PduEvent, Sgl, Sqe};
use crate::outbox::Outbox;

/// Maximum bytes in one PDU that are accepted from a controller.
const MOST_C2H: u32 = 16 << 20;

/// A completion, and the data of a read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CompletedCommand {
    /// Completion queue entry.
    pub cqe: Cqe,
    /// Data, if data is kept.
    pub data: Vec<u8>,
}

/// State of an outstanding command.
#[derive(Clone, Debug, Default)]
struct OutstandingCommand {
    in_use: bool,
    /// Data to send when the controller requests it.
    payload: Vec<u8>,
    /// Received data.
    data: Vec<u8>,
    /// Number of received data bytes, kept or not.
    came: u32,
}

/// The host's side of one connection.
#[derive(Debug)]
pub struct Initiator {
    decoder: Decoder,
    encoder: Encoder,
    opened: bool,
    most_h2c: u32,
    commands: Vec<OutstandingCommand>,
    /// Whether data of reads is kept (false: only counted).
    pub keep_data: bool,
    /// The command whose data is being received, and the flags of its PDU.
    incoming: Option<(u16, u8)>,
    /// Reason, if the controller has ended the connection.
    pub terminated: Option<u16>,
    /// Whether a data PDU was damaged.
    pub damaged: bool,
}

impl Initiator {
    /// Opens a connection for command identifiers below `commands`. `digests`: bit 0 for headers, bit 1 for data.
    pub fn new(commands: u16, digests: u8, out: &mut Outbox) -> Initiator {
        Encoder::ic_req(out, 0, digests, 0);
        let mut waiting = Vec::new();
        waiting.resize_with(usize::from(commands), OutstandingCommand::default);
        Initiator {
            decoder: Decoder::new(false, MOST_C2H),
            encoder: Encoder::default(),
            opened: false,
            most_h2c: 0,
            commands: waiting,
            keep_data: true,
            incoming: None,
            terminated: None,
            damaged: false,
        }
    }

    /// Checks whether the controller has accepted the connection; only then may commands be sent.
    pub fn is_open(&self) -> bool {
        self.opened
    }

    /// Sends a command. `payload` is put into the capsule if its SGL says so, otherwise it is sent when the controller
    /// requests it. The caller must not use identifiers that are in use or too large.
    #[inline]
    pub fn send(&mut self, sqe: &Sqe, payload: &[u8], out: &mut Outbox) {
        let inside = sqe.sgl.kind == Sgl::IN_CAPSULE;
        if let Some(waiting) = self.commands.get_mut(usize::from(sqe.cid.get())) {
            waiting.in_use = true;
            waiting.data.clear();
            waiting.came = 0;
            waiting.payload.clear();
            if !inside {
                waiting.payload.extend_from_slice(payload);
            }
        }
        self.encoder
            .command(out, sqe, if inside { payload } else { &[] });
    }

    /// Processes received bytes; `done` is called with completions.
    ///
    /// # Errors
    /// Protocol violations of the controller.
    #[inline]
    pub fn input(
        &mut self,
        bytes: &[u8],
        out: &mut Outbox,
        mut done: impl FnMut(CompletedCommand),
    ) -> Result<(), String> {
        let mut rest = bytes;
        while let Some(event) = self.decoder.next(&mut rest).map_err(|it| it.reason)? {
            match event {
                PduEvent::Header(header, _) => self.header(header, out, &mut done)?,
                PduEvent::Data(data) => {
                    if let Some((cid, _)) = self.incoming {
                        let waiting = &mut self.commands[usize::from(cid)];
                        waiting.came += data.len() as u32;
                        if self.keep_data {
                            waiting.data.extend_from_slice(data);
                        }
                    }
                }
                PduEvent::End(intact) => {
                    self.damaged |= !intact;
                    if let Some((cid, flags)) = self.incoming.take()
                        && flags & (FLAG_SUCCESS | FLAG_LAST) == FLAG_SUCCESS | FLAG_LAST
                    {
                        let cqe = Cqe {
                            cid: cid.into(),
                            ..Cqe::default()
                        };
                        self.complete(cqe, &mut done)?;
                    }
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn header(
        &mut self,
        header: Header,
        out: &mut Outbox,
        done: &mut impl FnMut(CompletedCommand),
    ) -> Result<(), String> {
        match header {
            Header::IcResp(answer) => {
                self.opened = true;
                self.most_h2c = answer.max_h2c_data.get();
                self.encoder = Encoder {
                    header_digest: answer.digests & 1 != 0,
                    data_digest: answer.digests & 2 != 0,
                    alignment: (u32::from(answer.alignment) + 1) * 4,
                };
                self.decoder.rules.header_digest = self.encoder.header_digest;
                self.decoder.rules.data_digest = self.encoder.data_digest;
                Ok(())
            }
            Header::Response(response) => self.complete(response.cqe, done),
            Header::C2hData(data) => {
                let cid = self.check_cid(data.cid.get())?;
                let came = self.commands[usize::from(cid)].came;
                if data.offset.get() != came {
                    return Err(format!("data at {} after {came} bytes", data.offset));
                }
                self.incoming = Some((cid, data.common.flags));
                Ok(())
            }
            Header::R2t(wanted) => self.answer(&wanted, out),
            Header::Term(term) => {
                self.terminated = Some(term.fatal.get());
                Ok(())
            }
            _ => Err("a PDU that a controller does not send".into()),
        }
    }

    fn check_cid(&self, cid: u16) -> Result<u16, String> {
        match self.commands.get(usize::from(cid)) {
            Some(waiting) if waiting.in_use => Ok(cid),
            _ => Err(format!("an answer to command {cid}, which was not sent")),
        }
    }

    /// Sends data that the controller has requested.
    fn answer(&mut self, wanted: &DataPdu, out: &mut Outbox) -> Result<(), String> {
        let cid = self.check_cid(wanted.cid.get())?;
        let payload = &self.commands[usize::from(cid)].payload;
        let (mut at, end) = (
            wanted.offset.get() as usize,
            wanted.offset.get() as usize + wanted.length.get() as usize,
        );
        if end > payload.len() {
            return Err(format!("{end} bytes are asked for of {}", payload.len()));
        }
        while at < end {
            let next = end.min(at + self.most_h2c.max(4096) as usize);
            let transfer = Transfer {
                cid,
                tag: wanted.tag.get(),
                offset: at as u32,
                flags: if next == end { FLAG_LAST } else { 0 },
            };
            self.encoder.h2c_data(out, transfer, &payload[at..next]);
            at = next;
        }
        Ok(())
    }

    #[inline]
    fn complete(
        &mut self,
        cqe: Cqe,
        done: &mut impl FnMut(CompletedCommand),
    ) -> Result<(), String> {
        let cid = self.check_cid(cqe.cid.get())?;
        let waiting = &mut self.commands[usize::from(cid)];
        waiting.in_use = false;
        let data = std::mem::take(&mut waiting.data);
        done(CompletedCommand { cqe, data });
        Ok(())
    }
}

/// Parameters of a Connect command.
#[derive(Clone, Copy, Debug)]
pub struct ConnectTo<'a> {
    /// Name of the subsystem.
    pub subnqn: &'a str,
    /// Name of the host.
    pub hostnqn: &'a str,
    /// Identifier of the host.
    pub host_id: [u8; 16],
    /// Queue number; 0 is the admin queue.
    pub queue: u16,
    /// Controller of an I/O queue.
    pub controller: u16,
    /// Number of entries of the queue, at least 2.
    pub entries: u16,
    /// Keep-alive timeout in ms; 0: no keep-alive.
    pub keep_alive_ms: u32,
}

impl ConnectTo<'_> {
    /// Returns the command and its data. Flow control of the queue is disabled.
    pub fn command(&self, cid: u16) -> (Sqe, Vec<u8>) {
        let mut data = ConnectData::new_zeroed();
        data.host_id = self.host_id;
        data.cntlid.set(self.controller);
        name(&mut data.subnqn, self.subnqn);
        name(&mut data.hostnqn, self.hostnqn);
        let length = size_of::<ConnectData>() as u32;
        let mut sqe = Sqe::fabric(FABRICS, cid, kind::CONNECT.into(), Sgl::in_capsule(length));
        sqe.cdw10 = (u32::from(self.queue) << 16).into();
        sqe.cdw11 = (u32::from(self.entries - 1) | 1 << 18).into();
        sqe.cdw12 = self.keep_alive_ms.into();
        (sqe, data.as_bytes().to_vec())
    }
}

/// Returns a Property Set of four bytes.
pub fn property_set(cid: u16, offset: u32, value: u32) -> Sqe {
    let mut sqe = Sqe::fabric(FABRICS, cid, kind::PROPERTY_SET.into(), Sgl::default());
    sqe.cdw11 = offset.into();
    sqe.cdw12 = value.into();
    sqe
}

/// Returns a Property Get; `wide`: of eight bytes.
pub fn property_get(cid: u16, offset: u32, wide: bool) -> Sqe {
    let mut sqe = Sqe::fabric(FABRICS, cid, kind::PROPERTY_GET.into(), Sgl::default());
    sqe.cdw10 = u32::from(wide).into();
    sqe.cdw11 = offset.into();
    sqe
}
