//! Commands of fabrics: Connect, Property Get and Set, Disconnect.
//!
//! Not supported: in-band authentication. Any host that can reach the port may connect, so the server listens on
//! loopback by default. Source: NVM Express over Fabrics 1.1, chapters 3.3 to 3.5 and 4.2.

use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use super::answer::{AdminOutcome, StatusFailure};
use super::controller::QUEUE_ENTRIES;
use super::facts::Drives;
use super::subsystem::DISCOVERY_NQN;
use super::target::NvmeTarget;
use super::wire::{Sqe, Status};

/// Types of fabrics commands, in the first byte of the namespace field.
pub mod kind {
    /// Type of Property Set.
    pub const PROPERTY_SET: u8 = 0x00;
    /// Type of Connect.
    pub const CONNECT: u8 = 0x01;
    /// Type of Property Get.
    pub const PROPERTY_GET: u8 = 0x04;
}

/// Data of the Connect command.
#[derive(Clone, Copy, Debug, FromBytes, zerocopy::IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ConnectData {
    /// Identifier of the host.
    pub host_id: [u8; 16],
    /// Controller of an I/O queue; all ones for an admin queue, which creates a controller.
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

/// Identifier for any controller.
pub const ANY: u16 = 0xffff;

/// Offsets of invalid fields of Connect: in the command, and in the data.
const AT_QUEUE: u32 = 42;
const AT_ENTRIES: u32 = 44;
const AT_CNTLID: u32 = 16 | 1 << 16;
const AT_SUBNQN: u32 = 256 | 1 << 16;
const AT_HOSTNQN: u32 = 512 | 1 << 16;
const AT_HOST_ID: u32 = 1 << 16;

/// Returns a name from a field of 256 bytes that ends with a zero: 1 to 223 bytes of UTF-8.
fn nqn(field: &[u8; 256]) -> Option<&str> {
    let end = field.iter().position(|&byte| byte == 0)?;
    let name = std::str::from_utf8(&field[..end]).ok()?;
    (name.starts_with("nqn.") && name.len() <= 223).then_some(name)
}

/// A connected queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ConnectedQueue {
    /// Queue number; 0 is the admin queue.
    pub(super) queue: u16,
    pub(super) controller: u16,
    /// Generation of the controller to which the queue belongs.
    pub(super) life: u64,
    pub(super) entries: u16,
    /// Whether the host wants the queue's head reported.
    pub(super) flow_control: bool,
}

/// Executes Property Get.
pub(super) fn property_get(
    target: &mut NvmeTarget,
    controller: u16,
    sqe: &Sqe,
) -> Result<AdminOutcome, StatusFailure> {
    let wide = sqe.cdw10.get() & 7 == 1;
    let controller = target.controller(controller);
    let value = controller.and_then(|it| it.read_property(sqe.cdw11.get(), wide));
    value
        .map(AdminOutcome::Done)
        .ok_or((Status::INVALID_FIELD, 0))
}

/// Executes Property Set.
pub(super) fn property_set(
    target: &mut NvmeTarget,
    id: u16,
    sqe: &Sqe,
    drives: &mut dyn Drives,
) -> Result<AdminOutcome, StatusFailure> {
    let wide = sqe.cdw10.get() & 7 == 1;
    let value = u64::from(sqe.cdw12.get()) | u64::from(sqe.cdw13.get()) << 32;
    let controller = target.controllers.get(id);
    let controller = controller.ok_or((Status::INTERNAL_ERROR, 0))?;
    let life = controller.life;
    let result = controller.write_property(sqe.cdw11.get(), wide, value);
    if controller.life != life {
        target.self_tests.reset(id, &target.subsystem, drives);
    }
    result
        .map(|()| AdminOutcome::Done(0))
        .map_err(|status| (status, 0))
}

/// Executes Connect, with its data, for the host of this endpoint.
pub(super) fn connect(
    target: &mut NvmeTarget,
    sqe: &Sqe,
    data: &[u8],
    endpoint: u32,
) -> Result<ConnectedQueue, StatusFailure> {
    let invalid = |at| (Status::CONNECT_INVALID, at);
    let data =
        ConnectData::ref_from_bytes(data).map_err(|_| (Status::DATA_SGL_LENGTH_INVALID, 0))?;
    let (format, queue) = (sqe.cdw10.get() as u16, (sqe.cdw10.get() >> 16) as u16);
    if format != 0 {
        return Err((Status::CONNECT_FORMAT, 0));
    }
    let entries = sqe.cdw11.get() as u16;
    let attributes = (sqe.cdw11.get() >> 16) as u8;
    // One less than the number of entries; at least two entries.
    if entries == 0 || entries >= QUEUE_ENTRIES {
        return Err(invalid(AT_ENTRIES));
    }
    let subsystem = nqn(&data.subnqn).ok_or(invalid(AT_SUBNQN))?;
    let host = nqn(&data.hostnqn).ok_or(invalid(AT_HOSTNQN))?;
    let discovery = subsystem == DISCOVERY_NQN;
    if !discovery && subsystem != target.subsystem.options.nqn {
        return Err(invalid(AT_SUBNQN));
    }
    let (controller, life) = if queue == 0 {
        connect_admin(target, sqe, data, host, discovery, endpoint)?
    } else {
        connect_io(target, queue, data, host, discovery)?
    };
    Ok(ConnectedQueue {
        queue,
        controller,
        life,
        entries: entries + 1,
        flow_control: attributes & 1 << 2 == 0,
    })
}

fn connect_admin(
    target: &mut NvmeTarget,
    sqe: &Sqe,
    data: &ConnectData,
    host: &str,
    discovery: bool,
    endpoint: u32,
) -> Result<(u16, u64), StatusFailure> {
    if data.cntlid.get() != ANY {
        return Err((Status::CONNECT_INVALID, AT_CNTLID));
    }
    let controller = target.create(discovery, sqe.cdw12.get(), data.host_id, host);
    let controller = controller.ok_or((Status::CONNECT_BUSY, 0))?;
    controller.endpoint = endpoint;
    Ok((controller.id, controller.life))
}

fn connect_io(
    target: &mut NvmeTarget,
    queue: u16,
    data: &ConnectData,
    host: &str,
    discovery: bool,
) -> Result<(u16, u64), StatusFailure> {
    let invalid = |at| (Status::CONNECT_INVALID, at);
    let most = target.subsystem.io_queues;
    let controller = target.controller(data.cntlid.get());
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
