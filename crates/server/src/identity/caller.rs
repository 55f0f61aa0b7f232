//! [`Caller`]: who makes the request, as every handler gets it.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use interlock_core::ids::{KeyId, RunId, TenantId, UserId};
use interlock_core::json::{Hash, Json};
use interlock_core::run::Trigger;
use interlock_core::run::change::{Context, key_in_words};
use interlock_core::state::Initiator;
use interlock_core::tenant::identity::{Permission, Roles};
use interlock_core::time::{Millis, Timestamp};
use interlock_core::work::AttemptRef;
use interlock_engine::audit::Actor;
use interlock_engine::sessions::{EnrolledWorker, SessionOwner};
use interlock_engine::tenants::TenantActor;

use super::slack::SlackProof;
use crate::api_error::ApiError;
use crate::state::AppState;

/// How long a sign-in counts where two people must agree.
pub(super) const PROVEN_LATELY: Millis = Millis::from_mins(15);

/// The person, key or worker behind a request. All of it comes from the credential; nothing a request says changes it.
#[derive(Debug, Clone)]
pub struct Caller {
    pub tenant: TenantId,
    /// Whom idempotency keys belong to; stays the same when a key is rotated.
    pub client: Arc<str>,
    /// The person, if it is one: only people vote.
    pub person: Option<Arc<str>>,
    pub roles: Roles,
    pub groups: Arc<[String]>,
    /// Only runs of this workspace exist for this caller.
    pub workspace: Option<Arc<str>>,
    /// Has charge of the installation, and so of all its tenants.
    pub installation: bool,
    pub via: Via,
}

/// How the caller has proven who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Via {
    Key {
        id: KeyId,
        /// What its maker has called it: shown wherever a person's name would be.
        name: Arc<str>,
        owner: Option<Arc<str>>,
        /// The person or key that made or rotated it, and so has seen its text.
        maker: Option<Arc<str>>,
    },
    /// A browser's visit.
    Session {
        user: UserId,
        token_hash: Hash,
        /// When the person has last shown who they are: a visit that was handed on is no younger than the first.
        proven_at: Timestamp,
    },
    /// A press on a button in Slack, by a person whose Slack user is linked.
    Slack {
        /// When the person has last shown who they are, in a visit that goes on.
        proven_at: Option<Timestamp>,
        proof: Box<SlackProof>,
    },
    /// A worker's certificate, shown in the handshake.
    Worker(Arc<EnrolledWorker>),
    /// A short-lived token for a WebSocket, and what it was made from.
    Token { of: Box<Via> },
}

impl Caller {
    pub fn may(&self, permission: Permission) -> bool {
        self.roles.grant(permission) && (permission != Permission::Install || self.installation)
    }

    /// For the note of who made or changed something.
    pub fn name(&self) -> String {
        self.responsible().map_or_else(|| self.client.to_string(), str::to_owned)
    }

    /// The same for people to read: a key that no person owns by what it is called.
    pub fn shown_name(&self) -> String {
        match (self.responsible(), self.key_name()) {
            (None, Some(key)) => key_in_words(key, None),
            _ => self.name(),
        }
    }

    /// What a row keeps of who made it, for people to read where that is the caller.
    pub fn in_words(&self, by: Option<String>) -> Option<String> {
        by.map(|by| if by == self.name() { self.shown_name() } else { by })
    }

    /// The same for the audit log, which names a key as people know it.
    pub fn actor(&self) -> Actor {
        let actor = Actor::user(self.name());
        match &self.via {
            Via::Key { id, name, .. } => actor.with_key((name, *id), self.responsible()),
            _ => actor,
        }
    }

    /// What the key is called, if it is one.
    pub fn key_name(&self) -> Option<&str> {
        match &self.via {
            Via::Key { name, .. } => Some(name),
            Via::Session { .. } | Via::Slack { .. } | Via::Worker(_) | Via::Token { .. } => None,
        }
    }

