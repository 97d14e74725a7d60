//! A scripted host without sockets: several connections to one target, with one command at a time on each.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use live::nvme::admin::opcode as admin;
use live::nvme::controller::property;
use live::nvme::initiator::{CompletedCommand, ConnectTo, Initiator, property_set};
use live::nvme::wire::{Sgl, Sqe, Status};
use live::nvme::{NvmeConnection, NvmeOptions, NvmeTarget};
use live::offline::Offline;
use live::served::Reply;
use live::{
    Connection as _, ConnectionEnd, ConnectionLimits, Outbox, ServedDevice, Setup, StoreChoice,
};
use model::media::Precondition;

pub(crate) const HOST_NQN: &str =
    "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-000000000001";
pub(crate) const ENABLE: u32 = 1 | 6 << 16 | 4 << 20;
/// Bytes of the namespace.
pub(crate) const BYTES: u64 = 64 << 20;

/// A drive of the catalogue, with its data in memory.
pub(crate) fn drive(id: &str) -> ServedDevice {
    setup(id).open().expect("a drive that can be served")
}

/// Returns a drive with all formats that can be offered.
pub(crate) fn drive_with_all_formats(id: &str) -> ServedDevice {
    let mut setup = setup(id);
    live::nvme::add_formats(&mut setup);
    setup.open().expect("a drive that can be served")
}

/// Returns a P4800X with its data in this file.
pub(crate) fn stored_drive(file: &Path) -> ServedDevice {
    let mut setup = setup("p4800x-375");
    setup.store = StoreChoice::File(file.into());
    setup.open().expect("a drive that can be served")
}

fn setup(id: &str) -> Setup {
    Setup {
        serial: "TEST0001".into(),
        size: Some(BYTES),
        precondition: Some(Precondition::Fresh),
        ..Setup::new(catalogue::drive(id).expect("a drive of the catalogue"))
    }
}

/// A target, its drives, and the connections to it.
pub(crate) struct Host {
    shared: Rc<RefCell<NvmeTarget>>,
    drives: Vec<ServedDevice>,
    lines: Vec<Option<Line>>,
    pub(crate) nqn: String,
}

struct Line {
    offline: Offline<NvmeConnection>,
    initiator: Initiator,
    out: Outbox,
    /// Completions that have not been requested yet.
    completed: Vec<CompletedCommand>,
    /// Length of the pieces into which bytes are split, in both directions.
    piece: usize,
}

impl Host {
    pub(crate) fn new(drives: Vec<ServedDevice>) -> Host {
        Host::with(drives, |_| {})
    }

    pub(crate) fn with(drives: Vec<ServedDevice>, change: impl FnOnce(&mut NvmeOptions)) -> Host {
        let mut options = NvmeOptions::new("test", drives.len());
        change(&mut options);
        Host {
            nqn: options.nqn.clone(),
            shared: Rc::new(RefCell::new(NvmeTarget::new(options))),
            drives,
            lines: Vec::new(),
        }
    }

    /// Opens a connection without further messages, and returns its number.
    pub(crate) fn open(&mut self, digests: u8, piece: usize) -> usize {
        let connection = NvmeConnection::new(Rc::clone(&self.shared), ("127.0.0.1".into(), 4420));
        let drives = std::mem::take(&mut self.drives);
        let mut offline =
            Offline::new(drives, connection, ConnectionLimits::default()).expect("a connection");
        self.drives = std::mem::take(&mut offline.drives);
        let mut out = Outbox::default();
        let initiator = Initiator::new(1024, digests, &mut out);
        self.lines.push(Some(Line {
            offline,
            initiator,
            out,
            completed: Vec::new(),
            piece,
        }));
        let number = self.lines.len() - 1;
        self.talk(number).expect("the controller answers");
        number
    }

    /// Exchanges bytes until both sides have nothing more to send.
    pub(crate) fn talk(&mut self, line: usize) -> Result<(), ConnectionEnd> {
        loop {
            let it = self.lines[line].as_mut().expect("an open connection");
            if it.out.is_empty() {
                return Ok(());
            }
            let said = it.out.unsent().to_vec();
            it.out.sent(said.len());
            self.say(line, &said)?;
        }
    }

