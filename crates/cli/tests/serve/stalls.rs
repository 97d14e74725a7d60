//! Nothing that one client asks for stops the server for all.

use live::nbd::wire::command;

use crate::rig::{BLOCK, Client, Server, serve};

/// CPU time of a server so far, in ticks of 10 ms.
fn cpu_ticks(server: &Server) -> u64 {
    let path = format!("/proc/{}/stat", server.child.id());
    let text = std::fs::read_to_string(path).expect("Linux");
    let after = text.rsplit(')').next().expect("a name in brackets");
    let ticks = |at| {
        after
            .split_whitespace()
            .nth(at)
            .and_then(|it| it.parse::<u64>().ok())
    };
    ticks(11).expect("user") + ticks(12).expect("system")
}

/// Its map is made before it listens: some hundred ticks, as long as nobody else would be served.
#[test]
fn the_first_write_to_a_steady_drive_costs_no_more_than_any_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path(), "p3700-1600", &["--state", "steady"]);
    let mut client = Client::connect(&server);
    let before = cpu_ticks(&server);
    client.send(command::WRITE, 3, &[1; BLOCK]).expect("sent");
    client.reply().expect("an answer");
    let used = cpu_ticks(&server) - before;
    assert!(used < 10, "{used} ticks of CPU time for one write");
}
