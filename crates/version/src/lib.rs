//! Version of the program that made a result, with the commit that it was built from.
//!
//! Two builds with equal versions produce the same bytes. The commit follows a `+`: `0.1.0+3fa29e1c`. If the sources
//! differed from the commit, `.changed` is appended. A development build is `0.1.0+dev`. Sources without their history,
//! such as an archive, give `0.1.0` alone.

/// The version, as `drivelab --version`, pages, JSON, CSV and Parquet have it.
pub const VERSION: &str = env!("DRIVELAB_VERSION");

/// The program's name with its version.
pub const PROGRAM: &str = concat!("drivelab ", env!("DRIVELAB_VERSION"));

#[cfg(test)]
mod tests {
    use super::VERSION;

    #[test]
    fn the_version_is_the_packages_and_may_name_a_commit() {
        let (package, commit) = VERSION.split_once('+').unwrap_or((VERSION, "dev"));
        assert_eq!(package, env!("CARGO_PKG_VERSION"));
        let commit = commit.strip_suffix(".changed").unwrap_or(commit);
        let digits = commit.len() == 8 && commit.bytes().all(|it| it.is_ascii_hexdigit());
        assert!(commit == "dev" || digits, "{VERSION}");
    }
}
