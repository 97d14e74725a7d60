//! Rebuilds the crate when a file of the built-in catalogue comes, goes or changes.

fn main() {
    println!("cargo::rerun-if-changed=../../catalogue");
}
