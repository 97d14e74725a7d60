//! `[cluster]`, `[network]` and `[node]` of a file: several copies of the rest of the file, in nodes. They become a
//! tier of `kind = "cluster"`, which an expression can contain directly.
//!
//! A setting is a choice of the owner. The behaviour of network, software and power supplies is a figure. None of
//! these figures is published for a product: the fallbacks are assumed.

use model::Span;
use tier::{ClusterConfig, Kind as Tier, Network, NodeConfig, Reads};

use super::keys::{Fallback, Keys};
use super::outline::{
    ClusterEntry, Form, Key, LocatedName, MemberEntry, ParsedPool, SliceEntry, TextRange, TierEntry,
};
use super::{KindReader, TierReader};
use crate::section::Findings;
use text::quantity::Rate;
use text::toml::SourceFile;

pub(super) const READER: KindReader = KindReader {
    word: "cluster",
    read,
};

const MOST: u64 = 64;

fn read(tier: &mut TierReader<'_, '_>) -> Tier {
    tier.children("members", 1..=1024);
    let keys = &mut tier.keys;
    let nodes = keys.count("nodes", 1..=MOST, 2);
    let mut config = ClusterConfig {
        nodes: nodes as u16,
        fold: keys.count("fold", 1..=MOST, 1) as u16,
        replicas: keys.count("replicas", 1..=4, nodes.min(2)) as u16,
        component: keys.bytes("component", 1 << 20..=1 << 40, 1 << 30) / 4096 * 4096,
        reads: keys.choice("reads", &Reads::ALL, Reads::Address),
        ..ClusterConfig::FREE
    };
    config.network = network(&mut keys.section("network"));
    config.node = node(&mut keys.section("node"));
    Tier::Cluster(config)
}

/// Reads the network between nodes.
pub(super) fn network(keys: &mut Keys<'_>) -> Network {
    let rate = Fallback::assumed(
        "3.125 GB/s",
        "25 Gbit/s for each direction of a node's link",
    );
    let Rate(rate) = keys.rate("rate", 1e6..=1e12, rate);
    let mut span = |key, value, source| {
        keys.figure::<Span>(
            key,
            Span::ZERO..=Span::from_ms(100),
            Fallback::assumed(value, source),
        )
    };
    Network {
        ps_per_byte: (1e12 / rate).round() as u64,
        delay: span(
            "delay",
            "15 us",
            "TCP of one kernel to that of another through a switch, one way",
        ),
        message: span(
            "message",
            "3 us",
            "an interrupt, TCP and a wake-up, on the node that receives",
        ),
    }
}

/// Reads the costs of a node.
pub(super) fn node(keys: &mut Keys<'_>) -> NodeConfig {
    let cores = keys.count("cores", 1..=4096, 16);
    let mut cpu = keys.section("cpu");
    let scale = Fallback::assumed("1", "not fitted");
    let scale = cpu.figure::<f64>("scale", 0.0..=1000.0, scale);
    let mut span = |key, value, source| {
        let span = cpu.figure::<Span>(
            key,
            Span::ZERO..=Span::from_ms(10),
            Fallback::assumed(value, source),
        );
        span.scale(scale)
    };
    let client = span(
        "client",
        "12 us",
        "a virtual disk's I/O from its guest to its object, and back",
    );
    let owner = span(
        "owner",
        "10 us",
        "an object's owner orders it and sends it to replicas",
    );
    let store = span(
        "store",
        "14 us",
        "a replica's log record, or its look-up, and the drive's I/O",
    );
    let per_kib = span("per_kib", "250 ns", "a checksum and a copy");
    drop(cpu);
    let mut power = keys.section("power");
    NodeConfig {
        cores: cores as u16,
        client,
        owner,
        store,
        ps_per_byte: per_kib.ns() * 1000 / 1024,
        idle_watts: power.watts(
            "idle",
            0.0..=10_000.0,
            Fallback::assumed("420 W", "two idle sockets, memory and fans"),
        ),
        core_watts: power.watts(
            "per_core",
            0.0..=1000.0,
            Fallback::assumed(
                "3.1 W",
                "a socket's rated power divided by its cores, less their idle power",
            ),
        ),
    }
}

