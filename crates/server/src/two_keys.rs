//! Changes that a second admin must agree to, where the tenant has said so: of the policy in force, and of who has access.
//!
//! Such a request is not carried out. It is kept as a change, for others to look at, and refused with the change's id.
//! Once another admin has agreed, the requester makes the same request again and names the change; it is good for that
//! request and for one time. Nothing is carried out by agreeing, so answers, and secrets in them, reach the requester
//! alone. A key that no person stands behind makes no such request: its holder could be the second admin.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use interlock_core::ids::ChangeId;
use interlock_core::json::{Hash, Json, canonical};
use interlock_core::tenant::identity::Permission;
use interlock_protocol::changes::{CHANGE_HEADER, limits};
use interlock_protocol::identity::ChangeTenant;
use interlock_protocol::identity::limits::PAGE_MAX;
use interlock_protocol::{delegations, enrolment, identity, policy, slack};
use interlock_store::{AskChange, ChangeRow, ChangeState, Changed, Tenant, UseChange, UserRow};
use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::identity::{Caller, Via, note};
use crate::matrix::Line;
use crate::state::AppState;

/// What a change is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Policy,
    Access,
}

impl Subject {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Access => "access",
        }
    }

    /// Whether a request of this route changes something that two keys may be asked for.
    fn of(line: &Line) -> Option<Self> {
        match (line.method, line.path) {
            ("PATCH", policy::path::POLICY) => Some(Self::Policy),
            (
                "POST",
                identity::path::USERS
                | identity::path::USER_INVITE
                | identity::path::USER_PASSWORD
                | identity::path::KEYS
                | identity::path::KEY_ROTATE
                | enrolment::path::IDENTITIES
                | delegations::path::DELEGATIONS,
            )
            | ("PATCH", identity::path::USER | identity::path::TENANT)
            // An admin who gives the secret with which Slack signs could vote as others.
            | ("PUT", slack::path::SLACK) => Some(Self::Access),
            _ => None,
        }
    }
}