    /// What caused the runs that this caller starts: a request, by the key where it came with one.
    pub fn trigger(&self) -> Trigger {
        Trigger::api(self.key_name())
    }

    /// The same where tenants themselves change: whose log tells of it.
    pub fn as_tenant_actor(&self) -> TenantActor {
        TenantActor { tenant: self.tenant, actor: self.actor() }
    }

    /// Accounts and keys with charge of the installation are changed only by callers who have it too.
    pub fn check_charge_of(&self, installation: bool) -> Result<(), ApiError> {
        if !installation || self.installation {
            return Ok(());
        }
        let detail = "this has charge of the installation, and you have not";
        Err(ApiError::new(StatusCode::FORBIDDEN, "PERMISSION_DENIED", detail))
    }

    /// The person whose word this is: only people decide.
    pub fn as_voter(&self) -> Result<&str, ApiError> {
        let detail = "only people decide, never keys: sign in, and vote as yourself";
        let refused = || ApiError::new(StatusCode::FORBIDDEN, "PERSON_REQUIRED", detail);
        match &self.via {
            Via::Session { .. } | Via::Slack { .. } => self.person.as_deref().ok_or_else(refused),
            Via::Key { .. } | Via::Worker(_) | Via::Token { .. } => Err(refused()),
        }
    }

    /// A person who is one of several who must agree has proven who they are a short while ago: a browser that was left
    /// open, or a stolen token, is not the second key.
    pub fn check_proven_lately(&self, now: Timestamp) -> Result<(), ApiError> {
        match self.via {
            Via::Session { proven_at, .. } | Via::Slack { proven_at: Some(proven_at), .. }
                if now.since(proven_at) < PROVEN_LATELY =>
            {
                Ok(())
            }
            _ => {
                let detail = "two people must agree here, and you have signed in more than 15 minutes ago: sign in again, \
                              and then approve (rejecting needs no new sign-in)";
                Err(ApiError::new(StatusCode::FORBIDDEN, "SIGN_IN_AGAIN", detail))
            }
        }
    }

    /// The person who answers for what is done here: the caller, or the owner of the key.
    pub fn responsible(&self) -> Option<&str> {
        match &self.via {
            Via::Key { owner, .. } => owner.as_deref(),
            _ => self.person.as_deref(),
        }
    }

    /// Refuses a key behind which no person is known. Where two people must agree it could be in the hand of the second one:
    /// a key that no person owns or has made, and one that such a key has made, no matter whose name stands on it.
    pub fn check_person_behind(&self) -> Result<(), ApiError> {
        let via = match &self.via {
            Via::Token { of } => of.as_ref(),
            via => via,
        };
        let Via::Key { owner, maker, .. } = via else { return Ok(()) };
        let is_key = |name: &str| name.parse::<KeyId>().is_ok();
        let known = match maker {
            Some(maker) => !is_key(maker),
            None => owner.is_some(),
        };
        if known {
            return Ok(());
        }
        let detail = "two people must agree to this, and no person is known to stand behind this key: sign in and ask \
                      as yourself, or with a key that a person has made";
        Err(ApiError::new(StatusCode::FORBIDDEN, "PERSON_REQUIRED", detail))
    }

    /// For the history of what this caller changes.
    pub fn context(&self, initiator: Initiator) -> Context {
        let person = self.responsible().map(str::to_owned);
        let context = Context { person, makers: self.makers(), ..Context::by(initiator) };
        match &self.via {
            Via::Key { id, name, .. } => context.with_key(*id, name),
            Via::Session { .. } | Via::Slack { .. } | Via::Worker(_) | Via::Token { .. } => context,
        }
    }

    /// Others who may be behind the request: the maker of the key has had it in hand.
    pub fn makers(&self) -> Vec<String> {
        match &self.via {
            Via::Key { maker, owner, .. } => maker.iter().filter(|_| maker != owner).map(ToString::to_string).collect(),
            Via::Session { .. } | Via::Slack { .. } | Via::Worker(_) | Via::Token { .. } => Vec::new(),
        }
    }

