//! An answer as all interfaces show it: sentences, table, method, JSON, CSV and page. The command line and Python select
//! among them and word nothing of their own. Left out: verdicts, which are exit codes on the command line and values in
//! Python.

use serde_json::Value;
use study::decide::check::{Check, CheckAnswer};
use study::decide::choose::{ChooseAnswer, ChooseRequest, Measure};
use study::decide::explain::answer::{ExplainAnswer, ExplainRequest};
use study::decide::fill::{FillAnswer, FillRequest};
use study::decide::fleet::FleetAnswer;
use study::decide::life::LifeAnswer;
use study::decide::likeness::Replacements;
use study::decide::max::{MaxAnswer, MaxRequest};
use study::decide::mix::{MixAnswer, MixRequest};
use study::decide::odds::{OddsAnswer, OddsRequest};
use study::decide::size::{SizeAnswer, SizeRequest};
use study::decide::work::Conditions;
use text::terminal::Width;

use super::other_pages;
use super::page::{self, PageText};
use super::table::{self, AnswerTable};
use crate::csv::{self, Table};

/// Describes the method, ending with a command, at a width.
type MethodText<'a> = Box<dyn Fn(&str, Width) -> String + 'a>;

/// Makes the page around its text.
type PageMaker<'a> = Box<dyn Fn(&PageText) -> String + 'a>;

/// Usual width where there is no terminal.
const COLUMNS: Width = Some(80);

/// An answer that each interface can show.
pub struct AnswerView<'a> {
    /// The question, as the title of the page.
    pub title: String,
    /// The answer in sentences.
    pub sentences: Vec<String>,
    /// The table of `--csv`.
    pub csv: Table,
    tables: Vec<AnswerTable>,
    /// Width of tables and method if no other is given; a page has none.
    usual: Width,
    method: MethodText<'a>,
    json: Box<dyn Fn(&str) -> Value + 'a>,
    page: PageMaker<'a>,
}

impl<'a> AnswerView<'a> {
    fn new(
        title: impl Into<String>,
        sentences: Vec<String>,
        csv: Table,
        tables: Vec<AnswerTable>,
        method: impl Fn(&str, Width) -> String + 'a,
        json: impl Fn(&str) -> Value + 'a,
    ) -> AnswerView<'a> {
        AnswerView {
            title: title.into(),
            sentences,
            csv,
            tables,
            usual: None,
            method: Box::new(method),
            json: Box::new(json),
            page: Box::new(|words| page::page(words, &[])),
        }
    }

    fn with_page(self, page: impl Fn(&PageText) -> String + 'a) -> AnswerView<'a> {
        AnswerView {
            page: Box::new(page),
            ..self
        }
    }

    fn with_usual_width(self, usual: Width) -> AnswerView<'a> {
        AnswerView { usual, ..self }
    }

    /// Returns the tables as text.
    pub fn table(&self, width: Width) -> String {
        table::text_of(&self.tables, width.or(self.usual))
    }

    /// Returns the description of the method, which ends with `command`.
    pub fn method(&self, command: &str, width: Width) -> String {
        (self.method)(command, width.or(self.usual))
    }

    /// Returns the answer as JSON.
    pub fn json(&self, command: &str) -> Value {
        (self.json)(command)
    }

    /// Returns sentences, table and method as one text of unlimited width.
    pub fn text(&self, command: &str) -> String {
        let (table, method) = (self.table(None), self.method(command, None));
        format!("{}\n\n{table}\n\n{method}", self.sentences.join("\n"))
    }

    /// Returns the page.
    pub fn page(&self, command: &str) -> String {
        (self.page)(&PageText {
            title: self.title.clone(),
            answers: self.sentences.clone(),
            tables: self.tables.clone(),
            method: (self.method)(command, None),
        })
    }
}

/// Returns the view of `max`.
pub fn max<'a>(request: &'a MaxRequest, answers: &'a [MaxAnswer]) -> AnswerView<'a> {
    AnswerView::new(
        format!("The highest load within {}", request.slo.text()),
        super::max::sentences(request, answers),
        csv::decide::max(answers),
        super::max::tables(request, answers),
        |command, width| super::max::method(request, answers, command, width),
        |command| super::max::json(request, answers, command),
    )
    .with_page(|words| page::max(&request.slo, answers, words))
}

/// Returns the view of `mix`.
pub fn mix<'a>(request: &'a MixRequest, answers: &'a [MixAnswer]) -> AnswerView<'a> {
    AnswerView::new(
        format!("Mixes of reads and writes, {} in flight", request.depth),
        answers.iter().flat_map(super::mix::answer).collect(),
        csv::decide::mix(answers),
        super::mix::tables(answers),
        |command, width| super::mix::method(request, answers, command, width),
        |command| super::mix::json(request, answers, command),
    )
    .with_page(|words| page::mix(answers, words))
}

