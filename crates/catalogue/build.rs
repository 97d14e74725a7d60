//! The catalogue and the pools are parts of the program: a file that is added or taken away must rebuild it, which the macro that includes
//! it cannot see.

fn main() {
    println!("cargo:rerun-if-changed=../../catalogue");
    println!("cargo:rerun-if-changed=../../pools");
}
