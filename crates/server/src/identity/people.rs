//! People with accounts: what an account may look like, and the links by which a password is set.

use axum::http::StatusCode;
use interlock_core::ids::{TenantId, UserId};
use interlock_core::limits::{GROUPS_MAX, NAME_BYTES_MAX};
use interlock_core::tenant::identity::Roles;
use interlock_core::time::Timestamp;
use interlock_engine::EngineError;
use interlock_engine::audit::{Actor, AuditEvent};
use interlock_store::{
    AcceptInvite, AddInvite, AddUser, AttachedWrites, ChangeUser, EndUserSessions, FinishIdempotency, InviteOutcome,
    InviteRow, InvitedAccount, Stored, TenantWrite, UseInvite, UserRow,
};
use serde_json::json;

use super::key::random_text;
use super::{Caller, Identity, access, note};
use crate::api_error::ApiError;

const INVITE_CHARS: usize = 43;

/// How often the change of an account or a tenant is judged, each time as it is then, while others change it as well.
pub const CHANGE_TRIES: usize = 8;

/// A link that has just been made.
pub struct NewInvite {
    /// The secret part of the link.
    pub token: String,
    pub expires_at: Timestamp,
}

impl Identity {
    /// A link by which `user` sets a password; without a user, one that makes the tenant's first admin. It opens once its row
    /// is stored.
    pub fn draft_invite(&self, tenant: TenantId, user: Option<UserId>) -> (NewInvite, InviteRow) {
        let token = random_text(INVITE_CHARS);
        let now = self.engine().now();
        let expires_at = now + self.options().invite;
        let row = InviteRow {
            tenant,
            token_hash: self.secret().hash("invite", token.as_bytes()),
            user,
            created_at: now,
            expires_at,
            used_at: None,
        };
        (NewInvite { token, expires_at }, row)
    }

    /// Makes a link by which a person becomes the tenant's first admin.
    pub async fn invite_first_admin(&self, tenant: TenantId) -> Result<NewInvite, EngineError> {
        let (invite, row) = self.draft_invite(tenant, None);
        let what = Actor::system().did("user.invited", tenant, &json!({ "first_admin": true }));
        note::write_noted(self.engine(), tenant, AddInvite(row), what).await?;
        Ok(invite)
    }

    /// The link, if it can still be used.
    pub async fn open_invite(&self, token: &str) -> Result<InviteRow, ApiError> {
        let row = self.engine().sign_in().invite(self.secret().hash("invite", token.as_bytes())).await?;
        let now = self.engine().now();
        row.filter(|row| row.used_at.is_none() && row.expires_at > now).ok_or_else(ApiError::invite_over)
    }

    /// Whom a link is for. A first admin's link counts only while the tenant has no people.
    pub async fn invited(&self, invite: &InviteRow) -> Result<Option<UserRow>, ApiError> {
        let store = self.engine().for_tenant(invite.tenant);
        match invite.user {
            Some(user) => {
                let user = store.user(user).await?;
                user.filter(|user| user.disabled_at.is_none()).map(Some).ok_or_else(ApiError::invite_over)
            }
            None if store.users(None, 1).await?.is_empty() => Ok(None),
            None => Err(ApiError::invite_over()),
        }
    }

    /// Uses a link up: its person has this password now. Answers the person.
    pub async fn accept_invite(
        &self,
        token: &str,
        name: Option<String>,
        password: String,
    ) -> Result<UserRow, ApiError> {
        let invite = self.open_invite(token).await?;
        let invited = self.invited(&invite).await?;
        let name = match (&invited, name) {
            (Some(user), _) => user.name.clone(),
            (None, name) => person_name(name.unwrap_or_default())?,
        };
        let kept = self.passwords().hash(password).await?;
        for _ in 0..CHANGE_TRIES {
            // As the account is now: to hash a password takes a while.
            let (user, account) = match self.invited(&invite).await? {
                Some(read) => self.with_password(read, kept.clone()),
                None => self.first_admin(invite.tenant, name.clone(), kept.clone()),
            };
            match self.accept(&invite, &user, account).await? {
                InviteOutcome::Accepted => return Ok(user),
                InviteOutcome::Over => return Err(ApiError::invite_over()),
                InviteOutcome::AccountChanged => {}
            }
        }
        Err(EngineError::Overloaded.into())
    }

    fn with_password(&self, read: UserRow, password: String) -> (UserRow, InvitedAccount) {
        let mut user = UserRow { password: Some(password), ..read.clone() };
        access::record_entry(&mut user, self.engine().now());
        let change = ChangeUser { read, user: user.clone() };
        (user, InvitedAccount::Known(Box::new(change)))
    }

    fn first_admin(&self, tenant: TenantId, name: String, password: String) -> (UserRow, InvitedAccount) {
        let user = UserRow {
            roles: [interlock_core::tenant::identity::Role::Admin].into_iter().collect(),
            installation: true,
            password: Some(password),
            ..self.new_user(tenant, name)
        };
        (user.clone(), InvitedAccount::New(Box::new(AddUser(user))))
    }

