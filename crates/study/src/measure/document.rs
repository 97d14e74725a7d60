//! The single file of a measurement: the device, the host, the plan, and fio's JSON of every step as fio wrote it.
//!
//! The file is rewritten after each step, so that an interrupted measurement can resume, and every reader of fio's
//! results can read it. Not supported: results that were not written by fio.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use text::problem::{Place, Problem, Problems};

use super::course::{PlanProgress, RoundsVerdict};
use super::plan::{Plan, StepPhase};

/// Format name, in the first line of the file.
pub const FORMAT: &str = "drivelab measurement 1";

/// The measured device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredDevice {
    /// Kind: `block`, `file` or `nbd`.
    pub kind: String,
    /// Identity: the serial number, or a substitute for it.
    pub name: String,
    /// Path or URI, as the user gave it.
    pub path: String,
    /// Model name; null if the device does not report it. The same applies to the following fields.
    pub model: Option<String>,
    /// Firmware version.
    pub firmware: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Capacity in bytes.
    pub size_bytes: Option<u64>,
    /// Size of a logical block in bytes.
    pub block_bytes: Option<u32>,
    /// Whether the device reports that it rotates.
    pub is_rotational: Option<bool>,
    /// I/O scheduler of the block layer.
    pub scheduler: Option<String>,
}

/// The host that ran the measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredHost {
    /// Kernel release.
    pub kernel: String,
    /// Name of the processor.
    pub cpu: String,
    /// Number of processors.
    pub processors: u32,
    /// Version of fio.
    pub fio: String,
    /// fio's I/O engine.
    pub engine: String,
}

/// Parameters of the measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasureOptions {
    /// Name of the plan.
    pub plan: String,
    /// Whether the measurement may only read.
    pub is_read_only: bool,
    /// Seconds to which steps were shortened; null if they were not.
    pub runtime_s: Option<f64>,
    /// Bytes from the beginning that were used; null for all.
    pub size_bytes: Option<u64>,
    /// Steps that were left out because the device's logical blocks are too large.
    pub left_out: Vec<String>,
    /// Text of the plan's files.
    pub jobs: String,
}

/// A completed step.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepRecord {
    /// Name of the step.
    pub step: String,
    /// Phase of the step.
    pub phase: StepPhase,
    /// Round; null outside rounds.
    pub round: Option<u32>,
    /// fio's arguments.
    pub arguments: Vec<String>,
    /// fio's JSON result.
    pub fio: Value,
}

/// A measurement file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Format name; see [`FORMAT`].
    pub format: String,
    /// The measured device.
    pub device: MeasuredDevice,
    /// Properties of the host.
    pub host: MeasuredHost,
    /// Parameters of the measurement.
    pub asked: MeasureOptions,
    /// Notes for readers of the figures.
    pub notes: Vec<String>,
    /// Progress and steady state.
    pub verdict: RoundsVerdict,
    /// The completed steps.
    pub steps: Vec<StepRecord>,
}

fn problem(origin: &str, what: String, help: &str) -> Problem {
    Problem {
        origin: origin.to_owned(),
        place: Place::Whole,
        what,
        help: Some(help.to_owned()),
    }
}

/// Checks whether this is a measurement file, complete or damaged.
pub fn is_ours(root: &Value) -> bool {
    let format = root["format"].as_str();
    format.is_some_and(|format| format.starts_with("drivelab measurement"))
}

impl Document {
    /// Returns a measurement before its first step.
    pub fn new(
        device: MeasuredDevice,
        host: MeasuredHost,
        asked: MeasureOptions,
        notes: Vec<String>,
        plan: &Plan,
    ) -> Document {
        Document {
            format: FORMAT.to_owned(),
            device,
            host,
            asked,
            notes,
            verdict: PlanProgress::new(plan).verdict(),
            steps: Vec::new(),
        }
    }

    /// Returns the course before the first step on this device, or on the part of it that is used.
    pub fn course<'p>(&self, plan: &'p Plan) -> PlanProgress<'p> {
        PlanProgress::for_device(plan, self.asked.size_bytes.or(self.device.size_bytes))
    }

    /// Reads a measurement file; `origin` names it in messages.
    ///
    /// # Errors
    /// The text is not a measurement file.
    pub fn read(origin: &str, text: &str) -> Result<Document, Problems> {
        let help = "a file that `drivelab measure --output` made";
        let refused = |what: String| Problems(vec![problem(origin, what, help)]);
        let document: Document = serde_json::from_str(text)
            .map_err(|error| refused(format!("not a measurement: {error}")))?;
        match document.format == FORMAT {
            true => Ok(document),
            false => Err(refused(format!(
                "its format is `{}`; this program reads `{FORMAT}`",
                document.format
            ))),
        }
    }

    /// Returns the text of the file.
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Returns the progress of this measurement of `plan`, if it has the same parameters as `fresh`.
    ///
    /// # Errors
    /// All differences from `fresh`.
    pub fn resume<'p>(
        &self,
        origin: &str,
        fresh: &Document,
        plan: &'p Plan,
    ) -> Result<PlanProgress<'p>, Problems> {
        let other = "name another file with --output, or move this one away: it is not changed";
        let mut found = Vec::new();
        // The path of a device may change when the machine restarts.
        let moved = MeasuredDevice {
            path: fresh.device.path.clone(),
            ..self.device.clone()
        };
        differ("device", &moved, &fresh.device, &mut found);
        differ("host", &self.host, &fresh.host, &mut found);
        differ("asked", &self.asked, &fresh.asked, &mut found);
        let mut problems = Problems::default();
        problems
            .0
            .extend(found.into_iter().map(|what| problem(origin, what, other)));
        problems.or(())?;
        let mut course = fresh.course(plan);
        for (index, taken) in self.steps.iter().enumerate() {
            let wrong = |what: String| {
                let what = format!("step {}, {}: {what}", index + 1, taken.step);
                Problems(vec![problem(origin, what, other)])
            };
            let turn = course.next();
            let wanted = turn.map(|turn| (&turn.step.name, turn.round));
            if wanted != Some((&taken.step, taken.round)) {
                let what = match wanted {
                    Some((name, _)) => format!("the plan has the step {name} here"),
                    None => String::from("the plan has no further step"),
                };
                return Err(wrong(what));
            }
            course.take(&taken.fio).map_err(wrong)?;
        }
        Ok(course)
    }
}

