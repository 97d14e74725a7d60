//! `drivelab life --smart`: end of life of real drives, from their SMART data.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use report::decide::view;
use study::decide::fleet::{self, UserRating};
use study::smart::{self, Dump};
use text::problem::Problems;
use text::quantity::{Bytes, quantity};

use crate::failure::{Failure, on_command_line};
use crate::output;

/// Maximum size of a file: SMART data of tens of thousands of drives.
const LARGEST: u64 = 256 << 20;

/// Options of `life --smart`.
pub(crate) struct FleetOptions<'a> {
    pub(crate) files: &'a [PathBuf],
    pub(crate) ratings: &'a [UserRating],
    pub(crate) years: Option<f64>,
    pub(crate) json: bool,
    pub(crate) csv: &'a Option<PathBuf>,
    pub(crate) page: &'a Option<PathBuf>,
}

/// Parses a rating such as `600TB`, or `980=600TB` for models that contain `980`.
pub(crate) fn rating(text: &str) -> Result<UserRating, String> {
    let (model, bytes) = match text.rsplit_once('=') {
        Some((model, bytes)) => (Some(model.trim()), bytes),
        None => (None, text),
    };
    let bytes = quantity::<Bytes>(bytes.trim())?.0 as f64;
    let named = model.is_none_or(|model| !model.is_empty());
    match named && (1e9..=1e19).contains(&bytes) {
        true => Ok(UserRating {
            model: model.map(str::to_owned),
            bytes,
        }),
        false => Err(String::from(
            "rated host writes from 1GB to 10000PB, such as 600TB or 980=600TB",
        )),
    }
}

/// Reads the files, and prints when their drives end.
pub(crate) fn run(asked: &FleetOptions<'_>) -> Result<(), Failure> {
    let mut problems = Problems::default();
    let mut dumps: Vec<Dump> = Vec::new();
    let inputs: Vec<&Path> = asked.files.iter().map(PathBuf::as_path).collect();
    let outputs = output::requested_files([("--csv", asked.csv), ("--output", asked.page)]);
    problems.0.extend(output::problems(&outputs, &inputs).0);
    let bare = asked.ratings.iter().filter(|one| one.model.is_none());
    if bare.count() > 1 {
        problems.0.push(on_command_line(
            "--tbw: several ratings for all drives",
            "one of them, and others for parts of models, such as 980=600TB",
        ));
    }
    problems.or(())?;
    let mut unread = Problems::default();
    for path in asked.files {
        match bytes(path) {
            Ok(bytes) => {
                let (dump, more) = smart::read_partly(&origin(path), &bytes);
                dumps.push(dump);
                unread.0.extend(more.0);
            }
            Err(more) => unread.0.extend(more.0),
        }
    }
    let answer = fleet::fleet(dumps, unread.clone(), asked.ratings, &catalogue::drives()?)?;
    crate::answer::show(&view::fleet(&answer), asked.json, asked.csv, asked.page)?;
    // The drives that could be read are answered; the exit code says that some are missing.
    unread.or(())?;
    let Some(years) = asked.years else {
        return Ok(());
    };
    let short = answer.shorter_than(years);
    match short.is_empty() {
        true => Ok(()),
        false => Err(Failure::Verdict(format!(
            "{}: not {years} years",
            short.join(", ")
        ))),
    }
}

fn origin(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => String::from("standard input"),
        false => path.display().to_string(),
    }
}

/// Returns the content of a file; `-` is standard input.
fn bytes(path: &Path) -> Result<Vec<u8>, Problems> {
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => io::stdin().lock().take(LARGEST + 1).read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes)),
    };
    let count =
        read.map_err(|error| Problems::whole(origin(path), format!("cannot be read: {error}")))?;
    match count as u64 > LARGEST {
        true => Err(Problems::whole(
            origin(path),
            "is larger than 256 MiB, which is not SMART data",
        )),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratings_are_for_all_drives_or_for_a_part_of_a_model() {
        let all = rating("600TB").expect("a rating");
        assert_eq!((all.model, all.bytes), (None, 6e14));
        let one = rating("980 PRO = 1.2PB").expect("a rating");
        assert_eq!((one.model.as_deref(), one.bytes), (Some("980 PRO"), 1.2e15));
        for wrong in ["600", "=600TB", "0TB", "-5TB", "TB", "980=", "1kB"] {
            assert!(rating(wrong).is_err(), "{wrong}");
        }
    }
}
