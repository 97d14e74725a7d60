//! Writes fitted values into the catalogue's files. Only the value changes; kind, source, note and all else are kept.

use toml_edit::{DocumentMut, Item, Value};

use super::ledger::RefittedFigure;
use super::unit::numbers;
use text::problem::Problems;

/// Returns a file's text with the fitted values of these figures; `origin` names the file in messages.
///
/// # Errors
/// The text is not TOML, or has no such figure.
pub fn rewritten(
    origin: &str,
    text: &str,
    figures: &[&RefittedFigure],
) -> Result<String, Problems> {
    let wrong = |what: String| Problems::whole(origin, what);
    let mut document: DocumentMut = text.parse().map_err(|error| wrong(format!("{error}")))?;
    for figure in figures {
        let key = &figure.spot.key;
        let value = value_at(document.as_item_mut(), key)
            .ok_or_else(|| wrong(format!("no figure `{key}` with a value")))?;
        let decor = value.decor().clone();
        *value = written(value, &figure.fitted);
        *value.decor_mut() = decor;
    }
    Ok(document.to_string())
}

/// Returns the value of the figure with this dotted key.
fn value_at<'a>(mut item: &'a mut Item, key: &str) -> Option<&'a mut Value> {
    for part in key.split('.') {
        item = item.get_mut(part)?;
    }
    item.get_mut("value")?.as_value_mut()
}

/// Returns the text as a value of the same form as the previous one.
fn written(was: &Value, words: &str) -> Value {
    match was {
        Value::Integer(_) => words.parse().map_or_else(|_| words.into(), i64::into),
        Value::Boolean(_) => words.parse().map_or_else(|_| words.into(), bool::into),
        Value::Array(_) if numbers(words).is_some() => words.split(", ").collect(),
        _ => words.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::recipe::CatalogueKey;
    use super::*;

    fn moved(key: &str, fitted: &str) -> RefittedFigure {
        RefittedFigure {
            spot: CatalogueKey {
                file: "catalogue/nand/one.toml".into(),
                key: key.into(),
            },
            catalogue: String::new(),
            fitted: fitted.into(),
            difference: None,
        }
    }

    #[test]
    fn only_values_change() {
        let text = "\
# A drive.
[nand.medium]
read    = { value = \"50 us\", kind = \"fitted\", source = \"S1-007\" } # sense
program = { value = [\"1 ms\", \"3 ms\"], kind = \"fitted\", source = \"S1-033\" }

[nand.suspend]
most = { value = 4, kind = \"fitted\", source = \"S4-155\" }
";
        let figures = [
            moved("nand.medium.read", "47.5 us"),
            moved("nand.medium.program", "1.1 ms, 3.3 ms"),
            moved("nand.suspend.most", "0"),
        ];
        let figures: Vec<&RefittedFigure> = figures.iter().collect();
        let wanted = text
            .replace("50 us", "47.5 us")
            .replace("[\"1 ms\", \"3 ms\"]", "[\"1.1 ms\", \"3.3 ms\"]")
            .replace("value = 4", "value = 0");
        assert_eq!(rewritten("one.toml", text, &figures).unwrap(), wanted);
    }

    #[test]
    fn a_figure_that_is_not_there_is_named() {
        let refused = rewritten("one.toml", "a = 1\n", &[&moved("nand.read", "1 us")]);
        let problems = refused.expect_err("there is none");
        assert!(problems.to_string().contains("nand.read"), "{problems}");
    }
}
