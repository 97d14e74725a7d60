//! Cost of `serve --record`: a served drive with and without a recording, in turns.

use std::fs;
use std::path::Path;

use super::{
    BenchServer, BenchStore, DEPTHS, FioJob, ROUNDS, ServerProcess, job, perform, ratios, served,
};
use crate::shell::target;

/// Smallest share of the IOPS that a client keeps while it is recorded.
const GOAL: f64 = 0.9;

const WRITES: &str = "--rw=randwrite --norandommap --size=256M";
const FLUSHED: &str = "--rw=randwrite --norandommap --size=256M --fsync=1";

const JOBS: [FioJob; 3] = [
    job(BenchStore::Written, "writes", DEPTHS[0], WRITES),
    job(BenchStore::Written, "writes", DEPTHS[1], WRITES),
    job(BenchStore::Written, "write and flush", DEPTHS[0], FLUSHED),
];

/// The drive without and with a recording.
const SERVERS: [BenchServer; 2] = [
    BenchServer {
        name: "serve",
        needs: "cargo",
        export: "950pro-256",
        keeps: true,
        command: |socket| served("950pro-256", "256M", socket),
    },
    BenchServer {
        name: "serve --record",
        needs: "cargo",
        export: "950pro-256",
        keeps: true,
        command: |socket| {
            let log = socket.with_extension("dlog");
            // The log of the previous round.
            let _ = fs::remove_file(&log);
            let mut command = served("950pro-256", "256M", socket);
            command.arg("--record").arg(log);
            command
        },
    },
];

/// Measures all jobs for this number of seconds each, and prints the share of the IOPS with a recording.
pub(crate) fn measure(seconds: u32) -> Result<(), String> {
    let folder = target().join("bench-live");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    println!(
        "Share of the IOPS while recording (goal: {GOAL}): the median of {ROUNDS} rounds, least and greatest"
    );
    for job in &JOBS {
        let mut rates = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (server, rates) in SERVERS.iter().zip(&mut rates) {
                rates.push(rate(server, job, &folder, seconds)?);
            }
        }
        let [without, with] = &rates;
        let share = ratios(with, &[without], f64::max).unwrap_or_default();
        println!("{:16} QD{:<3} {share}", job.what, job.depth);
    }
    let _ = fs::remove_file(folder.join("recording.dlog"));
    Ok(())
}

/// Returns the IOPS of a job on a new server.
fn rate(server: &BenchServer, job: &FioJob, folder: &Path, seconds: u32) -> Result<f64, String> {
    let socket = folder.join("recording.sock");
    let up = ServerProcess::start(server, &socket)?;
    let uri = format!("nbd+unix:///{}?socket={}", server.export, socket.display());
    let score = perform(job, &uri, &up.0, seconds)?;
    Ok(score.iops)
}
