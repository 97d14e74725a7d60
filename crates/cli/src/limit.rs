//! Functions that the deciding subcommands (`max`, `life`, `choose`) share: output of an answer, fio's options, and the
//! command that repeats an answer.

use std::io::{self, Write};
use std::path::PathBuf;

use report::decide::view::AnswerView;
use text::problem::{Problem, Problems};
use text::terminal::paragraph;

use crate::failure::Failure;
use crate::output::{self, write_whole};

/// Writes the requested files of an answer, and prints it: as JSON, or as its sentences, the table and the method.
pub(crate) fn show(
    view: &AnswerView<'_>,
    json: bool,
    csv: &Option<PathBuf>,
    page: &Option<PathBuf>,
) -> Result<(), Failure> {
    let command = command();
    if let Some(path) = csv {
        write_whole(path, view.csv.as_bytes())?;
    }
    if let Some(path) = page
        && let Some(page) = view.page(&command)
    {
        write_whole(path, page.as_bytes())?;
    }
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{:#}", view.json(&command))?;
        return Ok(());
    }
    let width = output::width();
    for sentence in &view.sentences {
        writeln!(out, "{}", paragraph("", sentence, width))?;
    }
    // Without a terminal, tables have the usual width.
    let narrow = width.or(Some(80));
    writeln!(
        out,
        "\n{}\n\n{}",
        view.table(narrow),
        view.method(&command, width)
    )?;
    Ok(())
}

/// Splits KEY=VALUE into two words.
pub(crate) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(String::from("write KEY=VALUE, such as size=20%")),
    }
}

/// Returns the value that was read; its problems are added to the others.
pub(crate) fn collect_problems<T>(read: Result<T, Problems>, problems: &mut Problems) -> Option<T> {
    read.map_err(|more| problems.0.extend(more.0)).ok()
}

/// Returns the problems of one drive among several.
fn of_drive(problems: Problems, drive: &str) -> impl Iterator<Item = Problem> {
    let drive = drive.to_owned();
    problems.0.into_iter().map(move |problem| Problem {
        what: format!("on {drive}: {}", problem.what),
        ..problem
    })
}

/// Returns the answers for all drives, or all problems, each with its drive.
pub(crate) fn all<'a, A>(
    results: impl IntoIterator<Item = (&'a str, Result<A, Problems>)>,
) -> Result<Vec<A>, Problems> {
    let (mut answers, mut problems) = (Vec::new(), Problems::default());
    for (drive, result) in results {
        match result {
            Ok(answer) => answers.push(answer),
            Err(more) => problems.0.extend(of_drive(more, drive)),
        }
    }
    problems.or(answers)
}

/// Returns the command line, quoted for a shell: it repeats the answer.
pub(crate) fn command() -> String {
    let words = std::env::args().skip(1).map(|word| quoted(&word));
    let words: Vec<String> = words.collect();
    format!("drivelab {}", words.join(" "))
}

/// Returns a word as a shell reads it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,/:+%@".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them_otherwise() {
        assert_eq!(quoted("p99=1ms,iops=5"), "p99=1ms,iops=5");
        assert_eq!(quoted("p99<1ms"), "'p99<1ms'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
