//! What stands on the members of a pool, changed in any way, before its tiers are found again on them.

use model::Span;
use model::data::{Contents, Image, Unreadable, Unwritable};
use model::media::DriveConfig;
use model::media::ram::RamConfig;
use model::tier::offline::{self, Images};
use model::tier::{Kind, Member, MirrorConfig, PoolConfig, StripeConfig, Target, TierConfig};

/// Bytes of a member.
const SLICE: u64 = 128 << 10;
const MEMBERS: u16 = 4;
/// The two copies of a label at its end, see `mirror/label.rs`.
const LABEL: u64 = 4096;
const POOL: u128 = 7;

#[derive(Clone)]
struct Disks {
    images: Vec<Image>,
    absent: [bool; MEMBERS as usize],
}

impl Images for Disks {
    fn present(&self, member: u16) -> bool {
        !self.absent[usize::from(member)]
    }
    fn read(&mut self, member: u16, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.images[usize::from(member)].read(at, into)
    }
    fn write(&mut self, member: u16, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        assert!(at + data.len() as u64 <= SLICE, "beyond the end of a member");
        self.images[usize::from(member)].write(at, data)
    }
    fn sync(&mut self, _: u16) -> Result<(), Unwritable> {
        Ok(())
    }
}

/// A stripe over two mirrors.
fn pool() -> PoolConfig<DriveConfig> {
    let member = |index: u16| Member {
        name: format!("m.{index}"),
        drive: DriveConfig::Ram(RamConfig {
            bytes: SLICE,
            per_command: Span::from_us(1),
            picoseconds_per_byte: 100,
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
    let stripe = Kind::Stripe(StripeConfig { chunk: 16 << 10 });
    PoolConfig {
        members: (0..MEMBERS).map(member).collect(),
        tiers: vec![
            tier("one", mirror(), vec![slice(0), slice(1)]),
            tier("two", mirror(), vec![slice(2), slice(3)]),
            tier("top", stripe, vec![Target::Tier(0), Target::Tier(1)]),
        ],
        volumes: vec![2],
        label_bytes: 0,
    }
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
    match what % 5 {
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
        3 => disks.images[member].spoil(place % (SLICE / 512) * 512, u64::from(length) * 512),
        _ => disks.absent[member] = true,
    }
    Some(())
}

/// Any bytes on the members: the pool is found or refused; once it is found, it is found again, and can be read.
pub fn tier_image(bytes: &[u8]) {
    let config = pool();
    let mut disks = Disks {
        images: vec![Image::default(); MEMBERS.into()],
        absent: [false; MEMBERS as usize],
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
        let _ = found.read(&config, &mut disks, 2, at, &mut block);
    }
}
