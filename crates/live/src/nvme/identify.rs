//! Identify data structures, byte for byte.
//!
//! This module only has the layout; `describe` fills in the content. Reserved ranges are named `_reservedN` after
//! their offset. Source: NVM Express Base Specification 1.4, figures 245, 247, 249 and 251; NVM Command Set
//! Specification 1.0, figure 100.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of each of these structures.
pub const IDENTIFY: usize = 4096;

/// A number of 128 bits.
pub type Wide = [U64; 2];

/// Returns a number of 64 bits as one of 128.
pub fn wide(value: u128) -> Wide {
    [
        U64::new(value as u64),
        U64::new(u64::try_from(value >> 64).unwrap_or(u64::MAX)),
    ]
}

/// A power state descriptor.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PowerStateDescriptor {
    /// Maximum power, in hundredths of a watt.
    pub max_power: U16,
    /// Reserved.
    pub _reserved2: u8,
    /// Bit 0: `max_power` is in 0.1 mW; bit 1: no I/O in this state.
    pub flags: u8,
    /// Entry latency, in us.
    pub entry_latency: U32,
    /// Exit latency, in us.
    pub exit_latency: U32,
    /// Ranks against the other states: read throughput, read latency, write throughput, write latency; 0 is best.
    pub relative: [u8; 4],
    /// Power when idle.
    pub idle_power: U16,
    /// Scale of the idle power.
    pub idle_scale: u8,
    /// Reserved.
    pub _reserved19: u8,
    /// Power when active.
    pub active_power: U16,
    /// Scale of the active power.
    pub active_scale: u8,
    /// Reserved.
    pub _reserved23: [u8; 9],
}

/// Identify Controller (CNS 01h).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
#[allow(missing_docs, reason = "the field names are the specification's")]
pub struct ControllerData {
    pub vid: U16,
    pub ssvid: U16,
    pub sn: [u8; 20],
    pub mn: [u8; 40],
    pub fr: [u8; 8],
    pub rab: u8,
    pub ieee: [u8; 3],
    pub cmic: u8,
    pub mdts: u8,
    pub cntlid: U16,
    pub ver: U32,
    pub rtd3r: U32,
    pub rtd3e: U32,
    pub oaes: U32,
    pub ctratt: U32,
    pub rrls: U16,
    pub _reserved102: [u8; 9],
    pub cntrltype: u8,
    pub fguid: [u8; 16],
    pub crdt: [U16; 3],
    pub _reserved134: [u8; 122],
    pub oacs: U16,
    pub acl: u8,
    pub aerl: u8,
    pub frmw: u8,
    pub lpa: u8,
    pub elpe: u8,
    pub npss: u8,
    pub avscc: u8,
    pub apsta: u8,
    pub wctemp: U16,
    pub cctemp: U16,
    pub mtfa: U16,
    pub hmpre: U32,
    pub hmmin: U32,
    pub tnvmcap: Wide,
    pub unvmcap: Wide,
    pub rpmbs: U32,
    pub edstt: U16,
    pub dsto: u8,
    pub fwug: u8,
    pub kas: U16,
    pub hctma: U16,
    pub mntmt: U16,
    pub mxtmt: U16,
    pub sanicap: U32,
    pub _reserved332: [u8; 20],
    pub pels: U32,
    pub _reserved356: [u8; 156],
    pub sqes: u8,
    pub cqes: u8,
    pub maxcmd: U16,
    pub nn: U32,
    pub oncs: U16,
    pub fuses: U16,
    pub fna: u8,
    pub vwc: u8,
    pub awun: U16,
    pub awupf: U16,
    pub icsvscc: u8,
    pub nwpc: u8,
    pub acwu: U16,
    pub ocfs: U16,
    pub sgls: U32,
    pub mnan: U32,
    pub _reserved544: [u8; 224],
    pub subnqn: [u8; 256],
    pub _reserved1024: [u8; 768],
    pub ioccsz: U32,
    pub iorcsz: U32,
    pub icdoff: U16,
    pub fcatt: u8,
    pub msdbd: u8,
    pub ofcs: U16,
    pub _reserved1806: [u8; 242],
    pub psd: [PowerStateDescriptor; 32],
    pub _vendor: [u8; 1024],
}

/// A format of logical blocks.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct LbaFormatData {
    /// Bytes of metadata.
    pub ms: U16,
    /// Bytes of data, as a power of two.
    pub lbads: u8,
    /// Relative performance: 0 best, 1 better, 2 good, 3 degraded.
    pub rp: u8,
}

