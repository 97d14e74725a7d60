//! Questions as values: what a user asks, with its defaults and its checks in one place.
//!
//! A request ([`Max`], [`Mix`], ...) holds what a user writes: names, texts and numbers, no loaded files. The command
//! line and Python only translate their arguments into a request. [`Ask::resolve`] loads the drives, computes defaults
//! that depend on other fields, and returns all problems at once. [`repeat()`] writes the command or the call that makes
//! a request again.
//!
//! Not yet requests: `choose`, `size`, `explain`, and everything that is not a decision. `choose` and `size` read their
//! load as `life` does ([`load::LoadSpec`]).

/// Declares a request: its fields, each with its default.
macro_rules! request {
    ($(#[$about:meta])* $name:ident { $($(#[$field_about:meta])* $field:ident: $type:ty = $default:expr,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_about])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* }
            }
        }
    };
}

mod check;
mod conditions;
pub mod defaults;
pub mod drive_spec;
mod fill;
mod life;
pub mod load;
mod max;
mod mix;
mod odds;
pub mod problems;
pub mod repeat;

pub use check::{CheckRequest, ResolvedCheck};
pub use drive_spec::DriveSpec;
pub use fill::Fill;
pub use life::{Life, ResolvedLife};
pub use max::Max;
pub use mix::Mix;
pub use odds::Odds;
pub use repeat::repeat;

use catalogue::DriveSheet;
use lab::{Lab, ProgressCallback};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use text::problem::{Problem, Problems};

use problems::of_option;

/// A request, as the user writes it.
pub trait Ask: Default + PartialEq + Serialize + DeserializeOwned {
    /// Subcommand of the command line and function in Python.
    const NAME: &'static str;
    /// Field whose value precedes the drives.
    const FIRST: Option<&'static str> = None;
    /// The checked request.
    type Resolved: ResolvedRequest;

    /// Loads everything that the request names.
    ///
    /// # Errors
    /// All problems at once.
    fn resolve(&self) -> Result<Self::Resolved, Problems>;

    /// Reads a request from the fields that a caller gives; the others have their defaults.
    ///
    /// # Errors
    /// Fields that are unknown or have a value of another type.
    fn read(fields: Map<String, Value>) -> Result<Self, Problems> {
        let alone = |(key, value): (&String, &Value)| {
            let field = Map::from_iter([(key.clone(), value.clone())]);
            let read = serde_json::from_value::<Self>(Value::Object(field));
            let error = read.err()?.to_string();
            Some(wrong_type::<Self>(key, value, &error))
        };
        let problems = Problems(fields.iter().filter_map(alone).collect());
        problems.or(())?;
        serde_json::from_value(Value::Object(fields))
            .map_err(|error| Problems::defect(Self::NAME, error.to_string()))
    }
}

/// Returns the problem of a field that has a value of another type, or that does not exist.
fn wrong_type<A: Ask>(key: &str, value: &Value, error: &str) -> Problem {
    let all = serde_json::to_value(A::default()).unwrap_or_default();
    let right = match all.get(key) {
        Some(Value::String(_)) => "a text",
        Some(Value::Bool(_)) => "true or false",
        Some(Value::Array(_)) => "a list",
        Some(Value::Number(number)) if number.is_f64() => "a number",
        Some(Value::Number(_)) => "a whole number, 0 or greater",
        // The only fields without a default value that are neither texts nor lists.
        Some(Value::Null) if value.is_number() => "a whole number, 0 or greater",
        _ => {
            let help = format!("see the arguments of `{}`", A::NAME);
            return of_option(format!("--{key}: {error}"), help);
        }
    };
    of_option(format!("--{key}: {value}"), right)
}

/// A checked request, which is answered for each drive.
pub trait ResolvedRequest: Sync {
    /// Answer for one drive.
    type Answer: Send;
    /// Whether drives are answered one after another, because each answer uses all cores.
    const IS_IN_TURN: bool = false;

