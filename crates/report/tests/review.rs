//! A small review of modelled drives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, Mutex};

use lab::{Lab, Work};
use model::media::Medium;
use rayon::ThreadPoolBuilder;
use report::page;
use study::review::results::DirectionResult;
use study::review::{Review, ReviewRequest, Suite, UserWorkload, Workload, check, review};
use workload::job::{Extent, Job};

/// Number of I/Os of a point.
const IOS: u64 = 200;

/// Returns a request with an XPoint and a NAND drive; the latter is shrunk so that it is preconditioned at once.
fn request() -> ReviewRequest {
    let drives = ["p4800x-375", "p3700-1600"].map(|name| {
        let mut sheet = catalogue::drive(name).unwrap();
        sheet.config = sheet.config.shrunk(8 << 30);
        sheet.capacity = sheet.config.capacity_bytes();
        sheet
    });
    // fio reports a and b separately, c and d as one.
    let job = |name: &str| Job {
        name: name.into(),
        number_ios: Some(500),
        new_group: name == "c",
        group_reporting: name > "b",
        ..Job::default()
    };
    ReviewRequest {
        drives: drives.to_vec(),
        settings: Default::default(),
        host: catalogue::host("xeon-2017").unwrap(),
        suite: Suite::Quick,
        effort: Suite::Quick.effort().with_ios(IOS),
        seed: 7,
        only_yours: false,
        yours: vec![UserWorkload {
            source: "mine.fio".into(),
            text: "[a]\nrw=read\n".into(),
            workload: Workload::Jobs(["a", "b", "c", "d"].map(job).to_vec()),
        }],
    }
}

fn on_threads(threads: usize) -> Review {
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap();
    pool.install(|| review(&request(), &Lab::new(), &|_| {}).unwrap())
}

/// The review that most tests use.
static FOUND: LazyLock<Review> = LazyLock::new(|| on_threads(5));

#[test]
fn the_number_of_threads_changes_no_byte() {
    let alone = on_threads(1);
    assert_eq!(alone.to_json(), FOUND.to_json());
    assert_eq!(page::html(&alone), page::html(&FOUND));
}

#[test]
fn all_chapters_are_there_and_hold_what_they_promise() {
    let found = &*FOUND;
    let counts: Vec<(&str, usize)> = found
        .chapters
        .iter()
        .map(|chapter| (chapter.id, chapter.points.len()))
        .collect();
    // 12 sizes, 2 patterns, 2 directions, 2 alignments; 29 depths and 2 directions; 10 depths, 6 depths; 11 mixes.
    assert_eq!(
        counts[..5],
        [
            ("block-size", 96),
            ("queue-depth", 58),
            ("sequential", 20),
            ("sequential-filled", 12),
            ("mix", 11)
        ]
    );
    assert_eq!(
        counts[5..].iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        ["paced", "sustained", "yours"]
    );
    let names: std::collections::BTreeSet<&str> = found
        .chapters
        .iter()
        .flat_map(|chapter| &chapter.points)
        .map(|point| point.name.as_str())
        .collect();
    let points: usize = counts.iter().map(|(_, count)| count).sum();
    assert_eq!(names.len(), points, "names of points are unique");
    let yours = found.chapter("yours").unwrap().points.iter();
    let yours: Vec<(&str, u64)> = yours
        .map(|point| {
            let result = point.results[0].as_ref().unwrap();
            (&*point.name, result.read.as_ref().unwrap().ios)
        })
        .collect();
    let wanted = [
        ("yours/mine.fio/a", 1500),
        ("yours/mine.fio/b", 1500),
        ("yours/mine.fio/c", 3000),
    ];
    assert_eq!(yours, wanted);
    for point in found.chapters.iter().flat_map(|chapter| &chapter.points) {
        for result in point.results.iter().flatten() {
            for figures in [&result.read, &result.write].into_iter().flatten() {
                assert!(figures.ios > 0 && figures.errors == 0, "{}", point.name);
                // Ten samples beyond the percentile, or no value.
                let latency = &figures.latency;
                assert_eq!(
                    latency.p99_us.is_some(),
                    figures.ios >= 950,
                    "{}",
                    point.name
                );
                assert!(latency.min_us <= latency.mean_us && latency.mean_us <= latency.max_us);
            }
            assert!(result.job.contains("randseed") || point.name.starts_with("yours"));
        }
    }
}

