//! Regular expressions from users. Both building one and looking for it cost in proportion to the program that it
//! becomes, so that is bounded ([`PATTERN_PROGRAM_BYTES_MAX`]), and measured by the smallest of a few sizes that it
//! fits: a pattern of another size is charged another price.

use regex::{Regex, RegexBuilder};

use super::budget::Spent;
use crate::limits::PATTERN_PROGRAM_BYTES_MAX;
use interlock_core::limits::EXPRESSION_BYTES_MAX;

/// What a program of up to so many bytes costs.
struct Price {
    bytes: usize,
    /// To build it.
    build: u64,
    /// To look for it in eight bytes of text, where nothing shortens the search.
    search: u64,
}

const PRICES: [Price; 3] = [
    Price { bytes: 16 << 10, build: 2_000, search: 8 },
    Price { bytes: 128 << 10, build: 10_000, search: 64 },
    Price { bytes: PATTERN_PROGRAM_BYTES_MAX, build: 50_000, search: 512 },
];

/// A regular expression, ready to look for.
#[derive(Debug)]
pub struct Pattern {
    regex: Regex,
    search: u64,
}

/// Why a text cannot be used as a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    #[error("the pattern is longer than {EXPRESSION_BYTES_MAX} bytes")]
    TooLong,
    #[error("the pattern becomes larger than {} KiB; use shorter repetitions, or `[0-9A-Za-z_]` for `\\w`", PATTERN_PROGRAM_BYTES_MAX >> 10)]
    TooLarge,
    #[error("this is not a regular expression: {0}")]
    Syntax(String),
    #[error(transparent)]
    Spent(#[from] Spent),
}

impl Pattern {
    /// Builds it, paying for each size that is tried.
    pub(super) fn build(text: &str, charge: impl Fn(u64) -> Result<(), Spent>) -> Result<Self, InvalidPattern> {
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(InvalidPattern::TooLong);
        }
        for price in &PRICES {
            charge(price.build)?;
            match RegexBuilder::new(text).size_limit(price.bytes).build() {
                Ok(regex) => return Ok(Self { regex, search: price.search }),
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(error) => {
                    let last = error.to_string().lines().last().unwrap_or_default().trim().to_owned();
                    return Err(InvalidPattern::Syntax(last));
                }
            }
        }
        Err(InvalidPattern::TooLarge)
    }

    /// Whether it is found in a text. [`super::budget::Budget::is_match`] charges for the search first.
    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// What a search through so many bytes costs.
    pub(super) fn search_cost(&self, bytes: usize) -> u64 {
        (1 + bytes as u64 / 8).saturating_mul(self.search)
    }

    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn build(text: &str) -> (Result<Pattern, InvalidPattern>, u64) {
        let paid = Cell::new(0);
        let built = Pattern::build(text, |cost| {
            paid.set(paid.get() + cost);
            Ok(())
        });
        (built, paid.get())
    }

    #[test]
    fn a_larger_program_costs_more_and_a_huge_one_is_refused() {
        let (small, cheap) = build("^INC[0-9]{7}$");
        let (large, dear) = build(r"^\w{20}$");
        assert!(small.unwrap().search_cost(800) < large.unwrap().search_cost(800));
        assert!(cheap < dear);
        assert_eq!(build(r"(\w{100}){100}").0.unwrap_err(), InvalidPattern::TooLarge);
        assert_eq!(build(&"a".repeat(EXPRESSION_BYTES_MAX + 1)).0.unwrap_err(), InvalidPattern::TooLong);
        assert!(matches!(build("(").0.unwrap_err(), InvalidPattern::Syntax(_)));
    }

    #[test]
    fn what_cannot_be_paid_is_not_built() {
        assert_eq!(Pattern::build("a", |_| Err(Spent::Cost)).unwrap_err(), InvalidPattern::Spent(Spent::Cost));
    }
}
