//! Calls to other systems, as flags: where they are, and who calls.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use interlock_connectors::Connections;
use interlock_connectors::send::{Caller, NoSecrets, SecretFolder, SecretSource};
use interlock_outbound::Outbound;
use interlock_worker::Connectors;

use crate::output::exit::{Ended, Exit};

#[derive(Args)]
pub struct ConnectorArgs {
    /// A file (TOML) that says where other systems are, who calls them and what models cost. With it or `--secrets`, steps
    /// that use a connector or a model are carried out.
    #[arg(long, env = "INTERLOCK_CONNECTORS", value_name = "FILE")]
    connectors: Option<PathBuf>,
    /// A folder with one file for each secret, named like the secret; `up` looks in a folder inside it that is named by the
    /// tenant's id.
    #[arg(long, env = "INTERLOCK_SECRETS", value_name = "FOLDER")]
    secrets: Option<PathBuf>,
}

/// Whose steps are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    OneTenant,
    AllTenants,
}

impl ConnectorArgs {
    pub const fn is_given(&self) -> bool {
        self.connectors.is_some() || self.secrets.is_some()
    }

    /// What carries out steps that call other systems; nothing where nobody has asked for it.
    pub fn executor(&self, outbound: Outbound, serves: Serves) -> anyhow::Result<Option<Connectors>> {
        if !self.is_given() {
            return Ok(None);
        }
        let connections = match &self.connectors {
            None => Connections::presets(),
            Some(path) => {
                let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
                let invalid = |error| Ended::saying(Exit::Config, format!("{}: {error}", path.display()));
                Connections::from_toml(&text).map_err(invalid)?
            }
        };
        let secrets: Arc<dyn SecretSource> = match &self.secrets {
            None => Arc::new(NoSecrets),
            Some(folder) => {
                if !folder.is_dir() {
                    let what = format!("--secrets {}: there is no such folder", folder.display());
                    return Err(Ended::saying(Exit::Config, what));
                }
                Arc::new(match serves {
                    Serves::OneTenant => SecretFolder::of_one_tenant(folder),
                    Serves::AllTenants => SecretFolder::by_tenant(folder),
                })
            }
        };
        Ok(Some(Connectors::new(Caller::new(outbound, connections, secrets))))
    }
}
