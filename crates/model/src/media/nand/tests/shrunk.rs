//! A smaller drive that stands in for a whole one.

use super::*;
use crate::media::Medium;

/// Write amplification of random writes in the steady state, over two fills.
fn amplification(config: NandConfig) -> f64 {
    let units = pages(&config);
    let mut drive = Nand::new(config, Precondition::Steady, 3);
    let (_, amplification) = write_speed(&mut drive, units / 2, 2 * units);
    amplification
}

#[test]
fn a_shrunk_drive_amplifies_as_the_whole_one() {
    let mut whole = small();
    whole.geometry.channels = 2;
    whole.geometry.dies_per_channel = 1;
    whole.geometry.blocks_per_plane = 800;
    set_over_provisioning(&mut whole, 0.16);
    let shrunk = whole.shrunk(whole.geometry.capacity / 16);
    assert_eq!(shrunk.geometry.blocks_per_plane, 100);
    let (whole, shrunk) = (amplification(whole), amplification(shrunk));
    assert!(
        (shrunk / whole - 1.0).abs() < 0.03,
        "{shrunk:.3} against {whole:.3}"
    );
}
