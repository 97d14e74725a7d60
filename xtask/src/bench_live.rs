//! `cargo xtask bench-live`: a served drive beside nbdkit's memory plugin and qemu-nbd's null drive.
//!
//! All in one run, on this machine, with fio's nbd engine over a Unix socket; nbdkit with as many threads as it likes
//! and with one, which is what the others have. What counts is I/Os per CPU-second of the server, and the 99th
//! percentile. The drive is served with `--speed 0` and a memory store, so that no drive's latency is in the way. Rounds
//! alternate between the servers; each is compared within itself, and the middle of these ratios is shown with the least
//! and the most, because a shared machine changes its mind. What others use of the processors meanwhile is told with
//! each figure. To be less disturbed by them, run it in a session of its own with a high weight: `setsid -w sh -c 'echo
//! -20 > /proc/self/autogroup; cargo xtask bench-live'`, or at real-time priority: `chrt -f 1 cargo xtask bench-live`.
//!
//! 4 KiB random reads of what was never written: a client that takes structured replies is then told of a hole by all but
//! nbdkit, and no data moves. Then, with those that keep data, writes to blocks that were never written, each once, from
//! a new server at each depth; all of it is written; reads, writes, and writes with a flush after each. After that
//! NVMe/TCP in `tcp`.

mod cores;
mod load;
mod tcp;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use load::{Moment, TICKS, cpu_seconds};

use crate::shell::{cargo, is_there, output, program, run, target};

const ROUNDS: usize = 5;
/// How long a measurement takes, unless it is said.
const SECONDS: u32 = 4;
const DEPTHS: [u32; 2] = [1, 32];
/// Writes to blocks that were never written: a quarter of the store.
const FIRST_WRITES: &str = "--rw=randwrite --io_size=256M";
const READS: &str = "--rw=randread --norandommap";
const WRITES: &str = "--rw=randwrite --norandommap";
const FLUSHED: &str = "--rw=randwrite --norandommap --fsync=1";

/// What is asked of a server.
struct Job {
    /// What the store is like.
    state: Store,
    what: &'static str,
    depth: u32,
    fio: &'static str,
}

/// What a store is like before a job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Store {
    /// Nobody has written to it: a server is started for the job.
    New,
    /// Nobody has written to it, and the job does not.
    Unwritten,
    /// All of it has been written.
    Written,
}

const fn job(state: Store, what: &'static str, depth: u32, fio: &'static str) -> Job {
    Job {
        state,
        what,
        depth,
        fio,
    }
}

/// Those with one server come one after the other.
const JOBS: [Job; 9] = [
    job(Store::New, "first writes", 1, FIRST_WRITES),
    job(Store::New, "first writes", 32, FIRST_WRITES),
    job(Store::Unwritten, "reads, unwritten", 1, READS),
    job(Store::Unwritten, "reads, unwritten", 32, READS),
    job(Store::Written, "reads, written", 1, READS),
    job(Store::Written, "reads, written", 32, READS),
    job(Store::Written, "writes", 1, WRITES),
    job(Store::Written, "writes", 32, WRITES),
    job(Store::Written, "write and flush", 1, FLUSHED),
];

/// A server under test.
struct Server {
    name: &'static str,
    needs: &'static str,
    export: &'static str,
    /// It keeps what is written.
    keeps: bool,
    command: fn(&Path) -> Command,
}

const SERVERS: [Server; 4] = [
    Server {
        name: "drivelab serve --speed 0",
        needs: "cargo",
        export: "p4800x-375",
        keeps: true,
        command: |socket| {
            let mut command = program(target().join("release/drivelab"));
            command
                .args(["serve", "p4800x-375", "--speed", "0", "--size", "1G"])
                .arg("--nbd")
                .arg(format!("unix:{}", socket.display()));
            command
        },
    },
    Server {
        name: "nbdkit memory",
        needs: "nbdkit",
        export: "",
        keeps: true,
        command: |socket| nbdkit(socket, &[]),
    },
    Server {
        name: "nbdkit memory, one thread",
        needs: "nbdkit",
        export: "",
        keeps: true,
        command: |socket| nbdkit(socket, &["--threads=1"]),
    },
    Server {
        name: "qemu-nbd null",
        needs: "qemu-nbd",
        export: "",
        keeps: false,
        command: |socket| {
            let mut command = program("qemu-nbd");
            command
                .args(["--persistent", "--shared=16", "--socket"])
                .arg(socket)
                .arg("--image-opts")
                .arg("driver=null-co,size=1G,read-zeroes=on");
            command
        },
    },
];

