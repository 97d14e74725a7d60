//! Update of `ledger/support.json` by a run of some sources.
//!
//! An entry (a source, drive, family, collection, or load in the comparison with a data sheet) is replaced if each of its
//! rows was run. All other entries keep the results of an earlier run. Totals over the whole ledger cannot be updated,
//! because the file has no figures of single rows. They remain those of the last run of the whole ledger, and the file
//! names the sources that were run since.

use std::collections::{BTreeMap, BTreeSet};

use super::super::source::is_of;
use super::super::{COLLECTIONS, Evidence, LedgerFile, Reproduction, source_of};
use super::{Support, Supports, measured_drives};
use text::problem::Problems;

impl Supports {
    /// Returns this support with the entries whose every row is in `reproduction`.
    ///
    /// # Errors
    /// A drive of the ledger does not load.
    pub fn updated(
        mut self,
        files: &[LedgerFile],
        reproduction: &Reproduction,
    ) -> Result<Supports, Problems> {
        let new = Supports::from_reproduction(files, reproduction)?;
        let ran: BTreeSet<&str> = reproduction.results.iter().map(|it| &*it.row.id).collect();
        let rows = files.iter().flat_map(|file| &file.rows);
        let rows = rows.filter(|row| row.evidence != Evidence::Catalogue);
        let rows: Vec<&str> = rows.map(|row| &*row.id).collect();
        let measured = measured_drives(files);
        // Entries that have a row which was not run.
        let mut partial: [BTreeSet<String>; 4] = Default::default();
        for row in rows.into_iter().filter(|row| !ran.contains(row)) {
            let [sources, drives, _, collections] = &mut partial;
            sources.insert(source_of(row).unwrap_or_default().to_owned());
            let of = COLLECTIONS.iter().filter(|one| is_of(row, one.prefix));
            collections.extend(of.map(|one| one.prefix.to_owned()));
            let measured = measured.get(row).into_iter().flatten();
            drives.extend(measured.map(|it| (*it).to_owned()));
        }
        let [_, drives, families, _] = &mut partial;
        for drive in drives.iter() {
            families.extend(catalogue::drive(drive)?.family);
        }
        let replace = |old: &mut BTreeMap<String, Support>,
                       new: BTreeMap<String, Support>,
                       partial: &BTreeSet<String>| {
            old.extend(new.into_iter().filter(|(id, found)| {
                !partial.contains(id) && (found.fitted + found.predicted > 0)
            }));
        };
        let [sources, drives, families, collections] = &partial;
        let ran_sources = new.sources.keys().filter(|id| !sources.contains(*id));
        self.since.extend(ran_sources.cloned());
        replace(&mut self.sources, new.sources, sources);
        replace(&mut self.drives, new.drives, drives);
        replace(&mut self.families, new.families, families);
        replace(&mut self.collections, new.collections, collections);
        self.against_sheet.update(new.against_sheet, files, &ran)?;
        self.misses.retain(|miss| !ran.contains(&*miss.id));
        self.misses.extend(new.misses);
        self.misses.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Selection, built_in, reproduce};
    use super::*;
    use std::ops::ControlFlow;

    /// A source of one short row: the entries that it covers change, and no other.
    #[test]
    fn only_entries_whose_every_row_was_run_are_replaced() {
        let files = built_in().expect("the ledger is valid");
        let some = Selection {
            sources: vec!["DI-RED".into()],
            ..Selection::default()
        };
        let found = reproduce(&files, &some, &|_| ControlFlow::Continue(()));
        let found = found.expect("it runs");
        let wrong = Support {
            fitted: 1000,
            ..Support::default()
        };
        let wrong = |id: &str| (id.to_owned(), wrong.clone());
        let old = Supports {
            sources: BTreeMap::from([wrong("DI-RED"), wrong("DI-HUH")]),
            drives: BTreeMap::from([wrong("wd-red-3tb"), wrong("ultrastar-he12-12tb")]),
            collections: BTreeMap::from([wrong("P")]),
            ..Supports::default()
        };
        let new = old.updated(&files, &found).expect("its drives load");
        for replaced in [&new.sources["DI-RED"], &new.drives["wd-red-3tb"]] {
            assert_eq!(replaced.fitted + replaced.predicted, found.results.len());
        }
        for kept in [
            &new.sources["DI-HUH"],
            &new.drives["ultrastar-he12-12tb"],
            &new.collections["P"],
        ] {
            assert_eq!(kept.fitted, 1000);
        }
        assert_eq!(new.since, BTreeSet::from(["DI-RED".to_owned()]));
        assert!(new.misses.iter().all(|miss| miss.id.starts_with('P')));
    }
}
