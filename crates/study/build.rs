//! Catalogue and ledger are parts of the program: a file that is added or taken away must rebuild it, which the macro
//! that includes them cannot see.

fn main() {
    for folder in ["catalogue", "ledger"] {
        println!("cargo:rerun-if-changed=../../{folder}");
    }
}
