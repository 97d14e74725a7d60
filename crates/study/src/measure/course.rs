//! The course of a measurement: the next step, the round at which steady state is reached, and the remaining time.
//!
//! Its only input is fio's results, one at a time. So an interrupted measurement resumes by feeding it the existing
//! results again. Steady state is SNIA's, over the last five rounds: the first five that meet it end the rounds,
//! unless the plan continues until a number of bytes has been written.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use statistics::{ROUNDS, SteadyWindow};

use super::plan::{Plan, PlanStep, StepPhase};

/// A step that is run next.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NextStep<'p> {
    /// Step of the plan.
    pub step: &'p PlanStep,
    /// Round, starting with 1; `None` outside rounds.
    pub round: Option<u32>,
    /// Number of the fio call, starting with 1.
    pub number: u32,
}

/// The last five rounds of the step that determines steady state.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrackedRounds {
    /// Name of the step.
    pub step: String,
    /// Number of the first of the five rounds, starting with 1.
    pub first_round: u32,
    /// Mean of the five rounds, in IOPS.
    pub mean_iops: f64,
    /// Maximum minus minimum, as a share of the mean; at most 0.2 in steady state.
    pub excursion: f64,
    /// Change of the fitted line over the five rounds, as a share of the mean; between -0.1 and 0.1 in steady state.
    pub slope: f64,
}

/// Progress, and the verdict on the rounds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundsVerdict {
    /// Whether all steps have been run.
    pub is_complete: bool,
    /// Number of complete rounds.
    pub rounds: u32,
    /// Whether the last five rounds were steady; null if the plan has no rounds, or if there are fewer than five.
    pub is_steady: Option<bool>,
    /// The last five rounds; null in the same cases as `is_steady`.
    pub tracked: Option<TrackedRounds>,
    /// Text for readers.
    pub text: String,
}

/// Remaining time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RemainingTime {
    /// Seconds of the remaining steps that run for a time.
    pub seconds: f64,
    /// Whether this is a lower bound: more rounds may be needed, or steps end after a number of bytes.
    pub is_at_least: bool,
}

/// Progress of a measurement.
#[derive(Clone, Debug)]
pub struct PlanProgress<'p> {
    plan: &'p Plan,
    /// Index of the next step.
    at: usize,
    /// Number of complete rounds.
    rounds: u32,
    /// Number of fio calls so far.
    calls: u32,
    /// Rates of the tracked step, one for each round.
    rates: Vec<f64>,
    /// Bytes that the rounds must write, and bytes written so far; `None` if the rounds end in steady state.
    saturation: Option<[f64; 2]>,
    /// Whether the rounds are over.
    is_past_rounds: bool,
}