    /// Sends bytes to the controller, and processes its answer.
    pub(crate) fn say(&mut self, line: usize, bytes: &[u8]) -> Result<(), ConnectionEnd> {
        let it = self.lines[line].as_mut().expect("an open connection");
        it.offline.drives = std::mem::take(&mut self.drives);
        let mut answer = Vec::new();
        let mut end = Ok(());
        for piece in bytes.chunks(it.piece) {
            match it.offline.send(piece) {
                Ok(said) => answer.extend(said),
                Err(ending) => {
                    end = Err(ending);
                    break;
                }
            }
        }
        self.drives = std::mem::take(&mut it.offline.drives);
        let completed = &mut it.completed;
        for piece in answer.chunks(it.piece) {
            it.initiator
                .input(piece, &mut it.out, |one| completed.push(one))
                .expect("the controller keeps to the protocol");
        }
        assert!(!it.initiator.damaged, "digests of data are right");
        end
    }

    /// Sends bytes to the controller, whatever its answer is.
    pub(crate) fn say_raw(&mut self, line: usize, bytes: &[u8]) -> Result<(), ConnectionEnd> {
        let it = self.lines[line].as_mut().expect("an open connection");
        it.offline.drives = std::mem::take(&mut self.drives);
        let end = it.offline.send(bytes);
        self.drives = std::mem::take(&mut it.offline.drives);
        end.map(|_| ())
    }

    /// Expects the next completion of this command, although the command is sent by other means.
    pub(crate) fn expect(&mut self, line: usize, cid: u16) {
        let it = self.lines[line].as_mut().expect("an open connection");
        let mut nowhere = Outbox::default();
        it.initiator
            .send(&Sqe::fabric(0, cid, 0, Sgl::default()), &[], &mut nowhere);
    }

    /// Gives the drives a clock on this connection.
    pub(crate) fn at_speed(&mut self, line: usize, speed: f64) {
        let it = self.lines[line].as_mut().expect("an open connection");
        it.offline.at_speed(speed);
    }

    /// Lets about 100 ms pass.
    pub(crate) fn tick(&mut self, line: usize) -> Result<(), ConnectionEnd> {
        let it = self.lines[line].as_mut().expect("an open connection");
        it.offline.drives = std::mem::take(&mut self.drives);
        let end = it
            .offline
            .with_port(|connection, out, port| connection.tick(out, port));
        let said = it.offline.send(&[]);
        self.drives = std::mem::take(&mut it.offline.drives);
        let completed = &mut it.completed;
        it.initiator
            .input(&said.unwrap_or_default(), &mut it.out, |one| {
                completed.push(one)
            })
            .expect("the controller keeps to the protocol");
        end
    }

    /// Sends a command without waiting.
    pub(crate) fn send(&mut self, line: usize, sqe: &Sqe, payload: &[u8]) {
        let it = self.lines[line].as_mut().expect("an open connection");
        it.initiator.send(sqe, payload, &mut it.out);
    }

    /// Sends a command that the drive executes, without passing the replies to the connection.
    pub(crate) fn begin(&mut self, line: usize, sqe: &Sqe) -> Vec<Reply> {
        self.send(line, sqe, &[]);
        let it = self.lines[line].as_mut().expect("an open connection");
        it.offline.drives = std::mem::take(&mut self.drives);
        let said = it.out.unsent().to_vec();
        it.out.sent(said.len());
        it.offline
            .with_port(|connection, out, port| connection.input(&said, out, port))
            .expect("the connection goes on");
        self.drives = std::mem::take(&mut it.offline.drives);
        let mut replies = Vec::new();
        for drive in &mut self.drives {
            drive.complete_all(&mut replies);
        }
        replies
    }

    /// Passes the drive's replies to the connection, before anything else.
    pub(crate) fn end(&mut self, line: usize, replies: &[Reply]) {
        let it = self.lines[line].as_mut().expect("an open connection");
        it.offline.drives = std::mem::take(&mut self.drives);
        for reply in replies {
            it.offline
                .with_port(|connection, out, port| connection.reply(reply, out, port))
                .expect("the connection goes on");
        }
        self.drives = std::mem::take(&mut it.offline.drives);
    }