/// nbdkit's memory plugin.
fn nbdkit(socket: &Path, more: &[&str]) -> Command {
    let mut command = program("nbdkit");
    command
        .args(["--foreground", "--exit-with-parent"])
        .args(more)
        .arg("--unix")
        .arg(socket)
        .args(["memory", "1G"]);
    command
}

/// What a round gave.
#[derive(Clone, Copy, Default)]
struct Score {
    iops: f64,
    per_cpu_second: f64,
    p99_us: f64,
    /// Processors that others used.
    others: f64,
}

/// By server, then by job, then by round.
type Scores = Vec<Vec<Vec<Score>>>;

pub(crate) fn command(args: &[&str]) -> Result<(), String> {
    let seconds = match args {
        [] => SECONDS,
        ["--seconds", number] => number
            .parse()
            .ok()
            .filter(|&seconds| seconds > 0)
            .ok_or(format!("--seconds {number}: a number from 1 on is wanted"))?,
        _ => return Err(format!("`{}`: there is only --seconds N", args.join(" "))),
    };
    if !is_there("fio") {
        return Err("fio is missing".into());
    }
    run(&mut cargo("build --release -p drivelab"))?;
    let folder = target().join("bench-live");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let mut scores: Scores = vec![vec![Vec::new(); JOBS.len()]; SERVERS.len()];
    for _ in 0..ROUNDS {
        cores::show();
        for (index, server) in SERVERS.iter().enumerate() {
            if !is_there(server.needs) {
                println!("{}: SKIPPED, {} is missing", server.name, server.needs);
                continue;
            }
            let socket = folder.join(format!("{index}.sock"));
            for (place, score) in measure(server, &socket, seconds)? {
                let Job { what, depth, .. } = JOBS[place];
                println!(
                    "{:26} {what:16} QD{depth:<3} {:>9.0} IOPS {:>9.0} a CPU-second, p99 {:>7.1} us, others {:.2}",
                    server.name, score.iops, score.per_cpu_second, score.p99_us, score.others
                );
                scores[index][place].push(score);
            }
        }
    }
    compare(&scores);
    tcp::measure(seconds)
}

/// What a round gave, against others of the same round: `best` chooses among those.
fn ratios(ours: &[f64], others: &[&[f64]], best: impl Fn(f64, f64) -> f64) -> Option<String> {
    let ratios = ours.iter().enumerate().filter_map(|(round, ours)| {
        let theirs = others.iter().filter_map(|one| one.get(round).copied());
        Some(ours / theirs.reduce(&best)?)
    });
    let mut ratios: Vec<f64> = ratios.collect();
    ratios.sort_by(f64::total_cmp);
    let (least, most) = (ratios.first()?, ratios.last()?);
    let middle = ratios[ratios.len() / 2];
    Some(format!("{middle:.2} ({least:.2} to {most:.2})"))
}

/// The ratios to the better of the others, of each round.
fn compare(scores: &Scores) {
    println!("The middle round, and from the least to the most of all:");
    for (place, Job { what, depth, .. }) in JOBS.iter().enumerate() {
        let of = |what: fn(&Score) -> f64| -> Vec<Vec<f64>> {
            let one = |rounds: &Vec<Vec<Score>>| rounds[place].iter().map(what).collect();
            scores.iter().map(one).collect()
        };
        let show = |all: &[Vec<f64>], best: fn(f64, f64) -> f64| {
            let others: Vec<&[f64]> = all[1..].iter().map(Vec::as_slice).collect();
            ratios(&all[0], &others, best)
        };
        let rate = show(&of(|it| it.iops), f64::max);
        let per_cpu = show(&of(|it| it.per_cpu_second), f64::max);
        let p99 = show(&of(|it| it.p99_us), f64::min);
        if let (Some(rate), Some(per_cpu), Some(p99)) = (rate, per_cpu, p99) {
            println!(
                "{what:16} QD{depth:<2} {per_cpu} times the best other's IOPS a CPU-second, {rate} times the most IOPS, {p99} times the lowest p99"
            );
        }
    }
}

