//! Displayed figures: the dashboard's, and the span that is subtracted for the transport.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use live::nbd::wire::command;

use crate::rig::{BLOCK, Client, SIZE, Server, drivelab, end, figure, first_line, serve, tell};

/// The server provides every figure of the dashboard, and the dashboard has all figures that a user must see.
#[test]
fn the_dashboard_asks_for_figures_that_there_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let metrics = folder.path().join("metrics");
    let address = format!("unix:{}", metrics.display());
    let _server = serve(folder.path(), "p4800x-375", &["--metrics", &address]);
    let mut stream = UnixStream::connect(metrics).expect("it listens");
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\n\r\n")
        .expect("sent");
    let mut scraped = String::new();
    stream.read_to_string(&mut scraped).expect("figures");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/grafana.json");
    let text = std::fs::read_to_string(path).expect("the dashboard");
    let dashboard: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let mut asked = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().expect("an expression");
            let words = expression.split(|it: char| !it.is_alphanumeric() && it != '_');
            let names = words.filter(|word| word.starts_with("drivelab_"));
            asked.extend(names.map(String::from));
        }
    }
    for name in &asked {
        let given = scraped.lines().any(|line| {
            let rest = line.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.starts_with('{') || rest.starts_with(' '))
        });
        assert!(given, "{name} is not in:\n{scraped}");
    }
    for shown in [
        "reads_total",
        "written_bytes_total",
        "model_latency_seconds_total",
        "command_latency_seconds",
        "lateness_seconds",
        "late_ratio",
        "queue_depth",
        "percentage_used",
        "write_amplification_ratio",
    ] {
        assert!(
            asked.contains(&format!("drivelab_{shown}")),
            "{shown}: {asked:?}"
        );
    }
}

/// A failed member makes a pool degraded, which still accepts writes; unknown paths are not found.
#[test]
fn healthz_says_how_a_pool_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let (metrics, control) = (folder.path().join("metrics"), folder.path().join("c"));
    let at = format!("unix:{}", metrics.display());
    let control_at = control.display().to_string();
    let more = ["--metrics", &*at, "--control", &*control_at];
    let _server = serve(folder.path(), "mirror(2*p4801x-100)", &more);
    let get = |request: &str| {
        let mut stream = UnixStream::connect(&metrics).expect("it listens");
        write!(stream, "{request} HTTP/1.1\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    let health = get("GET /healthz");
    assert!(health.starts_with("HTTP/1.1 200 OK\r\n"), "{health}");
    assert!(
        health.ends_with("\r\n\r\nmirror(2*p4801x-100): ok\n"),
        "{health}"
    );
    assert_eq!(tell(&control, "p4801x-100.1: dies"), "ok\n");
    let health = get("GET /healthz?full");
    assert!(health.starts_with("HTTP/1.1 200 OK\r\n"), "{health}");
    let said = "mirror(2*p4801x-100): degraded (p4801x-100.1 does not answer)\n";
    assert!(health.ends_with(said), "{health}");
    assert!(get("GET /metrics").contains("drivelab_reads_total"));
    assert!(get("GET /other").starts_with("HTTP/1.1 404 Not Found\r\n"));
    assert!(get("PUT /metrics").starts_with("HTTP/1.1 405 "));
}

/// Only the owner can access files and sockets, whatever the umask is.
#[test]
fn stores_and_sockets_are_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let mut child = std::process::Command::new("sh")
        .args([
            "-c",
            "umask 0; exec \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_drivelab"),
            "serve",
        ])
        .args([
            "p4801x-100",
            "mirror(2*p4801x-100)",
            "--size",
            SIZE,
            "--speed",
            "0",
        ])
        .args(["--store", &path("disk.img"), "--store", &path("pool")])
        .args(["--nbd", &format!("unix:{}", path("nbd"))])
        .args([
            "--control",
            &path("control"),
            "--vhost-user",
            &path("guest"),
        ])
        .args(["--metrics", &format!("unix:{}", path("metrics"))])
        .stdout(Stdio::piped())
        .spawn()
        .expect("drivelab starts");
    first_line(&mut child);
    let socket = folder.path().join("nbd");
    let server = Server { child, socket };
    assert_eq!(tell(&folder.path().join("control"), "save"), "ok\n");
    let mut seen = Vec::new();
    for folder in [folder.path().to_owned(), folder.path().join("pool")] {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let meta = entry.metadata().expect("a file");
            let wanted = if meta.is_dir() { 0o700 } else { 0o600 };
            let name = entry.file_name().to_string_lossy().into_owned();
            assert_eq!(meta.permissions().mode() & 0o7777, wanted, "{name}");
            seen.push(name);
        }
    }
    // disk.img and its state, the folder, two members with their states, pool.state, four sockets.
    assert_eq!(seen.len(), 12, "{seen:?}");
    end(server);
}

