//! Writing results to files.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::failure::Failure;

/// Writes a file whole or not at all: what was there before stays until the new one is complete.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error| Failure::failed(format!("writing {}", path.display()), error);
    // A device or a pipe (`--output /dev/stdout`) is written to, never replaced.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return fs::write(path, bytes).map_err(failed);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = fs::File::create(&part)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&part, path));
    written.map_err(|error| {
        // Best effort: the error that matters is the first.
        let _ = fs::remove_file(&part);
        failed(error)
    })
}
