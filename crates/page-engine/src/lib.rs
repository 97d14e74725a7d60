//! What runs inside a page: one run of fio's options on a drive of the built-in catalogue, asked and answered in JSON.
//!
//! The page compiles this crate for `wasm32-unknown-unknown` into a worker; the program and the tests call the same
//! [`Engine`]. The answer depends on the question only, so both give the same bytes. Left out: files (job files, drives of
//! a user's own, traces), threads and the clock.

#[cfg(target_family = "wasm")]
mod exports;
mod figures;
#[cfg(target_family = "wasm")]
mod memory;
mod question;

use lab::Lab;
use serde::Serialize;
use text::problem::Problems;

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

    /// The answer to a question, both JSON: `{"figures": {...}}` or `{"problems": ["...", ...]}`.
    pub fn answer(&self, question: &[u8]) -> String {
        let answer = match serde_json::from_slice::<Question>(question) {
            Err(error) => Err(Problems::whole("question", error.to_string())),
            Ok(question) => self.run(&question),
        };
        let answer = match answer {
            Ok(figures) => Answer::Figures(Box::new(figures)),
            Err(problems) => Answer::Problems(problems.0.iter().map(ToString::to_string).collect()),
        };
        // Writing plain data into memory does not fail.
        serde_json::to_string(&answer).unwrap_or_default()
    }
}
