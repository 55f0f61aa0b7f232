//! Calls to other systems, as flags: where they are, where secrets come from, and who calls.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use interlock_connectors::Connections;
use interlock_connectors::send::Caller;
use interlock_credentials::providers::folder::SecretFolder;
use interlock_credentials::{Clock, Credentials, Tenancy, config, harden_process};
use interlock_outbound::Outbound;
use interlock_worker::Connectors;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::output::exit::{Exit, ExitError};
use crate::output::{say_aside, span};

/// In the data folder: the journals of leases, unless the file of credentials says otherwise.
const LEASES_FOLDER: &str = "leases";
/// What a folder of secrets is called as a provider.
const FOLDER: &str = "folder";

#[derive(Args)]
pub struct ConnectorArgs {
    /// A file (TOML) that says where other systems are, who calls them and what models cost. With it, `--secrets` or
    /// `--credentials`, steps that use a connector or a model are carried out.
    #[arg(long, env = "INTERLOCK_CONNECTORS", value_name = "FILE")]
    connectors: Option<PathBuf>,
    /// A folder with one file for each secret, named like the secret; `up` looks in a folder inside it that is named by the
    /// tenant's id.
    #[arg(long, env = "INTERLOCK_SECRETS", value_name = "FOLDER")]
    secrets: Option<PathBuf>,
    #[command(flatten)]
    credentials: CredentialArgs,
}

/// Where secrets come from, for a worker and for the commands that check one.
#[derive(Args)]
pub struct CredentialArgs {
    /// A file (TOML) that says where secrets come from in which environment: a Vault, an age-encrypted file, a folder.
    #[arg(long, env = "INTERLOCK_CREDENTIALS", value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// The environment whose provider serves runs that name none.
    #[arg(long, env = "INTERLOCK_ENVIRONMENT", value_name = "NAME")]
    environment: Option<String>,
}

impl CredentialArgs {
    /// The providers that the file describes; nothing where there is no file. Without a journal they are only looked at.
    pub fn open(&self, tenancy: Tenancy, journal: Option<&Path>) -> anyhow::Result<Option<Credentials>> {
        let Some(file) = &self.credentials else { return Ok(None) };
        let environment = self.environment.as_deref();
        let setting = config::Setting { file, environment, tenancy, journal, clock: clock() };
        config::read(setting).map(Some).map_err(|error| ExitError::saying(Exit::Config, error.to_string()))
    }
}

/// For a worker that was given none.
pub fn no_secrets() -> Credentials {
    Credentials::none(clock())
}

fn clock() -> Clock {
    Clock::new(span::now)
}

/// What carries out steps that call other systems.
pub struct Calls {
    pub connectors: Connectors,
    pub credentials: Credentials,
}

impl ConnectorArgs {
    pub const fn is_given(&self) -> bool {
        self.connectors.is_some() || self.secrets.is_some() || self.credentials.credentials.is_some()
    }

    /// What carries out steps that call other systems; nothing where no flag asks for it. From here on the process
    /// leaves no copy of its memory behind.
    pub fn open(&self, outbound: Outbound, tenancy: Tenancy, data: &Path) -> anyhow::Result<Option<Calls>> {
        if !self.is_given() {
            return Ok(None);
        }
        harden_process().context("cannot keep this process's memory out of core dumps")?;
        let credentials = self.credentials(tenancy, Some(&data.join(LEASES_FOLDER)))?;
        let connectors = Connectors::new(Caller::new(outbound, self.connections()?, credentials.clone()));
        Ok(Some(Calls { connectors, credentials }))
    }

    /// What `open` would refuse; nothing is opened or written.
    pub fn check(&self, tenancy: Tenancy) -> anyhow::Result<()> {
        self.connections()?;
        self.credentials(tenancy, None)?;
        Ok(())
    }

    fn connections(&self) -> anyhow::Result<Connections> {
        let Some(path) = &self.connectors else { return Ok(Connections::presets()) };
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let invalid = |error| ExitError::saying(Exit::Config, format!("{}: {error}", path.display()));
        Connections::from_toml(&text).map_err(invalid)
    }

    fn credentials(&self, tenancy: Tenancy, journal: Option<&Path>) -> anyhow::Result<Credentials> {
        let found = self.credentials.open(tenancy, journal)?;
        match (found, &self.secrets) {
            (Some(_), Some(_)) => {
                let what = "--credentials and --secrets both say where secrets come from; \
                            describe the folder in the file of credentials ([provider.NAME] kind = \"folder\")";
                Err(ExitError::saying(Exit::Config, what))
            }
            (Some(credentials), None) => Ok(credentials),
            (None, None) => Ok(Credentials::none(clock())),
            (None, Some(folder)) if !folder.is_dir() => {
                Err(ExitError::saying(Exit::Config, format!("--secrets {}: there is no such folder", folder.display())))
            }
            (None, Some(folder)) => {
                let provider = SecretFolder::new(FOLDER, folder, tenancy);
                Ok(Credentials::of_one(FOLDER, Arc::new(provider), clock()))
            }
        }
    }
}

/// Credentials while a worker works: leases of a crashed one are revoked at once, those of ended steps as they come.
pub struct CredentialSweeper {
    credentials: Credentials,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl CredentialSweeper {
    /// Says which providers answer and which let this worker in; never a value. Those that do not are no reason not to
    /// start: steps that need them fail, and say why.
    pub async fn start(credentials: Credentials) -> Self {
        for provider in credentials.describe().await {
            let state = if provider.reachable { "" } else { "not reachable: " };
            say_aside(&format!(
                "interlock: secrets from {} ({}, {}): {state}{}",
                provider.name, provider.kind, provider.at, provider.detail
            ));
        }
        for (name, cause) in credentials.prepare().await {
            say_aside(&format!(
                "interlock: secrets from {name}: {cause}; steps that need them fail until this is mended"
            ));
        }
        let stop = CancellationToken::new();
        let task = {
            let (credentials, stop) = (credentials.clone(), stop.clone());
            tokio::spawn(async move { credentials.keep_sweeping(stop).await })
        };
        Self { credentials, stop, task }
    }

    /// Once the worker has stopped: revokes what is left, and signs off.
    pub async fn end(self) {
        self.stop.cancel();
        let _ = self.task.await;
        self.credentials.close().await;
    }
}
