//! Tests of the translation of arguments into requests: defaults, and commands that repeat requests.

use clap::Parser;
use serde_json::{Map, Value, json};
use study::ask::repeat::Face;
use study::ask::{Ask, CheckRequest, DriveSpec, Fill, Life, Max, Mix, Odds, defaults, repeat};

use crate::{Cli, Verb};

/// Requests for each question and seed.
const REQUESTS: u64 = 200;

/// A question, as the command line parses it and as requests are drawn.
struct Question<A> {
    /// Returns the request of the arguments.
    parsed: fn(&Verb) -> Option<A>,
    /// Shortest command line, without `drivelab` and the subcommand.
    shortest: &'static [&'static str],
    /// Fields of the shortest command line, besides the drive.
    given: Value,
    /// Values of each field, one of which is drawn.
    values: Value,
}

/// Returns the request that this command line makes.
fn parse<A>(question: &Question<A>, words: &[String]) -> A {
    let parsed = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    (question.parsed)(&parsed.verb).unwrap_or_else(|| panic!("{words:?}: another subcommand"))
}

/// Splits a command as a shell does.
fn shell(command: &str) -> Vec<String> {
    let script = format!("printf '%s\\0' {command}");
    let done = std::process::Command::new("sh")
        .args(["-c", &script])
        .output();
    let text = String::from_utf8(done.expect("a shell").stdout).expect("UTF-8");
    let words = text.trim_end_matches('\0').split('\0');
    words.map(str::to_owned).collect()
}

/// Draws numbers from a seed (SplitMix64).
struct Draw(u64);

impl Draw {
    fn number(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    fn one<'a>(&mut self, values: &'a Value) -> &'a Value {
        let values = values.as_array().expect("a list of values");
        &values[self.number(values.len())]
    }
}

fn drives(draw: &mut Draw) -> Value {
    let names = json!([
        "p4800x-375",
        "mirror(2*p4801x-100)",
        "./my drive.toml",
        "it's.toml"
    ]);
    let settings = json!([
        [],
        [["power-limit", "12W"]],
        [
            ["set", "xpoint.power.limit=12 W"],
            ["set", "a.b=\"c d\""],
            ["uptime", "10min"]
        ],
        [
            ["overprovision", "7.1%"],
            ["fill", "80%"],
            ["age", "3y@20MB/s"]
        ],
        [
            ["lba-format", "4096+8"],
            ["percentage-used", "104"],
            ["wear-factor", "100000"]
        ],
    ]);
    let settings = draw.one(&settings).clone();
    let count = 1 + draw.number(3);
    let drive = |_| json!({ "name": draw.one(&names), "settings": settings });
    (0..count).map(drive).collect()
}

fn holds<A: Ask + std::fmt::Debug>(question: &Question<A>) {
    let drive = json!([DriveSpec {
        name: "p4800x-375".into(),
        ..DriveSpec::default()
    }]);
    let mut fields = question.given.as_object().expect("fields").clone();
    fields.insert("drives".into(), drive);
    let usual = A::read(fields).expect("its fields");
    let words = ["drivelab", A::NAME].iter().chain(question.shortest);
    let words: Vec<String> = words.map(|word| (*word).to_owned()).collect();
    assert_eq!(parse(question, &words), usual, "defaults of {}", A::NAME);

    let values = question.values.as_object().expect("fields");
    let all = serde_json::to_value(A::default()).expect("a request");
    let all = all.as_object().expect("fields").keys();
    let drawn = all.filter(|key| *key != "drives" && !values.contains_key(*key));
    assert_eq!(
        drawn.collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "never drawn"
    );
    for seed in 0..REQUESTS {
        let mut draw = Draw(seed);
        let mut fields: Map<String, Value> = question.given.as_object().expect("fields").clone();
        fields.insert("drives".into(), drives(&mut draw));
        for (key, values) in values {
            if draw.number(2) == 0 {
                fields.insert(key.clone(), draw.one(values).clone());
            }
        }
        let request = A::read(fields).expect("a request");
        let command = repeat(&request, Face::CommandLine);
        assert_eq!(parse(question, &shell(&command)), request, "{command}");
    }
}

const DRIVE: &[&str] = &["p4800x-375"];

#[test]
fn max_is_parsed_with_its_defaults_and_repeated() {
    holds::<Max>(&Question {
        parsed: |verb| match verb {
            Verb::Max(args) => Some(Max::from(&**args)),
            _ => None,
        },
        shortest: &["p4800x-375", "--slo", "p99<1ms"],
        given: json!({ "slo": "p99<1ms" }),
        values: json!({
            "slo": ["read.p99<2ms,iops>50k", "it's"],
            "rw": ["randrw", "randread", "write"],
            "rwmixread": [0, 50, 100],
            "bs": ["4k", "-1", "16k"],
            "numjobs": [1, 256],
            "fio": [[["size", "20%"]], [["random_distribution", "zipf:1.1"], ["a", "b=c"]]],
            "ios": [1000, 100_000_000],
            "host": ["linux", "./my host.toml"],
            "state": ["auto", "fresh", "filled", "steady"],
            "seed": [0, 1, 9_007_199_254_740_991_u64],
            "seeds": [1, 3, 20],
        }),
    });
}

