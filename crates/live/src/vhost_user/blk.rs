//! virtio-blk as a drive presents it: features, configuration space and requests (virtio 1.2, section 5.2).

use model::Op;
use virtio_bindings::{virtio_blk as blk, virtio_config, virtio_ring};
use vm_memory::GuestMemoryMmap;

use super::chain::{Chain, RingViolation};
use crate::served::ServedDevice;

/// Maximum number of rings; each is a submission queue of the drive.
pub(super) const RINGS: u16 = 16;
/// Maximum number of entries of a ring.
pub(super) const RING_SIZE: u16 = 1024;
/// Bytes before the data of a request: type, reserved, sector.
const HEADER: u64 = 16;
/// Maximum bytes of data in a request: more than any guest sends, and small enough to be buffered here.
const LARGEST: u64 = 32 << 20;
/// Bytes of one range of a discard or write-zeroes.
const RANGE: u64 = 16;
/// Maximum number of ranges in a discard or write-zeroes.
const RANGES: u32 = 64;
/// Length of the name that a get-id request returns.
const ID: usize = 20;
/// Maximum size of the configuration space, with reserve; the rest reads as zeroes.
const CONFIG: usize = 256;

/// Status of a request, in its last byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(super) enum End {
    Ok = blk::VIRTIO_BLK_S_OK as u8,
    Failed = blk::VIRTIO_BLK_S_IOERR as u8,
    Unsupported = blk::VIRTIO_BLK_S_UNSUPP as u8,
}

/// A drive as a virtio block device.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockShape {
    bytes: u64,
    block: u32,
    rings: u16,
    id: [u8; ID],
    /// Whether a write may complete before it is durable.
    has_cache: bool,
    read_only: bool,
}

impl BlockShape {
    pub(super) fn new(served: &ServedDevice) -> BlockShape {
        let mut id = [0; ID];
        for (to, from) in id.iter_mut().zip(served.serial().bytes()) {
            *to = from;
        }
        BlockShape {
            bytes: served.bytes(),
            block: served.block(),
            rings: served.sheet().io_queues.clamp(1, RINGS),
            id,
            has_cache: served.has_write_cache(),
            read_only: served.read_only(),
        }
    }

    pub(super) fn rings(&self) -> u16 {
        self.rings
    }

    /// Returns the features that are offered to guests.
    pub(super) fn features(&self) -> u64 {
        let own = [
            (self.has_cache, blk::VIRTIO_BLK_F_FLUSH),
            (self.read_only, blk::VIRTIO_BLK_F_RO),
        ];
        let own = own.into_iter().filter_map(|(has, bit)| has.then_some(bit));
        [
            blk::VIRTIO_BLK_F_SEG_MAX,
            blk::VIRTIO_BLK_F_BLK_SIZE,
            blk::VIRTIO_BLK_F_TOPOLOGY,
            blk::VIRTIO_BLK_F_MQ,
            blk::VIRTIO_BLK_F_DISCARD,
            blk::VIRTIO_BLK_F_WRITE_ZEROES,
            virtio_ring::VIRTIO_RING_F_INDIRECT_DESC,
            virtio_ring::VIRTIO_RING_F_EVENT_IDX,
            virtio_config::VIRTIO_F_VERSION_1,
        ]
        .into_iter()
        .chain(own)
        .fold(0, |features, bit| features | 1 << bit)
    }

    /// Checks whether a guest with these features sends flushes. For a guest that does not, every write is durable.
    pub(super) fn flushes(features: u64) -> bool {
        features & (1 << blk::VIRTIO_BLK_F_FLUSH) != 0
    }

    /// Checks whether the two sides tell each other at which entry they want a notification.
    pub(super) fn event_index(features: u64) -> bool {
        features & (1 << virtio_ring::VIRTIO_RING_F_EVENT_IDX) != 0
    }

    /// Returns a part of the configuration space; `None` if it is out of range.
    pub(super) fn config(&self, offset: u32, size: u32) -> Option<Vec<u8>> {
        let mut space = [0; CONFIG];
        let mut put = |at: usize, bytes: &[u8]| space[at..at + bytes.len()].copy_from_slice(bytes);
        let sectors = self.bytes / 512;
        // A command of 1 GiB is more than any guest sends; ranges are limited to the size of a command.
        let range = (1_u32 << 30) / 512;
        put(0, &sectors.to_le_bytes());
        put(12, &(u32::from(RING_SIZE) / 8 - 2).to_le_bytes()); // segments of a request
        put(20, &self.block.to_le_bytes());
        let physical = (4096 / self.block).max(1).ilog2() as u8;
        put(24, &[physical]); // a physical block is 2^this logical ones
        put(34, &self.rings.to_le_bytes());
        put(36, &range.to_le_bytes()); // sectors of a discard
        put(40, &RANGES.to_le_bytes());
        put(44, &8_u32.to_le_bytes()); // sectors to which a discard should be aligned
        put(48, &range.to_le_bytes()); // sectors of a write-zeroes
        put(52, &RANGES.to_le_bytes());
        put(56, &[1]); // write-zeroes may deallocate
        let part = offset as usize..(offset as usize).checked_add(size as usize)?;
        space.get(part).map(<[u8]>::to_vec)
    }
}

