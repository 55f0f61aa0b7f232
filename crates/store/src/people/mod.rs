//! People: accounts, their visits with a browser, invites, and wrong passwords.

mod reads;
mod rows;
pub(crate) mod sql;

pub use rows::{InviteRow, LoginFailures, UserRow, UserSessionRow};
