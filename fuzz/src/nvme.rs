//! NVMe/TCP: single PDUs, and sequences of messages over several connections of one target.

use std::cell::RefCell;
use std::rc::Rc;

use live::nvme::controller::property;
use live::nvme::initiator::{ConnectTo, Initiator, property_get, property_set};
use live::nvme::wire::encode::Transfer;
use live::nvme::wire::{Decoder, Encoder, Header, PduEvent, Sgl, Sqe};
use live::nvme::{DISCOVERY_NQN, NvmeConnection, NvmeOptions, NvmeTarget};
use live::offline::Offline;
use live::{Connection as _, ConnectionLimits, ConnectionEnd, Outbox, ServedDevice, Setup};
use model::media::Precondition;

type Pdus = Vec<(Header, Vec<u8>, bool)>;

/// Takes bytes apart until they are refused or used up.
fn decoded(decoder: &mut Decoder, bytes: &[u8], piece: usize) -> Pdus {
    let mut all: Pdus = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        let mut rest = piece;
        loop {
            match decoder.next(&mut rest) {
                Ok(None) => break,
                Err(fault) => {
                    assert!(!fault.reason.is_empty());
                    return all;
                }
                Ok(Some(PduEvent::Header(header, _))) => all.push((header, Vec::new(), false)),
                Ok(Some(PduEvent::Data(data))) => {
                    let last = all.last_mut().expect("data follows a header");
                    last.1.extend_from_slice(data);
                }
                Ok(Some(PduEvent::End(intact))) => {
                    all.last_mut()
                        .expect("the end of a PDU follows its header")
                        .2 = intact;
                }
            }
        }
    }
    all
}

/// What is read is the same when it is written and read again, and when it comes in pieces.
pub fn pdus(bytes: &[u8]) {
    let Some((&rules, bytes)) = bytes.split_first() else {
        return;
    };
    let controller = rules & 1 != 0;
    let encoder = Encoder {
        header_digest: rules & 2 != 0,
        data_digest: rules & 4 != 0,
        alignment: (u32::from(rules >> 3) + 1) * 4,
    };
    let decoder = || {
        let mut decoder = Decoder::new(controller, 1 << 16);
        decoder.rules.header_digest = encoder.header_digest;
        decoder.rules.data_digest = encoder.data_digest;
        decoder
    };
    let whole = decoded(&mut decoder(), bytes, usize::MAX);
    assert_eq!(whole, decoded(&mut decoder(), bytes, 7));
    for (header, data, intact) in whole {
        if !intact {
            continue;
        }
        let mut out = Outbox::default();
        let transfer = |it: &live::nvme::wire::pdu::DataPdu| Transfer {
            cid: it.cid.get(),
            tag: it.tag.get(),
            offset: it.offset.get(),
            flags: it.common.flags & 12,
        };
        match &header {
            Header::Command(it) => encoder.command(&mut out, &it.sqe, &data),
            Header::Response(it) => encoder.response(&mut out, &it.cqe),
            Header::H2cData(it) if !data.is_empty() => {
                encoder.h2c_data(&mut out, transfer(it), &data);
            }
            Header::R2t(it) => encoder.r2t(&mut out, transfer(it), it.length.get()),
            _ => continue,
        }
        let again = decoded(&mut decoder(), out.unsent(), usize::MAX);
        assert_eq!(again.len(), 1);
        let same = match (&header, &again[0].0) {
            (Header::Command(a), Header::Command(b)) => a.sqe == b.sqe,
            (Header::Response(a), Header::Response(b)) => a.cqe == b.cqe,
            (Header::H2cData(a), Header::H2cData(b)) => a.cid == b.cid && a.offset == b.offset,
            (Header::R2t(a), Header::R2t(b)) => a.cid == b.cid && a.length == b.length,
            _ => false,
        };
        assert!(same && again[0].1 == data && again[0].2);
    }
}

/// The bytes of the input, as numbers; zeroes when they are used up.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        byte
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = (usize::from(self.byte()) * 4).min(most).min(self.0.len());
        let (front, rest) = self.0.split_at(length);
        self.0 = rest;
        front.to_vec()
    }
}

