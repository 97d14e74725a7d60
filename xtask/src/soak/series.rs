//! Rounds of one client on one pool, on the same store until there is a finding. Each round first checks the data
//! acknowledged in the previous one, then works until its own end.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::clients::{Client, ClientTask, Talk};
use super::endings::{self, Ending};
use super::guest::Tools;
use super::random::Random;
use super::report::{Finding, Kind, SoakTable};
use super::server::{Folder, Server, StartError};
use super::shapes::{Member, PoolShape};
use crate::shell::program;

/// Maximum time for a client to start and to check.
const CHECK: Duration = Duration::from_secs(150);

/// Maximum number of stores with a finding that a series keeps.
const MOST_KEPT: u32 = 2;

/// Settings that all series share.
#[derive(Debug)]
pub(super) struct Setting<'a> {
    /// Path of the program `drivelab`.
    pub(super) binary: &'a Path,
    pub(super) tools: &'a Tools,
    pub(super) seed: u64,
    /// Folder of the series.
    pub(super) place: &'a Path,
    /// A fault of a member shortly before each end, which the checks must detect.
    pub(super) plant: Option<&'static str>,
}

/// The rounds of a client on a pool.
#[derive(Debug)]
pub(super) struct Series<'a> {
    setting: &'a Setting<'a>,
    pub(super) shape: &'static PoolShape,
    pub(super) client: Client,
    folder: Folder,
    random: Random,
    /// Remaining endings, the next one last.
    endings: Vec<Ending>,
    chosen: Vec<Ending>,
    /// Number of times that each ending has occurred.
    turns: u64,
    /// Number of stores that were kept.
    kept: u32,
    last: Option<u64>,
    before: Option<PreviousRound>,
    /// The member whose store is an old copy; its newest files are stored next to it.
    newest: Option<Member>,
}

/// The previous round, which the next one checks.
#[derive(Clone, Debug)]
struct PreviousRound {
    ending: Ending,
    how: String,
    turn: u64,
}

