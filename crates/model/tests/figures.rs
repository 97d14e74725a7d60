//! Values computed by geometries, media and counters. Added after mutation testing: no other test of the model detected
//! changes of these values.

use model::command::{Command, Op};
use model::device::Device;
use model::ftl::{NandGeometry, Traffic};
use model::media::Medium;
use model::media::ram::{MemoryBus, Ram, RamConfig};
use model::{Span, Time};

/// 8 dies of 2 planes with 64 blocks of 128 pages of 16 KiB: 8 units of 4 KiB in a page of both planes, 1024 in a block.
fn geometry() -> NandGeometry {
    NandGeometry {
        channels: 4,
        dies_per_channel: 2,
        planes: 2,
        blocks_per_plane: 64,
        pages_per_block: 128,
        page_bytes: 16 << 10,
        reserved: 0.25,
        capacity: 1 << 30,
        indirection: 4096,
        stripe: 0,
    }
}

#[test]
fn write_amplification_counts_what_collection_moved_and_what_completes_pages() {
    let earlier = Traffic {
        host: 100,
        moved: 40,
        padded: 10,
        erased: 3,
    };
    let later = Traffic {
        host: 110,
        moved: 45,
        padded: 12,
        erased: 4,
    };
    assert_eq!(later.write_amplification_since(&earlier), 1.7);
    assert_eq!(later.write_amplification_since(&later), 1.0);
}

#[test]
fn a_shape_counts_what_its_geometry_has() {
    let shape = geometry().shape(2).expect("it has room");
    assert_eq!((shape.channels, shape.dies), (4, 8));
    assert_eq!((shape.page_slots, shape.block_slots), (8, 1024));
    assert_eq!((shape.blocks, shape.die_slots), (48, 48 * 1024));
    assert_eq!(shape.slots(), 8 * 48 * 1024);
    assert_eq!(shape.logical, 1 << 18);
    assert_eq!(geometry().raw_bytes(), 2 << 30);
}

/// Units are numbered with 32 bits; a quarter of the numbers are reserved for the write buffer.
#[test]
fn more_units_than_can_be_numbered_are_refused() {
    let with_blocks = |blocks_per_plane| NandGeometry {
        channels: 16,
        dies_per_channel: 16,
        blocks_per_plane,
        reserved: 0.0,
        ..geometry()
    };
    // 256 dies with blocks of 1024 units: 2^18 units per block over all dies.
    let most = (3 << 30) / (1 << 18) - 1;
    assert!(with_blocks(most).shape(2).is_ok());
    let error = with_blocks(most + 1).shape(2).expect_err("too many");
    assert!(
        error.0.contains("cannot be numbered with 32 bits"),
        "{error}"
    );
}

/// Each die needs space for its share of the data, the blocks that collection uses, and one more.
#[test]
fn a_drive_without_room_for_collection_is_refused() {
    // 32 of 48 blocks of each die are for data.
    assert!(geometry().shape(15).is_ok());
    let error = geometry().shape(16).expect_err("no room");
    assert!(
        error.0.contains("no space for garbage collection"),
        "{error}"
    );
}

#[test]
fn a_ram_disk_has_its_bytes_and_no_cache_to_flush() {
    let config = RamConfig {
        bytes: 1 << 30,
        per_command: Span::from_ns(100),
        picoseconds_per_byte: 100,
        memory_bus: None,
        spread: 0.0,
    };
    assert_eq!(config.capacity_bytes(), 1 << 30);
    assert_eq!(config.volatile_bytes(), 0);
    assert!(!config.volatile_write_cache());
}

/// Persistent memory reads faster than it writes.
#[test]
fn a_ram_disk_can_have_a_rate_for_reads() {
    let time = |config: &RamConfig, op: Op| {
        let mut drive = Ram::new(config.clone());
        drive.submit(Time::ZERO, Command::new(1, op, 0, 4096));
        drive.next_event().ns()
    };
    let one = RamConfig {
        bytes: 1 << 30,
        per_command: Span::from_ns(10),
        picoseconds_per_byte: 1000,
        memory_bus: None,
        spread: 0.0,
    };
    let two = RamConfig {
        memory_bus: Some(MemoryBus {
            read_picoseconds_per_byte: 250,
        }),
        ..one.clone()
    };
    assert_eq!([Op::Read, Op::Write].map(|op| time(&one, op)), [4106, 4106]);
    assert_eq!([Op::Read, Op::Write].map(|op| time(&two, op)), [1034, 4106]);
}