/// A target with connections, any of which may have ended.
struct Rig {
    shared: Rc<RefCell<NvmeTarget>>,
    nqn: String,
    drives: Vec<ServedDevice>,
    lines: Vec<Option<Line>>,
}

struct Line {
    offline: Offline<NvmeConnection>,
    encoder: Encoder,
}

const HOST_NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:fuzz";
const LINES: usize = 4;
/// Opcodes that mean something, and some that do not.
const OPCODES: [u8; 32] = [
    0x0d, 0x0d, 0x14, 0x15, 0x15, 0x19, 0x86, 0x19, 0x00, 0x01, 0x02, 0x04, 0x05, 0x08, 0x09, 0x0c,
    0x06, 0x0a, 0x18, 0x80, 0x84, 0x7f, 0x02, 0x01, 0x09, 0x0a, 0x06, 0x02, 0x0c, 0x03, 0xff, 0x05,
];

fn drive(full: bool) -> ServedDevice {
    let mut setup = Setup {
        name: "fuzz".into(),
        size: Some(16 << 20),
        precondition: Some(Precondition::Fresh),
        ..Setup::new(catalogue::drive("p4800x-375").expect("a drive of the catalogue"))
    };
    if full {
        live::nvme::add_formats(&mut setup);
    }
    setup.open().expect("a drive that can be served")
}

impl Rig {
    /// `full`: with all that hosts may ask for, whether the drive has it or not.
    fn new(full: bool) -> Rig {
        let mut options = NvmeOptions::new("fuzz", 1);
        options.controllers = 3;
        options.full = full;
        Rig {
            nqn: options.nqn.clone(),
            shared: Rc::new(RefCell::new(NvmeTarget::new(options))),
            drives: vec![drive(full)],
            lines: (0..LINES).map(|_| None).collect(),
        }
    }

    fn open(&mut self, line: usize, digests: u8) {
        // The old one first: its controller goes.
        self.lines[line] = None;
        let connection = NvmeConnection::new(Rc::clone(&self.shared), ("::1".into(), 4420));
        let drives = std::mem::take(&mut self.drives);
        let mut offline =
            Offline::new(drives, connection, ConnectionLimits::default()).expect("a connection");
        self.drives = std::mem::take(&mut offline.drives);
        let mut out = Outbox::default();
        Initiator::new(1, digests, &mut out);
        self.lines[line] = Some(Line {
            offline,
            encoder: Encoder {
                header_digest: digests & 1 != 0,
                data_digest: digests & 2 != 0,
                alignment: 4,
            },
        });
        self.say(line, out.unsent());
    }

    /// What the controller answers; nothing if the connection has ended, now or before.
    fn say(&mut self, line: usize, bytes: &[u8]) -> Vec<u8> {
        let Some(it) = &mut self.lines[line] else {
            return Vec::new();
        };
        it.offline.drives = std::mem::take(&mut self.drives);
        let end = it.offline.send(bytes);
        self.drives = std::mem::take(&mut it.offline.drives);
        match end {
            Ok(said) => said,
            Err(ConnectionEnd::Failed(reason)) => panic!("{reason}"),
            Err(_) => {
                self.lines[line] = None;
                Vec::new()
            }
        }
    }

    fn command(&mut self, line: usize, sqe: &Sqe, data: &[u8]) {
        let Some(it) = &self.lines[line] else { return };
        let mut out = Outbox::default();
        it.encoder.command(&mut out, sqe, data);
        self.say(line, out.unsent());
    }

    fn connect(&mut self, line: usize, script: &mut Script<'_>) {
        let choice = script.byte();
        let queue = u16::from(choice & 3);
        let nqn = if choice & 128 != 0 {
            DISCOVERY_NQN.into()
        } else {
            self.nqn.clone()
        };
        let to = ConnectTo {
            subnqn: &nqn,
            hostnqn: HOST_NQN,
            host_id: [1; 16],
            queue,
            controller: if queue == 0 {
                0xffff
            } else {
                u16::from(choice >> 2 & 3)
            },
            entries: u16::from(script.byte()) + 1,
            keep_alive_ms: 0,
        };
        let (mut sqe, data) = to.command(script.byte().into());
        if choice & 64 != 0 {
            // With flow control.
            sqe.cdw11 = (sqe.cdw11.get() & 0xffff).into();
        }
        self.command(line, &sqe, &data);
        if queue == 0 {
            self.command(line, &property_set(300, property::CC, 0x0046_0001), &[]);
        }
    }

