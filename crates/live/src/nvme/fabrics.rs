//! Commands of fabrics: Connect, Property Get and Set, Disconnect.
//!
//! Left out: in-band authentication. Whoever reaches the port may connect; so it listens on loopback by default.
//! Source: NVM Express over Fabrics 1.1, chapters 3.3 to 3.5 and 4.2.

use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use super::admin::Answer;
use super::connection::{Connection, Phase, Queue};
use super::controller::QUEUE_ENTRIES;
use super::self_test;
use super::target::DISCOVERY_NQN;
use super::wire::{Sqe, Status};
use crate::port::Port;

/// Types of fabrics commands, in the first byte of the namespace's field.
pub mod kind {
    /// Property Set.
    pub const PROPERTY_SET: u8 = 0x00;
    /// Connect.
    pub const CONNECT: u8 = 0x01;
    /// Property Get.
    pub const PROPERTY_GET: u8 = 0x04;
}

/// Data of Connect.
#[derive(Clone, Copy, Debug, FromBytes, zerocopy::IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ConnectData {
    /// Identifier of the host.
    pub host_id: [u8; 16],
    /// Controller that an I/O queue belongs to; all ones with an admin queue: a new one.
    pub cntlid: U16,
    /// Reserved.
    pub _reserved18: [u8; 238],
    /// Name of the subsystem.
    pub subnqn: [u8; 256],
    /// Name of the host.
    pub hostnqn: [u8; 256],
    /// Reserved.
    pub _reserved768: [u8; 256],
}

/// Any controller.
pub const ANY: u16 = 0xffff;

/// Offsets of what can be wrong with Connect: in the command, and in the data.
const AT_QUEUE: u32 = 42;
const AT_ENTRIES: u32 = 44;
const AT_CNTLID: u32 = 16 | 1 << 16;
const AT_SUBNQN: u32 = 256 | 1 << 16;
const AT_HOSTNQN: u32 = 512 | 1 << 16;
const AT_HOST_ID: u32 = 1 << 16;

type Failure = (Status, u32);

/// A name in a field of 256 bytes that ends with a zero: 1 to 223 bytes of UTF-8.
fn nqn(field: &[u8; 256]) -> Option<&str> {
    let end = field.iter().position(|&byte| byte == 0)?;
    let name = std::str::from_utf8(&field[..end]).ok()?;
    (name.starts_with("nqn.") && name.len() <= 223).then_some(name)
}

impl Connection {
    pub(super) fn fabrics(
        &mut self,
        slot: u16,
        sqe: &Sqe,
        port: &mut Port<'_>,
    ) -> Result<Answer, Failure> {
        match (sqe.nsid.get() as u8, self.phase) {
            (kind::CONNECT, Phase::Unconnected) => self.connect(slot, sqe, port),
            (kind::CONNECT, _) | (_, Phase::Unconnected) => Err((Status::COMMAND_SEQUENCE, 0)),
            (kind::PROPERTY_GET, Phase::Admin) => self.property_get(sqe),
            (kind::PROPERTY_SET, Phase::Admin) => self.property_set(sqe, port),
            _ => Err((Status::INVALID_FIELD, 0)),
        }
    }

    fn property_get(&mut self, sqe: &Sqe) -> Result<Answer, Failure> {
        let wide = sqe.cdw10.get() & 7 == 1;
        let mut shared = self.shared.borrow_mut();
        let value = shared
            .controller(self.queue.controller)
            .and_then(|it| it.read_property(sqe.cdw11.get(), wide));
        value.map(Answer::Done).ok_or((Status::INVALID_FIELD, 0))
    }

    fn property_set(&mut self, sqe: &Sqe, port: &mut Port<'_>) -> Result<Answer, Failure> {
        let wide = sqe.cdw10.get() & 7 == 1;
        let value = u64::from(sqe.cdw12.get()) | u64::from(sqe.cdw13.get()) << 32;
        let mut shared = self.shared.borrow_mut();
        let controller = shared.controller(self.queue.controller);
        let controller = controller.ok_or((Status::INTERNAL_ERROR, 0))?;
        let life = controller.life;
        let result = controller.write_property(sqe.cdw11.get(), wide, value);
        if controller.life != life {
            self_test::reset(&mut shared, self.queue.controller, port);
        }
        result
            .map(|()| Answer::Done(0))
            .map_err(|status| (status, 0))
    }

