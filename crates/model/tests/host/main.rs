//! Host paths: the laws of a device, the latency that a host adds to one I/O, saturation of one core, and a host
//! without costs, which changes nothing.

mod sockets;

use model::conformance::{Suite, Witness};
use model::engine::{Workload, run};
use model::host::{
    Bridge, CompletionMode, Engine, EngineCosts, HostConfig, HostPath, Hypervisor, IdleState,
    Noise, RemoteSocket, SqPoll, ThreadConfig,
};
use model::media::ram::{Ram, RamConfig};
use model::{Command, Completion, Device, Gauge, Gauges, Op, Part, Span, Time};

const SERVICE: Span = Span::from_us(5);

fn ram() -> Ram {
    taking(SERVICE)
}

/// A drive that serves any number of commands at once.
fn fast() -> Ram {
    taking(Span::from_ns(10))
}

fn taking(per_command: Span) -> Ram {
    Ram::new(RamConfig {
        bytes: 1 << 30,
        per_command,
        picoseconds_per_byte: 0,
        memory_bus: None,
        spread: 0.0,
    })
}

fn ns(ns: u64) -> Span {
    Span::from_ns(ns)
}

fn costs() -> EngineCosts {
    EngineCosts {
        application: ns(300),
        system_call: ns(400),
        submit: ns(1000),
        reap: ns(700),
        ..EngineCosts::default()
    }
}

fn config() -> HostConfig {
    HostConfig {
        cores: 4,
        engines: [costs(); Engine::COUNT],
        interrupt: ns(600),
        interrupt_each: ns(400),
        switch: ns(350),
        poll: ns(100),
        ..HostConfig::default()
    }
}

fn threads(count: u16, engine: Engine) -> Vec<ThreadConfig> {
    (0..count)
        .map(|core| ThreadConfig {
            core,
            engine,
            high_priority: false,
            sq_poll: false,
            socket: 0,
        })
        .collect()
}

/// Keeps `depth` reads in flight in each of some threads.
struct Closed {
    depth: u32,
    threads: u16,
    high_priority: bool,
    left: u32,
    ready: Vec<u32>,
    ready_at: Time,
    log: Vec<Completion>,
}

impl Closed {
    fn new(depth: u32, threads: u16, count: u32) -> Closed {
        Closed {
            depth,
            threads,
            high_priority: false,
            left: count,
            ready: (0..depth * u32::from(threads)).collect(),
            ready_at: Time::ZERO,
            log: Vec::new(),
        }
    }

    fn run<D: Device>(mut self, device: &mut D) -> Vec<Completion> {
        run(device, &mut self, Time::ZERO, Time::NEVER);
        self.log
    }
}

impl Workload for Closed {
    fn next_arrival(&self) -> Time {
        if self.ready.is_empty() {
            Time::NEVER
        } else {
            self.ready_at
        }
    }
    fn arrive(&mut self, _now: Time, submit: &mut impl FnMut(Command)) {
        for id in self.ready.drain(..) {
            if self.left == 0 {
                continue;
            }
            self.left -= 1;
            let mut command = Command::read(id, u64::from(id) * 4096, 4096);
            command.queue = (id / self.depth) as u16 % self.threads;
            command.high_priority = self.high_priority;
            submit(command);
        }
    }
    fn complete(&mut self, now: Time, completion: &Completion) {
        self.log.push(*completion);
        self.ready.push(completion.id);
        self.ready_at = now;
    }
}

#[derive(Default)]
struct Cpu(f64);

impl Gauges for Cpu {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        if gauge == Gauge::HostCpuSeconds {
            self.0 += value;
        }
    }
}

fn cpu_seconds<D: Device>(host: &HostPath<D>, now: Time) -> f64 {
    let mut cpu = Cpu::default();
    host.inspect(now, &mut cpu);
    cpu.0
}

/// A core is occupied with this mean interval, for at least `least_us`, and `mean_us` more on average.
fn noise(every_us: u64, least_us: u64, mean_us: u64) -> Noise {
    Noise {
        every: Span::from_us(every_us),
        least: Span::from_us(least_us),
        mean: Span::from_us(mean_us),
    }
}