/// Returns the view of `fill`.
pub fn fill<'a>(request: &'a FillRequest, answers: &'a [FillAnswer]) -> AnswerView<'a> {
    AnswerView::new(
        "How long writes stay fast",
        answers.iter().flat_map(super::fill::answer).collect(),
        csv::decide::fill(answers),
        super::fill::tables(answers),
        |command, width| super::fill::method(request, answers, command, width),
        |command| super::fill::json(request, answers, command),
    )
    .with_page(|words| page::fill(answers, words))
}

/// Returns the view of `odds`; without a width, tables and method have [`COLUMNS`].
pub fn odds<'a>(request: &'a OddsRequest, answers: &'a [OddsAnswer]) -> AnswerView<'a> {
    AnswerView::new(
        "Odds of data loss",
        answers
            .iter()
            .flat_map(super::odds::answer)
            .chain(super::odds::comparison(answers))
            .collect(),
        csv::decide::odds(answers),
        super::odds::tables(answers),
        |command, width| super::odds::method(request, answers, command, width),
        |command| super::odds::json(request, answers, command),
    )
    .with_page(|words| other_pages::odds(answers, words))
    .with_usual_width(COLUMNS)
}

/// Returns the view of `explain`.
pub fn explain<'a>(
    request: Option<&'a ExplainRequest>,
    answers: &'a [ExplainAnswer],
) -> AnswerView<'a> {
    AnswerView::new(
        "Bottleneck of the run",
        super::explain::sentences(answers),
        csv::decide::explain(answers),
        super::explain::tables(answers),
        move |command, width| super::explain::method(answers, request, command, width),
        move |command| super::explain::json(answers, request, command),
    )
    .with_page(|words| page::explain(answers, words))
}

/// Returns the view of `life`.
pub fn life<'a>(answers: &'a [LifeAnswer], conditions: &'a Conditions) -> AnswerView<'a> {
    AnswerView::new(
        "How long they last",
        super::life::sentences(answers),
        csv::decide::life(answers),
        super::life::tables(answers),
        |command, width| super::life::method(answers, conditions, command, width),
        |command| super::life::json(answers, conditions, command),
    )
    .with_page(|words| page::life(answers, words))
}

/// Returns the view of `life --smart`.
pub fn fleet(answer: &FleetAnswer) -> AnswerView<'_> {
    AnswerView::new(
        "How long they last",
        vec![super::fleet::answer(answer)],
        csv::fleet(answer),
        super::fleet::tables(answer),
        |command, width| super::fleet::method(answer, command, width),
        |command| super::fleet::json(answer, command),
    )
    .with_page(|words| other_pages::fleet(answer, words))
}

/// Returns the view of `choose`; `like` has the possible replacements of a drive, and then the sentences are on them.
pub fn choose<'a>(
    request: &'a ChooseRequest,
    answer: &'a ChooseAnswer,
    like: Option<&'a Replacements>,
    by: Measure,
) -> AnswerView<'a> {
    AnswerView::new(
        match like {
            Some(like) => format!("What replaces {}", like.drive),
            None => format!("Which drive for {}", request.facts().source),
        },
        match like {
            Some(like) => super::choose::replacement(request, answer, like),
            None => super::choose::answer(request, answer, by),
        },
        csv::decide::choose(answer),
        super::choose::tables(request, answer, like),
        |command, width| super::choose::method(request, answer, command, width),
        move |command| super::choose::json(request, answer, like, command),
    )
    .with_page(|words| page::choose(&request.slo, answer, words))
}

/// Returns the view of `check`.
pub fn check<'a>(
    check: &'a Check,
    conditions: &'a Conditions,
    answers: &'a [CheckAnswer],
) -> AnswerView<'a> {
    AnswerView::new(
        super::check::title(check),
        super::check::sentences(check, answers),
        csv::decide::check(answers),
        super::check::tables(check, answers),
        |command, width| super::check::method(check, conditions, answers, command, width),
        |command| super::check::json(check, conditions, answers, command),
    )
    .with_page(|words| other_pages::check(check, answers, words))
}

/// Returns the view of `size`.
pub fn size<'a>(request: &'a SizeRequest, answers: &'a [SizeAnswer]) -> AnswerView<'a> {
    AnswerView::new(
        "Sizes",
        super::size::sentences(request, answers),
        csv::decide::size(answers),
        super::size::tables(answers),
        |command, width| super::size::method(request, answers, command, width),
        |command| super::size::json(request, answers, command),
    )
    .with_page(|words| other_pages::size(request, answers, words))
}
