//! What a command runs besides what its vector says plainly, as the rules are told it.

use std::collections::BTreeSet;

use interlock_argv::{StartedCommands, changes_code};
use serde::{Deserialize, Serialize};

/// Read out of the arguments alone: which files the names lead to is known to the worker, which looks once more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandFacts {
    /// What would run code from the arguments, or a command that they do not name plainly: `python`, `tar --to-command`.
    #[serde(deserialize_with = "Option::deserialize")]
    pub code: Option<String>,
    /// The names of all programs that may run, the command's own among them.
    pub programs: BTreeSet<String>,
    /// It starts other programs, here or elsewhere.
    pub starts_others: bool,
    /// What the arguments say besides themselves: the words of what is started elsewhere, and where paths with detours lead to.
    pub words: BTreeSet<String>,
    /// The variables that its arguments set, as in `env NAME=value`.
    pub variables: BTreeSet<String>,
    /// Of all variables that are set, those that change which code runs.
    pub code_variables: BTreeSet<String>,
}

impl CommandFacts {
    /// What is known of a command, and of the variables that its step sets.
    pub fn of(argv: &[String], env: &[String]) -> Self {
        let started = StartedCommands::of(argv, |_| Vec::new());
        let assigned = started.variables.iter().chain(&started.exported);
        let variables: BTreeSet<String> = assigned.map(|name| (*name).to_owned()).collect();
        let code_variables = variables.iter().chain(env).filter(|name| changes_code(name)).cloned().collect();
        Self {
            code: started.code().map(|code| code.by),
            programs: started.programs(),
            starts_others: started.starts_others(),
            words: started.words(),
            variables,
            code_variables,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where one is missing, nothing is known of it: least of all that it is nothing.
    #[test]
    fn every_field_has_to_be_there() {
        let whole = serde_json::to_value(CommandFacts::of(&["/bin/true".to_owned()], &[])).unwrap();
        let fields = whole.as_object().unwrap();
        assert_eq!((fields.len(), serde_json::from_value::<CommandFacts>(whole.clone()).is_ok()), (6, true));
        for field in fields.keys() {
            let mut without = fields.clone();
            without.remove(field);
            let refused = serde_json::from_value::<CommandFacts>(without.into()).unwrap_err();
            assert!(refused.to_string().contains(&format!("missing field `{field}`")), "{refused}");
        }
    }
}
