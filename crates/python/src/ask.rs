//! Requests as Python makes them: fields in JSON, answered by one function.

use lab::{Lab, in_parallel};
use pyo3::prelude::*;
use report::decide::AnswerDisplay;
use serde_json::{Map, Value};
use study::ask::repeat::Face;
use study::ask::{
    self, AnswerListener, Ask, CheckRequest, Fill, Life, Max, Mix, Odds, ResolvedRequest,
};
use text::problem::Problems;

use crate::decide::Answer;
use crate::drive::Drive;
use crate::work::{Stop, away, raised};

/// Returns the default fields of a request, as JSON.
#[pyfunction]
pub(crate) fn defaults(name: &str) -> PyResult<String> {
    fn json<A: Ask>() -> Value {
        serde_json::to_value(A::default()).unwrap_or_default()
    }
    let fields = match name {
        Max::NAME => json::<Max>(),
        Mix::NAME => json::<Mix>(),
        Fill::NAME => json::<Fill>(),
        CheckRequest::NAME => json::<CheckRequest>(),
        Odds::NAME => json::<Odds>(),
        Life::NAME => json::<Life>(),
        _ => return Err(raised(unknown(name))),
    };
    Ok(fields.to_string())
}

/// Answers a request: the given fields as JSON, and the drives.
#[pyfunction]
#[pyo3(name = "ask")]
pub(crate) fn answer(
    py: Python<'_>,
    name: &str,
    drives: Vec<Drive>,
    fields: &str,
) -> PyResult<Answer> {
    let answer = match name {
        Max::NAME => answered::<Max>,
        Mix::NAME => answered::<Mix>,
        Fill::NAME => answered::<Fill>,
        CheckRequest::NAME => answered::<CheckRequest>,
        Odds::NAME => answered::<Odds>,
        Life::NAME => answered::<Life>,
        _ => return Err(raised(unknown(name))),
    };
    answer(py, &drives, fields)
}

/// Returns the call that makes a request again, and the whole request as JSON: the package's tests compare both.
#[pyfunction]
#[pyo3(name = "_repeated")]
pub(crate) fn repeated(name: &str, drives: Vec<Drive>, fields: &str) -> PyResult<(String, String)> {
    fn both<A: Ask>(drives: &[Drive], fields: &str) -> Result<(String, String), Problems> {
        let request: A = request(drives, fields)?;
        let json = serde_json::to_value(&request).unwrap_or_default();
        Ok((ask::repeat(&request, Face::Python), json.to_string()))
    }
    let both = match name {
        Max::NAME => both::<Max>,
        Mix::NAME => both::<Mix>,
        Fill::NAME => both::<Fill>,
        CheckRequest::NAME => both::<CheckRequest>,
        Odds::NAME => both::<Odds>,
        Life::NAME => both::<Life>,
        _ => return Err(raised(unknown(name))),
    };
    both(&drives, fields).map_err(raised)
}

fn unknown(name: &str) -> Problems {
    Problems::defect("ask", format!("there is no request `{name}`"))
}

fn answered<A: AnswerDisplay>(py: Python<'_>, drives: &[Drive], fields: &str) -> PyResult<Answer> {
    let request: A = request(drives, fields).map_err(raised)?;
    let resolved = request.resolve().map_err(raised)?;
    let answers = away(py, |stop| answers(&resolved, stop))?.map_err(raised)?;
    Ok(Answer::new(
        &A::view(&resolved, &answers),
        A::unmet(&resolved, &answers).is_none(),
        &ask::repeat(&request, Face::Python),
    ))
}

fn request<A: Ask>(drives: &[Drive], fields: &str) -> Result<A, Problems> {
    let defect = |error: serde_json::Error| Problems::defect("ask", error.to_string());
    let mut fields: Map<String, Value> = serde_json::from_str(fields).map_err(defect)?;
    let specs: Vec<_> = drives.iter().map(Drive::spec).collect();
    let drives = serde_json::to_value(specs).map_err(defect)?;
    fields.insert(String::from("drives"), drives);
    A::read(fields)
}

fn answers<R: ResolvedRequest>(resolved: &R, stop: &Stop) -> Result<Vec<R::Answer>, Problems> {
    let lab = Lab::new();
    let names = resolved.names();
    let tell = |_: f64| stop.check();
    let indices: Vec<usize> = (0..names.len()).collect();
    let results = match R::IS_IN_TURN {
        true => {
            let listener = AnswerListener {
                share: &tell,
                step: &|_| stop.or_leave(),
            };
            let one = |index: usize| resolved.answer(index, &lab, &listener);
            indices.into_iter().map(one).collect()
        }
        false => in_parallel(&indices, &tell, |index, share| {
            let (share, step) = (share, &|_| ());
            resolved.answer(*index, &lab, &AnswerListener { share, step })
        }),
    };
    // The results of interrupted work are not an answer.
    stop.or_leave();
    ask::all(names.into_iter().zip(results))
}
