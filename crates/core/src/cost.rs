//! What an attempt has cost, as its worker reports it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The largest cost that is believed: a billion of whatever `limits.spend` is given in.
pub const COST_MICROS_MAX: u64 = 1_000_000_000_000_000;
const TOKENS_MAX: u64 = 1_000_000_000_000;
pub const NAME_BYTES_MAX: usize = 128;

/// Money and tokens. They add up on the run, and count against the workflow's `limits.spend`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Millionths of the unit in which the workflow gives `limits.spend`.
    pub micros: u64,
    /// The price is not known. Where the workflow has a `limits.spend`, the run counts as having spent all of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unpriced: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Who is paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Cost {
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        if self.micros > COST_MICROS_MAX {
            return Err(format!("a cost of {} millionths is not believed", self.micros));
        }
        if [self.input_tokens, self.output_tokens].into_iter().flatten().any(|tokens| tokens > TOKENS_MAX) {
            return Err("so many tokens are not believed".to_owned());
        }
        if [&self.provider, &self.model].into_iter().flatten().any(|name| name.len() > NAME_BYTES_MAX) {
            return Err(format!("`provider` and `model` have {NAME_BYTES_MAX} bytes at most"));
        }
        Ok(())
    }

    /// Two costs of one attempt. Names that differ are dropped.
    pub fn plus(self, other: Self) -> Self {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or_default().saturating_add(other.unwrap_or_default())),
        };
        let same = |one: Option<String>, other: Option<String>| if one == other { one } else { None };
        Self {
            micros: self.micros.saturating_add(other.micros),
            unpriced: self.unpriced || other.unpriced,
            input_tokens: sum(self.input_tokens, other.input_tokens),
            output_tokens: sum(self.output_tokens, other.output_tokens),
            provider: same(self.provider, other.provider),
            model: same(self.model, other.model),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_add_up_and_have_bounds() {
        let call = |micros, model: &str| Cost {
            micros,
            unpriced: false,
            input_tokens: Some(10),
            output_tokens: None,
            provider: Some("acme".into()),
            model: Some(model.into()),
        };
        let both = call(1, "a").plus(call(2, "b"));
        assert_eq!((both.micros, both.input_tokens, both.output_tokens), (3, Some(20), None));
        assert_eq!((both.provider.as_deref(), both.model), (Some("acme"), None));
        assert_eq!(call(u64::MAX, "a").plus(call(1, "a")).micros, u64::MAX);
        assert_eq!(call(COST_MICROS_MAX, "a").check(), Ok(()));
        assert!(call(COST_MICROS_MAX + 1, "a").check().is_err());
        assert!(call(1, &"x".repeat(200)).check().is_err());
    }
}