/// Expands a file with `[cluster]`: one copy of everything per group on the simulated nodes, and a tier above the
/// copies. The tier's own reader reports values that are not numbers. Returns the name prefixes of the copies.
pub(super) fn spread(
    outline: &mut ParsedPool,
    file: &SourceFile,
    findings: &Findings,
) -> Vec<String> {
    let Some(mut cluster) = outline.cluster.take() else {
        return Vec::new();
    };
    let wrong = |at: &TextRange, what: &str, help: &str| {
        let problem = file.problem(at.clone(), String::from(what), Some(String::from(help)));
        findings.problems.borrow_mut().push(problem);
    };
    let nodes = number(&cluster.keys, "nodes").unwrap_or(2).clamp(1, MOST);
    let fold = number(&cluster.keys, "fold").unwrap_or(1).clamp(1, nodes);
    let groups = number(&cluster.keys, "groups_per_node");
    let written = take(&mut cluster.keys, "groups_per_node");
    if let (Some(key), None | Some(0 | 65..)) = (&written, groups) {
        let what = "`cluster.groups_per_node` must be a whole number from 1 to 64";
        wrong(&key.at, what, "write how many groups a node has, such as 2");
    }
    let group = group(&mut cluster, outline).unwrap_or_else(|at| {
        let what = "`cluster.group` does not name a tier";
        wrong(
            &at,
            what,
            "name the tier that a node has, such as `group = \"group\"`",
        );
        let last = outline.tiers.last().map(|tier| tier.name.text.clone());
        LocatedName {
            text: last.unwrap_or_default(),
            at,
        }
    });
    if outline.serve.take().is_some() {
        let what = "`serve` is not allowed with `[cluster]`: the cluster itself is served";
        wrong(&cluster.at, what, "take it out");
    }
    let mut whole = ParsedPool {
        name: outline.name.take(),
        ..ParsedPool::default()
    };
    let (mut members, mut scopes) = (Vec::new(), Vec::new());
    for node in 0..nodes / fold {
        for index in 0..groups.unwrap_or(1).clamp(1, 64) {
            let scope = format!("node{node}.{index}.");
            copy(outline, &scope, &mut whole);
            members.push(scoped(&scope, &group));
            scopes.push(scope);
        }
    }
    let word = |at: &TextRange| LocatedName {
        text: String::from("cluster"),
        at: at.clone(),
    };
    cluster.keys.push(Key {
        name: String::from("members"),
        at: group.at,
        form: Form::Names(members),
    });
    whole.tiers.push(TierEntry {
        name: word(&cluster.at),
        kind: word(&cluster.at),
        keys: cluster.keys,
        scope: String::new(),
    });
    *outline = whole;
    scopes
}

/// Returns the whole number of a key.
fn number(keys: &[Key], name: &str) -> Option<u64> {
    match &keys.iter().find(|it| it.name == name)?.form {
        Form::Value(value) => value.as_integer().and_then(|it| u64::try_from(it).ok()),
        _ => None,
    }
}

fn take(keys: &mut Vec<Key>, name: &str) -> Option<Key> {
    let index = keys.iter().position(|it| it.name == name)?;
    Some(keys.remove(index))
}

/// Returns the tier that a node has; if it is not named, the place where it belongs.
fn group(cluster: &mut ClusterEntry, outline: &ParsedPool) -> Result<LocatedName, TextRange> {
    let key = take(&mut cluster.keys, "group").ok_or_else(|| cluster.at.clone())?;
    let text = match &key.form {
        Form::Value(value) => value.as_str().unwrap_or_default().to_owned(),
        _ => String::new(),
    };
    match outline.tiers.iter().any(|tier| tier.name.text == text) {
        true => Ok(LocatedName { text, at: key.at }),
        false => Err(key.at),
    }
}

fn scoped(scope: &str, name: &LocatedName) -> LocatedName {
    LocatedName {
        text: format!("{scope}{}", name.text),
        at: name.at.clone(),
    }
}

/// Copies all parts of a node's group, with a name prefix.
fn copy(of: &ParsedPool, scope: &str, to: &mut ParsedPool) {
    let named = |name: &LocatedName| scoped(scope, name);
    to.members.extend(of.members.iter().map(|it| MemberEntry {
        name: named(&it.name),
        drive: it.drive.clone(),
        count: it.count,
        set: it.set.clone(),
        scope: scope.to_owned(),
    }));
    to.slices.extend(of.slices.iter().map(|it| SliceEntry {
        name: named(&it.name),
        of: it.of.iter().map(named).collect(),
        size: it.size,
        offset: it.offset,
    }));
    to.tiers.extend(of.tiers.iter().map(|it| TierEntry {
        name: named(&it.name),
        kind: it.kind.clone(),
        keys: it.keys.clone(),
        scope: scope.to_owned(),
    }));
}
