//! The text of a file, by place. A place is found in a few steps however long its line is: the characters are counted
//! once, and the count is kept every few hundred bytes.

use crate::node::{LineColumn, Span};

#[derive(Debug, Clone)]
pub struct Source {
    /// How the file is called in diagnostics.
    pub name: String,
    pub text: String,
    /// Where each line begins, in bytes.
    lines: Vec<usize>,
    /// How many characters begin before byte 0, [`STRIDE`], twice that, and so on.
    characters: Vec<usize>,
}

/// Bytes between two counts of characters.
const STRIDE: usize = 256;

impl Source {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text: String = text.into();
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let mut counted = 0;
        let mut characters = Vec::with_capacity(text.len() / STRIDE + 1);
        for stride in text.as_bytes().chunks(STRIDE) {
            characters.push(counted);
            counted += beginnings(stride);
        }
        Self { name: name.into(), text, lines, characters }
    }

    /// How many characters begin before a byte.
    fn characters_before(&self, offset: usize) -> usize {
        let offset = offset.min(self.text.len());
        let Some(counted) = self.characters.get(offset / STRIDE).or(self.characters.last()) else { return 0 };
        let from = (offset / STRIDE).min(self.characters.len() - 1) * STRIDE;
        counted + beginnings(&self.text.as_bytes()[from..offset])
    }

    /// Where a character begins, by its number in the text; the text's end where there are fewer.
    fn byte_of(&self, character: usize) -> usize {
        let stride = self.characters.partition_point(|counted| *counted <= character).saturating_sub(1);
        let from = stride * STRIDE;
        let Some(bytes) = self.text.as_bytes().get(from..) else { return self.text.len() };
        let mut left = character - self.characters.get(stride).copied().unwrap_or(0);
        for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| is_beginning(**byte)) {
            if left == 0 {
                return from + at;
            }
            left -= 1;
        }
        self.text.len()
    }

    /// A line without its end, counted from 1.
    pub fn line(&self, number: usize) -> &str {
        let Some(start) = number.checked_sub(1).and_then(|index| self.lines.get(index)) else { return "" };
        self.text[*start..].lines().next().unwrap_or_default()
    }

    fn offset(&self, place: LineColumn) -> usize {
        let Some(start) = place.line.checked_sub(1).and_then(|index| self.lines.get(index)) else {
            return self.text.len();
        };
        self.byte_of(self.characters_before(*start) + place.column.saturating_sub(1))
    }

    fn place(&self, offset: usize) -> LineColumn {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self.lines[line.saturating_sub(1)];
        LineColumn { line, column: self.characters_before(offset) - self.characters_before(start) + 1 }
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

const fn is_beginning(byte: u8) -> bool {
    byte & 0b1100_0000 != 0b1000_0000
}

fn beginnings(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| is_beginning(**byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the slow and obvious way of counting.
        #[test]
        fn every_character_is_where_counting_finds_it(words in prop::collection::vec("[aä€😀\\n]{0,300}", 0..6)) {
            let text = words.concat();
            let source = Source::new("x", text.clone());
            let (mut line, mut column) = (1, 1);
            for (at, character) in text.char_indices() {
                let place = LineColumn { line, column };
                prop_assert_eq!(source.offset(place), at);
                prop_assert_eq!(source.place(at), place);
                (line, column) = if character == '\n' { (line + 1, 1) } else { (line, column + 1) };
            }
        }
    }

    #[test]
    fn places_and_offsets_agree_over_lines_and_wide_characters() {
        let source = Source::new("x", "ä: 1\nbü: ${{ x }}\n");
        let span = Span { start: LineColumn { line: 2, column: 5 }, end: LineColumn { line: 2, column: 13 } };
        assert_eq!(source.slice(span), "${{ x }}");
        assert_eq!(source.within(span, 4, 5).start, LineColumn { line: 2, column: 9 });
        assert_eq!(source.line(2), "bü: ${{ x }}");
        assert_eq!(source.line(9), "");
    }
}
