//! A host: `catalogue/host/*.toml`.

use std::ops::RangeInclusive;

use model::Span;
use model::host::{
    Bridge, CompletionMode, Engine, EngineCosts, FileCosts, HostConfig, Hypervisor, IdleState,
    Noise, PageCacheConfig, PowerPolicy, ProgramCosts, RemoteSocket, SchedulerConfig,
    SchedulerKind, SqPoll,
};

use super::Section;

/// Completion modes by their names in files.
const COMPLETIONS: &[(&str, CompletionMode)] = &[
    ("interrupt", CompletionMode::Interrupt),
    ("polling", CompletionMode::Polling),
    ("hybrid-polling", CompletionMode::HybridPolling),
];

/// Required sections of `[engine]`, in the order of [`Engine::ALL`].
const ENGINES: [&str; Engine::COUNT - 1] = [
    "sync",
    "pvsync2",
    "libaio",
    "posixaio",
    "io_uring",
    "user-space",
];

/// Optional section of `[engine]` for the last engine; without it, that engine has the costs of io_uring.
const PASSTHROUGH: &str = "io_uring_cmd";

/// The longest plausible duration of one step.
const LONGEST: Span = Span::from_ms(1);

/// Clock ticks of Linux: 1000 Hz to 100 Hz. The default is 250 Hz.
const TICKS: RangeInclusive<Span> = Span::from_ms(1)..=Span::from_ms(10);

pub(super) fn read(root: &mut Section<'_>) -> HostConfig {
    let cores = root.count("cores", 1..=1024u16);
    let completion = root.choice("completion", COMPLETIONS);
    let mut costs = root.section("engine");
    let required = ENGINES.map(|name| engine(&mut costs.section(name)));
    let passthrough = match costs.has(PASSTHROUGH) {
        true => engine(&mut costs.section(PASSTHROUGH)),
        false => required[Engine::IoUring as usize],
    };
    let engines = Engine::ALL.map(|engine| match required.get(engine as usize) {
        Some(costs) => *costs,
        None => passthrough,
    });
    drop(costs);
    let noise = read_noise(&mut root.section("noise"));
    let idle_states = if root.has("sleep") {
        sleeps(&mut root.section("sleep"))
    } else {
        Vec::new()
    };
    let hypervisor = root
        .has("monitor")
        .then(|| monitor(&mut root.section("monitor")));
    let bridge = root
        .has("bridge")
        .then(|| bridge(&mut root.section("bridge")));
    let files = root
        .has("files")
        .then(|| read_files(&mut root.section("files")));
    let page_cache = root
        .has("page_cache")
        .then(|| read_page_cache(&mut root.section("page_cache")));
    let scheduler_costs = root
        .has("scheduler")
        .then(|| read_schedulers(&mut root.section("scheduler")));
    let sq_poll = root
        .has("sq_poll")
        .then(|| read_sq_poll(&mut root.section("sq_poll")));
    let power_states = root
        .has("power_states")
        .then(|| read_power_states(&mut root.section("power_states")));
    let (sockets, remote_socket) = read_sockets(root);
    HostConfig {
        cores,
        sockets,
        remote_socket,
        io_queues: None,
        write_through: false,
        completion,
        engines,
        interrupt: step(root, "interrupt"),
        interrupt_each: step(root, "interrupt_each"),
        switch: step(root, "switch"),
        poll: step(root, "poll"),
        per_page: step(root, "per_page"),
        queue_lock: step(root, "queue_lock"),
        idle_states,
        noise,
        bridge,
        hypervisor,
        files,
        page_cache,
        sq_poll,
        scheduler: SchedulerConfig::default(),
        scheduler_costs,
        power_states,
        power_transitions: Vec::new(),
    }
}

/// Reads the parameters by which Linux lets an idle drive enter power states.
fn read_power_states(section: &mut Section<'_>) -> PowerPolicy {
    let longest = Span::from_ms(60_000);
    let mut pair = |name: &str| {
        [
            section.span(&format!("primary_{name}"), Span::ZERO..=longest),
            section.span(&format!("secondary_{name}"), Span::ZERO..=longest),
        ]
    };
    let (after, tolerance) = (pair("timeout"), pair("tolerance"));
    PowerPolicy {
        max_exit: section.span("max_exit", Span::ZERO..=longest),
        after,
        tolerance,
    }
}

/// Reads the CPU time of each I/O scheduler; none has none.
fn read_schedulers(section: &mut Section<'_>) -> [Span; 4] {
    SchedulerKind::ALL.map(|kind| match kind {
        SchedulerKind::None => Span::ZERO,
        kind => step(section, kind.name()),
    })
}

/// Memory of a page cache, in bytes.
pub const PAGE_CACHE: std::ops::RangeInclusive<u64> = 16 << 20..=64 << 40;

fn read_page_cache(section: &mut Section<'_>) -> PageCacheConfig {
    let background = section.count("dirty_background_ratio", 1..=100u8);
    PageCacheConfig {
        memory: section.bytes("memory", PAGE_CACHE),
        dirty_background_ratio: background,
        dirty_ratio: section.count("dirty_ratio", background..=100u8),
        dirty_expire: section.span(
            "dirty_expire",
            Span::from_ms(10)..=Span::from_ms(86_400_000),
        ),
        dirty_writeback: section.span("dirty_writeback", Span::ZERO..=Span::from_ms(86_400_000)),
        read_ahead: section.bytes("read_ahead", 0..=1 << 30),
        write_requests: section.count("write_requests", 1..=65_535u16),
    }
}

