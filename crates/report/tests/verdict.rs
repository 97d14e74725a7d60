//! Verdicts of a review, on formula drives.

mod sample;

use study::review::summary;

#[test]
fn the_verdict_in_words() {
    let review = sample::paper_review();
    let sentences: Vec<&str> = review
        .verdict
        .iter()
        .map(|finding| finding.text.as_str())
        .collect();
    insta::assert_snapshot!(sentences.join("\n"));
}

#[test]
fn the_table_on_the_terminal() {
    insta::assert_snapshot!(summary::table(sample::paper_review(), None));
}
