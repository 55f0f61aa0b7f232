//! How long a module would take to read. The parser goes over what stands in brackets once for each way to understand them,
//! so that each level of nesting multiplies the work; it cannot be stopped, and so is not begun.

use crate::limits;

/// How many ways there are to understand a bracket: list, set or object, and each as a comprehension.
const WAYS: u64 = 3;

/// What it takes to read a text: each character, as often as it is gone over.
pub(crate) fn reading_cost(text: &str) -> u64 {
    let (mut depth, mut cost) = (0_u32, 0_u64);
    let mut quoted_by = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (quoted_by, c) {
            (Some('"'), '\\') => _ = characters.next(),
            (Some('#'), '\n') => quoted_by = None,
            (Some(quote), c) if quote == c && quote != '#' => quoted_by = None,
            (None, '"' | '`' | '#') => quoted_by = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        cost = cost.saturating_add(WAYS.saturating_pow(depth.min(40)));
        if cost > limits::READING_COST_MAX {
            return cost;
        }
    }
    cost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_multiplies() {
        assert_eq!(reading_cost("abc"), 3);
        assert!(reading_cost("[[[[a]]]]") > 3 * reading_cost("[[a]]"));
        assert!(reading_cost(&"[".repeat(60)) > limits::READING_COST_MAX);
    }

    #[test]
    fn texts_and_comments_nest_nothing() {
        assert_eq!(reading_cost("\"[[[\\\"[[\""), 9 - 1);
        assert_eq!(reading_cost("`[[[`"), 5);
        assert_eq!(reading_cost("# [[[\n"), 7 - 1);
    }
}
