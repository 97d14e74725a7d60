//! Experiments of the page of `drivelab lab`: job files on drives, pools and texts, and how to repeat them.

use page_engine::{Engine, Experiment};

const JOB: &str = "[global]\nioengine=libaio\ndirect=1\nrw=randrw\nrwmixread=70\nbs=4k\nnorandommap=1\niodepth=8\n\
                   number_ios=3000\n[mix]\n";

fn experiment(drive: &str) -> Experiment {
    Experiment {
        drive: drive.into(),
        toml: None,
        settings: Vec::new(),
        whole: false,
        job: JOB.into(),
        host: catalogue::TYPICAL_HOST.into(),
        state: "steady".into(),
        seed: 1,
    }
}

fn asked(experiment: &Experiment) -> String {
    let asked = serde_json::json!({ "experiment": experiment });
    Engine::default().answer(asked.to_string().as_bytes())
}

#[test]
fn the_text_that_is_told_is_the_drive_that_ran() {
    let pools = ["s2-slog", "mirror(2*p4801x-100)"];
    for drive in ["p4800x-375", "p3700-800"].into_iter().chain(pools) {
        let by_name = experiment(drive);
        let told = Engine::default().experiment(&by_name).expect("it runs");
        let by_text = Experiment {
            drive: "mine.toml".into(),
            toml: Some(told.about.toml.clone()),
            ..by_name
        };
        let again = Engine::default().experiment(&by_text).expect("it runs");
        assert_eq!(
            (&again.read, &again.write),
            (&told.read, &told.write),
            "{drive}"
        );
        assert_eq!(again.about.set, told.about.set, "{drive}");
        assert_eq!(again.about.toml, told.about.toml, "{drive}");
    }
}

#[test]
fn bands_hold_every_io_and_add_up_to_the_mean() {
    let told = Engine::default().experiment(&experiment("p4800x-375"));
    let told = told.expect("it runs");
    let (read, write) = (told.read.expect("reads"), told.write.expect("writes"));
    assert_eq!(read.direction.ios + write.direction.ios, 3000);
    for one in [read, write] {
        let bands: Vec<_> = one.bands.iter().flatten().collect();
        let ios: u64 = bands.iter().map(|band| band.ios).sum();
        // Bands of fewer than ten I/Os are not shown.
        assert!(
            ios <= one.direction.ios && ios + 40 > one.direction.ios,
            "{ios}"
        );
        assert!(one.direction.p99_us < one.direction.p99_9_us || one.direction.p99_9_us.is_none());
        assert_eq!(one.p99_999_us, None, "3,000 I/Os have no ten slower ones");
    }
}

#[test]
fn a_flash_drive_runs_smaller_unless_the_whole_is_asked_for() {
    let small = Engine::default()
        .experiment(&experiment("p3700-800"))
        .expect("it runs")
        .about;
    assert!(small.smaller > 10.0 && !small.set.is_empty());
    let whole = Experiment {
        whole: true,
        ..experiment("p3700-800")
    };
    let whole = Engine::default().experiment(&whole).expect("it runs").about;
    assert_eq!((whole.smaller, whole.set.len()), (1.0, 0));
    assert_eq!(whole.capacity_bytes, small.capacity_bytes);
}

/// Returns an experiment with these options.
fn set(drive: &str, options: &[(&str, &str)]) -> Experiment {
    let options = options.iter();
    Experiment {
        settings: options
            .map(|&(it, value)| (it.into(), value.into()))
            .collect(),
        ..experiment(drive)
    }
}