/// Identify Namespace (CNS 00h).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
#[allow(missing_docs, reason = "the field names are the specification's")]
pub struct NamespaceData {
    pub nsze: U64,
    pub ncap: U64,
    pub nuse: U64,
    pub nsfeat: u8,
    pub nlbaf: u8,
    pub flbas: u8,
    pub mc: u8,
    pub dpc: u8,
    pub dps: u8,
    pub nmic: u8,
    pub rescap: u8,
    pub fpi: u8,
    pub dlfeat: u8,
    pub nawun: U16,
    pub nawupf: U16,
    pub nacwu: U16,
    pub nabsn: U16,
    pub nabo: U16,
    pub nabspf: U16,
    pub noiob: U16,
    pub nvmcap: Wide,
    pub npwg: U16,
    pub npwa: U16,
    pub npdg: U16,
    pub npda: U16,
    pub nows: U16,
    pub mssrl: U16,
    pub mcl: U32,
    pub msrc: u8,
    pub _reserved81: [u8; 11],
    pub anagrpid: U32,
    pub _reserved96: [u8; 3],
    pub nsattr: u8,
    pub nvmsetid: U16,
    pub endgid: U16,
    pub nguid: [u8; 16],
    pub eui64: [u8; 8],
    pub lbaf: [LbaFormatData; 64],
    pub _vendor: [u8; 3712],
}

/// Identify Namespace, independent of the command set (CNS 08h).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
#[allow(missing_docs, reason = "the field names are the specification's")]
pub struct IndependentNamespaceData {
    pub nsfeat: u8,
    pub nmic: u8,
    pub rescap: u8,
    pub fpi: u8,
    pub anagrpid: U32,
    pub nsattr: u8,
    pub _reserved9: u8,
    pub nvmsetid: U16,
    pub endgid: U16,
    /// Bit 0: ready.
    pub nstat: u8,
    pub _reserved15: [u8; 4081],
}

/// Identify Controller of the NVM command set (CNS 06h, CSI 00h).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct NvmControllerData {
    /// Maximum size of a Verify, as a power of two of 4 KiB; 0: no limit.
    pub vsl: u8,
    /// Maximum size of a Write Zeroes.
    pub wzsl: u8,
    /// Maximum size of a Write Uncorrectable.
    pub wusl: u8,
    /// Maximum number of ranges of a Dataset Management.
    pub dmrl: u8,
    /// Maximum blocks of a range.
    pub dmrsl: U32,
    /// Maximum blocks of all ranges.
    pub dmsl: U64,
    /// Reserved.
    pub _reserved16: [u8; 4080],
}

const _: () = assert!(size_of::<ControllerData>() == IDENTIFY);
const _: () = assert!(size_of::<NamespaceData>() == IDENTIFY);
const _: () = assert!(size_of::<IndependentNamespaceData>() == IDENTIFY);
const _: () = assert!(size_of::<NvmControllerData>() == IDENTIFY);
const _: () = assert!(std::mem::offset_of!(ControllerData, oacs) == 256);
const _: () = assert!(std::mem::offset_of!(ControllerData, pels) == 352);
const _: () = assert!(std::mem::offset_of!(ControllerData, sqes) == 512);
const _: () = assert!(std::mem::offset_of!(ControllerData, ocfs) == 534);
const _: () = assert!(std::mem::offset_of!(NamespaceData, msrc) == 80);
const _: () = assert!(std::mem::offset_of!(NamespaceData, anagrpid) == 92);
const _: () = assert!(std::mem::offset_of!(ControllerData, sgls) == 536);
const _: () = assert!(std::mem::offset_of!(ControllerData, subnqn) == 768);
const _: () = assert!(std::mem::offset_of!(ControllerData, ioccsz) == 1792);
const _: () = assert!(std::mem::offset_of!(ControllerData, psd) == 2048);
const _: () = assert!(std::mem::offset_of!(NamespaceData, nguid) == 104);
const _: () = assert!(std::mem::offset_of!(NamespaceData, lbaf) == 128);

/// Writes text into a field, padded with spaces. Characters that do not fit or are not printable ASCII are omitted.
pub fn text(field: &mut [u8], text: &str) {
    field.fill(b' ');
    let printable = text.bytes().filter(|byte| (0x20..0x7f).contains(byte));
    for (to, from) in field.iter_mut().zip(printable) {
        *to = from;
    }
}

/// Writes a name into a field, padded with zeroes (NQNs).
pub fn name(field: &mut [u8], name: &str) {
    field.fill(0);
    for (to, from) in field.iter_mut().zip(name.bytes()) {
        *to = from;
    }
}
