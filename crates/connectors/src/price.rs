//! What models cost, from the file of connections.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The price of a model, in dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
}

const MILLION: f64 = 1e6;

impl Price {
    pub fn is_amount(&self) -> bool {
        [self.input, self.output].iter().all(|price| (0.0..=MILLION).contains(price))
    }

    /// What a call cost, in millionths of a dollar, rounded up: a cap must not be passed by rounding.
    pub fn cost_micros(&self, tokens: Tokens) -> u64 {
        // Dollars for a million tokens are millionths of a dollar for one.
        (self.input * tokens.input as f64 + self.output * tokens.output as f64).ceil() as u64
    }
}

/// What a call has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
}

/// The prices of models. A name is a model's, or the beginning of its dated names: `claude-sonnet-5` is also the price of
/// `claude-sonnet-5-20260101`.
#[derive(Debug, Clone, Default)]
pub struct Prices(BTreeMap<String, Price>);

impl Prices {
    pub const fn new(prices: BTreeMap<String, Price>) -> Self {
        Self(prices)
    }

    pub fn of(&self, model: &str) -> Option<Price> {
        let is_of = |name: &str| {
            model.strip_prefix(name).is_some_and(|rest| {
                rest.is_empty()
                    || rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            })
        };
        // The longest name is the most exact one.
        let known = self.0.iter().filter(|(name, _)| is_of(name));
        known.max_by_key(|(name, _)| name.len()).map(|(_, price)| *price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_the_most_exact_one_and_rounds_up() {
        let price = |input| Price { input, output: 10.0 };
        let all = [("gpt-5", price(1.0)), ("gpt-5-mini", price(0.25)), ("gpt-5-2026", price(2.0))];
        let prices = Prices::new(all.into_iter().map(|(name, price)| (name.to_owned(), price)).collect());
        assert_eq!(prices.of("gpt-5"), Some(price(1.0)));
        assert_eq!(prices.of("gpt-5-mini"), Some(price(0.25)));
        assert_eq!(prices.of("gpt-5-20260101"), Some(price(1.0)), "a dated name");
        assert_eq!(prices.of("gpt-5-nano"), None, "another model");
        assert_eq!(price(0.25).cost_micros(Tokens { input: 3, output: 2 }), 21);
    }
}
