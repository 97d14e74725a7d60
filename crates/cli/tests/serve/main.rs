//! `drivelab serve` from outside: what it prints and refuses, and what is there after it was killed.

mod counted;
mod durable;
mod faults;
mod figures;
mod full;
mod legs;
mod old_copies;
mod pools;
mod recorded;
mod refused;
mod rig;
mod stalls;
