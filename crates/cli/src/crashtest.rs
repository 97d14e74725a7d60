//! `drivelab crashtest`: images that a power cut can leave of recorded writes, and whether a program survives them.

mod cause;
mod check;
mod guest;
mod junit;
mod outcome;
mod page;
mod record;
mod refused;
mod resident;
mod second;
mod shown;
mod source;
mod timed;

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crash::name::{END, Name};
use crash::search::{Check as _, Judgement, Limits, NoReport, case, search};
use crash::{Lost, Walk};
use model::Span;
use text::problem::Problems;

use crate::failure::{Failure, on_command_line};
use crate::output::{self, write_whole};
use crate::seed::SeedArg;
use crate::stop::Stop;
use cause::FailureCause;
use check::{CheckCommand, Checker};
pub(crate) use guest::first_process;
use guest::{GuestChecks, Kernel};
use outcome::SearchOutcome;
use record::ProgramRecording;
use source::Source;

/// Crash tests of your software: power cuts in what it wrote, judged by your checker
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  drivelab crashtest 950pro-256 --check 'python3 check.py' -- python3 orders.py
  drivelab crashtest 950pro-256 --fs xfs --keep-log run.dlog --check ./check.sh -- ./load.sh
  drivelab crashtest 950pro-256 --user postgres --before ./init.sh --check ./check.sh -- ./load.sh
  drivelab crashtest 950pro-256 --fs none --list -- python3 nbd-client.py

  drivelab serve 950pro-256 --nbd unix:d.sock --size 64M --control c.sock --record run.dlog
  drivelab crashtest --from run.dlog --list                      moments, and images at each
  drivelab crashtest --from run.dlog --check 'e2fsck -fn $DRIVELAB_DEVICE'
  drivelab crashtest --from run.dlog --check ./check.py --drive pm9a3-960
  drivelab crashtest --from run.dlog --image 171-2 --keep bad.img
  drivelab crashtest --from run.dlog --image 171-2 --check ./check.py
  drivelab crashtest --from run.dlog --write-log-writes run.log
  drivelab crashtest --from-log-writes run.log --base before.img --list

PROGRAM runs once, in a Linux guest that needs no privileges. DRIVELAB_DIR is the folder on the drive; all other files are \
the caller's, read-only. With --fs none, PROGRAM runs without a guest and uses the drive at the NBD URI DRIVELAB_URI. PROGRAM \
writes a token and a newline to the file DRIVELAB_ACKS after each operation that must survive from then on, and to \
DRIVELAB_TRIES before it begins an operation. Its output is printed only if it fails.

The checker runs once for each image, by `sh -c`, in a guest that has mounted the image at DRIVELAB_DIR. With --fs none, and \
for logs of `serve --record`, it runs without a guest, and DRIVELAB_DEVICE is a file with the image, which it may change. \
DRIVELAB_ACKS and DRIVELAB_TRIES are files with tokens, one a line: those that were acknowledged, and those that were \
begun, before the power cut. DRIVELAB_IMAGE is the image's name, `end` for that of the orderly end, \
which must be sound. Its exit code: 0 sound, 10 lost, 11 corrupt, 12 unopenable, 77 not \
judged, another: a rule is broken. A last line of output that begins with lost, corrupt or unopenable says the same.

A resident checker (--check-server) reads a line for each image: path of the folder or file, file of acknowledged tokens, file \
of begun tokens, name of the image, separated by tabs. It answers with a line: ok, skip, or lost, corrupt, unopenable or \
another word with a text.

Exit code 0: no image fails. 1: PROGRAM fails, or exceeds --program-limit. 2: bad input, PROGRAM wrote nothing, or the checker fails at the orderly \
end. 3: an image fails, or fails once and not again. \
`drivelab prove` tries pools; docs/crashtest.md is the tutorial.")]
pub(crate) struct Args {
    /// Drive to serve to PROGRAM, which is recorded: a name (see `drivelab drives`) or the path of its TOML file
    #[arg(value_name = "DRIVE", conflicts_with_all = ["from", "from_log_writes", "image"], requires = "program")]
    served: Option<String>,

