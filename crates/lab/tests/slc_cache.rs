//! The SLC cache of a fresh drive holds as much as its sheet says. If the sheet says nothing, the cache has all free
//! cells, and writes beyond it wait until it is emptied.

use lab::{Lab, Machine, Scenario, to_the_end};
use model::host::HostConfig;
use model::media::{Medium, Precondition};
use model::{Span, Time};
use tier::DriveConfig;
use workload::job::{BlockSizes, Job, Mix};

/// Cache sizes in bytes of drives whose size is in the source of a figure and not among the ratings.
const QUOTED: [(&str, u64); 3] = [
    ("960evo-250", 13_000_000_000),
    ("970evo-500", 22_000_000_000),
    ("970evo-1000", 42_000_000_000),
];

#[test]
fn a_cache_holds_what_its_sheet_says() {
    let mut checked = 0;
    for name in catalogue::drive_names() {
        let sheet = catalogue::drive(name).expect("built in");
        let quoted = QUOTED.iter().find(|(drive, _)| *drive == name);
        let Some(said) = sheet
            .ratings
            .as_ref()
            .and_then(|it| it.slc_cache)
            .or(quoted.map(|&(_, bytes)| bytes))
        else {
            continue;
        };
        let DriveConfig::Nand(config) = &sheet.config else {
            panic!("{name}: a cache without flash");
        };
        let slc = config.slc.as_ref().expect("a cache");
        let geometry = &config.geometry;
        let dies = u64::from(geometry.channels * geometry.dies_per_channel);
        let block = geometry.raw_bytes() / dies / u64::from(geometry.blocks_per_plane);
        let holds = dies * u64::from(slc.blocks_per_die) * (block / u64::from(slc.bits));
        let off = holds as f64 / said as f64 - 1.0;
        assert!(
            off.abs() < 0.05,
            "{name}: {holds} bytes, {said} on its sheet"
        );
        checked += 1;
    }
    assert!(checked >= 6, "{checked} caches");
}

/// Writes this share of a fresh drive sequentially, with 1 MiB writes.
fn written(config: &DriveConfig, share: f64) -> Scenario {
    let bytes = (config.capacity_bytes() as f64 * share) as u64 >> 20 << 20;
    let job = Job {
        mix: Mix::Write,
        block_sizes: [const { BlockSizes::Fixed(1 << 20) }; 3],
        iodepth: 4,
        number_ios: Some(bytes >> 20),
        ..Job::default()
    };
    let machine = Machine::from_configs("a drive", config.clone(), HostConfig::default());
    Scenario::jobs(machine, Precondition::Fresh, vec![job], 1)
}

#[test]
fn without_a_size_all_free_cells_are_the_cache_and_writes_past_it_wait_for_it() {
    let mut checked = 0;
    for name in catalogue::drive_names() {
        let sheet = catalogue::drive(name).expect("built in");
        let DriveConfig::Nand(whole) = &sheet.config else {
            continue;
        };
        let Some(slc) = whole.slc.as_ref().filter(|slc| slc.folds) else {
            continue;
        };
        let bits = f64::from(slc.bits);
        let small = sheet.config.shrunk(16 << 30);
        let shares = [0.5 / bits, 0.9 / bits, 0.95];
        let plans = shares.map(|share| written(&small, share));
        let times = Lab::new()
            .run_all(&plans, &to_the_end)
            .into_iter()
            .map(|outcome| {
                let outcome = outcome.expect("it runs");
                outcome.end.since(Time::ZERO).seconds()
            });
        let times: Vec<f64> = times.collect();
        let rate = |from: usize, to: usize| (shares[to] - shares[from]) / (times[to] - times[from]);
        let (cached, mean) = (rate(0, 1), shares[0] / times[0]);
        assert!(
            (cached / mean - 1.0).abs() < 0.05,
            "{name}: {mean} {cached}: full too early"
        );
        // A part of the last section still goes to the cache.
        assert!(rate(1, 2) < 0.5 * cached, "{name}: {} {cached}", rate(1, 2));
        checked += 1;
    }
    assert!(checked >= 8, "{checked} drives");
}

/// Returns the bytes that the cache of an empty drive holds, as a share of its capacity.
fn share_cached(config: &DriveConfig) -> f64 {
    let DriveConfig::Nand(nand) = config else {
        panic!("no flash");
    };
    let slc = nand.slc.as_ref().expect("a cache");
    let geometry = &nand.geometry;
    let blocks = f64::from(slc.blocks_per_die) / f64::from(geometry.blocks_per_plane);
    blocks / f64::from(slc.bits) * geometry.raw_bytes() as f64 / geometry.capacity as f64
}

#[test]
fn a_smaller_drive_has_as_large_a_share_of_slc_blocks() {
    for name in ["980pro-1000", "990pro-2000", "t500-1000", "970evo-500"] {
        let whole = catalogue::drive(name).expect("built in").config;
        let small = whole.shrunk(16 << 30);
        assert!(small.capacity_bytes() < 20 << 30, "{name}");
        let ratio = share_cached(&small) / share_cached(&whole);
        assert!((0.9..1.15).contains(&ratio), "{name}: {ratio}");
    }
}

/// Returns the time of 41 random writes of this size with a flush between two of them, if a pSLC program of a page takes
/// this long.
fn synced(block: u32, program: Span) -> Span {
    let sheet = catalogue::drive("990pro-2000").expect("built in");
    let mut config = sheet.config.shrunk(64 << 30);
    let DriveConfig::Nand(nand) = &mut config else {
        panic!("flash");
    };
    nand.slc.as_mut().expect("a cache").program = program;
    let job = Job {
        mix: Mix::Write,
        random: true,
        block_sizes: [0; 3].map(|_| BlockSizes::Fixed(block)),
        block_align: [block; 3],
        fdatasync: 1,
        number_ios: Some(41),
        ..Job::default()
    };
    let machine = Machine::from_configs("a drive", config, HostConfig::default());
    let scenario = Scenario::jobs(machine, Precondition::Fresh, vec![job], 1);
    let outcome = Lab::new().run(&scenario).expect("it runs");
    outcome.end.since(Time::ZERO)
}

/// A page of 48 KiB in pSLC mode is three programs of 16 KiB, and a flush waits for those that have data.
#[test]
fn a_flush_programs_only_the_part_of_a_page_that_has_data() {
    let ms = Span::from_ms;
    for (block, programs) in [(4 << 10, 1), (16 << 10, 1), (20 << 10, 2), (48 << 10, 3)] {
        let longer = synced(block, ms(6)) - synced(block, ms(3));
        assert_eq!(longer, ms(40 * programs), "{block} B");
    }
}
