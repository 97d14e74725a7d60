//! The suites for pools: a write buffer under pressure accepts as much as it frees, a cache has the hit ratio of
//! theory, and the workload is that of the suites. Pools are small and runs short, so that this takes seconds.

mod suites;

use catalogue::DriveSheet;
use study::review::results::Measurement;
use study::review::{Suite, check};

use suites::{request, result, run};

/// Returns a disk group whose buffer is small enough to fill, and one whose buffer does not fill in such a short run.
fn groups() -> Vec<DriveSheet> {
    let with = |changes: &[(String, String)]| {
        let sheet = catalogue::drive_with("group", changes);
        sheet.unwrap_or_else(|problems| panic!("{problems}"))
    };
    let key = "tier.group.buffer_limit".to_owned();
    let mut small = with(&[(key, "30 GB".to_owned())]);
    small.id = "small".to_owned();
    vec![small, with(&[])]
}

#[test]
fn under_pressure_a_group_writes_as_fast_as_it_makes_room_and_without_it_nothing_is_said() {
    let found = run(groups(), Suite::Hcibench, 3_000);
    let name = "write-pressure/4k0r/64";
    let pressed = result(&found, name, 0);
    for one in &pressed.each {
        let series = one.series.as_ref().expect("it is told over time");
        assert!(series.scale > 100.0);
        let begins = series.congestion.iter().position(|level| *level > 0.0);
        let begins = begins.expect("the buffer fills");
        let late = begins + (series.iops.len() - begins) / 2;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (written, freed) = (mean(&series.mb_s[late..]), mean(&series.freed_mb_s[late..]));
        assert!((written / freed - 1.0).abs() < 0.03, "{written} {freed}");
        assert!(mean(&series.mb_s[..begins]) > 1.1 * written);
    }
    let free = result(&found, name, 1).series.as_ref().expect("over time");
    assert!(free.congestion.iter().all(|level| *level == 0.0));
    let said: Vec<&str> = found
        .verdict
        .iter()
        .filter(|it| it.text.contains("4k0r: write pressure from "))
        .map(|it| &*it.text)
        .collect();
    assert_eq!(said.len(), 1, "{:?}", found.verdict);
    assert!(said[0].contains("of the rate; congestion "), "{}", said[0]);
    // A member's years are its rating divided by its write rate.
    let cache = &pressed.members[0];
    assert_eq!((&*cache.name, &*cache.drive), ("cache", "p5800x-400"));
    let rated = catalogue::drive("p5800x-400")
        .expect("built in")
        .endurance_bytes;
    let years = rated.expect("rated") as f64 / (cache.write_mb_s * 1e6) / 31_557_600.0;
    assert!((cache.years.expect("rated") / years - 1.0).abs() < 1e-4);
    assert_eq!(pressed.members.len(), 4);
    // Six profiles at four depths, each of 16 disks with a region of its own.
    assert_eq!(
        found.chapter("hcibench").map(|it| it.points.len()),
        Some(24)
    );
    let job = &result(&found, "hcibench/4k70r/64", 1).job;
    let size = job
        .lines()
        .find_map(|it| it.strip_prefix("size="))
        .expect("a size");
    assert!(
        job.contains(&format!("\noffset_increment={size}\n")),
        "{job}"
    );
    assert!(
        job.contains("\nnumjobs=16\n") && job.contains("\niodepth=4\n"),
        "{job}"
    );
}

/// Returns the hit ratio of LRU if line `i` of `lines` is read with a probability proportional to `i^-theta` (Che's
/// approximation).
fn che(lines: u32, slots: f64, theta: f64) -> f64 {
    let weights: Vec<f64> = (1..=lines)
        .map(|rank| f64::from(rank).powf(-theta))
        .collect();
    let sum: f64 = weights.iter().sum();
    let held = |time: f64| weights.iter().map(move |it| 1.0 - (-it / sum * time).exp());
    let (mut low, mut high) = (1.0, 1e9);
    for _ in 0..60 {
        let time = f64::sqrt(low * high);
        match held(time).sum::<f64>() < slots {
            true => low = time,
            false => high = time,
        }
    }
    held(low)
        .zip(&weights)
        .map(|(held, it)| held * it / sum)
        .sum()
}

