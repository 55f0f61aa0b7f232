//! The text of a file, by place.

use crate::node::{Place, Span};

#[derive(Debug, Clone)]
pub struct Source {
    /// How the file is called in diagnostics.
    pub name: String,
    pub text: String,
    /// Where each line begins, in bytes.
    lines: Vec<usize>,
}

impl Source {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text: String = text.into();
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { name: name.into(), text, lines }
    }

    /// A line without its end, counted from 1.
    pub fn line(&self, number: usize) -> &str {
        let Some(start) = number.checked_sub(1).and_then(|index| self.lines.get(index)) else { return "" };
        self.text[*start..].lines().next().unwrap_or_default()
    }

    fn offset(&self, place: Place) -> usize {
        let Some(start) = place.line.checked_sub(1).and_then(|index| self.lines.get(index)) else {
            return self.text.len();
        };
        let rest = &self.text[*start..];
        rest.char_indices().nth(place.column.saturating_sub(1)).map_or(self.text.len(), |(at, _)| start + at)
    }

    fn place(&self, offset: usize) -> Place {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self.lines[line.saturating_sub(1)];
        Place { line, column: self.text[start..offset].chars().count() + 1 }
    }

    /// The text of a span as it was written, quotes and all.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(self.offset(span.start)..self.offset(span.end)).unwrap_or_default()
    }

    /// The span of a part of [`Source::slice`], by bytes.
    pub fn within(&self, span: Span, from: usize, to: usize) -> Span {
        let start = self.offset(span.start);
        let clamp = |offset: usize| {
            let mut offset = (start + offset).min(self.text.len());
            while !self.text.is_char_boundary(offset) {
                offset -= 1;
            }
            self.place(offset)
        };
        Span { start: clamp(from), end: clamp(to) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_offsets_agree_over_lines_and_wide_characters() {
        let source = Source::new("x", "ä: 1\nbü: ${{ x }}\n");
        let span = Span { start: Place { line: 2, column: 5 }, end: Place { line: 2, column: 13 } };
        assert_eq!(source.slice(span), "${{ x }}");
        assert_eq!(source.within(span, 4, 5).start, Place { line: 2, column: 9 });
        assert_eq!(source.line(2), "bü: ${{ x }}");
        assert_eq!(source.line(9), "");
    }
}
