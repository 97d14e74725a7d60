//! Log pages, byte for byte, and the part of a page that a command requests.
//!
//! Source: NVM Express Base Specification 1.4, figures 192 to 196 and 239; 2.0, figure 202 (supported log pages); NVMe
//! over Fabrics 1.1, figure 34 (discovery).

use model::management::Health;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::identify::{Wide, wide};

/// Supported log pages.
pub const SUPPORTED: u8 = 0x00;
/// Error information.
pub const ERRORS: u8 = 0x01;
/// SMART and health.
pub const HEALTH: u8 = 0x02;
/// Firmware slots.
pub const FIRMWARE: u8 = 0x03;
/// Changed namespace list.
pub const CHANGED_NAMESPACES: u8 = 0x04;
/// Commands and their effects.
pub const EFFECTS: u8 = 0x05;
/// Device self-tests.
pub const SELF_TEST: u8 = 0x06;
/// Persistent events.
pub const PERSISTENT: u8 = 0x0d;
/// Blocks that cannot be read.
pub const LBA_STATUS: u8 = 0x0e;
/// Discovery log.
pub const DISCOVERY: u8 = 0x70;
/// Sanitize status.
pub const SANITIZE: u8 = 0x81;

/// SMART and health information.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
#[allow(missing_docs, reason = "the field names are the specification's")]
pub struct HealthPage {
    /// Bit 0 spare low, 1 temperature, 2 reliability, 3 read only, 4 backup of the volatile memory.
    pub critical_warning: u8,
    /// Temperature in kelvin.
    pub composite_temperature: U16,
    pub available_spare: u8,
    pub available_spare_threshold: u8,
    pub percentage_used: u8,
    pub _reserved6: [u8; 26],
    /// Data units read, in thousands of 512 B.
    pub data_units_read: Wide,
    /// Data units written, in thousands of 512 B.
    pub data_units_written: Wide,
    pub host_reads: Wide,
    pub host_writes: Wide,
    /// Busy time in minutes.
    pub controller_busy_time: Wide,
    pub power_cycles: Wide,
    pub power_on_hours: Wide,
    pub unsafe_shutdowns: Wide,
    pub media_errors: Wide,
    pub error_log_entries: Wide,
    /// Time in minutes.
    pub warning_temperature_time: U32,
    /// Time in minutes.
    pub critical_temperature_time: U32,
    /// Temperatures in kelvin; 0: no such sensor.
    pub temperature_sensors: [U16; 8],
    pub _reserved216: [u8; 296],
}

impl HealthPage {
    /// Returns the page for the health of a drive.
    pub fn from_health(health: &Health) -> HealthPage {
        let it = &health.lifetime;
        let number = |value: u64| wide(value.into());
        let mut data: HealthPage = zeroed();
        data.critical_warning = health.warning.bits();
        data.composite_temperature.set(health.kelvin());
        data.available_spare = health.available_spare;
        data.available_spare_threshold = health.spare_threshold;
        data.percentage_used = health.percentage_used();
        data.data_units_read = number(health.data_units_read());
        data.data_units_written = number(health.data_units_written());
        data.host_reads = number(it.host_read_commands);
        data.host_writes = number(it.host_write_commands);
        data.controller_busy_time = number(health.busy_minutes());
        data.power_cycles = number(it.power_cycles);
        data.power_on_hours = number(health.power_on_hours());
        data.unsafe_shutdowns = number(it.unsafe_shutdowns);
        data.media_errors = number(it.media_errors);
        data.error_log_entries = number(it.error_log_entries);
        data.warning_temperature_time
            .set(health.warning_minutes() as u32);
        data.critical_temperature_time
            .set(health.critical_minutes() as u32);
        data.temperature_sensors[0].set(health.kelvin());
        data
    }
}

/// An entry of the error log.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ErrorEntry {
    /// Number of the error, counted during the existence of the controller; 0: no entry.
    pub count: U64,
    /// Submission queue of the command.
    pub sq_id: U16,
    /// Identifier of the command.
    pub cid: U16,
    /// Status, shifted left by one.
    pub status: U16,
    /// Location in the command; all ones: not specific.
    pub location: U16,
    /// First block.
    pub lba: U64,
    /// Namespace.
    pub nsid: U32,
    /// Whether there is more, vendor specific.
    pub vendor: u8,
    /// Transport type: 3 is TCP.
    pub transport: u8,
    /// Reserved.
    pub _reserved30: [u8; 34],
}

