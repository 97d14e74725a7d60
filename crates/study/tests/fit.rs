//! A drive with known parameters is measured in the model, and the fit must find them.

use lab::{Lab, Machine, Scenario};
use model::host::HostConfig;
use model::media::Precondition;
use study::fit::{self, FitRequest, MeasuredFigure, MeasuredRun, Quantity};
use study::ledger::figure::RunFigure;
use study::ledger::support;
use workload::job::{BlockSizes, Job, Mix};

/// Returns the measurements of a drive with these changed figures.
fn measured(changes: &[catalogue::Change]) -> Vec<MeasuredRun> {
    let drive = catalogue::drive_with("p4800x-375", changes).expect("it is a drive");
    let host = catalogue::host("xeon-2017").expect("built in");
    let host = HostConfig {
        io_queues: std::num::NonZeroU16::new(drive.io_queues),
        ..host.config
    };
    let run = |mix: Mix, iodepth: u32| {
        let job = Job {
            mix,
            iodepth,
            random: true,
            norandommap: true,
            ..Job::default()
        };
        let plan = Scenario::jobs(
            Machine::from_configs("a drive", drive.config.clone(), host.clone()),
            Precondition::Steady,
            vec![Job {
                number_ios: Some(12_000),
                ..job.clone()
            }],
            77,
        );
        let outcome = Lab::new().run(&plan).expect("it fits");
        let target = |quantity| {
            let mut target = MeasuredFigure {
                read: mix == Mix::Read,
                quantity,
                value: 1.0,
                weight: 1.0,
            };
            let figure = RunFigure::named(&target.figure()).expect("a figure of a run");
            target.value = figure.value(&outcome).expect("enough samples");
            target
        };
        MeasuredRun {
            name: format!("{mix:?}-{iodepth}"),
            jobs: vec![job],
            targets: [Quantity::Iops, Quantity::Mean, Quantity::Percentile(50.0)]
                .map(target)
                .to_vec(),
            unlike: Vec::new(),
        }
    };
    vec![
        run(Mix::Read, 1),
        run(Mix::Write, 1),
        run(Mix::Read, 2),
        run(Mix::Write, 2),
    ]
}

#[test]
fn a_known_drive_is_found_again() {
    let hidden = [
        ("xpoint.medium.write".to_owned(), "36 us".to_owned()),
        ("xpoint.controller.delay".to_owned(), "2.9 us".to_owned()),
    ];
    let request = FitRequest {
        settings: catalogue::Settings::default(),
        base: "p4800x-375".into(),
        host: "xeon-2017".into(),
        state: Precondition::Steady,
        free: hidden.iter().map(|(key, _)| key.clone()).collect(),
        measured: measured(&hidden),
        hold_out: 4,
        iterations: 40,
        name: "found".into(),
    };
    let fitted = fit::drive(&request, &|_| {}).unwrap_or_else(|problems| panic!("{problems}"));
    for one in &fitted.parameters {
        let (parameter, words) = (&one.parameter, &one.fitted);
        let wanted = hidden.iter().find(|(key, _)| *key == parameter.key);
        let number = |words: &str| {
            words
                .split(' ')
                .next()
                .and_then(|word| word.parse::<f64>().ok())
        };
        let wanted = wanted
            .and_then(|(_, words)| number(words))
            .expect("a hidden parameter");
        let found = number(words).expect("a number");
        assert!(
            (found / wanted - 1.0).abs() < 0.03,
            "{}: {words} for {wanted}",
            parameter.key
        );
        let (low, high) = (number(&one.interval.0), number(&one.interval.1));
        let (low, high) = (low.expect("a number"), high.expect("a number"));
        assert!(low < found && found < high, "{:?}", one.interval);
        assert!(low < wanted && wanted < high, "{:?}", one.interval);
        assert!(high / low < 1.2, "{:?}", one.interval);
    }
    let held_out = fit::median_error(&fitted.residuals, true).expect("one run is held out");
    assert!(held_out < 0.02, "{held_out}");
    assert!(fitted.parameters.iter().all(|one| !one.at_bound));
    says_what_it_is(&fitted.toml);
}

/// Checks that the file is a drive, differs from its base, and states what it was fitted to.
fn says_what_it_is(toml: &str) {
    let sheet = catalogue::drive_from_text("found.toml", toml).expect("it loads");
    let figure = sheet.figure("xpoint.medium.write").expect("it is there");
    assert_eq!(
        (figure.kind, sheet.name.as_str()),
        (catalogue::FigureKind::Fitted, "found")
    );
    let line = |start: &str| {
        let found = toml.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("{start} in {toml}"))
    };
    assert_eq!(
        line("# Fitted to"),
        "# Fitted to the runs Read-1, Write-1, Read-2."
    );
    assert_eq!(line("# Held out"), "# Held out: Write-2.");
    // It differs from its base drive: its price is not published, and no published row tests it.
    assert_eq!((sheet.maker.as_str(), sheet.price_usd), ("unknown", None));
    let known = support::statement(&sheet);
    assert_eq!(known.grade, support::Grade::YourFit);
    assert!(
        known.text.starts_with("from p4800x-375: 9 figures of fio"),
        "{}",
        known.text
    );
    assert!(
        known.text.contains(", 3 figures held out"),
        "{}",
        known.text
    );
    let note = figure.note.as_deref().expect("the interval");
    assert!(note.starts_with("95 %: 3"), "{note}");
}

