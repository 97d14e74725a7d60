//! The chapter that simulates: the model as WebAssembly, and the data that the scripts need to call it.
//!
//! It exists if the program was built with the engine (`build.rs`) and at least one drive of the review can be
//! expressed as command-line arguments ([`DriveArguments`]). Not supported: a user's own jobs and traces.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, PreEscaped, html};
use serde_json::json;

use study::review::Review;
use study::review::again::DriveArguments;
use text::words::listed;

use super::{data, look};

/// The engine, compressed by gzip; empty if the program was built without it.
static ENGINE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/page-engine.wasm.gz"));

const WORKER: &str = include_str!("script/worker.js");
const ASKING: &str = include_str!("script/engine.js");
const CHAPTER: &str = include_str!("script/what-if.js");

/// The anchor of the chapter.
pub(super) const ID: &str = "what-if";
/// Heading of the chapter.
pub(super) const TITLE: &str = "What if";

/// Returns the bytes of the compressed engine in every page; 0 if the program was built without it and pages do not
/// simulate.
pub fn engine_bytes() -> usize {
    ENGINE.len()
}

/// Checks whether a page of this review simulates.
pub(super) fn is_possible(review: &Review) -> bool {
    !ENGINE.is_empty()
        && review.drives.iter().any(|drive| drive.again.is_some())
        && catalogue::host_names().contains(&&*review.host.id)
}

/// Returns the chapter, which the scripts fill.
pub(super) fn chapter(review: &Review) -> Markup {
    let without = review.drives.iter().filter(|drive| drive.again.is_none());
    let without: Vec<String> = without.map(|drive| drive.label.clone()).collect();
    html! {
        section id=(ID) class="chapter" {
            h2 { (TITLE) }
            p class="about" {
                "Change the load, the drives, the settings of a pool or the host: the page runs the model itself, one job on \
                 drives in steady state, and shows the results. Each run is short and does not show rare latencies; the chapters "
                "of this review run longer, with several seeds."
            }
            @if let Some(note) = smaller(review) {
                p class="about" { (note) }
            }
            @if !without.is_empty() {
                p class="about" {
                    "Not here: " (listed(&without)) ", which this page cannot build from a name and its settings."
                }
            }
            noscript { p class="standfirst" { "This needs scripts." } }
            div class="what-if" {}
        }
    }
}

/// Returns the note that NAND drives run at a smaller size, if any does.
fn smaller(review: &Review) -> Option<String> {
    let of = |again: &DriveArguments| (again.smaller > 1.05).then_some(again.smaller);
    let small = review.drives.iter().filter_map(|drive| {
        let times = of(drive.again.as_ref()?)?;
        Some(format!("{} 1/{times:.0}", drive.label))
    });
    let small: Vec<String> = small.collect();
    (!small.is_empty()).then(|| {
        format!(
            "Flash is modelled with fewer and smaller blocks, so that its steady state is there at once: {} of the \
             capacity. Rates of random writes may differ by some percent from the whole drive's.",
            listed(&small)
        )
    })
}

/// Returns engine, data and scripts.
pub(super) fn scripts(review: &Review) -> Markup {
    let drives = review.drives.iter().map(|drive| &drive.again);
    let known = json!({
        "drives": drives.collect::<Vec<_>>(),
        "hosts": hosts(),
        "host": review.host.id,
        "seed": review.seed,
    });
    html! {
        (data("engine-data", &known))
        (engine())
        (look::script(CHAPTER))
    }
}

/// Returns the engine, its worker, and the script that calls it.
pub(super) fn engine() -> Markup {
    html! {
        script type="application/gzip" id="engine" { (PreEscaped(STANDARD.encode(ENGINE))) }
        script type="text/plain" id="worker" { (PreEscaped(WORKER)) }
        (look::script(ASKING))
    }
}

/// Returns the hosts of the catalogue: id and name.
pub(super) fn hosts() -> Vec<(&'static str, String)> {
    let hosts = catalogue::host_names().into_iter();
    hosts
        .filter_map(|id| Some((id, catalogue::host(id).ok()?.name)))
        .collect()
}
