//! Autonomous power state transitions (APST): a drive that is idle enters non-operational power states, and the next
//! command waits until the drive has left the state.
//!
//! The drive states its power states: watts, entry and exit latency ([`PowerState`]). Linux selects the states and the
//! idle times from the sum of both latencies ([`PowerPolicy::transitions`]); the drive then changes its state without
//! the host. A command that arrives while the drive enters a state waits for the rest of the entry, and for the exit.
//! Commands that arrive meanwhile wait with it. As in NVMe, a drive is idle when no command is in flight. A run starts
//! after a long idle time, in the deepest state that the policy allows.
//!
//! Energy: idle power of the medium, less what a state saves while the drive is in it. During entry and exit the drive
//! uses idle power (assumed).
//!
//! Not modelled: drives of a pool; states of the PCIe link (ASPM, L1.2), apart from the exit latency of the drive's state.
//! Nor are operational states below the first. Background work continues in every state, although a drive without the
//! permissive mode stops it. With `run --heat`, the drive warms up as if it had no power states. A drive always takes as
//! long as it declares.
//!
//! Source: NVM Express base specification 1.4, sections 5.21.1.12 and 8.4 (autonomous transitions); Linux,
//! drivers/nvme/host/core.c, `nvme_configure_apst` and `nvme_apst_get_transition_time` (5.14 and later).

use alloc::vec::Vec;

use crate::anatomy::Part;
use crate::command::{Command, CommandId, Completion};
use crate::device::{Capacity, Device, Gauge, Gauges, Range};
use crate::time::{Span, Time};

/// A non-operational power state of a drive, as Identify Controller declares it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PowerState {
    /// Power in this state.
    pub microwatts: u64,
    /// Time to enter the state.
    pub entry: Span,
    /// Time to leave it.
    pub exit: Span,
}

/// Parameters of Linux' NVMe driver that select idle states.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PowerPolicy {
    /// Maximum exit latency (`default_ps_max_latency_us`); zero: no transitions.
    pub max_exit: Span,
    /// Idle time before the primary and the secondary state (`apst_primary_timeout_ms`, `apst_secondary_timeout_ms`).
    pub after: [Span; 2],
    /// Maximum sum of entry and exit latency of these states (`apst_primary_latency_tol_us`,
    /// `apst_secondary_latency_tol_us`).
    pub tolerance: [Span; 2],
}

/// One transition of an idle drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PowerTransition {
    /// Idle time in the previous state, after which the drive begins to enter this state.
    pub after: Span,
    /// Time to enter the state.
    pub entry: Span,
    /// Time to leave it.
    pub exit: Span,
    /// Power that the state saves, compared with the idle power of the medium.
    pub saved_microwatts: u64,
}

impl PowerPolicy {
    /// Returns the transitions of a drive with these states (by falling power) and this idle power, in the order in
    /// which the drive makes them. Linux walks the states from the deepest one: the deepest state within the secondary
    /// tolerance, and above it the deepest one within the primary tolerance. A deepest state within the primary
    /// tolerance is the only one.
    pub fn transitions(&self, states: &[PowerState], idle_watts: f64) -> Vec<PowerTransition> {
        let mut selected = Vec::new();
        let mut last = usize::MAX;
        for state in states.iter().rev() {
            if state.exit > self.max_exit {
                continue;
            }
            let total = state.entry + state.exit;
            let Some(index) = (0..2).find(|&index| total <= self.tolerance[index]) else {
                continue;
            };
            if last <= index {
                continue;
            }
            last = index;
            let idle = libm::round(idle_watts * 1e6) as u64;
            selected.push(PowerTransition {
                after: self.after[index],
                entry: state.entry,
                exit: state.exit,
                saved_microwatts: idle.saturating_sub(state.microwatts),
            });
        }
        selected.reverse();
        selected
    }
}

/// A command that waits for the drive to wake.
#[derive(Clone, Copy, Debug)]
struct WaitingCommand {
    command: Command,
    arrived: Time,
}

/// Power state of an idle drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Idleness {
    /// Commands are in flight.
    Busy,
    /// Idle since this time.
    Since(Time),
    /// In the deepest state since this time: before the first command.
    Deepest(Time),
    /// The drive leaves a state, until this time.
    Waking(Time),
}

/// A drive with autonomous power state transitions. See the head of this file.
#[derive(Clone, Debug)]
pub struct PowerManaged<D> {
    device: D,
    transitions: Vec<PowerTransition>,
    idleness: Idleness,
    in_flight: u32,
    waiting: Vec<WaitingCommand>,
    /// Commands that have waited, with the time.
    late: Vec<(CommandId, Span)>,
    /// Sums of earlier idle times.
    saved_joules: f64,
    asleep: Span,
    wakes: u64,
}

/// Effect of an idle time: time in non-operational states, energy saved, and the wait of a command at its end.
#[derive(Clone, Copy, Debug, Default)]
struct IdleTime {
    asleep: Span,
    saved_joules: f64,
    wait: Span,
}

impl IdleTime {
    fn add(&mut self, state: &PowerTransition, span: Span) {
        self.asleep += span;
        self.saved_joules += state.saved_microwatts as f64 * 1e-6 * span.seconds();
    }
}

impl<D> PowerManaged<D> {
    /// Adds these transitions to a drive whose clock starts at zero; without any, the drive is unchanged.
    pub fn new(device: D, transitions: Vec<PowerTransition>) -> PowerManaged<D> {
        PowerManaged {
            device,
            transitions,
            idleness: Idleness::Deepest(Time::ZERO),
            in_flight: 0,
            waiting: Vec::new(),
            late: Vec::new(),
            saved_joules: 0.0,
            asleep: Span::ZERO,
            wakes: 0,
        }
    }

