//! State that the frontend's messages set up: shared memory, rings, features.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::event::epoll;
use vhost::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags, VhostUserInflight,
    VhostUserLog, VhostUserMemoryRegion, VhostUserProtocolFeatures, VhostUserShMemConfig,
    VhostUserSharedMsg, VhostUserSingleMemoryRegion, VhostUserVirtioFeatures,
    VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost::vhost_user::{Backend, Error, GpuBackend, Result, VhostUserBackendReqHandlerMut};
use virtio_queue::QueueT;
use vm_memory::{GuestAddress, GuestMemoryMmap, GuestRegionMmap};

use super::blk::{BlockShape, RING_SIZE, RINGS};
use super::chain::RingViolation;
use super::guard::MappingGuard;
use super::inflight::InFlightMemory;
use super::ring::Ring;

/// One piece of the guest's memory, at its address in the frontend.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    frontend: u64,
    guest: u64,
    bytes: u64,
}

/// The device of one connection.
pub(super) struct VirtioDevice {
    shape: BlockShape,
    /// Guards of all shared memory; they must be dropped before the memory.
    guards: Vec<MappingGuard>,
    pub(super) memory: GuestMemoryMmap,
    mappings: Vec<Mapping>,
    pub(super) features: u64,
    pub(super) rings: Vec<Ring>,
    pub(super) in_flight: Option<InFlightMemory>,
    /// Reports kicked rings. This descriptor belongs only to this connection, so registrations in it end with it; the
    /// kick descriptors themselves continue to exist in the frontend.
    pub(super) kicks: OwnedFd,
    /// The channel back to the frontend. It is never used, but user-mode Linux has no interrupts without it.
    _back: Option<Backend>,
}

impl VirtioDevice {
    /// Returns a device without rings; these are added when its shape is known.
    pub(super) fn new() -> io::Result<VirtioDevice> {
        Ok(VirtioDevice {
            shape: BlockShape::default(),
            guards: Vec::new(),
            memory: GuestMemoryMmap::default(),
            mappings: Vec::new(),
            features: 0,
            rings: Vec::new(),
            in_flight: None,
            kicks: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            _back: None,
        })
    }

    /// Sets the shape of the served drive.
    pub(super) fn take_shape(&mut self, shape: BlockShape) {
        self.rings = (0..shape.rings()).map(Ring::new).collect();
        self.shape = shape;
    }

    pub(super) fn shape(&self) -> &BlockShape {
        &self.shape
    }

    /// Fails if data read from shared memory may not have been its real content.
    ///
    /// # Errors
    /// A file has been truncated.
    pub(super) fn check(&self) -> std::result::Result<(), RingViolation> {
        let in_flight = self.in_flight.as_ref().is_some_and(InFlightMemory::is_lost);
        if in_flight || self.guards.iter().any(MappingGuard::is_lost) {
            return Err(RingViolation("shared memory was cut short"));
        }
        Ok(())
    }

    fn ring(&mut self, index: u32) -> Result<&mut Ring> {
        self.rings
            .get_mut(index as usize)
            .ok_or(Error::InvalidParam)
    }

    /// Returns the guest's address of the frontend's `address`.
    fn guest(&self, address: u64) -> Result<u64> {
        let mapping = self.mappings.iter().find(|mapping| {
            address >= mapping.frontend && address - mapping.frontend < mapping.bytes
        });
        let mapping = mapping.ok_or(Error::InvalidParam)?;
        Ok(address - mapping.frontend + mapping.guest)
    }