/// Adds each key that differs between two parts of a file.
fn differ(name: &str, there: &impl Serialize, now: &impl Serialize, found: &mut Vec<String>) {
    let value = |part: Result<Value, serde_json::Error>| part.unwrap_or_default();
    let there = value(serde_json::to_value(there));
    let now = value(serde_json::to_value(now));
    for (key, now) in now.as_object().into_iter().flatten() {
        let there = &there[key];
        if there == now {
            continue;
        }
        found.push(match key == "jobs" {
            true => format!("{name}.{key}: the plan had other jobs"),
            false => format!("{name}.{key}: the file has {there}, this measurement {now}"),
        });
    }
}

/// fio's result of a step whose figures are used.
#[derive(Clone, PartialEq, Debug)]
pub struct StepResult {
    /// fio's JSON result.
    pub fio: Value,
    /// Differences from a plain fio result, one sentence each.
    pub unlike: Vec<String>,
}

/// Returns the steps outside rounds, and the last complete round; `origin` names the file in messages.
///
/// # Errors
/// The file is not a measurement, or has no results yet.
pub fn measured(origin: &str, root: Value) -> Result<Vec<StepResult>, Problems> {
    let document = Document::read(origin, &root.to_string())?;
    let verdict = &document.verdict;
    let mut unlike = document.notes.clone();
    if !verdict.is_complete {
        unlike.push(String::from(
            "the measurement was interrupted: some steps are missing",
        ));
    }
    if verdict.is_steady == Some(false) {
        unlike.push(format!("the drive was {}", verdict.text));
    }
    let last = document
        .steps
        .iter()
        .filter(|step| step.phase == StepPhase::Round);
    let of_last = |step: &&StepRecord| step.round == Some(verdict.rounds);
    // A rate-limited step under competing load is not a run of its own: see `paced`.
    let plan = Plan::named(&document.asked.plan).ok();
    let is_paced = |name: &str| {
        let mut steps = plan.iter().flat_map(|plan| &plan.steps);
        steps.any(|step| step.name == name && step.beside.is_some())
    };
    let measures = document
        .steps
        .iter()
        .filter(|step| step.phase == StepPhase::Measure && !is_paced(&step.step));
    let chosen: Vec<&StepRecord> = last.filter(of_last).chain(measures).collect();
    if chosen.is_empty() {
        let what = String::from("nothing has been measured yet");
        let help = "run the same `drivelab measure` again to continue";
        return Err(Problems(vec![problem(origin, what, help)]));
    }
    let one = |step: &StepRecord| StepResult {
        fio: step.fio.clone(),
        unlike: unlike.clone(),
    };
    Ok(chosen.into_iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fresh(plan: &Plan) -> Document {
        let device = MeasuredDevice {
            kind: "block".into(),
            name: "S1".into(),
            path: "/dev/nvme0n1".into(),
            model: Some("M".into()),
            firmware: None,
            serial: Some("S1".into()),
            size_bytes: Some(1 << 30),
            block_bytes: Some(512),
            is_rotational: Some(false),
            scheduler: None,
        };
        let host = MeasuredHost {
            kernel: "6.1".into(),
            cpu: "one".into(),
            processors: 2,
            fio: "fio-3.33".into(),
            engine: "io_uring".into(),
        };
        let asked = MeasureOptions {
            plan: plan.name.clone(),
            is_read_only: false,
            runtime_s: None,
            size_bytes: None,
            left_out: Vec::new(),
            jobs: plan.jobs.clone(),
        };
        Document::new(device, host, asked, Vec::new(), plan)
    }

    /// Returns a fio result, with numbers in fio's format.
    fn answer(name: &str, iops: f64) -> Value {
        json!({"fio version": "fio-3.33", "jobs": [{"jobname": name, "error": 0, "read": {"iops": 0.0, "total_ios": 0},
            "write": {"iops": iops, "total_ios": 900, "lat_ns": {"mean": 0.1}}}]})
    }

    /// Continues a measurement from the state of `document`, for at most `steps` steps; the rate of each step depends
    /// only on its round.
    fn run(document: &mut Document, plan: &Plan, steps: usize, rate: impl Fn(u32) -> f64) {
        let mut course = document
            .resume("m.json", &fresh(plan), plan)
            .expect("its own");
        for _ in 0..steps {
            let Some(turn) = course.next() else { break };
            let fio = answer(&turn.step.name, turn.round.map_or(5.0, &rate));
            document.steps.push(StepRecord {
                step: turn.step.name.clone(),
                phase: turn.step.phase,
                round: turn.round,
                arguments: vec![format!("--randseed={}", turn.number)],
                fio: fio.clone(),
            });
            course.take(&fio).expect("a result");
            document.verdict = course.verdict();
        }
    }

    /// However often a measurement is interrupted and read again, the final file is the same.
    #[test]
    fn a_measurement_that_is_interrupted_becomes_the_same_file() {
        let plan = Plan::named("fit").expect("a plan");
        let rate = |round: u32| 1e5 / f64::from(round.min(7));
        let mut whole = fresh(&plan);
        run(&mut whole, &plan, usize::MAX, rate);
        assert!(whole.verdict.is_complete);
        for often in [1, 2, 7] {
            let mut text = fresh(&plan).text();
            loop {
                let mut document = Document::read("m.json", &text).expect("a file of ours");
                if document.verdict.is_complete {
                    break;
                }
                run(&mut document, &plan, often, rate);
                text = document.text();
            }
            assert_eq!(text, whole.text(), "{often} steps at a time");
        }
    }

    #[test]
    fn a_file_of_another_measurement_is_refused_with_all_that_differs() {
        let plan = Plan::named("fit").expect("a plan");
        let mut there = fresh(&plan);
        run(&mut there, &plan, 3, |_| 1.0);
        let mut now = fresh(&plan);
        now.device.path = "/dev/nvme7n1".into();
        assert!(there.resume("m.json", &now, &plan).is_ok());
        now.device.serial = Some("S2".into());
        now.host.fio = "fio-3.36".into();
        now.asked.plan = "snia".into();
        now.asked.jobs = "others".into();
        let said = there.resume("m.json", &now, &plan).expect_err("another");
        let parts = [
            "m.json: device.serial: the file has \"S1\"",
            "host.fio",
            "asked.plan",
            "the plan had other jobs",
        ];
        for part in parts {
            assert!(said.to_string().contains(part), "{part}: {said}");
        }
        assert_eq!(said.0.len(), 4);
    }

    #[test]
    fn steps_that_the_plan_has_not_are_refused() {
        let plan = Plan::named("fit").expect("a plan");
        let mut there = fresh(&plan);
        run(&mut there, &plan, 3, |_| 1.0);
        let now = fresh(&plan);
        let said = |document: &Document| {
            let refused = document.resume("m.json", &now, &plan);
            refused.expect_err("it is wrong").to_string()
        };
        let mut other = there.clone();
        other.steps[1].round = Some(2);
        assert!(said(&other).contains("step 2, soak: the plan has the step soak here"));
        let mut failed = there.clone();
        failed.steps[2].fio = json!({"jobs": [{"error": 5}]});
        assert!(said(&failed).contains("error 5"));
    }

    #[test]
    fn what_is_read_is_the_last_round_and_the_measured_steps() {
        let plan = Plan::named("fit").expect("a plan");
        let mut document = fresh(&plan);
        let names = |document: &Document| -> Vec<String> {
            let root = serde_json::from_str(&document.text()).expect("JSON");
            let all = measured("m.json", root).expect("something is in it");
            all.iter()
                .map(|it| it.fio["jobs"][0]["jobname"].to_string())
                .collect()
        };
        let root = serde_json::to_value(&document).expect("JSON");
        assert!(
            measured("m.json", root).is_err_and(|it| it.to_string().contains("nothing has been"))
        );
        run(&mut document, &plan, 3, f64::from);
        assert_eq!(names(&document), ["\"soak\""]);
        run(&mut document, &plan, usize::MAX, |round| {
            f64::from(round % 2 + 1)
        });
        let all = names(&document);
        assert_eq!(all.len(), 1 + 15);
        let root = serde_json::to_value(&document).expect("JSON");
        let unlike = &measured("m.json", root).expect("steps")[0].unlike;
        assert!(
            unlike
                .iter()
                .any(|it| it.contains("not steady after 25 rounds")),
            "{unlike:?}"
        );
    }

    #[test]
    fn what_is_no_measurement_is_refused() {
        let plan = Plan::named("quick").expect("a plan");
        let text = fresh(&plan).text();
        for (text, part) in [
            (String::from("{}"), "not a measurement"),
            (
                text.replace("measurement 1", "measurement 2"),
                "reads `drivelab measurement 1`",
            ),
            (text.replace("\"steps\"", "\"stages\""), "stages"),
        ] {
            let said = Document::read("m.json", &text)
                .expect_err("none")
                .to_string();
            assert!(said.contains(part), "{said}");
        }
    }
}
