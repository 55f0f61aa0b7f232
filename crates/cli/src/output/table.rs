//! Tables without lines: a header, columns two spaces apart, as wide as the terminal at most.

use interlock_core::text::visible::visible;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::layouts::Layout;
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
    header: &'static [&'static str],
    rows: Vec<Vec<Cell>>,
    /// Columns of ids, whose last characters are enough to name them.
    ids: &'static [usize],
    /// Columns that are never cut.
    whole: &'static [usize],
    /// Columns that can be done without, the least useful first.
    dispensable: &'static [usize],
    /// Columns that stand under the row where there is little room.
    below: &'static [usize],
}

/// How much of an id is shown where there is little room. Commands take it for the whole id.
const ID_CHARS_SHOWN: usize = 8;
/// What a column is left with before the line is cut.
const COLUMN_MIN: usize = 10;
/// What a text needs to be understood. Longer ones are cut before a column is left out for them.
const TEXT_COLUMNS: usize = 24;

impl Table {
    pub fn of(layout: &Layout) -> Self {
        let Layout { header, ids, whole, dispensable, below } = *layout;
        Self { header, rows: Vec::new(), ids, whole, dispensable, below }
    }

    pub fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        let cells = cells.into();
        assert_eq!(cells.len(), self.header.len(), "a row has a cell for each column");
        self.rows.push(cells);
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table in so many columns: ids are shortened first, then a column that may gets lines of its own, then columns are
    /// left out until every other one has room for some words, then long texts are cut between words.
    pub fn render(&self, paint: Paint, width: usize) -> String {
        let header: Vec<Cell> = self.header.iter().map(|name| Cell::toned(Tone::Bold, name)).collect();
        let mut rows: Vec<Vec<Cell>> = std::iter::once(header).chain(self.rows.iter().cloned()).collect();
        if total(&widths(&rows)) > width {
            for row in rows.iter_mut().skip(1) {
                self.ids.iter().for_each(|column| shorten(&mut row[*column]));
            }
        }
        let all = widths(&rows);
        let below = self.below_for(&all, width);
        let kept = self.kept(&all, width, below);
        let pick = |row: &[Cell], columns: &[usize]| -> Vec<Cell> {
            columns.iter().map(|column| row[*column].clone()).collect()
        };
        let beside: Vec<Vec<Cell>> = rows.iter().map(|row| pick(row, &kept)).collect();
        let whole: Vec<bool> = kept.iter().map(|column| self.whole.contains(column)).collect();
        let widths = squeezed(widths(&beside), &whole, width);
        let (mut text, indented) = (String::new(), width.saturating_sub(GAP.len()));
        for (row, beside) in rows.iter().zip(&beside) {
            text.push_str(&line(beside, &widths, paint, width));
            for cell in pick(row, below) {
                text.push_str(GAP);
                text.push_str(&line(&[cell], &[indented], paint, indented));
            }
        }
        text
    }

    /// The columns that get lines of their own: none, as long as all that is told of a row fits beside each other.
    fn below_for(&self, widths: &[usize], width: usize) -> &'static [usize] {
        let told: Vec<usize> = (0..widths.len()).filter(|column| !self.dispensable.contains(column)).collect();
        let fits = total(&told.iter().map(|column| widths[*column]).collect::<Vec<_>>()) <= width;
        if fits { &[] } else { self.below }
    }

    /// The columns that there is room for beside each other. A long text counts with what is left of it after a cut.
    fn kept(&self, widths: &[usize], width: usize, below: &[usize]) -> Vec<usize> {
        let needed = |column: &usize| {
            if self.whole.contains(column) { widths[*column] } else { widths[*column].min(TEXT_COLUMNS) }
        };
        let fits = |kept: &[usize]| total(&kept.iter().map(needed).collect::<Vec<_>>()) <= width;
        let mut kept: Vec<usize> = (0..self.header.len()).filter(|column| !below.contains(column)).collect();
        let mut left_out = Vec::new();
        for column in self.dispensable {
            if fits(&kept) {
                break;
            }
            kept.retain(|other| other != column);
            left_out.push(*column);
        }
        // Where a wide column has gone, narrow ones may have their place again.
        for column in left_out.into_iter().rev() {
            let mut more = kept.clone();
            more.push(column);
            more.sort_unstable();
            if fits(&more) {
                kept = more;
            }
        }
        kept
    }
}

