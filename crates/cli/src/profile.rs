//! A load of a disk group as HCIBench names them: a block size and a percentage of reads, such as `4k70r`.

use study::decide::work::Load;
use text::problem::Problems;

/// A load as HCIBench names them.
#[derive(Clone)]
pub(crate) struct Profile {
    pub(crate) name: String,
    pub(crate) block: String,
    pub(crate) reads: u32,
}

/// One out of its name.
///
/// # Errors
/// What would be right.
pub(crate) fn profile(text: &str) -> Result<Profile, String> {
    let wrong = || String::from("write a block size and a percentage of reads, such as 4k70r");
    let at = text.find(['k', 'm']).ok_or_else(wrong)? + 1;
    let (block, rest) = text.split_at(at);
    let reads = rest
        .strip_suffix('r')
        .ok_or_else(wrong)?
        .parse()
        .map_err(|_| wrong())?;
    match crate::size::size(block) {
        Ok(bytes) if bytes >= 512 && reads <= 100 => Ok(Profile {
            name: text.to_owned(),
            block: block.to_owned(),
            reads,
        }),
        _ => Err(wrong()),
    }
}

impl Profile {
    /// Eight disks of a group, four in flight each.
    ///
    /// # Errors
    /// What fio would refuse.
    pub(crate) fn load(&self) -> Result<Load, Problems> {
        let text = format!(
            "; HCIBench's easy run of one disk group: 8 disks, 4 threads each.\n[{}]\nioengine=libaio\ndirect=1\nnorandommap=1\n\
             rw=randrw\nrwmixread={}\nbs={}\niodepth=4\nnumjobs=8\ngroup_reporting=1\ntime_based=1\nramp_time=200ms\nruntime=2s\n",
            self.name, self.reads, self.block
        );
        Load::of_text(&self.name, text)
    }
}
