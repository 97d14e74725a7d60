//! fio's options on a command line: `--rw=randread --bs=4k --name=a --iodepth=16 --name=b ...`.

use std::sync::Arc;

use super::{JobReader, Line, table};

/// Checks whether `name` is a job option of fio; if so, returns whether it requires a value.
pub fn takes_value(name: &str) -> Option<bool> {
    table::find(name).map(|option| !option.bare)
}

/// Returns every name of fio's job options.
pub fn option_names() -> impl Iterator<Item = &'static str> {
    table::names()
}

const ORIGIN: &str = "command line";

/// Converts options `--name=value` into lines.
pub(super) fn options(arguments: &[String], overriding: bool) -> Vec<Line> {
    let origin: Arc<str> = ORIGIN.into();
    let text: Arc<str> = arguments.join(" ").into();
    let mut start = 0;
    let lines = arguments.iter().map(|argument| {
        let option = argument.trim_start_matches('-');
        let from = start + argument.len() - option.len();
        let line = Line {
            origin: origin.clone(),
            text: text.clone(),
            range: from..start + argument.len(),
            overriding,
        };
        start += argument.len() + 1;
        line
    });
    lines.collect()
}

impl JobReader<'_> {
    /// Reads options of the form `--name=value` or `--name`. Options before the first `--name` are global. If `alone`
    /// is set and there is no `--name`, they form one job.
    pub(super) fn command_line(&mut self, arguments: &[String], alone: bool) {
        let mut sections: Vec<(Option<String>, Vec<Line>)> = vec![(None, Vec::new())];
        let mut header = None;
        for line in options(arguments, false) {
            match line.written().strip_prefix("name=") {
                Some(name) => {
                    let name = name.to_owned();
                    header = header.or(Some(line.clone()));
                    // fio shows the name among the options of a job on the command line, but not of a job in a file.
                    sections.push((Some(name), vec![line]));
                }
                None => sections
                    .last_mut()
                    .expect("one from the start")
                    .1
                    .push(line),
            }
        }
        let text: Arc<str> = arguments.join(" ").into();
        let whole = Line {
            origin: ORIGIN.into(),
            range: 0..text.len(),
            text,
            overriding: false,
        };
        if alone && sections.len() == 1 && !arguments.is_empty() {
            sections[0].0 = Some("job".into());
        }
        for (name, lines) in sections {
            match name {
                Some(name) if !name.starts_with("global") => {
                    if self.wants(&name) {
                        self.job(&name, header.as_ref().unwrap_or(&whole), &lines, false);
                    }
                }
                _ => self.global(&lines),
            }
        }
    }
}
