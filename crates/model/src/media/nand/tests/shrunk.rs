//! A scaled-down drive that represents a whole one.

use super::*;
use crate::media::Medium;

/// Returns the write amplification of random writes to the pages that hold data, in steady state, over two fills.
fn amplification(config: NandConfig) -> f64 {
    let units = u64::from(config.shape().written);
    let mut drive = Nand::new(config, Precondition::Steady, 3);
    let (_, amplification) = write_speed(&mut drive, units / 2, 2 * units);
    amplification
}

#[test]
fn a_shrunk_drive_amplifies_as_the_whole_one() {
    for (filled, over_provisioning) in [(1.0, 0.16), (0.9, 0.1)] {
        let mut whole = small();
        whole.filled = filled;
        whole.geometry.channels = 2;
        whole.geometry.dies_per_channel = 1;
        whole.geometry.blocks_per_plane = 800;
        set_over_provisioning(&mut whole, over_provisioning);
        let shrunk = whole.shrunk(whole.geometry.capacity / 16);
        assert_eq!(shrunk.geometry.blocks_per_plane, 100);
        let (whole, shrunk) = (amplification(whole), amplification(shrunk));
        assert!(
            (shrunk / whole - 1.0).abs() < 0.03,
            "{shrunk:.3} against {whole:.3}"
        );
    }
}
