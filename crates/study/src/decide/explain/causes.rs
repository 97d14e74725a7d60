//! Possible causes of a difference between a measured run and its drive's rating, each as a change of the simulated
//! case.
//!
//! *Conditions* are unknown from a file of results: the drive's state, its link, its power, the start of a partition,
//! the host. Each is applied, and the one that comes closest to the measurement explains it. *Options* are in the
//! file: depth, threads, alignment, syncs, pauses. Each is removed, and the result shows its cost. To add a cause: a
//! function here and its line in [`conditions`] or [`options`]. Pairs of conditions are in [`super::pairs`].
//!
//! Not covered, because no model has them: heat (but see [`super::heat`]), file systems, the page cache, other users
//! of the drive.

use catalogue::DriveSheet;
use model::Span;
use model::host::Engine;
use model::media::volume::{Limits, VolumeConfig};
use model::media::{Medium, Precondition};
use tier::DriveConfig;
use workload::job::{BlockSizes, Extent, Job, Mix, SyncMode};

pub use super::cause::{Cause, CauseSubject};
use super::file::depth_of;
use super::runs::ExplainCase;

/// Unit in which drives store and transfer data, in bytes.
const UNIT: u32 = 4096;
/// Factor by which a deeper queue is tried.
const DEEPER: u32 = 8;
/// Maximum queue depth that is tried.
pub(crate) const DEEPEST: u32 = 1024;

/// Returns possible conditions of the run, other than those of the case.
pub fn conditions(base: &ExplainCase, drive: &DriveSheet) -> Vec<Cause> {
    let mut all = states(base);
    all.extend(links(base));
    all.extend(misaligned(base));
    all.extend(powers(base, drive));
    all.extend(hosts(base, drive));
    all
}

/// Returns options of the file that may limit it, each removed.
pub fn options(base: &ExplainCase) -> Vec<Cause> {
    let all = [
        deeper(base),
        more_threads(base),
        aligned(base),
        whole_units(base),
        without_syncs(base),
        unpaced(base),
        awake(base),
    ];
    all.into_iter().flatten().collect()
}

fn writes(base: &ExplainCase) -> bool {
    base.jobs.iter().any(|job| job.mix != Mix::Read)
}

fn states(base: &ExplainCase) -> Vec<Cause> {
    // A medium that is written in place is the same drive in any state.
    use DriveConfig::{Hdd, Ram, XPoint};
    if matches!(base.machine.drive(), XPoint(_) | Ram(_) | Hdd(_)) {
        return Vec::new();
    }
    if let DriveConfig::Volume(config) = base.machine.drive() {
        return credits(config, base);
    }
    let others = [
        Precondition::Fresh,
        Precondition::Filled,
        Precondition::Steady,
    ];
    let cached = matches!(base.machine.drive(), DriveConfig::Nand(config) if config.slc.is_some());
    others
        .into_iter()
        .filter(|state| *state != base.state)
        .map(|state| {
            let (key, what) = match (state, writes(base)) {
                (Precondition::Fresh, true) if cached => (
                    "fresh",
                    "a new or trimmed drive (not preconditioned): its SLC cache absorbs the writes, and no garbage is collected",
                ),
                (Precondition::Fresh, true) => (
                    "fresh",
                    "a new or trimmed drive (not preconditioned): no garbage is collected",
                ),
                (Precondition::Fresh, false) => (
                    "fresh",
                    "a new or trimmed drive: blocks that were never written are not read from the medium",
                ),
                (Precondition::Filled, true) => (
                    "filled",
                    "a sequentially filled drive (not preconditioned with random writes): little garbage collection so far",
                ),
                (Precondition::Filled, false) => ("filled", "a drive written once in order"),
                (Precondition::Steady, true) => {
                    ("steady", "a drive in its steady state: it collects garbage")
                }
                (Precondition::Steady, false) => {
                    ("steady", "a drive in its steady state: data lie scattered")
                }
            };
            let supposition = match state {
                Precondition::Fresh => "the drive was new or trimmed",
                Precondition::Filled => "the drive was only filled sequentially",
                Precondition::Steady => "the drive was in steady state",
            };
            let case = ExplainCase { state, ..base.clone() };
            Cause::new(CauseSubject::State, key, what, case).supposing(supposition)
        })
        .collect()
}

