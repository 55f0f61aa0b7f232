use interlock_core::ids::{TenantId, UserId};
use interlock_core::json::Hash;
use interlock_core::time::Timestamp;

use super::{InviteRow, LoginFailures, UserRow, UserSessionRow, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, Value, args};

impl Store {
    pub async fn user(&self, tenant: TenantId, id: UserId) -> Result<Option<UserRow>, ReadError> {
        self.found(&sql::USER_GET, args![tenant, id], user).await
    }

    pub async fn user_named(&self, tenant: TenantId, name: &str) -> Result<Option<UserRow>, ReadError> {
        self.found(&sql::USER_NAMED, args![tenant, name], user).await
    }

    /// The user whose name differs from this one by capital letters at most.
    pub async fn user_alike(&self, tenant: TenantId, name: &str) -> Result<Option<UserRow>, ReadError> {
        self.found(&sql::USER_ALIKE, args![tenant, name], user).await
    }

    /// The person for whom `issuer` vouches under the name `subject`.
    pub async fn user_vouched(
        &self,
        tenant: TenantId,
        issuer: &str,
        subject: &str,
    ) -> Result<Option<UserRow>, ReadError> {
        self.found(&sql::USER_VOUCHED, args![tenant, issuer, subject], user).await
    }

    /// Newest first; `after` is the last one of the page before.
    pub async fn users(
        &self,
        tenant: TenantId,
        after: Option<UserId>,
        limit: usize,
    ) -> Result<Vec<UserRow>, ReadError> {
        let below = after.map_or(Value::Id([0xff; 16]), Value::from);
        let rows = self.rows(&sql::USER_LIST, args![tenant, below, limit]).await?;
        Ok(rows.into_iter().map(user).collect::<Result<_, _>>()?)
    }

    pub async fn user_session(&self, token_hash: Hash) -> Result<Option<UserSessionRow>, ReadError> {
        self.found(&sql::SESSION_FIND, args![token_hash], session).await
    }

    /// When a person has last shown who they are, in a visit that goes on.
    pub async fn proven_at(
        &self,
        tenant: TenantId,
        user: UserId,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, ReadError> {
        self.found(&sql::SESSIONS_PROVEN, args![tenant, user, now], |mut row| row.time("created_at")).await
    }

    pub async fn invite(&self, token_hash: Hash) -> Result<Option<InviteRow>, ReadError> {
        self.found(&sql::INVITE_FIND, args![token_hash], invite).await
    }

    pub async fn login_failures(&self, tenant: TenantId, name: &str) -> Result<Option<LoginFailures>, ReadError> {
        self.found(&sql::LOGIN_FAILURES, args![tenant, name], login_failures).await
    }
}

pub(super) fn user(mut row: Row) -> Result<UserRow, CorruptRow> {
    Ok(UserRow {
        tenant: row.id("tenant_id")?,
        id: row.id("user_id")?,
        name: row.text("name")?,
        display_name: row.opt_text("display_name")?,
        email: row.opt_text("email")?,
        roles: row.name("roles")?,
        groups: row.decoded("groups")?,
        installation: row.flag("installation")?,
        password: row.opt_text("password")?,
        issuer: row.opt_text("issuer")?,
        subject: row.opt_text("subject")?,
        created_at: row.time("created_at")?,
        created_by: row.opt_text("created_by")?,
        disabled_at: row.opt_time("disabled_at")?,
        last_login_at: row.opt_time("last_login_at")?,
        access_changed_at: row.opt_time("access_changed_at")?,
        access_changed_by: row.opt_text("access_changed_by")?,
    })
}

fn session(mut row: Row) -> Result<UserSessionRow, CorruptRow> {
    Ok(UserSessionRow {
        tenant: row.id("tenant_id")?,
        token_hash: row.hash("token_hash")?,
        user: row.id("user_id")?,
        created_at: row.time("created_at")?,
        expires_at: row.time("expires_at")?,
        last_used_at: row.time("last_used_at")?,
    })
}

fn invite(mut row: Row) -> Result<InviteRow, CorruptRow> {
    Ok(InviteRow {
        tenant: row.id("tenant_id")?,
        token_hash: row.hash("token_hash")?,
        user: row.opt_id("user_id")?,
        created_at: row.time("created_at")?,
        expires_at: row.time("expires_at")?,
        used_at: row.opt_time("used_at")?,
    })
}

fn login_failures(mut row: Row) -> Result<LoginFailures, CorruptRow> {
    Ok(LoginFailures { count: row.num("failures")?, last_at: row.time("failed_at")? })
}
