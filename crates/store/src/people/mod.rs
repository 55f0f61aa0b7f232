//! People: accounts, their browser sessions, invites, and failed logins.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{InviteRow, LoginFailures, UserRow, UserSessionRow};
pub use writes::{
    AddInvite, AddUser, ChangeUser, CountLogin, EndUserSession, EndUserSessions, ForgetLoginFailures, InviteUser,
    NoteLoginFailure, NoteSignIn, OpenUserSession, TouchUserSession, UseInvite,
};
