//! Performance of tiers in a typical host: a mirror writes as fast as one drive and reads as fast as two. Also the
//! gauges of pools over time.

use lab::{Lab, Machine, Outcome, Scenario};
use model::media::Precondition;
use model::{Gauge, Span};
use workload::job::{Job, Mix};

/// Four threads at QD8, each on its own core: one core is not enough for two drives.
fn random(drive: &str, mix: Mix) -> Outcome {
    over_time(drive, mix, 100_000, Span::ZERO)
}

fn over_time(drive: &str, mix: Mix, ios: u64, every: Span) -> Outcome {
    let sheet = catalogue::drive(drive).unwrap_or_else(|problems| panic!("{problems}"));
    let host = catalogue::host("xeon-2017").expect("built in");
    let job = Job {
        mix,
        random: true,
        iodepth: 8,
        numjobs: 4,
        number_ios: Some(ios),
        ..Job::default()
    };
    let machine = Machine::new(&sheet, &host);
    let mut scenario = Scenario::jobs(machine, Precondition::Steady, vec![job], 1);
    scenario.series_every = every;
    Lab::new().run(&scenario).expect("it fits")
}

fn iops(outcome: &Outcome) -> f64 {
    let threads = outcome.threads.iter();
    let ios: u64 = threads.map(|it| it.read.ios + it.write.ios).sum();
    ios as f64 / outcome.counted.seconds()
}

#[test]
fn a_mirror_writes_as_one_of_its_drives_and_reads_as_both() {
    let gain = |mix| {
        let two = iops(&random("mirror(2*p4801x-100)", mix));
        two / iops(&random("p4801x-100", mix))
    };
    let writes = gain(Mix::Write);
    assert!((0.97..=1.005).contains(&writes), "{writes}");
    let reads = gain(Mix::Read);
    assert!((1.9..=2.0).contains(&reads), "{reads}");
}

/// The busy time of a part is a share, for one drive and for several.
#[test]
fn several_drives_are_busy_for_no_more_than_all_of_the_time() {
    let busy = |drive: &str| {
        let outcome = random(drive, Mix::Read);
        [
            Gauge::ControllerBusySeconds,
            Gauge::LinkBusySeconds,
            Gauge::MediumBusySeconds,
        ]
        .map(|gauge| outcome.utilisation(gauge).expect("reported"))
    };
    let one = busy("p4801x-100");
    // The sum over two of these would be twice the time.
    assert!(one[1] > 0.9, "{one:?}");
    for drive in [
        "mirror(2*p4801x-100)",
        "mirror(2*mirror(2*p4801x-100))",
        "p3608-1600",
    ] {
        let all = busy(drive);
        assert!(
            all.iter().all(|busy| (0.0..=1.001).contains(busy)),
            "{drive}: {all:?}"
        );
    }
}

#[test]
fn looking_at_gauges_over_time_changes_nothing_and_adds_up() {
    let drive = "write-back-cache(cache=p4801x-100, capacity=2*p4801x-100; destage_from=0 %)";
    let every = Span::from_us(700);
    let (plain, looked) = (
        over_time(drive, Mix::Write, 20_000, Span::ZERO),
        over_time(drive, Mix::Write, 20_000, every),
    );
    assert_eq!(plain.gauges, looked.gauges);
    assert_eq!(plain.members, looked.members);
    assert_eq!(plain.end, looked.end);
    assert!(plain.over_time.gauges.is_empty());
    let intervals = looked.end.ns().div_ceil(every.ns()) as usize;
    for (gauge, values) in &looked.over_time.gauges {
        assert_eq!(values.len(), intervals, "{gauge:?}");
        let all = looked.gauge(*gauge).expect("it is a gauge of the run");
        let told = match gauge.cumulative() {
            true => values.iter().sum(),
            false => values[values.len() - 1],
        };
        assert!(
            (told - all).abs() <= 1e-9 * all.abs(),
            "{gauge:?}: {told} {all}"
        );
    }
    let destaged = looked
        .over_time
        .series(Gauge::DestagedBytes)
        .expect("a cache");
    assert!(destaged.iter().filter(|bytes| **bytes > 0.0).count() > 2);
}
