//! Log-structured storage, compression and autotrim of a pool, and caches for a hard disk, as a user runs them.

use serde_json::Value;

use crate::rig::{drivelab, text};

const RUN: [&str; 9] = [
    "--name=a",
    "--ioengine=libaio",
    "--direct=1",
    "--iodepth=16",
    "--bs=32k",
    "--size=2g",
    "--number_ios=4000",
    "--norandommap",
    "--output-format=json+",
];

fn json(args: &[&str]) -> Value {
    let output = drivelab(args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Returns the job's result, and the bytes written to all members.
fn run(drive: &str, more: &[&str]) -> (Value, f64) {
    let all = json(&[&["run", drive], &RUN[..], more].concat());
    let members = all["members"].as_array().expect("members").iter();
    let written = members.map(|it| it["write_bytes"].as_f64().expect("bytes"));
    (all["jobs"][0].clone(), written.sum())
}

/// A write reaches two hosts as a log record and five as a part of a stripe. Compression divides both.
#[test]
fn vsan_esa_writes_stripes_and_compresses() {
    let client = 4000.0 * 32.0 * 1024.0;
    let (job, plain) = run("vsan-esa", &["--rw=randwrite"]);
    assert_eq!(job["write"]["total_ios"], 4000);
    let amplified = plain / client;
    assert!((3.1..3.7).contains(&amplified), "{amplified}");
    let (_, half) = run(
        "vsan-esa",
        &["--rw=randwrite", "--set", "tier.esa.compression=2"],
    );
    assert!((1.7..2.2).contains(&(plain / half)), "{plain} {half}");
}

#[test]
fn vsan_esa_has_odds_and_is_not_proved() {
    let odds = drivelab(&["odds", "vsan-esa"]);
    assert_eq!(odds.status.code(), Some(0), "{}", text(&odds.stderr));
    assert!(text(&odds.stdout).contains("2 drives failed at once"));
    let shown = drivelab(&["show", "vsan-esa"]);
    let shown = text(&shown.stdout);
    assert!(shown.contains("acknowledged is durable, lost if (any 2 of host.0 to host.4)"));
    let proved = drivelab(&["prove", "vsan-esa"]);
    assert_eq!(proved.status.code(), Some(2));
    assert!(text(&proved.stderr).contains("without data"));
}

#[test]
fn invalid_settings_of_log_structured_storage_are_reported() {
    let over = "capacity=raid5(5*d7-p5510-3840; chunk=128k), log=mirror(2*p4801x-100)";
    for (key, help) in [
        ("compression=9", "from 1 to 8"),
        ("stripe=32k", "from 64 KiB"),
        ("compress=1GB/s", "did you mean `compression`?"),
    ] {
        let pool = format!("log-structured({over}; {key})");
        let shown = drivelab(&["show", &pool]);
        assert_eq!(shown.status.code(), Some(2), "{key}");
        let said = text(&shown.stderr);
        assert!(
            said.contains("log-structured.") && said.contains(help),
            "{said}"
        );
    }
    let none = drivelab(&["show", "log-structured(capacity=p4801x-100)"]);
    assert!(text(&none.stderr).contains("`tier.log-structured.log` is missing"));
}

/// Compression of a dataset moves fewer bytes, and autotrim of freed space lowers the write amplification of flash.
#[test]
fn compression_and_autotrim_of_an_intent_log_change_what_main_does() {
    let pool = |settings: &str| {
        format!("intent-log(main=mirror(2*p3700-800); {settings} txg=50ms, size=100g)")
    };
    let load = [
        "--rw=randwrite",
        "--bs=128k",
        "--size=20g",
        "--rate_iops=2000",
        "--number_ios=10000",
    ];
    let measured = |settings: &str| {
        let all = json(&[&["run", &pool(settings)], &RUN[..], &load].concat());
        let first = &all["members"][0];
        let number = |key: &str| first[key].as_f64().expect("a number");
        (number("write_bytes"), number("write_amplification"))
    };
    let (plain, amplified) = measured("");
    let (half, _) = measured("compression=2,");
    assert!((1.8..2.1).contains(&(plain / half)), "{plain} {half}");
    let (_, trimmed) = measured("autotrim=true, zfs_trim_txg_batch=1,");
    assert!(trimmed < amplified, "{trimmed} {amplified}");
    let refused = drivelab(&["prove", &pool("compression=2,")]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}

/// Optane Memory before a hard disk makes repeated reads faster; writes compare with the disk's volatile cache.
#[test]
fn optane_memory_makes_reads_of_a_hard_disk_faster() {
    let load = [
        "--rw=randrw",
        "--bs=4k",
        "--size=64m",
        "--random_distribution=zipf:1.2",
        "--number_ios=20000",
    ];
    let mean = |drive: &str| {
        let all = json(&[&["run", drive], &RUN[..], &load].concat());
        let mean = &all["jobs"][0]["read"]["clat_ns"]["mean"];
        mean.as_f64().expect("a mean")
    };
    let (cached, plain) = (mean("rst-optane-16"), mean("wd6001fzwx"));
    assert!(cached < plain / 2.0, "{cached} {plain}");
}

/// dm-writecache on persistent memory needs no commits: a synchronous write takes a fraction of the time.
#[test]
fn dm_writecache_on_persistent_memory_writes_without_commits() {
    let iops = |like: &str| {
        let drive =
            format!("write-back-cache(cache=optane-pmem-128, capacity=p4510-1000; like={like})");
        let load = ["--rw=randwrite", "--bs=4k", "--sync=1", "--ioengine=sync"];
        run(&drive, &load).0["write"]["iops"]
            .as_f64()
            .expect("a rate")
    };
    let (ssd, pmem) = (iops("dm-writecache"), iops("dm-writecache-pmem"));
    assert!(pmem > 4.0 * ssd, "{pmem} {ssd}");
}
