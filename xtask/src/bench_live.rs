//! `cargo xtask bench-live`: a served drive beside nbdkit's memory plugin and qemu-nbd's null drive.
//!
//! All in one run, on this machine, with fio's nbd engine over a Unix socket: 4 KiB random reads at queue depth 1 and
//! 32. What counts is I/Os per CPU-second of the server, and the 99th percentile. The drive is served with `--speed 0`
//! and a memory store, so that no drive's latency is in the way. Rounds alternate between the servers; each is compared
//! within itself, and the middle of these ratios is shown with the least and the most, because a shared machine changes
//! its mind. What others use of the processors meanwhile is told with each figure. To be less disturbed by them, run it
//! in a session of its own with a high weight: `setsid -w sh -c 'echo -20 > /proc/self/autogroup; cargo xtask
//! bench-live'`, or at real-time priority: `chrt -f 1 cargo xtask bench-live`.
//!
//! First nothing has been written: a client that takes structured replies is then told of a hole by all but nbdkit, and
//! no data moves. Then, with those that keep data, all of it has been written. After that NVMe/TCP in `tcp`.

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
const STATES: [&str; 2] = ["unwritten", "written"];

/// A server under test.
struct Server {
    name: &'static str,
    needs: &'static str,
    export: &'static str,
    /// It keeps what is written.
    keeps: bool,
    command: fn(&Path) -> Command,
}

const SERVERS: [Server; 3] = [
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
        command: |socket| {
            let mut command = program("nbdkit");
            command
                .args(["--foreground", "--exit-with-parent", "--unix"])
                .arg(socket)
                .args(["memory", "1G"]);
            command
        },
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

/// What a round gave.
#[derive(Clone, Copy, Default)]
struct Score {
    iops: f64,
    per_cpu_second: f64,
    p99_us: f64,
    /// Processors that others used.
    others: f64,
}

/// By server, then by depth: unwritten, then written.
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
    let mut scores: Scores = vec![vec![Vec::new(); 2 * DEPTHS.len()]; SERVERS.len()];
    for round in 0..ROUNDS {
        cores::show();
        for (index, server) in SERVERS.iter().enumerate() {
            if !is_there(server.needs) {
                println!("{}: SKIPPED, {} is missing", server.name, server.needs);
                continue;
            }
            let socket = folder.join(format!("{index}-{round}.sock"));
            let _ = std::fs::remove_file(&socket);
            for (place, score) in measure(server, &socket, seconds)?.into_iter().enumerate() {
                let depth = DEPTHS[place % DEPTHS.len()];
                println!(
                    "{:26} {:9} QD{depth:<3} {:>9.0} IOPS {:>9.0} a CPU-second, p99 {:>7.1} us, others {:.2}",
                    server.name,
                    STATES[place / DEPTHS.len()],
                    score.iops,
                    score.per_cpu_second,
                    score.p99_us,
                    score.others
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
    for place in 0..2 * DEPTHS.len() {
        let of = |what: fn(&Score) -> f64| -> Vec<Vec<f64>> {
            let one = |rounds: &Vec<Vec<Score>>| rounds[place].iter().map(what).collect();
            scores.iter().map(one).collect()
        };
        let show = |all: &[Vec<f64>], best: fn(f64, f64) -> f64| {
            let others: Vec<&[f64]> = all[1..].iter().map(Vec::as_slice).collect();
            ratios(&all[0], &others, best)
        };
        let rate = show(&of(|it| it.per_cpu_second), f64::max);
        let p99 = show(&of(|it| it.p99_us), f64::min);
        if let (Some(rate), Some(p99)) = (rate, p99) {
            println!(
                "{:9} QD{:<2} {rate} times the better other's IOPS a CPU-second, {p99} times the lower p99",
                STATES[place / DEPTHS.len()],
                DEPTHS[place % DEPTHS.len()],
            );
        }
    }
}

/// One server, all depths.
fn measure(server: &Server, socket: &Path, seconds: u32) -> Result<Vec<Score>, String> {
    let mut child = (server.command)(socket)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{}: {error}", server.name))?;
    let scores = with_server(server, socket, &child, seconds);
    // It may have ended by itself, which `scores` then says.
    let _ = child.kill();
    let _ = child.wait();
    scores
}

fn with_server(
    server: &Server,
    socket: &Path,
    child: &Child,
    seconds: u32,
) -> Result<Vec<Score>, String> {
    let start = Instant::now();
    while !socket.exists() {
        if start.elapsed() > Duration::from_secs(20) {
            return Err(format!("{}: does not come up", server.name));
        }
        sleep(Duration::from_millis(20));
    }
    sleep(Duration::from_millis(200));
    let uri = format!("nbd+unix:///{}?socket={}", server.export, socket.display());
    let mut scores = at_all_depths(&uri, child, seconds)?;
    if server.keeps {
        output(&mut fio(&uri, "--rw=write --bs=1M --iodepth=4"))?;
        scores.extend(at_all_depths(&uri, child, seconds)?);
    }
    Ok(scores)
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

/// 4 KiB random reads of what is at this address, served by `child`.
fn at_all_depths(uri: &str, child: &Child, seconds: u32) -> Result<Vec<Score>, String> {
    let mut scores = Vec::new();
    for depth in DEPTHS {
        let pid = child.id().to_string();
        let (before, moment) = (cpu_seconds(&pid, 11)?, Moment::now()?);
        let job = format!(
            "--rw=randread --bs=4k --time_based --norandommap --randrepeat=1 \
             --runtime={seconds} --iodepth={depth}"
        );
        let text = output(&mut fio(uri, &job))?;
        let cpu = cpu_seconds(&pid, 11)? - before;
        let others = moment.others(cpu)?;
        scores.push(Score {
            others,
            ..score(&text, cpu, seconds)?
        });
    }
    Ok(scores)
}

/// Reads fio's terse format, version 3: IOPS are the 8th field, percentiles of completion latency from the 18th on.
fn score(text: &str, cpu: f64, seconds: u32) -> Result<Score, String> {
    let line = text.lines().find(|line| line.starts_with("3;"));
    let fields: Vec<&str> = line.ok_or("fio printed no result")?.split(';').collect();
    let number = |text: &str| text.parse::<f64>().ok();
    let iops = fields.get(7).and_then(|it| number(it));
    let p99 = fields.iter().skip(17).take(20).find_map(|field| {
        let (percent, value) = field.split_once('=')?;
        percent.starts_with("99.000").then(|| number(value))?
    });
    match (iops, p99) {
        (Some(iops), Some(p99_us)) => Ok(Score {
            iops,
            per_cpu_second: iops * f64::from(seconds) / cpu.max(1.0 / TICKS),
            p99_us,
            others: 0.0,
        }),
        _ => Err(format!("fio printed `{text}`")),
    }
}
