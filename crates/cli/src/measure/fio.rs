//! fio as a program: its version, its engines, and a call that can be stopped.
//!
//! It runs in a process group of its own, so that Ctrl-C on the terminal reaches only this program, which then ends
//! fio. If setpriv (util-linux) is installed, fio also ends when this program is killed. Its JSON is written to a
//! file, because only then does fio print its progress.

use std::io::{BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use study::measure::{MeasureSettings, Plan, arguments};
use text::problem::Problems;

use super::target::MeasuredTarget;
use crate::failure::{Failure, on_command_line, write_stderr};
use crate::stop::Stop;

/// Interval of checks for its end.
const TICK: Duration = Duration::from_millis(50);
/// Maximum time for it to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(15);
/// Engines that are tried, the best first.
const ENGINES: [&str; 2] = ["io_uring", "libaio"];

/// The installed fio.
#[derive(Clone, Debug)]
pub(super) struct Fio {
    /// Version as fio prints it, such as `fio-3.33`.
    pub(super) version: String,
    /// Available engines.
    engines: Vec<String>,
    /// Whether setpriv is installed.
    has_setpriv: bool,
}

/// Result of a call.
pub(super) enum FioResult {
    /// fio's results.
    Answer(Value),
    /// The user asked to stop.
    Stopped,
}

fn command_output(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program)
        .arg(argument)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

impl Fio {
    /// Finds the installed fio.
    ///
    /// # Errors
    /// It is not installed, or too old.
    pub(super) fn installed() -> Result<Fio, Problems> {
        let missing = |what: &str| {
            Problems(vec![on_command_line(
                what,
                "install fio 3 (Debian: apt install fio)",
            )])
        };
        let version =
            command_output("fio", "--version").ok_or_else(|| missing("fio is not installed"))?;
        if version.starts_with("fio-1") || version.starts_with("fio-2") {
            return Err(missing(&format!("{version} is too old")));
        }
        let engines = command_output("fio", "--enghelp").unwrap_or_default();
        Ok(Fio {
            version,
            engines: engines.lines().map(|line| line.trim().to_owned()).collect(),
            has_setpriv: command_output("setpriv", "--version").is_some(),
        })
    }

    /// Returns the engine for a target: the requested one, or the best that this fio has.
    ///
    /// # Errors
    /// It has none of them.
    pub(super) fn engine(
        &self,
        asked: Option<&str>,
        target: &MeasuredTarget,
    ) -> Result<String, Problems> {
        let has = |engine: &&str| self.engines.iter().any(|it| it == engine);
        let wanted: &[&str] = match (&asked, target) {
            (_, MeasuredTarget::Nbd { .. }) => &["nbd"],
            (Some(asked), _) => std::slice::from_ref(asked),
            (None, _) => &ENGINES,
        };
        if let (Some(asked), MeasuredTarget::Nbd { .. }) = (asked.filter(|it| *it != "nbd"), target)
        {
            let what = format!("--ioengine {asked}: a URI is reached by fio's engine nbd alone");
            return Err(Problems(vec![on_command_line(what, "leave it out")]));
        }
        let found = wanted.iter().copied().find(has);
        found.map(str::to_owned).ok_or_else(|| {
            let what = format!("{} has no engine {}", self.version, wanted.join(" and no "));
            Problems(vec![on_command_line(
                what,
                "`fio --enghelp` lists those that it has",
            )])
        })
    }

    /// Returns the engine that can read a block of the target: the kernel may forbid an engine that fio has.
    ///
    /// # Errors
    /// No engine works; with fio's message.
    pub(super) fn working(
        &self,
        mut settings: MeasureSettings,
        is_asked_for: bool,
    ) -> Result<String, Problems> {
        let first = self.reads_a_block(&settings);
        let other = ENGINES[1];
        let has_other = self.engines.iter().any(|it| it == other);
        match first {
            Ok(()) => Ok(settings.engine),
            Err(_) if !is_asked_for && settings.engine == ENGINES[0] && has_other => {
                settings.engine = other.into();
                let read = self.reads_a_block(&settings);
                read.map(|()| {
                    write_stderr("note: io_uring is not available here; libaio is used");
                    settings.engine
                })
            }
            Err(problems) => Err(problems),
        }
    }

    fn reads_a_block(&self, settings: &MeasureSettings) -> Result<(), Problems> {
        let mut step = Plan::named("quick")?.steps.swap_remove(0);
        step.name = "one-block".into();
        step.options
            .retain(|(key, _)| !["time_based", "runtime", "ramp_time"].contains(&key.as_str()));
        step.options.push(("number_ios".into(), "1".into()));
        let settings = MeasureSettings {
            is_read_only: true,
            ..settings.clone()
        };
        let words = arguments(&step, &settings, 1, None);
        let output = Command::new("fio")
            .args(&words)
            .stdin(Stdio::null())
            .output();
        let why = match output {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => of_stderr(&String::from_utf8_lossy(&output.stderr)),
            Err(error) => error.to_string(),
        };
        let what = format!(
            "fio cannot read it with ioengine={}: {why}",
            settings.engine
        );
        let named = match &settings.target {
            study::measure::FioTarget::Path(path) => path,
            study::measure::FioTarget::Nbd(uri) => uri,
        };
        let help = "run it as root, make sure that the server runs, or name another engine with --ioengine";
        Err(Problems(vec![super::of_device(named, what, help)]))
    }

    /// Calls fio, with its results in `scratch` meanwhile; `watch` is called with the share that fio reports as done,
    /// and seconds.
    ///
    /// # Errors
    /// It failed: with its message.
    pub(super) fn call(
        &self,
        words: &[String],
        scratch: &Path,
        stop: &Stop,
        watch: &dyn Fn(Option<f64>, f64),
    ) -> Result<FioResult, Failure> {
        let mut command = match self.has_setpriv {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--pdeathsig", "TERM", "--", "fio"]);
                command
            }
            false => Command::new("fio"),
        };
        command
            .args(words)
            .arg("--eta=always")
            .arg("--output")
            .arg(scratch);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let begun = Instant::now();
        let started = command.process_group(0).spawn();
        let mut child = started.map_err(|error| Failure::failed("starting fio", error))?;
        let out = OutputCollector::spawn(child.stdout.take());
        let err = OutputCollector::spawn(child.stderr.take());
        let status = loop {
            if stop.check().is_break() {
                end(&mut child)?;
                return Ok(FioResult::Stopped);
            }
            let ended = child.try_wait();
            if let Some(status) =
                ended.map_err(|error| Failure::failed("waiting for fio", error))?
            {
                break status;
            }
            watch(share_of(&out.tail()), begun.elapsed().as_secs_f64());
            thread::sleep(TICK);
        };
        let said = err.whole();
        answer(status, scratch, &said)
            .map(FioResult::Answer)
            .map_err(|why| {
                Failure::Failed(format!("{}: {why}", words[0].trim_start_matches("--name=")))
            })
    }
}

