//! Addresses that are given to people.

use crate::pages::path;

/// The address by which a person sets a password.
pub fn setup_link(base: &str, token: &str) -> String {
    format!("{base}{}?token={token}", path::SETUP)
}