/// A volume is the same in any state, except for its credits.
fn credits(config: &VolumeConfig, base: &ExplainCase) -> Vec<Cause> {
    let saves = |limits: &Limits| {
        let mut all = [limits.iops, limits.bytes].into_iter().flatten();
        all.any(|limit| limit.burst.is_some())
    };
    if !saves(&config.limits) && !saves(&config.instance) {
        return Vec::new();
    }
    let (state, key, what, supposition) = match base.state {
        Precondition::Fresh => (
            Precondition::Steady,
            "steady",
            "a volume whose burst credits are spent",
            "its burst credits were spent",
        ),
        _ => (
            Precondition::Fresh,
            "fresh",
            "a volume with all its burst credits",
            "it had all its burst credits",
        ),
    };
    let case = ExplainCase {
        state,
        ..base.clone()
    };
    let cause = Cause::new(CauseSubject::State, key, what, case);
    Vec::from([cause.supposing(supposition)])
}

fn links(base: &ExplainCase) -> Vec<Cause> {
    let slower = |(key, what, supposition, factor): (&'static str, &str, &str, u64)| {
        let drive = with_link(base.machine.drive(), factor)?;
        let case = ExplainCase {
            machine: base.machine.with_drive(drive),
            ..base.clone()
        };
        Some(Cause::new(CauseSubject::Link, key, what, case).supposing(supposition))
    };
    let all = [
        (
            "link-half",
            "a link at half its rate: half the lanes, or a generation older",
            "its link runs at 1/2 rate",
            2,
        ),
        (
            "link-quarter",
            "a link at a quarter of its rate: fewer lanes or an older generation",
            "its link runs at 1/4 rate",
            4,
        ),
    ];
    all.into_iter().filter_map(slower).collect()
}

/// Returns the drive with a link that is slower by this factor.
fn with_link(drive: &DriveConfig, factor: u64) -> Option<DriveConfig> {
    let mut drive = drive.clone();
    match &mut drive {
        DriveConfig::Nand(config) => config.controller.link_ps_per_byte *= factor,
        DriveConfig::XPoint(config) => {
            let timing = &mut config.timing;
            timing.link_ps_per_byte *= factor;
            // No data path is faster than the link.
            for path in [
                &mut timing.read_path_ps_per_byte,
                &mut timing.write_path_ps_per_byte,
            ] {
                *path = (*path).max(timing.link_ps_per_byte);
            }
            if !config.problems().is_empty() {
                return None;
            }
        }
        _ => return None,
    }
    Some(drive)
}

fn misaligned(base: &ExplainCase) -> Option<Cause> {
    let jobs = base.jobs.iter().map(|job| match job.offset {
        Extent::Bytes(start) if is_aligned(job) && !has_parts(job) => Some(Job {
            offset: Extent::Bytes(start + 512),
            ..job.clone()
        }),
        _ => None,
    });
    let jobs = jobs.collect::<Option<Vec<Job>>>()?;
    let what = "a partition or file that begins at an odd sector (512 B alignment): I/Os cross the boundaries of units";
    let case = ExplainCase {
        jobs,
        ..base.clone()
    };
    let cause = Cause::new(CauseSubject::Alignment, "misaligned", what, case);
    Some(cause.supposing("its partition is misaligned"))
}

fn powers(base: &ExplainCase, drive: &DriveSheet) -> Vec<Cause> {
    let with = |about,
                key: String,
                what: String,
                supposition: String,
                change: &dyn Fn(&mut DriveConfig) -> bool| {
        let mut config = base.machine.drive().clone();
        change(&mut config).then(|| {
            let machine = base.machine.with_drive(config);
            let case = ExplainCase {
                machine,
                ..base.clone()
            };
            Cause::new(about, key, what, case).supposing(supposition)
        })
    };
    let limits = drive.management.power_limits_watts.iter();
    let now = base.machine.drive().power_limit_watts();
    let mut all: Vec<Option<Cause>> = limits
        .filter(|watts| now.is_none_or(|now| **watts < now))
        .map(|watts| {
            with(
                CauseSubject::Power,
                format!("power-{watts}W"),
                format!("its power governor set to {watts} W"),
                format!("its power governor is set to {watts} W"),
                &|config| config.set_power_limit(*watts).is_ok(),
            )
        })
        .collect();
    let protects = base.machine.drive().write_protect_percent();
    if let Some(percent) = protects.filter(|_| writes(base)) {
        all.push(with(
            CauseSubject::Wear,
            String::from("worn"),
            format!("a drive past {percent} % of its rated endurance, which throttles writes"),
            format!("it is past {percent} % of its rated endurance"),
            &|config| config.set_percentage_used(percent + 1.0).is_ok(),
        ));
    }
    all.push(with(
        CauseSubject::Uptime,
        String::from("power-on"),
        String::from("the first minutes after power-on, when the drive refreshes its data"),
        String::from("it ran in the first minutes after power-on"),
        &|config| config.set_uptime(Span::from_seconds(600.0)).is_ok(),
    ));
    all.into_iter().flatten().collect()
}

