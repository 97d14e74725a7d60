//! `drivelab run` with the arguments that a page shows gives the page's figures: the page engine and the program make
//! the same scenario from them.

use page_engine::{Direction, Engine, Question};

use crate::rig::drivelab_in;

/// Compares the figures of a run by the command with those of the engine, both with six digits.
fn compared(question: &Question) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut words = vec![
        String::from("run"),
        question.drive.clone(),
        format!("--host={}", question.host),
        format!("--state={}", question.state),
        format!("--seed={}", question.seed),
        String::from("--csv=run.csv"),
    ];
    let set = question.set.iter();
    words.extend(set.map(|(key, value)| format!("--set={key}={value}")));
    words.extend(
        question
            .power_limit_watts
            .map(|watts| format!("--power-limit={watts}W")),
    );
    words.extend(question.options.iter().cloned());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = drivelab_in(folder.path(), &words);
    assert!(output.status.success(), "{output:?}");
    let figures = Engine::default().run(question).expect("it runs");
    let file = folder.path().join("run.csv");
    let mut reader = ::csv::Reader::from_path(file).expect("the file is there");
    let names = reader.headers().expect("a header").clone();
    let mut seen = 0;
    for row in reader.records().map(|row| row.expect("a row")) {
        let cell = |name: &str| &row[names.iter().position(|it| it == name).expect(name)];
        let direction: &Direction = match cell("direction") {
            "read" => figures.read.as_ref().expect("reads"),
            "write" => figures.write.as_ref().expect("writes"),
            other => panic!("{other}"),
        };
        let both = [
            ("ios", direction.ios as f64),
            ("iops", direction.iops),
            ("mb_s", direction.mb_s),
            ("mean_us", direction.mean_us),
            ("p50_us", direction.p50_us.expect("enough I/Os")),
            ("p99_us", direction.p99_us.expect("enough I/Os")),
            ("max_us", direction.max_us),
            ("watts", figures.watts.expect("it has a power")),
        ];
        for (name, page) in both {
            let program: f64 = cell(name).parse().expect("a number");
            assert!(
                (program / page - 1.0).abs() < 1e-5,
                "{name}: {program}, {page}"
            );
        }
        seen += 1;
    }
    assert_eq!(
        seen,
        usize::from(figures.read.is_some()) + usize::from(figures.write.is_some())
    );
}

#[test]
fn the_program_repeats_what_a_page_shows() {
    let options = |own: &[&str]| {
        let usual = [
            "--name=what-if",
            "--ioengine=libaio",
            "--direct=1",
            "--bs=8k",
            "--iodepth=2",
            "--numjobs=8",
            "--group_reporting",
            "--norandommap",
            "--number_ios=1250",
        ];
        let all = usual.iter().chain(own).map(ToString::to_string);
        all.collect::<Vec<String>>()
    };
    let small = [
        ("capacity", "50 GB"),
        ("nand.array.blocks_per_plane", "859"),
        ("nand.array.pages_per_block", "21"),
        ("nand.array.reserved", "0 %"),
    ];
    let question = Question {
        drive: String::from("p3700-1600"),
        set: small
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .to_vec(),
        power_limit_watts: None,
        host: String::from("linux"),
        state: String::from("steady"),
        seed: 7,
        options: options(&["--rw=randrw", "--rwmixread=70"]),
    };
    compared(&question);
    compared(&Question {
        drive: String::from("p4800x-375"),
        set: Vec::new(),
        power_limit_watts: Some(8.0),
        host: String::from("xeon-2017"),
        options: options(&["--rw=randwrite"]),
        ..question
    });
}
