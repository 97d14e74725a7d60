//! A resident checker: a process that judges one image after the other, so that no process starts for an image.
//!
//! It reads a line for each image, and answers with a line. Left out: several images at once in one process; there is
//! a process for each worker.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use crash::search::{Class, Judgement};
use rustix::process::{Pid, Signal, kill_process_group};

/// A process that checks images.
pub(super) struct Resident {
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
}

/// Answer of a resident checker.
pub(super) enum CheckerAnswer {
    Line(String),
    /// None within the limit.
    Late,
    /// The process has ended.
    Gone(ExitStatus),
}

impl Resident {
    /// Starts a process in its own process group.
    pub(super) fn start(command: &mut Command) -> io::Result<Resident> {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.process_group(0).spawn()?;
        let (Some(input), Some(out)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let (tell, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Resident {
            child,
            input,
            answers,
        })
    }

    /// Sends the line of an image, and waits for the answer.
    pub(super) fn ask(&mut self, line: &str, limit: Duration) -> io::Result<CheckerAnswer> {
        // A process that has ended is found by its output.
        let _ = writeln!(self.input, "{line}").and_then(|()| self.input.flush());
        match self.answers.recv_timeout(limit) {
            Ok(answer) => Ok(CheckerAnswer::Line(answer)),
            Err(RecvTimeoutError::Timeout) => Ok(CheckerAnswer::Late),
            Err(RecvTimeoutError::Disconnected) => {
                self.kill();
                Ok(CheckerAnswer::Gone(self.child.wait()?))
            }
        }
    }

    fn kill(&self) {
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            // It may have ended already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
    }
}

/// Returns the line that is sent for an image: path, files of acknowledged and of begun tokens, name.
pub(super) fn order(path: &str, acks: &str, tries: &str, name: &str) -> String {
    [path, acks, tries, name].join("\t")
}

/// Returns what a resident checker has found.
pub(super) fn judgement(answer: &str) -> Judgement {
    let class = match answer.split([' ', ':']).next() {
        Some("ok") => return Judgement::Sound,
        Some("skip") => return Judgement::Skipped,
        Some("lost") => Class::Lost,
        Some("corrupt") => Class::Corrupt,
        Some("unopenable") => Class::Unopenable,
        Some("fsck") => Class::Fsck,
        _ => Class::Rule,
    };
    let line = printable(answer);
    Judgement::Failed(
        class,
        if line.is_empty() {
            "an empty answer".into()
        } else {
            line
        },
    )
}

/// Returns the first 200 characters of a line, with `?` for those that a terminal does not print.
pub(super) fn printable(line: &str) -> String {
    let is_printed = |it: char| !it.is_control() && it != char::REPLACEMENT_CHARACTER;
    let shown = line.chars().take(200);
    shown
        .map(|it| if is_printed(it) { it } else { '?' })
        .collect()
}

/// Returns the judgement of a resident checker that has ended, with the last line of its errors.
pub(super) fn gone(status: ExitStatus, complained: String) -> Judgement {
    let ending = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, signal) => format!("signal {}", signal.unwrap_or_default()),
    };
    let line = match complained.is_empty() {
        true => format!("the resident checker ended: {ending}"),
        false => format!("the resident checker ended: {ending}: {complained}"),
    };
    Judgement::Failed(Class::Crashed, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_classes() {
        for (answer, class) in [
            ("lost 57", Class::Lost),
            ("corrupt: block 7", Class::Corrupt),
            ("unopenable", Class::Unopenable),
            ("sum is wrong", Class::Rule),
            ("", Class::Rule),
        ] {
            assert!(
                matches!(judgement(answer), Judgement::Failed(it, _) if it == class),
                "{answer}"
            );
        }
        assert_eq!(judgement("ok"), Judgement::Sound);
        assert_eq!(judgement("ok: 12 rows"), Judgement::Sound);
        assert_eq!(judgement("skip"), Judgement::Skipped);
    }
}