/// The widest cell of each column.
fn widths(rows: &[Vec<Cell>]) -> Vec<usize> {
    let columns = rows.first().map_or(0, Vec::len);
    (0..columns).map(|column| rows.iter().map(|row| row[column].text.width()).max().unwrap_or(0)).collect()
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
}

/// Takes from the widest column until all fit, or none can give any more.
fn squeezed(mut widths: Vec<usize>, whole: &[bool], width: usize) -> Vec<usize> {
    while total(&widths) > width {
        let can_give = |column: &usize| widths[*column] > COLUMN_MIN && !whole[*column];
        let Some(widest) = (0..widths.len()).filter(can_give).max_by_key(|column| widths[*column]) else {
            break;
        };
        widths[widest] -= 1;
    }
    widths
}

/// `…c3d4e5f6` of `run_…c3d4e5f6`.
fn shorten(cell: &mut Cell) {
    let is_id = cell.text.len() > 32 && cell.text.is_ascii() && cell.text.contains('_');
    if is_id {
        cell.text = format!("…{}", &cell.text[cell.text.len() - ID_CHARS_SHOWN..]);
    }
}

fn line(row: &[Cell], widths: &[usize], paint: Paint, width: usize) -> String {
    let (mut text, mut left) = (String::new(), width);
    for (column, cell) in row.iter().enumerate() {
        let shown = cut(&cell.text, widths[column].min(left));
        let (used, padding) = (shown.width(), widths[column].saturating_sub(shown.width()));
        text.push_str(&paint.tone(cell.tone, shown));
        if column + 1 < row.len() {
            text.extend(std::iter::repeat_n(' ', padding));
            text.push_str(GAP);
        }
        left = left.saturating_sub(used + padding + GAP.len());
    }
    text.truncate(text.trim_end_matches(' ').len());
    text.push('\n');
    text
}