#[test]
fn mix_is_parsed_with_its_defaults_and_repeated() {
    holds::<Mix>(&Question {
        parsed: |verb| match verb {
            Verb::Mix(args) => Some(Mix::from(&**args)),
            _ => None,
        },
        shortest: DRIVE,
        given: json!({}),
        values: json!({
            "rw": ["randrw", "rw"],
            "step": [1, 10, 100],
            "bs": ["4k", "128k"],
            "iodepth": [2, 32, 1024],
            "numjobs": [1, 256],
            "fio": [[["size", "20%"]]],
            "ios": [1000],
            "host": ["linux", "xeon-2017"],
            "state": ["auto", "fresh"],
            "seed": [1, 2],
            "seeds": [1, 3],
        }),
    });
}

#[test]
fn fill_is_parsed_with_its_defaults_and_repeated() {
    holds::<Fill>(&Question {
        parsed: |verb| match verb {
            Verb::Fill(args) => Some(Fill::from(args)),
            _ => None,
        },
        shortest: DRIVE,
        given: json!({}),
        values: json!({
            "used": [[50, 90, 98], [0], [100, 0]],
            "random": [true, false],
            "bs": ["4k", "1m"],
            "iodepth": [1, 1024],
            "host": ["linux", "xeon-2017"],
            "seed": [1, 2],
            "seeds": [1, 3],
        }),
    });
}

#[test]
fn check_is_parsed_with_its_defaults_and_repeated() {
    holds::<CheckRequest>(&Question {
        parsed: |verb| match verb {
            Verb::Check(args) => Some(CheckRequest::from(args)),
            _ => None,
        },
        shortest: &["etcd", "p4800x-375"],
        given: json!({ "software": "etcd" }),
        values: json!({
            "software": ["etcd", "vsan"],
            "host": ["linux", "xeon-2017"],
            "state": ["fresh", "filled", "steady"],
            "seed": [1, 2],
            "seeds": [1, 3],
        }),
    });
}

#[test]
fn odds_is_parsed_with_its_defaults_and_repeated() {
    holds::<Odds>(&Question {
        parsed: |verb| match verb {
            Verb::Odds(args) => Some(Odds::from(&**args)),
            _ => None,
        },
        shortest: DRIVE,
        given: json!({}),
        values: json!({
            "replace_after": ["24h", "90 min", "0h"],
            "afr": [["1%"], ["0.5%", "p4801x-100=0.2%"]],
            "crashes": [0.0, 1.0, 2.5],
            "years": [1.0, 5.0, 2.5],
            "host": ["linux", "xeon-2017"],
            "seed": [1, 2],
        }),
    });
}

/// Checks `life` with one of the loads that exclude each other; fields that do not belong to the load are never given.
fn life_holds(shortest: &'static [&'static str], given: Value, also: Value) {
    let mut values = json!({
        "load": [null], "job": [null], "trace": [null], "users": [null], "rate": [null], "writes": [null],
        "rw": ["randwrite", "write"],
        "bs": ["4k", "32k"],
        "years": [0.5, 5.0, 100.0],
        "runtime": ["500ms", "2 s"],
        "host": ["linux", "xeon-2017"],
        "state": ["auto", "fresh"],
        "seed": [1, 2],
        "seeds": [1, 3],
    });
    let all = values.as_object_mut().expect("fields");
    for (key, drawn) in also.as_object().expect("fields") {
        all.insert(key.clone(), drawn.clone());
    }
    for (key, given) in given.as_object().expect("fields") {
        all.insert(key.clone(), json!([given]));
    }
    holds::<Life>(&Question {
        parsed: |verb| match verb {
            Verb::Life(args) => Some(Life::from(&**args)),
            _ => None,
        },
        shortest,
        given,
        values,
    });
}

#[test]
fn life_is_parsed_with_its_defaults_and_repeated() {
    let rates = json!(["50k", "300MB/s", "2TB/day"]);
    life_holds(DRIVE, json!({}), json!({}));
    life_holds(
        &["p4800x-375", "--load", "kvcache"],
        json!({ "load": "kvcache" }),
        json!({ "users": [1, 10_000_000] }),
    );
    life_holds(
        &["p4800x-375", "--job", "my job.fio"],
        json!({ "job": "my job.fio" }),
        json!({ "rate": rates }),
    );
    life_holds(
        &["p4800x-375", "--trace=-t.csv"],
        json!({ "trace": "-t.csv" }),
        json!({}),
    );
    life_holds(
        &["p4800x-375", "--writes", "1DWPD"],
        json!({ "writes": "1DWPD" }),
        json!({}),
    );
}

#[test]
fn the_page_of_lab_begins_with_the_defaults_of_requests() {
    let script = include_str!("../../report/src/page/script/lab.js");
    let (state, seed) = (defaults::AUTO, defaults::SEED);
    let begins = format!("state: \"{state}\", seed: \"{seed}\"");
    assert!(script.contains(&begins), "lab.js has not {begins}");
}