#[test]
fn a_cache_from_cold_comes_to_the_hit_ratio_of_theory() {
    const SLOTS: u64 = 4096;
    let (label, line) = (1 << 20, 4096);
    let (cache, main) = (SLOTS * line + label, 5 * SLOTS * line + label);
    let text = format!(
        "name = \"cached\"\n[members]\nfast = {{ drive = \"ram-disk\", set = {{ capacity = \"1 GiB\" }} }}\n[slices]\n\
         cache = {{ of = \"fast\", size = \"{cache} B\" }}\nmain = {{ of = \"fast\", size = \"{main} B\" }}\n[tier]\n\
         cached = {{ kind = \"read-cache\", cache = \"cache\", main = \"main\", line = \"4 KiB\", policy = \"lru\" }}\n"
    );
    let pool = catalogue::drive_from_text("pool.toml", &text)
        .unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    let found = run(vec![pool], Suite::CacheWarmup, 3_000);
    let hits = |name: &str| {
        let of = |one: &Measurement| {
            let ratio = one.series.as_ref().expect("over time").hit_ratio.clone();
            let last: Vec<f64> = ratio[ratio.len() * 3 / 4..]
                .iter()
                .flatten()
                .copied()
                .collect();
            last.iter().sum::<f64>() / last.len() as f64
        };
        let result = result(&found, &format!("cache-warmup/{name}"), 0);
        result.each.iter().map(of).sum::<f64>() / result.each.len() as f64
    };
    for (theta, name) in [(0.8, "Zipf 0.8, 4 x cache"), (1.2, "Zipf 1.2, 4 x cache")] {
        let theory = che(4 * SLOTS as u32, SLOTS as f64, theta);
        let hits = hits(name);
        println!("{name}: {hits:.4}, by theory {theory:.4}");
        assert!((hits - theory).abs() < 0.01, "{name}: {hits} {theory}");
    }
    // A range that fits is fully cached after it has been read; of a range twice as large, half is.
    assert!(hits("uniform, 0.5 x cache") > 0.99);
    assert!((hits("uniform, 2 x cache") - 0.5).abs() < 0.02);
    let cold = result(&found, "cache-warmup/uniform, 1 x cache", 0);
    let ratio = &cold.series.as_ref().expect("over time").hit_ratio;
    assert!(ratio[0].is_some_and(|first| first < 0.3), "{:?}", ratio[0]);
    // A scan in the middle reads everything: the ratio drops and recovers.
    let scan = result(&found, "cache-warmup/Zipf 0.8, 2 x cache, with a scan", 0);
    assert!(scan.job.contains("\n[scan]\nrw=read\n"));
    let ratio: Vec<f64> = scan
        .series
        .as_ref()
        .expect("over time")
        .hit_ratio
        .iter()
        .flatten()
        .copied()
        .collect();
    let least = ratio[ratio.len() / 4..].iter().copied().fold(1.0, f64::min);
    assert!(least < 0.8 * ratio[ratio.len() - 1], "{least} {ratio:?}");
}

#[test]
fn a_cache_is_asked_for_where_there_is_none() {
    let drives = ["p4800x-375", "s2-slog"].map(|it| catalogue::drive(it).expect("built in"));
    let request = request(drives.into(), Suite::CacheWarmup, 300);
    let refused = check(&request).expect_err("no cache").to_string();
    assert!(
        refused.contains("p4800x-375: the suite cache-warmup needs a pool with a cache"),
        "{refused}"
    );
    assert!(refused.contains("s2-slog: the suite"), "{refused}");
}

#[test]
fn a_review_of_a_folded_cluster_counts_the_watts_of_its_nodes_and_says_what_they_stand_for() {
    let limit = [("tier.group.buffer_limit".to_owned(), "30 GB".to_owned())];
    let pool = catalogue::drive_with("vsan-s3-optane", &limit)
        .unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    let found = run(vec![pool], Suite::Hcibench, 100);
    let one = result(&found, "hcibench/4k70r/64", 0);
    let words = "1 of 4 nodes simulated, for all";
    assert!(
        one.notes.iter().any(|it| it.starts_with(words)),
        "{:?}",
        one.notes
    );
    // A node uses 420 W when idle.
    assert!(one.watts.is_some_and(|watts| watts > 420.0), "{one:?}");
    let said = |words: &str| found.verdict.iter().any(|it| it.text.contains(words));
    assert!(
        said(" IOPS per watt of its nodes at 4 KiB"),
        "{:?}",
        found.verdict
    );
    assert_eq!(one.members.len(), 8);
}
