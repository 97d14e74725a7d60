//! Plans: which jobs of fio's run, in which order, and which of them in rounds.
//!
//! A plan is one file of fio's jobs, or several one after the other; each section is a step, and steps run alone. Comments of
//! the form `; key: value` say what fio has no words for: at the top `plan`, `about`, `rounds` (at most so many), `written` (rounds end
//! after so many times the capacity, and not when they are steady) and `source`, in a section its `phase` (`prepare`, `round`; without one it is measured once) and `steady: yes`, if its rate tells whether rounds are
//! steady, and `beside`, the percent of what the rounds took that others write meanwhile ([`super::beside`]). Left out: `include`, keywords and variables of job files, which the plans here do not need.

use serde::{Deserialize, Serialize};
use text::problem::{Problems, nearest};

/// fio jobs whose results fix what a drive's model can be fitted in: latency, depth, size, mixes.
pub const STANDARD_JOBS: &str = include_str!("plans/standard.fio");

/// fio jobs on a null device whose results a host can be fitted in.
pub const HOST_JOBS: &str = include_str!("plans/host.fio");

/// Name and files of each.
const PLANS: [(&str, &[&str]); 8] = [
    ("quick", &[include_str!("plans/quick.fio")]),
    ("fit", &[include_str!("plans/fit.fio"), STANDARD_JOBS]),
    ("snia", &[include_str!("plans/snia.fio")]),
    (
        "snia-throughput-128k",
        &[include_str!("plans/snia-throughput-128k.fio")],
    ),
    (
        "snia-throughput-1m",
        &[include_str!("plans/snia-throughput-1m.fio")],
    ),
    ("snia-latency", &[include_str!("plans/snia-latency.fio")]),
    (
        "snia-saturation",
        &[include_str!("plans/snia-saturation.fio")],
    ),
    ("under-load", &[include_str!("plans/under-load.fio")]),
];

/// Options of the jobs that the measurement chooses by itself.
const REPLACED: [&str; 2] = ["ioengine", "stonewall"];

/// Names of the plans.
pub fn names() -> impl Iterator<Item = &'static str> {
    PLANS.iter().map(|(name, _)| *name)
}

/// When a step runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Once, before all others: its figures are not of interest.
    Prepare,
    /// Again and again until the rounds are steady.
    Round,
    /// Once, after the rounds.
    Measure,
}

/// One call of fio.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Name of its job.
    pub name: String,
    /// When it runs.
    pub phase: Phase,
    /// Whether its rate tells if the rounds are steady.
    pub is_tracked: bool,
    /// Where its I/Os have a pace: how much is written beside them, in percent of what the rounds leave.
    pub beside: Option<u32>,
    /// Options as fio takes them, without the engine and the target; those without a value have an empty one.
    pub options: Vec<(String, String)>,
}

impl Step {
    /// The value of an option; `None` if it is not there.
    pub fn option(&self, key: &str) -> Option<&str> {
        let found = self.options.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether it does nothing but read.
    pub fn only_reads(&self) -> bool {
        matches!(self.option("rw"), None | Some("read" | "randread"))
    }

    /// Seconds that it runs, warm-up included; `None` if it ends after so many bytes.
    pub fn seconds(&self) -> Option<f64> {
        let of = |key: &str| {
            let value = self.option(key)?;
            match value.strip_suffix("ms") {
                Some(ms) => ms.parse::<f64>().ok().map(|ms| ms / 1e3),
                None => value.parse::<f64>().ok(),
            }
        };
        self.option("time_based")?;
        Some(of("runtime")? + of("ramp_time").unwrap_or(0.0))
    }

    /// Bytes of an I/O.
    pub fn block_bytes(&self) -> Option<u64> {
        let value = self.option("bs")?;
        match value.strip_suffix('k') {
            Some(kib) => kib.parse::<u64>().ok().map(|kib| kib * 1024),
            None => value.parse().ok(),
        }
    }

    fn set(&mut self, key: &str, value: &str) {
        self.options.retain(|(known, _)| known != key);
        self.options.push((key.to_owned(), value.to_owned()));
    }
}

/// Jobs in the order in which they run.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Its name on the command line.
    pub name: String,
    /// What it does, in a sentence.
    pub about: String,
    /// Rounds at most.
    pub rounds: u32,
    /// Rounds end once the capacity was written so many times, steady or not; without it, once they are steady.
    pub written: Option<f64>,
    /// By phase: those that prepare, those of a round, those that measure.
    pub steps: Vec<Step>,
    /// Its files.
    pub jobs: String,
}

