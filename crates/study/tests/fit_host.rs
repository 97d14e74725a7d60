//! A host with known costs is measured in the model with the printed jobs, and the fit must find them; results that do
//! not determine a host are rejected.

use lab::{Lab, Machine, Scenario};
use model::Span;
use model::host::HostConfig;
use model::media::Precondition;
use model::media::ram::RamConfig;
use study::fit::{self, FitResult, HostRequest, HostRun};
use study::ledger::figure::RunFigure;
use study::measure::HOST_JOBS;
use tier::DriveConfig;
use workload::job::Job;

/// Returns sections of the printed jobs as fio prints them with results: names and options.
fn sections() -> Vec<(String, Vec<(String, String)>)> {
    let mut sections = Vec::new();
    for line in HOST_JOBS.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            sections.push((name.trim_end_matches(']').to_owned(), Vec::new()));
        } else if let (Some((_, options)), false) = (sections.last_mut(), line.is_empty()) {
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            options.push((key.to_owned(), value.to_owned()));
        }
    }
    sections
}

/// Returns fio's JSON of the printed jobs, with these figures of each: `(name, read, iops, latency, submission)` in
/// nanoseconds.
fn json(of: &[(String, bool, f64, f64, f64)]) -> String {
    let sections = sections();
    let text = |options: &[(String, String)]| {
        let all = options.iter();
        let all = all.map(|(key, value)| (key.clone(), value.clone().into()));
        serde_json::Value::Object(all.collect())
    };
    let jobs = sections[1..].iter().enumerate();
    let jobs: Vec<serde_json::Value> = jobs
        .map(|(group, (name, options))| {
            let (_, read, iops, lat, slat) = of
                .iter()
                .find(|one| one.0 == *name)
                .expect("a figure of each");
            let side = if *read { "read" } else { "write" };
            serde_json::json!({
                "jobname": name, "groupid": group, "error": 0, "job options": text(options),
                side: {
                    "iops": iops, "total_ios": 100_000, "lat_ns": {"mean": lat},
                    "slat_ns": {"mean": slat, "N": 100_000},
                    "clat_ns": {"percentile": {"50.000000": lat, "99.000000": lat, "99.900000": lat}},
                },
            })
        })
        .collect();
    serde_json::json!({
        "fio version": "fio-3.33", "global options": text(&sections[0].1), "jobs": jobs,
    })
    .to_string()
}

/// Returns the printed jobs with figures that are only formally valid.
fn any_figures() -> String {
    let sections = sections();
    let of = sections[1..].iter().map(|(name, options)| {
        let write = options.contains(&("rw".into(), "randwrite".into()));
        (name.clone(), !write, 1e5, 1e4, 1e3)
    });
    json(&of.collect::<Vec<_>>())
}

/// Returns the measurements of a host with these costs.
fn measured(host: &HostConfig) -> Vec<HostRun> {
    let read = fit::read_host("host.json", &any_figures()).expect("the printed jobs are read");
    let figures = read.iter().map(|one| {
        let device = DriveConfig::Ram(RamConfig {
            bytes: 1 << 40,
            per_command: one.device_time.max(Span::from_ns(1)),
            picoseconds_per_byte: 0,
            memory_bus: None,
            spread: 0.0,
        });
        let mut jobs = one.run.jobs.clone();
        for job in &mut jobs {
            job.number_ios = Some(10_000);
            (job.time_based, job.io_size) = (false, Some(Job::ROUND));
        }
        let machine = Machine::from_configs("a null device", device, host.clone());
        // A seed that differs from the fit's.
        let scenario = Scenario::jobs(machine, Precondition::Fresh, jobs, 77);
        let outcome = Lab::new().run(&scenario).expect("it fits");
        let read = one.run.targets[0].read;
        let side = if read { "read" } else { "write" };
        let of = |figure: &str| {
            let figure = RunFigure::named(&format!("{side}.{figure}")).expect("a figure");
            figure.value(&outcome).expect("enough samples")
        };
        (
            one.run.name.clone(),
            read,
            of("iops"),
            of("mean_us") * 1e3,
            of("slat.mean_us") * 1e3,
        )
    });
    let text = json(&figures.collect::<Vec<_>>());
    fit::read_host("host.json", &text).expect("it is fio's form")
}