/// As much of a text as fits, with a sign that there was more. Between two words, unless that would leave too little.
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
    let goes_on = text[shown.len()..].starts_with(|c: char| !c.is_whitespace());
    if goes_on
        && let Some((words, _)) = shown.rsplit_once(char::is_whitespace)
        && words.width() * 2 >= width
    {
        shown = words.trim_end().to_owned();
    }
    if width > 0 {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn plain(header: &'static [&'static str]) -> Layout {
        Layout { header, ids: &[], whole: &[], dispensable: &[], below: &[] }
    }

    #[test]
    fn columns_line_up_and_foreign_text_cannot_break_out() {
        let mut table = Table::of(&plain(&["NAME", "STATE", "NOTE"]));
        table.row(["日本".into(), Cell::toned(Tone::Good, "succeeded"), "a\u{1b}[2J".into()]);
        table.row(["order-1".into(), "failed".into(), Cell::or_dash(None::<&str>)]);
        let text = table.render(Paint::OFF, usize::MAX);
        assert_eq!(text, "NAME     STATE      NOTE\n日本     succeeded  a\\u{1b}[2J\norder-1  failed     -\n");
    }

    #[test]
    fn a_narrow_terminal_cuts_the_end_of_a_line() {
        let mut table = Table::of(&plain(&["A", "B"]));
        table.row(["one".into(), "a long story".into()]);
        assert_eq!(table.render(Paint::OFF, 12), "A    B\none  a long…\n");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("abcd", 0), "");
        assert_eq!(cut("two words here", 12), "two words…");
        assert_eq!(cut("averyveryverylongword indeed", 12), "averyveryve…");
    }

    fn runs() -> Table {
        let mut table = Table::of(&super::super::layouts::RUNS);
        for (end, subject) in [("a1b2c3d4", "order-41931"), ("99887766", "a customer who has a very long name indeed")]
        {
            table.row([
                Cell::new(format!("run_019a81d2b7c07f00bd5a2a0e{end}")),
                "order".into(),
                subject.into(),
                "paused (step failed)".into(),
                "3 min ago".into(),
                Cell::or_dash(None::<&str>),
            ]);
        }
        table
    }

    #[test]
    fn a_table_fits_where_it_stands() {
        for width in [200, 120, 80, 60, 40] {
            let text = runs().render(Paint::OFF, width);
            assert!(text.lines().all(|line| line.width() <= width), "{width}:\n{text}");
        }
        let lines = |width| runs().render(Paint::OFF, width).lines().map(str::to_owned).collect::<Vec<_>>();
        // Ids are shortened, then columns are left out, then texts are cut between words.
        assert!(lines(120)[1].starts_with("…a1b2c3d4  order     order-41931"), "{:#?}", lines(120));
        assert!(lines(120)[0].ends_with("TOOK"), "{:#?}", lines(120));
        assert!(lines(80)[0].ends_with("STARTED"), "{:#?}", lines(80));
        assert!(lines(80)[2].contains("a customer who has a very"), "{:#?}", lines(80));
        assert!(lines(60)[2].contains("  a customer who"), "{:#?}", lines(60));
    }

    /// A long question goes below before the name of what it is about is lost.
    #[test]
    fn a_long_text_goes_below_where_there_is_no_room_beside() {
        let layout = Layout { below: &[2], dispensable: &[3], ..plain(&["ID", "WORKFLOW", "QUESTION", "ASKED"]) };
        let mut table = Table::of(&layout);
        let question = "Restart the primary database of the shop in all of its regions?";
        table.row(["a".into(), "restart-database".into(), question.into(), "2 h ago".into()]);
        let wide = table.render(Paint::OFF, 100);
        assert_eq!(wide.lines().count(), 2, "{wide}");
        let narrow = table.render(Paint::OFF, 70);
        let lines: Vec<&str> = narrow.lines().collect();
        assert_eq!(lines[..2], ["ID  WORKFLOW          ASKED", "  QUESTION"]);
        assert_eq!(lines[2..], ["a   restart-database  2 h ago", format!("  {question}").as_str()]);
        let cut = table.render(Paint::OFF, 40);
        assert!(cut.lines().all(|line| line.width() <= 40), "{cut}");
        assert!(cut.contains("  Restart the primary database of the…"), "{cut}");
        assert_eq!(table.render(Paint::OFF, usize::MAX), wide);
    }

    #[test]
    fn one_long_name_leaves_the_other_columns_readable() {
        let mut table = Table::of(&super::super::layouts::AUDIT);
        let run = "run_019a8c2e4b7a7f10a1b2c3d4e5f60001";
        table.row(["412", "3 min ago", "execution.step.completed", "system", run].map(Cell::new));
        let long = "release-with-a-rather-long-workflow-name-for-tables";
        table.row(["411", "2 h ago", "workflow.applied", "key local", long].map(Cell::new));
        let text = table.render(Paint::OFF, 80);
        assert!(text.contains("execution.step.completed  system     …e5f60001"), "{text}");
        assert!(table.render(Paint::OFF, 60).contains("  execution.step."), "{text}");
        // The state of a run is never cut: `paused (step…` says nothing.
        assert!(runs().render(Paint::OFF, 60).contains("paused (step failed)"));
    }

    #[test]
    fn colours_take_no_room() {
        let mut table = Table::of(&plain(&["A", "B"]));
        table.row([Cell::toned(Tone::Bad, "x"), "y".into()]);
        assert_eq!(table.render(Paint::ON, 80).lines().nth(1), Some("\x1b[31mx\x1b[0m  y"));
    }
}
