//! Plans: the fio jobs of a measurement, their order, and which of them run in rounds.
//!
//! A plan is one file of fio jobs, or several files in sequence. Each section is a step, and steps run one at a time.
//! Comments of the form `; key: value` add what fio's options cannot express. Keys at the top: `plan`, `about`,
//! `rounds` (maximum number), `written` (rounds end after this multiple of the capacity has been written, instead of
//! in steady state) and `source`. Keys in a section: `phase` (`prepare` or `round`; without it, the step is measured
//! once); `steady: yes` if its rate determines steady state; `beside`, the competing writes in percent of the rate of
//! the rounds ([`super::beside`]). Not supported: `include`, keywords and variables of job files, which these plans
//! do not need.

use serde::{Deserialize, Serialize};
use text::problem::{Problems, nearest};

/// fio jobs whose results determine the parameters of a drive's model: latency, depth, size, mixes.
pub const STANDARD_JOBS: &str = include_str!("plans/standard.fio");

/// fio jobs on a null device, whose results determine the parameters of a host.
pub const HOST_JOBS: &str = include_str!("plans/host.fio");

/// Name and files of each plan.
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

/// Options of the jobs that the measurement sets itself.
const REPLACED: [&str; 2] = ["ioengine", "stonewall"];

/// Returns the names of the plans.
pub fn names() -> impl Iterator<Item = &'static str> {
    PLANS.iter().map(|(name, _)| *name)
}

/// Phase of a step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepPhase {
    /// Once, before all others; its figures are not used.
    Prepare,
    /// Repeated until the rounds are steady.
    Round,
    /// Once, after the rounds.
    Measure,
}

/// A single fio call.
#[derive(Clone, PartialEq, Debug)]
pub struct PlanStep {
    /// Name of its job.
    pub name: String,
    /// Phase in which it runs.
    pub phase: StepPhase,
    /// Whether its rate determines steady state.
    pub is_tracked: bool,
    /// For rate-limited I/Os, the competing writes in percent of the rate of the rounds that remains.
    pub beside: Option<u32>,
    /// fio options without the engine and the target; those without a value have an empty string.
    pub options: Vec<(String, String)>,
}

impl PlanStep {
    /// Returns the value of an option; `None` if it is absent.
    pub fn option(&self, key: &str) -> Option<&str> {
        let found = self.options.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_str())
    }

    /// Checks whether the step only reads.
    pub fn only_reads(&self) -> bool {
        matches!(self.option("rw"), None | Some("read" | "randread"))
    }

    /// Returns the seconds that the step runs, including warm-up; `None` if it ends after a number of bytes.
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

    /// Returns the block size of the step in bytes.
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

/// A plan: jobs in the order in which they run.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Name on the command line.
    pub name: String,
    /// Description in one sentence.
    pub about: String,
    /// Maximum number of rounds.
    pub rounds: u32,
    /// The rounds end when this multiple of the capacity has been written, whether steady or not; `None` ends them in
    /// steady state.
    pub written: Option<f64>,
    /// Steps by phase: preparation, rounds, measurement.
    pub steps: Vec<PlanStep>,
    /// Text of the plan's files.
    pub jobs: String,
}

