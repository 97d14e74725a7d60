//! What others take of the processors meanwhile: a figure measured beside them is not that of an idle machine.

use std::time::Instant;

/// Ticks of a CPU clock in `/proc` in a second, on every Linux there is.
pub(super) const TICKS: f64 = 100.0;

/// A moment, by the kernel's counters.
pub(super) struct Moment {
    at: Instant,
    /// CPU seconds that were used by anybody.
    busy: f64,
    /// CPU seconds of this program's children that have ended.
    children: f64,
}

impl Moment {
    /// Now.
    pub(super) fn now() -> Result<Moment, String> {
        let text = read("/proc/stat")?;
        let line = text.lines().next().unwrap_or_default();
        let fields: Vec<f64> = line
            .split_whitespace()
            .skip(1)
            .filter_map(|field| field.parse().ok())
            .collect();
        // user, nice, system, idle, waiting, interrupts hard and soft; the rest is not this machine's.
        let [user, nice, system, _, _, hard, soft, ..] = fields[..] else {
            return Err("/proc/stat: not as expected".into());
        };
        Ok(Moment {
            at: Instant::now(),
            busy: (user + nice + system + hard + soft) / TICKS,
            children: cpu_seconds("self", 13)?,
        })
    }

    /// How many processors others have used since then, `ours` being what a child that still runs has.
    pub(super) fn others(&self, ours: f64) -> Result<f64, String> {
        let now = Moment::now()?;
        let used = now.busy - self.busy - (now.children - self.children) - ours;
        Ok(used.max(0.0) / now.at.duration_since(self.at).as_secs_f64())
    }
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

/// CPU time in user and system mode, from the field `at` and the next of a process's `stat`: 11 are its own, 13 those
/// of its children.
pub(super) fn cpu_seconds(process: &str, at: usize) -> Result<f64, String> {
    let path = format!("/proc/{process}/stat");
    let text = read(&path)?;
    // After the name, which is in brackets and may hold anything, come the state and numbers.
    let after = text.rsplit(')').next().unwrap_or_default();
    let ticks = |at: usize| after.split_whitespace().nth(at)?.parse::<f64>().ok();
    match (ticks(at), ticks(at + 1)) {
        (Some(user), Some(system)) => Ok((user + system) / TICKS),
        _ => Err(format!("{path}: not as expected")),
    }
}
