//! How a round ends.

use std::time::Duration;

use super::clients::{Client, Talk, Told};
use super::random::Random;
use super::server::Server;
use super::shapes::Member;

/// Time for a client to reach its acknowledgements.
const WORK: Duration = Duration::from_secs(90);
/// Time that a client has while a member is away, and once it is back.
const AWAY: Duration = Duration::from_secs(4);
/// Time in which what a guest says arrives: nothing that it says after its disk is gone counts, for Linux was seen to report
/// success for writes to a disk that is gone.
const WORDS: Duration = Duration::from_millis(300);
/// Time for a client to end that has lost its disk.
const LEAVE: Duration = Duration::from_secs(30);

/// How a round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ending {
    /// `kill -9` of the server.
    Kill,
    /// A power cut of all drives, then `kill -9`.
    PowerCut,
    /// A power cut of one member, which is back a second later; then `kill -9` or SIGTERM (always, if the pool refuses to open
    /// after the other).
    MemberCut,
    /// A member dies and returns; then as for a power cut of one.
    MemberDies,
    /// `kill -9` or SIGTERM; then an old copy of one member's files, from before the round, comes back.
    OldCopy,
    /// SIGTERM.
    Terminate,
}

/// All endings.
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

/// What became of a round until its server was gone.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// How it ended, for people.
    pub(super) how: String,
    /// The last commit acknowledged, if there was one in this round.
    pub(super) last: Option<u64>,
    pub(super) acknowledgements: u64,
    /// What was wrong already.
    pub(super) wrong: Option<String>,
    /// This pool has no members that can fail alone.
    pub(super) is_impossible: bool,
}

/// Lets the client work and ends the round.
pub(super) fn end(
    ending: Ending,
    member: Member,
    plant: Option<&str>,
    client: Client,
    server: &mut Server,
    talk: &mut Talk,
    random: &mut Random,
) -> Ended {
    let (from, to) = client.acknowledgements();
    let enough = random.between(from, to);
    let is_orderly = match ending {
        Ending::Terminate => true,
        Ending::Kill | Ending::PowerCut => false,
        Ending::MemberCut | Ending::MemberDies if member.refuses => true,
        Ending::MemberCut | Ending::MemberDies | Ending::OldCopy => random.between(0, 2) == 0,
    };
    let mut ended = Ended::default();
    if !talk.until(WORK, |told| told.acknowledgements >= enough || told.is_gone)
        || talk.told.is_gone
    {
        let Told {
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
        && let Err(why) = server.tell("power-cut")
    {
        ended.wrong.get_or_insert(format!("power-cut: {why}"));
    }
    if let Some(wrong) = stop(server, is_orderly) {
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

/// Ends the server; what was wrong with its end.
fn stop(server: &mut Server, is_orderly: bool) -> Option<String> {
    if !is_orderly {
        server.kill();
        return None;
    }
    match server.terminate() {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("SIGTERM: {status}: {}", server.said())),
        Err(why) => Some(why),
    }
}

/// Says the faults of a member one after the other, and lets the client go on after each; what was wrong meanwhile. The error
/// says why it cannot be: such a pool keeps its data as one drive's.
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
        server.tell(&format!("{}: {fault}", member.name))?;
        let enough = talk.told.acknowledgements + more;
        talk.until(AWAY, |told| told.acknowledgements >= enough || told.is_gone);
    }
    let wrong = talk.told.errors.get(errors).filter(|_| member.spare);
    Ok(wrong.map(|error| {
        format!(
            "{} {}, without which the pool should go on: the client was told `{error}`",
            member.name, faults[0]
        )
    }))
}