impl<'p> PlanProgress<'p> {
    /// Returns the course before the first step, on a device of this size, if known. If the size is unknown, a plan
    /// that writes a multiple of the capacity ends only at its maximum number of rounds.
    pub fn for_device(plan: &'p Plan, device_bytes: Option<u64>) -> PlanProgress<'p> {
        let bytes = device_bytes.map_or(f64::INFINITY, |bytes| bytes as f64);
        PlanProgress {
            saturation: plan.written.map(|times| [times * bytes, 0.0]),
            ..PlanProgress::new(plan)
        }
    }

    /// Returns the course before the first step, on a device of unknown size.
    pub fn new(plan: &'p Plan) -> PlanProgress<'p> {
        PlanProgress {
            plan,
            at: 0,
            rounds: 0,
            calls: 0,
            rates: Vec::new(),
            saturation: None,
            is_past_rounds: plan.in_phase(StepPhase::Round).next().is_none(),
        }
    }

    /// Returns the next step; `None` if all steps are done.
    pub fn next(&self) -> Option<NextStep<'p>> {
        let step = self.plan.steps.get(self.at)?;
        let in_round = step.phase == StepPhase::Round;
        Some(NextStep {
            step,
            round: in_round.then_some(self.rounds + 1),
            number: self.calls + 1,
        })
    }

    /// Takes fio's result of the next step.
    ///
    /// # Errors
    /// There is no next step, or this is not a result of it; the course does not change then.
    pub fn take(&mut self, fio: &Value) -> Result<(), String> {
        let turn = self.next().ok_or("the plan has no further step")?;
        if let Some(why) = is_failed(fio) {
            return Err(why);
        }
        if let (Some([_, written]), Some(_)) = (&mut self.saturation, turn.round) {
            *written += sum(fio, |job| job["write"]["io_bytes"].as_f64());
        }
        self.went(turn, iops(fio));
        Ok(())
    }

    /// Records that the next step has run at this rate in IOPS.
    pub(crate) fn went(&mut self, turn: NextStep<'_>, iops: f64) {
        if turn.step.is_tracked {
            self.rates.push(iops);
        }
        self.calls += 1;
        self.at += 1;
        let of_round = |at: usize| {
            let step = self.plan.steps.get(at);
            step.is_some_and(|step| step.phase == StepPhase::Round)
        };
        if turn.round.is_some() && !of_round(self.at) {
            self.rounds += 1;
            let ends = match self.saturation {
                Some([wanted, written]) => written >= wanted,
                None => self.is_steady() == Some(true),
            };
            self.is_past_rounds = ends || self.rounds >= self.plan.rounds;
            if !self.is_past_rounds {
                self.at -= self.plan.in_phase(StepPhase::Round).count();
            }
        }
    }

    fn window(&self) -> Option<SteadyWindow> {
        let whole = &self.rates[..self.rates.len().min(self.rounds as usize)];
        SteadyWindow::from_rounds(whole, whole.len().checked_sub(ROUNDS)?)
    }

    fn is_steady(&self) -> Option<bool> {
        self.window().map(|window| window.is_steady())
    }

    /// Returns the verdict so far.
    pub fn verdict(&self) -> RoundsVerdict {
        let is_complete = self.next().is_none();
        let window = self.window();
        let name = self.plan.steps.iter().find(|step| step.is_tracked);
        let tracked = window.zip(name).map(|(window, step)| TrackedRounds {
            step: step.name.clone(),
            first_round: window.first as u32 + 1,
            mean_iops: window.mean,
            excursion: window.excursion,
            slope: window.slope,
        });
        let rounds = self.rounds;
        let state = match (&tracked, name) {
            (_, None) => String::from("the plan has no rounds"),
            (None, Some(_)) => {
                format!("{rounds} rounds, too few to judge whether the drive is in steady state")
            }
            (Some(tracked), Some(_)) => format!(
                "{} after {rounds} rounds: over the last five {} stays within {:.0} % of its mean and its line moves by {:+.0} % \
                 (SNIA: 20 % and 10 %)",
                match self.is_steady() {
                    Some(true) => "steady",
                    _ => "not steady",
                },
                tracked.step,
                tracked.excursion * 100.0,
                tracked.slope * 100.0,
            ),
        };
        RoundsVerdict {
            is_complete,
            rounds,
            is_steady: self.is_steady(),
            tracked,
            text: match is_complete {
                true => state,
                false => format!("{state}; not complete"),
            },
        }
    }

    /// Returns the rate of the rounds in IOPS: the mean of the last five, or of all if there are fewer.
    pub fn round_iops(&self) -> Option<f64> {
        let last = &self.rates[self.rates.len().saturating_sub(ROUNDS)..];
        let mean = last.iter().sum::<f64>() / last.len() as f64;
        (!last.is_empty()).then_some(mean)
    }

    /// Returns the remaining time when this share of the next step is done.
    pub fn left(&self, share: f64) -> RemainingTime {
        let mut left = RemainingTime {
            seconds: 0.0,
            is_at_least: !self.is_past_rounds,
        };
        let rounds = match self.is_past_rounds {
            true => 0,
            // The current round, and the number of rounds missing to five.
            false => (ROUNDS as u32).saturating_sub(self.rounds).max(1),
        };
        for (index, step) in self.plan.steps.iter().enumerate() {
            let done = match index == self.at {
                true => share,
                false => 0.0,
            };
            let times = match step.phase {
                StepPhase::Round => f64::from(rounds) - f64::from(u8::from(index < self.at)),
                _ => f64::from(u8::from(index >= self.at)),
            };
            match step.seconds() {
                Some(seconds) => left.seconds += seconds * (times - done).max(0.0),
                None if index > self.at => left.is_at_least = true,
                None => {}
            }
        }
        left
    }
}

/// Returns why a fio result is a failure; `None` if it is valid.
fn is_failed(fio: &Value) -> Option<String> {
    let Some(jobs) = fio["jobs"].as_array().filter(|jobs| !jobs.is_empty()) else {
        return Some(String::from("fio's answer has no `jobs`"));
    };
    let error = |job: &Value| job["error"].as_i64().filter(|&error| error != 0);
    let failed = jobs.iter().find_map(error);
    failed.map(|error| format!("fio ended the job with error {error}"))
}

/// Returns the sum of a figure over all jobs.
fn sum(fio: &Value, figure: impl Fn(&Value) -> Option<f64>) -> f64 {
    let jobs = fio["jobs"].as_array().into_iter().flatten();
    jobs.filter_map(figure).sum()
}

/// Returns the IOPS of all jobs, reads and writes.
fn iops(fio: &Value) -> f64 {
    ["read", "write"]
        .map(|side| sum(fio, |job| job[side]["iops"].as_f64()))
        .iter()
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns a fio result at this rate.
    fn answer(iops: f64) -> Value {
        json!({"jobs": [{"error": 0, "read": {"iops": 0.0}, "write": {"iops": iops}}]})
    }

    /// Runs a plan with the given rate of the tracked step in each round. Returns the steps that ran, and the verdict.
    fn played(
        plan: &Plan,
        rate: impl Fn(u32) -> f64,
    ) -> (Vec<(String, Option<u32>)>, RoundsVerdict) {
        let mut course = PlanProgress::new(plan);
        let mut ran = Vec::new();
        while let Some(turn) = course.next() {
            ran.push((turn.step.name.clone(), turn.round));
            assert_eq!(turn.number as usize, ran.len());
            let rate = turn.round.map_or(1.0, &rate);
            course.take(&answer(rate)).expect("a result");
        }
        (ran, course.verdict())
    }

    fn fit() -> Plan {
        Plan::named("fit").expect("a plan")
    }

    #[test]
    fn rounds_end_when_five_are_steady() {
        let rate = |round| if round < 4 { 900.0 } else { 100.0 };
        let (ran, verdict) = played(&fit(), rate);
        assert_eq!((verdict.rounds, verdict.is_steady), (8, Some(true)));
        assert!(verdict.is_complete);
        let tracked = verdict.tracked.expect("five rounds");
        assert_eq!((tracked.first_round, tracked.mean_iops), (4, 100.0));
        assert_eq!(ran[0], (String::from("fill"), None));
        assert_eq!(ran[8], (String::from("soak"), Some(8)));
        assert_eq!(ran[9], (String::from("read-qd1"), None));
        assert_eq!(ran.len(), 1 + 8 + 15);
    }

    #[test]
    fn what_is_never_steady_ends_after_the_last_round() {
        let (ran, verdict) = played(&fit(), |round| f64::from(round % 2 * 500 + 100));
        assert_eq!((verdict.rounds, verdict.is_steady), (25, Some(false)));
        assert_eq!(ran.len(), 1 + 25 + 15);
        assert!(
            verdict.text.starts_with("not steady after 25 rounds"),
            "{}",
            verdict.text
        );
    }

    /// Steady rounds do not end it; the bytes written do, or, without a size, the last round.
    #[test]
    fn saturation_ends_when_so_much_was_written() {
        let plan = Plan::named("snia-saturation").expect("a plan");
        let answer = json!({"jobs": [{"error": 0, "read": {"iops": 0.0},
            "write": {"iops": 1000.0, "io_bytes": 500_000_000}}]});
        let ends = |bytes: Option<u64>| {
            let mut course = PlanProgress::for_device(&plan, bytes);
            while course.next().is_some() {
                course.take(&answer).expect("a result");
            }
            course.verdict()
        };
        let verdict = ends(Some(1_000_000_000));
        assert_eq!((verdict.rounds, verdict.is_steady), (8, Some(true)));
        assert_eq!(ends(None).rounds, 1440);
    }

    #[test]
    fn a_round_of_many_steps_runs_whole() {
        let plan = Plan::named("snia").expect("a plan");
        let (ran, verdict) = played(&plan, |_| 1000.0);
        assert_eq!((ran.len(), verdict.rounds), (1 + 5 * 56, 5));
        assert_eq!(ran[56].1, Some(1));
        assert_eq!(ran[57], (String::from("r100-1024k"), Some(2)));
    }

    /// Feeding the existing results again leads to the same state.
    #[test]
    fn a_course_that_is_cut_goes_on() {
        let plan = fit();
        let rate = |round: u32| 1000.0 / f64::from(round);
        let (whole, verdict) = played(&plan, |round| rate(round.min(9)));
        for cut in 0..=whole.len() {
            let mut course = PlanProgress::new(&plan);
            for (_, round) in &whole[..cut] {
                let rate = round.map_or(1.0, |round| rate(round.min(9)));
                course.take(&answer(rate)).expect("a result");
            }
            let next = course.next().map(|it| (it.step.name.clone(), it.round));
            assert_eq!(next, whole.get(cut).cloned());
            assert_eq!(course.verdict() == verdict, cut == whole.len());
        }
    }

    #[test]
    fn a_plan_without_rounds_has_no_verdict_of_them() {
        let plan = Plan::named("quick").expect("a plan");
        let (ran, verdict) = played(&plan, |_| 1.0);
        assert_eq!(ran.len(), plan.steps.len());
        assert_eq!((verdict.is_steady, verdict.is_complete), (None, true));
    }

    #[test]
    fn the_time_left_counts_the_rounds_that_must_come() {
        let plan = fit();
        let mut course = PlanProgress::new(&plan);
        let measured = 15.0 * 22.0;
        let expect = |left: RemainingTime, seconds: f64, is_at_least| {
            assert!(
                (left.seconds - seconds).abs() < 1e-6,
                "{left:?}, not {seconds}"
            );
            assert_eq!(left.is_at_least, is_at_least);
        };
        expect(course.left(0.0), 300.0 + measured, true);
        course.take(&answer(1.0)).expect("the fill");
        expect(course.left(0.5), 270.0 + measured, true);
        for _ in 0..5 {
            course.take(&answer(1.0)).expect("a round");
        }
        expect(course.left(0.0), measured, false);
        let mut snia = Plan::named("snia").expect("a plan");
        snia.steps.truncate(3);
        snia.steps[2].is_tracked = true;
        let mut course = PlanProgress::new(&snia);
        for _ in 0..2 {
            course
                .take(&answer(1.0))
                .expect("fill, and the first of two");
        }
        expect(course.left(0.0), 9.0 * 60.0, true);
    }

    #[test]
    fn an_answer_that_is_none_changes_nothing() {
        let plan = fit();
        let mut course = PlanProgress::new(&plan);
        for wrong in [
            json!({}),
            json!({"jobs": []}),
            json!({"jobs": [{"error": 28}]}),
        ] {
            course.take(&wrong).expect_err("no result");
            assert_eq!(course.next().map(|turn| turn.number), Some(1));
        }
        let (ran, _) = played(&plan, |_| 1.0);
        for _ in &ran {
            course.take(&answer(1.0)).expect("a result");
        }
        assert!(
            course
                .take(&answer(1.0))
                .is_err_and(|why| why.contains("no further step"))
        );
    }
}