    fn map(
        &mut self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
    ) -> io::Result<GuestMemoryMmap> {
        let mut mapped = Vec::new();
        let mut guards = Vec::new();
        self.mappings.clear();
        for (region, file) in regions.iter().zip(files) {
            let memory = region.mmap_region(file).map_err(io::Error::other)?;
            guards.push(MappingGuard::new(memory.as_ptr(), memory.size())?);
            let at = GuestAddress(region.guest_phys_addr);
            let overflows = || io::Error::other("the memory ends beyond the address space");
            mapped.push(GuestRegionMmap::new(memory, at).ok_or_else(overflows)?);
            self.mappings.push(Mapping {
                frontend: region.user_addr,
                guest: region.guest_phys_addr,
                bytes: region.memory_size,
            });
        }
        let memory = GuestMemoryMmap::from_regions(mapped).map_err(io::Error::other)?;
        self.guards = guards;
        Ok(memory)
    }

    fn watch(&mut self, index: u8, file: File) -> Result<()> {
        let data = epoll::EventData::new_u64(u64::from(index));
        // Edge-triggered: each kick is an event, and the counter need not be read.
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&self.kicks, &file, data, flags).map_err(|error| failed(error.into()))?;
        let ring = self.ring(index.into())?;
        ring.set_kick(Some(file));
        Ok(())
    }

    fn unwatch(&mut self, index: u32) -> Result<()> {
        if let Some(file) = self.ring(index)?.set_kick(None) {
            let _ = epoll::delete(&self.kicks, &file);
        }
        Ok(())
    }
}

fn failed(error: io::Error) -> Error {
    Error::ReqHandlerError(error)
}

fn broken(broken: RingViolation) -> Error {
    failed(io::Error::other(broken.0))
}

fn unsupported<T>() -> Result<T> {
    Err(Error::InvalidOperation("not offered"))
}

impl VhostUserBackendReqHandlerMut for VirtioDevice {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_device(&mut self) -> Result<()> {
        for index in 0..self.rings.len() {
            self.rings[index].enabled = false;
            self.rings[index].stop();
            self.unwatch(index as u32)?;
        }
        self.features = 0;
        Ok(())
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(self.shape.features() | VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits())
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        if features & !self.get_features()? != 0 {
            return Err(Error::FeatureMismatch);
        }
        self.features = features;
        let enabled = features & VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits() == 0;
        for ring in &mut self.rings {
            ring.queue.set_event_idx(BlockShape::event_index(features));
            ring.enabled |= enabled;
        }
        Ok(())
    }

    fn set_mem_table(
        &mut self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _postcopy: Option<bool>,
    ) -> Result<Option<Vec<vhost::VhostUserMemoryRegionBase>>> {
        self.memory = self.map(regions, files).map_err(failed)?;
        Ok(None)
    }

    fn set_vring_num(&mut self, index: u32, entries: u32) -> Result<()> {
        let entries = u16::try_from(entries).map_err(|_| Error::InvalidParam)?;
        self.ring(index)?
            .queue
            .try_set_size(entries)
            .map_err(|_| Error::InvalidParam)
    }

    fn set_vring_addr(
        &mut self,
        index: u32,
        _flags: VhostUserVringAddrFlags,
        descriptors: u64,
        used: u64,
        available: u64,
        _log: u64,
    ) -> Result<()> {
        let descriptors = GuestAddress(self.guest(descriptors)?);
        let used = GuestAddress(self.guest(used)?);
        let available = GuestAddress(self.guest(available)?);
        let queue = &mut self.ring(index)?.queue;
        queue
            .try_set_desc_table_address(descriptors)
            .and_then(|()| queue.try_set_used_ring_address(used))
            .and_then(|()| queue.try_set_avail_ring_address(available))
            .map_err(|_| Error::InvalidParam)
    }

