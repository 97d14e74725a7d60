//! Media: the drives that are not composed of other drives. Each is a file or folder that implements [`Medium`] and
//! [`MediumDrive`]; a drive of any medium is `Drive`, in the crate `tier`.

pub mod hdd;
pub mod medium;
pub mod nand;
pub mod ram;
pub mod volume;
pub mod xpoint;

pub use medium::{Medium, MediumDrive, Precondition, Seeds};
