//! Log pages of vendors and of the Open Compute Project: SMART attributes (C0h) and the latency monitor (C3h) of OCP,
//! and the additional SMART attributes of Intel (CAh).
//!
//! A drive has the pages that `nvme.log_pages` of its file names. Fields whose events are not modelled are zero: bad
//! blocks, program and erase failures, corrected errors, retries. Physical bytes written over the life of a flash
//! drive follow from its mean erases, so they lag behind by the blocks that have not been erased again. The latency
//! monitor counts since the server started; it does not rotate its buckets, and it has no time stamps.
//!
//! Sources: the layouts in nvme-cli (`plugins/ocp/ocp-smart-extended-log.h`, `plugins/ocp/ocp-nvme.h`,
//! `plugins/intel/intel-nvme.c`), which name OCP's Datacenter NVMe SSD Specification 2.0 and Intel's attributes.

use model::Gauge;
use model::management::Health;
use model::media::Medium;
use statistics::Histogram;
use tier::DriveConfig;

use crate::served::{Latencies, ServedDevice};

/// SMART attributes of OCP.
pub const OCP_SMART: u8 = 0xc0;
/// Latency monitor of OCP.
pub const OCP_LATENCY: u8 = 0xc3;
/// Additional SMART attributes of Intel.
pub const INTEL_SMART: u8 = 0xca;

/// Identifiers at the end of OCP's pages.
const OCP_SMART_GUID: [u8; 16] = [
    0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4, 0x9c, 0x4f, 0x6f, 0x7c, 0xc9, 0x14, 0xd5, 0xaf,
];
const OCP_LATENCY_GUID: [u8; 16] = [
    0x92, 0x7a, 0xc0, 0x8c, 0xd0, 0x84, 0x6c, 0x9c, 0x70, 0x43, 0xe6, 0xd4, 0x58, 0x5e, 0xd4, 0x85,
];
/// Thresholds A to D of the latency monitor: (value + 1) x 5 ms. The values are the defaults of nvme-cli.
const THRESHOLDS: [u8; 4] = [0x05, 0x13, 0x1e, 0x2e];
/// Columns of reads, writes and trims in a bucket.
const READS: usize = 3;
const WRITES: usize = 2;

/// Counters that these pages need.
#[derive(Clone, Debug, Default)]
pub(super) struct VendorFacts {
    health: Option<Health>,
    /// Bytes that the medium has taken over the drive's life.
    medium_written: u64,
    /// Bytes read from the medium since the server started.
    medium_read: u64,
    /// Mean erases of a block over the drive's life; 0 for media without erases.
    erases: u64,
    /// Percent of blocks that are erased and ready.
    free_percent: u8,
    /// Whether capacitors protect the buffer.
    protected: bool,
    rated_bytes: u64,
    latencies: Latencies,
}

impl VendorFacts {
    pub(super) fn from_drive(drive: &ServedDevice, health: Health) -> VendorFacts {
        let sheet = drive.sheet();
        let used = health.lifetime.percentage_used / 100.0;
        let since = drive.gauge(Gauge::MediumBytesWritten) as u64;
        let (erases, worn) = match &sheet.config {
            DriveConfig::Nand(config) => {
                let erases = used * f64::from(config.rated_cycles);
                let raw = config.raw_bytes().unwrap_or(0) as f64;
                (erases as u64, (erases * raw) as u64)
            }
            _ => (0, health.lifetime.host_bytes_written),
        };
        VendorFacts {
            medium_written: worn.max(since),
            medium_read: drive.gauge(Gauge::MediumBytesRead) as u64,
            erases,
            free_percent: (drive.gauge(Gauge::FreeShare) * 100.0).clamp(0.0, 100.0) as u8,
            protected: sheet.power_loss_protection == Some(true),
            rated_bytes: sheet.endurance_bytes.unwrap_or(0),
            latencies: drive.latencies().clone(),
            health: Some(health),
        }
    }
}

/// A page that is filled at offsets.
struct VendorPage(Vec<u8>);

