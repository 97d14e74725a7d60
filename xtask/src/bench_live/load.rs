//! CPU use of other programs during a measurement: figures under such load differ from those of an idle machine.

use std::time::Instant;

/// Ticks per second of a CPU clock in `/proc`, on every Linux.
pub(super) const TICKS: f64 = 100.0;

/// A point in time, by the kernel's counters.
pub(super) struct LoadSample {
    at: Instant,
    /// CPU seconds used by all programs.
    busy: f64,
    /// CPU seconds of this program's children that have ended.
    children: f64,
}

impl LoadSample {
    /// Returns the present time.
    pub(super) fn now() -> Result<LoadSample, String> {
        let text = read("/proc/stat")?;
        let line = text.lines().next().unwrap_or_default();
        let fields: Vec<f64> = line
            .split_whitespace()
            .skip(1)
            .filter_map(|field| field.parse().ok())
            .collect();
        // user, nice, system, idle, waiting, interrupts hard and soft; the rest is not this machine's time.
        let [user, nice, system, _, _, hard, soft, ..] = fields[..] else {
            return Err("/proc/stat: not as expected".into());
        };
        Ok(LoadSample {
            at: Instant::now(),
            busy: (user + nice + system + hard + soft) / TICKS,
            children: cpu_seconds("self", 13)?,
        })
    }

    /// Returns the processors that other programs have used since then; `ours` is the CPU time of a running child.
    pub(super) fn others(&self, ours: f64) -> Result<f64, String> {
        let now = LoadSample::now()?;
        let used = now.busy - self.busy - (now.children - self.children) - ours;
        Ok(used.max(0.0) / now.at.duration_since(self.at).as_secs_f64())
    }
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

/// Returns the CPU time in user and system mode, from the field `at` and the next of a process's `stat`: 11 for the
/// process, 13 for its children.
pub(super) fn cpu_seconds(process: &str, at: usize) -> Result<f64, String> {
    let path = format!("/proc/{process}/stat");
    let text = read(&path)?;
    // The name is in brackets and may contain any characters; the state and numbers follow it.
    let after = text.rsplit(')').next().unwrap_or_default();
    let ticks = |at: usize| after.split_whitespace().nth(at)?.parse::<f64>().ok();
    match (ticks(at), ticks(at + 1)) {
        (Some(user), Some(system)) => Ok((user + system) / TICKS),
        _ => Err(format!("{path}: not as expected")),
    }
}