/// Returns the measurements of a volume with these changed figures, by reads and writes at several depths and sizes.
fn measured_volume(name: &str, changes: &[(&str, &str)]) -> Vec<MeasuredRun> {
    let changes: Vec<catalogue::Change> = changes
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    let drive = catalogue::drive_with(name, &changes).expect("it is a volume");
    let host = catalogue::host(catalogue::GUEST_HOST).expect("built in");
    let machine = Machine::new(&drive, &host);
    let run = |(mix, iodepth, bytes): (Mix, u32, u32)| {
        let job = Job {
            mix,
            iodepth,
            block_sizes: [(); 3].map(|()| BlockSizes::Fixed(bytes)),
            block_align: [bytes; 3],
            random: true,
            norandommap: true,
            ..Job::default()
        };
        let bounded = Job {
            number_ios: Some(8_000),
            ..job.clone()
        };
        let plan = Scenario::jobs(machine.clone(), Precondition::Steady, vec![bounded], 77);
        let outcome = Lab::new().run(&plan).expect("it fits");
        let quantities = [
            Quantity::Iops,
            Quantity::Mean,
            Quantity::Percentile(50.0),
            Quantity::Percentile(99.0),
        ];
        let targets = quantities.map(|quantity| {
            let mut target = MeasuredFigure {
                read: mix == Mix::Read,
                quantity,
                value: 1.0,
                weight: 1.0,
            };
            let figure = RunFigure::named(&target.figure()).expect("a figure of a run");
            target.value = figure.value(&outcome).expect("enough samples");
            target
        });
        MeasuredRun {
            name: format!("{mix:?}-{iodepth}-{bytes}"),
            jobs: vec![job],
            targets: targets.to_vec(),
            unlike: Vec::new(),
        }
    };
    let points = [
        (Mix::Read, 1, 4096),
        (Mix::Write, 1, 4096),
        (Mix::Read, 4, 4096),
        (Mix::Read, 16, 4096),
        (Mix::Read, 32, 4096),
        (Mix::Write, 32, 4096),
        (Mix::Read, 1, 131_072),
        (Mix::Write, 8, 131_072),
        (Mix::Read, 8, 131_072),
    ];
    points.into_iter().map(run).collect()
}

fn fit_volume(measured: Vec<MeasuredRun>, iterations: u64) -> fit::FitResult {
    let request = FitRequest {
        settings: catalogue::Settings::default(),
        base: "volume-base".into(),
        host: catalogue::GUEST_HOST.into(),
        state: Precondition::Steady,
        free: Vec::new(),
        measured,
        hold_out: 4,
        iterations,
        name: "found".into(),
    };
    fit::drive(&request, &|_| {}).unwrap_or_else(|problems| panic!("{problems}"))
}

/// A cloud's volume is ten times slower than the virtual disk that a fit begins with, and its limits are sixty times
/// lower. They are still found, because the fit begins at the measurements.
#[test]
fn a_volume_far_from_the_base_is_found() {
    let fitted = fit_volume(measured_volume("gp3", &[]), 60);
    let found = |key: &str| {
        let one = fitted.parameters.iter().find(|it| it.parameter.key == key);
        let words = one.map_or("", |it| &it.fitted);
        words
            .split(' ')
            .next()
            .and_then(|word| word.parse::<f64>().ok())
    };
    let iops = found("volume.limits.iops").expect("a limit");
    assert!((iops / 3_000.0 - 1.0).abs() < 0.03, "{iops}");
    // In MB/s.
    let rate = found("volume.limits.rate").expect("a limit");
    assert!((rate / 131.072 - 1.0).abs() < 0.05, "{rate}");
    let held_out = fit::median_error(&fitted.residuals, true).expect("runs are held out");
    assert!(held_out < 0.05, "{held_out}");
    assert!(
        fitted.toml.contains("--host virtual-machine"),
        "{}",
        fitted.toml
    );
}

/// A disk of a small cloud machine, with published measurements (see `published/README.md` there), fitted as a volume:
/// the error is 7.4 % on the fitted runs and 9.1 % on the held-out runs. With a drive as the base it was 48 and 50 %.
/// Skipped if the file is missing.
#[test]
fn a_measured_virtual_disk_is_met_as_a_volume() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = here.join("../../../shared/published/volume.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: there is no {}", path.display());
        return;
    };
    let measured = fit::read("volume.json", &text).expect("fio's");
    let fitted = fit_volume(measured, 120);
    let held_out = fit::median_error(&fitted.residuals, true).expect("runs are held out");
    assert!(held_out < 0.10, "{held_out}");
    let fit = fit::median_error(&fitted.residuals, false).expect("and others are not");
    assert!(fit < 0.10, "{fit}");
}
