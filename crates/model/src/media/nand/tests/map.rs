//! Maps that exceed the memory, tables that are written with data, and programs of varying duration.

use super::*;

/// Returns the mean latency in microseconds of random reads in the first `pages` pages of a drive that has been written
/// and has memory for this share of its map: of `count` reads, after the same number of reads.
fn mean_us(share: Option<f64>, pages: Option<u64>, count: u64) -> f64 {
    let mut config = small();
    let all = super::pages(&config);
    config.map = share.map(|share| MapConfig {
        bytes: (all as f64 * 4.0 * share) as u64,
        read: Span::from_us(30),
    });
    let mut drive = Nand::new(config, Precondition::Filled, 1);
    let reads = random_4k(Op::Read, pages.unwrap_or(all), 5);
    let mut load = Closed::new(1, 2 * count, reads);
    run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
    let latest = &load.latencies[count as usize..];
    let sum: u64 = latest.iter().map(|(_, latency, _)| latency.ns()).sum();
    sum as f64 / latest.len() as f64 / 1e3
}

#[test]
fn a_read_whose_part_of_the_map_is_not_held_waits_for_it() {
    let whole = mean_us(None, None, 4000);
    // The controller, the sense, and 4 KiB on the channel.
    let miss = 1.5 + 30.0 + 0.5 + 4.096 * 3.0;
    for share in [0.25, 0.5] {
        let more = mean_us(Some(share), None, 4000) - whole;
        let wanted = (1.0 - share) * miss;
        assert!((more / wanted - 1.0).abs() < 0.06, "{more} {wanted}");
    }
    assert!((mean_us(Some(1.0), None, 4000) - whole).abs() < 1e-9);
}

#[test]
fn reads_of_what_is_held_cost_no_more() {
    let eighth = super::pages(&small()) / 8;
    let whole = mean_us(None, Some(eighth), 2000);
    let held = mean_us(Some(0.25), Some(eighth), 2000);
    assert!((held / whole - 1.0).abs() < 0.01, "{held} {whole}");
    let beyond = mean_us(Some(0.25), Some(eighth * 4), 2000);
    assert!(beyond > whole + 15.0, "{beyond} {whole}");
}

#[test]
fn reads_that_wait_for_one_page_of_the_map_wait_for_one_sense() {
    let mut config = small();
    config.map = Some(MapConfig {
        bytes: 4096,
        read: Span::from_us(30),
    });
    let mut drive = Nand::new(config, Precondition::Filled, 1);
    // Pages of one part of the map, on different dies.
    let commands: Vec<_> = (0..4)
        .map(|n| (n, Command::read(n as u32, n * 64 * 4096 + (40 << 20), 4096)))
        .collect();
    let done = at_times(&mut drive, &commands);
    assert_eq!(done.len(), 4);
    let senses = drive.shared.array.counts().senses;
    assert_eq!(senses, 5);
    for completion in &done {
        let medium = completion.anatomy.get(Part::Medium);
        assert!(medium > Span::from_us(100), "{medium:?}");
    }
}

/// Returns bytes written to the medium per byte written by the host.
fn amplification(tables_per_write: f64, jump: u64) -> f64 {
    let mut config = small();
    config.buffer.tables_per_write = tables_per_write;
    let pages = super::pages(&config);
    let mut drive = Nand::new(config, Precondition::Filled, 1);
    let write = move |id, n: u64| Command::write(id, n * jump % pages * 4096, 4096);
    let mut load = Closed::new(32, 20_000, write);
    run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
    let counts = drive.buffer.counts();
    (counts.taken_in + counts.padded) as f64 / counts.taken_in as f64
}

#[test]
fn writes_out_of_order_bring_their_tables() {
    assert_eq!(amplification(0.0, 7919), 1.0);
    let random = amplification(0.3, 7919);
    // Units that are still in the buffer have already added their tables.
    assert!((random - 1.3).abs() < 0.02, "{random}");
    let in_order = amplification(0.3, 1);
    assert!(in_order < 1.001, "{in_order}");
}

#[test]
fn programs_differ_and_their_mean_stays() {
    let speed = |jitter| {
        let mut config = small();
        config.timing.program_jitter = jitter;
        let pages = super::pages(&config);
        let mut drive = Nand::new(config, Precondition::Filled, 1);
        let write = move |id, n: u64| Command::write(id, n % pages * 4096, 4096);
        let mut load = Closed::new(32, 60_000, write);
        let end = run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
        let mut all: Vec<u64> = load.latencies[30_000..]
            .iter()
            .map(|(_, latency, _)| latency.ns())
            .collect();
        all.sort_unstable();
        (
            60_000.0 / end.seconds(),
            all[all.len() - 1 - all.len() / 1000],
        )
    };
    let (even, stalls) = speed(0.0);
    let (uneven, fewer) = speed(0.3);
    assert!((uneven / even - 1.0).abs() < 0.02, "{uneven} {even}");
    // Dies that end together make all writers wait; dies that do not, fewer of them.
    assert!(fewer < stalls, "{fewer} {stalls}");
}
