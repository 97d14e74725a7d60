//! What stands on the members of a pool, changed in any way, before its tiers are found again on them.

use model::Span;
use model::data::{Contents, Image, Unreadable, Unwritable};
use tier::{DriveConfig, IntentLogConfig, Kind, LogCpu, LogScale, Logbias, Member, MirrorConfig, ParityArrayConfig, PoolConfig, StripeConfig, SyncPolicy, Target, TierConfig, WriteBackConfig};
use model::media::ram::RamConfig;
use tier::offline::{self, Images};
use tier::record::{RecordContent, RecordEntry, RecordHeader};

/// Bytes of a member.
const SLICE: u64 = 2 << 20;
const MEMBERS: u16 = 4;
/// The two copies of a label at its end, see `crates/tier/src/label.rs`.
const LABEL: u64 = 4096;
const POOL: u128 = 7;

#[derive(Clone)]
struct Disks {
    images: Vec<Image>,
    absent: [bool; MEMBERS as usize],
    /// Records that were put into a ring: the slot behind them, how many, and the sum of the last.
    ring: (u64, u64, u32),
}

impl Images for Disks {
    fn present(&self, member: u16) -> bool {
        !self.absent[usize::from(member)]
    }
    fn read(&mut self, member: u16, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.images[usize::from(member)].read(at, into)
    }
    fn write(&mut self, member: u16, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        assert!(
            at + data.len() as u64 <= SLICE,
            "beyond the end of a member"
        );
        self.images[usize::from(member)].write(at, data)
    }
    fn sync(&mut self, _: u16) -> Result<(), Unwritable> {
        Ok(())
    }
}

/// One of four: a stripe over two mirrors; a write-back cache before two drives, with a drive on its own behind; an intent
/// log over a mirror, with two logs; a RAID 5 of all members.
fn pool(which: u8) -> PoolConfig<DriveConfig> {
    let member = |index: u16| Member {
        name: format!("m.{index}"),
        drive: DriveConfig::Ram(RamConfig {
            bytes: SLICE,
            per_command: Span::from_us(1),
            picoseconds_per_byte: 100,
            memory_bus: None,
            spread: 0.0,
        }),
    };
    let slice = |member| Target::Slice {
        member,
        base: 0,
        bytes: SLICE,
    };
    let tier = |name: &str, kind, children| TierConfig {
        name: name.into(),
        kind,
        children,
    };
    let mirror = || {
        Kind::Mirror(MirrorConfig {
            region: 16 << 10,
            ..MirrorConfig::default()
        })
    };
    let tiers = match which % 4 {
        0 => vec![
            tier("one", mirror(), vec![slice(0), slice(1)]),
            tier("two", mirror(), vec![slice(2), slice(3)]),
            tier(
                "top",
                Kind::Stripe(StripeConfig { chunk: 16 << 10 }),
                vec![Target::Tier(0), Target::Tier(1)],
            ),
        ],
        1 => {
            let cache = WriteBackConfig {
                segment: 32 << 10,
                buffer_limit: 128 << 10,
                record: 16 << 10,
                chunk: 16 << 10,
                ..WriteBackConfig::PLAIN
            };
            vec![
                tier("one", mirror(), vec![slice(0), slice(1)]),
                tier(
                    "top",
                    Kind::WriteBack(cache),
                    vec![Target::Tier(0), slice(2), slice(3)],
                ),
            ]
        }
        2 => {
            let log = IntentLogConfig {
                size: 512 << 10,
                record: 16 << 10,
                stored: None,
                autotrim: None,
                block: 12 << 10,
                run: 64 << 10,
                ram: 1600 << 10,
                filled: false,
                lanes: 1,
                sync: SyncPolicy::Standard,
                logbias: Logbias::Latency,
                slog_bulk: 64 << 20,
                txg: Span::from_ms(5000),
                cpu: LogCpu::default(),
                scale: LogScale::default(),
            };
            vec![
                tier("one", mirror(), vec![slice(0), slice(1)]),
                tier(
                    "top",
                    Kind::IntentLog(log),
                    vec![Target::Tier(0), slice(2), slice(3)],
                ),
            ]
        }
        _ => {
            // With this chunk the labels are at the end of a member, as a mirror's.
            let array = ParityArrayConfig {
                chunk: 8 << 10,
                region: 16 << 10,
                resync_rate: 0,
                read_errors: 3,
            };
            let all = (0..MEMBERS).map(slice).collect();
            vec![tier("top", Kind::Raid5(array), all)]
        }
    };
    PoolConfig {
        members: (0..MEMBERS).map(member).collect(),
        volumes: vec![tiers.len() as u16 - 1],
        tiers,
        label_bytes: 0,
    }
}

/// Makes the sum of a block right again, wherever its kind has it: at the end as mirrors' labels (which leave it out) and
/// superblocks, labels and roots (which count it as zeroes); behind a record's head; in a log block's header.
fn seal(block: &mut [u8; LABEL as usize]) {
    const END: usize = LABEL as usize - 4;
    let (at, end, counted) = match &block[..8] {
        b"DL-RECRD" => (60, END + 4, true),
        b"DLMIRROR" => (END, END, false),
        [b'D', b'L', b'Z', b'B', ..] => (4, 192, true),
        _ => (END, END + 4, true),
    };
    if counted {
        block[at..at + 4].fill(0);
    }
    let sum = crc32c::crc32c(&block[..end]);
    block[at..at + 4].copy_from_slice(&sum.to_le_bytes());
}

