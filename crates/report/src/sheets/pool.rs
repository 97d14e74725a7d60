//! A pool as a sheet for a terminal: its tiers as a tree, the use of its capacity, its durability guarantee, and its
//! drives.

use catalogue::{DriveSheet, PoolSheet};
use model::media::Medium;
use study::decide::odds::sets_of_pool_and_of_blocks;
use study::ledger::support;
use study::prove::statement;
use text::digits::digits;
use text::quantity::{Bytes, Quantity, decimal};
use text::terminal::{self, Width, paragraph};
use text::words::listed;
use tier::{ClusterConfig, DriveConfig, DurabilityPoint, Loss, PoolConfig, Target};

/// Maximum number of drives that are all listed.
const MANY: usize = 24;

/// A part of the drives' bytes, and its use.
pub(super) struct ByteUse {
    pub(super) what: String,
    pub(super) bytes: u64,
}

/// Returns binary bytes with one decimal, as administrators of pools count them.
pub(super) fn binary(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (bytes.max(1).ilog2() / 10).min(4);
    match power {
        0 => format!("{bytes} B"),
        _ => format!(
            "{:.1} {}",
            bytes as f64 / 1024f64.powi(power as i32),
            UNITS[power as usize]
        ),
    }
}

/// Returns the use of the bytes of all drives; the shares add up to the total.
pub(super) fn shares(config: &PoolConfig<DriveConfig>) -> Vec<ByteUse> {
    let capacities = config.capacities();
    let volumes = config.volumes();
    let mut shares = Vec::new();
    let mut add = |what: String, bytes: u64| {
        if bytes > 0 {
            shares.push(ByteUse { what, bytes });
        }
    };
    for volume in &volumes {
        add(format!("volume {}", volume.name), volume.bytes);
    }
    let (mut labels, mut sliced) = (0, 0);
    for (tier, capacity) in config.tiers.iter().zip(&capacities) {
        let mut below = 0;
        for target in &tier.children {
            below += match *target {
                Target::Slice { bytes, .. } => {
                    labels += config.label_bytes;
                    sliced += bytes;
                    bytes - config.label_bytes
                }
                Target::Tier(index) => capacities[usize::from(index)],
            };
        }
        add(
            format!("taken by {} ({})", tier.name, tier.kind.word()),
            below - capacity,
        );
    }
    let served = config.volumes.iter().map(|&it| capacities[usize::from(it)]);
    let rounded = served.sum::<u64>() - config.bytes();
    add(String::from("left over where volumes meet"), rounded);
    add(String::from("labels"), labels);
    let all: u64 = config
        .members
        .iter()
        .map(|it| it.drive.capacity_bytes())
        .sum();
    add(String::from("in no slice"), all - sliced);
    shares
}

pub(super) fn names(config: &PoolConfig<DriveConfig>) -> Vec<String> {
    config.members.iter().map(|it| it.name.clone()).collect()
}

/// Returns the pool's own part of the sheet; the figures of its drives follow.
pub(super) fn sheet(
    drive: &DriveSheet,
    config: &PoolConfig<DriveConfig>,
    pool: &PoolSheet,
    width: Width,
) -> String {
    let name = match drive.name == drive.id {
        true => drive.name.clone(),
        false => format!("{}  ({})", drive.name, drive.id),
    };
    let mut lines = vec![
        paragraph("", &name, width),
        paragraph(
            "",
            &format!("Pool of {}: {}.", drive.form_factor, made_of(drive, pool)),
            width,
        ),
        String::new(),
    ];
    lines.extend(tree(config, pool, width));
    lines.push(String::new());
    for (volume, &tier) in config.volumes().iter().zip(&config.volumes) {
        let words = config.promise_words(tier);
        let head = format!("{}: ", volume.name);
        lines.push(paragraph(
            &head,
            &format!("{}, {words}", binary(volume.bytes)),
            width,
        ));
    }
    // A set that loses only blocks of one volume may lose another volume: each is looked at alone.
    let promises = config.promises();
    let has_partial = |&tier: &u16| {
        let [_, some] = sets_of_pool_and_of_blocks(&promises[usize::from(tier)].loss);
        !some.is_empty()
    };
    if config.volumes.iter().any(has_partial) {
        lines.push(paragraph("Some blocks: ", SOME_BLOCKS, width));
    }
    let known = statement(&drive.id, config);
    lines.push(paragraph("Guarantee: ", &known, width));
    lines.push(String::new());
    lines.push(capacity(config));
    lines.push(String::new());
    lines.push(members(drive, config, pool, width));
    lines.push(String::new());
    for (name, value) in summary(drive, config) {
        lines.push(paragraph(&format!("{name:<15} "), &value, width));
    }
    lines.join("\n")
}

