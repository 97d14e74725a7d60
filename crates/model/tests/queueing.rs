//! The engine and the stations compared with closed formulas of queueing theory, on the RAM disk: one server with a
//! constant service time (M/D/1), or with exponential service times by the sizes of its commands (M/M/1, M/G/1); closed
//! loops.

use model::engine::{Workload, run};
use model::media::ram::{Ram, RamConfig};
use model::{Command, Completion, Device, Gauge, Gauges, Span, Stream, Time};

/// Distribution of service times, by command size.
#[derive(Clone, Copy)]
enum Size {
    /// Always this many sectors.
    Constant(u64),
    /// Exponential with this mean, in whole sectors.
    Exponential(u64),
}

/// Commands that arrive as a Poisson process, independent of the device.
struct Poisson {
    arrivals: Stream,
    sizes: Stream,
    gap: Span,
    size: Size,
    next: Time,
    left: u64,
    next_id: u32,
    completed: u64,
    latencies: u128,
    services: u128,
}

impl Poisson {
    fn new(seed: u64, gap: Span, size: Size, left: u64) -> Poisson {
        Poisson {
            arrivals: Stream::new(seed, "arrivals"),
            sizes: Stream::new(seed, "sizes"),
            gap,
            size,
            next: Time::from_ns(1),
            left,
            next_id: 0,
            completed: 0,
            latencies: 0,
            services: 0,
        }
    }

    fn mean_latency(&self) -> f64 {
        self.latencies as f64 / self.completed as f64
    }
}

impl Workload for Poisson {
    fn next_arrival(&self) -> Time {
        if self.left == 0 {
            Time::NEVER
        } else {
            self.next
        }
    }

    fn arrive(&mut self, now: Time, submit: &mut impl FnMut(Command)) {
        // Gaps can be shorter than a nanosecond; then several arrive at once.
        while self.left > 0 && self.next == now {
            let sectors = match self.size {
                Size::Constant(sectors) => sectors,
                Size::Exponential(mean) => {
                    1 + self.sizes.exponential(Span::from_ns(mean * 1_000)).ns() / 1_000
                }
            };
            self.services += u128::from(sectors);
            submit(Command::read(self.next_id, 0, (sectors * 512) as u32));
            self.next_id += 1;
            self.left -= 1;
            self.next = now + self.arrivals.exponential(self.gap);
        }
    }

    fn complete(&mut self, _now: Time, completion: &Completion) {
        self.completed += 1;
        self.latencies += u128::from(completion.anatomy.total().ns());
    }
}

#[derive(Default)]
struct Busy(f64);

impl Gauges for Busy {
    fn gauge(&mut self, gauge: Gauge, value: f64) {
        if gauge == Gauge::ControllerBusySeconds {
            self.0 = value;
        }
    }
}

/// A server that takes two nanoseconds per byte, a share of them exponentially distributed.
fn server(spread: f64) -> Ram {
    Ram::seeded(
        RamConfig {
            bytes: 1 << 40,
            per_command: Span::ZERO,
            picoseconds_per_byte: 2_000,
            memory_bus: None,
            spread,
        },
        3,
    )
}

/// Time of one sector at that rate, in nanoseconds.
const SECTOR_NS: f64 = 1_024.0;

/// Runs the load, and returns mean latency and utilisation.
fn open(load: f64, size: Size, seed: u64) -> (f64, f64) {
    open_on(server(0.0), load, size, seed)
}

/// Runs the load on this server, and returns mean latency and utilisation.
fn open_on(mut device: Ram, load: f64, size: Size, seed: u64) -> (f64, f64) {
    let mean_sectors = match size {
        Size::Constant(sectors) => sectors as f64,
        // One more than the floor of an exponential with mean m: geometric with mean 1 / (1 - exp(-1 / m)).
        Size::Exponential(mean) => 1.0 / (1.0 - libm::exp(-1.0 / mean as f64)),
    };
    let gap = Span::from_ns((mean_sectors * SECTOR_NS / load) as u64);
    let mut workload = Poisson::new(seed, gap, size, 400_000);
    let end = run(&mut device, &mut workload, Time::ZERO, Time::NEVER);
    assert_eq!(workload.completed, 400_000);
    let mut busy = Busy::default();
    device.inspect(end, &mut busy);
    (workload.mean_latency(), busy.0 / end.seconds())
}

fn close_to(measured: f64, expected: f64, share: f64, what: &str) {
    assert!(
        (measured - expected).abs() <= share * expected,
        "{what}: {measured} instead of {expected}"
    );
}

#[test]
fn m_d_1_waits_as_pollaczek_and_khinchine_say() {
    for load in [0.3, 0.5, 0.7, 0.9] {
        let service = 8.0 * SECTOR_NS;
        let (latency, utilisation) = open(load, Size::Constant(8), 11);
        let expected = service * (1.0 + load / (2.0 * (1.0 - load)));
        // At a load of 0.9, consecutive latencies are correlated, so 400,000 of them give less information.
        close_to(
            latency,
            expected,
            if load > 0.8 { 0.06 } else { 0.01 },
            &format!("M/D/1 at {load}"),
        );
        close_to(utilisation, load, 0.01, "utilisation");
    }
}