#[test]
fn every_kind_of_host_keeps_the_laws() {
    let suite = Suite {
        queues: 6,
        ..Suite::default()
    };
    let noise = noise(500, 2, 3);
    let plain = HostConfig { noise, ..config() };
    let mut helpers = plain.clone();
    for costs in &mut helpers.engines {
        costs.hand_off = ns(2000);
        costs.helpers = 2;
    }
    let shared = HostConfig {
        cores: 6,
        io_queues: std::num::NonZeroU16::new(2),
        queue_lock: ns(150),
        ..plain.clone()
    };
    let guest = HostConfig {
        idle_states: vec![IdleState {
            after: Span::from_us(20),
            exit: Span::from_us(5),
        }],
        hypervisor: Some(Hypervisor {
            kick: ns(2000),
            down: ns(1500),
            up: ns(1500),
            per_page: ns(50),
            coalesce_from: 4,
            noise,
            idle_states: vec![IdleState {
                after: Span::from_us(10),
                exit: Span::from_us(4),
            }],
        }),
        ..plain.clone()
    };
    let bridged = HostConfig {
        bridge: Some(Bridge {
            crossing: ns(150),
            ps_per_byte: 3000,
        }),
        ..guest.clone()
    };
    for completion in [CompletionMode::Polling, CompletionMode::HybridPolling] {
        for base in [&plain, &helpers, &shared, &guest, &bridged] {
            for engine in Engine::ALL {
                let config = HostConfig {
                    completion,
                    ..base.clone()
                };
                let mut six = threads(6, engine);
                for one in &mut six {
                    one.high_priority = true;
                }
                Suite { seeds: 1, ..suite }
                    .check(|seed| HostPath::new(config.clone(), &six, seed, Witness::new(ram())));
            }
        }
    }
    suite.check(|seed| HostPath::new(HostConfig::default(), &[], seed, Witness::new(ram())));
}

#[test]
fn a_host_of_no_cost_changes_nothing() {
    for depth in [1, 7, 32] {
        let bare = Closed::new(depth, 1, 2000).run(&mut ram());
        let mut host = HostPath::new(HostConfig::default(), &threads(1, Engine::Libaio), 1, ram());
        assert_eq!(bare, Closed::new(depth, 1, 2000).run(&mut host));
    }
}

#[test]
fn one_io_pays_each_step_once() {
    let mut host = HostPath::new(config(), &threads(1, Engine::Libaio), 1, ram());
    let log = Closed::new(1, 1, 3).run(&mut host);
    let anatomy = &log[2].anatomy;
    assert_eq!(anatomy.get(Part::ThreadBusy), ns(300));
    assert_eq!(anatomy.get(Part::HostSubmission), ns(1400));
    assert_eq!(anatomy.get(Part::Controller), SERVICE);
    assert_eq!(anatomy.get(Part::HostCompletion), ns(600 + 400 + 350 + 700));
    assert_eq!(log[2].at.since(log[1].at), anatomy.total());
}

#[test]
fn a_flush_ends_in_the_system_if_the_drive_has_no_volatile_cache() {
    let flush = |write_through| {
        let config = HostConfig {
            write_through,
            ..config()
        };
        let mut host = HostPath::new(config, &threads(1, Engine::Libaio), 1, ram());
        host.submit(Time::ZERO, Command::flush(0));
        let mut done = Vec::new();
        while done.is_empty() {
            let next = host.next_event();
            host.advance(next, next, &mut done);
        }
        assert_eq!(done[0].anatomy.total(), done[0].at.since(Time::ZERO));
        done[0].anatomy.total()
    };
    // System call, block layer, and the result.
    assert_eq!(flush(true), ns(400 + 1000 + 700));
    assert!(flush(false) > flush(true) + SERVICE);
}

