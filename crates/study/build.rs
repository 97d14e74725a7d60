//! The ledger is built into the program. Adding or removing a file must trigger a rebuild, which the macro that
//! includes the files cannot detect.

fn main() {
    println!("cargo:rerun-if-changed=../../ledger");
}