/// Returns text such as `2 P4801X 100 GB (nda.0 and nda.1)`.
fn made_of(drive: &DriveSheet, pool: &PoolSheet) -> String {
    let of = |(index, member): (usize, &DriveSheet)| {
        let count = pool.members.iter().filter(|&&it| it == index).count();
        format!("{count} {}", member.name)
    };
    listed(&drive.members.iter().enumerate().map(of).collect::<Vec<_>>())
}

/// A tier or slice in the tree: its branch and name, the prefix of further lines, and the text.
struct TreeLine {
    name: String,
    under: String,
    words: String,
}

/// Returns a line for each tier and slice; tiers are above those that they are built on.
fn tree(config: &PoolConfig<DriveConfig>, pool: &PoolSheet, width: Width) -> Vec<String> {
    let capacities = config.capacities();
    let mut leaves = Vec::new();
    for &top in &config.volumes {
        branch(
            config,
            pool,
            (&capacities, Target::Tier(top)),
            (String::new(), String::new()),
            &mut leaves,
        );
    }
    let widest = leaves.iter().map(|leaf| leaf.name.chars().count()).max();
    let widest = widest.unwrap_or(0);
    let room = width.map(|width| width.saturating_sub(u16::try_from(widest + 2).unwrap_or(0)));
    let mut lines = Vec::new();
    for leaf in leaves {
        let words = paragraph("", &leaf.words, room);
        let heads = std::iter::once(&leaf.name).chain(std::iter::repeat(&leaf.under));
        let whole = words
            .lines()
            .zip(heads)
            .map(|(words, head)| format!("{head:<widest$}  {words}"));
        lines.extend(whole);
    }
    lines
}

fn branch(
    config: &PoolConfig<DriveConfig>,
    pool: &PoolSheet,
    (capacities, target): (&[u64], Target),
    (here, below): (String, String),
    leaves: &mut Vec<TreeLine>,
) {
    let index = match target {
        Target::Slice {
            member,
            base,
            bytes,
        } => {
            let member = &config.members[usize::from(member)];
            let whole = base == 0 && bytes == member.drive.capacity_bytes() / 4096 * 4096;
            let part = match whole {
                true => decimal(bytes),
                false => format!("{} from {} on", binary(bytes), binary(base)),
            };
            leaves.push(TreeLine {
                name: format!("{here}{}", member.name),
                under: below,
                words: part,
            });
            return;
        }
        Target::Tier(index) => usize::from(index),
    };
    let (tier, sheet) = (&config.tiers[index], &pool.tiers[index]);
    let settings = sheet.settings.iter();
    let settings: Vec<String> = settings
        .map(|(key, value)| format!("{key} {value}"))
        .collect();
    let kind = [vec![tier.kind.word().to_owned()], settings]
        .concat()
        .join(", ");
    leaves.push(TreeLine {
        name: format!("{here}{}", tier.name),
        under: format!("{below}│"),
        words: format!("{kind}: {}", binary(capacities[index])),
    });
    let mut roles = sheet
        .roles
        .iter()
        .flat_map(|role| vec![role.name; role.children]);
    let last = tier.children.len().saturating_sub(1);
    for (number, &child) in tier.children.iter().enumerate() {
        let role = match roles.next() {
            Some("members") | None => String::new(),
            Some(role) => format!("{role}: "),
        };
        let (corner, line) = if number == last {
            ("└ ", "  ")
        } else {
            ("├ ", "│ ")
        };
        let heads = (format!("{below}{corner}{role}"), format!("{below}{line}"));
        branch(config, pool, (capacities, child), heads, leaves);
    }
}