    fn connect(&mut self, slot: u16, sqe: &Sqe, port: &mut Port<'_>) -> Result<Answer, Failure> {
        let invalid = |at| (Status::CONNECT_INVALID, at);
        let data = std::mem::take(&mut self.slots[slot].data);
        let data =
            ConnectData::ref_from_bytes(&data).map_err(|_| (Status::DATA_SGL_LENGTH_INVALID, 0))?;
        let (format, queue) = (sqe.cdw10.get() as u16, (sqe.cdw10.get() >> 16) as u16);
        if format != 0 {
            return Err((Status::CONNECT_FORMAT, 0));
        }
        let entries = sqe.cdw11.get() as u16;
        let attributes = (sqe.cdw11.get() >> 16) as u8;
        // Less one on the wire; at least two entries.
        if entries == 0 || entries >= QUEUE_ENTRIES {
            return Err(invalid(AT_ENTRIES));
        }
        let subsystem = nqn(&data.subnqn).ok_or(invalid(AT_SUBNQN))?;
        let host = nqn(&data.hostnqn).ok_or(invalid(AT_HOSTNQN))?;
        let discovery = subsystem == DISCOVERY_NQN;
        if !discovery && subsystem != self.shared.borrow().options.nqn {
            return Err(invalid(AT_SUBNQN));
        }
        let (controller, life) = if queue == 0 {
            self.connect_admin(sqe, data, host, discovery, port)?
        } else {
            self.connect_io(queue, data, host, discovery)?
        };
        self.queue = Queue {
            id: queue,
            controller,
            life,
            entries: entries + 1,
            head: 1 % (entries + 1),
            flow_control: attributes & 1 << 2 == 0,
        };
        self.slots.resize(entries + 1);
        self.phase = if queue == 0 { Phase::Admin } else { Phase::Io };
        self.refresh();
        Ok(Answer::Done(controller.into()))
    }

    fn connect_admin(
        &mut self,
        sqe: &Sqe,
        data: &ConnectData,
        host: &str,
        discovery: bool,
        port: &Port<'_>,
    ) -> Result<(u16, u64), Failure> {
        if data.cntlid.get() != ANY {
            return Err((Status::CONNECT_INVALID, AT_CNTLID));
        }
        let mut shared = self.shared.borrow_mut();
        let mut defaults = shared.defaults();
        defaults.keep_alive_ms = sqe.cdw12.get();
        let controller = shared.create(discovery, defaults, data.host_id, host);
        let controller = controller.ok_or((Status::CONNECT_BUSY, 0))?;
        controller.endpoint = port.me();
        Ok((controller.id, controller.life))
    }

    fn connect_io(
        &mut self,
        queue: u16,
        data: &ConnectData,
        host: &str,
        discovery: bool,
    ) -> Result<(u16, u64), Failure> {
        let invalid = |at| (Status::CONNECT_INVALID, at);
        let mut shared = self.shared.borrow_mut();
        let most = shared.io_queues();
        let controller = shared.controller(data.cntlid.get());
        let controller = controller.ok_or(invalid(AT_CNTLID))?;
        if discovery || controller.discovery {
            return Err(invalid(AT_QUEUE));
        }
        if controller.host_nqn != host {
            return Err(invalid(AT_HOSTNQN));
        }
        if controller.host_id != data.host_id {
            return Err(invalid(AT_HOST_ID));
        }
        if !controller.ready() {
            return Err((Status::COMMAND_SEQUENCE, 0));
        }
        if queue > most || !controller.take_queue(queue) {
            return Err(invalid(AT_QUEUE));
        }
        Ok((controller.id, controller.life))
    }
}
