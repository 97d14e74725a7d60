//! `cargo xtask bench-live`: compares a served drive with nbdkit's memory plugin and qemu-nbd's null drive.
//!
//! Everything runs in one session, on this machine, with fio's nbd engine over a Unix socket; nbdkit runs with its
//! default number of threads and with one, as the others have. The figures are I/Os per CPU-second of the server, and
//! p99. The drive is served with `--speed 0` and a memory store, so that the latency of the drive is zero. Rounds
//! alternate between the servers. Each server is compared within a round, and the median of these ratios is shown with
//! the least and the greatest, because the load on a shared machine changes. The CPU use of other programs is shown
//! with each figure. To reduce their influence, run it in a session of its own with a high weight:
//! `setsid -w sh -c 'echo -20 > /proc/self/autogroup; cargo xtask bench-live'`, or at real-time priority:
//! `chrt -f 1 cargo xtask bench-live`.
//!
//! First, 4 KiB random reads of blocks that were never written: all servers except nbdkit report a hole to a client
//! that takes structured replies, and no data is transferred. Then, on the servers that store data, writes to blocks
//! that were never written, each once, with a new server for each depth. Then the whole store is written, followed by
//! reads, writes, and writes with a flush after each. Finally NVMe/TCP in `tcp`.

mod cores;
mod load;
pub(crate) mod recording;
mod tcp;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use load::{LoadSample, TICKS, cpu_seconds};

use crate::shell::{cargo, is_there, output, program, run, target};

const ROUNDS: usize = 5;
/// Default duration of a measurement in seconds.
const SECONDS: u32 = 4;
const DEPTHS: [u32; 2] = [1, 32];
/// Writes to blocks that were never written: a quarter of the store.
const FIRST_WRITES: &str = "--rw=randwrite --io_size=256M";
const READS: &str = "--rw=randread --norandommap";
const WRITES: &str = "--rw=randwrite --norandommap";
const FLUSHED: &str = "--rw=randwrite --norandommap --fsync=1";

/// A job for a server.
struct FioJob {
    /// State of the store before the job.
    state: BenchStore,
    what: &'static str,
    depth: u32,
    fio: &'static str,
}

/// State of the store before a job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BenchStore {
    /// Never written: a server is started for the job.
    New,
    /// Never written, and the job does not write.
    Unwritten,
    /// Completely written.
    Written,
}

const fn job(state: BenchStore, what: &'static str, depth: u32, fio: &'static str) -> FioJob {
    FioJob {
        state,
        what,
        depth,
        fio,
    }
}

/// Jobs that share a server are consecutive.
const JOBS: [FioJob; 9] = [
    job(BenchStore::New, "first writes", 1, FIRST_WRITES),
    job(BenchStore::New, "first writes", 32, FIRST_WRITES),
    job(BenchStore::Unwritten, "reads, unwritten", 1, READS),
    job(BenchStore::Unwritten, "reads, unwritten", 32, READS),
    job(BenchStore::Written, "reads, written", 1, READS),
    job(BenchStore::Written, "reads, written", 32, READS),
    job(BenchStore::Written, "writes", 1, WRITES),
    job(BenchStore::Written, "writes", 32, WRITES),
    job(BenchStore::Written, "write and flush", 1, FLUSHED),
];

/// A server under test.
struct BenchServer {
    name: &'static str,
    needs: &'static str,
    export: &'static str,
    /// Whether it stores written data.
    keeps: bool,
    command: fn(&Path) -> Command,
}