/// Returns hosts whose cores sleep or do not, in contrast to the case's host.
fn hosts(base: &ExplainCase, drive: &DriveSheet) -> Vec<Cause> {
    let sleeps = !base.machine.host().idle_states.is_empty();
    let (what, supposition, name) = match sleeps {
        true => (
            "a host whose cores do not sleep (no idle states), as `xeon-2017`",
            "the cores do not sleep",
            "xeon-2017",
        ),
        false => (
            "a host whose cores sleep (idle states), as `linux`",
            "the cores sleep",
            catalogue::TYPICAL_HOST,
        ),
    };
    let Ok(host) = catalogue::host(name) else {
        return Vec::new();
    };
    let config = base.machine.drive().clone();
    let machine = lab::Machine::new(drive, &host).with_drive(config);
    let case = ExplainCase {
        machine,
        ..base.clone()
    };
    vec![Cause::new(CauseSubject::Host, "host", what, case).supposing(supposition)]
}

/// Returns the job with an asynchronous engine instead of one with a single I/O in flight.
fn asynchronous(job: &Job) -> Job {
    if job.engine.asynchronous() {
        return job.clone();
    }
    Job {
        engine: Engine::Libaio,
        engine_name: String::from("libaio"),
        high_priority: false,
        iodepth: 1,
        ..job.clone()
    }
}

fn in_flight(jobs: &[Job]) -> u32 {
    jobs.iter().map(|job| depth_of(job) * job.numjobs).sum()
}

fn deeper(base: &ExplainCase) -> Option<Cause> {
    let now = in_flight(&base.jobs);
    let factor = DEEPER.min(DEEPEST / now.max(1));
    if factor < 2 || base.jobs.iter().any(is_paced) {
        return None;
    }
    let deep = |job: &Job| {
        let job = asynchronous(job);
        Job {
            iodepth: job.iodepth.max(1) * factor,
            ..job
        }
    };
    let synchronous = base.jobs.iter().any(|job| !job.engine.asynchronous());
    let with = if synchronous { "libaio and " } else { "" };
    let what = format!("{with}{} I/Os in flight instead of {now}", now * factor);
    let jobs = base.jobs.iter().map(deep).collect();
    Some(Cause::new(
        CauseSubject::Option,
        "depth",
        what,
        ExplainCase {
            jobs,
            expected: base.expected * f64::from(factor),
            ..base.clone()
        },
    ))
}

fn more_threads(base: &ExplainCase) -> Option<Cause> {
    // A rate applies to each thread.
    if base.jobs.iter().any(is_paced) {
        return None;
    }
    let threads: u32 = base.jobs.iter().map(|job| job.numjobs).sum();
    let cores = u32::from(base.machine.host().cores.max(1));
    let factor = [16, 8, 4, 2].into_iter().find(|factor| {
        threads * factor <= cores && base.jobs.iter().all(|job| depth_of(job) >= *factor)
    })?;
    let spread = |job: &Job| Job {
        numjobs: job.numjobs * factor,
        iodepth: job.iodepth / factor,
        ..job.clone()
    };
    let what = format!(
        "the same depth over {} threads instead of {threads}",
        threads * factor
    );
    let jobs = base.jobs.iter().map(spread).collect();
    Some(Cause::new(
        CauseSubject::Option,
        "threads",
        what,
        ExplainCase {
            jobs,
            ..base.clone()
        },
    ))
}

/// Checks whether every I/O of a whole number of units begins at a unit.
fn is_aligned(job: &Job) -> bool {
    let starts = match job.offset {
        Extent::Bytes(start) => start % u64::from(UNIT) == 0,
        Extent::Percent(_) => true,
    };
    starts && job.block_align.iter().all(|align| align % UNIT == 0)
}

