//! The CSV tables, read back by a CSV reader: a line for each drive, point and direction, with the figures of the
//! JSON.

mod sample;

use std::collections::BTreeMap;

use report::csv::review;

type Line = BTreeMap<String, String>;

fn lines(text: &str) -> Vec<Line> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let lines = reader.deserialize().collect::<Result<Vec<Line>, _>>();
    lines.expect("every line has the header's columns")
}

fn number(line: &Line, column: &str) -> Option<f64> {
    let cell = &line[column];
    (!cell.is_empty()).then(|| {
        cell.parse()
            .unwrap_or_else(|_| panic!("{column} is {cell}"))
    })
}

#[test]
fn a_review_has_a_line_for_each_drive_point_and_direction() {
    let found = sample::paper_review();
    let mut lines = lines(&review(found)).into_iter();
    for chapter in &found.chapters {
        for point in &chapter.points {
            for (drive, result) in found.drives.iter().zip(&point.results) {
                let Some(result) = result else { continue };
                let both = [("read", &result.read), ("write", &result.write)];
                for (direction, figures) in both {
                    let Some(figures) = figures else { continue };
                    let line = lines.next().expect("a line");
                    assert_eq!(line["drive"], drive.id);
                    assert_eq!(line["chapter"], chapter.id);
                    assert_eq!(line["point"], point.name);
                    assert_eq!(line["direction"], direction);
                    assert_eq!(number(&line, "iops"), Some(figures.iops));
                    assert_eq!(number(&line, "mb_s"), Some(figures.mb_s));
                    let latency = &figures.latency;
                    assert_eq!(number(&line, "mean_us"), Some(latency.mean_us));
                    assert_eq!(number(&line, "p99_us"), latency.p99_us);
                    assert_eq!(number(&line, "p99_999_us"), latency.p99_999_us);
                    assert_eq!(number(&line, "watts"), result.watts);
                    let depth = number(&line, "queue_depth");
                    assert_eq!(depth, point.settings.queue_depth.map(f64::from));
                }
            }
        }
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn a_percentile_lies_between_the_ends_of_its_interval() {
    let found = sample::paper_review();
    let mut judged = 0;
    for line in lines(&review(found)) {
        for name in ["p50", "p99", "p99_9", "p99_99", "p99_999"] {
            let of = |end: &str| number(&line, &format!("{name}{end}_us"));
            let Some(value) = of("") else {
                assert_eq!((of("_low"), of("_high")), (None, None));
                continue;
            };
            let (low, high) = (of("_low").unwrap(), of("_high").unwrap());
            assert!(low <= value && value <= high, "{low} {value} {high}");
            judged += usize::from(low < value && value < high);
        }
    }
    assert!(judged > 100, "{judged}");
}

#[test]
fn mixes_say_how_much_of_them_is_reads() {
    let found = sample::paper_review();
    for line in lines(&review(found)) {
        let percent = number(&line, "read_percent");
        match &*line["chapter"] {
            "mix" => assert!(percent.is_some(), "{line:?}"),
            "queue-depth" => assert_eq!(percent == Some(100.0), line["direction"] == "read"),
            _ => {}
        }
    }
}
