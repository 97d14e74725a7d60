//! The page of a review: one HTML file that needs nothing else.
//!
//! Words, facts and jobs are written here, escaped, so that they are there without scripts; charts and their tables
//! are drawn by the scripts beside this file from the review's JSON, which is embedded with every `<` escaped. The
//! page loads nothing: its content security policy forbids it.

mod facts;
pub(crate) mod look;
pub(crate) mod markup;

use markup::json_in_script;
use study::review::Review;

const STYLES: [&str; 2] = [
    include_str!("vendor/uplot/uPlot.min.css"),
    include_str!("style/page.css"),
];

/// In the order in which they need each other.
const SCRIPTS: [&str; 18] = [
    include_str!("vendor/uplot/uPlot.iife.min.js"),
    include_str!("script/format.js"),
    include_str!("script/data.js"),
    include_str!("script/theme.js"),
    include_str!("script/controls.js"),
    include_str!("script/address.js"),
    include_str!("script/marks.js"),
    include_str!("script/shown.js"),
    include_str!("script/axes.js"),
    include_str!("script/tip.js"),
    include_str!("script/zoom.js"),
    include_str!("script/limit.js"),
    include_str!("script/plot.js"),
    include_str!("script/table.js"),
    include_str!("script/published.js"),
    include_str!("script/anatomy.js"),
    include_str!("script/lead.js"),
    include_str!("script/charts.js"),
];

/// Run last: puts the charts into the page.
const START: &str = include_str!("script/start.js");

/// Run first, before anything is painted: a chosen theme must not flash.
const EARLY: &str = include_str!("script/early.js");

/// A chapter of the page: the ids of the charts in it and the words above them.
struct Section {
    id: &'static str,
    title: &'static str,
    about: &'static str,
    charts: &'static [(&'static str, &'static str)],
}

const SECTIONS: [Section; 12] = [
    Section {
        id: "block-size",
        title: "One at a time",
        about: "One I/O in flight, from 512 bytes to 1 MiB. This is how a program that waits for each answer meets a \
                drive. The 512 B-aligned setting shows the cost of misaligned I/O.",
        charts: &[("block-size", "Block sizes at queue depth 1")],
    },
    Section {
        id: "queue-depth",
        title: "Many at a time",
        about: "4 KiB random I/O at 29 queue depths, spread over up to four threads. Past the depth at which a drive \
                saturates, more depth buys waiting and nothing else.",
        charts: &[
            ("queue-depth", "4 KiB random I/O by queue depth"),
            ("costs", "What it costs"),
        ],
    },
    Section {
        id: "latency",
        title: "To five nines",
        about: "A mean hides what users notice. Each further nine on this axis is ten times rarer; below it, every \
                band of percentiles is taken apart into what its I/Os spent their time on. No real drive can tell \
                you that; a model can.",
        charts: &[
            ("distribution", "Latency by percentile"),
            ("anatomy", "What the slowest waited for"),
        ],
    },
    Section {
        id: "one-thread",
        title: "Many from one thread",
        about: "4 KiB random I/O from one thread, which has one core: with fast drives that core is the limit.",
        charts: &[("one-thread", "4 KiB random I/O from one thread")],
    },
    Section {
        id: "sequential",
        title: "Large and in order",
        about: "128 KiB sequential I/O from one thread: copies, scans, backups, logs. The drives were overwritten at \
                random before, as in the chapters above, so what lies in order for the host is scattered over a flash \
                drive.",
        charts: &[(
            "sequential",
            "128 KiB sequential I/O by queue depth, overwritten at random before",
        )],
    },
    Section {
        id: "sequential-filled",
        title: "Large and in order, filled in order",
        about: "The same on drives that were filled in order, which is what data sheets mean by sequential.",
        charts: &[(
            "sequential-filled",
            "128 KiB sequential I/O by queue depth, filled in order before",
        )],
    },
    Section {
        id: "mix",
        title: "Reads among writes",
        about: "4 KiB random I/O from 16 threads, each with one in flight, from writes only to reads only. On flash, \
                reads wait behind programs and erases.",
        charts: &[("mix", "Mixes of reads and writes")],
    },
    Section {
        id: "paced",
        title: "At a fixed pace",
        about: "Applications rarely run flat out. Here 4 KiB I/Os arrive at random moments at a fixed mean rate, and \
                latency is what they meet. A rate at which a drive falls behind is not shown.",
        charts: &[("paced", "Latency against the rate of arrival")],
    },
    Section {
        id: "sustained",
        title: "Writing without end",
        about: "4 KiB random writes from fresh, 32 in flight. A flash drive starts fast and falls off a cliff when \
                its spare area is used up and it must collect garbage for every write.",
        charts: &[("sustained", "Random writes from fresh until steady")],
    },
    Section {
        id: "virten",
        title: "Eight tests in a virtual machine",
        about: "Large sequential writes and reads, random writes and reads at three depths, and latency at a fixed \
                pace, each as long as in the article that they are from. Its test 1 is dd through the page cache. \
                Writes begin on a new drive. Latency begins before the submission, which that article's fio leaves out: 8 µs in its guest.",
        charts: &[],
    },
    Section {
        id: "perftest",
        title: "nvmecontrol perftest",
        about: "32 threads in FreeBSD's kernel, each with one command in flight, always at the same place. No file \
                system, no system calls: what drive and driver can do.",
        charts: &[],
    },
    Section {
        id: "yours",
        title: "Your workloads",
        about: "The job files and traces given with the review, on drives in steady state. Their latency \
                distribution and anatomy are among the workloads of the charts under \u{201c}To five nines\u{201d}.",
        charts: &[],
    },
];

