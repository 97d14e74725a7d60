//! Small drives for tests: of the laws, and of devices that are composed of drives.
//!
//! The values are not those of a product: they are small enough that every part of a drive works within a short run.

use crate::ftl::{NandGeometry, Watermark};
use crate::media::nand::{
    Collection, NandConfig, NandController, NandPower, NandTiming, WriteBuffer,
};
use crate::media::xpoint::{
    Levelling, Recovery, UNIT, Wear, XPointConfig, XPointPower, XPointRefresh, XPointTiming,
};
use crate::time::Span;

/// Returns a small P4800X with all its parts, and with frequent background work, so that it occurs in a short run.
pub fn xpoint() -> XPointConfig {
    XPointConfig {
        bytes: 256 << 20,
        block: 512,
        channels: 7,
        dies_per_channel: 4,
        die_bytes: 16 << 20,
        max_transfer: 128 << 10,
        timing: XPointTiming {
            link: Span::from_ns(1_300),
            link_ps_per_byte: 286,
            data_fetch: Span::from_ns(300),
            controller: Span::from_ns(1_800),
            further_block: Span::from_ns(7),
            controller_interval: Span::from_ns(500),
            controller_slots: 12,
            write_buffers: 5,
            table_places: 100,
            read_path_ps_per_byte: 408,
            read_part: UNIT,
            read_completion: Span::ZERO,
            read_spread: Span::from_ns(500),
            write_path_ps_per_byte: 455,
            turnaround: Span::from_ns(300),
            duplex: false,
            die_read: Span::from_ns(4_550),
            decode: Span::from_ns(300),
            die_write: Span::from_ns(27_000),
        },
        refresh: XPointRefresh {
            batch_units: 12,
            period: Span::from_ms(20_000),
            after_power_on: Span::from_ms(100),
            uptime_at_start: Span::from_ms(50),
        },
        levelling: Levelling {
            writes_per_move: 500,
            batch_units: 20,
        },
        recovery: Recovery {
            reads_per_recovery: 700,
            time: Span::from_us(120),
        },
        power: XPointPower {
            idle_watts: 5.0,
            read_joules_per_byte: 1.25e-9,
            write_joules_per_byte: 3.6e-9,
            limit_watts: 18.0,
            governor_window: Span::from_ms(10),
        },
        wear: Wear {
            endurance_bytes: 20_500_000_000_000_000,
            percentage_used_at_start: 0.0,
            factor: 1.0,
            protect_at_percent: 105.0,
            protected_bytes_per_second: 30_000_000,
        },
        format_die_bytes_per_second: 54_000_000,
    }
}

/// Returns a small NAND drive: 16 dies, about 600 MB at 28 % over-provisioning.
pub fn nand() -> NandConfig {
    let mut config = NandConfig {
        geometry: NandGeometry {
            channels: 4,
            dies_per_channel: 4,
            planes: 2,
            blocks_per_plane: 80,
            pages_per_block: 32,
            page_bytes: 16384,
            reserved: 0.0,
            capacity: 4096,
            indirection: 4096,
            stripe: 0,
        },
        block: 512,
        timing: NandTiming {
            read: Span::from_us(60),
            read_spread: 0.0,
            read_thresholds: alloc::vec::Vec::new(),
            retry_probability: 0.0,
            cache_read: true,
            program_spread: 0.0,
            program_jitter: 0.0,
            program: Span::from_us(1300),
            erase: Span::from_us(4000),
            suspend: None,
            channel_command: Span::from_ns(500),
            channel_ps_per_byte: 3000,
        },
        controller: NandController {
            per_read: Span::from_ns(1500),
            per_read_unit: None,
            per_write: Span::from_ns(2000),
            per_write_unit: Span::from_ns(300),
            issue_interval: Span::ZERO,
            write_issue_interval: Span::ZERO,
            cores: None,
            read_latency: Span::from_us(8),
            write_latency: Span::from_us(6),
            write_spread: Span::ZERO,
            link_latency: Span::from_us(1),
            link_ps_per_byte: 300,
            link_write_ps_per_byte: None,
            slots: None,
            max_transfer: 131_072,
            merge_before_ack: false,
        },
        buffer: nand_buffer(),
        collection: Collection {
            watermark: Watermark { low: 3 },
            background_free: 0,
            idle_after: Span::from_ms(20),
            per_unit: Span::ZERO,
            bursts: None,
        },
        read_ahead: None,
        map: None,
        slc: None,
        refresh: None,
        housekeeping: None,
        pace: None,
        power: NandPower::default(),
        rated_cycles: 3000,
        percentage_used_at_start: 0.0,
        wear_factor: 1.0,
        read_only_at_percent: None,
        filled: 1.0,
    };
    let raw = config.geometry.raw_bytes() as f64;
    config.geometry.capacity = (raw / 1.28 / 4096.0) as u64 * 4096;
    config
}

/// Returns the buffer of such a drive: protected, and without costs of tables.
fn nand_buffer() -> WriteBuffer {
    WriteBuffer {
        bytes: 2 << 20,
        protected: true,
        save_tables: Span::ZERO,
        fua_tables: Span::ZERO,
        tables_per_write: 0.0,
    }
}
