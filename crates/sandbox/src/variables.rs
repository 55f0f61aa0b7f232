//! Variables that a workflow sets for a command. A command is judged by its arguments, and a variable can say the same as an
//! argument: where a program finds its configuration, or which code it runs. So a rule names the variables that may be set
//! ([`VariablePattern`]), and those that change which code runs are refused whatever a rule says.

use std::fmt;
use std::str::FromStr;

use interlock_argv::{all_change_code, changes_code};

/// The name of a variable, or with `*` at its end all names that begin so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariablePattern {
    start: String,
    is_prefix: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` cannot be a variable of a rule: {what}. Write `APP_ENV`, or `RELEASE_*` for all names that begin so")]
pub struct InvalidVariable {
    text: String,
    what: &'static str,
}

impl VariablePattern {
    pub(crate) fn fits(&self, name: &str) -> bool {
        if self.is_prefix { name.starts_with(&self.start) } else { name == self.start }
    }
}

impl fmt::Display for VariablePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.start, if self.is_prefix { "*" } else { "" })
    }
}

impl FromStr for VariablePattern {
    type Err = InvalidVariable;

    fn from_str(text: &str) -> Result<Self, InvalidVariable> {
        let invalid = |what| Err(InvalidVariable { text: text.chars().take(200).collect(), what });
        let (start, is_prefix) = text.strip_suffix('*').map_or((text, false), |start| (start, true));
        if !start.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return invalid("it does not begin with a letter or `_`");
        }
        if !start.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return invalid("a name has letters, digits and `_`");
        }
        if changes_code(start) || (is_prefix && all_change_code(start)) {
            return invalid("it changes which code a program runs, and no rule can allow that");
        }
        Ok(Self { start: start.to_owned(), is_prefix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_name_or_the_beginning_of_names() {
        let pattern = |text: &str| text.parse::<VariablePattern>().unwrap();
        assert!(pattern("APP_ENV").fits("APP_ENV") && !pattern("APP_ENV").fits("APP_ENV2"));
        assert!(pattern("NODE_ENV").fits("NODE_ENV"));
        assert!(pattern("RELEASE_*").fits("RELEASE_ID") && !pattern("RELEASE_*").fits("PRERELEASE_ID"));
        assert_eq!(pattern("RELEASE_*").to_string(), "RELEASE_*");
        for (text, why) in [
            ("", "begin with"),
            ("*", "begin with"),
            ("1A", "begin with"),
            ("A*B", "letters"),
            ("A B", "letters"),
            ("LD_PRELOAD", "which code"),
            ("GIT_*", "which code"),
            ("NODE_ENV*", "which code"),
        ] {
            let said = text.parse::<VariablePattern>().unwrap_err().to_string();
            assert!(said.contains(why) && said.contains("RELEASE_*"), "{said}");
        }
    }
}
