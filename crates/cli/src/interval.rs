//! The interval of a run over time, as an argument.

use model::Span;
use text::quantity::quantity;

/// Parses an interval; a steady-state criterion uses whole seconds.
pub(crate) fn part_of_a_second(text: &str) -> Result<Span, String> {
    const SECOND: u64 = 1_000_000_000;
    let span = quantity::<Span>(text)?;
    match span >= Span::from_us(100) && SECOND.is_multiple_of(span.ns()) {
        true => Ok(span),
        false => Err(String::from(
            "must divide one second evenly and be at least 100us, such as 500ms, 100ms or 10ms",
        )),
    }
}
