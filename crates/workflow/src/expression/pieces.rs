//! A text as what stands between its expressions, and the expressions.

pub const OPEN: &str = interlock_core::plan::EXPRESSION_OPENS;
pub const CLOSE: &str = "}}";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    Text(&'a str),
    Expression {
        /// What stands between the braces.
        source: &'a str,
        /// Where `source` begins in the text, in bytes.
        at: usize,
    },
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{OPEN}` without `{CLOSE}`")]
pub struct Unclosed {
    /// Where `${{` stands, in bytes.
    pub at: usize,
}

pub fn split(text: &str) -> Result<Vec<Piece<'_>>, Unclosed> {
    let mut pieces = Vec::new();
    let mut from = 0;
    while let Some(open) = text[from..].find(OPEN).map(|found| from + found) {
        if open > from {
            pieces.push(Piece::Text(&text[from..open]));
        }
        let at = open + OPEN.len();
        let end = at + close(&text[at..]).ok_or(Unclosed { at: open })?;
        pieces.push(Piece::Expression { source: &text[at..end], at });
        from = end + CLOSE.len();
    }
    if from < text.len() {
        pieces.push(Piece::Text(&text[from..]));
    }
    Ok(pieces)
}

/// Where the closing braces stand: outside of quotes, and not those of a map.
fn close(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut depth, mut quote) = (0usize, None);
    let mut i = 0;
    while i < bytes.len() {
        match (quote, bytes[i]) {
            (Some(_), b'\\') => i += 1,
            (Some(open), byte) if byte == open => quote = None,
            (None, byte @ (b'"' | b'\'')) => quote = Some(byte),
            (None, b'{') => depth += 1,
            (None, b'}') if depth > 0 => depth -= 1,
            (None, b'}') if bytes.get(i + 1) == Some(&b'}') => return Some(i),
            (Some(_) | None, _) => {}
        }
        i += 1;
    }
    None
}

/// A condition without the braces that it may be written in.
pub fn unwrapped(source: &str) -> &str {
    match split(source.trim()).as_deref() {
        Ok([Piece::Expression { source, .. }]) => source,
        _ => source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_at_its_expressions() {
        let expression = |source, at| Piece::Expression { source, at };
        assert_eq!(
            split("a ${{ b }} c${{d}}").unwrap(),
            [Piece::Text("a "), expression(" b ", 5), Piece::Text(" c"), expression("d", 15)]
        );
        assert_eq!(split("${{ {'a': {'b': 1}} }}").unwrap(), [expression(" {'a': {'b': 1}} ", 3)]);
        assert_eq!(split("${{ '}}' }}").unwrap(), [expression(" '}}' ", 3)]);
        assert_eq!(split("x ${{ y").unwrap_err(), Unclosed { at: 2 });
        assert_eq!(split("").unwrap(), []);
        assert_eq!(unwrapped("${{ a }}").trim(), "a");
        assert_eq!(unwrapped("a || b"), "a || b");
    }
}
