//! A shrunk drive collects garbage as the whole drive does.

use model::media::Medium;
use tier::DriveConfig;

/// Returns the free blocks of each die of a full drive that has collected all of its garbage; two blocks are open.
fn most_free(config: &model::media::nand::NandConfig) -> f64 {
    let shape = config.check().expect("a drive that can be");
    let unit = config.geometry.capacity / u64::from(shape.logical);
    let valid = f64::from(shape.logical) - (config.buffer.bytes / unit) as f64;
    let per_block = f64::from(shape.block_slots) * f64::from(shape.dies);
    (f64::from(shape.slots()) - valid) / per_block - 2.0
}

/// A drive comes to rest when it has collected in idle time, and so does a shrunk one.
#[test]
fn a_shrunk_nand_drive_comes_to_rest() {
    let mut tested = 0;
    for name in catalogue::drive_names() {
        let whole = catalogue::drive(name).expect("built in").config;
        let small = whole.shrunk(16 << 30);
        let (DriveConfig::Nand(whole), DriveConfig::Nand(small)) = (&whole, &small) else {
            continue;
        };
        let rests = |config: &model::media::nand::NandConfig| {
            most_free(config) - f64::from(config.collection.background_free)
        };
        if rests(whole) < 0.0 {
            continue;
        }
        tested += 1;
        assert!(
            rests(small) >= 0.0,
            "{name}: {} free blocks at most, and {} to be free",
            most_free(small),
            small.collection.background_free
        );
        assert!(small.collection.background_free <= whole.collection.background_free);
    }
    assert!(tested > 40, "{tested}");
}

#[test]
fn a_shrunk_nand_drive_keeps_its_spare_share() {
    for name in ["p3700-1600", "9100max-2400"] {
        let whole = catalogue::drive(name).unwrap().config;
        for bytes in [5 << 30, 40 << 30, 300 << 30] {
            let small = whole.shrunk(bytes);
            let (DriveConfig::Nand(whole), DriveConfig::Nand(small)) = (&whole, &small) else {
                panic!("{name} is a NAND drive")
            };
            let [a, b] = [whole, small].map(|config| {
                let shape = config.check().expect("a drive that can be");
                // Slots available to garbage collection: all except the free blocks and half of the two open blocks.
                let kept = (config.collection.watermark.low + 1) * shape.block_slots * shape.dies;
                let kept = f64::from(kept);
                // During writes the buffer is full of data that is not on the medium.
                let buffered = config.buffer.bytes as f64 / 4096.0;
                (f64::from(shape.slots()) - kept) / (f64::from(shape.logical) - buffered)
            });
            assert!(
                (a / b - 1.0).abs() < 0.001,
                "{name} at {bytes}: {a:.4} against {b:.4}"
            );
            assert!(
                small.geometry.capacity < 2 * bytes,
                "{name}: {}",
                small.geometry.capacity
            );
            let share = |config: &model::media::nand::NandConfig| {
                config.timing.erase.ns() as f64 / f64::from(config.geometry.pages_per_block)
            };
            assert!(
                (share(whole) / share(small) - 1.0).abs() < 0.01,
                "erasing takes the same share"
            );
        }
        assert_eq!(whole.shrunk(u64::MAX), whole);
    }
}
