//! A host: `catalogue/host/*.toml`.

use model::host::{CompletionMode, HostConfig};

use super::Section;

/// How completions are noticed, as files name it.
const COMPLETIONS: &[(&str, CompletionMode)] = &[
    ("interrupt", CompletionMode::Interrupt),
    ("polling", CompletionMode::Polling),
    ("hybrid-polling", CompletionMode::HybridPolling),
];

pub(super) fn read(root: &mut Section<'_>) -> HostConfig {
    HostConfig {
        cores: root.count("cores", 1..=1024u16),
        io_queues: 0,
        completion: root.choice("completion", COMPLETIONS),
    }
}
