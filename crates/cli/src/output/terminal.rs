//! Text of programs on a terminal: it may be coloured, and does nothing else to the terminal.

use interlock_core::text::visible::visible_lines;

/// Keeps line breaks, tabs and, where wanted, the sequences that colour; spells out whatever else a terminal would obey.
pub fn shown(text: &str, colors: bool) -> String {
    // A progress bar goes back to the beginning of its line; here it gets a new one.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find("\u{1b}[") {
        let (plain, sequence) = rest.split_at(at);
        out.push_str(&visible_lines(plain));
        let body = &sequence[2..];
        let end = body.find(|c: char| !c.is_ascii_digit() && c != ';' && c != ':').unwrap_or(body.len());
        if body[end..].starts_with('m') {
            if colors {
                out.push_str(&sequence[..=(2 + end)]);
            }
            rest = &body[end + 1..];
        } else {
            out.push_str(&visible_lines(&sequence[..2]));
            rest = body;
        }
    }
    out.push_str(&visible_lines(rest));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_stay_and_commands_are_spelled_out() {
        assert_eq!(shown("\u{1b}[1;31mred\u{1b}[0m\n", true), "\u{1b}[1;31mred\u{1b}[0m\n");
        assert_eq!(shown("\u{1b}[1;31mred\u{1b}[0m", false), "red");
        assert_eq!(shown("a\u{1b}[2Jb\u{1b}]0;t\u{7}", true), "a\\u{1b}[2Jb\\u{1b}]0;t\\u{7}");
        assert_eq!(shown("10%\r20%\r\n", true), "10%\n20%\n");
        assert_eq!(shown("\u{1b}[", true), "\\u{1b}[");
    }
}
