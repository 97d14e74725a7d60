//! Refusals, after which nothing has changed.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use crate::rig::{SIZE, drivelab, serve};

/// Refused arguments, with exit code 2 and a word that must be in the message.
#[test]
fn bad_arguments_and_foreign_stores_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("foreign.img"), "not ours").expect("written");
    drop(serve(folder.path(), "p4800x-375", &[]));
    let state = path("disk.img.state");
    let good = std::fs::read_to_string(&state).expect("a state");
    let refused = |args: &[&str], word: &str| {
        let output = drivelab(args).output().expect("drivelab starts");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(word), "{word}: {message}");
    };
    let nbd = format!("unix:{}", path("other.sock"));
    refused(&["p4800x-375"], "no address");
    refused(&["p4800x-375", "--nbd", "0.0.0.0:10809"], "--allow-remote");
    refused(&["p4800x-375", "--nbd", "nowhere"], "not an address");
    let unknown = ["p4800x-375", "--nbd", "no-such-host.invalid:10809"];
    refused(&unknown, "no such host");
    refused(&["p4800x-357", "--nbd", &nbd], "p4800x-375");
    refused(
        &["p4800x-375", "--nbd", &nbd, "--size", "400G"],
        "larger than p4800x-375",
    );
    let states = ["p4800x-375", "--nbd", &nbd, "--power-states"];
    refused(&states, "has no power states");
    let air = "thermal.ambient=80C";
    let hot = ["p4800x-375", "--nbd", &nbd, "--set", air];
    refused(&hot, "C without load");
    let both = ["p4800x-375", "--nbd", &nbd, "--compensate", "--speed", "0"];
    refused(&both, "leave one of them out");
    let store = path("foreign.img");
    refused(
        &["p4800x-375", "--nbd", &nbd, "--store", &store],
        "is missing",
    );
    let store = path("disk.img");
    let ours = [
        "p4800x-375",
        "--nbd",
        &nbd,
        "--store",
        &store,
        "--size",
        SIZE,
    ];
    refused(
        &["900p-280", "--nbd", &nbd, "--store", &store, "--size", SIZE],
        "belongs to",
    );
    refused(
        &[
            "p4800x-375",
            "--nbd",
            &nbd,
            "--store",
            &store,
            "--size",
            "8M",
        ],
        "belongs to",
    );
    std::fs::write(&state, good.replace("power_cycles 1", "power_cycles 7")).expect("written");
    refused(&ours, "checksum");
    std::fs::write(&state, good.replace("store 2", "store 9")).expect("written");
    refused(&ours, "version");
    std::fs::write(&state, &good).expect("written");
    let _server = serve(folder.path(), "p4800x-375", &[]);
    refused(&ours, "in use");
}

/// Faults that a drive cannot have are reported before the first fault of a script.
#[test]
fn faults_that_a_drive_cannot_have_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (script, nbd) = (path("script"), format!("unix:{}", path("nbd")));
    let faults = "at 1h heal 99999999 1\nat 2h ambient 900\nat 3h wear 7\n";
    std::fs::write(&script, faults).expect("written");
    let args = ["--nbd", &nbd, "--size", SIZE, "--fault", &script];
    let output = drivelab(&["ram-disk"]).args(args).output();
    let output = output.expect("drivelab starts");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    for words in [
        "LBA 99999999 is beyond the end",
        "from -60 to 200 degrees",
        "does not wear",
        &format!("{script}:1"),
        &format!("{script}:2"),
        &format!("{script}:3"),
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
    std::fs::write(&script, "drop\n\nat 1h ram-dusk: drop\n").expect("written");
    let output = drivelab(&["ram-disk"]).args(args).output();
    let output = output.expect("drivelab starts");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    let wanted = "no drive `ram-dusk`; there are ram-disk";
    assert!(message.contains(wanted), "{message}");
    assert!(message.contains(&format!("{script}:3")), "{message}");
}

/// An unavailable address is reported, with a suggestion, before anything is opened or measured.
#[test]
fn an_address_that_cannot_be_had_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let unix = |name: &str| format!("unix:{}", path(name));
    std::fs::write(path("file"), "mine").expect("written");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken_address(&taken);
    let _other = UnixListener::bind(folder.path().join("taken")).expect("a socket");
    let refused = |args: &[&str], words: &[&str]| {
        let store = path("new.img");
        let mut command = drivelab(&["p4800x-375", "--size", SIZE, "--store", &store]);
        let output = command.args(args).output().expect("drivelab starts");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        for word in words {
            assert!(message.contains(word), "{args:?}: {word}: {message}");
        }
        assert!(
            !message.contains("a 4 KiB read takes"),
            "measured: {message}"
        );
        let left: Vec<_> = std::fs::read_dir(folder.path())
            .expect("a folder")
            .collect();
        assert_eq!(left.len(), 2, "{left:?}");
    };
    let already = "listens there already";
    for option in ["--nbd", "--nvme-tcp", "--metrics"] {
        let option_and_address = format!("{option} {taken}");
        refused(
            &["--nbd", &unix("new"), option, &taken],
            &[&option_and_address, already, "another port"],
        );
    }
    refused(&["--nbd", &unix("taken")], &[already, "another path"]);
    refused(&["--nbd", &unix("file")], &["not a socket"]);
    let nowhere = unix("none/nbd");
    refused(
        &["--nbd", &nowhere],
        &["no such folder", "create the folder"],
    );
    let long = path(&"long".repeat(40));
    refused(&["--vhost-user", &long], &["too long", "at most 107"]);
    // Reserved for documentation: no machine has it.
    let foreign = ["--allow-remote", "--nbd", "192.0.2.1:10809"];
    refused(&foreign, &["no such address", "127.0.0.1"]);
    // All problems at once.
    refused(
        &["--nbd", &taken, "--control", &path("none/control")],
        &["--nbd", "--control", already, "no such folder"],
    );
}

fn taken_address(listener: &TcpListener) -> String {
    listener.local_addr().expect("an address").to_string()
}
