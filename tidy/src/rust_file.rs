//! A Rust file with comments and literals told apart from code.
//!
//! Just enough of a lexer that a rule never stumbles over a word in a comment or in a string. Text
//! keeps its offsets: what is not code becomes spaces.

use std::ops::Range;

use crate::tree::{Tree, has_extension, is_test_path, line_at};

#[derive(Debug)]
pub(crate) struct RustFile<'a> {
    pub path: &'a str,
    /// The text as long as it was, with comments and the insides of literals blanked.
    pub code: String,
    pub strings: Vec<StringLiteral<'a>>,
    test_items: Vec<Range<usize>>,
}

#[derive(Debug)]
pub(crate) struct StringLiteral<'a> {
    /// Of the opening quote.
    pub offset: usize,
    /// Between the quotes, escapes as written.
    pub text: &'a str,
}

impl Tree {
    /// Every Rust file, with comments and literals told apart from code.
    pub(crate) fn rust_files(&self) -> impl Iterator<Item = RustFile<'_>> {
        self.iter().filter(|(path, _)| has_extension(path, &["rs"])).map(|(path, text)| RustFile::new(path, text))
    }
}

impl<'a> RustFile<'a> {
    pub fn new(path: &'a str, text: &'a str) -> Self {
        let Lexed { code, strings } = lex(text);
        let test_items = test_items(&code);
        Self { path, code, strings, test_items }
    }

    /// The offsets at which `word` stands in code, not as a part of a longer name.
    ///
    /// A path such as `Instant::now` is a word as well.
    pub fn words(&self, word: &str) -> impl Iterator<Item = usize> {
        words(&self.code, word)
    }

    pub fn line(&self, offset: usize) -> usize {
        line_at(&self.code, offset)
    }

    /// Is this offset test code: in a test's file, or in an item under `#[cfg(test)]`?
    pub fn is_test(&self, offset: usize) -> bool {
        is_test_path(self.path) || self.test_items.iter().any(|item| item.contains(&offset))
    }

    /// Does this offset stand inside a string of test code?
    pub fn is_string_in_test(&self, offset: usize) -> bool {
        let is_inside =
            |string: &StringLiteral<'_>| (string.offset..string.offset + string.text.len() + 1).contains(&offset);
        self.is_test(offset) && self.strings.iter().any(is_inside)
    }
}

/// The offsets at which `word` stands in `text`, not as a part of a longer name.
pub(crate) fn words(text: &str, word: &str) -> impl Iterator<Item = usize> {
    text.match_indices(word).map(|(offset, _)| offset).filter(move |&offset| {
        let before = text[..offset].chars().next_back();
        let after = text[offset + word.len()..].chars().next();
        !before.is_some_and(is_name_char) && !after.is_some_and(is_name_char)
    })
}

pub(crate) fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

struct Lexed<'a> {
    code: String,
    strings: Vec<StringLiteral<'a>>,
}

fn lex(text: &str) -> Lexed<'_> {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut strings = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        // Most bytes begin neither a comment nor a literal. They are told by a look: every rule's test reads millions.
        let is_plain_code = match bytes[at] {
            b'/' | b'"' | b'\'' => false,
            b'b' | b'c' | b'r' => at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_'),
            _ => true,
        };
        if is_plain_code {
            at += 1;
            continue;
        }
        let rest = &text[at..];
        let in_a_name = text[..at].chars().next_back().is_some_and(is_name_char);
        let (end, inside) = if rest.starts_with("//") {
            let end = at + rest.find('\n').unwrap_or(rest.len());
            (end, at..end)
        } else if rest.starts_with("/*") {
            let end = at + block_comment_len(rest);
            (end, at..end)
        } else if let Some(string) = string_literal(rest).filter(|_| rest.starts_with('"') || !in_a_name) {
            let inside = at + string.inside.start..at + string.inside.end;
            strings.push(StringLiteral { offset: inside.start - 1, text: &text[inside.clone()] });
            (at + string.len, inside)
        } else if let Some(len) = char_literal_len(rest) {
            (at + len, at..at + len)
        } else {
            (at + 1, at..at)
        };
        for byte in &mut code[inside] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    let code = String::from_utf8(code).expect("only whole characters were blanked");
    Lexed { code, strings }
}

