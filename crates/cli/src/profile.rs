//! A load on a disk group as an argument, in HCIBench's notation: a block size and a percentage of reads, such as
//! `4k70r`.

use study::decide::profile::Profile;

/// Parses the name of a profile.
///
/// # Errors
/// A description of the allowed form.
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