impl Plan {
    /// The plan of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Plan, Problems> {
        let found = PLANS.iter().find(|(known, _)| *known == name);
        match found {
            Some((_, files)) => Plan::read(name, files),
            None => {
                let mut problems = Problems::whole(name, "there is no such plan");
                let all = names().collect::<Vec<_>>().join(", ");
                problems.0[0].help = Some(match nearest(name, names()) {
                    Some(near) => format!("did you mean {near}? There are {all}"),
                    None => format!("there are {all}"),
                });
                Err(problems)
            }
        }
    }

    fn read(origin: &str, files: &[&str]) -> Result<Plan, Problems> {
        let mut plan = Plan {
            name: origin.to_owned(),
            about: String::new(),
            rounds: 0,
            written: None,
            steps: Vec::new(),
            jobs: files.concat(),
        };
        let mut problems = Problems::default();
        for text in files {
            if let Err(more) = plan.file(origin, text) {
                problems.0.extend(more.0);
            }
        }
        let wrong = |what: &str| Problems::whole(origin, what).0;
        let rounds = plan.in_phase(Phase::Round).count();
        let tracked = plan.in_phase(Phase::Round).filter(|step| step.is_tracked);
        if (rounds > 0) != (tracked.count() == 1) {
            problems
                .0
                .extend(wrong("of the steps of a round one is `; steady: yes`"));
        }
        if rounds > 0 && (plan.rounds as usize) < statistics::ROUNDS {
            problems.0.extend(wrong(
                "`; rounds: ` is at least five where there are rounds",
            ));
        }
        if !plan.steps.is_sorted_by_key(|step| step.phase) {
            problems
                .0
                .extend(wrong("steps stand in the order prepare, round, measured"));
        }
        problems.or(plan)
    }

    /// Takes the sections of one file.
    fn file(&mut self, origin: &str, text: &str) -> Result<(), Problems> {
        let mut globals: Vec<(String, String)> = Vec::new();
        let mut section: Option<&str> = None;
        let mut problems = Problems::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            let mut wrong = |what: &str| {
                let what = format!("line {}: {what}: `{line}`", number + 1);
                problems.0.extend(Problems::whole(origin, what).0);
            };
            if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
                section = Some(name);
                if name != "global" {
                    self.steps.push(Step {
                        name: name.to_owned(),
                        phase: Phase::Measure,
                        is_tracked: false,
                        beside: None,
                        options: globals.clone(),
                    });
                }
            } else if let Some((key, value)) = said(line) {
                if !self.told(section, key, value) {
                    wrong("that has no meaning here");
                }
            } else if !line.is_empty() && !line.starts_with([';', '#']) {
                let (key, value) = line.split_once('=').unwrap_or((line, ""));
                match (section, self.steps.last_mut()) {
                    _ if REPLACED.contains(&key) => {}
                    (Some("global"), _) => globals.push((key.to_owned(), value.to_owned())),
                    (Some(_), Some(step)) => step.set(key, value),
                    _ => wrong("stands before the first section"),
                }
            }
        }
        problems.or(())
    }

    /// Takes a comment that says something; whether it does.
    fn told(&mut self, section: Option<&str>, key: &str, value: &str) -> bool {
        match (section, key, self.steps.last_mut()) {
            (None, "plan", _) => value == self.name,
            (None, "about", _) => {
                self.about = value.to_owned();
                true
            }
            (None, "source", _) => true,
            (None, "written", _) => value.parse().map(|it| self.written = Some(it)).is_ok(),
            (None, "rounds", _) => value.parse().map(|it| self.rounds = it).is_ok(),
            (Some(_), "phase", Some(step)) => {
                step.phase = match value {
                    "prepare" => Phase::Prepare,
                    "round" => Phase::Round,
                    _ => return false,
                };
                true
            }
            (Some(_), "steady", Some(step)) => {
                step.is_tracked = value == "yes";
                step.is_tracked
            }
            (Some(_), "beside", Some(step)) => {
                step.beside = value.parse().ok().filter(|percent| *percent <= 100);
                step.beside.is_some()
            }
            _ => false,
        }
    }

    /// Steps of a phase.
    pub fn in_phase(&self, phase: Phase) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(move |step| step.phase == phase)
    }

    /// Whether a step of it writes.
    pub fn writes(&self) -> bool {
        !self.steps.iter().all(Step::only_reads)
    }

    /// The plan without what writes.
    ///
    /// # Errors
    /// Its rounds write, or nothing is left.
    pub fn reads_alone(mut self) -> Result<Plan, Problems> {
        let is_measured = self.in_phase(Phase::Measure).any(|step| step.only_reads());
        if !is_measured {
            let what = "what it measures are rounds that write: it has no form that only reads";
            let mut problems = Problems::whole(self.name, what);
            problems.0[0].help = Some("--plan quick, or --plan fit with --read-only".into());
            return Err(problems);
        }
        self.steps
            .retain(|step| step.phase == Phase::Measure && step.only_reads());
        Ok(self)
    }

    /// Steps that run for a time run for so many seconds; their warm-up becomes shorter in proportion.
    pub fn shorten(&mut self, seconds: f64) {
        for step in &mut self.steps {
            let number = |key: &str| step.option(key)?.parse::<f64>().ok();
            let (Some(runtime), ramp) = (number("runtime"), number("ramp_time")) else {
                continue;
            };
            let ms = |seconds: f64| format!("{}ms", (seconds * 1e3).ceil());
            step.set("runtime", &ms(seconds));
            if let Some(ramp) = ramp {
                step.set("ramp_time", &ms(ramp * seconds / runtime));
            }
        }
    }

    /// Takes out the steps whose I/Os are smaller than a block of the device; their names.
    pub fn without_smaller_than(&mut self, block_bytes: u32) -> Vec<String> {
        let fits = |step: &Step| {
            step.block_bytes()
                .is_none_or(|it| it % u64::from(block_bytes) == 0)
        };
        let out = self.steps.iter().filter(|step| !fits(step));
        let out = out.map(|step| step.name.clone()).collect();
        self.steps.retain(fits);
        out
    }
}

