//! A person accepts an invite: the link is used up and the account gets its password, or neither.

use super::sql;
use super::writes::{AddUser, ChangeUser, EndUserSessions, UseInvite};
use crate::audit::{AuditNote, add_note};
use crate::db::Db;
use crate::error::DbError;
use crate::value::args;
use crate::write::{Changed, Done, Stored, Write, boxed, of_tenant};

/// The account of an invite, with the password that its person has chosen.
#[derive(Debug, Clone)]
pub enum InvitedAccount {
    /// The first one of the tenant.
    New(Box<AddUser>),
    /// One that is there. Its visits end.
    Known(Box<ChangeUser>),
}

#[derive(Debug, Clone)]
pub struct AcceptInvite {
    pub used: UseInvite,
    pub account: InvitedAccount,
    /// What the audit log tells of the visits that end, where there are any.
    pub ended: Option<AuditNote>,
}

/// What became of an invite that a person accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InviteOutcome {
    Accepted,
    /// It has been used, is too old, or never was.
    Over,
    /// The account is not as it was read, or its name is taken. The invite stays as it was.
    AccountChanged,
}

impl Done for InviteOutcome {
    fn is_done(&self) -> bool {
        *self == Self::Accepted
    }
}

impl Write for AcceptInvite {
    type Answer = InviteOutcome;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<InviteOutcome, DbError> {
        let UseInvite { tenant, token_hash, .. } = self.used;
        // First the link, which keeps others from it until this is committed: of two at the same moment one gets in.
        if self.used.apply(db).await? == Changed::Gone {
            return Ok(InviteOutcome::Over);
        }
        let is_written = match &self.account {
            InvitedAccount::New(added) => added.apply(db).await? == Stored::Stored,
            InvitedAccount::Known(change) => change.apply(db).await? == Changed::Done,
        };
        if !is_written {
            db.execute(&sql::INVITE_PUT_BACK, args![tenant, token_hash]).await?;
            return Ok(InviteOutcome::AccountChanged);
        }
        if let InvitedAccount::Known(change) = &self.account {
            let visits = EndUserSessions { tenant, user: change.user.id }.apply(db).await?;
            if let Some(note) = self.ended.as_ref().filter(|_| visits > 0) {
                add_note(db, note).await?;
            }
        }
        Ok(InviteOutcome::Accepted)
    }
}

of_tenant! {
    AcceptInvite.used.tenant;
}
