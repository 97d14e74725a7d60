//! Jobs with files: etcd's loop on a RAM disk, whose times have a closed form, and hosts without files.

use lab::{Lab, Machine, Outcome, Scenario};
use model::Span;
use model::host::{FileCosts, Filesystem, HostConfig};
use model::media::Precondition;
use model::media::ram::RamConfig;
use text::problem::Problems;
use tier::DriveConfig;
use workload::job::{Extent, Job, Mix};

const SERVICE_US: f64 = 10.0;

fn run(files: Option<FileCosts>, job: Job) -> Result<Outcome, Problems> {
    let drive = DriveConfig::Ram(RamConfig {
        bytes: 1 << 30,
        per_command: Span::from_us(10),
        picoseconds_per_byte: 0,
        memory_bus: None,
        spread: 0.0,
    });
    let host = HostConfig {
        cores: 4,
        files,
        ..HostConfig::default()
    };
    let machine = Machine::from_configs("a drive", drive, host);
    Lab::new().run(&Scenario::jobs(machine, Precondition::Fresh, vec![job], 1))
}

fn log(filesystem: Option<Filesystem>, overwrite: bool) -> Job {
    Job {
        mix: Mix::Write,
        size: Some(Extent::Bytes(4 << 20)),
        fdatasync: 1,
        direct: false,
        filesystem,
        overwrite,
        ..Job::default()
    }
}

#[test]
fn a_log_waits_for_its_data_and_its_commits_in_series() {
    let costs = FileCosts {
        cached: Span::from_us(1),
        wake: Span::from_us(2),
        ..FileCosts::default()
    };
    // A RAM disk has no volatile cache, so nothing is flushed.
    for (filesystem, overwrite, sync) in [
        (Some(Filesystem::Ext4), false, SERVICE_US * 3.0 + 4.0),
        (Some(Filesystem::Xfs), false, SERVICE_US * 2.0 + 4.0),
        (Some(Filesystem::Ext4), true, SERVICE_US),
        (None, false, SERVICE_US),
    ] {
        let outcome = run(Some(costs), log(filesystem, overwrite)).expect("it fits");
        let thread = &outcome.threads[0];
        let mean = |measured: &lab::Measured| measured.latency.mean_ns() / 1e3;
        // No sync after the last write, as in fio: the job has ended.
        assert_eq!(thread.sync.ios, 1023);
        assert!(
            (mean(&thread.sync) / sync - 1.0).abs() < 1e-3,
            "{}",
            mean(&thread.sync)
        );
        assert!((mean(&thread.write) - 1.0).abs() < 1e-3);
        assert!(
            thread.cpu[1] >= Span::from_us(1024),
            "copies take system time"
        );
    }
}

#[test]
fn a_host_that_knows_no_files_refuses_them() {
    let wrong = run(None, log(Some(Filesystem::Ext4), false)).expect_err("no costs");
    let help = wrong.0[0].help.as_deref().unwrap_or_default();
    assert!(help.contains("--filesystem none"), "{wrong}");
    let direct = Job {
        direct: true,
        filesystem: None,
        ..log(None, false)
    };
    run(None, direct).expect("it needs none");
}
