//! Prose in lines that fit the terminal: broken between words, and indented from the second line on.

use unicode_width::UnicodeWidthStr;

/// Columns of prose where there is no terminal to ask.
pub const PROSE_COLUMNS: usize = 80;
/// The fewest columns that prose is broken into.
const PROSE_COLUMNS_MIN: usize = 20;

/// How many columns prose has: those of the terminal; without one what `COLUMNS` says, or 80.
pub fn prose_columns(terminal: Option<usize>, variable: Option<&str>) -> usize {
    let columns = terminal.or_else(|| variable?.parse().ok()).unwrap_or(PROSE_COLUMNS);
    columns.max(PROSE_COLUMNS_MIN)
}

/// The text in lines of at most `width` columns, those that are added indented by `indent`. Line breaks of its own stay, with
/// their indentation. A word that is longer than a line stays whole, and colours take no room.
pub fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
        }
        wrap_line(&mut out, line, width, indent);
    }
    out
}

fn wrap_line(out: &mut String, line: &str, width: usize, indent: usize) {
    let indent = indent.max(line.len() - line.trim_start_matches(' ').len());
    let (mut used, mut spaces) = (0, 0);
    for (number, word) in line.split(' ').enumerate() {
        spaces += usize::from(number > 0);
        if word.is_empty() {
            continue;
        }
        let columns = shown_columns(word);
        if used > indent && used + spaces + columns > width {
            out.push('\n');
            (used, spaces) = (0, indent);
        }
        out.extend(std::iter::repeat_n(' ', spaces));
        out.push_str(word);
        used += spaces + columns;
        spaces = 0;
    }
}

/// How wide a word is on a terminal, without the sequences that colour it.
fn shown_columns(word: &str) -> usize {
    let (mut rest, mut columns) = (word, 0);
    while let Some((before, sequence)) = rest.split_once('\x1b') {
        columns += before.width();
        rest = sequence.split_once('m').map_or("", |(_, after)| after);
    }
    columns + rest.width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_broken_between_words_and_indented() {
        let text = "  It waits for one more approval from a member of sre.";
        assert_eq!(wrapped(text, 30, 2), "  It waits for one more\n  approval from a member of\n  sre.");
        assert_eq!(wrapped("state      running", 30, 11), "state      running");
        let labelled = "reason     the shop is closed on Sundays";
        assert_eq!(wrapped(labelled, 30, 11), "reason     the shop is closed\n           on Sundays");
        assert_eq!(wrapped("one\n    two three four five", 14, 2), "one\n    two three\n    four five");
    }

    #[test]
    fn a_long_word_stays_whole_and_beside_its_name() {
        let path = "/a/very/long/path/that/does/not/fit/anywhere";
        assert_eq!(wrapped(&format!("data       {path}"), 30, 11), format!("data       {path}"));
        assert_eq!(wrapped(&format!("look at {path} now"), 30, 2), format!("look at\n  {path}\n  now"));
    }

    #[test]
    fn colours_take_no_room() {
        assert_eq!(wrapped("\x1b[31mone two\x1b[0m three", 13, 0), "\x1b[31mone two\x1b[0m three");
        assert_eq!(wrapped("\x1b[31mone two\x1b[0m three", 12, 0), "\x1b[31mone two\x1b[0m\nthree");
    }

    #[test]
    fn without_a_terminal_there_are_80_columns_unless_the_environment_says_otherwise() {
        assert_eq!(prose_columns(Some(132), Some("60")), 132);
        assert_eq!(prose_columns(None, Some("60")), 60);
        assert_eq!((prose_columns(None, Some("wide")), prose_columns(None, None)), (80, 80));
        assert_eq!(prose_columns(Some(5), None), 20);
    }
}