fn block_comment_len(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

struct StringSpan {
    len: usize,
    inside: Range<usize>,
}

/// The string literal that `rest` starts with: plain, byte, C, or a raw one of these.
fn string_literal(rest: &str) -> Option<StringSpan> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| rest.starts_with(prefix))?;
    let raw = prefix.ends_with('r');
    let after_prefix = &rest[prefix.len()..];
    let hashes = if raw { after_prefix.len() - after_prefix.trim_start_matches('#').len() } else { 0 };
    if !after_prefix[hashes..].starts_with('"') {
        return None;
    }
    let start = prefix.len() + hashes + 1;
    let body = &rest[start..];
    let close = format!("\"{}", &after_prefix[..hashes]);
    let body_len = if raw { body.find(&close) } else { unescaped_quote(body) };
    let end = body_len.map_or(rest.len(), |len| start + len);
    Some(StringSpan { len: (end + close.len()).min(rest.len()), inside: start..end })
}

fn unescaped_quote(body: &str) -> Option<usize> {
    let mut escaped = false;
    body.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

/// How long the character literal is that `rest` starts with; a lifetime is none.
fn char_literal_len(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    // What follows a backslash is part of the escape, even a quote.
    let skipped = if first == '\\' { 2 } else { first.len_utf8() };
    let close = inside.get(skipped..)?.find('\'')?;
    (first == '\\' || close == 0).then_some(1 + skipped + close + 1)
}

/// The items that exist only in tests.
fn test_items(code: &str) -> Vec<Range<usize>> {
    ["#[cfg(test", "#[cfg(any(test", "#[cfg(all(test"]
        .iter()
        .flat_map(|attribute| code.match_indices(attribute))
        .map(|(start, _)| start..item_end(code, start))
        .collect()
}

/// Where the item that starts with these attributes ends: at its block, or at its semicolon.
pub(crate) fn item_end(code: &str, start: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return offset + 1;
                }
            }
            b';' if depth == 0 => return offset + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(text: &str) -> String {
        RustFile::new("a.rs", text).code
    }

    #[test]
    fn comments_and_literals_are_blanked_and_lines_stay() {
        let text = "a // x\n/* x /* x */ x */ b\n\"x\\\" x\" c br#\"x \" x\"# d 'x' '\\'' e";
        let code = code_of(text);
        assert!(!code.contains('x'), "{code}");
        assert_eq!(code.len(), text.len());
        assert_eq!(
            code.chars().filter(char::is_ascii_alphabetic).collect::<String>(),
            "abcbrde",
            "the prefix of a string is code"
        );
        assert_eq!(code.lines().count(), text.lines().count());
    }

    #[test]
    fn lifetimes_raw_names_and_names_that_end_in_r_are_code() {
        let text = "fn f<'a>(x: &'a str) -> r#unsafe { for\"x\"; 'ä' }";
        let code = code_of(text);
        assert!(code.contains("&'a str"));
        assert!(code.contains("r#unsafe"));
        assert!(!code.contains('ä'));
    }

    #[test]
    fn strings_are_kept_with_their_places() {
        let file = RustFile::new("a.rs", "let q =\n    r#\"SELECT \"1\"\"#; let e = \"\";");
        assert_eq!(file.strings[0].text, "SELECT \"1\"");
        assert_eq!(file.line(file.strings[0].offset), 2);
        assert_eq!(file.strings[1].text, "");
    }

    #[test]
    fn words_end_where_names_end() {
        let file = RustFile::new("a.rs", "unsafe_code unsafe not_unsafe Instant::now_or");
        assert_eq!(file.words("unsafe").collect::<Vec<_>>(), [12]);
        assert_eq!(file.words("Instant::now").count(), 0);
    }

    #[test]
    fn items_under_cfg_test_are_test_code_and_what_follows_is_not() {
        let text = "#[cfg(test)]\nuse a::{b};\nfn one() {}\n#[cfg(test)]\n#[rustfmt::skip]\nmod tests { fn x(a: [u8; 2]) { if a {} } two }\nthree";
        let file = RustFile::new("crates/core/src/a.rs", text);
        let is_test = |word: &str| file.is_test(text.find(word).unwrap());
        assert!(is_test("b}"));
        assert!(!is_test("one"));
        assert!(is_test("two"));
        assert!(!is_test("three"));
    }
}