    /// The link and the account in one commit: where it does not come about, the link can be used again.
    async fn accept(
        &self,
        invite: &InviteRow,
        user: &UserRow,
        account: InvitedAccount,
    ) -> Result<InviteOutcome, ApiError> {
        let (tenant, name) = (invite.tenant, &user.name);
        let subject = invite.user.map_or_else(|| tenant.to_string(), |user| user.to_string());
        let used = note::done("invite.used", Some(name.clone()), subject, &json!({ "name": name }));
        let made = match &account {
            InvitedAccount::New(_) => user_created(user, &Actor::unnamed()),
            InvitedAccount::Known(_) => {
                note::done("user.password_set", Some(name.clone()), user.id, &json!({ "by": "invite" }))
            }
        };
        let noted = |what: AuditEvent| self.engine().note_of(tenant, what);
        let notes = [used, made].into_iter().filter_map(noted).collect();
        let ended = noted(sessions_ended(user, &Actor::user(name)));
        let used = UseInvite { tenant, token_hash: invite.token_hash, at: self.engine().now() };
        let write = AcceptInvite { used, account, ended };
        let along = AttachedWrites { answer: None, notes };
        let outcome = self.engine().for_tenant(tenant).write_with(write, along).await.map_err(EngineError::from)?;
        self.forget();
        Ok(outcome)
    }

    /// Ends all visits of a person, on behalf of `by`.
    pub async fn end_sessions(&self, user: &UserRow, by: &Actor) -> Result<(), ApiError> {
        let ended = EndUserSessions { tenant: user.tenant, user: user.id };
        self.write_noted(user.tenant, ended, sessions_ended(user, by)).await?;
        Ok(())
    }

    /// An account with nothing in it yet.
    pub fn new_user(&self, tenant: TenantId, name: String) -> UserRow {
        UserRow {
            tenant,
            id: UserId(self.engine().fresh_id()),
            name,
            display_name: None,
            email: None,
            roles: Roles::NONE,
            groups: Vec::new(),
            installation: false,
            password: None,
            issuer: None,
            subject: None,
            created_at: self.engine().now(),
            created_by: None,
            disabled_at: None,
            last_login_at: None,
            access_changed_at: None,
            access_changed_by: None,
        }
    }

    pub async fn add_user(&self, user: UserRow) -> Result<UserRow, ApiError> {
        let by = user.created_by.clone().map_or_else(Actor::unnamed, Actor::user);
        self.add_user_answering(&user, &by, None).await?;
        Ok(user)
    }

    /// The same, with the answer to the request that asks for it.
    pub async fn add_user_answering(
        &self,
        user: &UserRow,
        by: &Actor,
        kept: Option<FinishIdempotency>,
    ) -> Result<(), ApiError> {
        let alike = self.engine().for_tenant(user.tenant).user_alike(&user.name).await?;
        if let Some(other) = alike.filter(|other| other.name != user.name) {
            let detail =
                format!("there is a person called `{}`, and `{}` could be taken for them", other.name, user.name);
            return Err(ApiError::new(StatusCode::CONFLICT, "USER_EXISTS", detail));
        }
        match self.write_answering(user.tenant, AddUser(user.clone()), user_created(user, by), kept).await? {
            Stored::Stored => Ok(()),
            Stored::Duplicate => {
                let detail = format!("there is already a person called `{}`", user.name);
                Err(ApiError::new(StatusCode::CONFLICT, "USER_EXISTS", detail))
            }
        }
    }

    /// Writes to a tenant's keys and people, and forgets what was looked up before.
    pub async fn write<W: TenantWrite>(&self, tenant: TenantId, write: W) -> Result<W::Answer, ApiError> {
        let answer = self.engine().for_tenant(tenant).write(write).await.map_err(EngineError::from)?;
        self.forget();
        Ok(answer)
    }
}

fn user_created(user: &UserRow, by: &Actor) -> AuditEvent {
    by.did("user.created", user.id, &json!({ "name": user.name, "roles": user.roles, "groups": user.groups }))
}

fn sessions_ended(user: &UserRow, by: &Actor) -> AuditEvent {
    by.did("login.ended", user.id, &json!({ "name": user.name, "all": true }))
}

/// Notes who changed what an account may do, or how its person gets in. What people change of their own does not count.
pub fn note_access(user: &mut UserRow, by: &Caller, now: Timestamp) {
    if by.person.as_deref() != Some(user.name.as_str()) {
        access::record_by(user, by, now);
    }
}

/// Three letters and a number of 16 bytes: where an actor is named, that is a key or a run, and no person.
fn looks_like_id(name: &str) -> bool {
    let digits = |rest: &str| rest.len() >= 32 && rest.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    name.split_once('_').is_some_and(|(kind, rest)| kind.len() == 3 && digits(rest))
}

/// A person's name: what stands in votes and histories, so nothing that could be mistaken for another.
pub fn person_name(name: String) -> Result<String, ApiError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@' | '+');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(plain) {
        return Err(ApiError::invalid(format!(
            "a person's name has 1 to {NAME_BYTES_MAX} letters, digits and . _ - @ +, as in `ada` or `ada@example.org`"
        )));
    }
    if looks_like_id(&name) {
        return Err(ApiError::invalid(format!("`{name}` looks like the id of something; call the person otherwise")));
    }
    Ok(name)
}

pub fn groups(groups: Vec<String>) -> Result<Vec<String>, ApiError> {
    if groups.len() > GROUPS_MAX {
        return Err(ApiError::invalid(format!("a person is in at most {GROUPS_MAX} groups")));
    }
    let mut checked = Vec::with_capacity(groups.len());
    for group in groups {
        let group = crate::request::name("groups", group)?;
        if !checked.contains(&group) {
            checked.push(group);
        }
    }
    Ok(checked)
}