const SERVERS: [BenchServer; 4] = [
    BenchServer {
        name: "drivelab serve --speed 0",
        needs: "cargo",
        export: "p4800x-375",
        keeps: true,
        command: |socket| served("p4800x-375", "1G", socket),
    },
    BenchServer {
        name: "nbdkit memory",
        needs: "nbdkit",
        export: "",
        keeps: true,
        command: |socket| nbdkit(socket, &[]),
    },
    BenchServer {
        name: "nbdkit memory, one thread",
        needs: "nbdkit",
        export: "",
        keeps: true,
        command: |socket| nbdkit(socket, &["--threads=1"]),
    },
    BenchServer {
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

/// Returns the command that serves a drive at full speed.
fn served(drive: &str, size: &str, socket: &Path) -> Command {
    let mut command = program(target().join("release/drivelab"));
    command
        .args(["serve", drive, "--speed", "0", "--size", size])
        .arg("--nbd")
        .arg(format!("unix:{}", socket.display()));
    command
}

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

/// Result of a round.
#[derive(Clone, Copy, Default)]
struct Score {
    iops: f64,
    per_cpu_second: f64,
    p99_us: f64,
    /// Processors that other programs used.
    others: f64,
}

/// Results by server, job and round.
type Scores = Vec<Vec<Vec<Score>>>;

pub(crate) fn command(args: &[&str]) -> Result<(), String> {
    let seconds = match args {
        [] => SECONDS,
        ["--seconds", number] => {
            number
                .parse()
                .ok()
                .filter(|&seconds| seconds > 0)
                .ok_or(format!(
                    "--seconds {number}: must be a number of at least 1"
                ))?
        }
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
                let FioJob { what, depth, .. } = JOBS[place];
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

/// Returns the ratio to the others in each round; `best` selects among the others.
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

/// Prints the ratios to the better of the others, of each round.
fn compare(scores: &Scores) {
    println!("The middle round, and from the least to the most of all:");
    for (place, FioJob { what, depth, .. }) in JOBS.iter().enumerate() {
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

/// Runs all jobs that a server supports, and returns the indices of jobs with their results.
fn measure(
    server: &BenchServer,
    socket: &Path,
    seconds: u32,
) -> Result<Vec<(usize, Score)>, String> {
    let can = |job: &FioJob| server.keeps || job.state == BenchStore::Unwritten;
    let mut scores = Vec::new();
    let mut running: Option<ServerProcess> = None;
    let mut written = false;
    for (place, job) in JOBS.iter().enumerate().filter(|(_, job)| can(job)) {
        if job.state == BenchStore::New {
            running = None;
        }
        let up = match running.take() {
            Some(up) => up,
            None => ServerProcess::start(server, socket)?,
        };
        let uri = format!("nbd+unix:///{}?socket={}", server.export, socket.display());
        if job.state == BenchStore::Written && !written {
            output(&mut fio(&uri, "--rw=write --bs=1M --iodepth=4"))?;
            written = true;
        }
        scores.push((place, perform(job, &uri, &up.0, seconds)?));
        // After a job that wrote, the next one begins with a new server.
        running = (job.state != BenchStore::New).then_some(up);
    }
    Ok(scores)
}

/// Ends a server that is no longer needed.
struct ServerProcess(Child);

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may have ended already, which its client then reports.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl ServerProcess {
    fn start(server: &BenchServer, socket: &Path) -> Result<ServerProcess, String> {
        // The socket of the previous server.
        let _ = std::fs::remove_file(socket);
        let mut command = (server.command)(socket);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let running = ServerProcess(child.map_err(|error| format!("{}: {error}", server.name))?);
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

/// Returns a fio command with its nbd engine; `job` is the job's options.
fn fio(uri: &str, job: &str) -> Command {
    let mut command = program("fio");
    command
        .args(["--name=job", "--ioengine=nbd", "--size=1G"])
        .arg("--output-format=terse")
        .args(job.split_whitespace())
        .arg(format!("--uri={uri}"));
    command
}

/// Runs 4 KiB random reads at this address, served by `child`, at all depths.
fn at_all_depths(uri: &str, child: &Child, seconds: u32) -> Result<Vec<Score>, String> {
    let read = |depth| {
        perform(
            &job(BenchStore::Unwritten, "reads", depth, READS),
            uri,
            child,
            seconds,
        )
    };
    DEPTHS.map(read).into_iter().collect()
}

/// Runs a job at this address, served by `child`.
fn perform(job: &FioJob, uri: &str, child: &Child, seconds: u32) -> Result<Score, String> {
    let pid = child.id().to_string();
    let (before, moment) = (cpu_seconds(&pid, 11)?, LoadSample::now()?);
    let mut words = format!("{} --bs=4k --randrepeat=1 --iodepth={}", job.fio, job.depth);
    if job.state != BenchStore::New {
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

/// Parses fio's terse format, version 3. The fields of reads begin with the 6th, those of writes with the 47th: KiB,
/// rate, IOPS, runtime, ..., and starting with the 13th, percentiles of completion latency.
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

    /// Returns a line of fio's format, with these figures in the part that begins with this field.
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