/// A command to the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub(super) op: Op,
    pub(super) offset: u64,
    pub(super) bytes: u32,
}

/// A parsed request, with its result if the drive is not needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ParsedRequest {
    /// A read, write or flush.
    One(Piece),
    /// This number of discards or write-zeroes; [`range`] returns each.
    Ranges(Op, u32),
    /// Already completed.
    Ended(End),
}

/// Returns the bytes of data that the guest reads, without the status.
pub(super) fn data_in(chain: &Chain) -> u64 {
    chain.writable.bytes() - 1
}

/// Offset of the data that the guest writes.
pub(super) const DATA_OUT: u64 = HEADER;

/// Reads a request.
///
/// # Errors
/// There is no header, or no space for the status, so the request cannot even be answered.
pub(super) fn parse(
    memory: &GuestMemoryMmap,
    chain: &Chain,
    shape: &BlockShape,
) -> Result<ParsedRequest, RingViolation> {
    let mut header = [0; HEADER as usize];
    if chain.readable.bytes() < HEADER || chain.writable.bytes() < 1 {
        return Err(RingViolation("a request without header or status"));
    }
    chain.readable.read(memory, 0, &mut header)?;
    let [a, b, c, d, _, _, _, _, sector @ ..] = header;
    let offset = u64::from_le_bytes(sector).checked_mul(512);
    let out = chain.readable.bytes() - HEADER;
    let data = |op, bytes: u64| match (offset, u32::try_from(bytes)) {
        (Some(offset), Ok(size)) if size % 512 == 0 && bytes <= LARGEST => {
            ParsedRequest::One(Piece {
                op,
                offset,
                bytes: size,
            })
        }
        _ => ParsedRequest::Ended(End::Failed),
    };
    let ranges = |op| match u32::try_from(out / RANGE) {
        Ok(count @ 1..=RANGES) if out % RANGE == 0 => ParsedRequest::Ranges(op, count),
        _ => ParsedRequest::Ended(End::Failed),
    };
    Ok(match u32::from_le_bytes([a, b, c, d]) {
        blk::VIRTIO_BLK_T_IN => data(Op::Read, data_in(chain)),
        blk::VIRTIO_BLK_T_OUT => data(Op::Write, out),
        blk::VIRTIO_BLK_T_FLUSH => ParsedRequest::One(Piece {
            op: Op::Flush,
            offset: 0,
            bytes: 0,
        }),
        blk::VIRTIO_BLK_T_DISCARD => ranges(Op::Deallocate),
        blk::VIRTIO_BLK_T_WRITE_ZEROES => ranges(Op::WriteZeroes),
        blk::VIRTIO_BLK_T_GET_ID => {
            let length = data_in(chain).min(ID as u64) as usize;
            chain.writable.write(memory, 0, &shape.id[..length])?;
            ParsedRequest::Ended(End::Ok)
        }
        _ => ParsedRequest::Ended(End::Unsupported),
    })
}

/// Returns the range with this index in a discard or write-zeroes.
///
/// # Errors
/// The status of the request if the range is invalid.
pub(super) fn range(
    memory: &GuestMemoryMmap,
    chain: &Chain,
    op: Op,
    index: u32,
) -> Result<Piece, End> {
    let mut bytes = [0; RANGE as usize];
    let at = HEADER + u64::from(index) * RANGE;
    let read = chain.readable.read(memory, at, &mut bytes);
    read.map_err(|_| End::Failed)?;
    let [sector @ .., a, b, c, d, e, f, g, h] = bytes;
    let offset = u64::from_le_bytes(sector).checked_mul(512);
    let length = u32::from_le_bytes([a, b, c, d]).checked_mul(512);
    // A write-zeroes may only have the flag "unmap", and a discard none.
    let known = if op == Op::WriteZeroes { 1 } else { 0 };
    if u32::from_le_bytes([e, f, g, h]) & !known != 0 {
        return Err(End::Unsupported);
    }
    match (offset, length) {
        (Some(offset), Some(bytes)) => Ok(Piece { op, offset, bytes }),
        _ => Err(End::Failed),
    }
}