/// Firmware slots.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct FirmwarePage {
    /// Bits 2:0 the active slot.
    pub active: u8,
    /// Reserved.
    pub _reserved1: [u8; 7],
    /// Revision of slots 1 to 7.
    pub revisions: [[u8; 8]; 7],
    /// Reserved.
    pub _reserved64: [u8; 448],
}

/// Sanitize status.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SanitizePage {
    /// Completed fraction in units of 1/65536; all ones if none is in progress.
    pub progress: U16,
    /// Bits 2:0 result of the last sanitize (0 never, 1 done, 2 in progress, 3 failed); bit 8: nothing was written
    /// since.
    pub status: U16,
    /// Dword 10 of the command.
    pub cdw10: U32,
    /// Estimated seconds of an overwrite, block erase and crypto erase; all ones: unknown.
    pub estimates: [U32; 3],
    /// Reserved.
    pub _reserved20: [u8; 492],
}

/// The discovery log page: this header, then [`DiscoveryEntry`]s.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct DiscoveryHeader {
    /// Generation counter, which changes with the content.
    pub generation: U64,
    /// Number of entries.
    pub records: U64,
    /// Record format: 0.
    pub format: U16,
    /// Reserved.
    pub _reserved18: [u8; 1006],
}

/// A subsystem that can be connected to.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct DiscoveryEntry {
    /// Transport type; 3: TCP.
    pub transport: u8,
    /// Address family; 1: IPv4, 2: IPv6.
    pub family: u8,
    /// Subsystem type; 1: a discovery subsystem, 2: an NVM subsystem, 3: this discovery subsystem.
    pub kind: u8,
    /// Bits 1:0 secure channel (2: not required); bit 2: flow control can be disabled.
    pub requirements: u8,
    /// Identifier of the port.
    pub port_id: U16,
    /// All ones: controllers are allocated when hosts connect.
    pub cntlid: U16,
    /// Maximum entries of an admin queue.
    pub admin_entries: U16,
    /// Flags of the entry.
    pub flags: U16,
    /// Reserved.
    pub _reserved12: [u8; 20],
    /// Port, as text.
    pub service: [u8; 32],
    /// Reserved.
    pub _reserved64: [u8; 192],
    /// Name of the subsystem.
    pub subnqn: [u8; 256],
    /// Address, as text.
    pub address: [u8; 256],
    /// TCP: its first byte is the security (0 none).
    pub transport_specific: [u8; 256],
}

const _: () = assert!(size_of::<HealthPage>() == 512);
const _: () = assert!(size_of::<ErrorEntry>() == 64);
const _: () = assert!(size_of::<FirmwarePage>() == 512);
const _: () = assert!(size_of::<SanitizePage>() == 512);
const _: () = assert!(size_of::<DiscoveryHeader>() == 1024);
const _: () = assert!(size_of::<DiscoveryEntry>() == 1024);

/// Returns a structure of zeroes.
pub fn zeroed<T: FromZeros>() -> T {
    T::new_zeroed()
}

/// The part of a log page that a command requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogPageRequest {
    /// Identifier of the page.
    pub page: u8,
    /// Number of bytes.
    pub bytes: u64,
    /// First byte, a multiple of 4.
    pub offset: u64,
    /// Log-specific field.
    pub specific: u8,
    /// Keep events of this kind masked: reading the page does not clear them.
    pub retain: bool,
}

impl LogPageRequest {
    /// Decodes dwords 10 to 13.
    pub const fn from_dwords(dwords: [u32; 4]) -> LogPageRequest {
        let [cdw10, cdw11, cdw12, cdw13] = dwords;
        let count = (cdw10 >> 16) as u64 | ((cdw11 & 0xffff) as u64) << 16;
        LogPageRequest {
            page: cdw10 as u8,
            bytes: (count + 1) * 4,
            offset: cdw12 as u64 | (cdw13 as u64) << 32,
            specific: (cdw10 >> 8) as u8 & 0xf,
            retain: cdw10 & 1 << 15 != 0,
        }
    }
}