    /// Returns the drive.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Returns the drive, to change its settings.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Replaces the transitions, before the first command.
    pub fn set_transitions(&mut self, transitions: Vec<PowerTransition>) {
        self.transitions = transitions;
    }

    /// Returns the effect of an idle time from `since` to `now`.
    fn idle_time(&self, since: Time, now: Time) -> IdleTime {
        let mut idle = IdleTime::default();
        let mut begin = since;
        for (index, state) in self.transitions.iter().enumerate() {
            begin += state.after;
            let entered = begin + state.entry;
            if begin > now {
                break;
            }
            let next = self.transitions.get(index + 1);
            let until = next.map_or(now, |next| now.min(entered + next.after));
            idle.add(state, until.since(entered.min(until)));
            idle.wait = entered.max(now).since(now) + state.exit;
            begin = entered;
        }
        idle
    }

    /// Returns the effect of the present idle time up to `now`.
    fn present(&self, now: Time) -> IdleTime {
        match self.idleness {
            Idleness::Busy | Idleness::Waking(_) => IdleTime::default(),
            Idleness::Since(since) => self.idle_time(since, now),
            Idleness::Deepest(since) => {
                let mut idle = IdleTime::default();
                if let Some(state) = self.transitions.last() {
                    idle.add(state, now.since(since));
                    idle.wait = state.exit;
                }
                idle
            }
        }
    }

    /// Ends the present idle time at `now`. Returns how long a command must wait.
    #[cold]
    fn end_idle_time(&mut self, now: Time) -> Span {
        let idle = self.present(now);
        self.asleep += idle.asleep;
        self.saved_joules += idle.saved_joules;
        idle.wait
    }

    /// Returns when the drive has left its state.
    fn awake_at(&self) -> Time {
        match self.idleness {
            Idleness::Waking(until) => until,
            _ => Time::NEVER,
        }
    }
}

impl<D: Device> PowerManaged<D> {
    /// The drive is awake: it receives the commands that have waited.
    #[cold]
    fn wake(&mut self, now: Time) {
        self.idleness = Idleness::Busy;
        for waiting in core::mem::take(&mut self.waiting) {
            self.late
                .push((waiting.command.id, now.since(waiting.arrived)));
            self.device.submit(now, waiting.command);
        }
    }

    /// Adds the wait for the drive to completions.
    fn completed(&mut self, completions: &mut [Completion]) {
        self.in_flight -= completions.len() as u32;
        if self.late.is_empty() {
            return;
        }
        for completion in completions {
            let found = self.late.iter().position(|(id, _)| *id == completion.id);
            if let Some(index) = found {
                let (_, waited) = self.late.swap_remove(index);
                completion.anatomy.add(Part::Controller, waited);
            }
        }
    }

    /// Checks whether the drive has become idle.
    fn rest(&mut self, now: Time) {
        if self.idleness == Idleness::Busy && self.in_flight == 0 {
            self.idleness = Idleness::Since(now);
        }
    }
}

impl<D: Device> Device for PowerManaged<D> {
    fn capacity(&self) -> Capacity {
        self.device.capacity()
    }

    #[inline]
    fn submit(&mut self, now: Time, command: Command) {
        if self.transitions.is_empty() {
            return self.device.submit(now, command);
        }
        self.in_flight += 1;
        if matches!(self.idleness, Idleness::Since(_) | Idleness::Deepest(_)) {
            let wait = self.end_idle_time(now);
            self.idleness = match wait {
                Span::ZERO => Idleness::Busy,
                wait => {
                    self.wakes += 1;
                    Idleness::Waking(now + wait)
                }
            };
        }
        match self.idleness {
            Idleness::Waking(_) => self.waiting.push(WaitingCommand {
                command,
                arrived: now,
            }),
            _ => self.device.submit(now, command),
        }
    }

    #[inline]
    fn next_event(&self) -> Time {
        self.device.next_event().min(self.awake_at())
    }

    #[inline]
    fn advance(&mut self, mut now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        if self.transitions.is_empty() {
            return self.device.advance(now, horizon, done);
        }
        loop {
            if self.device.next_event() == now {
                let before = done.len();
                // The device accepts a later horizon only with an empty list.
                let until = match before {
                    0 => horizon.min(self.awake_at()).max(now),
                    _ => now,
                };
                now = self.device.advance(now, until, done);
                self.completed(&mut done[before..]);
            }
            if self.awake_at() == now {
                self.wake(now);
            }
            self.rest(now);
            let next = self.next_event();
            if next > now {
                if next >= horizon || !done.is_empty() {
                    return now;
                }
                now = next;
            }
        }
    }

    fn at_risk(&self, ranges: &mut Vec<Range>) {
        self.device.at_risk(ranges);
    }

    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        self.end_idle_time(now);
        self.waiting.clear();
        self.late.clear();
        self.in_flight = 0;
        let back = self.device.power_cut(now, lost);
        // The drive has just started: it is idle, and awake.
        self.idleness = Idleness::Busy;
        self.rest(back);
        back
    }

    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.device.inspect(now, gauges);
        if self.transitions.is_empty() {
            return;
        }
        let idle = self.present(now);
        gauges.gauge(
            Gauge::EnergyJoules,
            -(self.saved_joules + idle.saved_joules),
        );
        gauges.gauge(
            Gauge::LowPowerSeconds,
            (self.asleep + idle.asleep).seconds(),
        );
        gauges.gauge(Gauge::WakeUps, self.wakes as f64);
    }
}