/// Lets a request pass that needs no second admin, or to which one has agreed. Any other is kept as a change, and
/// refused.
pub async fn check(state: &AppState, caller: &Caller, line: &Line, request: Request) -> Result<Request, ApiError> {
    let Some(subject) = Subject::of(line) else { return Ok(request) };
    let settings = state.for_tenant(caller.tenant).tenant().await?.map(|tenant| tenant.settings).unwrap_or_default();
    let applies = match subject {
        Subject::Policy => settings.two_keys_for_policy,
        Subject::Access => settings.two_keys_for_access,
    };
    if !applies {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, line.body_bytes_max())
        .await
        .map_err(|_| ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE", "the body is too long"))?;
    let asked = GuardedRequest::read(line, parts.uri.path_and_query().map_or("", |path| path.as_str()), &bytes)?;
    if asked.needs_no_second_admin(caller) {
        return Ok(Request::from_parts(parts, Body::from(bytes)));
    }
    // The second admin must be another person than the requester, so the person behind the request must be known.
    caller.check_person_behind()?;
    match named(&parts.headers)? {
        Some(change) => asked.carry_out(state, caller, change).await?,
        None => return Err(asked.keep(state, caller, subject).await?),
    }
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

/// The change that the request names.
fn named(headers: &HeaderMap) -> Result<Option<ChangeId>, ApiError> {
    let Some(value) = headers.get(CHANGE_HEADER) else { return Ok(None) };
    let parsed = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    let refused = || ApiError::malformed(format!("the header `{CHANGE_HEADER}` is no id of a change (`chg_…`)"));
    parsed.map(Some).ok_or_else(refused)
}

/// A request that two keys are needed for.
struct GuardedRequest {
    method: &'static str,
    path: String,
    route: &'static str,
    body: Value,
    hash: Hash,
}

impl GuardedRequest {
    fn read(line: &Line, path: &str, bytes: &Bytes) -> Result<Self, ApiError> {
        let body: Value = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(bytes)
                .map_err(|error| ApiError::malformed(format!("the body is not JSON: {error}")))?
        };
        let whole = json!({ "method": line.method, "path": path, "body": body });
        let hash = canonical(&whole).map(|bytes| Hash::of(&bytes));
        let hash = hash.map_err(|error| ApiError::malformed(format!("the body: {error}")))?;
        Ok(Self { method: line.method, path: path.to_owned(), route: line.path, body, hash })
    }

    /// What needs no second admin: people lend their own right, and choose their own password.
    fn needs_no_second_admin(&self, caller: &Caller) -> bool {
        match self.route {
            delegations::path::DELEGATIONS => {
                let whose = self.body.get("delegator").and_then(Value::as_str);
                whose.is_none() || whose == caller.person.as_deref()
            }
            identity::path::USER_PASSWORD => match caller.via {
                Via::Session { user, .. } => self.path == self.route.replace("{user}", &user.to_string()),
                Via::Key { .. } | Via::Worker(_) | Via::Token { .. } | Via::Slack { .. } => false,
            },
            // To disable an account can't wait.
            identity::path::USER => self.body == json!({ "disabled": true }),
            _ => false,
        }
    }

    /// Uses up the agreement.
    async fn carry_out(&self, state: &AppState, caller: &Caller, id: ChangeId) -> Result<(), ApiError> {
        self.check_secrets()?;
        let row = state.for_tenant(caller.tenant).change(id).await?;
        let row = row.ok_or_else(|| ApiError::unknown("change", &id.to_string()))?;
        let now = state.now();
        let refused = |why: &str| ApiError::new(StatusCode::CONFLICT, "CHANGE_NOT_USABLE", format!("{id} {why}"));
        if row.asked_by != caller.name() {
            return Err(refused("was asked for by another caller, and only they carry it out"));
        }
        if row.request_hash != self.hash {
            return Err(refused("is about another request; agreed to was exactly that one"));
        }
        if !is_agreed_still(state, &row).await? {
            return Err(refused("was agreed to by an account that is no admin's any more; ask again"));
        }
        let details = json!({ "subject": row.subject, "method": row.method, "path": row.path });
        let what = note::by(caller, "change.used", id, &details);
        let used = UseChange { tenant: caller.tenant, change: id, request: self.hash, at: now };
        match state.identity().write_noted(caller.tenant, used, what).await? {
            Changed::Done => Ok(()),
            Changed::Gone => Err(refused(match row.state {
                ChangeState::Requested => "waits for a second admin",
                ChangeState::Rejected => "was rejected",
                ChangeState::Used => "was carried out already",
                ChangeState::Approved => "was agreed to more than an hour ago; ask again",
            })),
        }
    }

    /// Keeps the request for a second admin to look at. The answer says how it goes on.
    async fn keep(&self, state: &AppState, caller: &Caller, subject: Subject) -> Result<ApiError, ApiError> {
        self.check_secrets()?;
        let store = state.for_tenant(caller.tenant);
        let (now, name) = (state.now(), caller.name());
        if let Some(row) = store.change_asked(self.hash, &name, now).await?
            && is_agreed_still(state, &row).await?
        {
            return Ok(needs_second_key(row.id));
        }
        let mut excluded = vec![name.clone()];
        excluded.extend(caller.responsible().map(str::to_owned).filter(|person| *person != name));
        excluded.extend(caller.makers());
        let row = ChangeRow {
            tenant: caller.tenant,
            id: ChangeId(state.fresh_id()),
            subject: subject.as_str().to_owned(),
            method: self.method.to_owned(),
            path: self.path.clone(),
            body: Json::of(&shown(&self.body)).map_err(|error| ApiError::malformed(error.to_string()))?,
            request_hash: self.hash,
            state: ChangeState::Requested,
            asked_by: name,
            excluded,
            asked_at: now,
            expires_at: now + limits::DECIDED_WITHIN,
            decided_by: None,
            decided_at: None,
            notes: None,
            used_at: None,
        };
        let details = json!({ "subject": row.subject, "method": row.method, "path": row.path });
        let what = note::by(caller, "change.requested", row.id, &details);
        let id = row.id;
        state.identity().write_noted(caller.tenant, AskChange(row), what).await?;
        Ok(needs_second_key(id))
    }

    /// What others are to look at holds no password.
    fn check_secrets(&self) -> Result<(), ApiError> {
        if self.body.get("password").is_none() {
            return Ok(());
        }
        Err(ApiError::invalid(
            "changes of access need a second admin here, and no admin sets another person's password: leave `password` \
             out, and send an invite (`POST /users/{user}/invite`)",
        ))
    }
}

/// Whether the word of the second admin counts, as far as it was given: that of an account that was disabled since, or has
/// lost the role, does not.
async fn is_agreed_still(state: &AppState, row: &ChangeRow) -> Result<bool, ApiError> {
    if row.state != ChangeState::Approved {
        return Ok(true);
    }
    let Some(second) = row.decided_by.as_deref() else { return Ok(false) };
    let user = state.for_tenant(row.tenant).user_named(second).await?;
    Ok(user.is_some_and(|user| user.disabled_at.is_none() && user.roles.grant(Permission::Administer)))
}

/// The body as others may see it: what is secret in it is known by its hash alone.
fn shown(body: &Value) -> Value {
    let is_secret = |name: &str| ["secret", "token", "key"].iter().any(|word| name.to_lowercase().contains(word));
    match body {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(name, value)| match value {
                    Value::String(_) if is_secret(name) => (name.clone(), json!("(hidden)")),
                    value => (name.clone(), shown(value)),
                })
                .collect(),
        ),
        Value::Array(items) => items.iter().map(shown).collect(),
        plain => plain.clone(),
    }
}