    /// Program that writes to the drive, with its arguments
    #[arg(last = true, value_name = "PROGRAM", requires = "served")]
    program: Vec<OsString>,

    /// File system on the drive: PROGRAM and the checker run in guests that mount it; none: they use the drive itself
    /// [default: ext4; of a log: that of its recording]
    #[arg(long, value_enum, value_name = "FS")]
    fs: Option<Fs>,

    /// Mount options, separated by commas
    #[arg(long, value_name = "OPTIONS", requires = "served")]
    mount: Option<String>,

    /// Whether the guest writes data that was not synchronized soon, or as late as possible
    #[arg(long, value_enum, default_value = "lazy")]
    writeback: Writeback,

    /// Command that runs before PROGRAM, by `sh -c`, and is not recorded
    #[arg(long, value_name = "CMD", requires = "served")]
    before: Option<String>,

    /// User that runs PROGRAM and the checker in the guest, and owns DRIVELAB_DIR [default: root of the guest]
    #[arg(long, value_name = "NAME", requires = "served")]
    user: Option<String>,

    /// Longest time of PROGRAM and of --before, each with the start of its guest
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = span)]
    program_limit: Duration,

    /// Kernel of the guest [default: DRIVELAB_GUEST_KERNEL, or the one that `cargo xtask guest` has built]
    #[arg(long, value_name = "FILE")]
    guest_kernel: Option<PathBuf>,

    /// Size of the drive that PROGRAM has [default: 256M; 512M for xfs, 64M without a file system]
    #[arg(long, value_name = "SIZE", value_parser = crate::serve::size, requires = "served")]
    size: Option<u64>,

    /// Keep the recording in this file, which must not exist [default: keep it only if an image fails]
    #[arg(long, value_name = "FILE", requires = "served")]
    keep_log: Option<PathBuf>,

    /// Log that `drivelab serve --record` has written
    #[arg(long, value_name = "LOG", required_unless_present_any = ["from_log_writes", "served"])]
    from: Option<PathBuf>,

    /// Log of Linux's dm-log-writes or of QEMU's blklogwrites
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    from_log_writes: Option<PathBuf>,

    /// Image of the device before the dm-log-writes log [default: zeroes]
    #[arg(long, value_name = "IMAGE", requires = "from_log_writes")]
    base: Option<PathBuf>,

    /// Drive whose losses are assumed, or worst-ssd [default: the recorded drive; worst-ssd for dm-log-writes]
    #[arg(long, value_name = "DRIVE")]
    drive: Option<String>,

    /// How a write may be torn: at the parts that the drive keeps whole, at sectors of 512 B, or not at all
    #[arg(long, value_enum, default_value = "part")]
    torn: Torn,

    /// Whether flushes and force unit access make writes durable, or do nothing
    #[arg(long, value_enum, default_value = "honest")]
    flush: Flush,

    /// List moments and how many images there are at each
    #[arg(long, conflicts_with_all = ["check", "check_server", "image"])]
    list: bool,

    /// One image, by its name: 171, 171-2,5 or 171/3:1
    #[arg(long, value_name = "NAME")]
    image: Option<String>,

    /// Write the image, raw, to this file, which must not exist
    #[arg(long, value_name = "FILE", requires = "image")]
    keep: Option<PathBuf>,

    /// Command that judges an image
    #[arg(long, value_name = "CMD")]
    check: Option<String>,

    /// Checker that is started once for each worker, and judges an image for each line of its input
    #[arg(long, value_name = "CMD", conflicts_with = "check")]
    check_server: Option<String>,

    /// Check the file system of each image before the checker, after a mount: e2fsck -fn or xfs_repair -n
    #[arg(long, conflicts_with = "list")]
    fsck: bool,

    /// Longest time of one check
    #[arg(long, value_name = "TIME", default_value = LIMIT, value_parser = span)]
    limit: Duration,

    /// Longest time of all checks
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = span)]
    budget: Duration,

    /// Most images
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    images: Option<u64>,

    /// Cut power a second time, during mount and check of N images that pass, spread over the moments; with guests, and
    /// with a time limit of its own as long as --budget
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["image", "list"])]
    second_cuts: Option<u64>,

    /// Write the log in the format of dm-log-writes to this file, which must not exist
    #[arg(long, value_name = "FILE")]
    write_log_writes: Option<PathBuf>,

    /// Also write the result of all images to this file as JUnit XML: a suite for the drive, a case for each rule
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["image", "list"]
    )]
    junit: Option<PathBuf>,

    /// Also write a page with the crash points, the failures and their files to this file
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["image", "list"]
    )]
    html: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    seed: SeedArg,
}

