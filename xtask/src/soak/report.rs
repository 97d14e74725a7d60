//! Findings, and a table of the number of rounds without findings.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::clients::{CLIENTS, Client};
use super::endings::Ending;
use super::shapes::{PoolShape, SHAPES};

/// Kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Acknowledged data is missing or different, or a file system or database is damaged.
    Lost,
    /// The server does not open its own store.
    Refused,
    /// A command failed that must succeed, a client or a server hangs, or a server does not end properly.
    Error,
}

/// A finding of a round.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) kind: Kind,
    pub(super) shape: &'static PoolShape,
    pub(super) client: Client,
    /// Ending of the round after which it was detected.
    pub(super) how: String,
    pub(super) what: String,
    /// Folder of the store, if it is kept.
    pub(super) kept: Option<PathBuf>,
    /// Command that repeats these rounds.
    pub(super) repeat: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Lost => "LOST",
            Kind::Refused => "REFUSED",
            Kind::Error => "ERROR",
        };
        writeln!(
            f,
            "{kind} {} {}, {}",
            self.shape.name,
            self.client.name(),
            self.how
        )?;
        writeln!(f, "  {}", self.what.trim())?;
        writeln!(f, "  pool:   {}", self.shape.pool)?;
        if let Some(kept) = &self.kept {
            writeln!(f, "  store:  {}", kept.display())?;
        }
        write!(f, "  repeat: {}", self.repeat)
    }
}

/// Counts of a shape, client and ending.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// Number of rounds in which all data was present.
    pub(super) rounds: u64,
    pub(super) acknowledgements: u64,
    pub(super) lost: u64,
    pub(super) refused: u64,
    pub(super) errors: u64,
    /// Number of rounds in which no member could fail individually; they ended otherwise.
    pub(super) impossible: u64,
}

/// All counts and findings.
#[derive(Debug, Default)]
pub(super) struct SoakTable {
    rows: BTreeMap<(usize, usize, Ending), Row>,
    pub(super) findings: Vec<Finding>,
}

impl SoakTable {
    pub(super) fn row(&mut self, shape: &PoolShape, client: Client, ending: Ending) -> &mut Row {
        let shape = SHAPES
            .iter()
            .position(|it| it.name == shape.name)
            .unwrap_or_default();
        let client = CLIENTS
            .iter()
            .position(|&it| it == client)
            .unwrap_or_default();
        self.rows.entry((shape, client, ending)).or_default()
    }

    /// Returns the number of findings of this kind.
    pub(super) fn count(&self, kind: Kind) -> usize {
        self.findings.iter().filter(|it| it.kind == kind).count()
    }
}

impl fmt::Display for SoakTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<18} {:<16} {:<17} {:>6} {:>12} {:>5} {:>8} {:>7}",
            "shape", "client", "ending", "held", "acknowledged", "lost", "refused", "errors"
        )?;
        for ((shape, client, ending), row) in &self.rows {
            let note = match row.impossible {
                0 => "",
                _ => "  no member can fail alone",
            };
            writeln!(
                f,
                "{:<18} {:<16} {:<17} {:>6} {:>12} {:>5} {:>8} {:>7}{note}",
                SHAPES[*shape].name,
                CLIENTS[*client].name(),
                ending.name(),
                row.rounds,
                row.acknowledgements,
                row.lost,
                row.refused,
                row.errors
            )?;
        }
        let sum = |of: fn(&Row) -> u64| self.rows.values().map(of).sum::<u64>();
        write!(
            f,
            "{} rounds held, {} acknowledged, {} lost, {} refused openings, {} errors",
            sum(|row| row.rounds),
            sum(|row| row.acknowledgements),
            self.count(Kind::Lost),
            self.count(Kind::Refused),
            self.count(Kind::Error)
        )
    }
}
