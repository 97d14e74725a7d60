//! A pool as a drive of the catalogue: what verbs ask of any drive, from what its members are.

use model::management::LbaFormat;
use model::media::{DriveConfig, Medium};
use model::tier::{Durable, PoolConfig, Target, Volume};

use super::outline::Outline;
use crate::administration::NvmeIdentity;
use crate::locate::Located;
use crate::section::Findings;
use crate::{DriveSheet, common_administration};
use text::problem::Problems;

/// What is known of a pool besides the model's configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolSheet {
    /// By member: which of [`DriveSheet::members`] it is like.
    pub members: Vec<usize>,
    /// As the configuration's tiers.
    pub tiers: Vec<TierSheet>,
}

/// What is known of a tier.
#[derive(Clone, PartialEq, Debug)]
pub struct TierSheet {
    /// Its kind as files name it.
    pub kind: &'static str,
    /// What its children are to it, in order.
    pub roles: Vec<Role>,
    /// What its owner chose, or the default: key and value in words.
    pub settings: Vec<(String, String)>,
    /// All that a setting can be, of those that are one of a few words: key and words.
    pub words: Vec<(String, Vec<String>)>,
}

/// Some of a tier's children.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Role {
    /// What they are to it, such as `main`.
    pub name: &'static str,
    /// How many.
    pub children: usize,
}

/// The sheet of a pool; its members' are among what was found.
pub(super) fn of(
    located: &Located,
    outline: &Outline,
    config: PoolConfig<DriveConfig>,
    pool: PoolSheet,
    findings: &Findings,
) -> Result<DriveSheet, Problems> {
    let members = findings.members.borrow().clone();
    let each = || pool.members.iter().map(|&member| &members[member]);
    let lba_formats = formats(each());
    let common = common_administration(lba_formats)?;
    let prices: Option<Vec<f64>> = each().map(|it| it.price_usd).collect();
    let dates = each().filter_map(|it| it.price_date.clone());
    let protected = config.promise().durable == Durable::Acknowledged;
    let name = outline.name.clone().unwrap_or_else(|| located.id.clone());
    let shown = name.chars().map(|c| match c {
        ' '..='~' => c,
        _ => '?',
    });
    Ok(DriveSheet {
        id: located.id.clone(),
        maker: words(each().map(|it| &*it.maker)),
        medium: words(each().map(|it| &*it.medium)),
        family: None,
        form_factor: match config.members.len() {
            1 => String::from("one drive"),
            count => format!("{count} drives"),
        },
        interface: words(each().map(|it| &*it.interface)),
        capacity: config.capacity_bytes(),
        management: common.management,
        nvme: NvmeIdentity {
            model_number: shown.take(40).collect(),
            ..common.nvme
        },
        power_loss_protection: Some(protected),
        io_queues: each().map(|it| it.io_queues).min().unwrap_or(1),
        endurance_bytes: None,
        warranty_years: None,
        price_date: prices.is_some().then(|| dates.max()).flatten(),
        price_usd: prices.map(|prices| prices.iter().sum()),
        fit: None,
        sheet: None,
        ratings: None,
        free: &[],
        figures: findings.figures.borrow().clone(),
        config: DriveConfig::Pool(Box::new(config)),
        pool: Some(pool),
        name,
        members,
    })
}

/// Each once, in order, with commas.
fn words<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = Vec::new();
    for one in all {
        if !known.contains(&one) {
            known.push(one);
        }
    }
    known.join(" and ")
}

/// The formats that all members offer, without metadata. The first is the one in use: the largest block that any is in,
/// so that no command ends within one.
fn formats<'a>(members: impl Iterator<Item = &'a DriveSheet> + Clone) -> Vec<LbaFormat> {
    let offered = |sheet: &DriveSheet, data: u32| {
        let formats = sheet.management.lba_formats.iter();
        formats
            .clone()
            .find(|it| it.data == data && it.metadata == 0)
            .copied()
    };
    let in_use = members
        .clone()
        .filter_map(|it| it.management.lba_formats.first());
    let block = in_use.map(|it| it.data).max().unwrap_or(512);
    let of_all = |data: u32| {
        let each: Option<Vec<LbaFormat>> = members.clone().map(|it| offered(it, data)).collect();
        each?.first().copied()
    };
    let first = of_all(block).unwrap_or(LbaFormat::plain(block));
    let others = [512, 4096].into_iter().filter(|&data| data != block);
    [first]
        .into_iter()
        .chain(others.filter_map(of_all))
        .collect()
}

impl DriveSheet {
    /// The volumes, if it is a pool.
    pub fn volumes(&self) -> Vec<Volume> {
        self.pool_config()
            .map(PoolConfig::volumes)
            .unwrap_or_default()
    }

    /// Leaves of a pool one volume, which it has: its drives stay, other tiers go. Changes nothing if it is none.
    pub(crate) fn keep_volume(&mut self, name: &str) {
        let (DriveConfig::Pool(config), Some(pool)) = (&mut self.config, &mut self.pool) else {
            return;
        };
        let served = config.volumes.iter().copied();
        let mut named = served.filter(|&it| config.tiers[usize::from(it)].name == name);
        let Some(top) = named.next() else {
            return;
        };
        // What stands on others comes after them.
        let mut kept = vec![false; config.tiers.len()];
        kept[usize::from(top)] = true;
        for index in (0..config.tiers.len())
            .rev()
            .filter(|&it| it <= usize::from(top))
        {
            for target in &config.tiers[index].children {
                if let (true, Target::Tier(below)) = (kept[index], target) {
                    kept[usize::from(*below)] = true;
                }
            }
        }
        let number = |tier: u16| kept[..usize::from(tier)].iter().filter(|&&it| it).count() as u16;
        let numbered = |target: &mut Target| {
            if let Target::Tier(tier) = target {
                *tier = number(*tier);
            }
        };
        config.volumes = vec![number(top)];
        let mut each = kept.iter();
        config.tiers.retain(|_| each.next() == Some(&true));
        let mut each = kept.iter();
        pool.tiers.retain(|_| each.next() == Some(&true));
        let targets = config.tiers.iter_mut().flat_map(|tier| &mut tier.children);
        targets.for_each(numbered);
        self.capacity = config.capacity_bytes();
        self.power_loss_protection = Some(config.promise().durable == Durable::Acknowledged);
        self.id = format!("{}/{name}", self.id);
    }

    /// What the model builds the pool from, if it is one.
    pub fn pool_config(&self) -> Option<&PoolConfig<DriveConfig>> {
        match &self.config {
            DriveConfig::Pool(config) => Some(config),
            _ => None,
        }
    }
}
