//! NVMe/TCP by `drivelab bench-target`, a core each for server and client, and nbdkit over TCP by fio beside it, as a
//! measure of what TCP over loopback can do here.

use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use super::{DEPTHS, ROUNDS, at_all_depths, cores, middle};
use crate::shell::{is_there, output, program, target};

const NVME: &str = "127.0.0.1:14420";
const NBD_PORT: &str = "14421";

/// Ends a server that is no longer needed.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself, which its client then says.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command) -> Result<Running, String> {
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let running = Running(child.map_err(|error| format!("{command:?}: {error}"))?);
    sleep(Duration::from_millis(1_500));
    Ok(running)
}

/// A program on this core only.
fn on_core(core: &str) -> Command {
    let mut command = program("taskset");
    command
        .args(["-c", core])
        .arg(target().join("release/drivelab"));
    command
}

/// IOPS and p99 at each depth.
fn nvme(seconds: u32) -> Result<Vec<(f64, f64)>, String> {
    let mut server = on_core("0");
    server.args(["serve", "p4800x-375", "--speed", "0", "--size", "2G"]);
    let _server = start(server.args(["--nvme-tcp", NVME]))?;
    let depths = DEPTHS.map(|depth| depth.to_string()).join(",");
    let text = output(
        on_core("1")
            .args(["bench-target", "--rw", "randread", "--qd", &depths])
            .args(["--time", &format!("{seconds}s")])
            .arg(format!("nvme-tcp://{NVME}")),
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

fn nbdkit(seconds: u32) -> Result<Vec<f64>, String> {
    let mut server = program("nbdkit");
    server.args(["--foreground", "--exit-with-parent", "--port", NBD_PORT]);
    let server = start(server.args(["memory", "1G"]))?;
    let uri = format!("nbd://127.0.0.1:{NBD_PORT}");
    let scores = at_all_depths(&uri, &server.0, seconds)?;
    Ok(scores.iter().map(|score| score.iops).collect())
}

pub(super) fn measure(seconds: u32) -> Result<(), String> {
    if !is_there("taskset") {
        println!("NVMe/TCP: SKIPPED, taskset is missing");
        return Ok(());
    }
    let mut ours = vec![Vec::new(); DEPTHS.len()];
    let mut others = vec![Vec::new(); DEPTHS.len()];
    for _ in 0..ROUNDS {
        cores::show();
        for (place, (iops, p99)) in nvme(seconds)?.into_iter().enumerate() {
            println!(
                "NVMe/TCP, bench-target QD{:<3} {iops:>9.0} IOPS, p99 {p99:>7.1} us",
                DEPTHS[place]
            );
            ours[place].push(iops);
        }
        if is_there("nbdkit") {
            for (place, iops) in nbdkit(seconds)?.into_iter().enumerate() {
                println!(
                    "nbdkit over TCP, fio   QD{:<3} {iops:>9.0} IOPS",
                    DEPTHS[place]
                );
                others[place].push(iops);
            }
        }
    }
    for (place, depth) in DEPTHS.iter().enumerate() {
        let ours = middle(ours[place].iter().copied()).unwrap_or(0.0);
        print!("NVMe/TCP QD{depth}: {ours:.0} IOPS");
        match middle(others[place].iter().copied()) {
            Some(other) => println!(", {:.2} times nbdkit's over TCP", ours / other),
            None => println!(),
        }
    }
    Ok(())
}