fn fitted(measured: Vec<HostRun>, iterations: u64) -> FitResult {
    let request = HostRequest {
        base: "xeon-2017".into(),
        measured,
        hold_out: 4,
        iterations,
        name: "found".into(),
    };
    fit::host(&request, &|_| {}).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn a_known_host_is_found_again() {
    let hidden = [
        ("engine.libaio.application", 450.0),
        ("engine.libaio.system_call", 500.0),
        ("engine.libaio.submit", 900.0),
        ("engine.libaio.reap", 300.0),
        ("engine.io_uring.application", 200.0),
        ("engine.io_uring.submit", 480.0),
        ("interrupt", 800.0),
        ("per_page", 75.0),
        ("switch", 1000.0),
    ];
    let changes: Vec<catalogue::Change> = hidden
        .iter()
        .map(|(key, ns)| ((*key).to_owned(), format!("{ns} ns")))
        .collect();
    let host = catalogue::host_with("xeon-2017", &changes).expect("a host");
    let fitted = fitted(measured(&host.config), 160);
    for (key, wanted) in hidden {
        let one = fitted
            .parameters
            .iter()
            .find(|one| one.parameter.key == format!("host.{key}"));
        let words = &one.unwrap_or_else(|| panic!("{key} is not free")).fitted;
        let found = words.trim_end_matches(" ns").parse::<f64>().expect(words);
        let off = (found / wanted - 1.0).abs();
        assert!(off < 0.15, "{key}: {words} for {wanted}\n{}", fitted.toml);
    }
    let before = fitted.residuals.iter().filter(|one| one.held_out);
    let before = before.map(|one| (one.before / one.measured - 1.0).abs());
    let held_out = fit::median_error(&fitted.residuals, true).expect("runs are held out");
    assert!(held_out < 0.02, "{held_out}");
    assert!(before.fold(0.0, f64::max) > 0.1, "the base was another");
    // The file is a host, states what it was fitted to and what not, and keeps everything else.
    let made = catalogue::host_from_text("found.toml", &fitted.toml).expect("it loads");
    assert_eq!(made.name, "found");
    assert_eq!(made.config.engines[0], host.config.engines[0]);
    for part in [
        "# Made by drivelab fit from the host xeon-2017.",
        "# Fitted to the runs: libaio-4k-qd1, libaio-128k-qd1, libaio-4k-qd1-timer, libaio-4k-qd32,",
        "# Held out: libaio-64k-qd1,",
        "# Not fitted: `engine.sync`: no run for the fit uses it on a device",
    ] {
        assert!(fitted.toml.contains(part), "{part}: {}", fitted.toml);
    }
}

/// Costs that the results do not determine keep the base host's values and are named.
#[test]
fn what_was_not_run_is_named() {
    let runs = fit::read_host("host.json", &any_figures()).expect("read");
    let only = |run: &HostRun| {
        let name = &run.run.name;
        name.starts_with("libaio-4k-qd") && !name.ends_with("timer") && !name.ends_with("batch")
    };
    let fitted = fitted(runs.into_iter().filter(only).collect(), 1);
    let told = fitted.left_out.join("\n");
    for key in [
        "engine.io_uring",
        "engine.libaio.system_call",
        "per_page",
        "interrupt",
        "switch",
    ] {
        assert!(told.contains(&format!("`{key}`")), "{key}: {told}");
    }
    let free: Vec<&str> = fitted
        .parameters
        .iter()
        .map(|one| &*one.parameter.key)
        .collect();
    let wanted = ["application", "submit", "reap"].map(|part| format!("host.engine.libaio.{part}"));
    assert_eq!(free, wanted);
}

#[test]
fn results_that_say_nothing_of_a_host_are_refused() {
    let text = any_figures();
    for (from, to, part) in [
        ("/dev/nullb0", "/dev/nvme0n1", "/dev/nvme0n1 is a drive"),
        ("/dev/nullb1", "/dev/sda", "/dev/sda is a drive"),
        (
            "device_time=0us",
            "my run",
            "the latency of its device is unknown",
        ),
        ("device_time=0us", "device_time=soon", "device_time=soon"),
        (
            "device_time=0us",
            "device_time=5us",
            "I/Os at once on a device that takes time",
        ),
        ("libaio", "spdk", "neither user-space drivers"),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        let said = fit::read_host("host.json", &changed).expect_err(part);
        let said = said.to_string();
        assert!(said.contains(part) && said.contains("host.json"), "{said}");
    }
}

#[test]
fn a_device_that_copies_or_is_slow_is_told() {
    let told = |from: &str, to: &str| {
        let text = any_figures().replace(from, to);
        let runs = fit::read_host("host.json", &text).expect("read");
        let all = runs.iter().flat_map(|run| run.run.unlike.clone());
        all.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(told("none", "none"), "");
    assert!(told("/dev/nullb0", "/dev/ram0").contains("/dev/ram0 copies its data"));
    assert!(told("/dev/nullb0", "/mnt/a.dat").contains("/mnt/a.dat is not known"));
    assert!(told("10000.0", "90000.0").contains("is it a drive"));
}

/// Without an engine that separates submission and completion, a call's time cannot be divided.
#[test]
fn synchronous_runs_alone_are_refused() {
    let text = any_figures().replace("libaio", "sync");
    let runs = fit::read_host("host.json", &text).expect("read");
    let only = runs.into_iter().filter(|run| {
        let name = &run.run.name;
        name.starts_with("sync-4k-qd1")
    });
    let request = HostRequest {
        base: "linux".into(),
        measured: only.collect(),
        hold_out: 0,
        iterations: 1,
        name: "found".into(),
    };
    let said = fit::host(&request, &|_| {}).expect_err("only sync");
    assert!(said.to_string().contains("libaio or io_uring"), "{said}");
}
