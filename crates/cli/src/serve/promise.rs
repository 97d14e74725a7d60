//! What this machine can keep of what the drives promise: said at the start, with figures.

use live::Served;
use live::floor::{Floor, Transport, measure, read_latency};
use model::Span;

/// Transports in use and what they add here.
pub(super) fn floors(transports: &[Transport]) -> std::io::Result<Vec<(Transport, Floor)>> {
    let mut floors = Vec::new();
    for &transport in transports {
        if !floors.iter().any(|(known, _)| *known == transport) {
            floors.push((transport, measure(transport)?));
        }
    }
    Ok(floors)
}

/// What is subtracted from each deadline with `--compensate`: the least that any transport in use adds to a client that
/// sleeps, so that no reply is early.
pub(super) fn compensation(floors: &[(Transport, Floor)]) -> Span {
    let least = floors
        .iter()
        .map(|(_, floor)| floor.polling.min(floor.asleep));
    least.min().unwrap_or(Span::ZERO)
}

/// A line for each drive and transport: in time, or not and what would be.
pub(super) fn lines(
    drives: &[Served],
    floors: &[(Transport, Floor)],
    seed: u64,
    speed: f64,
) -> Vec<String> {
    let mut lines = Vec::new();
    for drive in drives {
        let model = read_latency(&drive.sheet().config, drive.precondition(), seed);
        let wall = Span::from_ns((model.ns() as f64 / speed) as u64);
        for (transport, floor) in floors {
            let over = match transport {
                Transport::Tcp => "TCP",
                Transport::Unix => "a Unix socket",
                Transport::Memory => "shared memory",
            };
            let (asleep, polling) = (floor.asleep.us(), floor.polling.us());
            let read = format!(
                "{}: a 4 KiB read takes {:.1} us; over {over} this machine adds {asleep:.1} us for a client that sleeps, {polling:.1} for one that polls",
                drive.name(),
                wall.us()
            );
            if floor.asleep <= wall {
                lines.push(format!("{read}: in time with --compensate"));
            } else if floor.polling <= wall && *transport == Transport::Memory {
                lines.push(format!("{read}: in time for a client that polls"));
            } else {
                // Two digits, rounded down.
                let slower = (model.ns() as f64 / floor.asleep.ns() as f64 * 100.0).floor() / 100.0;
                lines.push(format!(
                    "warning: {read}: REPLIES WILL BE LATE; --speed {slower} or slower with --compensate would be in time"
                ));
            }
        }
    }
    lines
}
