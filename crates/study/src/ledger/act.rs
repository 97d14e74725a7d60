//! Aerospike's certification test (ACT) as a measurement of the ledger: its key, and its plan.

use model::Span;
use model::host::ProgramCosts;
use toml_edit::Value;

use super::{ActRun, LedgerMeasurement};
use lab::act::ActTest;
use lab::{Machine, Scenario, Work};
use text::problem::Problems;
use text::toml::Cursor;
use workload::act::{Config, Generation};

/// Reads the parameters of ACT, if the measurement is an ACT run.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Option<ActRun> {
    let pairs = cursor.pairs("act");
    if pairs.is_empty() {
        return None;
    }
    let mut act = ActRun {
        version: 0,
        load: None,
        over_1ms_percent: None,
        seconds: 3,
        latency_only: false,
    };
    for (name, value) in pairs {
        let number = value
            .as_integer()
            .and_then(|number| u32::try_from(number).ok());
        match (&*name, number) {
            ("version", Some(version @ (3 | 6))) => act.version = version,
            ("load", Some(load @ 1..=10_000)) => act.load = Some(load),
            ("over_1ms_percent", _) if share(value).is_some() => {
                act.over_1ms_percent = share(value)
            }
            ("seconds", Some(seconds @ 1..=86_400)) => act.seconds = seconds,
            ("latency_only", None) if value.as_bool().is_some() => {
                act.latency_only = value.as_bool() == Some(true);
            }
            _ => cursor.add_problem("act", format!("`act.{name}` = {value}"), ACT),
        }
    }
    if act.load.is_some() && act.over_1ms_percent.is_some() {
        let what = "`act.over_1ms_percent` searches for a load, but `act.load` sets one";
        cursor.add_problem("act", what, ACT);
    }
    if act.version == 0 {
        cursor.add_problem("act", "`act.version` is missing", ACT);
    }
    Some(act)
}

/// Reads a share of reads in percent; zero is not allowed.
fn share(value: &Value) -> Option<f64> {
    value
        .as_float()
        .filter(|percent| (0.01..=50.0).contains(percent))
}

const ACT: &str = "such as act = { version = 3, load = 50, seconds = 3 }: version 3 or 6; load or over_1ms_percent (0.01 to 50.0), seconds and latency_only optional";

/// Checks that a measurement's drive and host load, and that the host states the cost of the test.
///
/// # Errors
/// The reason why not.
pub(super) fn check(measurement: &LedgerMeasurement) -> Result<(), Problems> {
    let drive = catalogue::drive_with(&measurement.drive, &measurement.set)?;
    let host = catalogue::host_with(&measurement.host, &measurement.host_set)?;
    costs(&Machine::new(&drive, &host), measurement).map(drop)
}

fn costs(machine: &Machine, measurement: &LedgerMeasurement) -> Result<ProgramCosts, Problems> {
    machine.costs().ok_or_else(|| {
        let what = "has no [act] section, so it does not say what ACT costs there";
        Problems::whole(&*measurement.host, what)
    })
}

/// Returns a run of ACT, at its load or at 1x, on all cores of the host's processors.
///
/// # Errors
/// The host does not state the cost of the test.
pub(super) fn scenario(
    machine: &Machine,
    sockets: u16,
    measurement: &LedgerMeasurement,
    act: &ActRun,
    seed: u64,
) -> Result<Scenario, Problems> {
    costs(machine, measurement)?;
    let cores = machine.host().cores * sockets;
    let generation = match act.version {
        3 => Generation::VERSION_3,
        _ => Generation::version_6(cores),
    };
    let length = Span::from_ms(u64::from(act.seconds) * 1_000);
    let test = ActTest {
        config: Config::load(f64::from(act.load.unwrap_or(1)), generation, length),
        warm_up: Span::from_ns(length.ns() / 3),
        slice: length,
        latency_only: act.latency_only,
    };
    let machine = machine.clone().with_host(|host| host.cores = cores);
    Ok(Scenario::new(
        machine,
        measurement.state,
        Work::Act(test),
        seed,
    ))
}
