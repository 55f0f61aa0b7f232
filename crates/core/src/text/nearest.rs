//! The name that was probably meant.

use std::collections::BTreeSet;

/// The nearest of the known names, if it is near enough to be worth a guess.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = given.to_ascii_lowercase().replace('-', "_");
    let far = 1 + given.chars().count() / 3;
    known
        .into_iter()
        .map(|name| (distance(&folded, &name.to_ascii_lowercase().replace('-', "_")), name))
        .filter(|(distance, _)| *distance <= far)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// "did you mean `x`?", or the list of what there is.
pub fn hint<'a>(given: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(name) = nearest(given, known.clone()) {
        return format!("did you mean `{name}`?");
    }
    let mut told = BTreeSet::new();
    let names: Vec<_> = known.into_iter().filter(|name| told.insert(*name)).map(|name| format!("`{name}`")).collect();
    match names.len() {
        0 => "there are none to choose from".to_owned(),
        1..=40 => format!("there are {}", names.join(", ")),
        more => format!("there are {}, and {} more", names[..40].join(", "), more - 40),
    }
}

/// Insertions, removals, replacements and swaps of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_guessed_and_far_ones_are_not() {
        let known = ["timeout", "retry", "on_failure", "blast_radius"];
        assert_eq!(nearest("timeot", known), Some("timeout"));
        assert_eq!(nearest("tiemout", known), Some("timeout"));
        assert_eq!(nearest("on-failure", known), Some("on_failure"));
        assert_eq!(nearest("blastRadius", known), Some("blast_radius"));
        assert_eq!(nearest("colour", known), None);
        assert!(hint("colour", known).contains("`retry`"));
        assert_eq!(hint("nosuch", ["w2", "w1", "w2"]), "there are `w2`, `w1`", "several may have one name");
        assert_eq!(nearest("order-4193", ["order-41931", "order-41932", "restart-db"]), Some("order-41931"));
    }
}