fn capacity(config: &PoolConfig<DriveConfig>) -> String {
    let shares = shares(config);
    let all: u64 = shares.iter().map(|share| share.bytes).sum();
    let mut table = terminal::plain();
    table.set_header(["capacity", "bytes", "share"]);
    for share in &shares {
        let percent = 100.0 * share.bytes as f64 / all as f64;
        table.add_row([
            share.what.clone(),
            binary(share.bytes),
            format!("{percent:.2} %"),
        ]);
    }
    table.add_row([
        String::from("all drives"),
        binary(all),
        String::from("100.00 %"),
    ]);
    terminal::right(&mut table, 1..3);
    table.trim_fmt()
}

fn members(
    drive: &DriveSheet,
    config: &PoolConfig<DriveConfig>,
    pool: &PoolSheet,
    width: Width,
) -> String {
    let mut table = terminal::table(width);
    table.set_header([
        "member",
        "drive",
        "capacity",
        "endurance",
        "idle",
        "price",
        "write cache",
        "model",
    ]);
    for (index, (member, &sheet)) in config.members.iter().zip(&pool.members).enumerate() {
        let sheet = &drive.members[sheet];
        // All are equal, and the last line states their number.
        if config.members.len() > MANY && index > 0 && index + 1 < config.members.len() {
            let alike = |at: usize| pool.members[at] == pool.members[index];
            if alike(index - 1) && alike(index + 1) {
                continue;
            }
        }
        let price = sheet
            .price_usd
            .map_or(String::from("-"), |usd| format!("{usd} USD"));
        table.add_row([
            member.name.clone(),
            sheet.id.clone(),
            decimal(sheet.capacity),
            sheet.endurance_bytes.map_or(String::from("-"), decimal),
            format!("{} W", digits(member.drive.idle_watts())),
            price,
            String::from(match member.drive.volatile_write_cache() {
                true => "volatile",
                false => "not volatile",
            }),
            support::statement(sheet).grade.name().to_owned(),
        ]);
    }
    terminal::right(&mut table, 2..6);
    terminal::unbroken(&mut table, 0..6);
    table.trim_fmt()
}

fn summary(drive: &DriveSheet, config: &PoolConfig<DriveConfig>) -> Vec<(&'static str, String)> {
    let names = names(config);
    let mut volatile = Vec::new();
    for (member, name) in config.members.iter().zip(&names) {
        let bytes = member.drive.volatile_bytes();
        if bytes > 0 {
            volatile.push(format!("{} of {name}", Bytes(bytes).show()));
        }
    }
    let promise = config.promise();
    // If drives need no flushes but the pool does, flushes concern the memory above the drives.
    let in_memory = volatile.is_empty() && config.needs_flushes();
    if in_memory || loses_with_memory(&promise.loss) {
        volatile.push(String::from("data that a tier keeps in memory"));
    }
    let volatile = match (volatile.is_empty(), config.needs_flushes()) {
        (true, _) => String::from("nothing: a power cut loses no acknowledged data"),
        (false, true) if promise.durable == DurabilityPoint::Later => {
            format!("{}; a flush does not change this", listed(&volatile))
        }
        (false, true) => format!(
            "{}; data that is not flushed is lost in a power cut",
            listed(&volatile)
        ),
        (false, false) => format!("{}; the tiers keep what would be lost", listed(&volatile)),
    };
    let mut rows = vec![("volatile", volatile), ("idle power", idle_power(config))];
    if let Some(folded) = config.cluster().and_then(ClusterConfig::fold_words) {
        rows.insert(0, ("folded", folded));
    }
    if let (Some(price), Some(per_gb)) = (drive.price_usd, drive.usd_per_gb()) {
        let date = drive.price_date.as_deref().unwrap_or("date unknown");
        let gb = format!("{price} USD of drives ({date}), {per_gb:.2} USD/GB served");
        rows.push(("price", gb));
    }
    let ends = drive.named_members();
    let ends = ends
        .iter()
        .filter_map(|(name, it)| Some((it.endurance_bytes?, name)));
    // Of equal ones, the first.
    if let Some((bytes, name)) = ends.min_by_key(|(bytes, _)| *bytes) {
        rows.push((
            "endurance",
            format!("{} written to {name}, the weakest", decimal(bytes)),
        ));
    }
    // Of a pool's administration, only what does not belong to its drives.
    let own = [
        "LBA formats",
        "I/O queues",
        "largest command",
        "write cache",
    ];
    let administration = super::administration(drive).into_iter();
    rows.extend(administration.filter(|(name, _)| own.contains(name)));
    let known = support::statement(drive);
    rows.push(("model", format!("{}: {}", known.grade.name(), known.text)));
    rows
}

