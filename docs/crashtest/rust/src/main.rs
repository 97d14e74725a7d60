//! Stores orders in a file, and acknowledges each one when it is durable. `orders check FILE` checks the file.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// Number of orders.
const ORDERS: u32 = 10;

/// Appends orders. With `ORDERS_CARELESS`, it does not synchronize the file.
fn load(path: &Path) -> io::Result<()> {
    let careless = env::var_os("ORDERS_CARELESS").is_some();
    let mut acks = File::create(env::var("DRIVELAB_ACKS").map_err(io::Error::other)?)?;
    let mut file = File::create(path)?;
    // The name of a new file is durable when its folder is synchronized.
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()?;
    for order in 1..=ORDERS {
        writeln!(file, "order {order}")?;
        if !careless {
            file.sync_all()?;
        }
        writeln!(acks, "{order}")?;
    }
    Ok(())
}

/// Checks that each acknowledged order is in the file.
fn check(path: &Path) -> io::Result<ExitCode> {
    let acks = fs::read_to_string(env::var("DRIVELAB_ACKS").map_err(io::Error::other)?)?;
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        text => text?,
    };
    for order in acks.lines() {
        if !text.lines().any(|line| line == format!("order {order}")) {
            println!("lost {order}");
            return Ok(ExitCode::from(10));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn main() -> io::Result<ExitCode> {
    let folder = env::var("DRIVELAB_DIR").map_err(io::Error::other)?;
    let path = Path::new(&folder).join("orders");
    match env::args().nth(1).as_deref() {
        Some("check") => check(&path),
        _ => load(&path).map(|()| ExitCode::SUCCESS),
    }
}
