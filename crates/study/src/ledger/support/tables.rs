//! The tables of `docs/fidelity.md`.

use super::super::source::collection_of;
use super::super::{AgainstSheet, COLLECTIONS, SOURCES};
use super::{Support, Supports, percent};
use text::problem::Problems;

impl AgainstSheet {
    /// Returns the first table of `docs/fidelity.md`.
    pub(super) fn table(&self) -> String {
        if self.groups().next().is_none() {
            return String::from(
                "The last recorded run of the whole ledger is older than this comparison; \
                 `drivelab reproduce --against-sheet` repeats it. The tables below are from that run, before the P4510, \
                 P3600 and 980 PRO were set from measurements (decision 0100).\n",
            );
        }
        let mut text = String::from(
            "| load | predicted rows of | rows | model: median error | 90th percentile | median factor | \
             data sheet: median error | 90th percentile | median factor |\n\
             | --- | --- | --: | --: | --: | --: | --: | --: | --: |\n",
        );
        for (load, kind, compared) in self.groups() {
            let (model, sheet) = (compared.model, compared.sheet);
            let mut cells = vec![
                load.name().into(),
                kind.name().into(),
                compared.rows.to_string(),
            ];
            for off in [model, sheet] {
                cells.extend([off.median, off.p90].map(|share| percent(Some(share))));
                cells.push(format!("{:.2}", off.factor));
            }
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        if !self.left_out.is_empty() {
            let rows: usize = self.left_out.values().sum();
            let reasons = self
                .left_out
                .iter()
                .map(|(why, rows)| format!("{rows}: {why}"));
            let reasons: Vec<String> = reasons.collect();
            text.push_str(&format!(
                "\nNot compared are {rows} predicted rows ({}).\n",
                reasons.join("; ")
            ));
        }
        text
    }
}

impl Supports {
    pub(super) fn tables(&self) -> Result<String, Problems> {
        if self.sources.is_empty() {
            return Ok(String::from(
                "No run of the whole ledger has been written yet.\n",
            ));
        }
        let mut text = String::from(
            "| source | fitted | predicted | median error | 90th percentile | claims held | missed |\n\
             | --- | --: | --: | --: | --: | --: | --: |\n",
        );
        for (source, about) in SOURCES {
            let none = Support::default();
            let found = self.sources.get(source).unwrap_or(&none);
            text.push_str(&format!("| {source}: {about} | {} |\n", found.cells()));
        }
        // Files written before classes were distinguished lack it.
        if self.all.predicted > 0 {
            let mut row = |name: &str, support: &Support| {
                text.push_str(&format!("| {name} | {} |\n", support.cells()));
            };
            row("all but the collections", &self.others);
            for one in &COLLECTIONS {
                let none = Support::default();
                let found = self.collections.get(one.prefix).unwrap_or(&none);
                row(&format!("{}: {}", one.prefix, one.what), found);
            }
            row("all", &self.all);
            text.push_str(&self.later());
            text.push_str(&self.all.by_class());
            text.push_str(&self.by_run());
        }
        text.push_str(
            "\n| drive | model | fitted | predicted | median error | 90th percentile | claims held | missed |\n\
             | --- | --- | --: | --: | --: | --: | --: | --: |\n",
        );
        for sheet in catalogue::drives()? {
            let grade = self.statement(&sheet).grade.name();
            let none = Support::default();
            let found = self.drives.get(&sheet.id).unwrap_or(&none);
            text.push_str(&format!("| {} | {grade} | {} |\n", sheet.id, found.cells()));
        }
        text.push_str(
            "\n| row | what | published | model | why |\n| --- | --- | --- | --- | --- |\n",
        );
        for miss in &self.misses {
            let note = miss.note.as_deref().unwrap_or("");
            let cells = [&miss.id, &miss.what, &miss.published, &miss.model, note];
            let cells = cells.map(|cell| cell.replace('|', "/").replace('\n', " "));
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        Ok(text)
    }
}

impl Supports {
    /// Returns a sentence on the sources that were run again after the totals were computed, or nothing.
    fn later(&self) -> String {
        if self.since.is_empty() {
            return String::new();
        }
        let since: Vec<&str> = self.since.iter().map(|id| &**id).collect();
        format!(
            "\nTotals over several sources are those of the last run of the whole ledger, unless each of their rows was run \
             again. Run again since then: {}.\n",
            since.join(", ")
        )
    }

    /// Returns the errors of the collections' predicted runs, each counted once, by source.
    fn by_run(&self) -> String {
        let mut text = String::from(
            "\n| predicted runs of | runs | median error | 90th percentile | within a factor of 1.5 |\n\
             | --- | --: | --: | --: | --: |\n",
        );
        let sources = self.sources.iter().map(|(name, found)| (&**name, found));
        let collected = sources.filter(|(name, _)| collection_of(name).is_some());
        let whole = self
            .collections
            .iter()
            .map(|(name, found)| (&**name, found));
        for (name, found) in collected.chain(whole) {
            let runs = &found.runs;
            text.push_str(&format!(
                "| {name} | {} | {} | {} | {} |\n",
                runs.rows,
                percent(runs.median),
                percent(runs.p90),
                runs.within_factor
            ));
        }
        text
    }
}
