//! A Markdown page with code told apart from prose.

#[derive(Debug)]
pub(crate) struct Markdown<'a> {
    text: &'a str,
    /// The text as long as it was, with code blanked.
    pub prose: String,
    pub code: Vec<Code<'a>>,
}

/// An inline span, or one line of a fenced block.
#[derive(Debug)]
pub(crate) struct Code<'a> {
    pub offset: usize,
    pub text: &'a str,
    /// What the fence says, empty for an inline span.
    pub language: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub offset: usize,
    pub target: String,
}

impl<'a> Markdown<'a> {
    pub fn new(text: &'a str) -> Self {
        let mut page = Self { text, prose: text.to_owned(), code: Vec::new() };
        page.take_fences();
        page.take_spans();
        page
    }

    /// Targets of inline links and images, of reference definitions, and of HTML.
    pub fn links(&self) -> Vec<Link> {
        let mut links = Vec::new();
        for (opening, closing) in [("](", &[')', ' ', '\n'][..]), ("src=\"", &['"']), ("href=\"", &['"'])] {
            for (at, _) in self.prose.match_indices(opening) {
                let offset = at + opening.len();
                links.extend(link(offset, &self.prose[offset..], closing));
            }
        }
        let mut start = 0;
        for line in self.prose.split_inclusive('\n') {
            if let Some(after) = line.starts_with('[').then(|| line.find("]: ")).flatten() {
                let offset = start + after + "]: ".len();
                links.extend(link(offset, &self.prose[offset..], &[' ', '\n']));
            }
            start += line.len();
        }
        links
    }

    /// The anchors that headings and `id` attributes make, as code hosts spell them.
    pub fn anchors(&self) -> Vec<String> {
        let mut anchors: Vec<String> = Vec::new();
        for (prose, text) in self.prose.lines().zip(self.text.lines()) {
            if let Some(heading) = heading(prose).and(heading(text)) {
                let plain = slug(heading);
                let mut anchor = plain.clone();
                let mut repeats = 0;
                while anchors.contains(&anchor) {
                    repeats += 1;
                    anchor = format!("{plain}-{repeats}");
                }
                anchors.push(anchor);
            }
            for (at, opening) in prose.match_indices("id=\"") {
                let name = prose[at + opening.len()..].split('"').next();
                anchors.extend(name.map(str::to_owned));
            }
        }
        anchors
    }

    fn take_fences(&mut self) {
        let mut open: Option<(&str, &str)> = None;
        let mut start = 0;
        for line in self.text.split_inclusive('\n') {
            let trimmed = line.trim();
            let fence = fence(trimmed);
            match open {
                Some((marks, _)) if fence.starts_with(marks) && trimmed == fence => {
                    open = None;
                    self.blank(start, line.len());
                }
                Some((_, language)) => {
                    self.blank(start, line.len());
                    self.code.push(Code { offset: start, text: line, language });
                }
                None if !fence.is_empty() => {
                    open = Some((fence, trimmed[fence.len()..].trim()));
                    self.blank(start, line.len());
                }
                None => {}
            }
            start += line.len();
        }
    }

    fn take_spans(&mut self) {
        let mut at = 0;
        while let Some(found) = self.prose[at..].find('`') {
            let start = at + found;
            let marks = run_of_backticks(&self.prose[start..]);
            let body = start + marks;
            let Some(len) = closing_backticks(&self.prose[body..], marks) else {
                at = body;
                continue;
            };
            self.code.push(Code { offset: body, text: &self.text[body..body + len], language: "" });
            at = body + len + marks;
            self.blank(start, at - start);
        }
    }

    fn blank(&mut self, start: usize, len: usize) {
        let blanked: String =
            self.prose[start..start + len].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect();
        self.prose.replace_range(start..start + len, &blanked);
    }
}

fn link(offset: usize, rest: &str, closing: &[char]) -> Option<Link> {
    let target = match rest.strip_prefix('<') {
        Some(bracketed) => bracketed.split('>').next()?,
        None => rest.split(closing).next()?,
    };
    (!target.is_empty()).then(|| Link { offset, target: target.to_owned() })
}

/// The three or more marks that open or close a block of code; empty where there are none.
fn fence(trimmed: &str) -> &str {
    ['`', '~']
        .into_iter()
        .map(|mark| &trimmed[..trimmed.len() - trimmed.trim_start_matches(mark).len()])
        .find(|marks| marks.len() >= 3)
        .unwrap_or_default()
}

fn run_of_backticks(text: &str) -> usize {
    text.len() - text.trim_start_matches('`').len()
}

/// How far it is to a run of exactly `marks` backticks in the same paragraph.
fn closing_backticks(text: &str, marks: usize) -> Option<usize> {
    let paragraph = text.split("\n\n").next()?;
    let mut at = 0;
    while let Some(found) = paragraph[at..].find('`') {
        let run = run_of_backticks(&paragraph[at + found..]);
        if run == marks {
            return Some(at + found);
        }
        at += found + run;
    }
    None
}

fn heading(line: &str) -> Option<&str> {
    let marks = line.len() - line.trim_start_matches('#').len();
    (1..=6).contains(&marks).then(|| line[marks..].strip_prefix(' ')).flatten()
}

fn slug(heading: &str) -> String {
    heading
        .trim()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            c if c.is_alphanumeric() => Some(c),
            _ => None,
        })
        .collect::<String>()
        .to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> Vec<String> {
        let links = Markdown::new(text).links();
        links.into_iter().map(|link| link.target).collect()
    }

    #[test]
    fn links_are_found_in_prose_and_not_in_code() {
        let text = "[a](one.md) ![`b`](two.svg \"t\") `[c](no.md)`\n```\n[d](no.md)\n```\n\
                    <img src=\"three.png\">\n[e]: four.md\n[f](<five six.md>)\n";
        let mut found = targets(text);
        found.sort();
        let expected = ["five six.md", "four.md", "one.md", "three.png", "two.svg"];
        assert_eq!(found, expected);
    }

    #[test]
    fn code_is_taken_line_by_line_with_its_language() {
        let page = Markdown::new("Run `make a`.\n\n```sh\nmake b\nmake c\n```\n");
        let code: Vec<_> = page.code.iter().map(|code| (code.language, code.text.trim())).collect();
        assert_eq!(code, [("sh", "make b"), ("sh", "make c"), ("", "make a")]);
    }

    #[test]
    fn anchors_are_spelled_as_code_hosts_spell_them() {
        let text = "# The `run` word, once\n## Again\n## Again\n```\n# not one\n```\n";
        assert_eq!(Markdown::new(text).anchors(), ["the-run-word-once", "again", "again-1"]);
    }
}