/// Changes the images as the input says: bytes anywhere; bytes in a label, whose sum is made right again; a label of another
/// member or place; a range that cannot be read; a member that is gone.
fn change(disks: &mut Disks, input: &mut &[u8]) -> Option<()> {
    let (head, rest) = input.split_first_chunk::<5>()?;
    *input = rest;
    let [what, who, low, high, length] = *head;
    let member = usize::from(who % MEMBERS as u8);
    let place = u64::from(u16::from_le_bytes([low, high]));
    let data = &rest[..rest.len().min(length.into())];
    *input = &rest[data.len()..];
    let label = SLICE - LABEL * (1 + u64::from(who >> 7));
    match what % 7 {
        0 => {
            let mut sector = [0; 512];
            let at = place % (SLICE / 512) * 512;
            disks.images[member].read(at, &mut sector).ok()?;
            sector[..data.len()].copy_from_slice(data);
            disks.images[member].write(at, &sector).ok()?;
        }
        1 => {
            let mut bytes = [0; LABEL as usize];
            disks.images[member].read(label, &mut bytes).ok()?;
            // What a label says stands near its beginning.
            let at = (place % 200) as usize;
            bytes[at..at + data.len()].copy_from_slice(data);
            let (body, sum) = bytes.split_at_mut(LABEL as usize - 4);
            sum.copy_from_slice(&crc32c::crc32c(body).to_le_bytes());
            disks.images[member].write(label, &bytes).ok()?;
        }
        2 => {
            let mut bytes = [0; LABEL as usize];
            let from = SLICE - LABEL * (1 + place % 2);
            let other = (place >> 1) as usize % disks.images.len();
            disks.images[other].read(from, &mut bytes).ok()?;
            disks.images[member].write(label, &bytes).ok()?;
        }
        4 => {
            // Any block of any kind.
            let mut bytes = [0; LABEL as usize];
            let from = place % (SLICE / LABEL) * LABEL;
            disks.images[member].read(from, &mut bytes).ok()?;
            let at = usize::from(who >> 2) * 4;
            bytes[at..at + data.len()].copy_from_slice(data);
            seal(&mut bytes);
            disks.images[member].write(from, &bytes).ok()?;
        }
        5 => record(disks, who, data)?,
        3 => disks.images[member].spoil(place % (SLICE / 512) * 512, u64::from(length) * 512),
        _ => disks.absent[member] = true,
    }
    Some(())
}

/// The next record of a ring of the first epoch, on both legs of its cache: an entry for every four bytes, of data that are
/// zeroes.
fn record(disks: &mut Disks, who: u8, data: &[u8]) -> Option<()> {
    let content = [
        RecordContent::Data,
        RecordContent::Zeroes,
        RecordContent::Trimmed,
        RecordContent::Passed,
    ];
    let entries: Vec<RecordEntry> = data
        .chunks_exact(4)
        .map(|it| {
            let content = content[usize::from(it[3] % 4)];
            let units = u32::from(it[2] % 4) + 1;
            RecordEntry {
                unit: u64::from(u16::from_le_bytes([it[0], it[1]])),
                units,
                content,
                sum: match content {
                    RecordContent::Data => model::data::sum(&vec![0; units as usize * 4096]),
                    _ => 0,
                },
            }
        })
        .collect();
    let (slot, number, previous) = disks.ring;
    let units = entries
        .iter()
        .filter(|it| it.content == RecordContent::Data);
    let slots = 1 + units.map(|it| u64::from(it.units)).sum::<u64>();
    let header = RecordHeader {
        epoch: 1 + u64::from(who >> 7),
        number: number + 1,
        flushed_through: number.saturating_sub(u64::from(who & 3)),
        previous,
        pool: POOL,
        entries,
    };
    let (block, sum) = header.encode();
    // Behind the superblocks; a ring of 32 slots.
    let at = 4 * 4096 + slot % 32 * 4096;
    for leg in 0..2 {
        disks.images[leg].write(at, &block).ok()?;
    }
    disks.ring = (slot + slots, number + 1, sum);
    Some(())
}

/// Any bytes on the members: the pool is found or refused; once it is found, it is found again, and can be read.
pub fn tier_image(bytes: &[u8]) {
    let Some((&which, bytes)) = bytes.split_first() else {
        return;
    };
    let config = pool(which);
    let mut disks = Disks {
        images: vec![Image::default(); MEMBERS.into()],
        absent: [false; MEMBERS as usize],
        ring: (0, 0, 0),
    };
    offline::format(&config, POOL, &mut disks).expect("members in memory");
    let mut input = bytes;
    while change(&mut disks, &mut input).is_some() {}
    let Ok(_) = offline::recover(&config, POOL, &mut disks) else {
        return;
    };
    let found = offline::recover(&config, POOL, &mut disks).expect("it was found before");
    let mut block = [0; 4096];
    for at in (0..config.bytes()).step_by(block.len()) {
        // A block that no leg can read is an error of the read.
        let _ = found.read(&config, &mut disks, config.volumes[0], at, &mut block);
    }
}