impl<'a> Series<'a> {
    pub(super) fn new(
        setting: &'a Setting<'a>,
        shape: &'static PoolShape,
        client: Client,
        chosen: &[Ending],
    ) -> Result<Series<'a>, String> {
        let name = format!("{}-{}", shape.name, client.name());
        let folder = setting.place.join(&name);
        crate::guest::create(&folder)?;
        Ok(Series {
            setting,
            shape,
            client,
            folder: Folder(folder),
            random: Random::new(setting.seed, &name),
            endings: Vec::new(),
            chosen: chosen.to_vec(),
            turns: 0,
            kept: 0,
            last: None,
            before: None,
            newest: None,
        })
    }

    /// Runs one round.
    pub(super) fn round(&mut self, table: &mut SoakTable) -> Result<(), String> {
        if self.endings.is_empty() {
            self.endings.clone_from(&self.chosen);
            self.random.shuffle(&mut self.endings);
            self.turns += 1;
        }
        let Some(ending) = self.endings.pop() else {
            return Ok(());
        };
        let start = Instant::now();
        // Once more on a new store, if the check of the old one has a finding.
        for _ in 0..2 {
            let members = self.shape.members;
            let member = members[self.random.number(0, members.len() as u64 - 1) as usize];
            self.end_old_copy(table)?;
            // In a pool with one drive, nothing shows that a copy is old.
            let has_copy = ending == Ending::OldCopy
                && members.len() > 1
                && self.files(member, "store", "old")?;
            let Some((mut server, mut talk)) = self.checked(true, table)? else {
                continue;
            };
            let random = &mut self.random;
            let mut ended = endings::end(
                ending,
                member,
                self.setting.plant,
                self.client,
                &mut server,
                &mut talk,
                random,
            );
            if has_copy {
                self.files(member, "store", "newest")?;
                self.files(member, "old", "store")?;
                self.newest = Some(member);
            } else if ending == Ending::OldCopy {
                ended.how += ", without a copy: there was none, or nothing to distinguish it from";
                ended.is_impossible = true;
            }
            self.last = ended.last.or(self.last).or(Some(0));
            println!(
                "{} {}: {}, {:.1} s",
                self.shape.name,
                self.client.name(),
                ended.how,
                start.elapsed().as_secs_f64()
            );
            let before = PreviousRound {
                ending,
                how: ended.how,
                turn: self.turns,
            };
            let row = table.row(self.shape, self.client, ending);
            row.acknowledgements += ended.acknowledgements;
            row.impossible += u64::from(ended.is_impossible);
            if let Some(wrong) = ended.wrong {
                self.find(Kind::Error, &before, wrong, None, table);
            }
            self.before = Some(before);
            return Ok(());
        }
        Ok(())
    }

    /// Copies a member's files from one folder to another. Returns whether it has any.
    fn files(&self, member: Member, from: &str, to: &str) -> Result<bool, String> {
        let (from, to) = (self.folder.path(from), self.folder.path(to));
        crate::guest::create(&to)?;
        for end in ["img", "img.state"] {
            let name = format!("{}.{end}", member.name);
            let file = from.join(&name);
            if !file.is_file() {
                return Ok(false);
            }
            let mut copy = program("cp");
            copy.arg("--sparse=always").arg(&file).arg(to.join(name));
            if !copy.status().is_ok_and(|status| status.success()) {
                return Err(format!("{}: not copied", file.display()));
            }
        }
        Ok(true)
    }

    /// Checks the pool after an old copy was put back: it must serve all acknowledged data or refuse to open, and all
    /// data again when the newest files are back. Then a new store begins, because a pool may continue without that
    /// member.
    fn end_old_copy(&mut self, table: &mut SoakTable) -> Result<(), String> {
        let Some(member) = self.newest else {
            return Ok(());
        };
        let (binary, size) = (self.setting.binary, self.client.size());
        match Server::start(binary, self.shape.pool, size, &self.folder) {
            Ok(server) => drop(server),
            Err(StartError(why)) => {
                println!(
                    "{} {}: the old copy is refused: {why}",
                    self.shape.name,
                    self.client.name()
                );
                self.files(member, "newest", "store")?;
            }
        }
        self.newest = None;
        if self.checked(false, table)?.is_some() {
            crate::guest::remove(&self.folder.0)?;
            crate::guest::create(&self.folder.0)?;
        }
        (self.last, self.before) = (None, None);
        Ok(())
    }

    /// Checks the last round.
    pub(super) fn finish(&mut self, table: &mut SoakTable) -> Result<(), String> {
        self.end_old_copy(table)?;
        if self.before.is_none() {
            return Ok(());
        }
        if let Some((mut server, _)) = self.checked(false, table)?
            && !server.terminate().is_ok_and(|status| status.success())
        {
            let before = PreviousRound {
                ending: Ending::Terminate,
                how: String::from("the last check"),
                turn: self.turns,
            };
            self.find(Kind::Error, &before, server.log_text(), None, table);
        }
        Ok(())
    }

    /// Starts a server, and a client that checks the previous round; `None` if the check has a finding.
    fn checked(
        &mut self,
        works: bool,
        table: &mut SoakTable,
    ) -> Result<Option<(Server, Talk)>, String> {
        let Setting {
            binary,
            tools,
            seed,
            ..
        } = *self.setting;
        let before = self.before.take();
        let attempt = before.clone().unwrap_or(PreviousRound {
            ending: self.chosen[0],
            how: String::from("a new store"),
            turn: self.turns,
        });
        let server = match Server::start(binary, self.shape.pool, self.client.size(), &self.folder)
        {
            Ok(server) => server,
            Err(StartError(why)) => {
                let kept = self.keep();
                self.find(Kind::Refused, &attempt, why, kept, table);
                return Ok(None);
            }
        };
        let task = ClientTask {
            folder: &self.folder,
            seed,
            last: self.last.filter(|_| before.is_some()),
            works,
        };
        let mut talk = self.client.start(&task, tools)?;
        let done = talk.until(CHECK, |told| {
            told.checked.is_some() || told.lost.is_some() || told.is_gone || !told.errors.is_empty()
        });
        // A client that only checks ends afterwards; PostgreSQL verifies its checksums last.
        if !works && done {
            talk.until(CHECK, |_| false);
        }
        let told = &talk.told;
        if let (Some(checked), None) = (&told.checked, &told.lost) {
            if let Some(before) = before {
                println!(
                    "{} {}: held: {}",
                    self.shape.name,
                    self.client.name(),
                    checked.trim()
                );
                table.row(self.shape, self.client, before.ending).rounds += 1;
            }
            return Ok(Some((server, talk)));
        }
        let (kind, what) = match &told.lost {
            Some(lost) => (Kind::Lost, lost.clone()),
            None => (
                Kind::Error,
                format!(
                    "nothing was checked: {} {}",
                    told.errors.join("; "),
                    told.tail()
                ),
            ),
        };
        let what = format!("{what}; the server said: {}", server.log_text());
        drop(talk);
        drop(server);
        let kept = self.keep();
        self.find(kind, &attempt, what, kept, table);
        Ok(None)
    }

    /// Sets the store aside and begins with a new one.
    fn keep(&mut self) -> Option<PathBuf> {
        self.kept += 1;
        (self.last, self.before, self.newest) = (None, None, None);
        if self.kept > MOST_KEPT {
            let emptied = crate::guest::remove(&self.folder.0);
            return emptied
                .and_then(|()| crate::guest::create(&self.folder.0))
                .err()
                .map(PathBuf::from);
        }
        let kept = self.setting.place.join(format!(
            "{}-{}-kept-{}",
            self.shape.name,
            self.client.name(),
            self.kept
        ));
        let _ = crate::guest::remove(&kept);
        let moved =
            fs::rename(&self.folder.0, &kept).and_then(|()| fs::create_dir_all(&self.folder.0));
        moved.is_ok().then_some(kept)
    }

    fn find(
        &self,
        kind: Kind,
        before: &PreviousRound,
        what: String,
        kept: Option<PathBuf>,
        table: &mut SoakTable,
    ) {
        let row = table.row(self.shape, self.client, before.ending);
        match kind {
            Kind::Lost => row.lost += 1,
            Kind::Refused => row.refused += 1,
            Kind::Error => row.errors += 1,
        }
        let finding = Finding {
            kind,
            shape: self.shape,
            client: self.client,
            how: before.how.clone(),
            what,
            kept,
            repeat: self.repeat(before.turn),
        };
        println!("{finding}");
        table.findings.push(finding);
    }

    /// Returns the command that runs this series up to this turn.
    fn repeat(&self, turn: u64) -> String {
        let mut line = format!(
            "cargo xtask soak --shape {} --client {} --seed {} --rounds {turn}",
            self.shape.name,
            self.client.name(),
            self.setting.seed
        );
        if self.chosen.len() < endings::ENDINGS.len() {
            let names: Vec<&str> = self.chosen.iter().map(|it| it.name()).collect();
            line += &format!(" --ending {}", names.join(","));
        }
        line
    }
}