    /// Returns the drives.
    fn drives(&self) -> &[DriveSheet];

    /// Returns the name of each drive in messages.
    fn names(&self) -> Vec<&str> {
        self.drives().iter().map(|drive| &*drive.id).collect()
    }

    /// Answers for the drive at this index.
    ///
    /// # Errors
    /// The load does not fit the drive.
    fn answer(
        &self,
        index: usize,
        lab: &Lab,
        listener: &AnswerListener<'_>,
    ) -> Result<Self::Answer, Problems>;
}

/// A checked request without its drives, which is the same for each.
pub trait DriveRequest: Sync {
    /// Answer for one drive.
    type Answer: Send;
    /// Whether drives are answered one after another, because each answer uses all cores.
    const IS_IN_TURN: bool = false;

    /// Answers for a drive.
    ///
    /// # Errors
    /// The load does not fit the drive.
    fn answer(
        &self,
        drive: &DriveSheet,
        lab: &Lab,
        listener: &AnswerListener<'_>,
    ) -> Result<Self::Answer, Problems>;
}

impl<R: DriveRequest> ResolvedRequest for OnDrives<R> {
    type Answer = R::Answer;
    const IS_IN_TURN: bool = R::IS_IN_TURN;

    fn drives(&self) -> &[DriveSheet] {
        &self.drives
    }

    fn answer(
        &self,
        index: usize,
        lab: &Lab,
        listener: &AnswerListener<'_>,
    ) -> Result<R::Answer, Problems> {
        self.request.answer(&self.drives[index], lab, listener)
    }
}

/// Receiver of the progress of an answer.
pub struct AnswerListener<'a> {
    /// Receives the completed share.
    pub share: ProgressCallback<'a>,
    /// Receives a description of the current step.
    pub step: &'a (dyn Fn(String) + Sync),
}

/// Drives, and what is asked of each.
#[derive(Debug)]
pub struct OnDrives<R> {
    /// Loaded drives.
    pub drives: Vec<DriveSheet>,
    /// The checked request.
    pub request: R,
}

/// Returns the answers for all drives, or all problems, each with its drive.
///
/// # Errors
/// All problems.
pub fn all<'a, A>(
    results: impl IntoIterator<Item = (&'a str, Result<A, Problems>)>,
) -> Result<Vec<A>, Problems> {
    let (mut answers, mut problems) = (Vec::new(), Problems::default());
    for (drive, result) in results {
        match result {
            Ok(answer) => answers.push(answer),
            Err(more) => problems.0.extend(more.0.into_iter().map(|problem| Problem {
                what: format!("on {drive}: {}", problem.what),
                ..problem
            })),
        }
    }
    problems.or(answers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_of_another_type_is_named_with_what_would_be_right() {
        for (key, value, right) in [
            ("slo", json!(3), "a text"),
            ("rwmixread", json!(-1), "a whole number, 0 or greater"),
            ("seeds", json!("3"), "a whole number, 0 or greater"),
            ("numjobs", json!(2.5), "a whole number, 0 or greater"),
            ("fio", json!("size=1g"), "a list"),
        ] {
            let fields = Map::from_iter([(key.to_owned(), value.clone())]);
            let problems = Max::read(fields).expect_err(key);
            let problem = &problems.0[0];
            assert_eq!(problem.what, format!("--{key}: {value}"));
            assert_eq!(problem.help.as_deref(), Some(right), "{key}");
        }
        let crashes = Map::from_iter([(String::from("crashes"), json!("often"))]);
        let problems = Odds::read(crashes).expect_err("a text");
        assert_eq!(problems.0[0].help.as_deref(), Some("a number"));
        let unknown = Map::from_iter([(String::from("speed"), json!(1))]);
        let problems = Max::read(unknown).expect_err("no such field");
        assert!(problems.0[0].what.contains("unknown field `speed`"));
    }
}