fn read_files(section: &mut Section<'_>) -> FileCosts {
    FileCosts {
        cached: step(section, "cached"),
        copy_picoseconds_per_byte: section.rate("copy", 1e8..=1e12).picoseconds_per_byte(),
        direct: step(section, "direct"),
        sync: step(section, "sync"),
        wake: step(section, "wake"),
        convert: section.maybe("convert", step).unwrap_or(Span::ZERO),
        tick: section
            .maybe("tick", |section, key| section.span(key, TICKS))
            .unwrap_or(Span::from_ms(4)),
    }
}

fn read_sq_poll(section: &mut Section<'_>) -> SqPoll {
    SqPoll {
        leave: step(section, "leave"),
        find: step(section, "find"),
        reap: step(section, "reap"),
    }
}

/// Reads the number of sockets, and the costs of threads that are not on the drive's.
fn read_sockets(root: &mut Section<'_>) -> (u16, Option<RemoteSocket>) {
    let sockets = root.maybe("sockets", |root, key| root.count(key, 1..=16u16));
    let sockets = sockets.unwrap_or(1);
    let remote = root
        .has("remote_socket")
        .then(|| read_remote_socket(&mut root.section("remote_socket")));
    if remote.is_some() && sockets < 2 {
        root.problem(
            "remote_socket",
            "the host has one socket, and this section is for threads on another",
            "`sockets` of at least 2, or no [remote_socket]",
        );
    }
    (sockets, remote)
}

fn read_remote_socket(section: &mut Section<'_>) -> RemoteSocket {
    RemoteSocket {
        submit: step(section, "submit"),
        complete: step(section, "complete"),
        crossing: step(section, "crossing"),
    }
}

fn step(section: &mut Section<'_>, key: &str) -> Span {
    section.span(key, Span::ZERO..=LONGEST)
}

fn engine(section: &mut Section<'_>) -> EngineCosts {
    let hand_off = section.maybe("hand_off", step).unwrap_or(Span::ZERO);
    let after = section.maybe("after", step).unwrap_or(Span::ZERO);
    let helpers = section.maybe("helpers", |section, key| section.count(key, 0..=1024u16));
    EngineCosts {
        application: step(section, "application"),
        system_call: step(section, "system_call"),
        submit: step(section, "submit"),
        after,
        reap: step(section, "reap"),
        hand_off,
        helpers: helpers.unwrap_or(0),
    }
}

/// Reads the costs of Aerospike's ACT on this host.
pub(super) fn read_act(section: &mut Section<'_>) -> ProgramCosts {
    let fill = section.rate("fill", 1e8..=1e12);
    ProgramCosts {
        timer_slack: step(section, "timer_slack"),
        generate: step(section, "generate"),
        signal: step(section, "signal"),
        wake: step(section, "wake"),
        transaction: step(section, "transaction"),
        fill_picoseconds_per_byte: fill.picoseconds_per_byte(),
    }
}

fn read_noise(section: &mut Section<'_>) -> Noise {
    let every = section.span("every", Span::from_us(10)..=Span::from_ms(1_000_000));
    let least = section.maybe("least", |section, key| {
        section.span(key, Span::ZERO..=LONGEST.min(every))
    });
    Noise {
        every,
        least: least.unwrap_or(Span::ZERO),
        mean: section.span("mean", Span::ZERO..=LONGEST),
    }
}

/// Reads two lists of equal length: idle times, and the wake-up latency after each.
fn sleeps(section: &mut Section<'_>) -> Vec<IdleState> {
    let after = section.list("after", Span::ZERO..=Span::from_ms(1000));
    let exit = section.list("exit", Span::ZERO..=LONGEST);
    if after.len() != exit.len() {
        section.problem(
            "exit",
            format!("{} sleeps but {} times to wake", after.len(), exit.len()),
            "`after` and `exit` are lists of one length",
        );
    }
    if !after.is_sorted() {
        section.problem(
            "after",
            "the times in `after` must increase",
            "increasing times, each without work",
        );
    }
    after
        .into_iter()
        .zip(exit)
        .map(|(after, exit)| IdleState { after, exit })
        .collect()
}

fn bridge(section: &mut Section<'_>) -> Bridge {
    Bridge {
        crossing: step(section, "crossing"),
        ps_per_byte: section.rate("rate", 1e6..=1e12).picoseconds_per_byte(),
    }
}

fn monitor(section: &mut Section<'_>) -> Hypervisor {
    let idle_states = if section.has("sleep") {
        sleeps(&mut section.section("sleep"))
    } else {
        Vec::new()
    };
    Hypervisor {
        kick: step(section, "kick"),
        down: step(section, "down"),
        up: step(section, "up"),
        per_page: step(section, "per_page"),
        noise: read_noise(&mut section.section("noise")),
        idle_states,
        coalesce_from: section.count("coalesce_from", 0..=1024u16),
    }
}