impl Plan {
    /// Returns the plan with this name.
    ///
    /// # Errors
    /// No such plan.
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
        let rounds = plan.in_phase(StepPhase::Round).count();
        let tracked = plan
            .in_phase(StepPhase::Round)
            .filter(|step| step.is_tracked);
        if (rounds > 0) != (tracked.count() == 1) {
            problems
                .0
                .extend(wrong("one step of a round must have `; steady: yes`"));
        }
        if rounds > 0 && (plan.rounds as usize) < statistics::ROUNDS {
            problems.0.extend(wrong(
                "`; rounds: ` must be at least five if the plan has rounds",
            ));
        }
        if !plan.steps.is_sorted_by_key(|step| step.phase) {
            problems
                .0
                .extend(wrong("steps must be in the order prepare, round, measured"));
        }
        problems.or(plan)
    }

    /// Adds the sections of a file.
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
                    self.steps.push(PlanStep {
                        name: name.to_owned(),
                        phase: StepPhase::Measure,
                        is_tracked: false,
                        beside: None,
                        options: globals.clone(),
                    });
                }
            } else if let Some((key, value)) = parse_comment(line) {
                if !self.apply_comment(section, key, value) {
                    wrong("this comment key is not known here");
                }
            } else if !line.is_empty() && !line.starts_with([';', '#']) {
                let (key, value) = line.split_once('=').unwrap_or((line, ""));
                match (section, self.steps.last_mut()) {
                    _ if REPLACED.contains(&key) => {}
                    (Some("global"), _) => globals.push((key.to_owned(), value.to_owned())),
                    (Some(_), Some(step)) => step.set(key, value),
                    _ => wrong("is before the first section"),
                }
            }
        }
        problems.or(())
    }

    /// Evaluates a `; key: value` comment, and returns whether the key is known.
    fn apply_comment(&mut self, section: Option<&str>, key: &str, value: &str) -> bool {
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
                    "prepare" => StepPhase::Prepare,
                    "round" => StepPhase::Round,
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

    /// Returns the steps of a phase.
    pub fn in_phase(&self, phase: StepPhase) -> impl Iterator<Item = &PlanStep> {
        self.steps.iter().filter(move |step| step.phase == phase)
    }

    /// Checks whether any step writes.
    pub fn writes(&self) -> bool {
        !self.steps.iter().all(PlanStep::only_reads)
    }

    /// Returns the plan without the steps that write.
    ///
    /// # Errors
    /// Its rounds write, or no step is left.
    pub fn reads_alone(mut self) -> Result<Plan, Problems> {
        let is_measured = self
            .in_phase(StepPhase::Measure)
            .any(|step| step.only_reads());
        if !is_measured {
            let what = "the measured rounds of this plan write: it cannot run with reads only";
            let mut problems = Problems::whole(self.name, what);
            problems.0[0].help = Some("--plan quick, or --plan fit with --read-only".into());
            return Err(problems);
        }
        self.steps
            .retain(|step| step.phase == StepPhase::Measure && step.only_reads());
        Ok(self)
    }

    /// Shortens steps that run for a time to this number of seconds; their warm-up becomes shorter in proportion.
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

    /// Removes the steps whose I/Os are smaller than a block of the device, and returns their names.
    pub fn without_smaller_than(&mut self, block_bytes: u32) -> Vec<String> {
        let fits = |step: &PlanStep| {
            step.block_bytes()
                .is_none_or(|it| it % u64::from(block_bytes) == 0)
        };
        let out = self.steps.iter().filter(|step| !fits(step));
        let out = out.map(|step| step.name.clone()).collect();
        self.steps.retain(fits);
        out
    }
}

/// Returns key and value of a comment `; key: value`, if the line is one.
fn parse_comment(line: &str) -> Option<(&str, &str)> {
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

    /// The plans are valid fio files, and their jobs can be simulated.
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

    /// Seven mixes of eight block sizes, as in the specification.
    #[test]
    fn the_snias_round_is_56_minutes() {
        let plan = Plan::named("snia").expect("a plan");
        let round: Vec<&PlanStep> = plan.in_phase(StepPhase::Round).collect();
        let seconds: f64 = round.iter().filter_map(|step| step.seconds()).sum();
        assert_eq!((round.len(), seconds, plan.rounds), (56, 3360.0, 25));
        let tracked: Vec<&PlanStep> = round.into_iter().filter(|it| it.is_tracked).collect();
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
        assert!(snia.is_err_and(|wrong| {
            wrong
                .to_string()
                .contains("the measured rounds of this plan write")
        }));
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