#[test]
fn one_core_saturates_at_one_over_its_work() {
    let mut host = HostPath::new(config(), &threads(1, Engine::Libaio), 1, fast());
    let log = Closed::new(32, 1, 20_000).run(&mut host);
    let mean = log[19_999].at.since(log[9_999].at).ns() as f64 / 1e4;
    // Everything except the switch, which a busy thread does not need; interrupts are shared when the core is late.
    let work = 300.0 + 400.0 + 1000.0 + 400.0 + 700.0;
    assert!(mean >= work && mean <= work + 601.0, "{mean} for {work}");
    // fio's latency includes (nearly) the whole depth, because a thread issues directly after it reaps.
    let last = &log[15_000].anatomy;
    let seen = last.total() - last.get(Part::ThreadBusy);
    assert!(seen.ns() as f64 > 30.0 * mean, "{seen:?} at {mean}");
    let busy = cpu_seconds(&host, log[19_999].at) / log[19_999].at.seconds();
    assert!((0.99..=1.0 + 1e-4).contains(&busy), "{busy}");
}

#[test]
fn threads_on_their_own_cores_do_not_disturb_each_other() {
    let mut one = HostPath::new(config(), &threads(1, Engine::Libaio), 1, fast());
    let mut four = HostPath::new(config(), &threads(4, Engine::Libaio), 1, fast());
    let end = |log: Vec<Completion>| log.last().map(|last| last.at.ns()).unwrap_or(0) as f64;
    let alone = end(Closed::new(16, 1, 5_000).run(&mut one));
    let together = end(Closed::new(16, 4, 20_000).run(&mut four));
    assert!((together / alone - 1.0).abs() < 0.02, "{together} {alone}");
}

#[test]
fn threads_on_one_core_share_it_and_pay_for_switching() {
    let both = [ThreadConfig::default(); 2];
    let mut shared = HostPath::new(config(), &both, 1, fast());
    let mut single = HostPath::new(config(), &both[..1], 1, fast());
    let end = |log: Vec<Completion>| log.last().map(|last| last.at.ns()).unwrap_or(0);
    let alone = end(Closed::new(8, 1, 5_000).run(&mut single));
    let together = end(Closed::new(8, 2, 10_000).run(&mut shared));
    assert!(together >= 2 * alone, "{together} {alone}");
}

#[test]
fn polling_saves_the_interrupt_and_the_switch_and_burns_the_wait() {
    let polling = HostConfig {
        completion: CompletionMode::Polling,
        ..config()
    };
    let run_with = |config: &HostConfig| {
        let mut host = HostPath::new(config.clone(), &threads(1, Engine::Pvsync2), 1, ram());
        let mut closed = Closed::new(1, 1, 1000);
        closed.high_priority = true;
        let log = closed.run(&mut host);
        let last = log[999];
        (
            last.anatomy.total(),
            cpu_seconds(&host, last.at) / last.at.seconds(),
        )
    };
    let (slow, slow_cpu) = run_with(&config());
    let (quick, quick_cpu) = run_with(&polling);
    assert_eq!(slow - quick, ns(600 + 400 + 350 - 100));
    assert!(slow_cpu < 0.5 && quick_cpu > 0.99, "{slow_cpu} {quick_cpu}");
    let hybrid = HostConfig {
        completion: CompletionMode::HybridPolling,
        ..config()
    };
    let (half, half_cpu) = run_with(&hybrid);
    assert_eq!(half, quick, "a drive of constant time is never missed");
    assert!(
        half_cpu > slow_cpu && half_cpu < quick_cpu - 0.2,
        "{half_cpu}"
    );
}

/// A host with figures for kernel threads that poll, and a thread that has one.
fn sq_polled(completion: CompletionMode) -> (HostConfig, Vec<ThreadConfig>) {
    let host = HostConfig {
        completion,
        sq_poll: Some(SqPoll {
            leave: ns(80),
            find: ns(150),
            reap: ns(90),
        }),
        ..config()
    };
    let mut threads = threads(1, Engine::IoUring);
    threads[0].sq_poll = true;
    (host, threads)
}

