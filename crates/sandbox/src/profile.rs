//! The four profiles, by the names that workflows use.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::spec::{self, Spec};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    ProdCritical,
    ProdStandard,
    StagingStandard,
    DevFlex,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a profile: write prod-critical, prod-standard, staging-standard or dev-flex")]
pub struct UnknownProfile(String);

impl Profile {
    pub const ALL: &[Self] = &[Self::ProdCritical, Self::ProdStandard, Self::StagingStandard, Self::DevFlex];

    pub const fn name(self) -> &'static str {
        match self {
            Self::ProdCritical => "prod-critical",
            Self::ProdStandard => "prod-standard",
            Self::StagingStandard => "staging-standard",
            Self::DevFlex => "dev-flex",
        }
    }

    /// What the profile consists of.
    pub const fn spec(self) -> &'static Spec {
        match self {
            Self::ProdCritical => &spec::PROD_CRITICAL,
            Self::ProdStandard => &spec::PROD_STANDARD,
            Self::StagingStandard => &spec::STAGING_STANDARD,
            Self::DevFlex => &spec::DEV_FLEX,
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        let known = Self::ALL.iter().find(|profile| profile.name() == text);
        known.copied().ok_or_else(|| UnknownProfile(text.chars().take(80).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        for profile in Profile::ALL {
            assert_eq!(profile.name().parse(), Ok(*profile));
            assert_eq!(serde_json::to_value(profile).unwrap(), profile.name());
        }
        assert!("prod-strict".parse::<Profile>().unwrap_err().to_string().contains("prod-critical"));
    }
}