/// `; key: value`, if a line is such a comment.
fn said(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.strip_prefix("; ")?.split_once(": ")?;
    let is_key = !key.is_empty() && key.chars().all(|it| it.is_ascii_lowercase());
    is_key.then_some((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::fio::{Surroundings, read_text};

    fn all() -> impl Iterator<Item = Plan> {
        names().map(|name| Plan::named(name).unwrap_or_else(|wrong| panic!("{wrong}")))
    }

    /// The plans are fio's own files, and what they ask can be simulated.
    #[test]
    fn each_file_is_a_job_file() {
        let surroundings = Surroundings {
            environment: &|_| None,
            read: &|_| Err(std::io::Error::other("not read")),
            processors: 4,
        };
        for (name, files) in PLANS {
            let mut jobs = 0;
            for file in files {
                let engine = file.replace("[global]", "[global]\nioengine=libaio");
                let set = read_text(name, &engine, &surroundings).expect("fio takes it");
                jobs += set.jobs.len();
            }
            let plan = Plan::named(name).expect("a plan");
            assert_eq!(jobs, plan.steps.len(), "{name}");
            assert!(!plan.about.is_empty(), "{name}");
        }
    }

    #[test]
    fn steps_have_names_of_their_own_and_an_end() {
        for plan in all() {
            for (index, step) in plan.steps.iter().enumerate() {
                let others = &plan.steps[..index];
                assert!(
                    others.iter().all(|it| it.name != step.name),
                    "{}",
                    step.name
                );
                let ends = step.seconds().is_some() || step.option("loops").is_some();
                assert!(ends, "{} never ends", step.name);
                assert!(step.block_bytes().is_some(), "{}", step.name);
            }
        }
    }

    /// Seven mixes of eight block sizes, as the specification has them.
    #[test]
    fn the_snias_round_is_56_minutes() {
        let plan = Plan::named("snia").expect("a plan");
        let round: Vec<&Step> = plan.in_phase(Phase::Round).collect();
        let seconds: f64 = round.iter().filter_map(|step| step.seconds()).sum();
        assert_eq!((round.len(), seconds, plan.rounds), (56, 3360.0, 25));
        let tracked: Vec<&Step> = round.into_iter().filter(|it| it.is_tracked).collect();
        assert_eq!(tracked.len(), 1);
        assert_eq!(tracked[0].option("rw"), Some("randwrite"));
        assert_eq!(tracked[0].option("bs"), Some("4k"));
    }

    #[test]
    fn what_only_reads_writes_nothing() {
        assert!(!Plan::named("quick").expect("a plan").writes());
        let fit = Plan::named("fit").expect("a plan");
        assert!(fit.writes());
        let reads = fit.reads_alone().expect("it measures reads");
        assert!(!reads.writes());
        assert_eq!(reads.steps.len(), 7);
        let snia = Plan::named("snia").expect("a plan").reads_alone();
        assert!(snia.is_err_and(|wrong| wrong.to_string().contains("rounds that write")));
    }

    #[test]
    fn a_shorter_step_has_a_shorter_warm_up() {
        let mut plan = Plan::named("quick").expect("a plan");
        plan.shorten(1.5);
        assert_eq!(plan.steps[0].option("runtime"), Some("1500ms"));
        assert_eq!(plan.steps[0].option("ramp_time"), Some("200ms"));
        assert_eq!(plan.steps[0].seconds(), Some(1.7));
    }

    #[test]
    fn blocks_that_the_device_does_not_have_are_left_out() {
        let mut plan = Plan::named("snia").expect("a plan");
        assert_eq!(plan.without_smaller_than(512), [""; 0]);
        let out = plan.without_smaller_than(4096);
        assert_eq!(out.len(), 7);
        assert!(out.iter().all(|name| name.ends_with("-512")), "{out:?}");
    }

    #[test]
    fn a_file_that_is_wrong_is_told_with_all_that_is() {
        let text = "; rounds: 2\nbs=4k\n[a]\n; phase: later\n[b]\n; phase: round\n";
        let said = Plan::read("mine", &[text])
            .expect_err("it is wrong")
            .to_string();
        for part in [
            "line 2",
            "line 4",
            "`; steady: yes`",
            "at least five",
            "order",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(Plan::named("sina").is_err_and(|it| it.to_string().contains("did you mean snia")));
    }
}
