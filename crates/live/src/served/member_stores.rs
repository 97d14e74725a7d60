//! Stores of the members of an existing pool: whole, blank, damaged, or refused.
//!
//! Damaged files count as a missing member and are not changed; with `--accept-loss` they are refused. Not here: what the tiers make of a missing member
//! ([`super::pool_opening`]).

use std::path::{Path, PathBuf};

use model::management::Management;
use text::problem::Problems;

use super::failing;
use super::opening::{OpenedStore, open_blank, open_file, refused, store_damage};
use crate::store::{SavedState, state_path};

/// The stores of a pool's members.
#[derive(Default)]
pub(super) struct OpenedMembers {
    /// `None`: a member of an existing pool with neither file, with damaged files, or whose files the host cannot open.
    pub(super) stores: Vec<Option<OpenedStore>>,
    /// Errors of the host, and damage of files.
    pub(super) failed: Vec<String>,
    /// Next step for each member with damaged files.
    pub(super) advice: Vec<String>,
    /// Whether possible loss is accepted. Damaged files are then refused: they may have the only copy of the data, and
    /// the user has accepted the loss of something else.
    pub(super) accept_loss: bool,
}

impl OpenedMembers {
    /// Opens the store of a member of an existing pool. `fresh`: the state of a new one. `has_copies`: a mirror or array
    /// is directly above each slice of the member.
    pub(super) fn existing(
        &mut self,
        image: &Path,
        (name, has_copies): (&str, bool),
        fresh: SavedState,
        management: &Management,
    ) -> Result<Option<OpenedStore>, Problems> {
        if !image.exists() && !state_path(image).exists() {
            return Ok(None);
        }
        if let Some(error) = failing::unusable(name, image) {
            self.failed.push(error.to_string());
            return Ok(None);
        }
        if let Some(blank) = open_blank(image, &fresh) {
            return blank.map(Some);
        }
        if let Some(what) = store_damage(image, &fresh, management) {
            let what = format!("{name} is damaged: {what}");
            if self.accept_loss {
                return Err(refused(image, what, failing::RESTORE_OR_REMOVE));
            }
            self.failed.push(what);
            self.advice
                .push(failing::way_to_rebuild(image, fresh.bytes, has_copies));
            return Ok(None);
        }
        let serial = fresh.serial.clone();
        let one = open_file(image, fresh, management)?;
        if one.state.serial == serial {
            return Ok(Some(one));
        }
        let what = format!(
            "it is drive {}, of another pool or another position; {name} must be {serial}",
            one.state.serial
        );
        Err(refused(image, what, failing::RESTORE_OR_REMOVE))
    }
}

/// Returns the data file of a member.
pub(super) fn member_image(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{}.img", name.replace('/', "_")))
}