impl VendorPage {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// Returns the page with this identifier.
pub(super) fn page(page: u8, facts: &VendorFacts) -> Vec<u8> {
    match page {
        OCP_SMART => ocp_smart(facts),
        OCP_LATENCY => ocp_latency(facts),
        _ => intel_smart(facts),
    }
}

/// Returns the SMART attributes of OCP.
fn ocp_smart(facts: &VendorFacts) -> Vec<u8> {
    let mut page = VendorPage(vec![0; 512]);
    page.put(0, &u128::from(facts.medium_written).to_le_bytes());
    page.put(16, &u128::from(facts.medium_read).to_le_bytes());
    // Normalised values of bad blocks: none is bad.
    page.put(38, &100u16.to_le_bytes());
    page.put(46, &100u16.to_le_bytes());
    if let Some(health) = &facts.health {
        let life = &health.lifetime;
        page.put(56, &life.media_errors.to_le_bytes());
        page.put(112, &(life.unsafe_shutdowns as u32).to_le_bytes());
        page.put(160, &u128::from(life.unsafe_shutdowns).to_le_bytes());
    }
    let erases = facts.erases.min(u32::MAX.into()) as u32;
    page.put(88, &erases.to_le_bytes());
    page.put(92, &erases.to_le_bytes());
    // Version 2.0.0 of the specification.
    page.put(103, &[2]);
    page.put(120, &[facts.free_percent]);
    let capacitor: u16 = if facts.protected { 100 } else { u16::MAX };
    page.put(128, &capacitor.to_le_bytes());
    page.put(
        176,
        &u128::from(facts.rated_bytes / 1_000_000_000).to_le_bytes(),
    );
    page.put(224, &facts.erases.to_le_bytes());
    page.put(494, &3u16.to_le_bytes());
    page.put(496, &OCP_SMART_GUID);
    page.0
}

/// Returns the number of latencies from each threshold to the next.
fn counted(latencies: &Histogram) -> [u32; 4] {
    let ns = |value: u8| (u64::from(value) + 1) * 5_000_000;
    let mut counts = [0; 4];
    for (low, _, count) in latencies.buckets() {
        if let Some(bucket) = THRESHOLDS.iter().rposition(|&value| low >= ns(value)) {
            counts[bucket] += count as u32;
        }
    }
    counts
}

/// Returns the latency monitor of OCP.
fn ocp_latency(facts: &VendorFacts) -> Vec<u8> {
    let mut page = VendorPage(vec![0; 512]);
    // The feature is enabled; buckets never expire.
    page.put(0, &[1]);
    page.put(6, &THRESHOLDS);
    let by_kind = [
        (READS, &facts.latencies.reads),
        (WRITES, &facts.latencies.writes),
    ];
    for (column, latencies) in by_kind {
        for (bucket, count) in counted(latencies).into_iter().enumerate() {
            page.put(32 + (bucket * 4 + column) * 4, &count.to_le_bytes());
        }
    }
    // No time stamps: all ones.
    page.put(96, &[0xff; 96]);
    page.put(304, &[0xff; 96]);
    page.put(494, &1u16.to_le_bytes());
    page.put(496, &OCP_LATENCY_GUID);
    page.0
}

/// Returns the additional SMART attributes of Intel: items of 12 bytes with key, normalised value and 48 bits raw.
fn intel_smart(facts: &VendorFacts) -> Vec<u8> {
    let mut page = Vec::with_capacity(512);
    let mut item = |key: u8, normalized: u8, raw: u64| {
        let raw = raw.to_le_bytes();
        page.extend_from_slice(&[key, 0, 0, normalized, 0]);
        page.extend_from_slice(&raw[..6]);
        page.push(0);
    };
    let life = facts
        .health
        .as_ref()
        .map(|health| health.lifetime.clone())
        .unwrap_or_default();
    let left = (100.0 - life.percentage_used).clamp(1.0, 100.0) as u8;
    let mean = facts.erases.min(u64::from(u16::MAX));
    // Units of 32 MiB.
    let units = |bytes: u64| bytes >> 25;
    item(0xab, 100, 0);
    item(0xac, 100, 0);
    item(0xad, left, mean | mean << 16 | mean << 32);
    item(0xb8, 100, 0);
    item(0xc7, 100, 0);
    // Timed workload: all ones until an hour of its timer has passed; the timer is not modelled.
    item(0xe2, 100, 0xffff);
    item(0xe3, 100, 0xffff);
    item(0xe4, 100, 0xffff);
    item(0xea, 100, 0);
    item(0xf0, 100, 0);
    item(0xf3, 100, 0);
    item(0xf4, 100, units(facts.medium_written));
    item(0xf5, 100, units(life.host_bytes_written));
    page.resize(512, 0);
    page
}
