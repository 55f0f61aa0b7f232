//! Who may do what: signing in, tenants, people and their API keys.

pub mod change;
pub mod flag;
pub mod key;
pub mod key_file;
pub mod login;
pub mod tenant;
pub mod user;
