//! Finds a catalogue file: by its path, next to the file that names it, or in the built-in catalogue.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use include_dir::{Dir, include_dir};

use text::problem::{Place, Problem, Problems, nearest};
use text::toml::SourceFile;

static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../catalogue");
static POOLS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../pools");

/// Origin of a catalogue file.
#[derive(Clone, Debug)]
pub(super) enum Home {
    /// The built-in catalogue.
    BuiltIn,
    /// A folder on disk.
    #[cfg_attr(
        not(feature = "files"),
        expect(dead_code, reason = "there are no files")
    )]
    Folder(PathBuf),
}

/// A catalogue file that was found.
#[derive(Clone)]
pub(super) struct CatalogueFile {
    pub(super) id: String,
    pub(super) file: SourceFile,
    pub(super) home: Home,
}

pub(super) fn stem(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or_default();
    name.strip_suffix(".toml").unwrap_or(name)
}

/// Returns the files of the built-in catalogue that are drives, hosts or families, by folder and name.
pub(super) fn built_in_paths(what: &str) -> Vec<&'static Path> {
    let mut paths: Vec<&'static Path> = BUILT_IN
        .dirs()
        .flat_map(|folder| folder.files())
        .map(include_dir::File::path)
        .filter(|path| {
            let is_toml = path
                .extension()
                .is_some_and(|extension| extension == "toml");
            let is = if stem(path).ends_with(".family") {
                "family"
            } else if path.starts_with("host") {
                "host"
            } else {
                "drive"
            };
            is_toml && is == what
        })
        .collect();
    // 3D XPoint comes first, because the project began with these drives; then by name.
    paths.sort_by_key(|path| (Reverse(path.starts_with("xpoint")), path.to_path_buf()));
    paths
}

/// Returns the files of the built-in pools, by name.
pub(super) fn pool_paths() -> Vec<&'static Path> {
    let mut paths: Vec<&'static Path> = POOLS.files().map(include_dir::File::path).collect();
    paths.sort_unstable();
    paths
}

pub(super) fn built_in(path: &Path) -> Result<CatalogueFile, Problems> {
    built_in_file(&BUILT_IN, "catalogue", path)
}

pub(super) fn built_in_pool(path: &Path) -> Result<CatalogueFile, Problems> {
    built_in_file(&POOLS, "pools", path)
}

fn built_in_file(
    folder: &'static Dir<'_>,
    name: &str,
    path: &Path,
) -> Result<CatalogueFile, Problems> {
    let origin = format!("{name}/{}", path.display());
    let text = folder
        .get_file(path)
        .and_then(include_dir::File::contents_utf8)
        .ok_or_else(|| Problems::whole(&*origin, "not UTF-8"))?;
    Ok(CatalogueFile {
        id: stem(path).to_owned(),
        file: SourceFile {
            origin,
            text: Arc::from(text),
        },
        home: Home::BuiltIn,
    })
}

#[cfg(not(feature = "files"))]
fn on_disk(path: &Path) -> Result<CatalogueFile, Problems> {
    Err(Problems::whole(
        path.display().to_string(),
        "cannot be read: there are no files here",
    ))
}

#[cfg(feature = "files")]
fn on_disk(path: &Path) -> Result<CatalogueFile, Problems> {
    let origin = path.display().to_string();
    let text = text::bounded::text(path, text::bounded::WRITTEN)
        .map_err(|error| Problems::whole(&*origin, format!("cannot be read: {error}")))?;
    Ok(CatalogueFile {
        id: stem(path).to_owned(),
        file: SourceFile {
            origin,
            text: Arc::from(text),
        },
        home: Home::Folder(path.parent().unwrap_or(Path::new("")).to_owned()),
    })
}

/// Finds the drive (or pool), host or family of this name: a path, a file next to the one that names it, or a
/// built-in file.
pub(super) fn locate(name: &str, what: &str, beside: &Home) -> Result<CatalogueFile, Problems> {
    if name.ends_with(".toml") || name.contains(['/', '\\']) {
        return on_disk(Path::new(name));
    }
    let file_name = match what {
        "family" => format!("{name}.family"),
        _ => name.to_owned(),
    };
    if let Home::Folder(folder) = beside {
        let path = folder.join(format!("{file_name}.toml"));
        if path.is_file() {
            return on_disk(&path);
        }
    }
    let paths = built_in_paths(what);
    if let Some(path) = paths.iter().find(|path| stem(path) == file_name) {
        return built_in(path);
    }
    let mut known = paths;
    if what == "drive" {
        known.extend(pool_paths());
        if let Some(path) = pool_paths().iter().find(|path| stem(path) == file_name) {
            return built_in_pool(path);
        }
    }
    let meant = meant(name, &file_name, &known);
    Err(Problems(vec![Problem {
        origin: match name.trim().is_empty() {
            true => format!("`{name}`"),
            false => name.to_owned(),
        },
        place: Place::Whole,
        what: format!("there is no {what} of this name"),
        help: Some(match (meant.is_empty(), what) {
            (false, _) => format!("did you mean `{}`?", meant.join("` or `")),
            (true, "drive") => String::from(
                "`drivelab drives` lists them; a file of your own is named by its path",
            ),
            (true, _) => String::from("a file of your own is named by its path"),
        }),
    }]))
}

/// Returns built-in drives and pools whose names are close to `written`.
pub fn drives_like(written: &str) -> Vec<&'static str> {
    let known = [built_in_paths("drive"), pool_paths()].concat();
    meant(written, written, &known)
}

/// Returns the known names that are close to `written`: names that contain it (`p4800x`), otherwise the nearest.
fn meant<'a>(written: &str, file_name: &str, paths: &[&'a Path]) -> Vec<&'a str> {
    let part = written.to_ascii_lowercase();
    let known = || paths.iter().map(|path| stem(path));
    let holding = known().filter(|name| part.len() > 2 && name.contains(&part));
    let mut names: Vec<&str> = holding.collect();
    if names.is_empty() {
        names.extend(nearest(file_name, known()));
    }
    for name in &mut names {
        *name = name.trim_end_matches(".family");
    }
    names
}