    /// Returns the completion of this command, if it has arrived.
    pub(crate) fn completion(&mut self, line: usize, cid: u16) -> Option<CompletedCommand> {
        let it = self.lines[line].as_mut().expect("an open connection");
        let index = it
            .completed
            .iter()
            .position(|one| one.cqe.cid.get() == cid)?;
        Some(it.completed.remove(index))
    }

    /// Executes a command.
    pub(crate) fn call(&mut self, line: usize, sqe: &Sqe, payload: &[u8]) -> CompletedCommand {
        self.send(line, sqe, payload);
        self.talk(line).expect("the connection goes on");
        self.completion(line, sqe.cid.get()).expect("an answer")
    }

    /// Executes a command and returns its status.
    pub(crate) fn status(&mut self, line: usize, sqe: &Sqe, payload: &[u8]) -> u16 {
        self.call(line, sqe, payload).cqe.status().code()
    }

    /// Executes a command that must succeed, and returns its data.
    #[track_caller]
    pub(crate) fn well(&mut self, line: usize, sqe: &Sqe, payload: &[u8]) -> Vec<u8> {
        let completed = self.call(line, sqe, payload);
        let status = completed.cqe.status();
        assert_eq!(status, Status::SUCCESS, "command {:02x}h", sqe.opcode);
        completed.data
    }

    pub(crate) fn connect_to(&self, queue: u16, controller: u16) -> ConnectTo<'_> {
        ConnectTo {
            subnqn: &self.nqn,
            hostnqn: HOST_NQN,
            host_id: [7; 16],
            queue,
            controller,
            entries: 32,
            keep_alive_ms: 0,
        }
    }

    /// Returns the admin queue of a new, enabled controller: connection and identifier.
    pub(crate) fn admin(&mut self, digests: u8, piece: usize) -> (usize, u16) {
        let line = self.open(digests, piece);
        let (sqe, data) = self.connect_to(0, 0xffff).command(0);
        let cqe = self.call(line, &sqe, &data).cqe;
        assert_eq!(cqe.status(), Status::SUCCESS);
        self.well(line, &property_set(0, property::CC, ENABLE), &[]);
        (line, cqe.dw0.get() as u16)
    }

    /// Returns an I/O queue of this controller.
    pub(crate) fn io(&mut self, controller: u16, digests: u8, piece: usize) -> usize {
        let line = self.open(digests, piece);
        let (sqe, data) = self.connect_to(1, controller).command(0);
        self.well(line, &sqe, &data);
        line
    }

    /// Returns both: admin connection, I/O connection.
    pub(crate) fn both(&mut self) -> (usize, usize) {
        let (admin, controller) = self.admin(0, usize::MAX);
        (admin, self.io(controller, 0, usize::MAX))
    }

    /// Closes the connection.
    pub(crate) fn hang_up(&mut self, line: usize) {
        self.lines[line] = None;
    }

    pub(crate) fn identify(&mut self, line: usize, cns: u32, nsid: u32) -> Vec<u8> {
        let mut sqe = Sqe::fabric(admin::IDENTIFY, 1, nsid, Sgl::transport(4096));
        sqe.cdw10 = cns.into();
        self.well(line, &sqe, &[])
    }

    pub(crate) fn log(&mut self, line: usize, page: u8, bytes: u32) -> Vec<u8> {
        let sqe = get_log(page, bytes, 0);
        self.well(line, &sqe, &[])
    }
}

pub(crate) fn get_log(page: u8, bytes: u32, offset: u32) -> Sqe {
    let mut sqe = Sqe::fabric(admin::GET_LOG, 2, u32::MAX, Sgl::transport(bytes));
    sqe.cdw10 = (u32::from(page) | (bytes / 4 - 1) << 16).into();
    sqe.cdw12 = offset.into();
    sqe
}

/// Returns a command of an I/O queue for `blocks` blocks starting at `lba`, with this SGL.
pub(crate) fn io(opcode: u8, cid: u16, lba: u64, blocks: u32, sgl: Sgl) -> Sqe {
    let mut sqe = Sqe::fabric(opcode, cid, 1, sgl);
    sqe.cdw10 = (lba as u32).into();
    sqe.cdw11 = ((lba >> 32) as u32).into();
    sqe.cdw12 = (blocks - 1).into();
    sqe
}
