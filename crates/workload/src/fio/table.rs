//! All options of fio by name: those of fio 3.33 and those of later versions.

use super::newer::NEWER;
use super::options::{FioOption, OPTIONS};

fn all() -> impl Iterator<Item = &'static FioOption> {
    OPTIONS.iter().chain(NEWER)
}

/// Returns the option of this name or alias.
pub(super) fn find(name: &str) -> Option<&'static FioOption> {
    all().find(|option| option.name == name || option.aliases.contains(&name))
}

/// Returns every name and alias.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    all().flat_map(|option| std::iter::once(option.name).chain(option.aliases.iter().copied()))
}
