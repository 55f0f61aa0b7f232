//! How long a module would take to read. The parser goes over what stands in brackets once for each way to understand them,
//! so that each level of nesting multiplies the work; it cannot be stopped, and so is not begun.

use crate::limits;

/// How many ways there are to understand a bracket: list, set or object, and each as a comprehension.
const WAYS: u64 = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Rule,
    Text,
    Comment,
}

/// The characters of a text, each with what it is part of. The end of a comment ends a line of the rules.
fn characters(text: &str) -> impl Iterator<Item = (char, Part)> {
    let mut quoted_by = None;
    let mut characters = text.chars();
    std::iter::from_fn(move || {
        let c = characters.next()?;
        let part = match (quoted_by, c) {
            (None, '#') | (Some('#'), _) if c != '\n' => Part::Comment,
            (None, '"' | '`') | (Some('"' | '`'), _) => Part::Text,
            _ => Part::Rule,
        };
        match (quoted_by, c) {
            (Some('"'), '\\') => _ = characters.next(),
            (Some('#'), '\n') => quoted_by = None,
            (Some(quote), c) if quote == c && quote != '#' => quoted_by = None,
            (None, '"' | '`' | '#') => quoted_by = Some(c),
            _ => {}
        }
        Some((c, part))
    })
}

/// The operators of the longest expression. A chain of them becomes a tree as deep as it is long, and whatever goes over that
/// calls itself.
pub(crate) fn longest_chain(text: &str) -> usize {
    const OPERATORS: [char; 7] = ['+', '-', '*', '/', '%', '|', '&'];
    let mut longest = 0;
    // One count for each bracket that is open: what stands in one is an expression of its own, and part of the one around it.
    let mut chains = vec![0_usize];
    let (mut after_operator, mut line_ended) = (false, false);
    for (c, part) in characters(text).filter(|(_, part)| *part != Part::Comment) {
        let is_rule = part == Part::Rule;
        let is_operator = is_rule && OPERATORS.contains(&c);
        match c {
            '(' | '[' | '{' if is_rule => chains.push(0),
            ')' | ']' | '}' if is_rule && chains.len() > 1 => _ = chains.pop(),
            _ => {}
        }
        let is_blank = is_rule && c.is_whitespace();
        let Some(chain) = chains.last_mut() else { continue };
        // A bracket that closes on a line of its own ends nothing of what stands around it.
        let closes = is_rule && matches!(c, ')' | ']' | '}');
        let begins = line_ended && !is_blank && !is_operator && !after_operator && !closes;
        if begins || is_rule && matches!(c, ',' | ';') {
            *chain = 0;
        }
        *chain += usize::from(is_operator);
        longest = longest.max(*chain);
        if is_rule && c == '\n' {
            line_ended = true;
        } else if !is_blank {
            (after_operator, line_ended) = (is_operator, false);
        }
    }
    longest
}

/// What it takes to read a text: each character, as often as it is gone over.
pub(crate) fn reading_cost(text: &str) -> u64 {
    let (mut depth, mut cost) = (0_u32, 0_u64);
    for (c, part) in characters(text) {
        match c {
            '[' | '{' if part == Part::Rule => depth += 1,
            ']' | '}' if part == Part::Rule => depth = depth.saturating_sub(1),
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
    fn a_chain_goes_on_over_lines_and_brackets_and_ends_with_its_expression() {
        assert_eq!(longest_chain("x := 1 + 2 - 3\ny := 1 + 2\n"), 2);
        assert_eq!(longest_chain("x := 1 +\n2 +\n3 # + + +\n"), 2);
        assert_eq!(longest_chain("x := 1 + # one\n2 + # two\n3"), 2);
        assert_eq!(longest_chain("x := 1\n+ 2\n+ 3\n"), 2);
        assert_eq!(longest_chain("x := \"a + b + c + d\" # - - -\n"), 0);
        assert_eq!(longest_chain("x := [1 + 1, 1 + 1, 1 + 1]"), 1);
        assert_eq!(longest_chain("x := 1 + [1, 2][0] + (1 + 1) + [1, 2][0]"), 3);
        assert_eq!(longest_chain("x := 1 + f(\n1\n) + f(\n1\n) + f(\n1\n)\ny := 1 + 1"), 3);
        assert_eq!(longest_chain("# header\nx := 1 + 1\n\n# another\ny := 1 + 1"), 1);
        assert_eq!(longest_chain(&format!("x := 1{}", " +\n1".repeat(8_000))), 8_000);
    }

    #[test]
    fn texts_and_comments_nest_nothing() {
        assert_eq!(reading_cost("\"[[[\\\"[[\""), 9 - 1);
        assert_eq!(reading_cost("`[[[`"), 5);
        assert_eq!(reading_cost("# [[[\n"), 7 - 1);
    }
}