/// File system of the guest.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Fs {
    Ext4,
    Xfs,
    /// No guest and no file system
    None,
}

/// When the guest writes data that no program has synchronized.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Writeback {
    /// Not before it must: what was not synchronized is lost
    Lazy,
    /// After 10 ms, in any order
    Eager,
}

/// How a write may be torn.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Torn {
    /// Parts as the drive keeps them: 4096 B, hard disks 512 B
    Part,
    /// Sectors of 512 B
    #[value(name = "512")]
    Sector,
    /// Whole writes
    No,
}

/// Whether flushes make writes durable.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Flush {
    /// Writes before a flush are durable
    Honest,
    /// Nothing
    Lies,
}

/// A command that judges images.
#[derive(Clone, Copy)]
struct JudgeCommand<'a> {
    command: &'a str,
    /// Whether one process judges many images.
    resident: bool,
    /// Whether guests check the file system of each image first.
    fsck: bool,
    /// Time limit of one check.
    limit: Duration,
}

/// Default of `--limit`.
const LIMIT: &str = "10s";

/// Command of a check that only consists of `--fsck`.
const NO_CHECK: &str = "true";

impl JudgeCommand<'_> {
    /// Returns the options with the command, quoted for a shell, and its time limit if it is not the default.
    fn option(&self) -> String {
        let option = if self.resident {
            "--check-server"
        } else {
            "--check"
        };
        let fsck = if self.fsck { "--fsck " } else { "" };
        let check = match self.fsck && self.command == NO_CHECK {
            true => String::from("--fsck"),
            false => format!("{fsck}{option} {}", source::quoted(self.command)),
        };
        match span(LIMIT) {
            Ok(limit) if limit == self.limit => check,
            _ => format!("--limit {} {check}", source::seconds(self.limit)),
        }
    }
}

impl Args {
    fn judge(&self) -> Option<JudgeCommand<'_>> {
        let spawned = self.check.as_deref().map(|it| (it, false));
        let resident = self.check_server.as_deref().map(|it| (it, true));
        let only_fsck = self.fsck.then_some((NO_CHECK, false));
        let (command, resident) = spawned.or(resident).or(only_fsck)?;
        Some(JudgeCommand {
            command,
            resident,
            fsck: self.fsck,
            limit: self.limit,
        })
    }
}

