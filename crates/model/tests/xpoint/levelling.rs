//! Wear levelling takes group time that is then not available for commands.

use super::{Loop, close_to, quiet};
use model::{Gauge, Part, Span};

#[test]
fn wear_levelling_keeps_its_group_from_commands() {
    // One group: 4 us per unit written, 0.6 us per read; a move of ten units every 10.5 writes.
    let mut config = quiet();
    config.dies_per_channel = 1;
    config.levelling.writes_per_move = 10;
    config.levelling.batch_units = 10;
    let run = Loop::new(32, 0, 4096, 4096, 100_000).run(&config);
    // One more than the integer part of an exponentially distributed value.
    let interval = 1.0 + 1.0 / (libm::exp(0.1) - 1.0);
    let each = 4.0 + 46.0 / interval;
    let rate = run.bytes_per_second / 4096.0;
    close_to(rate, 1e6 / each, 0.02, "writes beside wear levelling");
    let busy = run.gauge(Gauge::MediumBusySeconds) / run.end.seconds();
    close_to(busy, 1.0, 0.01, "the group");
    let medium = run.gauge(Gauge::MediumBytesWritten) / run.gauge(Gauge::HostBytesWritten);
    close_to(medium, 1.0 + 10.0 / interval, 0.02, "units moved");
    let waited: Span = run.log.iter().fold(Span::ZERO, |sum, it| {
        sum + it.anatomy.get(Part::BehindRefresh)
    });
    assert!(waited > Span::from_ms(100), "{waited:?} behind moves");
}
