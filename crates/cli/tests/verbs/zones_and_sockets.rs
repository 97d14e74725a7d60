//! Jobs for zoned drives, passthrough commands, and threads on the other socket of a host.

use serde_json::Value;

use crate::rig::{drivelab, text};

fn run(drive: &str, options: &str) -> (Option<i32>, String, String) {
    let mut all = vec!["run", drive, "--output-format=json"];
    all.extend(options.split_whitespace());
    let output = drivelab(&all);
    let said = text(&output.stderr).to_owned();
    (output.status.code(), text(&output.stdout).to_owned(), said)
}

fn job(drive: &str, options: &str) -> Value {
    let (code, out, said) = run(drive, options);
    assert_eq!(code, Some(0), "{said}");
    let out: Value = serde_json::from_str(&out).expect("JSON");
    out["jobs"][0].clone()
}

fn mean(job: &Value) -> f64 {
    job["read"]["lat_ns"]["mean"].as_f64().expect("a mean")
}

/// A remote QD1 read takes the CPU time of two queue entries and two crossings longer: 370 ns.
#[test]
fn a_thread_on_the_other_socket_pays_for_it() {
    let read = "--host xeon-2017 --name=a --ioengine=libaio --direct=1 --rw=randread --bs=4k --number_ios=4000";
    for drive in ["p4800x-375", "ram-disk"] {
        let near = mean(&job(drive, read));
        assert_eq!(
            near,
            mean(&job(drive, &format!("{read} --numa_cpu_nodes=0")))
        );
        let far = mean(&job(drive, &format!("{read} --numa_cpu_nodes=1")));
        assert!((far - near - 370.0).abs() < 25.0, "{drive}: {near} {far}");
    }
}

/// The threads of a job take its nodes in turn: the second one is remote.
#[test]
fn threads_take_nodes_in_turn() {
    let both = "--host linux --name=a --ioengine=libaio --direct=1 --rw=randread --bs=4k \
                --number_ios=4000 --numjobs=2 --numa_cpu_nodes=all";
    let (code, out, said) = run("p4510-1000", both);
    assert_eq!(code, Some(0), "{said}");
    let out: Value = serde_json::from_str(&out).expect("JSON");
    let cpu = |thread: usize| out["jobs"][thread]["sys_cpu"].as_f64().expect("a share");
    assert!(cpu(1) > cpu(0) * 1.02, "{} {}", cpu(0), cpu(1));
}

#[test]
fn a_host_refuses_nodes_that_it_does_not_have() {
    let read = "--name=a --direct=1 --rw=randread --bs=4k --number_ios=10 --numa_cpu_nodes=1";
    for (host, wanted) in [
        (
            "linux-desktop",
            "a: numa_cpu_nodes=1, but the host has one socket: node 0",
        ),
        (
            "xeon-2017 --numa_cpu_nodes=2",
            "a: numa_cpu_nodes=2, but the host has the nodes 0 to 1",
        ),
    ] {
        let (code, _, said) = run("p4800x-375", &format!("{read} --host {host}"));
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(wanted), "{said}");
        assert!(said.contains("two sockets (linux, xeon-2017)"), "{said}");
    }
}

#[test]
fn jobs_for_zoned_drives_run_on_emulated_zones() {
    let zoned = "--name=a --ioengine=psync --direct=1 --rw=randwrite --zonemode=zbd --max_open_zones=4 --bs=512k \
                 --numjobs=2 --number_ios=64 --group_reporting";
    for drive in ["p4510-1000", "wd6001fzwx", "p4800x-375"] {
        let (code, out, said) = run(
            drive,
            &format!("{zoned} --zonesize=256m --offset=100z --size=40z"),
        );
        assert_eq!(code, Some(0), "{said}");
        assert!(
            said.contains("zones are emulated on a drive that has none"),
            "{said}"
        );
        let out: Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(out["jobs"][0]["write"]["total_ios"], 128);
    }
    let (code, _, said) = run("p4800x-375", &format!("{zoned} --size=1g"));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("zonemode=zbd without zonesize"), "{said}");
    let (code, _, said) = run(
        "p4800x-375",
        &format!("{zoned} --zonesize=256m --offset=1m --size=256m"),
    );
    assert_eq!(code, Some(2));
    assert!(
        said.contains("holds no whole zone of 268435456 B"),
        "{said}"
    );
    let (code, _, said) = run("p4800x-375", &format!("{zoned} --zonesize=256k --size=1g"));
    assert_eq!(code, Some(2));
    assert!(
        said.contains("a write block of 524288 B is larger than a zone of 262144 B"),
        "{said}"
    );
}

/// Zeroes move no data; trims of several ranges count all of their bytes.
#[test]
fn passthrough_commands_run() {
    let write = "--name=a --ioengine=io_uring_cmd --cmd_type=nvme --rw=write --bs=128k --iodepth=32 --number_ios=2000";
    let bandwidth = |options: &str| {
        let job = job("p4510-1000", &format!("{write} {options}"));
        job["write"]["bw_bytes"].as_f64().expect("a rate")
    };
    let (writes, mixed) = (bandwidth(""), bandwidth("--write_mode=write/50:zeroes/50"));
    assert!(mixed > 1.5 * writes, "{writes} {mixed}");
    assert_eq!(writes, bandwidth("--write_mode=write"));
    let trims = "--name=a --ioengine=io_uring_cmd --cmd_type=nvme --rw=randtrim --bs=4k --number_ios=100 --size=1g";
    let trimmed = job("p4510-1000", &format!("{trims} --num_range=8"));
    assert_eq!(trimmed["trim"]["io_bytes"], 100 * 8 * 4096);
}
