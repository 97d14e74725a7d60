//! Rounds until steady state: the steps of a plan of `drivelab measure`, repeated on one drive that keeps its state.
//!
//! For each seed, a new drive is filled as the plan states. Whole rounds follow until the last five meet SNIA's
//! steady-state rule, up to the plan's maximum number of rounds. The logic is the same as for a real drive
//! ([`crate::measure::PlanProgress`]). A flash drive runs scaled ([`super::scaled`]), and a minute is shorter by the same
//! factor. A step ends earlier if the suite does not have enough I/Os for it, and notes state that. The result of a
//! step is that of the last five rounds. Not modelled: purging (the drive is new), and effects of a shortened step
//! that writes less of the drive.

use std::collections::VecDeque;

use model::Span;
use model::media::Precondition;

use super::member;
use super::results::{Measurement, rounded};
use super::run::{PointTask, Runner, jobs, rate_of, time_for};
use super::scaled::ScaledDrive;
use super::seeds::of_seeds;
use super::series::TimeSeries;
use super::suite::PointSpec;
use crate::measure::{Plan, PlanProgress, PlanStep, StepPhase};
use lab::{Bench, Machine, Outcome, Work};
use statistics::ROUNDS;
use text::problem::Problems;

/// A step that a round repeats, ready to run.
struct RoundStep<'a> {
    step: &'a PlanStep,
    spec: &'a PointSpec,
    ramp: Span,
    length: Span,
    /// Share of the specification's minute that the step runs.
    share: f64,
}

/// Results of one seed.
struct SeedRun {
    /// The last five rounds of each step.
    last: Vec<VecDeque<Outcome>>,
    /// The text of each step's first run.
    jobs: Vec<String>,
    /// Series of the step that determines steady state, with one entry per round.
    course: TimeSeries,
    rounds: u32,
    is_steady: bool,
}

/// Returns the name of the step that a point shows.
fn step_of(spec: &PointSpec) -> &str {
    spec.name.rsplit('/').next().unwrap_or_default()
}

/// Returns the seconds of a plan's step.
fn seconds(step: &PlanStep) -> f64 {
    step.seconds().unwrap_or(60.0)
}

impl Runner<'_> {
    /// Runs all points of a plan on a drive, in the order of `specs`.
    pub(super) fn in_rounds(
        &self,
        drive: usize,
        specs: &[&PointSpec],
        name: &str,
    ) -> Result<Vec<Option<Measurement>>, Problems> {
        let mut plan = Plan::named(name)?;
        plan.without_smaller_than(self.request.block_of(drive));
        let sheet = &self.request.drives[drive];
        let scaled = ScaledDrive::smallest_for(&sheet.config);
        let machine = self
            .request
            .machine_of(drive)
            .with_drive(scaled.drive.clone());
        let turns = self.turns(&plan, specs, drive, (&machine, scaled.stretch))?;
        let runs = (1..=self.effort.seeds.max(1))
            .map(|number| self.rounds_of(&plan, &turns, &machine, number))
            .collect::<Result<Vec<SeedRun>, _>>()?;
        let result = |spec: &&PointSpec| {
            let at = turns
                .iter()
                .position(|turn| turn.step.name == step_of(spec))?;
            let mut result = of_step(&turns[at], at, &runs, scaled.stretch);
            member::set_names_and_years(&mut result.members, sheet);
            for one in &mut result.each {
                member::set_names_and_years(&mut one.members, sheet);
            }
            Some(result)
        };
        Ok(specs.iter().map(result).collect())
    }

    /// Computes the length of each step from its rate on a drive in computed steady state, which differs from the
    /// state of the rounds.
    fn turns<'a>(
        &self,
        plan: &'a Plan,
        specs: &[&'a PointSpec],
        drive: usize,
        (machine, stretch): (&Machine, f64),
    ) -> Result<Vec<RoundStep<'a>>, Problems> {
        let mut bench = Bench::new(
            self.lab,
            machine,
            Precondition::Steady,
            self.seed(&plan.name),
        );
        let mut turns = Vec::new();
        for step in plan.in_phase(StepPhase::Round) {
            let Some(&spec) = specs.iter().find(|spec| step_of(spec) == step.name) else {
                continue;
            };
            let seed = self.seed(&format!("{}/{}/pilot", plan.name, step.name));
            let pilot = |seed| spec.text(seed, Span::ZERO, Span::from_ms(5));
            let task = PointTask { spec, drive };
            let rate = rate_of(&self.once(&mut bench, &task, seed, pilot)?.1);
            let whole = Span::from_seconds(seconds(step) / stretch);
            let length = time_for(spec.ios(self.effort), rate, Some(whole));
            turns.push(RoundStep {
                step,
                spec,
                ramp: spec.ramp(self.effort, length),
                length,
                share: length.seconds() / whole.seconds(),
            });
        }
        Ok(turns)
    }

    /// Fills a new drive, then runs rounds until steady state.
    fn rounds_of(
        &self,
        plan: &Plan,
        turns: &[RoundStep<'_>],
        machine: &Machine,
        number: u32,
    ) -> Result<SeedRun, Problems> {
        let of = |run: &str| self.seed(&format!("{}/seed {number}/{run}", plan.name));
        let mut bench = Bench::new(self.lab, machine, Precondition::Fresh, of("drive"));
        let mut run = SeedRun {
            last: vec![VecDeque::new(); turns.len()],
            jobs: Vec::new(),
            course: TimeSeries::default(),
            rounds: 0,
            is_steady: false,
        };
        let mut course = PlanProgress::new(plan);
        while let Some(next) = course.next() {
            let Some(round) = next.round else {
                let text = filling(next.step);
                let work = Work::Jobs(jobs(&next.step.name, &text)?);
                let outcome = bench.run(work, of(&next.step.name), Span::ZERO)?;
                course.went(next, rate_of(&outcome));
                continue;
            };
            let at = turns.iter().position(|it| it.step.name == next.step.name);
            let at = at.expect("the chapters have a point for each step");
            let turn = &turns[at];
            let seed = of(&format!("round {round}/{}", next.step.name));
            let text = turn.spec.text(seed, turn.ramp, turn.length);
            let work = Work::Jobs(jobs(&next.step.name, &text)?);
            let outcome = bench.run(work, seed, Span::ZERO)?;
            if round == 1 {
                run.jobs.push(text);
            }
            if next.step.is_tracked {
                append_round(&mut run.course, &outcome);
            }
            course.went(next, rate_of(&outcome));
            run.last[at].push_back(outcome);
            if run.last[at].len() > ROUNDS {
                run.last[at].pop_front();
            }
        }
        let verdict = course.verdict();
        run.rounds = verdict.rounds;
        run.is_steady = verdict.is_steady == Some(true);
        run.course.every_seconds = plan.in_phase(StepPhase::Round).map(seconds).sum();
        run.course.steady_at_seconds = run
            .is_steady
            .then(|| run.course.every_seconds * f64::from(run.rounds));
        Ok(run)
    }
}

