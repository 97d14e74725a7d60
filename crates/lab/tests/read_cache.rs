//! Hit ratios of a read cache agree with theory.
//!
//! LRU with independent reads: Che's approximation (Che, Tung, Wang, "Hierarchical Web caching systems", IEEE JSAC
//! 20, 2002), which is exact to 0.1 % for this number of lines. CLOCK has no formula; it keeps frequently read lines
//! slightly better than LRU.

use lab::{Lab, Machine, Scenario};
use model::Gauge;
use model::media::Precondition;
use workload::job::{Distribution, Job, Mix};

const LINE: u64 = 4096;
const LINES: u64 = 1 << 20;
const SLOTS: u64 = 92_448;

/// Returns the share of bytes read from the cache after its warm-up.
fn hits(policy: &str, distribution: Distribution, seed: u64) -> f64 {
    let label = 1 << 20;
    let (cache, main) = (SLOTS * LINE + label, LINES * LINE + label);
    let text = format!(
        "name = \"cached\"\n[members]\nfast = {{ drive = \"ram-disk\", set = {{ capacity = \"8 GiB\" }} }}\n[slices]\n\
         cache = {{ of = \"fast\", size = \"{cache} B\" }}\nmain = {{ of = \"fast\", size = \"{main} B\" }}\n\
         [tier]\ncached = {{ kind = \"read-cache\", cache = \"cache\", main = \"main\", \
         line = \"4 KiB\", policy = \"{policy}\" }}\n"
    );
    let pool = catalogue::drive_from_text("pool.toml", &text)
        .unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    assert_eq!(pool.capacity, LINES * LINE);
    let job = Job {
        mix: Mix::Read,
        random: true,
        norandommap: true,
        distribution: [distribution.clone(), distribution.clone(), distribution],
        runtime: Some(model::Span::from_seconds(3.0)),
        time_based: true,
        ramp_time: model::Span::from_seconds(4.0),
        iodepth: 16,
        ..Job::default()
    };
    let machine = Machine::from_configs(
        "cached",
        pool.config,
        catalogue::host("xeon-2017").expect("built in").config,
    );
    let scenario = Scenario::jobs(machine, Precondition::Fresh, vec![job], seed);
    let outcome = Lab::new().run(&scenario).expect("it runs");
    let of = |gauge| outcome.gauge(gauge).expect("reported");
    of(Gauge::HitBytes) / (of(Gauge::HitBytes) + of(Gauge::MissBytes))
}

/// Returns the hit ratio of LRU if line `i` is read with the probability `i^-theta`, up to a factor.
fn che(theta: f64) -> f64 {
    let weights: Vec<f64> = (1..=LINES).map(|rank| (rank as f64).powf(-theta)).collect();
    let sum: f64 = weights.iter().sum();
    let held = |time: f64| weights.iter().map(move |it| 1.0 - (-it / sum * time).exp());
    let (mut low, mut high) = (1e3, 1e10);
    for _ in 0..40 {
        let time = f64::sqrt(low * high);
        match held(time).sum::<f64>() < SLOTS as f64 {
            true => low = time,
            false => high = time,
        }
    }
    held(low)
        .zip(&weights)
        .map(|(held, it)| held * it / sum)
        .sum()
}

/// Returns the share of reads that go to the most popular lines, as many as fit into the cache.
fn most_popular(theta: f64) -> f64 {
    let weight = |lines: u64| -> f64 { (1..=lines).map(|rank| (rank as f64).powf(-theta)).sum() };
    weight(SLOTS) / weight(LINES)
}

#[test]
fn zipf_reads_hit_as_often_as_theory_says() {
    for theta in [0.8, 0.99] {
        let zipf = || Distribution::Zipf {
            theta,
            centre: None,
        };
        let expected = che(theta);
        let (lru, clock) = (hits("lru", zipf(), 1), hits("clock", zipf(), 2));
        let arc = hits("arc", zipf(), 3);
        println!(
            "Zipf {theta}: {lru:.4} by LRU, {clock:.4} by CLOCK, {arc:.4} by ARC, {expected:.4} by theory"
        );
        // ARC keeps lines that are read again, as CLOCK does, and more of them. With independent reads, no cache has
        // more hits than one that always holds the most popular lines.
        assert!(arc > clock && arc < most_popular(theta));
        assert!((lru - expected).abs() < 0.005);
        assert!((-0.005..0.02).contains(&(clock - expected)));
    }
}