/// Returns fio's results, if it succeeded.
fn answer(status: ExitStatus, scratch: &Path, said: &str) -> Result<Value, String> {
    if !status.success() {
        return Err(format!("fio failed ({status}): {}", of_stderr(said)));
    }
    let text =
        std::fs::read_to_string(scratch).map_err(|error| format!("fio's output: {error}"))?;
    // Notes may precede the JSON.
    let json = &text[text.find('{').unwrap_or(0)..];
    serde_json::from_str(json).map_err(|error| format!("fio's output is not JSON: {error}"))
}

/// Returns as many lines of fio's messages as fit.
fn of_stderr(said: &str) -> String {
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    match lines.is_empty() {
        true => String::from("it said nothing"),
        false => lines[lines.len().saturating_sub(4)..].join("; "),
    }
}

/// Ends it with all its processes: as Ctrl-C would, and by force if it does not end.
fn end(child: &mut Child) -> Result<(), Failure> {
    let group = Pid::from_child(child);
    let failed = |error| Failure::failed("ending fio", error);
    // It may have ended already.
    let _ = kill_process_group(group, Signal::INT);
    let asked = Instant::now();
    while child.try_wait().map_err(failed)?.is_none() {
        if asked.elapsed() > PATIENCE {
            let _ = kill_process_group(group, Signal::KILL);
            child.wait().map_err(failed)?;
            break;
        }
        thread::sleep(TICK);
    }
    Ok(())
}

/// Returns the last share in fio's progress line: `Jobs: 1 (f=1): [W(1)][4.8%][w=57.5MiB/s]...`.
fn share_of(line: &str) -> Option<f64> {
    let end = line.rfind("%]")?;
    let begin = line[..end].rfind('[')?;
    let percent: f64 = line[begin + 1..end].parse().ok()?;
    Some((percent / 100.0).clamp(0.0, 1.0))
}

/// Output of a program, read by a thread so that the program never blocks.
struct OutputCollector {
    text: Arc<Mutex<String>>,
    thread: Option<JoinHandle<()>>,
}

/// Maximum bytes of the output that are kept.
const KEPT: usize = 1 << 16;

impl OutputCollector {
    fn spawn(from: Option<impl Read + Send + 'static>) -> OutputCollector {
        let text = Arc::new(Mutex::new(String::new()));
        let to = Arc::clone(&text);
        let thread = from.map(|from| {
            thread::spawn(move || {
                let mut from = BufReader::new(from);
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = from.read(&mut buffer) {
                    let mut text = to.lock().unwrap_or_else(PoisonError::into_inner);
                    if text.len() > KEPT {
                        text.clear();
                    }
                    text.push_str(&String::from_utf8_lossy(&buffer[..length]));
                }
            })
        });
        OutputCollector { text, thread }
    }

    /// Returns the end of the output so far.
    fn tail(&self) -> String {
        self.text
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the output after its end.
    fn whole(mut self) -> String {
        if let Some(thread) = self.thread.take() {
            // A thread that only reads does not fail.
            let _ = thread.join();
        }
        self.tail()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_fios_last_line() {
        let line =
            "Jobs: 1 (f=1)\rJobs: 1 (f=1): [W(1)][4.8%][w=57.5MiB/s][w=14.7k IOPS][eta 01m:00s]\r";
        assert_eq!(share_of(line), Some(0.048));
        let more =
            format!("{line}Jobs: 1 (f=1): [r(1)][100.0%][r=1659MiB/s][r=425k IOPS][eta 00m:00s]\r");
        assert_eq!(share_of(&more), Some(1.0));
        assert_eq!(share_of("Jobs: 1 (f=1)\r"), None);
    }
}
