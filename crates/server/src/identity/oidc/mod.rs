//! People vouched for by an identity provider: OpenID Connect, authorization code flow with PKCE, any standard
//! provider.
//!
//! [`Provider`] is the one the operator has configured. A sign-in is two requests: [`flow`] sends the browser away with
//! a sealed note of what was asked, and takes it back with a code; [`token`] turns the code into claims that the
//! provider has signed; [`account`] turns the claims into an account, with roles by the operator's mapping.

mod account;
mod es512;
mod fetch;
pub mod flow;
mod token;

use std::collections::BTreeMap;
use std::sync::Arc;

use interlock_core::ids::TenantId;
use interlock_core::tenant::identity::Roles;
use interlock_outbound::Outbound;
use tokio::sync::Mutex;

pub use fetch::{OidcError, encoded};
pub use flow::challenge;
pub use token::proven_at;

/// Where the browser comes by.
pub mod path {
    pub const START: &str = "/auth/oidc/start";
    pub const CALLBACK: &str = "/auth/oidc/callback";
}

/// What the operator says about the provider.
#[derive(Clone)]
pub struct OidcOptions {
    /// The provider's own name for itself: its configuration is found below it.
    pub issuer: String,
    pub client_id: String,
    /// Without one the client is a public one, protected by PKCE alone.
    pub client_secret: Option<String>,
    pub scopes: Vec<String>,
    /// What the button says.
    pub label: String,
    /// Whose people these are.
    pub tenant: TenantId,
    /// The claim that names the person; the first one that is there and fits.
    pub name_claims: Vec<String>,
    /// The claim that lists the person's groups.
    pub groups_claim: String,
    /// Roles of the members of a group.
    pub roles: BTreeMap<String, Roles>,
    /// Roles of every person for whom the provider vouches.
    pub default_roles: Roles,
}

impl OidcOptions {
    pub fn new(issuer: impl Into<String>, client_id: impl Into<String>, tenant: TenantId) -> Self {
        Self {
            issuer: issuer.into(),
            client_id: client_id.into(),
            client_secret: None,
            scopes: ["openid", "profile", "email"].map(str::to_owned).to_vec(),
            label: "single sign-on".to_owned(),
            tenant,
            name_claims: ["preferred_username", "email", "sub"].map(str::to_owned).to_vec(),
            groups_claim: "groups".to_owned(),
            roles: BTreeMap::new(),
            default_roles: Roles::NONE,
        }
    }
}

impl std::fmt::Debug for OidcOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OidcOptions")
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

/// The configured provider. Cheap to clone.
#[derive(Clone)]
pub struct Provider(Arc<ProviderState>);

struct ProviderState {
    options: OidcOptions,
    outbound: Outbound,
    /// What the provider says about itself, kept for a while.
    known: Mutex<Option<fetch::ProviderConfiguration>>,
}

impl Provider {
    /// `outbound` decides where the provider may be: only the operator opens private ranges.
    pub fn new(options: OidcOptions, outbound: Outbound) -> Self {
        Self(Arc::new(ProviderState { options, outbound, known: Mutex::default() }))
    }

    pub fn label(&self) -> &str {
        &self.0.options.label
    }

    pub(crate) fn options(&self) -> &OidcOptions {
        &self.0.options
    }
}