    fn set_vring_base(&mut self, index: u32, base: u32) -> Result<()> {
        self.ring(index)?.queue.set_next_avail(base as u16);
        Ok(())
    }

    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        // The connection delays this message until nothing of this ring is in flight.
        self.unwatch(index)?;
        let next = self.ring(index)?.stop();
        Ok(VhostUserVringState::new(index, next.into()))
    }

    fn set_vring_kick(&mut self, index: u8, file: Option<File>) -> Result<()> {
        self.unwatch(index.into())?;
        let file = file.ok_or(Error::InvalidOperation("a ring without kicks"))?;
        self.watch(index, file)?;
        let VirtioDevice {
            memory,
            in_flight,
            rings,
            ..
        } = self;
        rings[usize::from(index)]
            .start(memory, in_flight.as_mut())
            .map_err(broken)
    }

    fn set_vring_call(&mut self, index: u8, file: Option<File>) -> Result<()> {
        self.ring(index.into())?.set_call(file).map_err(failed)
    }

    fn set_vring_err(&mut self, index: u8, _file: Option<File>) -> Result<()> {
        self.ring(index.into()).map(|_| ())
    }

    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        Ok(VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::CONFIG
            | VhostUserProtocolFeatures::INFLIGHT_SHMFD
            | VhostUserProtocolFeatures::BACKEND_REQ
            | VhostUserProtocolFeatures::RESET_DEVICE)
    }

    fn set_protocol_features(&mut self, _features: u64) -> Result<()> {
        Ok(())
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(self.rings.len() as u64)
    }

    fn set_vring_enable(&mut self, index: u32, enable: bool) -> Result<()> {
        let ring = self.ring(index)?;
        ring.enabled = enable;
        ring.look |= enable;
        Ok(())
    }

    fn get_config(
        &mut self,
        offset: u32,
        size: u32,
        _flags: VhostUserConfigFlags,
    ) -> Result<Vec<u8>> {
        self.shape.config(offset, size).ok_or(Error::InvalidParam)
    }

    fn set_config(
        &mut self,
        _offset: u32,
        _bytes: &[u8],
        _flags: VhostUserConfigFlags,
    ) -> Result<()> {
        unsupported()
    }

    fn set_backend_req_fd(&mut self, back: Backend) {
        self._back = Some(back);
    }

    fn get_inflight_fd(&mut self, wanted: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        let (rings, size) = (wanted.num_queues, wanted.queue_size);
        if !(1..=RINGS).contains(&rings) || !(1..=RING_SIZE).contains(&size) {
            return Err(Error::InvalidParam);
        }
        let memory = InFlightMemory::new(rings, size).map_err(failed)?;
        let (file, offset, bytes) = memory.share().map_err(failed)?;
        self.in_flight = Some(memory);
        Ok((VhostUserInflight::new(bytes, offset, rings, size), file))
    }

    fn set_inflight_fd(&mut self, given: &VhostUserInflight, file: File) -> Result<()> {
        let (rings, size) = (given.num_queues, given.queue_size);
        if !(1..=RINGS).contains(&rings) || !(1..=RING_SIZE).contains(&size) {
            return Err(Error::InvalidParam);
        }
        let memory = InFlightMemory::open(file, given.mmap_offset, rings, size);
        self.in_flight = Some(memory.map_err(failed)?);
        Ok(())
    }

    fn set_gpu_socket(&mut self, _gpu: GpuBackend) -> Result<()> {
        unsupported()
    }

    fn get_shared_object(&mut self, _uuid: VhostUserSharedMsg) -> Result<File> {
        unsupported()
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        unsupported()
    }

    fn add_mem_region(
        &mut self,
        _region: &VhostUserSingleMemoryRegion,
        _file: File,
        _postcopy: Option<bool>,
    ) -> Result<Option<vhost::VhostUserMemoryRegionBase>> {
        unsupported()
    }

    fn remove_mem_region(&mut self, _region: &VhostUserSingleMemoryRegion) -> Result<()> {
        unsupported()
    }

    fn set_device_state_fd(
        &mut self,
        _direction: VhostTransferStateDirection,
        _phase: VhostTransferStatePhase,
        _file: File,
    ) -> Result<Option<File>> {
        unsupported()
    }

    fn check_device_state(&mut self) -> Result<()> {
        unsupported()
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        unsupported()
    }

    fn set_log_base(&mut self, _log: &VhostUserLog, _file: File) -> Result<()> {
        unsupported()
    }
}