/// Checks whether the job transfers parts of units.
fn has_parts(job: &Job) -> bool {
    let part = |sizes: &BlockSizes| matches!(sizes, BlockSizes::Fixed(bytes) if bytes % UNIT != 0);
    job.block_sizes.iter().any(part)
}

fn aligned(base: &ExplainCase) -> Option<Cause> {
    if base
        .jobs
        .iter()
        .all(|job| is_aligned(job) || has_parts(job))
    {
        return None;
    }
    let jobs = base.jobs.iter().map(realigned).collect();
    Some(Cause::new(
        CauseSubject::Option,
        "alignment",
        "offsets that are multiples of 4 KiB",
        ExplainCase {
            jobs,
            ..base.clone()
        },
    ))
}

fn realigned(job: &Job) -> Job {
    let offset = match job.offset {
        Extent::Bytes(start) => Extent::Bytes(start - start % u64::from(UNIT)),
        percent => percent,
    };
    Job {
        offset,
        block_align: job.block_align.map(|align| align.next_multiple_of(UNIT)),
        ..job.clone()
    }
}

fn whole_units(base: &ExplainCase) -> Option<Cause> {
    if !base.jobs.iter().any(has_parts) {
        return None;
    }
    let jobs = base.jobs.iter().map(in_whole_units).collect();
    Some(Cause::new(
        CauseSubject::Option,
        "block",
        "blocks of whole 4 KiB units",
        ExplainCase {
            jobs,
            ..base.clone()
        },
    ))
}

fn in_whole_units(job: &Job) -> Job {
    let whole = |sizes: &BlockSizes| match sizes {
        BlockSizes::Fixed(bytes) => BlockSizes::Fixed(bytes.next_multiple_of(UNIT)),
        other => other.clone(),
    };
    let [a, b, c] = &job.block_sizes;
    realigned(&Job {
        block_sizes: [whole(a), whole(b), whole(c)],
        whole_pages: false,
        ..job.clone()
    })
}

fn without_syncs(base: &ExplainCase) -> Option<Cause> {
    let syncs = |job: &Job| job.fsync > 0 || job.fdatasync > 0 || job.sync != SyncMode::None;
    if !base.jobs.iter().any(syncs) {
        return None;
    }
    let jobs = base.jobs.iter().map(unsynced).collect();
    Some(Cause::new(
        CauseSubject::Option,
        "sync",
        "no fsync or O_SYNC",
        ExplainCase {
            jobs,
            ..base.clone()
        },
    ))
}

fn unsynced(job: &Job) -> Job {
    Job {
        fsync: 0,
        fdatasync: 0,
        sync: SyncMode::None,
        ..job.clone()
    }
}

/// Checks whether the job has a rate limit or pauses.
fn is_paced(job: &Job) -> bool {
    job.think.is_some() || job.rate.iter().any(Option::is_some)
}

fn unpaced(base: &ExplainCase) -> Option<Cause> {
    if !base.jobs.iter().any(is_paced) {
        return None;
    }
    let jobs = base.jobs.iter().map(at_full_rate).collect();
    Some(Cause::new(
        CauseSubject::Option,
        "rate",
        "no rate limit or pauses",
        ExplainCase {
            jobs,
            ..base.clone()
        },
    ))
}

fn at_full_rate(job: &Job) -> Job {
    Job {
        think: None,
        rate: [None; 3],
        ..job.clone()
    }
}

fn awake(base: &ExplainCase) -> Option<Cause> {
    if base.machine.host().idle_states.is_empty() {
        return None;
    }
    let machine = base
        .machine
        .clone()
        .with_host(|host| host.idle_states.clear());
    Some(Cause::new(
        CauseSubject::Option,
        "idle-states",
        "cores that do not sleep (no idle states)",
        ExplainCase {
            machine,
            ..base.clone()
        },
    ))
}

/// Returns the job without limits, with this number of threads and this depth of each.
pub(crate) fn unhindered(job: &Job, threads: u32, depth: u32) -> Job {
    let job = asynchronous(job);
    Job {
        numjobs: threads,
        iodepth: depth,
        ..in_whole_units(&unsynced(&at_full_rate(&job)))
    }
}
