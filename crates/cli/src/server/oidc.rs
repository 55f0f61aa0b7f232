//! The identity provider, as flags.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use interlock_core::ids::TenantId;
use interlock_core::tenant::identity::Roles;
use interlock_outbound::Outbound;
use interlock_server::identity::oidc::{OidcOptions, Provider};
use interlock_server::private_file;

use crate::output::exit::{Exit, ExitError};

#[expect(clippy::struct_field_names, reason = "the fields are the names of the flags")]
#[derive(Args)]
#[command(next_help_heading = "Identity provider")]
pub struct OidcArgs {
    /// The OpenID Connect provider whose people may sign in.
    #[arg(long, env = "INTERLOCK_OIDC_ISSUER", value_name = "URL")]
    oidc_issuer: Option<String>,
    /// This server's name at the provider.
    #[arg(long, env = "INTERLOCK_OIDC_CLIENT_ID", value_name = "ID")]
    oidc_client_id: Option<String>,
    /// A file that holds the client's secret; without one the client is a public one.
    #[arg(long, env = "INTERLOCK_OIDC_CLIENT_SECRET_FILE", value_name = "FILE")]
    oidc_client_secret_file: Option<PathBuf>,
    /// What the button on the sign-in page says.
    #[arg(long, env = "INTERLOCK_OIDC_LABEL", default_value = "single sign-on")]
    oidc_label: String,
    /// What is asked for, besides `openid`.
    #[arg(long, env = "INTERLOCK_OIDC_SCOPES", value_delimiter = ',', default_value = "profile,email")]
    oidc_scopes: Vec<String>,
    /// The claim that lists a person's groups.
    #[arg(long, env = "INTERLOCK_OIDC_GROUPS_CLAIM", default_value = "groups")]
    oidc_groups_claim: String,
    /// Roles of a group's members, as in `sre=operator,approver`; may be given several times.
    #[arg(long = "oidc-role", env = "INTERLOCK_OIDC_ROLES", value_name = "GROUP=ROLES", value_delimiter = ';')]
    oidc_roles: Vec<String>,
    /// Roles of every person whom the provider signs in.
    #[arg(long, env = "INTERLOCK_OIDC_DEFAULT_ROLES", value_name = "ROLES", default_value = "")]
    oidc_default_roles: String,
}

impl OidcArgs {
    pub fn provider(&self, tenant: TenantId, outbound: &Outbound) -> anyhow::Result<Option<Provider>> {
        let (issuer, client_id) = match (&self.oidc_issuer, &self.oidc_client_id) {
            (Some(issuer), Some(client_id)) => (issuer, client_id),
            (None, None) => return Ok(None),
            (Some(_), None) => return Err(half("--oidc-issuer", "--oidc-client-id")),
            (None, Some(_)) => return Err(half("--oidc-client-id", "--oidc-issuer")),
        };
        let mut options = OidcOptions::new(issuer, client_id, tenant);
        if let Some(path) = &self.oidc_client_secret_file {
            let secret = private_file::read(path)
                .with_context(|| format!("cannot read the provider's client secret {}", path.display()))?;
            anyhow::ensure!(!secret.trim().is_empty(), "the client secret file {} is empty", path.display());
            options.client_secret = Some(secret.trim().to_owned());
        }
        options.label.clone_from(&self.oidc_label);
        options.scopes = std::iter::once("openid".to_owned()).chain(self.oidc_scopes.iter().cloned()).collect();
        options.groups_claim.clone_from(&self.oidc_groups_claim);
        options.default_roles = self.oidc_default_roles.parse::<Roles>().context("--oidc-default-roles")?;
        for mapping in &self.oidc_roles {
            let (group, roles) = mapping.split_once('=').with_context(|| {
                format!("`--oidc-role {mapping}` is not GROUP=ROLES, as in `sre=operator,approver`")
            })?;
            let roles = roles.parse::<Roles>().with_context(|| format!("`--oidc-role {mapping}`"))?;
            options.roles.insert(group.to_owned(), roles);
        }
        Ok(Some(Provider::new(options, outbound.clone())))
    }
}

fn half(given: &str, missing: &str) -> anyhow::Error {
    let what = format!("{given} is given without {missing}: an identity provider needs both");
    ExitError::saying(Exit::Config, what)
}