#[test]
fn a_kernel_thread_that_polls_saves_system_calls_and_takes_a_core() {
    let run_with = |completion| {
        let (config, threads) = sq_polled(completion);
        let mut host = HostPath::new(config, &threads, 1, ram());
        let mut closed = Closed::new(1, 1, 1000);
        closed.high_priority = true;
        let log = closed.run(&mut host);
        let last = log[999];
        let busy = cpu_seconds(&host, last.at) / last.at.seconds();
        (last.anatomy.total(), busy)
    };
    let (interrupted, cores) = run_with(CompletionMode::Interrupt);
    // The thread's own work comes before.
    let around = ns(300 + 80 + 150 + 1000) + SERVICE + ns(90 + 100);
    assert_eq!(interrupted, around + ns(600 + 400));
    assert!((1.9..=2.01).contains(&cores), "{cores}");
    let (polled, cores) = run_with(CompletionMode::Polling);
    assert_eq!(polled, around + ns(100));
    assert!((1.9..=2.01).contains(&cores), "{cores}");
    // A host without figures for it behaves as without it.
    let (config, threads) = sq_polled(CompletionMode::Interrupt);
    let without = |sq_poll: bool| {
        let mut threads = threads.clone();
        threads[0].sq_poll = sq_poll;
        let config = HostConfig {
            sq_poll: None,
            ..config.clone()
        };
        let mut host = HostPath::new(config, &threads, 1, ram());
        Closed::new(1, 1, 100).run(&mut host)[99].at
    };
    assert_eq!(without(true), without(false));
}

#[test]
fn a_kernel_thread_that_polls_is_one_server() {
    let (config, threads) = sq_polled(CompletionMode::Interrupt);
    let mut host = HostPath::new(config, &threads, 1, fast());
    let log = Closed::new(16, 1, 20_000).run(&mut host);
    // Submission and the interrupts of all commands use its core; the job's thread has spare time.
    let each = log[19_999].at.ns() as f64 / 20_000.0;
    assert!((2000.0..2010.0).contains(&each), "{each}");
}

#[test]
fn a_batch_shares_its_system_call() {
    let mut host = HostPath::new(config(), &threads(1, Engine::Libaio), 1, fast());
    for id in 0..4 {
        let mut command = Command::read(id, 0, 4096);
        command.batched = id > 0;
        host.submit(Time::ZERO, command);
    }
    let mut done = Vec::new();
    let mut submitted = Vec::new();
    while host.next_event() != Time::NEVER {
        let now = host.next_event();
        host.advance(now, now, &mut done);
    }
    done.sort_by_key(|completion| completion.id);
    for completion in &done {
        submitted.push(completion.anatomy.get(Part::HostSubmission));
    }
    assert_eq!(submitted, [ns(1400), ns(1000), ns(1000), ns(1000)]);
}

#[test]
fn cores_that_share_a_queue_wait_for_its_lock() {
    let shared = HostConfig {
        cores: 4,
        io_queues: std::num::NonZeroU16::new(2),
        queue_lock: ns(200),
        ..config()
    };
    let queue_slot = |config: &HostConfig| {
        let mut host = HostPath::new(config.clone(), &threads(4, Engine::Libaio), 1, fast());
        let log = Closed::new(4, 4, 4000).run(&mut host);
        let sum: u64 = log
            .iter()
            .map(|completion| completion.anatomy.get(Part::QueueSlot).ns())
            .sum();
        sum / log.len() as u64
    };
    assert_eq!(queue_slot(&config()), 0);
    assert!(queue_slot(&shared) >= 200);
}

#[test]
fn one_helper_carries_one_command_at_a_time() {
    let mut config = config();
    for costs in &mut config.engines {
        costs.hand_off = ns(1000);
        costs.helpers = 1;
    }
    let rate = |depth| {
        let mut host = HostPath::new(config.clone(), &threads(1, Engine::PosixAio), 1, ram());
        let log = Closed::new(depth, 1, 1000).run(&mut host);
        log[999].at.ns() / 1000
    };
    assert_eq!(rate(8) / 100, (2 * 1000 + SERVICE.ns()) / 100);
    assert_eq!(rate(32) / 100, rate(8) / 100);
}

#[test]
fn a_core_that_slept_wakes_late() {
    let sleepy = HostConfig {
        idle_states: vec![IdleState {
            after: Span::from_us(3),
            exit: Span::from_us(10),
        }],
        ..config()
    };
    let one = |config: &HostConfig| {
        let mut host = HostPath::new(config.clone(), &threads(1, Engine::Libaio), 1, ram());
        Closed::new(1, 1, 10).run(&mut host)[9].anatomy.total()
    };
    assert_eq!(one(&sleepy) - one(&config()), Span::from_us(10));
}

