//! The client of NVMe/TCP: an admin connection, which remains idle, and one I/O queue.

use super::{BenchJob, ClientSocket, Pipe, Session};
use crate::nvme::DISCOVERY_NQN;
use crate::nvme::admin::opcode as admin;
use crate::nvme::controller::property;
use crate::nvme::identify::{ControllerData, IDENTIFY, NamespaceData};
use crate::nvme::initiator::{CompletedCommand, ConnectTo, Initiator, property_get, property_set};
use crate::nvme::io::opcode;
use crate::nvme::log::{DISCOVERY, DiscoveryEntry, DiscoveryHeader};
use crate::nvme::wire::{Sgl, Sqe};
use crate::outbox::Outbox;
use zerocopy::FromBytes;

const HOST_NQN: &str = "nqn.2026-11.org.drivelab:bench-target";
const HOST_ID: [u8; 16] = *b"drivelab-bench-t";
/// Enable; queue entries of 64 and 16 bytes.
const ENABLE: u32 = 1 | 6 << 16 | 4 << 20;
/// Identifier for any controller.
const ANY: u16 = 0xffff;
/// The measured namespace.
const NAMESPACE: u32 = 1;

/// A connection with one command at a time.
pub(super) struct Admin {
    pipe: Pipe,
    initiator: Initiator,
}

impl Admin {
    fn open(address: &str, digests: u8) -> Result<Admin, String> {
        let mut pipe = Pipe::new(ClientSocket::tcp(address)?)?;
        let mut initiator = Initiator::new(2, digests, &mut pipe.out);
        pipe.until(|bytes, out| {
            initiator.input(bytes, out, |_| {})?;
            Ok(initiator.is_open().then_some(()))
        })?;
        Ok(Admin { pipe, initiator })
    }

    fn call(&mut self, sqe: &Sqe, payload: &[u8]) -> Result<CompletedCommand, String> {
        self.initiator.send(sqe, payload, &mut self.pipe.out);
        let initiator = &mut self.initiator;
        let completed = self.pipe.until(|bytes, out| {
            let mut found = None;
            initiator.input(bytes, out, |completed| found = Some(completed))?;
            Ok(found)
        })?;
        let status = completed.cqe.status();
        if status.is_success() {
            Ok(completed)
        } else {
            Err(format!(
                "the target refuses command {:02x}h with status {:03x}h",
                sqe.opcode,
                status.code()
            ))
        }
    }

    /// Connects the admin queue, enables the controller and returns its identifier.
    fn begin(&mut self, subnqn: &str) -> Result<u16, String> {
        let (sqe, data) = connect_to(subnqn, 0, ANY, 32).command(0);
        let controller = self.call(&sqe, &data)?.cqe.dw0.get() as u16;
        self.call(&property_set(0, property::CC, ENABLE), &[])?;
        let start = std::time::Instant::now();
        while self
            .call(&property_get(0, property::CSTS, false), &[])?
            .cqe
            .dw0
            .get()
            & 1
            == 0
        {
            if start.elapsed() > super::PATIENCE {
                return Err("the controller does not become ready".into());
            }
        }
        Ok(controller)
    }

    fn identify<T: FromBytes>(&mut self, cns: u32, nsid: u32) -> Result<T, String> {
        let sgl = Sgl::transport(IDENTIFY as u32);
        let mut sqe = Sqe::fabric(admin::IDENTIFY, 0, nsid, sgl);
        sqe.cdw10 = cns.into();
        let data = self.call(&sqe, &[])?.data;
        T::read_from_bytes(&data).map_err(|_| "identify data of another length".into())
    }

    /// Returns the first subsystem in the discovery log.
    fn discover(&mut self) -> Result<String, String> {
        self.begin(DISCOVERY_NQN)?;
        let bytes = size_of::<DiscoveryHeader>() + size_of::<DiscoveryEntry>() * 8;
        let mut sqe = Sqe::fabric(admin::GET_LOG, 0, 0, Sgl::transport(bytes as u32));
        sqe.cdw10 = (u32::from(DISCOVERY) | (bytes as u32 / 4 - 1) << 16).into();
        let data = self.call(&sqe, &[])?.data;
        let (header, rest) = DiscoveryHeader::read_from_prefix(&data)
            .map_err(|_| "a discovery log page that is too short")?;
        let count = header.records.get().min(8) as usize;
        let found = rest
            .chunks_exact(size_of::<DiscoveryEntry>())
            .take(count)
            .filter_map(|entry| DiscoveryEntry::read_from_bytes(entry).ok())
            .find(|entry| entry.kind == 2)
            .ok_or("the discovery log lists no subsystem")?;
        let name = found.subnqn;
        let end = name
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(name.len());
        Ok(String::from_utf8_lossy(&name[..end]).into_owned())
    }
}

