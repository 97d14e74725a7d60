//! Answers of the deciding subcommands (`max`, `life`, `choose`, ...): a request answered for each drive, and the output of
//! an answer with the command that repeats it. Also values of options that requests keep as they were typed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use report::decide::AnswerDisplay;
use report::decide::view::AnswerView;
use study::ask::Ask;
pub(crate) use study::ask::all;
pub(crate) use study::ask::problems::collect_problems;
pub(crate) use study::ask::repeat::quoted;
use text::problem::Problems;
use text::terminal::paragraph;

use crate::each;
use crate::failure::Failure;
use crate::output::{self, write_whole};
use crate::stop::ImmediateStop;

/// Requested output of an answer.
pub(crate) struct Output<'a> {
    /// Whether to print JSON.
    pub(crate) json: bool,
    /// File of the table.
    pub(crate) csv: &'a Option<PathBuf>,
    /// File of the page.
    pub(crate) page: &'a Option<PathBuf>,
}

impl Output<'_> {
    /// Resolves a request that reads these files; files that cannot be written are problems too.
    pub(crate) fn resolve<A: Ask>(
        &self,
        request: &A,
        inputs: &[&Path],
    ) -> Result<A::Resolved, Problems> {
        let outputs = output::requested_files([("--csv", self.csv), ("--output", self.page)]);
        let unwritable = output::problems(&outputs, inputs);
        match request.resolve() {
            Ok(resolved) => unwritable.or(resolved),
            Err(Problems(mut problems)) => {
                problems.extend(unwritable.0);
                Err(Problems(problems))
            }
        }
    }

    /// Answers the request and shows the answers.
    pub(crate) fn answer<A: AnswerDisplay>(&self, resolved: &A::Resolved) -> Result<(), Failure> {
        let stop = ImmediateStop::on_signals()?;
        let answers = each::answers(resolved)?;
        let view = A::view(resolved, &answers);
        stop.results(|| show(&view, self.json, self.csv, self.page))?;
        match A::unmet(resolved, &answers) {
            None => Ok(()),
            Some(verdict) => Err(Failure::Verdict(verdict)),
        }
    }
}

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
    if let Some(path) = page {
        write_whole(path, view.page(&command).as_bytes())?;
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

/// Checks that a value can be read, and returns it as the user wrote it.
pub(crate) fn written<T, E>(
    text: &str,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<String, E> {
    read(text).map(|_| text.to_owned())
}

/// Returns the command line, quoted for a shell: it repeats the answer.
pub(crate) fn command() -> String {
    let words = std::env::args().skip(1).map(|word| quoted(&word));
    let words: Vec<String> = words.collect();
    format!("drivelab {}", words.join(" "))
}