    /// Refuses a key that another person has made than the one who answers for it. Both have had it in hand, and where one
    /// name is kept of who gave others a right to decide, it must not be the wrong one.
    pub fn check_one_hand(&self) -> Result<(), ApiError> {
        let is_person = |maker: &String| maker.parse::<KeyId>().is_err();
        let Some(maker) = self.makers().into_iter().find(is_person) else { return Ok(()) };
        let detail = format!(
            "this key was made by {maker} and is not a key of their own, so who asks with it is not known: sign in and ask as \
             yourself, or with a key of your own"
        );
        Err(ApiError::new(StatusCode::FORBIDDEN, "PERSON_REQUIRED", detail))
    }

    /// Who is noted as the maker of a key that this caller makes or rotates for this owner. A key that another has made than its
    /// owner hands its maker on, who may be the one that asks, and makes none for a third person.
    pub fn maker_of_key(&self, owner: Option<&str>) -> Result<String, ApiError> {
        let own = self.responsible();
        let Some(maker) = self.makers().into_iter().next().filter(|_| own.is_some()) else { return Ok(self.name()) };
        if owner == own {
            return Ok(maker);
        }
        let detail = "this key was made by another than its owner, so who asks with it is not known: sign in and make the key as \
                      yourself, or with a key of your own";
        Err(ApiError::new(StatusCode::FORBIDDEN, "PERSON_REQUIRED", detail))
    }

    /// What the history tells of the way by which a vote came.
    pub fn vote_metadata(&self) -> Option<Json> {
        matches!(self.via, Via::Slack { .. }).then(|| Json::trusted("{\"via\":\"slack\"}".to_owned()))
    }

    /// As the one who directs a run.
    pub fn operator(&self) -> Context {
        self.context(Initiator::Operator)
    }

    /// Whose sessions this caller may use: with a certificate its own, with a key those that were begun with one.
    pub fn session_owner(&self) -> SessionOwner {
        let identity = match &self.via {
            Via::Worker(worker) => Some(worker.identity),
            _ => None,
        };
        SessionOwner { tenant: self.tenant, identity }
    }

    /// Refuses an attempt of another tenant's run as one of a run that does not exist.
    pub fn check_tenant(&self, at: AttemptRef) -> Result<(), ApiError> {
        if at.tenant == self.tenant { Ok(()) } else { Err(ApiError::unknown_run(at.run)) }
    }

    /// The workspace of what this caller starts or looks for. A name that says nothing is refused: it is neither none nor all
    /// of them.
    pub fn workspace_for(&self, asked: Option<String>) -> Result<Option<String>, ApiError> {
        let asked = crate::request::text("workspace", asked)?;
        match (&self.workspace, asked) {
            (Some(own), Some(asked)) if **own != *asked => {
                Err(ApiError::invalid(format!("this key is for workspace `{own}` and has nothing to do with another")))
            }
            (Some(own), _) => Ok(Some(own.to_string())),
            (None, asked) => Ok(asked),
        }
    }

    /// Whether something of this workspace exists for this caller; of none, if it is the tenant's as a whole.
    pub fn sees(&self, workspace: Option<&str>) -> bool {
        self.workspace.as_deref().is_none_or(|own| workspace == Some(own))
    }

    /// Refuses a run that does not exist for this caller: a key that is limited to a workspace sees no other's.
    pub async fn reach(&self, state: &AppState, run: RunId) -> Result<(), ApiError> {
        let Some(workspace) = &self.workspace else { return Ok(()) };
        let overview = state.for_tenant(self.tenant).run_overview(run).await?;
        match overview {
            Some(overview) if *overview.workspace == **workspace => Ok(()),
            _ => Err(ApiError::unknown_run(run)),
        }
    }
}

/// The guard has put it there; a route that it does not stand before has no caller.
impl FromRequestParts<AppState> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, ApiError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(ApiError::unauthorized)
    }
}