/// Latencies of each kind of command, and the maximum lateness, during the run and at the end.
#[test]
fn percentiles_of_the_model_and_the_longest_lateness_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let (socket, control) = (folder.path().join("nbd"), folder.path().join("control"));
    let mut child = drivelab(&["950pro-256", "--size", SIZE, "--state", "fresh", "--nbd"])
        .arg(format!("unix:{}", socket.display()))
        .arg("--control")
        .arg(&control)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("drivelab starts");
    first_line(&mut child);
    let mut said = child.stderr.take().expect("piped");
    let server = Server { child, socket };
    let mut client = Client::connect(&server);
    for block in 0..30 {
        client
            .send(command::WRITE, block, &[1; BLOCK])
            .expect("sent");
        client.reply().expect("an answer");
        client.read(block);
        client.send(command::FLUSH, 0, &[]).expect("sent");
        client.reply().expect("an answer");
    }
    let status = tell(&control, "status");
    let value = |labels: &str| -> f64 {
        let line = status.lines().find_map(|line| line.strip_prefix(labels));
        let line = line.unwrap_or_else(|| panic!("no {labels}: {status}"));
        line.trim().parse().expect("a number")
    };
    let of = |kind: &str, quantile: &str| {
        value(&format!(
            "drivelab_command_latency_seconds{{drive=\"950pro-256\",command=\"{kind}\",quantile=\"{quantile}\"}}"
        ))
    };
    for kind in ["read", "write", "flush"] {
        let (half, longest) = (of(kind, "0.5"), of(kind, "1"));
        assert!(0.0 < half && half <= longest, "{kind}: {half} {longest}");
    }
    // A flush waits for the medium; a write to the buffer does not.
    assert!(of("flush", "0.5") > 2.0 * of("write", "0.5"), "{status}");
    let late = value("drivelab_lateness_seconds{quantile=\"1\"}");
    assert!(late >= value("drivelab_lateness_seconds{quantile=\"0.5\"}") && late > 0.0);
    drop(client);
    end(server);
    let mut text = String::new();
    said.read_to_string(&mut text).expect("text");
    for start in [
        "950pro-256: read",
        "950pro-256: write",
        "950pro-256: flush",
        "lateness of 90",
    ] {
        let line = text.lines().find(|line| line.starts_with(start));
        let line = line.unwrap_or_else(|| panic!("no {start}: {text}"));
        assert!(line.contains("p50 ") && line.contains("longest "), "{line}");
    }
}

/// The span measured at the start is the one that is subtracted.
#[test]
fn compensation_subtracts_what_was_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let (socket, control) = (folder.path().join("nbd"), folder.path().join("control"));
    let run = |more: &[&str]| {
        let said = folder.path().join("said");
        let mut child = drivelab(&["p4800x-375", "--size", SIZE, "--nbd"])
            .arg(format!("unix:{}", socket.display()))
            .arg("--control")
            .arg(&control)
            .args(more)
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&said).expect("a file"))
            .spawn()
            .expect("drivelab starts");
        first_line(&mut child);
        let server = Server {
            child,
            socket: socket.clone(),
        };
        let seconds = figure(&control, "compensation_seconds");
        end(server);
        (seconds, std::fs::read_to_string(said).expect("text"))
    };
    let (seconds, said) = run(&[]);
    assert!(seconds == 0.0 && !said.contains("earlier"), "{said}");
    let (seconds, said) = run(&["--compensate"]);
    let line = said.lines().find(|line| line.contains("us earlier"));
    let told: Option<f64> = line.and_then(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.iter().find_map(|word| word.parse().ok())
    });
    let told = told.unwrap_or_else(|| panic!("not told: {said}"));
    assert!(
        told > 0.0 && (told - seconds * 1e6).abs() < 0.06,
        "{said} {seconds}"
    );
}
