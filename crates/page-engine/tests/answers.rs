//! Answers do not depend on earlier questions, and all problems of a question are reported at once.

use page_engine::{Engine, Question};

fn question(drive: &str, options: &[&str]) -> Question {
    let usual = ["--ioengine=libaio", "--direct=1", "--number_ios=300"];
    Question {
        drive: drive.into(),
        set: Vec::new(),
        power_limit_watts: None,
        host: catalogue::TYPICAL_HOST.into(),
        state: "steady".into(),
        seed: 1,
        options: usual
            .iter()
            .chain(options)
            .map(ToString::to_string)
            .collect(),
    }
}

fn asked(engine: &Engine, question: &Question) -> String {
    engine.answer(&serde_json::to_vec(question).expect("plain data"))
}

#[test]
fn an_answer_does_not_depend_on_the_one_before() {
    let engine = Engine::default();
    let mut small = question("950pro-256", &["--rw=randwrite", "--iodepth=4"]);
    small.set = vec![("capacity".into(), "200 GB".into())];
    // The governor does not limit a burst.
    let long = ["--rw=randwrite", "--iodepth=16", "--number_ios=20000"];
    let mut governed = question("p4800x-375", &long);
    governed.power_limit_watts = Some(8.0);
    let questions = [
        question("950pro-256", &["--rw=randwrite", "--iodepth=4"]),
        question("950pro-256", &["--rw=randrw", "--iodepth=4"]),
        small,
        governed.clone(),
        question("p4800x-375", &long),
        question("950pro-256", &["--rw=randwrite", "--iodepth=4"]),
    ];
    let answers: Vec<String> = questions.iter().map(|it| asked(&engine, it)).collect();
    for (question, answer) in questions.iter().zip(&answers) {
        assert!(answer.starts_with(r#"{"figures":{"#), "{answer}");
        assert_eq!(answer, &asked(&Engine::default(), question));
    }
    assert_eq!(answers[0], answers[5]);
    // Settings are not ignored.
    assert_ne!(answers[0], answers[2]);
    assert_ne!(answers[3], answers[4]);
}

#[test]
fn what_is_prepared_answers_the_same() {
    let engine = Engine::default();
    let mut writes = question("group", &["--rw=randwrite", "--iodepth=4"]);
    let prepare = serde_json::json!({ "prepare": &writes }).to_string();
    assert_eq!(engine.answer(prepare.as_bytes()), r#"{"prepared":null}"#);
    // Also with another setting of the pool.
    for buffer in ["30 %", "95 %"] {
        writes.set = vec![("tier.group.start.buffer".into(), buffer.into())];
        let answer = asked(&engine, &writes);
        assert!(answer.starts_with(r#"{"figures":{"#), "{answer}");
        assert_eq!(answer, asked(&Engine::default(), &writes));
    }
    writes.drive = "no-such-drive".into();
    let prepare = serde_json::json!({ "prepare": &writes }).to_string();
    let answer = engine.answer(prepare.as_bytes());
    assert!(answer.starts_with(r#"{"problems":["#), "{answer}");
}

#[test]
fn figures_add_up() {
    let engine = Engine::default();
    let threads = question(
        "p4800x-375",
        &[
            "--rw=randrw",
            "--rwmixread=70",
            "--iodepth=2",
            "--numjobs=4",
        ],
    );
    let figures = engine.run(&threads).expect("it runs");
    let (read, write) = (figures.read.expect("reads"), figures.write.expect("writes"));
    assert_eq!(read.ios + write.ios, 4 * 300);
    for direction in [&read, &write] {
        let parts: f64 = direction.parts.iter().map(|(_, us)| us).sum();
        // The sum of the parts is a whole number of nanoseconds, and their means are rounded.
        assert!(
            (parts / direction.mean_us - 1.0).abs() < 1e-6,
            "{direction:?}"
        );
        assert!((direction.mb_s / direction.iops - 4096e-6).abs() < 1e-9);
    }
}

#[test]
fn all_problems_are_told_at_once() {
    let mut wrong = question("p4800x-376", &["--rw=sideways"]);
    wrong.host = "nowhere".into();
    wrong.state = "tired".into();
    let answer = asked(&Engine::default(), &wrong);
    for word in ["p4800x-376", "sideways", "nowhere", "tired"] {
        assert!(answer.contains(word), "{word}: {answer}");
    }
    assert!(answer.starts_with(r#"{"problems":["#));
    let answer = Engine::default().answer(b"{}");
    assert!(answer.contains("missing field"), "{answer}");
    let beyond = question("p4800x-375", &["--rw=randread", "--offset=400g"]);
    let answer = asked(&Engine::default(), &beyond);
    assert!(answer.starts_with(r#"{"problems":["#), "{answer}");
}
