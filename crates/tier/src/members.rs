//! Members of a composition of drives: how they are built, and how a setting reaches all of them.

use alloc::vec::Vec;

use model::management::Refusal;
use model::media::{Medium, MediumDrive, Precondition, Seeds};

/// Applies a setting to each member of a composition. All are tried; the first refusal is reported.
///
/// # Errors
/// The first refusal.
pub(crate) fn all(results: impl Iterator<Item = Result<(), Refusal>>) -> Result<(), Refusal> {
    results.fold(Ok(()), Result::and)
}

/// Builds the members of a composition, each in its state, in the memory of `used` members if there are any. The first
/// member has the seeds unchanged.
pub(crate) fn members<'a, M: Medium + 'a>(
    used: Vec<M::Drive>,
    configs: impl Iterator<Item = (&'a M, Precondition)>,
    seeds: Seeds,
) -> Vec<M::Drive> {
    let mut used = used.into_iter();
    let member = |(index, (config, state)): (usize, (&M, Precondition))| {
        let own = seeds.of_member(index);
        match used.next() {
            Some(drive) => drive.reset(config, state, own),
            None => config.build(state, own),
        }
    };
    configs.enumerate().map(member).collect()
}
