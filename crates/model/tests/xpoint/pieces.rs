//! Commands that are larger than the largest transfer. Added after mutation testing: no other test of the model checked
//! the start and the length of the last piece.

use model::Command;
use model::media::Medium;

use super::{alone, quiet};

#[test]
fn the_last_piece_of_a_command_has_what_is_left() {
    let config = quiet();
    // Time of a unit on the data path; a command of the largest size has 32 units.
    let unit = 1_536;
    let largest = alone(&config, Command::read(0, 0, 131_072));
    for units in 1..4 {
        let bytes = 131_072 + units * 4096;
        let longer = alone(&config, Command::read(0, 0, bytes));
        assert_eq!(longer, largest + u64::from(units) * unit, "{bytes} B");
    }
}

#[test]
fn it_has_no_cache_to_flush() {
    assert_eq!(quiet().volatile_bytes(), 0);
    assert!(!quiet().volatile_write_cache());
}
