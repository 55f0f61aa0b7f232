//! "Did you mean …?": the candidate that a typing mistake or two away from what was written.

/// The nearest candidate, if it is near enough to be what was meant.
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (text.chars().count() / 3).clamp(1, 3);
    let near = candidates.into_iter().map(|candidate| (distance(text, candidate), candidate));
    near.filter(|(distance, _)| *distance <= allowed).min_by_key(|(distance, _)| *distance).map(|(_, near)| near)
}

/// Levenshtein's distance.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_mistakes_are_near_and_other_words_are_not() {
        let words = ["order-41931", "order-41932", "restart-db"];
        assert_eq!(nearest("order-4193", words), Some("order-41931"));
        assert_eq!(nearest("restrat-db", words), Some("restart-db"));
        assert_eq!(nearest("x", words), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
