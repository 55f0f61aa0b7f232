//! Within which bounds a worker works: what its enrolment token says, and then its certificate.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::plan::command::{ENVIRONMENTS, UNKNOWN_ENVIRONMENT};
use crate::plan::rules::PROFILES;
use crate::text::nearest::hint;

/// Stands for all of them.
pub const ANY: &str = "*";
/// Names of one list.
pub const NAMES_MAX: usize = 16;
pub const NAME_BYTES_MAX: usize = 64;

/// What a worker may do at most. Registration can only narrow it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerTerms {
    /// The environments whose runs it takes, `*` for all. A run's environment is that of its profile: `prod`, `staging` or
    /// `dev`; `none` without a profile, and `unknown` with one of another name.
    pub environments: BTreeSet<String>,
    /// The network segments that it is in.
    #[serde(default)]
    pub segments: BTreeSet<String>,
    /// The profiles under which it runs commands, `*` for all; none where it runs no commands.
    #[serde(default)]
    pub profiles: BTreeSet<String>,
}

impl WorkerTerms {
    /// Whether the names can stand in a certificate, and there are not too many.
    pub fn check(&self) -> Result<(), String> {
        let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        for (what, names) in
            [("environments", &self.environments), ("segments", &self.segments), ("profiles", &self.profiles)]
        {
            if names.len() > NAMES_MAX {
                return Err(format!("{what}: at most {NAMES_MAX} names"));
            }
            let fits = |name: &str| {
                name == ANY && what != "segments"
                    || !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(named)
            };
            if let Some(name) = names.iter().find(|name| !fits(name)) {
                let name: String = name.chars().take(NAME_BYTES_MAX).collect();
                return Err(format!("{what}: `{name}` is no name; write letters, digits, `-`, `_` and `.`"));
            }
        }
        if self.environments.is_empty() {
            return Err("environments: name at least one, or `*` for all".to_owned());
        }
        Ok(())
    }

    /// Whether there are runs of these environments, and commands of these profiles. A token with a misspelled name would make a
    /// worker that takes nothing and is not told why.
    pub fn check_known(&self) -> Result<(), String> {
        for (what, names, known) in
            [("environments", &self.environments, ENVIRONMENTS), ("profiles", &self.profiles, PROFILES)]
        {
            if let Some(name) = names.iter().find(|name| *name != ANY && !known.contains(&name.as_str())) {
                // A profile that nobody knows is none that a person means.
                let meant = known.iter().copied().filter(|name| *name != UNKNOWN_ENVIRONMENT);
                return Err(format!("{what}: `{name}` is not known; {}", hint(name, meant)));
            }
        }
        Ok(())
    }

    /// The bounds of a worker that names the environments whose runs it takes. It can narrow those of its certificate and never
    /// widen them; without a certificate it narrows all of them.
    pub fn narrowed(certified: Option<Self>, named: Option<BTreeSet<String>>) -> Option<Self> {
        let Some(named) = named else { return certified };
        Some(match certified {
            Some(terms) => {
                let environments = named.into_iter().filter(|name| terms.allows_environment(name)).collect();
                Self { environments, ..terms }
            }
            None => Self { environments: named, segments: BTreeSet::new(), profiles: [ANY.to_owned()].into() },
        })
    }

    /// Whether it takes runs of this environment.
    pub fn allows_environment(&self, environment: &str) -> bool {
        self.environments.contains(ANY) || self.environments.contains(environment)
    }

    pub fn allows_profile(&self, profile: &str) -> bool {
        self.profiles.contains(ANY) || self.profiles.contains(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn terms_allow_what_they_name_and_nothing_else() {
        let terms = WorkerTerms { environments: set(&["dev"]), profiles: set(&["dev-flex"]), ..WorkerTerms::default() };
        assert!(terms.check().is_ok());
        assert!(terms.allows_environment("dev") && !terms.allows_environment("prod"));
        assert!(!terms.allows_environment("none"), "a run without a profile is not a run of dev");
        assert!(terms.allows_profile("dev-flex") && !terms.allows_profile("prod-critical"));
        let any = WorkerTerms { environments: set(&[ANY]), ..WorkerTerms::default() };
        assert!(any.allows_environment("none") && any.allows_environment("prod") && !any.allows_profile("dev-flex"));
    }

    #[test]
    fn a_worker_narrows_its_environments_and_never_widens_them() {
        let certified = |names: &[&str]| Some(WorkerTerms { environments: set(names), ..WorkerTerms::default() });
        let narrowed = |certified, named: &[&str]| WorkerTerms::narrowed(certified, Some(set(named))).unwrap();
        assert_eq!(narrowed(certified(&["dev", "staging"]), &["dev"]).environments, set(&["dev"]));
        assert_eq!(narrowed(certified(&[ANY]), &["dev"]).environments, set(&["dev"]));
        for named in ["prod", ANY] {
            let terms = narrowed(certified(&["dev"]), &[named]);
            assert!(!terms.allows_environment("prod") && !terms.allows_environment("dev"), "{named}");
        }
        let unbound = narrowed(None, &["dev"]);
        assert!(unbound.allows_environment("dev") && !unbound.allows_environment("prod"));
        assert!(!unbound.allows_environment("none") && unbound.allows_profile("dev-flex"));
        assert_eq!(WorkerTerms::narrowed(None, None), None);
        assert_eq!(WorkerTerms::narrowed(certified(&["dev"]), None), certified(&["dev"]));
    }

    #[test]
    fn environments_and_profiles_that_nobody_knows_are_told() {
        for profile in PROFILES.iter().copied().map(Some).chain([None, Some("ours")]) {
            assert!(ENVIRONMENTS.contains(&crate::plan::command::environment_of(profile)), "{profile:?}");
        }
        let known = |environment: &str, profile: &str| {
            let (environments, profiles) = (set(&["dev", environment]), set(&["dev-flex", profile]));
            WorkerTerms { environments, profiles, ..WorkerTerms::default() }.check_known()
        };
        for (environment, profile) in [("prod", "prod-critical"), ("none", ANY), (ANY, ANY), ("unknown", "dev-flex")] {
            assert_eq!(known(environment, profile), Ok(()));
        }
        let said = known("stagging", ANY).unwrap_err();
        assert_eq!(said, "environments: `stagging` is not known; did you mean `staging`?");
        let said = known("mars", ANY).unwrap_err();
        assert!(said.ends_with("there are `prod`, `staging`, `dev`, `none`"), "{said}");
        let said = known("dev", "corp").unwrap_err();
        assert!(said.starts_with("profiles: `corp` is not known; ") && said.contains("`prod-critical`"), "{said}");
    }

    #[test]
    fn names_that_would_not_fit_a_certificate_are_refused() {
        for names in [vec![""], vec!["a,b"], vec!["a&b"], vec!["ä"], vec![&*"x".repeat(65)], vec![]] {
            let terms = WorkerTerms { environments: set(&names), ..WorkerTerms::default() };
            assert!(terms.check().is_err(), "{names:?}");
        }
        let terms = WorkerTerms { environments: set(&["dev"]), segments: set(&[ANY]), ..WorkerTerms::default() };
        assert!(terms.check().is_err(), "no worker is in every network");
    }
}
