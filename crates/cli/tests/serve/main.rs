//! `drivelab serve` from outside: its output, its refusals, and its data after a kill.

mod agreement;
mod arrays;
mod contents;
mod counted;
mod damaged;
mod durable;
mod faults;
mod figures;
mod full;
mod legs;
mod noted;
mod old_copies;
mod pools;
mod programs;
mod recorded;
mod refused;
mod rig;
mod stalls;
