//! The indefinite article, for messages that name a thing by a variable.

/// The noun with its article: `an approval`, `a user`.
pub fn with_article(noun: &str) -> String {
    // By sound, as far as our own words go: a user, a unit, but an unsafe step.
    let vowel = noun.starts_with(['a', 'e', 'i', 'o']) || noun.starts_with("un") && !noun.starts_with("uni");
    format!("{} {noun}", if vowel { "an" } else { "a" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::StepKind;

    #[test]
    fn articles_follow_the_sound() {
        let all: Vec<String> = StepKind::ALL.iter().map(|kind| with_article(kind.as_str())).collect();
        assert!(all.contains(&"an approval".to_owned()) && all.contains(&"a task".to_owned()), "{all:?}");
        for (noun, right) in
            [("user", "a user"), ("unsafe step", "an unsafe step"), ("outbox message", "an outbox message")]
        {
            assert_eq!(with_article(noun), right);
        }
    }
}
