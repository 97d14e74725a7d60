//! The page of `drivelab lab`: drives and pools composed from the catalogue, a job file, and its results, in one file.
//!
//! The model runs inside the page (`simulate.rs` has the engine). Texts and placeholders are written here and filled
//! by `script/lab.js`. The page shares charts, latency breakdowns, tables and style with the review's page. Not
//! supported: several seeds, faults and traces, for which the page shows the command to use.

use maud::{Markup, html};
use model::Part;
use serde::Serialize;
use serde_json::json;
use statistics::BAND_EDGES;

use super::simulate::{engine, hosts};
use super::{data, look};

const STYLE: &str = include_str!("style/lab.css");

/// Scripts in the order of their dependencies.
const SCRIPTS: [&str; 14] = [
    include_str!("vendor/uplot/uPlot.iife.min.js"),
    include_str!("script/format.js"),
    include_str!("script/data.js"),
    include_str!("script/theme.js"),
    include_str!("script/controls.js"),
    include_str!("script/address.js"),
    include_str!("script/marks.js"),
    include_str!("script/axes.js"),
    include_str!("script/tip.js"),
    include_str!("script/zoom.js"),
    include_str!("script/limit.js"),
    include_str!("script/plot.js"),
    include_str!("script/table.js"),
    include_str!("script/anatomy.js"),
];

const START: &str = include_str!("script/lab.js");

/// Initial job files: description, and text.
const JOBS: [(&str, &str); 6] = [
    ("Random reads, QD16", include_str!("job/random-read.fio")),
    ("Random writes, QD16", include_str!("job/random-write.fio")),
    ("70 % reads, 8 threads", include_str!("job/mix.fio")),
    (
        "Sequential reads, 128 KiB",
        include_str!("job/sequential-read.fio"),
    ),
    (
        "Synchronous writes, one at a time",
        include_str!("job/sync-write.fio"),
    ),
    (
        "A million reads at QD1, for rare latencies",
        include_str!("job/tail.fio"),
    ),
];

/// A drive or pool on the page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LabChoice {
    /// Name in the catalogue or a pool's expression; with `toml`, the name of the file.
    pub drive: String,
    /// TOML text of a drive or pool that is not in the catalogue.
    pub toml: Option<String>,
}

/// Returns the bytes of the page. It begins with these drives and this job file, or with its own first ones, and with
/// these options and values set on the drives.
pub fn html(benches: &[LabChoice], set: &[(&str, String)], job: Option<&str>) -> String {
    let title = "Drives, pools and jobs";
    // Parts and bands, which charts and bars read from a review. Drives are added as the user chooses them.
    let frame = json!({
        "parts": Part::ALL.map(Part::name), "band_edges": BAND_EDGES, "drives": [], "chapters": [],
    });
    let known = json!({
        "drives": catalogue::drive_names(),
        "pools": catalogue::pool_names(),
        "hosts": hosts(),
        "host": catalogue::TYPICAL_HOST,
        "jobs": JOBS,
        "benches": benches,
        "set": set,
        "job": job,
    });
    let body = html! {
        a class="skip" href="#results" { "Skip to the results" }
        header class="masthead" {
            (look::top_line())
            h1 { (title) }
            p class="standfirst" {
                "Simulated, not measured: the model runs inside this page, from the disk and offline. "
                (version::PROGRAM) "."
            }
            noscript { p class="standfirst" { "This needs scripts." } }
        }
        (places())
        (data("review-data", &frame))
        (data("chart-data", &json!({})))
        (data("lab-data", &known))
        @for script in SCRIPTS {
            (look::script(script))
        }
        (engine())
        (look::script(START))
    };
    look::simulating_page("drivelab lab", &[STYLE], &body)
}

/// Returns the placeholders that the scripts fill.
fn places() -> Markup {
    html! {
        main class="lab" {
            section aria-labelledby="drives-title" {
                h2 id="drives-title" { "Drives and pools" }
                p class="about" {
                    "Pools run in full size: one with more than some 1.6 TB of flash needs more memory than a page has, \
                     and the command below runs it."
                }
                div id="benches" {}
            }
            section aria-labelledby="job-title" {
                h2 id="job-title" { "Job" }
                div id="job" {}
            }
            section id="results" aria-labelledby="results-title" {
                h2 id="results-title" { "Results" }
                p id="status" class="about" role="status" {}
                div id="problems" {}
                div id="figures" {}
            }
            section aria-labelledby="keep-title" {
                h2 id="keep-title" { "Keep it" }
                p class="about" {
                    "The address of this page holds drives, job and choices: a link shows the same. The command gives the \
                     same figures."
                }
                div id="keep" {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::fio::{Surroundings, read_text};

    #[test]
    fn the_jobs_of_the_page_are_read_without_a_warning() {
        let surroundings = Surroundings {
            environment: &|_| None,
            read: &|_| panic!("none includes a file"),
            processors: 1,
        };
        for (name, text) in JOBS {
            let set = read_text(name, text, &surroundings).expect(name);
            assert_eq!(
                (set.warnings.len(), set.jobs.is_empty()),
                (0, false),
                "{name}: {:?}",
                set.warnings
            );
        }
    }

    #[test]
    fn nothing_of_a_user_ends_a_script() {
        let trap = LabChoice {
            drive: "</script><b>".into(),
            toml: Some("<!--</script>".into()),
        };
        let set = [("set", "</script>".into())];
        let with = html(&[trap], &set, Some("</script>"));
        let without = html(&[], &[], None);
        assert_eq!(
            with.matches("</script").count(),
            without.matches("</script").count()
        );
    }
}
