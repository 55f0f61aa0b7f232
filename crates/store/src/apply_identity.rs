//! Carries out an [`IdentityOp`] inside a lane's transaction.

use crate::db::Db;
use crate::delegations::{self, DelegationRow};
use crate::error::DbError;
use crate::identity::IdentityOp;
use crate::keys::{self, KeyRow};
use crate::meta;
use crate::op::OpAnswer;
use crate::people::{self, UserRow};
use crate::sql::Stmt;
use crate::value::{Value, args};

/// Marks that the store has had its first key.
const BOOTSTRAPPED: &str = "bootstrapped";

pub(crate) async fn apply<D: Db>(db: &D, op: &IdentityOp) -> Result<OpAnswer, DbError> {
    match op {
        IdentityOp::SetOnce { name, value } => stored(db, &meta::sql::SET_ONCE, args![*name, value]).await,
        IdentityOp::AddKey { key, first } => {
            if *first && db.execute(&meta::sql::SET_ONCE, args![BOOTSTRAPPED, key.id.to_string()]).await? == 0 {
                return Ok(OpAnswer::Duplicate);
            }
            if !*first {
                db.execute(&meta::sql::SET_ONCE, args![BOOTSTRAPPED, key.id.to_string()]).await?;
            }
            stored(db, &keys::sql::KEY_ADD, key_values(key)).await
        }
        IdentityOp::RevokeKey { tenant, key, at } => {
            changed(db, &keys::sql::KEY_REVOKE, args![*at, *tenant, *key]).await
        }
        IdentityOp::RotateKey { key, old, old_until } => {
            if db.execute(&keys::sql::KEY_SHORTEN, args![*old_until, key.tenant, *old]).await? == 0 {
                return Ok(OpAnswer::Gone);
            }
            stored(db, &keys::sql::KEY_ADD, key_values(key)).await
        }
        IdentityOp::TouchKey { tenant, key, at } => changed(db, &keys::sql::KEY_TOUCH, args![*at, *tenant, *key]).await,
        IdentityOp::AddUser(user) => stored(db, &people::sql::USER_ADD, new_user_values(user)?).await,
        IdentityOp::ChangeUser(user) => changed(db, &people::sql::USER_CHANGE, changed_user_values(user)?).await,
        IdentityOp::SignedIn { tenant, user, at } => {
            changed(db, &people::sql::USER_SIGNED_IN, args![*at, *tenant, *user]).await
        }
        IdentityOp::OpenSession(row) => {
            let values = args![row.tenant, row.token_hash, row.user, row.created_at, row.expires_at, row.last_used_at];
            stored(db, &people::sql::SESSION_OPEN, values).await
        }
        IdentityOp::TouchSession { tenant, token_hash, at } => {
            changed(db, &people::sql::SESSION_TOUCH, args![*at, *tenant, *token_hash]).await
        }
        IdentityOp::EndSession { tenant, token_hash } => {
            changed(db, &people::sql::SESSION_END, args![*tenant, *token_hash]).await
        }
        IdentityOp::EndSessionsOf { tenant, user } => {
            Ok(OpAnswer::Count(db.execute(&people::sql::SESSIONS_END, args![*tenant, *user]).await?))
        }
        IdentityOp::AddInvite(row) => {
            let values = args![row.tenant, row.token_hash, row.user, row.created_at, row.expires_at];
            stored(db, &people::sql::INVITE_ADD, values).await
        }
        IdentityOp::UseInvite { tenant, token_hash, at } => {
            changed(db, &people::sql::INVITE_USE, args![*at, *tenant, *token_hash]).await
        }
        IdentityOp::AddDelegation { row, open_max } => {
            stored(db, &delegations::sql::DELEGATION_ADD, delegation_values(row, *open_max)).await
        }
        IdentityOp::RevokeDelegation { tenant, delegation, at, by } => {
            changed(db, &delegations::sql::DELEGATION_REVOKE, args![*at, by, *tenant, *delegation]).await
        }
        IdentityOp::CountLogin { tenant, name, at, afresh_before } => {
            let mut rows = db.query(&people::sql::LOGIN_COUNT, args![*tenant, name, *at, *afresh_before]).await?;
            let count = rows.first_mut().map(|row| row.num("failures")).transpose()?;
            Ok(OpAnswer::Count(count.unwrap_or(0)))
        }
        IdentityOp::LoginFailed { tenant, name, at } => {
            changed(db, &people::sql::LOGIN_FAILED, args![*at, *tenant, name]).await
        }
        IdentityOp::ForgetLogins { tenant, name } => {
            changed(db, &people::sql::LOGIN_FORGET, args![*tenant, name]).await
        }
    }
}

async fn stored<D: Db>(db: &D, stmt: &'static Stmt, values: Vec<Value>) -> Result<OpAnswer, DbError> {
    Ok(if db.execute(stmt, values).await? == 1 { OpAnswer::Stored } else { OpAnswer::Duplicate })
}

async fn changed<D: Db>(db: &D, stmt: &'static Stmt, values: Vec<Value>) -> Result<OpAnswer, DbError> {
    Ok(if db.execute(stmt, values).await? == 1 { OpAnswer::Done } else { OpAnswer::Gone })
}

fn key_values(key: &KeyRow) -> Vec<Value> {
    args![
        key.tenant,
        key.id,
        &key.lookup,
        key.hash,
        &key.name,
        &key.client,
        key.owner.as_ref(),
        key.roles.to_string(),
        key.workspace.as_ref(),
        key.installation,
        key.requests_per_min,
        key.created_at,
        key.created_by.as_ref(),
        key.expires_at
    ]
}

fn delegation_values(row: &DelegationRow, open_max: u32) -> Vec<Value> {
    args![
        row.tenant,
        row.id,
        &row.delegator,
        &row.delegate,
        row.from_at,
        row.until_at,
        &row.reason,
        row.created_at,
        &row.created_by,
        open_max
    ]
}

fn new_user_values(user: &UserRow) -> Result<Vec<Value>, DbError> {
    Ok(args![
        user.tenant,
        user.id,
        &user.name,
        user.display_name.as_ref(),
        user.email.as_ref(),
        user.roles.to_string(),
        groups(user)?,
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
        groups(user)?,
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

fn groups(user: &UserRow) -> Result<String, DbError> {
    serde_json::to_string(&user.groups).map_err(|error| DbError::Other(error.to_string()))
}
