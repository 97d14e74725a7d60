//! NVMe/TCP with `drivelab bench-target`, with a core each for server and client; and nbdkit over TCP, with fio and
//! with the same client. This shows what TCP over loopback can reach here, in the same round and with the same
//! distance of cores.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use super::load::LoadSample;
use super::{DEPTHS, ROUNDS, ServerProcess, at_all_depths, cores, ratios};
use crate::shell::{is_there, output, program, target};

const NVME: &str = "127.0.0.1:14420";
const NBD_PORT: &str = "14421";

fn start(command: &mut Command) -> Result<ServerProcess, String> {
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let running = ServerProcess(child.map_err(|error| format!("{command:?}: {error}"))?);
    sleep(Duration::from_millis(1_500));
    Ok(running)
}

/// Returns a program restricted to this core.
fn on_core(core: &str) -> Command {
    let mut command = program("taskset");
    command
        .args(["-c", core])
        .arg(target().join("release/drivelab"));
    command
}

/// Measures a target with our own client: IOPS and p99 at each depth.
fn polled(uri: &str, seconds: u32) -> Result<Vec<(f64, f64)>, String> {
    let depths = DEPTHS.map(|depth| depth.to_string()).join(",");
    let text = output(
        on_core("1")
            .args(["bench-target", "--rw", "randread", "--qd", &depths])
            .args(["--time", &format!("{seconds}s"), uri]),
    )?;
    let rows = text.lines().skip(1).map(|line| {
        let fields: Vec<f64> = line
            .split_whitespace()
            .map_while(|field| field.parse().ok())
            .collect();
        match fields[..] {
            // QD, IOPS, MB/s, mean, p50, p90, p99.
            [_, iops, _, _, _, _, p99, ..] => Ok((iops, p99)),
            _ => Err(format!("bench-target printed `{line}`")),
        }
    });
    rows.collect()
}

fn nvme(seconds: u32) -> Result<Vec<(f64, f64)>, String> {
    let mut server = on_core("0");
    server.args(["serve", "p4800x-375", "--speed", "0", "--size", "2G"]);
    let _server = start(server.args(["--nvme-tcp", NVME]))?;
    polled(&format!("nvme-tcp://{NVME}"), seconds)
}

/// Measures nbdkit with fio, and on a core of its own with our client.
fn nbdkit(seconds: u32) -> Result<[Vec<f64>; 2], String> {
    let uri = format!("nbd://127.0.0.1:{NBD_PORT}");
    let run = |server: &mut Command| {
        server.args(["--foreground", "--exit-with-parent", "--port", NBD_PORT]);
        start(server.args(["memory", "1G"]))
    };
    let server = run(&mut program("nbdkit"))?;
    let scores = at_all_depths(&uri, &server.0, seconds)?;
    let by_fio = scores.iter().map(|score| score.iops).collect();
    drop(server);
    let _server = run(program("taskset").args(["-c", "0", "nbdkit"]))?;
    let by_us = polled(&uri, seconds)?.into_iter().map(|(iops, _)| iops);
    Ok([by_fio, by_us.collect()])
}

/// Results by depth and round.
type Rounds = Vec<Vec<f64>>;

pub(super) fn measure(seconds: u32) -> Result<(), String> {
    if !is_there("taskset") {
        println!("NVMe/TCP: SKIPPED, taskset is missing");
        return Ok(());
    }
    const CLIENTS: [&str; 2] = ["fio", "bench-target"];
    let mut ours: Rounds = vec![Vec::new(); DEPTHS.len()];
    let mut others: [Rounds; 2] = [ours.clone(), ours.clone()];
    for _ in 0..ROUNDS {
        cores::show();
        let moment = LoadSample::now()?;
        for (place, (iops, p99)) in nvme(seconds)?.into_iter().enumerate() {
            let depth = DEPTHS[place];
            println!("NVMe/TCP by bench-target  QD{depth:<3} {iops:>9.0} IOPS, p99 {p99:>7.1} us");
            ours[place].push(iops);
        }
        if is_there("nbdkit") {
            let all = nbdkit(seconds)?;
            for ((client, others), all) in CLIENTS.iter().zip(&mut others).zip(all) {
                for (place, iops) in all.into_iter().enumerate() {
                    let depth = DEPTHS[place];
                    println!("nbdkit over TCP by {client:12} QD{depth:<3} {iops:>9.0} IOPS");
                    others[place].push(iops);
                }
            }
        }
        println!("others used {:.2} processors", moment.others(0.0)?);
    }
    for (place, depth) in DEPTHS.iter().enumerate() {
        let (least, most) = spread(&ours[place]);
        println!("NVMe/TCP QD{depth}: {least:.0} to {most:.0} IOPS");
        for (client, others) in CLIENTS.iter().zip(&others) {
            if let Some(times) = ratios(&ours[place], &[&others[place]], f64::max) {
                println!("  {times} times nbdkit's over TCP by {client}");
            }
        }
    }
    Ok(())
}

fn spread(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (least, values.iter().copied().fold(0.0, f64::max))
}