/// Equal commands whose times are random by a share `s`: the variance of the service time is the square of `s` times its
/// mean, so the wait is 1 + s^2 times that of M/D/1.
#[test]
fn a_spread_of_service_times_waits_as_pollaczek_and_khinchine_say() {
    for (spread, load) in [(0.4, 0.5), (0.4, 0.7), (1.0, 0.5)] {
        let service = 8.0 * SECTOR_NS;
        let (latency, utilisation) = open_on(server(spread), load, Size::Constant(8), 11);
        let wait = load / (2.0 * (1.0 - load)) * (1.0 + spread * spread);
        let what = format!("a share of {spread} at {load}");
        close_to(latency, service * (1.0 + wait), 0.02, &what);
        close_to(utilisation, load, 0.01, "utilisation");
    }
}

#[test]
fn m_m_1_waits_as_its_formula_says() {
    // Geometric in whole sectors with a mean of 400: exponential to a quarter of a percent.
    for load in [0.3, 0.5, 0.7] {
        let service = 400.5 * SECTOR_NS;
        let (latency, utilisation) = open(load, Size::Exponential(400), 5);
        close_to(
            latency,
            service / (1.0 - load),
            0.02,
            &format!("M/M/1 at {load}"),
        );
        close_to(utilisation, load, 0.01, "utilisation");
    }
}

/// A fixed number of commands; after a completion, each slot waits for a think time.
struct Closed {
    thinking: Stream,
    think: Span,
    /// When each slot issues next; linear search, because there are few.
    due: Vec<(Time, u32)>,
    left: u64,
    completed: u64,
    ended: Time,
    latencies: u128,
}

impl Workload for Closed {
    fn next_arrival(&self) -> Time {
        let first = self.due.iter().map(|slot| slot.0).min();
        match first {
            Some(at) if self.left > 0 => at,
            _ => Time::NEVER,
        }
    }

    fn arrive(&mut self, now: Time, submit: &mut impl FnMut(Command)) {
        while let Some(index) = self.due.iter().position(|slot| slot.0 == now) {
            let (_, id) = self.due.swap_remove(index);
            if self.left > 0 {
                self.left -= 1;
                submit(Command::read(id, 0, 4096));
            }
        }
    }

    fn complete(&mut self, now: Time, completion: &Completion) {
        self.completed += 1;
        self.latencies += u128::from(completion.anatomy.total().ns());
        self.ended = now;
        let think = self.thinking.exponential(self.think);
        self.due.push((now + think, completion.id));
    }
}

fn closed(depth: u32, think: Span) -> (f64, f64) {
    let mut device = server(0.0);
    let mut workload = Closed {
        thinking: Stream::new(3, "thinking"),
        think,
        due: (0..depth).map(|id| (Time::ZERO, id)).collect(),
        left: 300_000,
        completed: 0,
        ended: Time::ZERO,
        latencies: 0,
    };
    run(&mut device, &mut workload, Time::ZERO, Time::NEVER);
    let throughput = workload.completed as f64 / workload.ended.ns() as f64;
    (
        throughput,
        workload.latencies as f64 / workload.completed as f64,
    )
}

#[test]
fn a_closed_loop_without_thinking_keeps_the_server_busy() {
    let service = 8.0 * SECTOR_NS;
    for depth in [1, 2, 7, 64] {
        let (throughput, latency) = closed(depth, Span::ZERO);
        close_to(throughput * service, 1.0, 1e-6, "utilisation");
        close_to(latency, service * f64::from(depth), 1e-3, "latency");
    }
}

#[test]
fn a_closed_network_stays_within_its_operational_bounds_and_near_mean_value_analysis() {
    let service = 8.0 * SECTOR_NS;
    let think = 6.0 * service;
    for depth in [1u32, 2, 4, 8, 16, 32] {
        let (throughput, latency) = closed(depth, Span::from_ns(think as u64));
        let n = f64::from(depth);
        // Asymptotic bounds apply to any distribution.
        let upper = (n / (service + think)).min(1.0 / service);
        let lower = n / (n * service + think);
        assert!(throughput <= upper * 1.01, "{depth}: above the bound");
        assert!(throughput >= lower * 0.99, "{depth}: below the bound");
        // The response-time law: depth is throughput multiplied by a whole cycle.
        close_to(throughput * (latency + think), n, 0.01, "response-time law");
        // Mean value analysis is exact for exponential service; with constant service, waiting is shorter, but only
        // slightly.
        let exponential = mean_value_analysis(depth, service, think);
        assert!(
            throughput >= exponential * 0.99,
            "{depth}: slower than exponential service"
        );
        close_to(throughput, exponential, 0.12, "mean value analysis");
    }
}

/// Throughput of one station and `depth` customers with think times.
fn mean_value_analysis(depth: u32, service: f64, think: f64) -> f64 {
    let (mut queue, mut throughput) = (0.0, 0.0);
    for n in 1..=depth {
        let response = service * (1.0 + queue);
        throughput = f64::from(n) / (response + think);
        queue = throughput * response;
    }
    throughput
}