/// Returns the job of a step that fills the drive.
fn filling(step: &PlanStep) -> String {
    let mut text = format!("[{}]\nioengine=libaio\n", step.name);
    for (key, value) in &step.options {
        text.push_str(&format!("{key}={value}\n"));
    }
    text
}

/// Adds a round to the series.
fn append_round(course: &mut TimeSeries, outcome: &Outcome) {
    let found = super::measure::measurement(&[outcome], Default::default());
    let figures = found.write.as_ref().or(found.read.as_ref());
    let of = |value: &dyn Fn(&super::results::DirectionResult) -> f64| figures.map(value);
    course.iops.push(rounded(found.iops()));
    course.mb_s.push(of(&|it| it.mb_s).unwrap_or(0.0));
    course.mean_us.push(of(&|it| it.latency.mean_us));
    course.max_us.push(of(&|it| it.latency.max_us));
    course.ios_an_interval = of(&|it| it.ios as f64).unwrap_or(0.0);
}

/// Returns the measurement of a step over the last five rounds of all seeds.
fn of_step(turn: &RoundStep<'_>, at: usize, runs: &[SeedRun], stretch: f64) -> Measurement {
    let outcomes: Vec<Vec<Outcome>> = runs
        .iter()
        .map(|run| run.last[at].iter().cloned().collect())
        .collect();
    let mut result = of_seeds(&outcomes, turn.spec.keep, false);
    result.job = runs[0].jobs[at].clone();
    if turn.step.is_tracked {
        let course = |run: &SeedRun| TimeSeries {
            scale: rounded(stretch),
            ..run.course.clone()
        };
        result.series = Some(course(&runs[0]));
        for (one, run) in result.each.iter_mut().zip(runs) {
            one.series = Some(course(run));
        }
        result.notes.push(judged(runs));
    }
    if stretch > 1.0 {
        result
            .notes
            .push(format!("scaled model: 1/{stretch:.0} of the capacity"));
    }
    if turn.share < 0.995 {
        result.notes.push(format!(
            "each round runs {:.2} % of the step's minute (the minute is divided by the scale)",
            turn.share * 100.0
        ));
    }
    result
}

/// Returns a note on the number of rounds until steady state, over the seeds.
fn judged(runs: &[SeedRun]) -> String {
    let rounds = runs.iter().map(|run| run.rounds);
    let (least, most) = (rounds.clone().min(), rounds.max());
    let (least, most) = (least.unwrap_or(0), most.unwrap_or(0));
    let steady = runs.iter().filter(|run| run.is_steady).count();
    let all = match least == most {
        true => format!("{most} rounds"),
        false => format!("{least} to {most} rounds"),
    };
    match runs.len() - steady {
        0 => format!("steady by SNIA's rule after {all}"),
        unsteady => format!(
            "not steady by SNIA's rule with {unsteady} of {} seeds after {all}",
            runs.len()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_that_is_not_steady_is_told() {
        let run = |rounds, is_steady| SeedRun {
            last: Vec::new(),
            jobs: Vec::new(),
            course: TimeSeries::default(),
            rounds,
            is_steady,
        };
        assert_eq!(
            judged(&[run(6, true), run(8, true)]),
            "steady by SNIA's rule after 6 to 8 rounds"
        );
        assert_eq!(
            judged(&[run(25, false), run(25, true)]),
            "not steady by SNIA's rule with 1 of 2 seeds after 25 rounds"
        );
    }
}
