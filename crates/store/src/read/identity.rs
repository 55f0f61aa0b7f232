//! Who asks: keys by their lookup part, sessions and invites by their hashes, people by their names.

use interlock_core::ids::{DelegationId, KeyId, TenantId, UserId};
use interlock_core::json::Hash;
use interlock_core::time::Timestamp;

use crate::error::{CorruptRow, ReadError};
use crate::identity::{DelegationPage, DelegationRow, InviteRow, KeyRow, LoginFailures, UserRow, UserSessionRow};
use crate::sql::{Stmt, identity, ops};
use crate::store::Store;
use crate::value::{Row, Value, args};

impl Store {
    /// A value that was kept by `SetOnce`.
    pub async fn kept(&self, name: &str) -> Result<Option<String>, ReadError> {
        let mut rows = self.rows(&ops::META_GET, args![name]).await?;
        Ok(rows.first_mut().map(|row| row.text("value")).transpose()?)
    }

    /// Keys whose lookup part this is: one, unless two were made alike.
    pub async fn find_keys(&self, lookup: &str) -> Result<Vec<KeyRow>, ReadError> {
        let rows = self.rows(&identity::KEY_FIND, args![lookup]).await?;
        Ok(rows.into_iter().map(key).collect::<Result<_, _>>()?)
    }

    pub async fn key(&self, tenant: TenantId, id: KeyId) -> Result<Option<KeyRow>, ReadError> {
        self.one(&identity::KEY_GET, args![tenant, id], key).await
    }

    /// Newest first; `after` is the last one of the page before.
    pub async fn keys(&self, tenant: TenantId, after: Option<KeyId>, limit: usize) -> Result<Vec<KeyRow>, ReadError> {
        let below = after.map_or(Value::Id([0xff; 16]), Value::from);
        let rows = self.rows(&identity::KEY_LIST, args![tenant, below, limit]).await?;
        Ok(rows.into_iter().map(key).collect::<Result<_, _>>()?)
    }

    pub async fn user(&self, tenant: TenantId, id: UserId) -> Result<Option<UserRow>, ReadError> {
        self.one(&identity::USER_GET, args![tenant, id], user).await
    }

    pub async fn user_named(&self, tenant: TenantId, name: &str) -> Result<Option<UserRow>, ReadError> {
        self.one(&identity::USER_NAMED, args![tenant, name], user).await
    }

    /// The person for whom `issuer` vouches under the name `subject`.
    pub async fn user_vouched(
        &self,
        tenant: TenantId,
        issuer: &str,
        subject: &str,
    ) -> Result<Option<UserRow>, ReadError> {
        self.one(&identity::USER_VOUCHED, args![tenant, issuer, subject], user).await
    }

    /// Newest first; `after` is the last one of the page before.
    pub async fn users(
        &self,
        tenant: TenantId,
        after: Option<UserId>,
        limit: usize,
    ) -> Result<Vec<UserRow>, ReadError> {
        let below = after.map_or(Value::Id([0xff; 16]), Value::from);
        let rows = self.rows(&identity::USER_LIST, args![tenant, below, limit]).await?;
        Ok(rows.into_iter().map(user).collect::<Result<_, _>>()?)
    }

    pub async fn user_session(&self, token_hash: Hash) -> Result<Option<UserSessionRow>, ReadError> {
        self.one(&identity::SESSION_FIND, args![token_hash], session).await
    }

    pub async fn invite(&self, token_hash: Hash) -> Result<Option<InviteRow>, ReadError> {
        self.one(&identity::INVITE_FIND, args![token_hash], invite).await
    }

    pub async fn delegation(&self, tenant: TenantId, id: DelegationId) -> Result<Option<DelegationRow>, ReadError> {
        self.one(&identity::DELEGATION_GET, args![tenant, id], delegation).await
    }

    /// Newest first.
    pub async fn delegations(&self, tenant: TenantId, page: DelegationPage) -> Result<Vec<DelegationRow>, ReadError> {
        let below = page.after.map_or(Value::Id([0xff; 16]), Value::from);
        let args = args![tenant, below, page.over_by, page.limit];
        let rows = self.rows(&identity::DELEGATION_LIST, args).await?;
        Ok(rows.into_iter().map(delegation).collect::<Result<_, _>>()?)
    }

    /// What holds at `now` of what a person has lent, and of what was lent to them.
    pub async fn delegations_of(
        &self,
        tenant: TenantId,
        person: &str,
        now: Timestamp,
    ) -> Result<(Vec<DelegationRow>, Vec<DelegationRow>), ReadError> {
        let find = async |stmt| -> Result<Vec<DelegationRow>, ReadError> {
            let rows = self.rows(stmt, args![tenant, person, now]).await?;
            Ok(rows.into_iter().map(delegation).collect::<Result<_, _>>()?)
        };
        Ok((find(&identity::DELEGATIONS_BY).await?, find(&identity::DELEGATIONS_TO).await?))
    }

    pub async fn login_failures(&self, tenant: TenantId, name: &str) -> Result<Option<LoginFailures>, ReadError> {
        self.one(&identity::LOGIN_FAILURES, args![tenant, name], login_failures).await
    }

    async fn one<T>(
        &self,
        stmt: &'static Stmt,
        args: Vec<Value>,
        read: fn(Row) -> Result<T, CorruptRow>,
    ) -> Result<Option<T>, ReadError> {
        Ok(self.rows(stmt, args).await?.into_iter().next().map(read).transpose()?)
    }
}

fn key(mut row: Row) -> Result<KeyRow, CorruptRow> {
    Ok(KeyRow {
        tenant: row.id("tenant_id")?,
        id: row.id("key_id")?,
        lookup: row.text("lookup")?,
        hash: row.hash("hash")?,
        name: row.text("name")?,
        client: row.text("client")?,
        owner: row.opt_text("owner")?,
        roles: row.name("roles")?,
        workspace: row.opt_text("workspace")?,
        installation: row.flag("installation")?,
        requests_per_min: row.opt_num("requests_per_min")?,
        created_at: row.time("created_at")?,
        created_by: row.opt_text("created_by")?,
        expires_at: row.opt_time("expires_at")?,
        revoked_at: row.opt_time("revoked_at")?,
        last_used_at: row.opt_time("last_used_at")?,
    })
}

fn user(mut row: Row) -> Result<UserRow, CorruptRow> {
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

fn delegation(mut row: Row) -> Result<DelegationRow, CorruptRow> {
    Ok(DelegationRow {
        tenant: row.id("tenant_id")?,
        id: row.id("delegation_id")?,
        delegator: row.text("delegator")?,
        delegate: row.text("delegate")?,
        from_at: row.time("from_at")?,
        until_at: row.time("until_at")?,
        reason: row.text("reason")?,
        created_at: row.time("created_at")?,
        created_by: row.text("created_by")?,
        revoked_at: row.opt_time("revoked_at")?,
        revoked_by: row.opt_text("revoked_by")?,
    })
}

fn login_failures(mut row: Row) -> Result<LoginFailures, CorruptRow> {
    Ok(LoginFailures { count: row.num("failures")?, last_at: row.time("failed_at")? })
}