/// One server, all jobs that it can do: numbers of jobs with what they gave.
fn measure(server: &Server, socket: &Path, seconds: u32) -> Result<Vec<(usize, Score)>, String> {
    let can = |job: &Job| server.keeps || job.state == Store::Unwritten;
    let mut scores = Vec::new();
    let mut running: Option<Running> = None;
    let mut written = false;
    for (place, job) in JOBS.iter().enumerate().filter(|(_, job)| can(job)) {
        if job.state == Store::New {
            running = None;
        }
        let up = match running.take() {
            Some(up) => up,
            None => Running::start(server, socket)?,
        };
        let uri = format!("nbd+unix:///{}?socket={}", server.export, socket.display());
        if job.state == Store::Written && !written {
            output(&mut fio(&uri, "--rw=write --bs=1M --iodepth=4"))?;
            written = true;
        }
        scores.push((place, perform(job, &uri, &up.0, seconds)?));
        // The next begins with a new one after a job that wrote to it.
        running = (job.state != Store::New).then_some(up);
    }
    Ok(scores)
}

/// Ends a server that is no longer needed.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself, which its client then says.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(server: &Server, socket: &Path) -> Result<Running, String> {
        // Of the one before.
        let _ = std::fs::remove_file(socket);
        let mut command = (server.command)(socket);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let running = Running(child.map_err(|error| format!("{}: {error}", server.name))?);
        let start = Instant::now();
        while !socket.exists() {
            if start.elapsed() > Duration::from_secs(20) {
                return Err(format!("{}: does not come up", server.name));
            }
            sleep(Duration::from_millis(20));
        }
        sleep(Duration::from_millis(200));
        Ok(running)
    }
}

/// fio with its nbd engine; `job` is what it does.
fn fio(uri: &str, job: &str) -> Command {
    let mut command = program("fio");
    command
        .args(["--name=job", "--ioengine=nbd", "--size=1G"])
        .arg("--output-format=terse")
        .args(job.split_whitespace())
        .arg(format!("--uri={uri}"));
    command
}

/// 4 KiB random reads of what is at this address, served by `child`, at all depths.
fn at_all_depths(uri: &str, child: &Child, seconds: u32) -> Result<Vec<Score>, String> {
    let read = |depth| {
        perform(
            &job(Store::Unwritten, "reads", depth, READS),
            uri,
            child,
            seconds,
        )
    };
    DEPTHS.map(read).into_iter().collect()
}

/// A job on what is at this address, served by `child`.
fn perform(job: &Job, uri: &str, child: &Child, seconds: u32) -> Result<Score, String> {
    let pid = child.id().to_string();
    let (before, moment) = (cpu_seconds(&pid, 11)?, Moment::now()?);
    let mut words = format!("{} --bs=4k --randrepeat=1 --iodepth={}", job.fio, job.depth);
    if job.state != Store::New {
        words += &format!(" --time_based --runtime={seconds}");
    }
    let text = output(&mut fio(uri, &words))?;
    let cpu = cpu_seconds(&pid, 11)? - before;
    let others = moment.others(cpu)?;
    Ok(Score {
        others,
        ..score(&text, cpu)?
    })
}

/// Reads fio's terse format, version 3. The fields of reads begin with the 6th, those of writes with the 47th: KiB,
/// rate, IOPS, runtime, ..., from the 13th on percentiles of completion latency.
fn score(text: &str, cpu: f64) -> Result<Score, String> {
    let line = text.lines().find(|line| line.starts_with("3;"));
    let fields: Vec<&str> = line.ok_or("fio printed no result")?.split(';').collect();
    let of = |first: usize| -> Option<Score> {
        let number = |at: usize| fields.get(first + at)?.parse::<f64>().ok();
        let percentiles = fields.get(first + 12..first + 32)?;
        let p99 = percentiles.iter().find_map(|field| {
            let (percent, value) = field.split_once('=')?;
            percent.starts_with("99.000").then(|| value.parse().ok())?
        });
        let ios = number(0)? / 4.0;
        (ios > 0.0).then_some(Score {
            iops: number(2)?,
            per_cpu_second: ios / cpu.max(1.0 / TICKS),
            p99_us: p99?,
            others: 0.0,
        })
    };
    of(5)
        .or_else(|| of(46))
        .ok_or_else(|| format!("fio printed `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::score;

    /// A line as fio prints it, with these figures in the part that begins with this field.
    fn line(first: usize) -> String {
        let mut fields = vec![String::from("0"); 130];
        fields[0] = "3".into();
        for (at, value) in [(0, "4000"), (2, "500"), (3, "2000"), (18, "99.000000%=77")] {
            fields[first + at] = value.into();
        }
        fields.join(";")
    }

    #[test]
    fn reads_and_writes_are_found_in_what_fio_prints() {
        for first in [5, 46] {
            let score = score(&line(first), 0.5).expect("a score");
            let found = (score.iops, score.per_cpu_second, score.p99_us);
            assert_eq!(found, (500.0, 2000.0, 77.0));
        }
        assert!(score(&line(60), 0.5).is_err());
    }
}
