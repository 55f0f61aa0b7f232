//! Licence expressions (SPDX), and which of them a release may contain.

const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// Whether a release may contain something under this expression. What cannot be read is not allowed.
pub(crate) fn is_allowed(expression: &str) -> bool {
    // Older manifests write `MIT/Apache-2.0` for a choice.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut parser = Parser { words: spaced.split_whitespace().collect(), at: 0 };
    let verdict = parser.either();
    verdict == Some(true) && parser.at == parser.words.len()
}

/// `either = both (OR both)*`, `both = one (AND one)*`, `one = ( either ) | id (WITH id)?`
struct Parser<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl Parser<'_> {
    fn either(&mut self) -> Option<bool> {
        let mut allowed = self.both()?;
        while self.took("OR") {
            allowed |= self.both()?;
        }
        Some(allowed)
    }

    fn both(&mut self) -> Option<bool> {
        let mut allowed = self.one()?;
        while self.took("AND") {
            allowed &= self.one()?;
        }
        Some(allowed)
    }

    fn one(&mut self) -> Option<bool> {
        if self.took("(") {
            let allowed = self.either()?;
            return self.took(")").then_some(allowed);
        }
        let mut id = (*self.words.get(self.at)?).to_owned();
        self.at += 1;
        if self.took("WITH") {
            id = format!("{id} WITH {}", self.words.get(self.at)?);
            self.at += 1;
        }
        Some(ALLOWED.contains(&id.as_str()))
    }

    fn took(&mut self, word: &str) -> bool {
        let taken = self.words.get(self.at) == Some(&word);
        self.at += usize::from(taken);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn a_choice_needs_one_and_a_sum_needs_all() {
        assert!(is_allowed("MIT"));
        assert!(is_allowed("MIT/Apache-2.0"));
        assert!(is_allowed("GPL-2.0-only OR MIT"));
        assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(is_allowed("Apache-2.0 WITH LLVM-exception OR GPL-3.0"));
        assert!(!is_allowed("MIT AND GPL-2.0-only"));
        assert!(!is_allowed("(MIT OR Apache-2.0) AND OpenSSL"));
        assert!(!is_allowed("GPL-2.0-only WITH Classpath-exception-2.0"));
    }

    #[test]
    fn and_binds_tighter_than_or() {
        assert!(is_allowed("MIT OR GPL-3.0-only AND AGPL-3.0-only"));
        assert!(!is_allowed("GPL-3.0-only AND MIT OR AGPL-3.0-only"));
    }

    #[test]
    fn what_cannot_be_read_is_not_allowed() {
        for broken in ["", "MIT OR", "(MIT", "MIT)", "MIT Apache-2.0", "mit"] {
            assert!(!is_allowed(broken), "{broken}");
        }
    }
}
