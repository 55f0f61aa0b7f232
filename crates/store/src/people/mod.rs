//! People: accounts, their browser sessions, invites, and failed logins.

mod accept;
mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use accept::{AcceptInvite, InviteOutcome, InvitedAccount};
pub use rows::{InviteRow, LoginFailures, UserRow, UserSessionRow};
pub use writes::{
    AddInvite, AddUser, ChangeUser, CountLogin, EndUserSession, EndUserSessions, ForgetLoginFailures, InviteUser,
    NoteLoginFailure, NoteSignIn, OpenUserSession, TouchUserSession, UseInvite,
};
