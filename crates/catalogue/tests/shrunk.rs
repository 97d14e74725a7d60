//! A shrunk drive collects garbage as the whole drive does.

use model::media::Medium;
use tier::DriveConfig;

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
