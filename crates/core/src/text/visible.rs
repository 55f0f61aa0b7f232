//! Untrusted text made safe to show. What a terminal would obey, a reader would not see, or would see in another order
//! than it is stored in, is spelled out: `\n`, `\u{202e}`. Terminal, cards and logs all come through here.

use std::borrow::Cow;
use std::fmt::Write;

/// One line of text: line breaks and tabs are spelled out as well.
pub fn visible(text: &str) -> Cow<'_, str> {
    spell_out(text, is_hidden)
}

/// Several lines of text: line feeds and tabs stay as they are.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    spell_out(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'))
}

/// Whether a character commands, hides or reorders instead of being read: control characters (C0, DEL, C1), line and
/// paragraph separators, bidirectional controls, and everything that takes no room and looks like nothing.
pub const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Soft hyphen, combining grapheme joiner, Arabic letter mark, Hangul fillers, Khmer inherent vowels.
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{3164}' | '\u{ffa0}'
        // Mongolian separators, zero width and direction marks, separators, embeddings, overrides, isolates, joiners.
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        // Braille blank, variation selectors, byte order mark, interlinear annotation.
        | '\u{2800}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
        // Shorthand and musical controls, tags, further variation selectors.
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether there is nothing in a text that a person could read.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_hidden(c))
}

fn spell_out(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&hidden) else { return Cow::Borrowed(text) };
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(&text[..first]);
    for c in text[first..].chars() {
        match c {
            c if !hidden(c) => shown.push(c),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c => {
                // Writing to a string cannot fail.
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_of_any_script_is_left_alone() {
        for text in ["", "order-41931", "größer → ✓", "日本語", "שלום", "a\\b"] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn what_is_not_seen_says_nothing() {
        assert!(["", " \n\t", "\u{200b}", "\u{a0}\u{2800}\u{feff}"].into_iter().all(is_blank));
        assert!(!["no", " \u{200b}.", "否"].into_iter().any(is_blank));
    }

    #[test]
    fn what_commands_hides_or_reorders_is_spelled_out() {
        assert_eq!(visible("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(visible("a\u{9b}2J"), "a\\u{9b}2J");
        assert_eq!(visible("x\u{202e}txt.exe"), "x\\u{202e}txt.exe");
        assert_eq!(visible("ad\u{200b}min\u{feff}"), "ad\\u{200b}min\\u{feff}");
        assert_eq!(visible("tag\u{e0041}"), "tag\\u{e0041}");
        assert_eq!(visible("one\r\ntwo\tthree"), "one\\r\\ntwo\\tthree");
    }

    #[test]
    fn several_lines_keep_their_breaks_and_nothing_else() {
        assert_eq!(visible_lines("one\n\ttwo\r\u{7}"), "one\n\ttwo\\r\\u{7}");
    }
}
