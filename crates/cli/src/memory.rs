//! `--memory`: the host's memory for its page cache.

use catalogue::HostSheet;
use text::problem::Problems;

/// Parses the memory of a page cache.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    let bytes = crate::size::size(text)?;
    match catalogue::PAGE_CACHE.contains(&bytes) {
        true => Ok(bytes),
        false => Err(String::from("not from 16MiB to 64TiB")),
    }
}

/// Returns the host with the given memory.
pub(crate) fn with_memory(memory: Option<u64>, mut host: HostSheet) -> Result<HostSheet, Problems> {
    let Some(bytes) = memory else {
        return Ok(host);
    };
    match &mut host.config.page_cache {
        Some(config) => config.memory = bytes,
        None => {
            let what = format!("--memory: the host {} has no [page_cache]", host.id);
            let mut problems = Problems::whole("--memory", what);
            problems.0[0].help = Some("a host with a page cache, such as linux".into());
            return Err(problems);
        }
    }
    Ok(host)
}
