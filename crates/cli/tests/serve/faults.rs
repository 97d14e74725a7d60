//! Faults by script and by the control socket, as a client sees them.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use live::nbd::wire::command;

use crate::rig::{BLOCKS, Client, figure, serve, stamped, tell};

#[test]
fn faults_happen_by_script_and_by_control() {
    const EIO: u32 = 5;
    let folder = tempfile::tempdir().expect("a folder");
    let (control, script) = (folder.path().join("control"), folder.path().join("script"));
    // Blocks 10 and 11, of eight sectors.
    std::fs::write(&script, "# unreadable\nmedium-error 80 16\n").expect("written");
    let text = |path: &Path| path.display().to_string();
    let more = ["--control", &text(&control), "--fault", &text(&script)];
    let server = serve(folder.path(), "p4800x-375", &more);
    let mut client = Client::connect(&server);
    let ok = |line: &str| assert_eq!(tell(&control, line), "ok\n", "{line}");
    // The script's faults occur at the first tick of the loop.
    let start = Instant::now();
    while client.error(10) == 0 {
        assert!(start.elapsed() < Duration::from_secs(10), "no fault");
    }
    assert_eq!([client.error(9), client.error(11)], [0, EIO]);
    client
        .send(command::WRITE, 10, &stamped(10, 1))
        .expect("sent");
    assert_eq!(client.reply().expect("an answer"), 10);
    assert_eq!([client.error(10), client.error(11)], [0, EIO]);
    ok("heal 88 8");
    ok("p4800x-375: medium-error 8 1");
    assert_eq!([client.error(11), client.error(1)], [0, EIO]);
    ok("wear 104");
    ok("ambient 95");
    ok("refresh");
    let figure = r#"drivelab_percentage_used{drive="p4800x-375"} 104"#;
    assert!(tell(&control, "status").contains(figure));
    assert!(tell(&control, "nonsense").starts_with("error: "));
    assert!(tell(&control, "other: stuck").starts_with("error: "));
    // Nothing completes until it is released.
    ok("stuck");
    client.send(command::READ, 10, &[]).expect("sent");
    let wait = |client: &Client, time| client.0.set_read_timeout(time).expect("a time");
    wait(&client, Some(Duration::from_millis(100)));
    assert!(client.reply().is_err(), "it is stuck");
    wait(&client, None);
    ok("unstuck");
    assert_eq!(client.reply().expect("an answer"), 10);
    // Connections of clients end, those of control do not.
    for fault in ["drop", "power-cut"] {
        let mut client = Client::connect(&server);
        ok(fault);
        assert_eq!(client.0.read(&mut [0]).expect("an end"), 0, "{fault}");
    }
    assert_eq!(Client::connect(&server).read(10), stamped(10, 1));
}

/// Heating by the control socket slows a client's commands until the air has cooled down.
#[test]
fn a_served_drive_throttles_while_it_is_too_hot() {
    let folder = tempfile::tempdir().expect("a folder");
    let control = folder.path().join("control");
    let text = control.display().to_string();
    let server = serve(folder.path(), "p4800x-375", &["--control", &text]);
    let mut client = Client::connect(&server);
    let ok = |line: &str| assert_eq!(tell(&control, line), "ok\n", "{line}");
    // For 300 MiB, more than the governor allows in its window; virtual time, in seconds.
    let latency = |client: &mut Client| {
        let before = figure(&control, "model_latency_seconds_total");
        (0..300).for_each(|_| client.write_much());
        figure(&control, "model_latency_seconds_total") - before
    };
    // At full speed, virtual time advances only with commands: ten minutes are a read with that latency.
    let in_air_of = |celsius: u32, client: &mut Client| {
        ok(&format!("ambient {celsius}"));
        ok("slow 10min");
        client.read(0);
        ok("slow 0us");
    };
    let cool = latency(&mut client);
    in_air_of(120, &mut client);
    assert!(figure(&control, "temperature_celsius") > 100.0);
    let hot = latency(&mut client);
    in_air_of(25, &mut client);
    assert!(figure(&control, "temperature_celsius") < 70.0);
    let again = latency(&mut client);
    assert!(hot > 1.5 * cool, "{hot} s, cool {cool} s");
    assert!(
        (again / cool - 1.0).abs() < 0.05,
        "{again} s, before {cool} s"
    );
}

/// Background work after a power-on, started by the control socket, delays a client's reads until it is done.
#[test]
fn reads_of_a_served_drive_wait_for_the_refresh() {
    let folder = tempfile::tempdir().expect("a folder");
    let control = folder.path().join("control");
    let text = control.display().to_string();
    let server = serve(folder.path(), "p4800x-375", &["--control", &text]);
    let mut client = Client::connect(&server);
    let ok = |line: &str| assert_eq!(tell(&control, line), "ok\n", "{line}");
    let latency = |client: &mut Client| {
        let before = figure(&control, "model_latency_seconds_total");
        for read in 0..10_000_u64 {
            client.read(read.wrapping_mul(0x9e37_79b9) % BLOCKS);
        }
        figure(&control, "model_latency_seconds_total") - before
    };
    let before = latency(&mut client);
    ok("refresh");
    let during = latency(&mut client);
    // Three hours later in virtual time.
    ok("slow 4h");
    client.read(0);
    ok("slow 0us");
    let after = latency(&mut client);
    println!("{before} {during} {after}");
    assert!(
        during - before > 3.0 * (after - before).abs(),
        "{before} {during} {after}"
    );
}