fn span(text: &str) -> Result<Duration, String> {
    if text.parse::<f64>().is_ok_and(|it| it > 0.0) {
        return Err(format!("has no unit: write {text}s or {text}min"));
    }
    let span: Span = text::quantity::quantity(text)?;
    match span > Span::ZERO {
        true => Ok(Duration::from_nanos(span.ns())),
        false => Err("must be above 0".into()),
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let writes = args.write_log_writes.is_some() || args.keep_log.is_some();
    let checks = args.judge().is_some();
    let results = [
        ("--junit", args.junit.is_some()),
        ("--html", args.html.is_some()),
        ("--second-cuts", args.second_cuts.is_some()),
    ];
    if let Some((option, _)) = results.iter().find(|it| it.1 && !checks) {
        return Err(bad(
            format!("{option} without a checker"),
            "add --check CMD, --check-server CMD or --fsck",
        ));
    }
    if !(args.list || args.image.is_some() || checks || writes) {
        return Err(bad(
            "nothing to do",
            "add --list, --check CMD, --fsck, --image NAME, --keep-log FILE or --write-log-writes FILE",
        ));
    }
    let commands = [
        ("--check", &args.check),
        ("--check-server", &args.check_server),
        ("--before", &args.before),
    ];
    let is_empty = |it: &Option<String>| it.as_ref().is_some_and(|it| it.trim().is_empty());
    if let Some((option, _)) = commands.iter().find(|it| is_empty(it.1)) {
        return Err(bad(
            format!("{option}: the command is empty"),
            "name a command, such as 'python3 check.py'; check that its variable is set",
        ));
    }
    let outputs = output::requested_files([("--junit", &args.junit), ("--html", &args.html)]);
    let inputs = [
        &args.from,
        &args.from_log_writes,
        &args.base,
        &args.keep_log,
    ];
    let inputs: Vec<&Path> = inputs.into_iter().flatten().map(PathBuf::as_path).collect();
    output::problems(&outputs, &inputs).or(())?;
    let Some(drive) = &args.served else {
        return test(args, &Source::read(args, None)?);
    };
    let recording = ProgramRecording::make(args, drive)?;
    let source = Source::read(args, Some(recording.log()))?;
    recording.check(&source.log)?;
    let tested = test(args, &source);
    if let (Err(Failure::Verdict(_)), None) = (&tested, &args.keep_log) {
        recording.keep()?;
    }
    tested
}

/// Does what the arguments ask of a log.
fn test(args: &Args, source: &Source) -> Result<(), Failure> {
    if let Some(path) = &args.write_log_writes {
        let bytes = crash::log_writes::write(&source.log);
        new_file(path, "--write-log-writes", |file| file.write_all(&bytes))?;
    }
    let out = &mut io::stdout().lock();
    match (&args.image, args.judge()) {
        _ if args.list => Ok(shown::list(args.json, source, out)?),
        (Some(name), _) => one_image(args, source, name, out),
        (None, Some(check)) => all_images(args, source, check, out),
        (None, None) => Ok(()),
    }
}

/// Makes a folder for temporary files that only this user can read.
fn temporary_folder() -> io::Result<tempfile::TempDir> {
    tempfile::Builder::new()
        .prefix("drivelab-crashtest-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
}

fn bad(what: impl Into<String>, help: impl Into<String>) -> Failure {
    Failure::BadInput(Problems(vec![on_command_line(what, help)]))
}

/// Writes a file that does not exist yet.
fn new_file(
    path: &Path,
    option: &str,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), Failure> {
    let name = format!("{option} {}", path.display());
    let file = File::create_new(path);
    let mut file = file.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => bad(
            format!("{name}: the file exists"),
            "name a file that does not exist, or remove it",
        ),
        _ => Failure::failed(&name, error),
    })?;
    write(&mut file).map_err(|error| Failure::failed(&name, error))
}

fn one_image(args: &Args, source: &Source, name: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let wrong = |what: String| {
        bad(
            format!("--image {name}: {what}"),
            "`--list` lists the moments, and the report names the images that fail",
        )
    };
    let parsed: Name = name.parse().map_err(wrong)?;
    let start = Walk::new(&source.log, source.how);
    let (walk, lost) = parsed.find(&start).map_err(wrong)?;
    if let Some(path) = &args.keep {
        let (image, bytes) = (walk.image(&lost), source.log.head.bytes);
        new_file(path, "--keep", |file| {
            check::write_image(file, &image, bytes)
        })?;
    }
    match args.judge() {
        Some(command) => {
            let is_end = parsed.moment.is_none() && lost.count() == 0;
            judge_one(args, source, (&walk, &lost, is_end), command, out)
        }
        None => Ok(shown::image(
            source,
            &walk,
            &lost,
            &mut |_| Vec::new(),
            out,
        )?),
    }
}

