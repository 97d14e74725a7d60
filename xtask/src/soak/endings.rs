//! Endings of rounds.

use std::time::Duration;

use super::clients::{Client, ClientState, Talk};
use super::random::Random;
use super::server::Server;
use super::shapes::Member;

/// Maximum time for a client to reach its acknowledgements.
const WORK: Duration = Duration::from_secs(90);
/// Time for a client while a member is missing, and after it is back.
const AWAY: Duration = Duration::from_secs(4);
/// Time for the guest's output to arrive. Output after its disk is gone is ignored, because Linux was observed to
/// report success for writes to a missing disk.
const WORDS: Duration = Duration::from_millis(300);
/// Maximum time for a client to end after it has lost its disk.
const LEAVE: Duration = Duration::from_secs(30);

/// Ending of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ending {
    /// `kill -9` of the server.
    Kill,
    /// A power cut of all drives, then `kill -9`.
    PowerCut,
    /// A power cut of one member, which returns a second later; then `kill -9` or SIGTERM (always SIGTERM if the pool
    /// refuses to open after a kill).
    MemberCut,
    /// A member fails and returns; then as for a power cut of one member.
    MemberDies,
    /// `kill -9` or SIGTERM; then an old copy of one member's files, from before the round, replaces the files.
    OldCopy,
    /// SIGTERM.
    Terminate,
}

/// Endings in the order of the table.
pub(super) const ENDINGS: [Ending; 6] = [
    Ending::Kill,
    Ending::PowerCut,
    Ending::MemberCut,
    Ending::MemberDies,
    Ending::OldCopy,
    Ending::Terminate,
];

impl Ending {
    pub(super) fn name(self) -> &'static str {
        match self {
            Ending::Kill => "kill",
            Ending::PowerCut => "power-cut",
            Ending::MemberCut => "member-power-cut",
            Ending::MemberDies => "member-dies",
            Ending::OldCopy => "old-copy",
            Ending::Terminate => "sigterm",
        }
    }
}

/// State of a round after its server has ended.
#[derive(Debug, Default)]
pub(super) struct RoundResult {
    /// Description of the ending.
    pub(super) how: String,
    /// The last acknowledged commit of this round, if there was one.
    pub(super) last: Option<u64>,
    pub(super) acknowledgements: u64,
    /// The first error so far.
    pub(super) wrong: Option<String>,
    /// Whether this pool has no members that can fail individually.
    pub(super) is_impossible: bool,
}

/// Lets the client work, and ends the round.
pub(super) fn end(
    ending: Ending,
    member: Member,
    plant: Option<&str>,
    client: Client,
    server: &mut Server,
    talk: &mut Talk,
    random: &mut Random,
) -> RoundResult {
    let (from, to) = client.acknowledgements();
    let enough = random.number(from, to);
    let is_orderly = match ending {
        Ending::Terminate => true,
        Ending::Kill | Ending::PowerCut => false,
        Ending::MemberCut | Ending::MemberDies if member.refuses => true,
        Ending::MemberCut | Ending::MemberDies | Ending::OldCopy => random.number(0, 2) == 0,
    };
    let mut ended = RoundResult::default();
    if !talk.until(WORK, |told| told.acknowledgements >= enough || told.is_gone)
        || talk.told.is_gone
    {
        let ClientState {
            acknowledgements,
            errors,
            ..
        } = &talk.told;
        ended.wrong = Some(format!(
            "the client stopped after {acknowledgements} of {enough} acknowledgements: {} {}",
            errors.join("; "),
            talk.told.tail()
        ));
    } else {
        if let Some(plant) = plant {
            ended.wrong = fault(member, &[plant], client, server, talk).unwrap_or_else(Some);
        }
        let tried = match ending {
            Ending::MemberCut => fault(member, &["power-cut"], client, server, talk),
            Ending::MemberDies => fault(member, &["dies", "returns"], client, server, talk),
            Ending::Kill | Ending::PowerCut | Ending::OldCopy | Ending::Terminate => Ok(None),
        };
        match tried {
            Ok(wrong) => ended.wrong = wrong,
            Err(why) => (ended.is_impossible, ended.how) = (true, why),
        }
    }
    if client.is_guest() && !is_orderly && ending != Ending::PowerCut {
        server.pause();
        talk.until(WORDS, |_| false);
    }
    (ended.last, ended.acknowledgements) = (talk.told.last, talk.told.acknowledgements);
    if ending == Ending::PowerCut
        && let Err(why) = server.send_command("power-cut")
    {
        ended.wrong.get_or_insert(format!("power-cut: {why}"));
    }
    // A pool that needs a member without power cannot flush at its end, and says so; the check after the restart shows
    // whether synced data was lost.
    let may_fail = ending == Ending::MemberCut && !member.spare;
    if let Some(wrong) = stop(server, is_orderly)
        && !(may_fail && wrong.contains("the flush at the end failed"))
    {
        ended.wrong.get_or_insert(wrong);
    }
    if !client.is_guest() {
        talk.until(LEAVE, |_| false);
        ended.acknowledgements = talk.told.acknowledgements;
    }
    talk.kill();
    if !ended.is_impossible {
        let what = match ending {
            Ending::MemberCut | Ending::MemberDies | Ending::OldCopy => {
                let then = if is_orderly { "SIGTERM" } else { "kill" };
                format!("{} of {}, {then}", ending.name(), member.name)
            }
            _ => String::from(ending.name()),
        };
        ended.how = format!("{what} after {} acknowledgements", ended.acknowledgements);
    }
    ended
}

/// Ends the server, and returns an error of its end.
fn stop(server: &mut Server, is_orderly: bool) -> Option<String> {
    if !is_orderly {
        server.kill();
        return None;
    }
    match server.terminate() {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("SIGTERM: {status}: {}", server.log_text())),
        Err(why) => Some(why),
    }
}

/// Injects the faults of a member in sequence, with time for the client after each, and returns an error that
/// occurred. The `Err` states why the fault is impossible: such a pool stores its data as one drive.
fn fault(
    member: Member,
    faults: &[&str],
    client: Client,
    server: &Server,
    talk: &mut Talk,
) -> Result<Option<String>, String> {
    let more = client.acknowledgements().0 / 2 + 1;
    let errors = talk.told.errors.len();
    for fault in faults {
        server.send_command(&format!("{}: {fault}", member.name))?;
        let enough = talk.told.acknowledgements + more;
        talk.until(AWAY, |told| told.acknowledgements >= enough || told.is_gone);
    }
    let wrong = talk.told.errors.get(errors).filter(|_| member.spare);
    Ok(wrong.map(|error| {
        format!(
            "{} {}: the pool should continue without this member, but the client received `{error}`",
            member.name, faults[0]
        )
    }))
}
