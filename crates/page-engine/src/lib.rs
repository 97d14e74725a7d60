//! What runs inside a page: one run of fio's options or of a job file, on a drive or pool of the built-in catalogue or of
//! a text, asked and answered in JSON.
//!
//! The page compiles this crate for `wasm32-unknown-unknown` into a worker; the program and the tests call the same
//! [`Engine`]. The answer depends on the question only, so both give the same bytes. Left out: files,
//! threads and the clock.

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

pub use experiment::{About, BandParts, Detailed, Experiment, JOB_FILE, Results};
pub use figures::{Direction, Figures};
pub use question::Question;

/// A laboratory that answers questions one after the other. It keeps the last drive and its state, so that another run on
/// it begins sooner.
#[derive(Debug)]
pub struct Engine {
    lab: Lab,
}

/// What the page reads.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
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
    /// Runs what is asked.
    ///
    /// # Errors
    /// Everything that is wrong with drive, settings, host, state and options, or with the options on that drive.
    pub fn run(&self, question: &Question) -> Result<Figures, Problems> {
        let scenario = question.scenario()?;
        let outcome = self.lab.run_among(&scenario, &lab::to_the_end)?;
        Ok(Figures::of(&outcome))
    }

    /// Computes what the drive of a question would compute at its first write, so that questions to it, or to a pool of the same
    /// members, are answered sooner. Changes no answer.
    ///
    /// # Errors
    /// Everything that is wrong with the question.
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

    /// The answer to what is asked, both JSON. To a [`Question`]: `{"figures": {...}}` or `{"problems": ["...", ...]}`; to
    /// `{"experiment": {...}}`, an [`Experiment`]: `{"results": {...}}`, or problems as a terminal shows them; to
    /// `{"prepare": {...}}`, a [`Question`] that will be asked: `{"prepared": null}`, or problems.
    pub fn answer(&self, asked: &[u8]) -> String {
        // Writing plain data into memory does not fail.
        serde_json::to_string(&self.answered(asked)).unwrap_or_default()
    }

    fn answered(&self, asked: &[u8]) -> Answer {
        let plainly = |problems: Problems| {
            Answer::Problems(problems.0.iter().map(ToString::to_string).collect())
        };
        let mut asked: Value = match read(serde_json::from_slice(asked)) {
            Ok(asked) => asked,
            Err(problems) => return plainly(problems),
        };
        if let Some(asked) = asked.get_mut("experiment").map(Value::take) {
            let results = as_asked(asked).and_then(|asked| self.experiment(&asked));
            return results.map_or_else(
                |problems| Answer::Problems(experiment::told(&problems)),
                |results| Answer::Results(Box::new(results)),
            );
        }
        if let Some(asked) = asked.get_mut("prepare").map(Value::take) {
            let prepared = as_asked(asked).and_then(|asked| self.prepare(&asked));
            return prepared.map_or_else(plainly, Answer::Prepared);
        }
        let figures = as_asked(asked).and_then(|asked| self.run(&asked));
        figures.map_or_else(plainly, |figures| Answer::Figures(Box::new(figures)))
    }
}

fn as_asked<T: DeserializeOwned>(asked: Value) -> Result<T, Problems> {
    read(serde_json::from_value(asked))
}

fn read<T>(result: serde_json::Result<T>) -> Result<T, Problems> {
    result.map_err(|error| Problems::whole("question", error.to_string()))
}
