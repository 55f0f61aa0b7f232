//! Tables without lines: a header, columns two spaces apart, the last column cut where the terminal ends.

use interlock_core::text::visible::visible;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::paint::{Paint, Tone};

const GAP: &str = "  ";

/// One field of a table. Its text is made visible: nothing in it can move the cursor.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub fn new(text: impl AsRef<str>) -> Self {
        Self { text: visible(text.as_ref()).into_owned(), tone: Tone::Plain }
    }

    pub fn toned(tone: Tone, text: impl AsRef<str>) -> Self {
        Self { tone, ..Self::new(text) }
    }

    /// The text, or a dash for nothing.
    pub fn or_dash(text: Option<impl AsRef<str>>) -> Self {
        text.map_or_else(|| Self::toned(Tone::Dim, "-"), Self::new)
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

#[derive(Debug, Clone)]
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub fn new(header: impl Into<Vec<&'static str>>) -> Self {
        Self { header: header.into(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        let cells = cells.into();
        debug_assert_eq!(cells.len(), self.header.len(), "a row has a cell for each column");
        self.rows.push(cells);
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn render(&self, paint: Paint, width: usize) -> String {
        let widths: Vec<usize> = (0..self.header.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.width());
                cells.chain([self.header[column].width()]).max().unwrap_or(0)
            })
            .collect();
        let header: Vec<Cell> = self.header.iter().map(|name| Cell::toned(Tone::Bold, name)).collect();
        let mut text = String::new();
        for row in std::iter::once(&header).chain(&self.rows) {
            let mut left = width;
            let last = row.len().saturating_sub(1);
            for (column, cell) in row.iter().enumerate() {
                let shown = cut(&cell.text, left);
                let (used, padding) = (shown.width(), widths[column].saturating_sub(shown.width()));
                text.push_str(&paint.tone(cell.tone, shown));
                if column < last {
                    text.extend(std::iter::repeat_n(' ', padding));
                    text.push_str(GAP);
                }
                left = left.saturating_sub(used + padding + GAP.len());
            }
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        }
        text
    }
}

/// As much of a text as fits, with a sign that there was more.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used + 1 > width {
            break;
        }
        shown.push(c);
    }
    if width > 0 {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_foreign_text_cannot_break_out() {
        let mut table = Table::new(["NAME", "STATE", "NOTE"]);
        table.row(["日本".into(), Cell::toned(Tone::Good, "succeeded"), "a\u{1b}[2J".into()]);
        table.row(["order-1".into(), "failed".into(), Cell::or_dash(None::<&str>)]);
        let text = table.render(Paint::OFF, usize::MAX);
        assert_eq!(text, "NAME     STATE      NOTE\n日本     succeeded  a\\u{1b}[2J\norder-1  failed     -\n");
    }

    #[test]
    fn a_narrow_terminal_cuts_the_end_of_a_line() {
        let mut table = Table::new(["A", "B"]);
        table.row(["one".into(), "a long story".into()]);
        assert_eq!(table.render(Paint::OFF, 12), "A    B\none  a long…\n");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("abcd", 0), "");
    }

    #[test]
    fn colours_take_no_room() {
        let mut table = Table::new(["A", "B"]);
        table.row([Cell::toned(Tone::Bad, "x"), "y".into()]);
        assert_eq!(table.render(Paint::ON, 80).lines().nth(1), Some("\x1b[31mx\x1b[0m  y"));
    }
}
