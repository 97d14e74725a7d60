//! The engine inside a page: runs fio options or a job file on a drive or pool of the built-in catalogue or of a text.
//! Questions and answers are JSON.
//!
//! The page compiles this crate for `wasm32-unknown-unknown` into a worker; the program and the tests call the same
//! [`Engine`]. The answer depends only on the question, so both give the same bytes. Not supported: files, threads and
//! the clock.

mod experiment;
#[cfg(target_family = "wasm")]
mod exports;
mod figures;
#[cfg(target_family = "wasm")]
mod memory;
mod question;

use lab::Lab;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use text::problem::Problems;

pub use experiment::{BandParts, DirectionDetail, DriveDescription, Experiment, JOB_FILE, Results};
pub use figures::{Direction, Figures};
pub use question::Question;

/// A laboratory that answers questions in sequence. It keeps the last drive and its state, so that another run on it
/// begins sooner.
#[derive(Debug)]
pub struct Engine {
    lab: Lab,
}

/// Content of an answer.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum EngineAnswer {
    Figures(Box<Figures>),
    Results(Box<Results>),
    Prepared(()),
    Problems(Vec<String>),
}

impl Default for Engine {
    fn default() -> Engine {
        Engine {
            lab: Lab::with_drives(1),
        }
    }
}

impl Engine {
    /// Runs a question.
    ///
    /// # Errors
    /// All problems of drive, settings, host, state and options, or of the options on that drive.
    pub fn run(&self, question: &Question) -> Result<Figures, Problems> {
        let scenario = question.scenario()?;
        let outcome = self.lab.run_among(&scenario, &lab::to_the_end)?;
        Ok(Figures::from_outcome(&outcome))
    }

    /// Computes in advance what the drive of a question would compute at its first write, so that questions on it, or
    /// on a pool with the same members, are answered sooner. Does not change any answer.
    ///
    /// # Errors
    /// All problems of the question.
    pub fn prepare(&self, question: &Question) -> Result<(), Problems> {
        self.lab.prepare(&question.scenario()?);
        Ok(())
    }

    /// Runs a job file.
    ///
    /// # Errors
    /// As [`Experiment::run`].
    pub fn experiment(&self, experiment: &Experiment) -> Result<Results, Problems> {
        experiment.run(&self.lab)
    }

    /// Returns the answer to a request, both as JSON. For a [`Question`]: `{"figures": {...}}` or
    /// `{"problems": ["...", ...]}`. For `{"experiment": {...}}`, an [`Experiment`]: `{"results": {...}}`, or problems
    /// as a terminal shows them. For `{"prepare": {...}}`, a [`Question`] that will be asked: `{"prepared": null}`, or
    /// problems.
    pub fn answer(&self, asked: &[u8]) -> String {
        // Serialising plain data into memory does not fail.
        serde_json::to_string(&self.answered(asked)).unwrap_or_default()
    }

    fn answered(&self, asked: &[u8]) -> EngineAnswer {
        let plainly = |problems: Problems| {
            EngineAnswer::Problems(problems.0.iter().map(ToString::to_string).collect())
        };
        let mut asked: Value = match read(serde_json::from_slice(asked)) {
            Ok(asked) => asked,
            Err(problems) => return plainly(problems),
        };
        if let Some(asked) = asked.get_mut("experiment").map(Value::take) {
            let results = as_asked(asked).and_then(|asked| self.experiment(&asked));
            return results.map_or_else(
                |problems| EngineAnswer::Problems(experiment::render_problems(&problems)),
                |results| EngineAnswer::Results(Box::new(results)),
            );
        }
        if let Some(asked) = asked.get_mut("prepare").map(Value::take) {
            let prepared = as_asked(asked).and_then(|asked| self.prepare(&asked));
            return prepared.map_or_else(plainly, EngineAnswer::Prepared);
        }
        let figures = as_asked(asked).and_then(|asked| self.run(&asked));
        figures.map_or_else(plainly, |figures| EngineAnswer::Figures(Box::new(figures)))
    }
}

fn as_asked<T: DeserializeOwned>(asked: Value) -> Result<T, Problems> {
    read(serde_json::from_value(asked))
}

fn read<T>(result: serde_json::Result<T>) -> Result<T, Problems> {
    result.map_err(|error| Problems::whole("question", error.to_string()))
}
