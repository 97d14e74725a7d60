//! What all pages share: head, style sheet, the choice of theme.

use super::markup::escape;
use super::{EARLY, STYLES};

const THEME: &str = include_str!("script/theme.js");

/// From the doctype to `<body>`, with further style sheets. The page may load nothing: its policy forbids it.
pub(crate) fn head(title: &str, styles: &[&str]) -> String {
    let mut page = String::with_capacity(1 << 18);
    page.push_str("<!doctype html>\n<html lang=\"en\" data-theme=\"auto\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    page.push_str(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; \
         style-src 'unsafe-inline'; img-src data: blob:\">\n",
    );
    page.push_str(&format!("<title>{}</title>\n", escape(title)));
    for style in STYLES.iter().chain(styles) {
        page.push_str(&format!("<style>{style}</style>\n"));
    }
    page.push_str(&format!("<script>{EARLY}</script>\n</head>\n<body>\n"));
    page
}

/// The brand and the choice of theme.
pub(crate) fn top_line() -> String {
    let mut page = String::from(
        "<div class=\"topline\"><span class=\"brand\">drivelab</span><fieldset class=\"choice theme\"><legend>Theme</legend><div class=\"segments\">",
    );
    for (value, text) in [("auto", "Auto"), ("light", "Light"), ("dark", "Dark")] {
        page.push_str(&format!(
            "<input type=\"radio\" name=\"theme\" id=\"theme-{value}\" value=\"{value}\"><label for=\"theme-{value}\">{text}</label>"
        ));
    }
    page.push_str("</div></fieldset></div>\n");
    page
}

/// For a page without other scripts: what makes the choice of theme work.
pub(crate) fn scripts_of_theme() -> String {
    format!(
        "<script>{THEME}\ntheme.start(); addEventListener(\"beforeprint\", theme.beginPrint); \
         addEventListener(\"afterprint\", theme.endPrint);</script>\n"
    )
}
