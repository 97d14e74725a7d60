//! Renders problems for readers: each with the invalid line and a mark below it, as compilers do.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::{Place, Problem, Problems};

impl Problems {
    /// Returns the problems as text for a terminal, optionally with colours.
    pub fn render(&self, colours: bool) -> String {
        let renderer = if colours {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let shown: Vec<String> = self
            .0
            .iter()
            .map(|problem| renderer.render(&[group(problem)]))
            .collect();
        shown.join("\n\n")
    }
}

fn group(problem: &Problem) -> Group<'_> {
    let title = Level::ERROR.primary_title(problem.what.as_str());
    let mut group = match &problem.place {
        Place::Whole | Place::Program => title.element(Origin::path(problem.origin.as_str())),
        Place::Line(line) => title.element(Origin::path(problem.origin.as_str()).line(*line)),
        Place::Byte(offset) => {
            title.element(Origin::path(format!("{}: byte {offset}", problem.origin)))
        }
        Place::Text { text, range } => title.element(
            Snippet::source(&**text)
                .path(problem.origin.as_str())
                .annotation(AnnotationKind::Primary.span(clamp_range(text, range.clone()))),
        ),
    };
    if let Some(help) = &problem.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    group
}

/// Cuts the range to the text and extends it to whole characters.
fn clamp_range(text: &str, range: std::ops::Range<usize>) -> std::ops::Range<usize> {
    let start = text.floor_char_boundary(range.start.min(text.len()));
    let end = text.ceil_char_boundary(range.end.clamp(start, text.len()));
    start..end
}
