//! The page as a file.

mod sample;

use report::page;

#[test]
fn the_page_of_three_drives_is_one_small_file() {
    let review = sample::paper_review();
    let html = page::html(review);
    if let Some(path) = std::env::var_os("DRIVELAB_SAMPLE_PAGE") {
        let path = std::path::PathBuf::from(path);
        std::fs::write(&path, &html).unwrap();
        std::fs::write(path.with_extension("json"), review.to_json()).unwrap();
    }
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
}
