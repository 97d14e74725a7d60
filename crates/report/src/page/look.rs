//! Parts that all pages share: head, style sheet, choice of theme.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{EARLY, STYLES};

const THEME: &str = include_str!("script/theme.js");

/// Security policy: the page may load nothing.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:";

/// Security policy of a page that may run its own WebAssembly in its own workers.
const POLICY_OF_SIMULATION: &str = "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval'; worker-src blob:; style-src 'unsafe-inline'; img-src data: blob:";

/// Returns a whole page, with additional style sheets; the body contains its scripts.
pub(crate) fn page(title: &str, styles: &[&str], body: &Markup) -> String {
    html_page(POLICY, title, styles, body)
}

/// Returns a whole page that simulates.
pub(super) fn simulating_page(title: &str, styles: &[&str], body: &Markup) -> String {
    html_page(POLICY_OF_SIMULATION, title, styles, body)
}

fn html_page(policy: &str, title: &str, styles: &[&str], body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" data-theme="auto" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy);
                title { (title) }
                @for style in STYLES.iter().chain(styles) {
                    style { (PreEscaped(style)) }
                }
                (script(EARLY))
            }
            body { (body) }
        }
    };
    let mut text = page.into_string();
    text.push('\n');
    text
}

/// Returns an embedded script.
pub(crate) fn script(text: &str) -> Markup {
    html! { script { (PreEscaped(text)) } }
}

/// Returns the brand and the choice of theme.
pub(crate) fn top_line() -> Markup {
    html! {
        div class="topline" {
            span class="brand" { "drivelab" }
            fieldset class="choice theme" {
                legend { "Theme" }
                div class="segments" {
                    @for (value, text) in [("auto", "Auto"), ("light", "Light"), ("dark", "Dark")] {
                        input type="radio" name="theme" id={ "theme-" (value) } value=(value);
                        label for={ "theme-" (value) } { (text) }
                    }
                }
            }
        }
    }
}

/// Returns the scripts for the choice of theme, for a page without other scripts.
pub(crate) fn scripts_of_theme() -> Markup {
    script(&format!(
        "{THEME}\ntheme.start(); addEventListener(\"beforeprint\", theme.beginPrint); \
         addEventListener(\"afterprint\", theme.endPrint);"
    ))
}
