//! Lists as text.

/// Joins names: `A, B and C`.
pub fn listed<S: AsRef<str>>(names: &[S]) -> String {
    let joined = |names: &[S]| names.iter().map(S::as_ref).collect::<Vec<_>>().join(", ");
    match names {
        [front @ .., last] if !front.is_empty() => {
            format!("{} and {}", joined(front), last.as_ref())
        }
        _ => joined(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_a_list_stands_after_and() {
        let none: [&str; 0] = [];
        assert_eq!(listed(&none), "");
        assert_eq!(listed(&["A"]), "A");
        assert_eq!(listed(&["A", "B", "C"]), "A, B and C");
    }
}
