//! Size of a log or a read cache: simulation compared with rule and arithmetic.

use std::fmt::Write;
use std::sync::Arc;

use lab::{Lab, to_the_end};
use model::media::Precondition;
use model::random::Stream;
use study::decide::named;
use study::decide::size::{self, SizeAnswer, SizeRequest};
use study::decide::slo::Slo;
use study::decide::work::{Conditions, Load};
use study::review::{UserWorkload, Workload};
use text::quantity::quantity;
use workload::trace::{Options, Trace, read_from};

fn request(load: Load, seeds: u32) -> SizeRequest {
    SizeRequest {
        load,
        slo: Slo::default(),
        inbound: Some(125e6),
        conditions: Conditions {
            host: catalogue::host("linux").expect("built in"),
            state: Precondition::Steady,
            seed: 1,
            seeds,
        },
    }
}

/// Returns reads and writes of 4 to 128 KiB in 64 MiB, some addresses more frequent than others, `gap_us` microseconds
/// apart.
fn trace(gap_us: u64) -> Trace {
    let mut random = Stream::new(7, "trace");
    let mut text = String::new();
    for count in 0..6_000 {
        let ticks = 128_166_372_000_000_000 + count * gap_us * 10;
        let op = ["Read", "Read", "Write"][random.uniform_below(3) as usize];
        let range = if random.chance(0.5) { 2_048 } else { 16_384 };
        let (offset, bytes) = (
            random.uniform_below(range) * 4096,
            4096 << random.uniform_below(6),
        );
        let _ = writeln!(text, "{ticks},host,0,{op},{offset},{bytes},0");
    }
    read_from(text.as_bytes(), "t.csv", &Options::default()).expect("a trace")
}

fn cached(gap_us: u64, main: &str) -> SizeAnswer {
    let trace = trace(gap_us);
    let yours = UserWorkload {
        source: String::from("t.csv"),
        text: String::new(),
        workload: Workload::Trace(Arc::new(trace.clone())),
    };
    let request = request(Load::new(yours), 1);
    let pool = format!("read-cache(cache=p4800x-375, main={main})");
    let pool = catalogue::drive(&pool).expect("a pool");
    size::read_cache(
        "p4800x-375",
        &pool,
        (&request, &trace),
        &Lab::new(),
        &to_the_end,
    )
    .expect("it fits")
}

/// If each request has completed before the next begins, the tier is an exact LRU. If the main pool cannot keep up,
/// data in flight is missed as well, and nothing else.
#[test]
fn a_read_cache_hits_what_an_exact_lru_does() {
    let alone = cached(100_000, "p4800x-750");
    assert_eq!(alone.rows.len(), 6);
    for row in &alone.rows {
        let [hits, ..] = row.hits.expect("a cache");
        let exact = row.hits_by_arithmetic.expect("a cache");
        assert!((hits - exact).abs() < 1e-3, "{row:?}");
        assert!(hits > 0.02 && hits < 0.98, "{row:?}");
    }
    let pairs = || alone.rows.iter().zip(&alone.rows[1..]);
    assert!(pairs().all(|(less, more)| less.hits_by_arithmetic < more.hits_by_arithmetic));
    let crowded = cached(500, "exos-x18-16tb");
    for row in &crowded.rows {
        let [hits, ..] = row.hits.expect("a cache");
        assert!(Some(hits) < row.hits_by_arithmetic, "{row:?}");
    }
}

/// S2's rule: 1.25 GB at 1 GbE, and at most 8.6 GB at and above 10 GbE with 64 GiB of memory.
#[test]
fn the_rule_for_a_log_is_two_groups_and_twice_the_dirty_data() {
    let pool = "intent-log(main=mirror(2*exos-x18-16tb), log=p4801x-100)";
    let pool = catalogue::drive(pool).expect("a pool");
    let tiers = &pool.pool_config().expect("a pool").tiers;
    let config = tiers.iter().find_map(|tier| match &tier.kind {
        tier::Kind::IntentLog(config) => Some(config.clone()),
        _ => None,
    });
    let config = config.expect("an intent log");
    for (gigabits, gigabytes) in [(1.0, 1.25), (10.0, 8.59), (25.0, 8.59), (100.0, 8.59)] {
        let rule = size::rule(&config, gigabits * 125e6);
        assert!((rule.bytes * 1e-9 - gigabytes).abs() < 0.01, "{rule:?}");
    }
}

/// A log holds the data that the load logs in two transaction groups; above that size, the size has no effect.
#[test]
fn a_log_is_never_full_from_what_the_rule_asks_for_on() {
    let text = named::text("nfs-sync").expect("a load").to_owned();
    let load = Load::of_text("nfs-sync", text).expect("it is one");
    let most = quantity("12 s").expect("a time");
    let request = request(load.at_most(most), 1);
    let pool = "intent-log(main=raidz(6*exos-x18-16tb; parity=2), log=mirror(2*p4801x-100))";
    let pool = catalogue::drive(pool).expect("a pool");
    let answer = size::log("mirror", &pool, &request, &Lab::new(), &to_the_end).expect("it fits");
    let never: Vec<bool> = answer
        .rows
        .iter()
        .filter_map(|row| row.never_full)
        .collect();
    assert!(!never[0] && never.is_sorted(), "{never:?}");
    let enough = answer.enough_bytes.expect("the largest is") as f64;
    // Sizes differ by a factor of two, and a transaction group may be shorter than five seconds.
    let needed = answer.logged_mb_s.expect("it logs") * 1e6 * 10.0;
    assert!(
        enough < 2.0 * needed && enough > needed / 4.0,
        "{enough} for {needed}"
    );
    assert!((answer.rule.expect("a rule").bytes - 1.25e9).abs() < 1.0);
    // It is never full exactly if it has space for its maximum content, and for a block that does not fit at its end.
    let [held, ..] = answer.most_held_bytes.expect("a log");
    for row in &answer.rows {
        let enough = row.bytes as f64 >= held + f64::from(2 << 20);
        let full = (row.bytes as f64) < held;
        let never = row.never_full.expect("a log");
        assert!(never || !enough, "{held}: {row:?}");
        assert!(!never || !full, "{held}: {row:?}");
    }
}
