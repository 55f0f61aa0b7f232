//! Addresses that are given to people.

use crate::pages::path;

/// The address by which a person sets a password.
pub fn setup_link(base: &str, token: &str) -> String {
    format!("{base}{}?token={token}", path::SETUP)
}

/// The address by which a signed-in person says which Slack user they are.
pub fn slack_link(base: &str, token: &str) -> String {
    format!("{base}{}?token={token}", path::SLACK_LINK)
}

/// Where people sign in.
pub fn login_link(base: &str) -> String {
    format!("{base}{}", path::LOGIN)
}