#[test]
fn what_is_set_holds_on_the_smaller_drive_and_on_the_whole() {
    let run = |asked: &Experiment| Engine::default().experiment(asked).expect("it runs");
    let amplification = |options: &[(&str, &str)]| {
        let told = run(&Experiment {
            job: JOB
                .replace("randrw", "randwrite")
                .replace("=3000", "=60000"),
            ..set("p3700-800", options)
        });
        (told.about, told.write_amplification.expect("writes"))
    };
    let (sold, plain) = amplification(&[]);
    let (kept, spare) = amplification(&[("overprovision", "30%")]);
    let (_, half) = amplification(&[("fill", "50%")]);
    assert!(
        spare < plain && half < plain,
        "{spare} and {half} of {plain}"
    );
    assert_eq!(kept.set, sold.set, "the same smaller drive, in a condition");
    assert!((kept.smaller / sold.smaller - 1.0).abs() < 0.01, "{kept:?}");
    let share = kept.capacity_bytes as f64 / sold.capacity_bytes as f64;
    assert!((share - 0.7).abs() < 0.001, "{share}");
    // A user's changed figures are combined with those of the smaller drive, and with a format of its list.
    let slow = set(
        "p3700-800",
        &[("set", "nand.medium.read=200us"), ("lba-format", "4096")],
    );
    let slow = run(&slow);
    let mean = |told: &page_engine::Results| told.read.as_ref().map(|it| it.direction.mean_us);
    assert!(mean(&slow) > mean(&run(&experiment("p3700-800"))));
    // For a pool, its members.
    let pool = set("mirror(2*p3700-800)", &[("overprovision", "30%")]);
    let pool = run(&Experiment {
        whole: true,
        ..pool
    });
    let of_pool = pool.about.capacity_bytes as f64 / kept.capacity_bytes as f64;
    assert!((of_pool - 1.0).abs() < 1e-4, "{of_pool}");
}

#[test]
fn what_cannot_be_set_is_told_as_the_option_that_says_it() {
    let wrong = |drive: &str, options: &[(&str, &str)], words: &[&str]| {
        let answer = asked(&set(drive, options));
        assert!(answer.starts_with(r#"{"problems":["#), "{answer}");
        for word in words {
            assert!(answer.contains(word), "{word}: {answer}");
        }
    };
    let two = [("fill", "much"), ("colour", "red")];
    wrong("p4800x-375", &two, &["--fill=much", "--colour=red"]);
    wrong("p4800x-375", &[("lba-format", "4097+3")], &["--lba-format"]);
    wrong(
        "exos-x18-16tb",
        &[("age", "3y"), ("percentage-used", "3")],
        &["--age"],
    );
    let fresh = Experiment {
        state: "fresh".into(),
        ..set("p3700-800", &[("fill", "50%")])
    };
    assert!(
        asked(&fresh).contains("a fresh drive holds no data"),
        "{}",
        asked(&fresh)
    );
}

#[test]
fn all_problems_are_told_at_once_with_their_lines() {
    let wrong = Experiment {
        drive: "mirror(2*p4801x-101)".into(),
        job: "[a]\nrw=sideways\n".into(),
        host: "nowhere".into(),
        state: "tired".into(),
        ..experiment("")
    };
    let answer = asked(&wrong);
    assert!(answer.starts_with(r#"{"problems":["#), "{answer}");
    for word in ["p4801x-101", "sideways", "job.fio:2", "nowhere", "tired"] {
        assert!(answer.contains(word), "{word}: {answer}");
    }
    let text = Experiment {
        toml: Some("name = 1\n".into()),
        drive: "mine.toml".into(),
        ..experiment("")
    };
    assert!(asked(&text).contains("mine.toml:1"), "{}", asked(&text));
    let trace = Experiment {
        job: "[a]\nioengine=libaio\nread_iolog=vm.log\n".into(),
        ..experiment("p4800x-375")
    };
    assert!(
        asked(&trace).contains("a page cannot read files"),
        "{}",
        asked(&trace)
    );
    let answer = Engine::default().answer(br#"{"experiment":{"drive":"p4800x-375"}}"#);
    assert!(answer.contains("missing field"), "{answer}");
}

#[test]
fn of_several_jobs_it_is_told_that_they_are_together() {
    let of = |job: &str| {
        let asked = Experiment {
            job: job.into(),
            ..experiment("p4800x-375")
        };
        Engine::default()
            .experiment(&asked)
            .expect("it runs")
            .warnings
    };
    let together = |told: &[String]| told.iter().any(|it| it.contains("together (mix, more)"));
    assert!(together(&of(&format!("{JOB}[more]\n"))));
    assert!(!of(JOB).iter().any(|it| it.contains("together")));
}
