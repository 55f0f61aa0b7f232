use interlock_core::ids::{TenantId, UserId};
use interlock_core::json::Hash;
use interlock_core::time::Timestamp;

use super::{InviteRow, UserRow, UserSessionRow, reads, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::value::{Value, args};
use crate::write::{Changed, Stored, Write, boxed, changed, json_list, of_tenant, stored};

/// [`Stored::Duplicate`] where the name or the subject is taken.
#[derive(Debug, Clone)]
pub struct AddUser(pub UserRow);

impl Write for AddUser {
    type Answer = Stored;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Stored, DbError> {
        stored(db, &sql::USER_ADD, new_user_values(&self.0)?).await
    }
}

/// Everything but the name, of an account that is still as it was read. [`Changed::Gone`] where another has changed it
/// since, or it is not there: what was decided about it meanwhile is not undone.
#[derive(Debug, Clone)]
pub struct ChangeUser {
    pub read: UserRow,
    pub user: UserRow,
}

impl Write for ChangeUser {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let Self { read, user } = self;
        let held = db.query(&sql::USER_HELD, args![user.tenant, user.id]).await?.pop();
        let held = held.map(reads::user).transpose()?;
        // Signing in changes nothing that is written here.
        let is_as_read = |held: UserRow| UserRow { last_login_at: read.last_login_at, ..held } == *read;
        if !held.is_some_and(is_as_read) {
            return Ok(Changed::Gone);
        }
        changed(db, &sql::USER_CHANGE, changed_user_values(user)?).await
    }
}

/// Notes when a person signed in.
#[derive(Debug, Clone, Copy)]
pub struct NoteSignIn {
    pub tenant: TenantId,
    pub user: UserId,
    pub at: Timestamp,
}

impl Write for NoteSignIn {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::USER_SIGNED_IN, args![self.at, self.tenant, self.user]).await
    }
}

/// Begins a person's visit.
#[derive(Debug, Clone, Copy)]
pub struct OpenUserSession(pub UserSessionRow);

impl Write for OpenUserSession {
    type Answer = Stored;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Stored, DbError> {
        let row = &self.0;
        let values = args![row.tenant, row.token_hash, row.user, row.created_at, row.expires_at, row.last_used_at];
        stored(db, &sql::SESSION_OPEN, values).await
    }
}

/// Notes that a visit goes on.
#[derive(Debug, Clone, Copy)]
pub struct TouchUserSession {
    pub tenant: TenantId,
    pub token_hash: Hash,
    pub at: Timestamp,
}

impl Write for TouchUserSession {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::SESSION_TOUCH, args![self.at, self.tenant, self.token_hash]).await
    }
}

#[derive(Debug, Clone, Copy)]
pub struct EndUserSession {
    pub tenant: TenantId,
    pub token_hash: Hash,
}

impl Write for EndUserSession {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::SESSION_END, args![self.tenant, self.token_hash]).await
    }
}

/// Ends all visits of a person. Answers how many there were.
#[derive(Debug, Clone, Copy)]
pub struct EndUserSessions {
    pub tenant: TenantId,
    pub user: UserId,
}

impl Write for EndUserSessions {
    type Answer = u64;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<u64, DbError> {
        db.execute(&sql::SESSIONS_END, args![self.tenant, self.user]).await
    }
}

#[derive(Debug, Clone, Copy)]
pub struct AddInvite(pub InviteRow);

impl Write for AddInvite {
    type Answer = Stored;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Stored, DbError> {
        let row = &self.0;
        let values = args![row.tenant, row.token_hash, row.user, row.created_at, row.expires_at];
        stored(db, &sql::INVITE_ADD, values).await
    }
}

/// An invite for a person, whose account notes that its access changes hands. [`Changed::Gone`] as for [`ChangeUser`].
#[derive(Debug, Clone)]
pub struct InviteUser {
    pub invite: InviteRow,
    pub account: ChangeUser,
}

impl Write for InviteUser {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let answer = self.account.apply(db).await?;
        if answer == Changed::Done {
            AddInvite(self.invite).apply(db).await?;
        }
        Ok(answer)
    }
}

/// [`Changed::Done`] once, and [`Changed::Gone`] if it has been used, is over, or never was.
#[derive(Debug, Clone, Copy)]
pub struct UseInvite {
    pub tenant: TenantId,
    pub token_hash: Hash,
    pub at: Timestamp,
}

impl Write for UseInvite {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::INVITE_USE, args![self.at, self.tenant, self.token_hash]).await
    }
}

/// Counts a try to sign in before the password is looked at. The count starts afresh if the last one is older than
/// `afresh_before`. Answers how many there are now.
#[derive(Debug, Clone)]
pub struct CountLogin {
    pub tenant: TenantId,
    pub name: String,
    pub at: Timestamp,
    pub afresh_before: Timestamp,
}

impl Write for CountLogin {
    type Answer = u64;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<u64, DbError> {
        let values = args![self.tenant, &self.name, self.at, self.afresh_before];
        let mut rows = db.query(&sql::LOGIN_COUNT, values).await?;
        Ok(rows.first_mut().map(|row| row.num("failures")).transpose()?.unwrap_or(0))
    }
}

/// The password was wrong: the wait counts from now.
#[derive(Debug, Clone)]
pub struct NoteLoginFailure {
    pub tenant: TenantId,
    pub name: String,
    pub at: Timestamp,
}

impl Write for NoteLoginFailure {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::LOGIN_FAILED, args![self.at, self.tenant, &self.name]).await
    }
}

/// The password was right.
#[derive(Debug, Clone)]
pub struct ForgetLoginFailures {
    pub tenant: TenantId,
    pub name: String,
}

impl Write for ForgetLoginFailures {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::LOGIN_FORGET, args![self.tenant, &self.name]).await
    }
}

of_tenant! {
    AddUser.0.tenant;
    ChangeUser.user.tenant;
    NoteSignIn.tenant;
    OpenUserSession.0.tenant;
    TouchUserSession.tenant;
    EndUserSession.tenant;
    EndUserSessions.tenant;
    AddInvite.0.tenant;
    InviteUser.invite.tenant;
    UseInvite.tenant;
    CountLogin.tenant;
    NoteLoginFailure.tenant;
    ForgetLoginFailures.tenant;
}

fn new_user_values(user: &UserRow) -> Result<Vec<Value>, DbError> {
    Ok(args![
        user.tenant,
        user.id,
        &user.name,
        user.display_name.as_ref(),
        user.email.as_ref(),
        user.roles.to_string(),
        json_list(&user.groups)?,
        user.installation,
        user.password.as_ref(),
        user.issuer.as_ref(),
        user.subject.as_ref(),
        user.created_at,
        user.created_by.as_ref(),
        user.disabled_at,
        user.access_changed_at,
        user.access_changed_by.as_ref()
    ])
}

fn changed_user_values(user: &UserRow) -> Result<Vec<Value>, DbError> {
    Ok(args![
        user.display_name.as_ref(),
        user.email.as_ref(),
        user.roles.to_string(),
        json_list(&user.groups)?,
        user.installation,
        user.password.as_ref(),
        user.issuer.as_ref(),
        user.subject.as_ref(),
        user.disabled_at,
        user.access_changed_at,
        user.access_changed_by.as_ref(),
        user.tenant,
        user.id
    ])
}