/// Returns the idle power of drives, and of nodes if there are any.
fn idle_power(config: &PoolConfig<DriveConfig>) -> String {
    let drives: f64 = config.members.iter().map(|it| it.drive.idle_watts()).sum();
    match config.cluster() {
        None => format!("{} W, of drives", digits(drives)),
        Some(cluster) => format!(
            "{} W of nodes simulated, of which {} W of drives; {} W more for each busy core",
            digits(config.idle_watts()),
            digits(drives),
            digits(cluster.node.core_watts)
        ),
    }
}

/// Consequence of a loss of memory while drives have failed.
const SOME_BLOCKS: &str = "drives that fail together with the memory (a crash) lose only blocks of the stripes or the log that were being written, not the pool.";

fn loses_with_memory(loss: &Loss) -> bool {
    loss.cut_sets().iter().any(|(_, ram)| *ram)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_the_drives_is_told_once() {
        for words in [
            "s2-slog",
            "stripe(3*p4801x-100; chunk=512k)",
            "concat(p4801x-100, p4800x-375)",
            "stripe(2*mirror(2*p4801x-100), mirror(p4801x-100, p4800x-375))",
        ] {
            let sheet = catalogue::drive(words).expect("it is right");
            let config = sheet.pool_config().expect("a pool");
            let all: u64 = config
                .members
                .iter()
                .map(|it| it.drive.capacity_bytes())
                .sum();
            let told: u64 = shares(config).iter().map(|share| share.bytes).sum();
            assert_eq!(told, all, "{words}");
        }
    }

    #[test]
    fn on_a_terminal_no_line_is_longer_than_it_and_the_tree_is_whole() {
        for words in ["group", "s2-slog", "slog-disabled"] {
            let drive = catalogue::drive(words).expect("it is right");
            let config = drive.pool_config().expect("a pool");
            let pool = drive.pool.as_ref().expect("a pool");
            let shown = sheet(&drive, config, pool, Some(80));
            for line in shown.lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
            let joined: Vec<String> = tree(config, pool, Some(80));
            let further = joined.iter().filter(|line| line.starts_with("│  "));
            assert!(further.count() >= 2, "{joined:?}");
        }
    }

    #[test]
    fn a_pool_is_shown_whole() {
        let shown = [
            "s2-slog",
            "stripe(2*mirror(2*950pro-256), mirror(2*p4800x-375); chunk=64k)",
            "slog-disabled",
        ];
        let shown = shown.map(|words| {
            let drive = catalogue::drive(words).expect("it is right");
            let config = drive.pool_config().expect("a pool");
            sheet(&drive, config, drive.pool.as_ref().expect("a pool"), None)
        });
        insta::assert_snapshot!(shown.join("\n\n=====\n\n"));
    }
}