#[test]
fn noise_is_seeded_and_delays_few() {
    let noisy = HostConfig {
        noise: noise(1000, 0, 2),
        ..config()
    };
    let log = |seed| {
        let mut host = HostPath::new(noisy.clone(), &threads(1, Engine::Libaio), seed, ram());
        Closed::new(1, 1, 20_000).run(&mut host)
    };
    let quiet = Closed::new(1, 1, 20_000).run(&mut HostPath::new(
        config(),
        &threads(1, Engine::Libaio),
        1,
        ram(),
    ));
    let usual = quiet[10].anatomy.total();
    assert_eq!(log(1), log(1));
    assert_ne!(log(1), log(2));
    let late = log(1)
        .iter()
        .filter(|completion| completion.anatomy.total() > usual)
        .count();
    // 20000 I/Os of about 9 us, 4 us of which on the core: about 80 ticks delay one.
    assert!((40..160).contains(&late), "{late}");
}

#[test]
fn a_core_switches_away_from_a_thread_that_waits_while_the_drive_works() {
    let run = |switch, engine| {
        let config = HostConfig {
            switch: ns(switch),
            ..config()
        };
        let mut host = HostPath::new(config, &threads(1, engine), 1, ram());
        let log = Closed::new(1, 1, 1000).run(&mut host);
        let end = log[999].at;
        (end.ns() / 1000, cpu_seconds(&host, end) * 1e6)
    };
    // Two CPU switches per I/O; only the one on completion is part of its latency.
    let (quick, little) = run(0, Engine::Libaio);
    let (slow, much) = run(400, Engine::Libaio);
    assert_eq!(slow - quick, 400);
    assert!((much - little - 800.0).abs() < 2.0, "{little} {much}");
    // The core never switches away from a polling thread.
    assert_eq!(run(400, Engine::UserSpace), run(0, Engine::UserSpace));
}

/// One read per millisecond. Returns the shares that wait for the thread before they are issued, that take longer to
/// submit, and that take longer to complete.
fn paced(config: &HostConfig) -> [f64; 3] {
    let mut host = HostPath::new(config.clone(), &threads(1, Engine::Libaio), 1, ram());
    let mut done = Vec::new();
    for index in 0..4000u64 {
        host.submit(
            Time::ZERO + Span::from_ms(1 + index),
            Command::read(0, 0, 4096),
        );
        while host.next_event() != Time::NEVER {
            let next = host.next_event();
            host.advance(next, next, &mut done);
        }
    }
    [Part::ThreadBusy, Part::HostSubmission, Part::HostCompletion].map(|part| {
        let usual = done
            .iter()
            .map(|it| it.anatomy.get(part))
            .min()
            .expect("4000");
        let more = done
            .iter()
            .filter(|it| it.anatomy.get(part) > usual)
            .count();
        more as f64 / 4000.0
    })
}

#[test]
fn what_keeps_a_thread_from_issuing_is_in_no_latency_of_its_io() {
    let noise = noise(200, 0, 20);
    // A pause is in progress for a tenth of the time, and one in a hundred submissions of 1.4 us is hit by a new pause.
    let [before, down, up] = paced(&HostConfig { noise, ..config() });
    assert!((0.07..0.12).contains(&before), "{before}");
    assert!((0.002..0.015).contains(&down), "{down}");
    assert!((0.02..0.08).contains(&up), "{up}");
    // Pauses of the monitor affect completions only.
    let monitor = Hypervisor {
        kick: ns(2000),
        down: ns(1500),
        up: ns(1500),
        per_page: ns(50),
        noise,
        coalesce_from: 0,
        idle_states: Vec::new(),
    };
    let guest = HostConfig {
        hypervisor: Some(monitor),
        ..config()
    };
    let [before, down, up] = paced(&guest);
    assert_eq!([before, down], [0.0, 0.0]);
    assert!((0.07..0.14).contains(&up), "{up}");
}
