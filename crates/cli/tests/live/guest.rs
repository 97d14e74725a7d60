//! Tests of the test environment: a guest boots, runs a script, and returns output and exit code.

use std::time::Duration;

use crate::rig::guest::{Guest, Kernel};

const LIMIT: Duration = Duration::from_secs(120);

fn talks(kernel: Kernel) {
    let guest = Guest::new(kernel);
    if !guest.is_there() {
        return;
    }
    let mut words = Vec::new();
    let script = "echo \"on $(uname -s)\"; host one; host two; exit 7";
    let ended = guest.run_with(script, LIMIT, |word| words.push(word.to_owned()));
    assert_eq!(ended.code, Some(7), "{}", ended.said);
    assert!(ended.said.contains("on Linux"), "{}", ended.said);
    assert_eq!(words, ["one", "two"]);
}

#[test]
fn user_mode_linux_talks_to_the_test() {
    talks(Kernel::UserMode);
}

#[test]
fn an_emulated_machine_talks_to_the_test() {
    talks(Kernel::Emulated(2));
}
