//! The JSON documents in a file of fio results.
//!
//! fio prints notes before its JSON and text after it (`--output-format=json,normal`), and one whole document per
//! interval with `--status-interval`. A file to which fio appends also has several documents. The last complete
//! document is the result. Source: fio 3.42, `stat.c` and `client.c`. Not read: fio's terse and text formats.

use serde_json::Value;
use text::foreign::printable;

use crate::measure;

/// The documents found in a file.
pub(super) struct Documents {
    /// The last complete result; if there is none, any other JSON object.
    pub last: Value,
    /// Number of complete results.
    pub count: usize,
    /// Whether an incomplete document follows.
    pub cut: bool,
}

/// Maximum number of braces before a result that begin no JSON.
const MOST_FAILURES: usize = 64;

fn is_result(value: &Value) -> bool {
    value["jobs"].is_array() || value["client_stats"].is_array() || measure::is_ours(value)
}

/// Finds the last result in a text. Control characters in its strings become escapes.
///
/// # Errors
/// The text holds no JSON object; the error is a message for the user.
pub(super) fn last(text: &str) -> Result<Documents, String> {
    let mut found = Documents {
        last: Value::Null,
        count: 0,
        cut: false,
    };
    let mut failures = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let json = &rest[at..];
        let mut documents = serde_json::Deserializer::from_str(json).into_iter::<Value>();
        match documents.next() {
            Some(Ok(value)) => {
                rest = &json[documents.byte_offset()..];
                if is_result(&value) {
                    found.count += 1;
                    found.last = value;
                } else if found.count == 0 {
                    found.last = value;
                }
            }
            Some(Err(error)) if error.is_eof() && found.count > 0 => {
                found.cut = true;
                break;
            }
            Some(Err(error)) => {
                failures.push(error.to_string());
                if failures.len() > MOST_FAILURES {
                    break;
                }
                rest = &json[1..];
            }
            None => break,
        }
    }
    if found.count > 0 || found.last.is_object() && failures.is_empty() {
        escape(&mut found.last);
        return Ok(found);
    }
    match (failures.into_iter().next(), text.trim()) {
        (Some(error), _) => Err(error),
        (None, "") => Err(String::from("it is empty")),
        (None, text) => match serde_json::from_str::<Value>(text) {
            Ok(last) => Ok(Documents { last, ..found }),
            Err(error) => Err(error.to_string()),
        },
    }
}

/// Escapes control characters in all strings and keys, because job names are printed on terminals.
fn escape(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(shown) = printable(text) {
                *text = shown;
            }
        }
        Value::Array(all) => all.iter_mut().for_each(escape),
        Value::Object(all) => {
            let odd = |key: &String| matches!(printable(key), std::borrow::Cow::Owned(_));
            if all.keys().any(odd) {
                let taken = std::mem::take(all).into_iter();
                *all = taken
                    .map(|(key, value)| (printable(&key).into_owned(), value))
                    .collect();
            }
            all.values_mut().for_each(escape);
        }
        _ => {}
    }
}

/// Returns the jobs of a result, each with the options that are common to all jobs: those of fio itself, or those of
/// the servers to which a fio client connected.
///
/// If there are several servers, the address of the server is put before the names of its jobs. fio's sum over all
/// clients is left out.
pub(super) fn jobs(root: &mut Value) -> Vec<(Value, Value)> {
    let globals = root["global options"].take();
    if let Value::Array(jobs) = root["jobs"].take() {
        return jobs.into_iter().map(|job| (globals.clone(), job)).collect();
    }
    let Value::Array(mut all) = root["client_stats"].take() else {
        return Vec::new();
    };
    if all.len() > 1 {
        all.retain(|job| job["jobname"] != "All clients");
    }
    let address = |of: &Value| (of["hostname"].clone(), of["port"].clone());
    let several = all.iter().any(|job| address(job) != address(&all[0]));
    let with_globals = |mut job: Value| {
        let own = match &globals {
            Value::Array(hosts) => hosts.iter().find(|host| address(host) == address(&job)),
            one => Some(one),
        };
        let mut own = own.cloned().unwrap_or_default();
        if let Some(options) = own.as_object_mut() {
            options.remove("hostname");
            options.remove("port");
        }
        if several && job.is_object() {
            let [host, name] = ["hostname", "jobname"].map(|key| job[key].as_str().unwrap_or("?"));
            job["jobname"] = format!("{host}:{} {name}", job["port"]).into();
        }
        (own, job)
    };
    all.into_iter().map(with_globals).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_complete_document_counts() {
        let one = |n: u32| format!("{{\n \"jobs\" : [ {n} ] }}");
        let all = format!("note: {{odd}}\n{}\n{}\n", one(1), one(2));
        let found = last(&all).expect("two results");
        assert_eq!((found.count, found.cut), (2, false));
        assert_eq!(found.last["jobs"][0], 2);
        let cut = format!("{all}{{ \"jobs\" : [ 3");
        let found = last(&cut).expect("two results and a half");
        assert_eq!((found.count, found.cut), (2, true));
        assert_eq!(found.last["jobs"][0], 2);
        let text = format!("{}\na: (groupid=0): err= 0\n{}\na: err= 0", one(1), one(2));
        assert_eq!(last(&text).expect("two results").count, 2);
    }

    #[test]
    fn what_is_cut_off_at_once_is_refused() {
        assert!(last("{ \"jobs\": [ {\"jobname\": 1}").is_err());
        assert!(last("").is_err());
        assert!(last(&"{".repeat(100_000)).is_err());
        assert_eq!(last("{}").expect("an object").count, 0);
    }

    #[test]
    fn control_characters_become_escapes() {
        let text =
            r#"{"jobs": [{"jobname": "a\u001b[2J", "job options": {"k\u0007": "v\u009b"}}]}"#;
        let found = last(text).expect("a result");
        let shown = found.last.to_string();
        assert!(!shown.contains("\\u001b["), "{shown}");
        assert_eq!(found.last["jobs"][0]["jobname"], "a\\u{1b}[2J");
    }

    #[test]
    fn jobs_of_servers_are_apart_and_their_sum_is_left_out() {
        let text = r#"{"global options": [{"hostname": "x", "port": 1, "bs": "4k"}, {"hostname": "y", "port": 1, "bs": "8k"}],
            "client_stats": [{"jobname": "a", "hostname": "x", "port": 1}, {"jobname": "a", "hostname": "y", "port": 1},
            {"jobname": "All clients", "hostname": "y", "port": 1}]}"#;
        let mut found = last(text).expect("a result");
        let jobs = jobs(&mut found.last);
        let told: Vec<String> = jobs
            .iter()
            .map(|(globals, job)| format!("{} {}", job["jobname"], globals))
            .collect();
        assert_eq!(told, [r#""x:1 a" {"bs":"4k"}"#, r#""y:1 a" {"bs":"8k"}"#]);
    }
}
