//! The catalogue and the pools are part of the program. A file that is added or removed must rebuild the program, but
//! the macro that includes the files cannot detect this.

fn main() {
    println!("cargo:rerun-if-changed=../../catalogue");
    println!("cargo:rerun-if-changed=../../pools");
}