fn needs_second_key(change: ChangeId) -> ApiError {
    let detail = format!(
        "a second admin must agree to this: `interlock change approve {change}`; after that, make the same request again \
         within an hour with the header `{CHANGE_HEADER}: {change}` (`--change {change}`)"
    );
    ApiError::new(StatusCode::FORBIDDEN, "SECOND_KEY_REQUIRED", detail)
}

/// Two keys are switched on only where two people have one, and another tenant's are left alone.
pub async fn check_settings(
    state: &AppState,
    caller: &Caller,
    tenant: &Tenant,
    change: &ChangeTenant,
) -> Result<(), ApiError> {
    let before = tenant.settings;
    let changes_two_keys = change.two_keys_for_policy.is_some_and(|now| now != before.two_keys_for_policy)
        || change.two_keys_for_access.is_some_and(|now| now != before.two_keys_for_access);
    let changes_approval = change.self_approval.is_some_and(|now| now != before.self_approval);
    if tenant.id != caller.tenant && before.two_keys_for_access && (changes_two_keys || changes_approval) {
        let detail = "the admins of that tenant change its settings, two of them together";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "PERMISSION_DENIED", detail));
    }
    let switched_on = [
        change.two_keys_for_policy.unwrap_or_default() && !before.two_keys_for_policy,
        change.two_keys_for_access.unwrap_or_default() && !before.two_keys_for_access,
    ];
    if switched_on.contains(&true) && admins(state, tenant).await? < 2 {
        return Err(ApiError::invalid(
            "two keys need two people with the role `admin` who can sign in; make another one first",
        ));
    }
    // Two keys for the policy mean nothing without two keys for access: one admin could make the second one.
    let for_policy = change.two_keys_for_policy.unwrap_or(before.two_keys_for_policy);
    let for_access = change.two_keys_for_access.unwrap_or(before.two_keys_for_access);
    if changes_two_keys && for_policy && !for_access {
        return Err(ApiError::invalid(
            "`two_keys_for_policy` goes with `two_keys_for_access`: otherwise one admin could make the second one",
        ));
    }
    Ok(())
}

/// How many people could be the second admin; counting stops at two.
async fn admins(state: &AppState, tenant: &Tenant) -> Result<usize, ApiError> {
    let store = state.for_tenant(tenant.id);
    let (mut found, mut after) = (0, None);
    loop {
        let users = store.users(after, PAGE_MAX).await?;
        // A person who was invited and has never signed in is no second admin yet.
        let is_admin = |user: &&UserRow| {
            let can_sign_in = user.password.is_some() || user.issuer.is_some();
            can_sign_in && user.disabled_at.is_none() && user.roles.grant(Permission::Administer)
        };
        found += users.iter().filter(is_admin).count();
        after = users.last().map(|user| user.id);
        if found >= 2 || users.len() < PAGE_MAX {
            return Ok(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{IdPosition, MATRIX, Thing};
    use crate::openapi::codes;

    #[test]
    fn every_route_under_two_keys_takes_the_header_and_names_its_refusals() {
        for line in MATRIX {
            let takes = line.ids.contains(&(IdPosition::Header(CHANGE_HEADER), Thing::Change));
            let is_guarded = Subject::of(line).is_some();
            assert_eq!(takes, is_guarded, "{} {}: the matrix and two keys differ", line.method, line.path);
            let known = codes::of(line.method, line.path);
            for code in ["CHANGE_NOT_FOUND", "CHANGE_NOT_USABLE", "PERSON_REQUIRED", "SECOND_KEY_REQUIRED"] {
                assert!(!is_guarded || known.contains(&code), "{} {}: {code}", line.method, line.path);
            }
        }
    }
}
