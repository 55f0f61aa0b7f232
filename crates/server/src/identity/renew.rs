//! A caller whose credential was seen a while ago, as it is now.

use super::Identity;
use super::authenticate::loaded;
use super::caller::{Caller, Via};
use super::session;
use crate::api_error::ApiError;

impl Identity {
    /// The caller as the store has it now; nothing if its credential counts no more: revoked, expired, signed out, of a
    /// disabled person or tenant.
    pub async fn renewed(&self, caller: &Caller) -> Result<Option<Caller>, ApiError> {
        let (store, now) = (self.engine().for_tenant(caller.tenant), self.engine().now());
        let tenant = store.tenant().await?;
        if tenant.is_none_or(|tenant| tenant.disabled_at.is_some()) {
            return Ok(None);
        }
        match &caller.via {
            Via::Key { id, .. } => {
                let row = store.key(*id).await?;
                let row = row.filter(|row| row.revoked_at.is_none() && row.expires_at.is_none_or(|at| now < at));
                let Some(row) = row else { return Ok(None) };
                let over = self.is_disabled(row.tenant, row.owner.as_deref()).await?;
                Ok((!over).then(|| loaded(row).caller))
            }
            Via::Session { token_hash, .. } => {
                let Some(session) = self.engine().sign_in().user_session(*token_hash).await? else { return Ok(None) };
                if session.expires_at <= now || session.tenant != caller.tenant {
                    return Ok(None);
                }
                let user = store.user(session.user).await?;
                Ok(user.filter(|user| user.disabled_at.is_none()).map(|user| session::caller(user, &session)))
            }
            // A press is over once it is worked on.
            Via::Slack { .. } | Via::Worker(_) => Ok(None),
            // A short-lived token lasts as long as what it was made from.
            Via::Token { of } => {
                let origin = Caller { via: (**of).clone(), ..caller.clone() };
                let Some(now) = Box::pin(self.renewed(&origin)).await? else { return Ok(None) };
                Ok(Some(Caller { via: caller.via.clone(), installation: false, ..now }))
            }
        }
    }
}
