//! The tables of `docs/fidelity.md` are those of the last run of the ledger. `INSTA_UPDATE=always` writes them anew.

use std::fs;
use std::path::Path;

const BEGIN: &str = "<!-- tables: written by `INSTA_UPDATE=always cargo test -p drivelab-study --test fidelity` -->\n";
const END: &str = "<!-- end of tables -->";

#[test]
fn the_tables_are_those_of_the_last_run() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fidelity.md");
    let text = fs::read_to_string(&path).expect("docs/fidelity.md is there");
    let (before, rest) = text.split_once(BEGIN).expect("the tables begin somewhere");
    let (written, after) = rest.split_once(END).expect("the tables end somewhere");
    let tables = study::ledger::support::tables().expect("the built-in drives load");
    if written == tables {
        return;
    }
    if std::env::var("INSTA_UPDATE").as_deref() == Ok("always") {
        let text = format!("{before}{BEGIN}{tables}{END}{after}");
        fs::write(&path, text).expect("docs/fidelity.md can be written");
        return;
    }
    panic!(
        "docs/fidelity.md is older than ledger/support.json: run this test with INSTA_UPDATE=always"
    );
}
