//! The smallest set that still fails: delta debugging (Zeller and Hildebrandt, 2002).

/// Returns a subset that fails and from which nothing can be removed, according to `fails`. `items` fails; the empty
/// set is tried first.
pub fn smallest<T: Clone>(items: &[T], mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    if items.is_empty() || fails(&[]) {
        return Vec::new();
    }
    let mut best = items.to_vec();
    let mut parts = 2;
    while best.len() > 1 {
        let size = best.len().div_ceil(parts);
        let chunks: Vec<Vec<T>> = best.chunks(size).map(<[T]>::to_vec).collect();
        let without = |index: usize| {
            let rest = { chunks.iter().enumerate() }.filter(|(it, _)| *it != index);
            rest.flat_map(|(_, chunk)| chunk.clone())
                .collect::<Vec<T>>()
        };
        let one = chunks.iter().find(|chunk| fails(chunk));
        if let Some(one) = one.filter(|one| one.len() < best.len()) {
            best = one.clone();
            parts = 2;
            continue;
        }
        // With two chunks, each is the rest of the other.
        let rest = match chunks.len() {
            0..=2 => None,
            count => (0..count).map(without).find(|rest| fails(rest)),
        };
        match rest {
            Some(rest) => {
                best = rest;
                parts = (parts - 1).max(2);
            }
            None if size == 1 => break,
            None => parts = (2 * parts).min(best.len()),
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_left_and_nothing_else() {
        let all: Vec<u32> = (0..100).collect();
        let mut calls = 0;
        let needed = [3, 47, 48, 99];
        let found = smallest(&all, |some| {
            calls += 1;
            needed.iter().all(|it| some.contains(it))
        });
        assert_eq!(found, needed);
        assert!(calls < 200, "{calls}");
        assert_eq!(smallest(&all, |_| true), [0; 0]);
        assert_eq!(smallest(&all, |some| some.contains(&7)), [7]);
        assert_eq!(smallest(&all, |some| some.len() == 100), all);
    }
}