fn judge_one(
    args: &Args,
    source: &Source,
    (walk, lost, is_end): (&Walk<'_>, &Lost, bool),
    command: JudgeCommand<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut checker = checker(args, source, command, None)?;
    let mut case = case(walk, lost);
    if is_end {
        case.name = END.to_owned();
    }
    let judged = checker.check(std::slice::from_ref(&case));
    let judged = judged.map_err(Failure::Failed)?.remove(0);
    shown::image(source, walk, lost, &mut |walk| checker.files(walk), out)?;
    match judged {
        Judgement::Sound => writeln!(out, "check      sound")?,
        Judgement::Skipped => writeln!(out, "check      not judged")?,
        Judgement::Failed(class, line) => {
            writeln!(
                out,
                "FAILED     {}",
                ::crashtest::report::words(class, &line)
            )?;
            return Err(Failure::Verdict("the image fails".into()));
        }
    }
    Ok(())
}

fn checker<'a>(
    args: &'a Args,
    source: &'a Source,
    command: JudgeCommand<'a>,
    stop: Option<&'a Stop>,
) -> Result<Checker<'a>, Failure> {
    let command = CheckCommand {
        command: command.command,
        resident: command.resident,
        fsck: command.fsck,
        limit: args.limit,
        bytes: source.log.head.bytes,
        seed: args.seed.seed,
    };
    if command.fsck && source.mount.is_none() {
        return Err(bad(
            "--fsck: guests mount no file system",
            "add --fs ext4 or --fs xfs, or check without --fsck",
        ));
    }
    let guests = match source.mount.clone() {
        Some(mount) => {
            let kernel = Kernel::find(args.guest_kernel.as_deref())?;
            let checks = GuestChecks::new(kernel, mount);
            Some(checks.map_err(|error| Failure::failed("the working directory", error))?)
        }
        None => None,
    };
    let checker = Checker::new(command, guests, args.budget, stop);
    checker.map_err(|error| Failure::failed("making a temporary folder", error))
}

fn all_images(
    args: &Args,
    source: &Source,
    command: JudgeCommand<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let stop = Stop::on_signals()?;
    let limits = Limits {
        images: args.images.unwrap_or(u64::MAX),
        seed: args.seed.seed,
        ..Limits::default()
    };
    second::possible(args, source)?;
    refused::without_writes(source)?;
    let mut checker = checker(args, source, command, Some(&stop))?;
    let report = search(&source.log, source.how, limits, &mut checker);
    let seconds = checker.seconds();
    let report = report.map_err(|why| match why {
        NoReport::CheckFailed(why) => Failure::Failed(why),
        NoReport::FailsAtEnd(class, line) => refused::at_end(source, command, class, &line),
    })?;
    let causes: Vec<Option<FailureCause>> = { report.failures.iter() }
        .map(|it| FailureCause::from_failure(source, it, &mut |walk| checker.files(walk)))
        .collect();
    let recoveries = temporary_folder();
    let recoveries = recoveries.map_err(|it| Failure::failed("making a temporary folder", it))?;
    let place = recoveries.path();
    // An error here must not discard what the first search has found.
    let (second, second_failed) =
        match second::run(args, source, command, &mut checker, place, &stop) {
            Ok(second) => (second, None),
            Err(failure) => (None, Some(failure)),
        };
    checker.finish();
    stop.announce();
    let outcome = SearchOutcome {
        source,
        report: &report,
        causes: &causes,
        command,
        seconds,
        second: second.as_ref(),
    };
    if let Some(path) = &args.junit {
        write_whole(path, junit::xml(&outcome).as_bytes())?;
    }
    if let Some(path) = &args.html {
        write_whole(path, page::html(&outcome).as_bytes())?;
    }
    match args.json {
        true => shown::json(&outcome, out)?,
        false => shown::write_report(&outcome, output::width(), out)?,
    }
    let of_second = second.as_ref().map_or(0, second::SecondCuts::failures);
    if let Some(cuts) = second.as_ref().filter(|_| of_second > 0) {
        let kept = second::keep(recoveries, cuts);
        let folder = kept.map_err(|it| Failure::failed("keeping the recordings", it))?;
        let kept = format!(
            "the recordings of recoveries are kept: {}",
            folder.display()
        );
        output::remark("note", &kept);
    }
    if let Some(failure) = second_failed {
        return Err(failure);
    }
    if let Some(verdict) = outcome.verdict() {
        return Err(Failure::Verdict(verdict));
    }
    match refused::without_judgement(command, report.counts) {
        Some(failure) => Err(failure),
        None => stop.finish(),
    }
}