    fn any_command(&mut self, line: usize, script: &mut Script<'_>) {
        let opcode = OPCODES[usize::from(script.byte()) % OPCODES.len()];
        let cid = u16::from(script.byte());
        let data = script.bytes(1024);
        let choice = script.byte();
        let length = match choice & 3 {
            0 => data.len() as u32,
            1 => 512 * (u32::from(script.byte()) + 1),
            2 => 4096,
            _ => script.word(),
        };
        let sgl = if choice & 4 != 0 {
            Sgl::in_capsule(length)
        } else {
            Sgl::transport(length)
        };
        let nsid = if choice & 8 != 0 { script.word() } else { 1 };
        let mut sqe = Sqe::fabric(opcode, cid, nsid, sgl);
        sqe.flags |= choice >> 4 & 3;
        let small = choice & 64 != 0;
        let mut field = || {
            if small {
                u32::from(script.byte())
            } else {
                script.word()
            }
        };
        sqe.cdw10 = field().into();
        sqe.cdw11 = field().into();
        sqe.cdw12 = field().into();
        sqe.cdw13 = field().into();
        sqe.cdw14 = field().into();
        sqe.cdw15 = field().into();
        self.command(line, &sqe, &data);
    }

    fn data(&mut self, line: usize, script: &mut Script<'_>) {
        let Some(it) = &self.lines[line] else { return };
        let mut out = Outbox::default();
        let transfer = Transfer {
            cid: script.byte().into(),
            tag: script.byte().into(),
            offset: u32::from(script.byte()) * 512,
            flags: script.byte() & 4,
        };
        let length = (usize::from(script.byte()) + 1) * 512;
        it.encoder
            .h2c_data(&mut out, transfer, &vec![script.byte(); length]);
        self.say(line, out.unsent());
    }

    fn tick(&mut self, line: usize) {
        let Some(it) = &mut self.lines[line] else {
            return;
        };
        it.offline.drives = std::mem::take(&mut self.drives);
        let end = it
            .offline
            .with_port(|connection, out, port| connection.tick(out, port));
        self.drives = std::mem::take(&mut it.offline.drives);
        if end.is_err() {
            self.lines[line] = None;
        }
    }
}

/// Whatever several hosts say in whatever order, the target goes on to serve others.
pub fn sequence(bytes: &[u8]) {
    let mut script = Script(bytes);
    let mut rig = Rig::new(bytes.len() % 2 == 1);
    for line in 0..2 {
        rig.open(line, 0);
    }
    while !script.0.is_empty() {
        let choice = script.byte();
        let line = usize::from(choice >> 4) % LINES;
        match choice & 15 {
            0 => rig.open(line, script.byte() & 3),
            1 | 2 => rig.connect(line, &mut script),
            3..=7 => rig.any_command(line, &mut script),
            8 | 9 => rig.data(line, &mut script),
            10 => {
                let bytes = script.bytes(512);
                rig.say(line, &bytes);
            }
            11 => rig.tick(line),
            12 => rig.lines[line] = None,
            13 => {
                let value = script.word();
                rig.command(line, &property_set(301, property::CC, value), &[]);
            }
            _ => rig.command(line, &property_get(302, script.byte().into(), false), &[]),
        }
    }
    rig.lines.iter_mut().for_each(|line| *line = None);
    assert_eq!(
        rig.shared.borrow().connected(),
        0,
        "controllers go with their hosts"
    );
    // As new: with what was formatted meanwhile.
    rig.open(0, 0);
    rig.connect(0, &mut Script(&[0, 31, 1]));
    rig.tick(0);
    assert!(rig.lines[0].is_some(), "another host can connect");
    rig.open(1, 3);
    rig.connect(1, &mut Script(&[1 | 1 << 2, 31, 1]));
}
