//! Whether this machine can meet the latencies of the drives: printed at the start, with figures.

use live::ServedDevice;
use live::floor::{Floor, Transport, measure, read_latency};
use model::Span;

/// Measures the transports in use and returns their floors.
pub(super) fn floors(transports: &[Transport]) -> std::io::Result<Vec<(Transport, Floor)>> {
    let mut floors = Vec::new();
    for &transport in transports {
        if !floors.iter().any(|(known, _)| *known == transport) {
            floors.push((transport, measure(transport)?));
        }
    }
    Ok(floors)
}

/// Returns the span that `--compensate` subtracts from each deadline: the lowest floor of any transport in use for a
/// client that sleeps, so that no reply is early.
pub(super) fn compensation(floors: &[(Transport, Floor)]) -> Span {
    let least = floors
        .iter()
        .map(|(_, floor)| floor.polling.least.min(floor.asleep.least));
    least.min().unwrap_or(Span::ZERO)
}

/// Returns a line for each drive and transport: in time, or not and at which speed it would be.
pub(super) fn lines(
    drives: &[ServedDevice],
    floors: &[(Transport, Floor)],
    seed: u64,
    speed: f64,
) -> Vec<String> {
    let mut lines = Vec::new();
    for drive in drives {
        let model = read_latency(&drive.sheet().config, drive.precondition(), seed);
        for (transport, floor) in floors {
            lines.push(line(drive.name(), model, speed, *transport, floor));
        }
    }
    lines
}

/// Returns the line of a drive with this read latency in the model.
fn line(name: &str, model: Span, speed: f64, transport: Transport, floor: &Floor) -> String {
    let wall = Span::from_ns((model.ns() as f64 / speed) as u64);
    let over = match transport {
        Transport::Tcp => "TCP",
        Transport::Unix => "a Unix socket",
        Transport::Memory => "shared memory",
    };
    let (asleep, polling) = (floor.asleep.least, floor.polling.least);
    let takes = format!("{name}: a 4 KiB read takes {:.1} us", wall.us());
    if !(floor.asleep.sure && floor.polling.sure) {
        return format!(
            "warning: {takes}; what {over} adds could not be measured, because other programs kept this machine busy: whether replies will be in time is not known (watch the lateness, or start again when it is idle)"
        );
    }
    let read = format!(
        "{takes}; over {over} this machine adds {:.1} us for a client that sleeps, {:.1} for one that polls",
        asleep.us(),
        polling.us()
    );
    if asleep <= wall {
        format!("{read}: in time with --compensate")
    } else if polling <= wall && transport == Transport::Memory {
        format!("{read}: in time for a client that polls")
    } else {
        let advice = match slower(model, asleep) {
            Some(speed) => {
                format!("use --speed {speed} or slower with --compensate to reply in time")
            }
            None => String::from("no --speed is slow enough"),
        };
        format!("warning: {read}: REPLIES WILL BE LATE; {advice}")
    }
}

/// Returns the speed at which a read of the model takes this wall-clock time: two digits, rounded down. `None` below
/// the lowest speed.
fn slower(model: Span, wall: Span) -> Option<f64> {
    let speed = model.ns() as f64 / wall.ns() as f64;
    // Whole steps of the second digit, counted from the first.
    let steps = 1.0 - speed.log10().floor();
    let rounded = format!("{:.*}", steps.max(0.0) as usize, {
        let scale = 10_f64.powf(steps);
        (speed * scale).floor() / scale
    });
    rounded.parse().ok().filter(|speed| *speed >= 1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use live::floor::Trip;

    fn floor(asleep_us: f64, polling_us: f64, sure: bool) -> Floor {
        let trip = |us: f64| Trip {
            least: Span::from_ns((us * 1e3) as u64),
            sure,
        };
        Floor {
            asleep: trip(asleep_us),
            polling: trip(polling_us),
        }
    }

    #[test]
    fn the_advice_is_a_speed_that_there_is() {
        let read = Span::from_us(10);
        let said = |floor| line("d", read, 1.0, Transport::Tcp, &floor);
        assert!(said(floor(8.0, 5.0, true)).ends_with("in time with --compensate"));
        let late = said(floor(24.9, 8.0, true));
        assert!(late.contains("--speed 0.4 or slower"), "{late}");
        let late = said(floor(2_300.0, 8.0, true));
        assert!(late.contains("--speed 0.0043 or slower"), "{late}");
        // As measured on a busy machine: a speed of 0 would mean full speed.
        let late = said(floor(179_974.0, 8.0, true));
        assert!(late.contains("--speed 0.000055 or slower"), "{late}");
        let late = line(
            "d",
            Span::from_ns(1),
            1.0,
            Transport::Tcp,
            &floor(2e6, 8.0, true),
        );
        assert!(late.ends_with("no --speed is slow enough"), "{late}");
    }

    #[test]
    fn nothing_is_advised_from_figures_of_a_busy_machine() {
        for transport in [Transport::Tcp, Transport::Unix, Transport::Memory] {
            let floor = floor(179_974.0, 170_000.0, false);
            let said = line("d", Span::from_us(10), 1.0, transport, &floor);
            assert!(
                said.contains("not known") && !said.contains("--speed"),
                "{said}"
            );
            assert!(!said.contains("179974"), "{said}");
        }
    }
}