/// With so few I/Os, hardly any drive's mean is known: it runs for longer, or the review states that it is unknown.
#[test]
fn a_mean_is_known_or_said_not_to_be() {
    let found = &*FOUND;
    let (mut open, mut open_yours) = (0, 0);
    for point in found.chapters.iter().flat_map(|chapter| &chapter.points) {
        if point.name.starts_with("sustained") {
            continue;
        }
        for result in point.results.iter().flatten() {
            let name = &point.name;
            let known = result.converged.expect("every point is judged");
            let told = result.notes.iter().any(|note| note.contains("converged"));
            assert_eq!(told, !known, "{name}: {:?}", result.notes);
            if known {
                assert!(
                    result.mean_error.is_some_and(|error| error <= 0.05),
                    "{name}"
                );
                let least = if result.write.is_some() { 0.1 } else { 0.02 };
                assert!(result.seconds >= least, "{name}: {} s", result.seconds);
                continue;
            }
            if name.starts_with("yours") {
                // It runs for its own time.
                open_yours += 1;
                continue;
            }
            open += 1;
            let ios = |figures: &Option<DirectionResult>| figures.as_ref().map_or(0, |one| one.ios);
            let counted = ios(&result.read) + ios(&result.write);
            assert!(
                counted >= 4 * IOS * 95 / 100,
                "{name} ended after {counted}"
            );
        }
    }
    assert!(open > 0 && open_yours > 0);
    // An error that a sentence about 5 % names is above 5 %.
    let mut named = 0;
    for finding in found.verdict.iter().filter(|it| it.chapter == "method") {
        for part in finding.text.split('±').skip(1) {
            let error: f64 = part.split(' ').next().unwrap().parse().unwrap();
            assert!(error > 5.0, "{}", finding.text);
            named += 1;
        }
    }
    assert!(named > 0);
    let said = |what: &str| {
        let mut findings = found.verdict.iter();
        findings.any(|finding| {
            finding.chapter == "method"
                && finding.text.contains(what)
                && finding.text.contains("P3700")
        })
    };
    assert!(said("which four times the usual I/Os"));
    assert!(said("Your jobs and traces are too short"));
}

#[test]
fn seeds_differ_within_the_ends_that_are_told() {
    let found = &*FOUND;
    let points = found.chapters.iter().flat_map(|chapter| &chapter.points);
    let mut different = 0;
    for result in points.flat_map(|point| point.results.iter().flatten()) {
        for one in result.each.iter().filter_map(|one| one.read.as_ref()) {
            let read = result.read.as_ref().expect("each seed reads");
            let across = read.across_seeds.as_ref().expect("there are three seeds");
            assert!(across.iops[0] <= one.iops && one.iops <= across.iops[1]);
            different += usize::from(across.iops[0] < across.iops[1]);
        }
    }
    assert!(different > 100, "seeds do not differ: {different}");
}

#[test]
fn what_does_not_fit_is_said_before_anything_runs() {
    let mut request = request();
    let Workload::Jobs(jobs) = &mut request.yours[0].workload else {
        unreachable!()
    };
    jobs[0].offset = Extent::Bytes(1 << 50);
    let problems = check(&request).unwrap_err();
    assert_eq!(problems.0.len(), 2, "one for each drive: {problems}");
    assert!(
        problems.to_string().contains("mine.fio")
            && problems.to_string().contains("on p3700-1600: job a: ")
    );
}

/// Returns a laboratory of modelled drives in which no bench receives a seed twice.
fn remembering() -> Lab {
    let met: Mutex<BTreeMap<u64, BTreeSet<u64>>> = Mutex::default();
    Lab::with_stand_in(move |scenario, bench, simulate| {
        if let (Some(bench), Work::Jobs(jobs)) = (bench, &scenario.work) {
            let told = jobs.iter().filter_map(|job| job.randseed);
            let seeds: BTreeSet<u64> = told.chain([scenario.seed]).collect();
            let mut met = met.lock().expect("no test has failed");
            let before = met.entry(bench).or_default();
            let again: Vec<_> = before.intersection(&seeds).collect();
            let names: Vec<&str> = jobs.iter().map(|job| &*job.name).collect();
            assert!(
                again.is_empty(),
                "{names:?} goes where a run before it went"
            );
            before.extend(seeds);
        }
        simulate()
    })
}

/// Repeated writes to the addresses of the previous run, in its order, would empty whole flash blocks. Garbage
/// collection would find them free, and the drive would look faster than it is.
#[test]
fn no_run_on_a_bench_repeats_the_accesses_of_one_before_it() {
    review(&request(), &remembering(), &|_| {}).unwrap();
}
