//! `drivelab fit`: files that it must not change.

use std::fs;

use crate::rig::{drivelab_in, text};

#[test]
fn a_file_that_is_there_is_replaced_only_by_force() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let mine = folder.path().join("mine.toml");
    fs::write(&mine, "name = \"mine\"\n").expect("it can be written");
    let measured = ["fit", "p4800x-375", "--measured", "none.json"];
    for from in [&["fit", "--sheet", "none.toml"][..], &measured] {
        for (force, refused) in [(&[][..], true), (&["--force"], false)] {
            let to = ["--output", "mine.toml"];
            let output = drivelab_in(folder.path(), &[from, &to, force].concat());
            // There is nothing to read, either.
            assert_eq!(output.status.code(), Some(2));
            let said = text(&output.stderr);
            assert!(said.contains("none."), "{said}");
            assert_eq!(said.contains("exists already"), refused, "{said}");
            let kept = fs::read_to_string(&mine).expect("it is there");
            assert_eq!(kept, "name = \"mine\"\n");
        }
    }
}
