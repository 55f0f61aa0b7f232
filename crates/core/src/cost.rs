//! What an attempt has cost, as its worker reports it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The largest cost that is believed: a billion of whatever `limits.spend` is given in.
pub const COST_MICROS_MAX: u64 = 1_000_000_000_000_000;
/// The most tokens that are believed.
pub const TOKENS_MAX: u64 = 1_000_000_000_000;
pub const NAME_BYTES_MAX: usize = 128;
/// How long the name of a unit may be.
pub const UNIT_BYTES_MAX: usize = 32;

/// What the name of a unit must be, such as `USD` or `gpu-seconds`.
pub fn check_unit(unit: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = unit.starts_with(|c: char| c.is_ascii_alphabetic()) && unit.chars().all(is_plain);
    if is_name && unit.len() <= UNIT_BYTES_MAX {
        return Ok(());
    }
    Err(format!(
        "the name of a unit has at most {UNIT_BYTES_MAX} letters, digits, `-`, `_` and `.`, and begins with a letter, \
         such as `USD`"
    ))
}

/// Money and tokens. They add up on the run, and count against the workflow's `limits.spend`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Millionths of the unit in which the workflow gives `limits.spend`.
    pub micros: u64,
    /// That unit, if it is said: it has to be the one that the workflow names as `limits.unit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
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
        if let Some(unit) = &self.unit {
            check_unit(unit)?;
        }
        if [&self.provider, &self.model].into_iter().flatten().any(|name| name.len() > NAME_BYTES_MAX) {
            return Err(format!("`provider` and `model` have {NAME_BYTES_MAX} bytes at most"));
        }
        Ok(())
    }

    /// Refuses a cost in another unit than the workflow's: amounts of two units have no sum.
    pub fn check_unit_of(&self, workflow: Option<&str>) -> Result<(), String> {
        match (self.unit.as_deref(), workflow) {
            (Some(unit), Some(wanted)) if unit != wanted => Err(format!(
                "the cost is in `{unit}`, and the workflow counts in `{wanted}` (`limits.unit`): report it in \
                 `{wanted}`"
            )),
            (Some(unit), None) => Err(format!(
                "the cost is in `{unit}`, and the workflow names no unit: write `limits: {{ unit: {unit} }}` in it, or \
                 report the cost without `unit`"
            )),
            _ => Ok(()),
        }
    }

    /// Two costs of one attempt. Names that differ are dropped. Amounts of two units have no sum: the price is not known.
    pub fn plus(self, other: Self) -> Self {
        let two_units = self.unit.is_some() && other.unit.is_some() && self.unit != other.unit;
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or_default().saturating_add(other.unwrap_or_default())),
        };
        let same = |one: Option<String>, other: Option<String>| if one == other { one } else { None };
        Self {
            micros: self.micros.saturating_add(other.micros),
            unit: if two_units { None } else { self.unit.or(other.unit) },
            unpriced: self.unpriced || other.unpriced || two_units,
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
            unit: None,
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

    #[test]
    fn a_cost_is_in_the_unit_of_the_workflow() {
        let cost = |unit: Option<&str>| Cost { micros: 5, unit: unit.map(str::to_owned), ..Cost::default() };
        assert_eq!(cost(None).check_unit_of(Some("EUR")), Ok(()), "what names no unit is in the workflow's");
        assert_eq!(cost(Some("EUR")).check_unit_of(Some("EUR")), Ok(()));
        let says = cost(Some("USD")).check_unit_of(Some("EUR")).unwrap_err();
        assert!(says.contains("`USD`") && says.contains("report it in `EUR`"), "{says}");
        let says = cost(Some("USD")).check_unit_of(None).unwrap_err();
        assert!(says.contains("limits: { unit: USD }"), "{says}");

        let both = cost(Some("EUR")).plus(cost(None));
        assert_eq!((both.micros, both.unit.as_deref(), both.unpriced), (10, Some("EUR"), false));
        let mixed = cost(Some("EUR")).plus(cost(Some("USD")));
        assert_eq!((mixed.unit, mixed.unpriced), (None, true));

        for unit in ["USD", "gpu-seconds", "v1.credits", &"x".repeat(UNIT_BYTES_MAX)] {
            assert_eq!(cost(Some(unit)).check(), Ok(()), "{unit}");
        }
        for unit in ["", "€", "US D", "1st", &"x".repeat(UNIT_BYTES_MAX + 1)] {
            assert!(cost(Some(unit)).check().is_err(), "{unit}");
        }
    }
}
