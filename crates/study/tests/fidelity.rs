//! The tables of `docs/fidelity.md` are those of the last run of the ledger. The table of quality of service is computed
//! here: each bound of a data sheet is compared with the model. `INSTA_UPDATE=always` rewrites the tables.

use std::fs;
use std::path::Path;

use study::ledger::qos;

/// Returns the generated blocks: the name in the file's comments, and the text.
fn blocks() -> [(&'static str, String); 3] {
    let drives = catalogue::drives().expect("the built-in drives load");
    let bounds = qos::against_sheets(&drives, &lab::to_the_end).expect("each bound has its run");
    let tables = study::ledger::support::tables().expect("the built-in drives load");
    [
        (
            "beside the data sheet",
            study::ledger::support::against_sheet(),
        ),
        ("quality of service", qos::table(&bounds)),
        ("tables", tables),
    ]
}

#[test]
fn the_tables_are_those_of_the_last_run() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fidelity.md");
    let text = fs::read_to_string(&path).expect("docs/fidelity.md is there");
    let mut wanted = text.clone();
    for (name, block) in blocks() {
        let begin = format!(
            "<!-- {name}: written by `INSTA_UPDATE=always cargo test -p drivelab-study --test fidelity` -->\n"
        );
        let end = format!("<!-- end of {name} -->");
        let (before, rest) = wanted
            .split_once(&begin)
            .expect("the block begins somewhere");
        let (_, after) = rest.split_once(&end).expect("the block ends somewhere");
        wanted = format!("{before}{begin}{block}{end}{after}");
    }
    if text == wanted {
        return;
    }
    if std::env::var("INSTA_UPDATE").as_deref() == Ok("always") {
        fs::write(&path, wanted).expect("docs/fidelity.md can be written");
        return;
    }
    panic!(
        "docs/fidelity.md is older than ledger/support.json or than a model: run this test with INSTA_UPDATE=always"
    );
}