/// The bytes of `review.html`.
pub fn html(review: &Review) -> String {
    let title = facts::title(review);
    let mut page = look::head(&title, &[]);
    let shown = sections(review);
    page.push_str(&facts::header(review, &title, lead(review)));
    page.push_str(&contents(review, &shown));
    page.push_str("<noscript><p class=\"standfirst noscript\">Charts need scripts; words, facts and jobs do not.</p></noscript>\n");
    page.push_str(&body(review, shown));
    page.push_str(&format!(
        "<script type=\"application/json\" id=\"review-data\">{}</script>\n",
        json_in_script(&page_json(review))
    ));
    for script in SCRIPTS {
        page.push_str(&format!("<script>{script}</script>\n"));
    }
    page.push_str(&format!("<script>{START}</script>\n</body>\n</html>\n"));
    page
}

/// The review without its jobs, which are in the page as text, as are the drives' figures.
fn page_json(review: &Review) -> serde_json::Value {
    let mut value = serde_json::to_value(review).expect("a review has no maps with odd keys");
    for drive in value["drives"].as_array_mut().into_iter().flatten() {
        drive["figures"] = serde_json::Value::Null;
    }
    let chapters = value["chapters"].as_array_mut();
    let points = chapters
        .into_iter()
        .flatten()
        .filter_map(|chapter| chapter["points"].as_array_mut())
        .flatten();
    for point in points {
        for result in point["results"].as_array_mut().into_iter().flatten() {
            if let Some(fields) = result.as_object_mut() {
                fields.remove("job");
            }
        }
    }
    value
}

/// The chapters that this review has.
fn sections(review: &Review) -> Vec<&'static Section> {
    let has = |section: &&Section| match section.id {
        "latency" => review.chapter("queue-depth").is_some(),
        id => review.chapter(id).is_some(),
    };
    SECTIONS.iter().filter(has).collect()
}

/// The chart of the first screen, of a review that has its points.
fn lead(review: &Review) -> &'static str {
    match review.chapter("queue-depth") {
        Some(_) => {
            "<figure data-chart=\"lead\" class=\"lead\"><figcaption>What each drive does at the latency you can accept</figcaption></figure>\n"
        }
        None => "",
    }
}

/// Links to the chapters, which stay in view; scripts put the choice of drives beside them.
fn contents(review: &Review, shown: &[&Section]) -> String {
    let mut page = String::from("<nav class=\"contents\" aria-label=\"Contents\"><ol>");
    let chapters = shown.iter().map(|section| (section.id, section.title));
    let verdict = (!review.verdict.is_empty()).then_some(("verdict", "Verdict"));
    let last = [("drives", "The drives"), ("method", "Method")];
    for (id, title) in verdict.into_iter().chain(chapters).chain(last) {
        page.push_str(&format!("<li><a href=\"#{id}\">{title}</a></li>"));
    }
    page.push_str("</ol><div class=\"drives\" role=\"group\" aria-label=\"Drives in the charts\"></div></nav>\n");
    page
}

fn body(review: &Review, shown: Vec<&Section>) -> String {
    let mut page = String::from("<main id=\"review\">\n");
    page.push_str(&facts::cards(review));
    page.push_str(&facts::verdict(review, |id| {
        let section = SECTIONS.iter().find(|section| section.id == id);
        let other = if id == "method" {
            "Method"
        } else {
            "The drives"
        };
        section.map_or(other, |section| section.title)
    }));
    for section in shown {
        page.push_str(&format!(
            "<section id=\"{}\" class=\"chapter\">\n<h2>{}</h2>\n<p class=\"about\">{}</p>\n",
            section.id, section.title, section.about
        ));
        if section.charts.is_empty() {
            page.push_str(&facts::workloads(review, section.id, section.title));
        }
        for (chart, caption) in section.charts {
            page.push_str(&format!(
                "<figure data-chart=\"{chart}\"><figcaption>{caption}</figcaption></figure>\n"
            ));
        }
        page.push_str("</section>\n");
    }
    page.push_str(&facts::drives(review));
    page.push_str(&facts::method(review));
    page.push_str("</main>\n");
    page
}
