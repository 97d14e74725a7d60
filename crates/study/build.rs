//! The ledger is a part of the program: a file that is added or taken away must rebuild it, which the macro that includes
//! it cannot see.

fn main() {
    println!("cargo:rerun-if-changed=../../ledger");
}