fn connect_to(subnqn: &str, queue: u16, controller: u16, entries: u16) -> ConnectTo<'_> {
    ConnectTo {
        subnqn,
        hostnqn: HOST_NQN,
        host_id: HOST_ID,
        queue,
        controller,
        entries,
        keep_alive_ms: 0,
    }
}

/// The I/O queue.
pub(super) struct BenchQueue {
    initiator: Initiator,
    bytes: u64,
    block_shift: u32,
    most: u32,
    /// Maximum bytes of data in a capsule.
    in_capsule: u32,
    length: u32,
}

/// Connects admin and I/O queue; the admin connection must be kept.
pub(super) fn connect(
    address: &str,
    nqn: Option<&str>,
    job: &BenchJob,
) -> Result<(Pipe, BenchQueue, Admin), String> {
    let name = match nqn {
        Some(nqn) => nqn.to_owned(),
        None => Admin::open(address, 0)?.discover()?,
    };
    let mut admin = Admin::open(address, job.digests)?;
    let controller = admin.begin(&name)?;
    let identity: ControllerData = admin.identify(1, 0)?;
    let namespace: NamespaceData = admin.identify(0, NAMESPACE)?;
    let format = namespace.lbaf[usize::from(namespace.flbas & 0xf)];
    if format.ms.get() != 0 || !(9..=16).contains(&format.lbads) {
        return Err("a format with metadata, or with odd blocks".into());
    }
    // One queue.
    let mut sqe = Sqe::fabric(admin::SET_FEATURES, 0, 0, Sgl::default());
    sqe.cdw10 = 7.into();
    admin.call(&sqe, &[])?;
    let mut pipe = Pipe::new(ClientSocket::tcp(address)?)?;
    let mut initiator = Initiator::new(job.depth.max(1), job.digests, &mut pipe.out);
    pipe.until(|bytes, out| {
        initiator.input(bytes, out, |_| {})?;
        Ok(initiator.is_open().then_some(()))
    })?;
    let entries = (job.depth + 1).clamp(2, identity.maxcmd.get().max(2));
    let (sqe, data) = connect_to(&name, 1, controller, entries).command(0);
    initiator.send(&sqe, &data, &mut pipe.out);
    let cqe = pipe.until(|bytes, out| {
        let mut found = None;
        initiator.input(bytes, out, |completed| found = Some(completed.cqe))?;
        Ok(found)
    })?;
    if !cqe.status().is_success() {
        return Err(format!("no I/O queue: status {:03x}h", cqe.status().code()));
    }
    initiator.keep_data = false;
    let pages = u32::from(identity.mdts).min(12);
    let queue = BenchQueue {
        initiator,
        bytes: namespace.nsze.get() << format.lbads,
        block_shift: format.lbads.into(),
        most: if pages == 0 { 1 << 20 } else { 4096 << pages },
        in_capsule: (identity.ioccsz.get() * 16).saturating_sub(64),
        length: job.block,
    };
    if !job.block.is_multiple_of(1 << format.lbads) {
        return Err(format!(
            "blocks must be a multiple of {} bytes",
            1 << format.lbads
        ));
    }
    Ok((pipe, queue, admin))
}

impl Session for BenchQueue {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn most(&self) -> u32 {
        self.most
    }

    #[inline]
    fn send(&mut self, tag: u16, write: bool, offset: u64, payload: &[u8], out: &mut Outbox) {
        let inside = write && self.length <= self.in_capsule;
        let sgl = if inside {
            Sgl::in_capsule(self.length)
        } else {
            Sgl::transport(self.length)
        };
        let code = if write { opcode::WRITE } else { opcode::READ };
        let mut sqe = Sqe::fabric(code, tag, NAMESPACE, sgl);
        let block = offset >> self.block_shift;
        sqe.cdw10 = (block as u32).into();
        sqe.cdw11 = ((block >> 32) as u32).into();
        sqe.cdw12 = ((self.length >> self.block_shift) - 1).into();
        self.initiator
            .send(&sqe, if write { payload } else { &[] }, out);
    }

    #[inline]
    fn input(
        &mut self,
        bytes: &[u8],
        out: &mut Outbox,
        done: &mut dyn FnMut(u16, bool),
    ) -> Result<(), String> {
        self.initiator.input(bytes, out, |completed| {
            done(completed.cqe.cid.get(), completed.cqe.status().is_success());
        })?;
        if self.initiator.damaged {
            return Err("data that does not match its digest".into());
        }
        match self.initiator.terminated {
            Some(fatal) => Err(format!(
                "the target ended the connection, fatal error {fatal}"
            )),
            None => Ok(()),
        }
    }
}
