//! The file of credentials: which providers there are, where secrets are in them, and which serves which environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use interlock_core::plan::command::{ENVIRONMENTS, UNKNOWN_ENVIRONMENT};
use interlock_core::secret_name::is_secret_name;
use interlock_core::text::nearest::hint;
use interlock_outbound::{Outbound, OutboundOptions, Range, Url};
use serde::Deserialize;
use tracing::warn;

use crate::clock::Clock;
use crate::credentials::{ANY_ENVIRONMENT, Credentials, CredentialsOptions, DEFAULT_ENVIRONMENT};
use crate::journal::LeaseJournal;
use crate::limits;
use crate::provider::{EntryKind, SecretProvider, Tenancy};
use crate::providers::age_file::{AgeFile, AgeSecrets};
use crate::providers::environment::SecretVariables;
use crate::providers::folder::SecretFolder;
use crate::vault::{AwsIdentity, AwsKeySource, Login, TENANT_PLACE, Vault, VaultOptions, VaultSecret};

/// What is wrong with the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidCredentials(pub String);

fn wrong(what: impl Into<String>) -> InvalidCredentials {
    InvalidCredentials(what.into())
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CredentialsFile {
    /// The folder of the journals of leases.
    journal: Option<PathBuf>,
    #[serde(default)]
    provider: BTreeMap<String, WrittenProvider>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum WrittenProvider {
    Vault(Box<WrittenVault>),
    Age(WrittenAge),
    Folder(WrittenFolder),
    Environment(WrittenVariables),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenVault {
    url: String,
    namespace: Option<String>,
    /// Ranges that this Vault may be in, though they are private.
    #[serde(default)]
    open: Vec<String>,
    /// Certificates (PEM) to trust beside the machine's own.
    ca_file: Option<PathBuf>,
    timeout_ms: Option<u64>,
    login: WrittenLogin,
    #[serde(default)]
    secret: BTreeMap<String, WrittenSecret>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "method", rename_all = "lowercase")]
enum WrittenLogin {
    AppRole(WrittenAppRole),
    Jwt(WrittenJwt),
    Aws(WrittenAws),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAppRole {
    mount: Option<String>,
    role_id: String,
    secret_id_file: PathBuf,
    #[serde(default)]
    wrapped: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenJwt {
    mount: Option<String>,
    role: String,
    jwt_file: PathBuf,
    /// What the method asks for besides, as `azure` does.
    #[serde(default)]
    fields: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAws {
    mount: Option<String>,
    role: String,
    region: Option<String>,
    server_id: Option<String>,
    /// A shared credentials file; the variables `AWS_…` of the worker's environment where absent.
    credentials_file: Option<PathBuf>,
    profile: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSecret {
    engine: WrittenEngine,
    /// Where the engine is mounted; `secret` for KV. A dynamic secret's path has it already.
    mount: Option<String>,
    path: String,
    field: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenEngine {
    Kv1,
    Kv2,
    Dynamic,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAge {
    file: PathBuf,
    identity_file: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFolder {
    folder: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenVariables {
    #[serde(default)]
    prefix: String,
}

/// How the file is used by this worker.
pub struct Setting<'a> {
    /// Whose paths are relative to the folder of the file.
    pub file: &'a Path,
    /// The worker's environment; `default` where it was told none.
    pub environment: Option<&'a str>,
    pub tenancy: Tenancy,
    /// Where the journals of leases are if the file does not say; none for a command that reads and gets no leases.
    pub journal: Option<&'a Path>,
    pub clock: Clock,
}

impl Setting<'_> {
    fn beside(&self, path: &Path) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).join(path)
    }
}

/// The providers that a file describes. Nothing is called yet.
pub fn read(setting: Setting<'_>) -> Result<Credentials, InvalidCredentials> {
    let path = setting.file.display();
    let size = std::fs::metadata(setting.file).map_err(|error| wrong(format!("{path}: {error}")))?.len();
    if size > limits::CONFIG_BYTES_MAX as u64 {
        return Err(wrong(format!("{path}: it is longer than {} bytes", limits::CONFIG_BYTES_MAX)));
    }
    let text = std::fs::read_to_string(setting.file).map_err(|error| wrong(format!("{path}: {error}")))?;
    of_text(&text, &setting).map_err(|InvalidCredentials(what)| wrong(format!("{path}: {what}")))
}

fn of_text(text: &str, setting: &Setting<'_>) -> Result<Credentials, InvalidCredentials> {
    let file: CredentialsFile = toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end()))?;
    if file.provider.is_empty() {
        return Err(wrong("there is no provider; write [provider.NAME] with its `kind`"));
    }
    let environments = environments(&file)?;
    let environment = setting.environment.unwrap_or(DEFAULT_ENVIRONMENT).to_owned();
    if !environments.contains_key(&environment) && !environments.contains_key(ANY_ENVIRONMENT) {
        let known: Vec<_> = environments.keys().map(|name| format!("`{name}`")).collect();
        return Err(wrong(format!(
            "the worker's environment is `{environment}`, and [environment] has only {}; name one with --environment",
            known.join(", ")
        )));
    }
    for name in environments_without_runs(&environments, &environment) {
        warn!(
            environment = name,
            "[environment] of the file of credentials names one in which no run acts; {}",
            meant(name)
        );
    }
    let leases = file.provider.values().any(WrittenProvider::has_leases);
    let mut providers: BTreeMap<String, Arc<dyn SecretProvider>> = BTreeMap::new();
    for (name, written) in file.provider {
        let provider = provider(&name, written, setting);
        providers.insert(
            name.clone(),
            provider.map_err(|InvalidCredentials(what)| wrong(format!("[provider.{name}]: {what}")))?,
        );
    }
    let journal = match setting.journal.filter(|_| leases) {
        None => None,
        Some(default) => {
            let folder = file.journal.map_or_else(|| default.to_owned(), |folder| setting.beside(&folder));
            let unusable =
                |error| wrong(format!("the journal of leases in {} cannot be used: {error}", folder.display()));
            Some(LeaseJournal::open(&folder).map_err(unusable)?)
        }
    };
    let clock = setting.clock.clone();
    Ok(Credentials::new(CredentialsOptions { providers, environments, environment, journal, clock }))
}

/// Which provider serves which environment; if nothing is said, the only one serves steps without an environment.
fn environments(file: &CredentialsFile) -> Result<BTreeMap<String, String>, InvalidCredentials> {
    if file.environment.is_empty() {
        let mut names = file.provider.keys();
        return match (names.next(), names.next()) {
            (Some(only), None) => Ok([(DEFAULT_ENVIRONMENT.to_owned(), only.clone())].into()),
            _ => Err(wrong(
                "there are several providers: write [environment] with the one of each environment, as in `default = \"NAME\"`",
            )),
        };
    }
    for (environment, provider) in &file.environment {
        if !file.provider.contains_key(provider) {
            return Err(wrong(format!("[environment] {environment}: there is no [provider.{provider}]")));
        }
    }
    Ok(file.environment.clone())
}

/// Environments for which secrets would never be asked: no run acts in them, and this worker is in another one.
fn environments_without_runs<'a>(
    environments: &'a BTreeMap<String, String>,
    own: &'a str,
) -> impl Iterator<Item = &'a str> {
    let names = environments.keys().map(String::as_str);
    names.filter(move |name| *name != own && !known_environments().any(|known| known == *name))
}

fn known_environments() -> impl Iterator<Item = &'static str> + Clone {
    ENVIRONMENTS.iter().copied().chain([DEFAULT_ENVIRONMENT, ANY_ENVIRONMENT])
}

fn meant(name: &str) -> String {
    hint(name, known_environments().filter(|known| *known != UNKNOWN_ENVIRONMENT))
}

impl WrittenProvider {
    fn has_leases(&self) -> bool {
        matches!(self, Self::Vault(vault) if vault.secret.values().any(|secret| secret.engine == WrittenEngine::Dynamic))
    }
}

fn provider(
    name: &str,
    written: WrittenProvider,
    setting: &Setting<'_>,
) -> Result<Arc<dyn SecretProvider>, InvalidCredentials> {
    let tenancy = setting.tenancy;
    Ok(match written {
        WrittenProvider::Vault(vault) => Arc::new(Vault::new(vault_options(name, *vault, setting)?)),
        WrittenProvider::Age(age) => {
            let at = AgeFile { file: setting.beside(&age.file), identity: setting.beside(&age.identity_file) };
            Arc::new(AgeSecrets::new(name, at, tenancy))
        }
        WrittenProvider::Folder(folder) => {
            let folder = setting.beside(&folder.folder);
            if !folder.is_dir() {
                return Err(wrong(format!("there is no folder {}", folder.display())));
            }
            Arc::new(SecretFolder::new(name, folder, tenancy))
        }
        WrittenProvider::Environment(_) if tenancy == Tenancy::Several => {
            return Err(wrong(
                "variables of the environment know no tenants; a worker that serves several cannot use them",
            ));
        }
        WrittenProvider::Environment(variables) => Arc::new(SecretVariables::new(name, variables.prefix)),
    })
}

fn vault_options(name: &str, vault: WrittenVault, setting: &Setting<'_>) -> Result<VaultOptions, InvalidCredentials> {
    check_url(&vault.url)?;
    let mut open = Vec::new();
    for range in &vault.open {
        open.push(range.parse::<Range>().map_err(|error| wrong(format!("open: `{range}`: {error}")))?);
    }
    let mut roots_pem = Vec::new();
    if let Some(path) = &vault.ca_file {
        let path = setting.beside(path);
        roots_pem.push(std::fs::read(&path).map_err(|error| wrong(format!("ca_file: {}: {error}", path.display())))?);
    }
    let outbound = Outbound::new(OutboundOptions { open, roots_pem, ..OutboundOptions::default() });
    let timeout = vault.timeout_ms.map_or(limits::CALL_TIMEOUT, Duration::from_millis);
    if timeout.is_zero() || timeout > limits::CALL_TIMEOUT_MAX {
        return Err(wrong(format!("timeout_ms: between 1 and {}", limits::CALL_TIMEOUT_MAX.as_millis())));
    }
    let mut secrets = BTreeMap::new();
    for (secret, written) in vault.secret {
        let at = |what: String| wrong(format!("secret.{secret}: {what}"));
        if !is_secret_name(&secret) {
            return Err(at("a name is made of letters, digits and `_`".to_owned()));
        }
        let place = place(written).map_err(at)?;
        if setting.tenancy == Tenancy::Several && !place.path.contains(TENANT_PLACE) {
            let what = format!("this worker serves several tenants, so the path has to hold {TENANT_PLACE}");
            return Err(at(what));
        }
        secrets.insert(secret, place);
    }
    Ok(VaultOptions {
        name: name.to_owned(),
        url: vault.url,
        namespace: vault.namespace,
        login: login(vault.login, setting)?,
        secrets,
        timeout,
        outbound: outbound.map_err(|error| wrong(error.to_string()))?,
        clock: setting.clock.clone(),
    })
}

/// A token is never sent in the clear, unless it stays on this machine.
fn check_url(text: &str) -> Result<(), InvalidCredentials> {
    let url = Url::parse(text).map_err(|error| wrong(format!("url: {error}")))?;
    let local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match url.scheme() {
        "https" => {}
        "http" if local => {}
        _ => return Err(wrong("url: it has to begin with https://; plain http is for this machine only")),
    }
    if !matches!(url.path(), "" | "/") || url.query().is_some() || !url.username().is_empty() {
        return Err(wrong("url: only the server's address, as in https://vault.example.org:8200"));
    }
    Ok(())
}

fn login(written: WrittenLogin, setting: &Setting<'_>) -> Result<Login, InvalidCredentials> {
    let mount = |mount: Option<String>, default: &str| {
        let mount = mount.unwrap_or_else(|| default.to_owned());
        check_path(&mount).map(|()| mount).map_err(|what| wrong(format!("login.mount: {what}")))
    };
    Ok(match written {
        WrittenLogin::AppRole(role) => Login::AppRole {
            mount: mount(role.mount, "approle")?,
            role_id: role.role_id,
            secret_id_file: setting.beside(&role.secret_id_file),
            wrapped: role.wrapped,
        },
        WrittenLogin::Jwt(jwt) => {
            let of_login = ["role", "jwt"];
            if let Some(name) = jwt.fields.keys().find(|name| of_login.contains(&name.as_str())) {
                return Err(wrong(format!("login.fields: `{name}` stands beside `fields`, not in it")));
            }
            let jwt_file = setting.beside(&jwt.jwt_file);
            Login::Jwt { mount: mount(jwt.mount, "jwt")?, role: jwt.role, jwt_file, fields: jwt.fields }
        }
        WrittenLogin::Aws(aws) => {
            let (mount, role) = (mount(aws.mount.clone(), "aws")?, aws.role.clone());
            Login::Aws { mount, role, identity: aws_identity(aws, setting)? }
        }
    })
}

fn aws_identity(aws: WrittenAws, setting: &Setting<'_>) -> Result<AwsIdentity, InvalidCredentials> {
    let is_region = |text: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !text.is_empty() && text.chars().all(plain)
    };
    if let Some(region) = aws.region.as_deref().filter(|region| !is_region(region)) {
        return Err(wrong(format!("login.region: `{}` is no region of AWS", region.escape_debug())));
    }
    if aws.server_id.as_deref().is_some_and(|id| id.is_empty() || !id.chars().all(|c| c.is_ascii_graphic())) {
        return Err(wrong("login.server_id: it is sent as a header: letters, digits and signs, without spaces"));
    }
    let keys = match (aws.credentials_file, aws.profile) {
        (Some(file), profile) => {
            let profile = profile.unwrap_or_else(|| "default".to_owned());
            AwsKeySource::File { file: setting.beside(&file), profile }
        }
        (None, None) => AwsKeySource::Environment,
        (None, Some(_)) => return Err(wrong("login.profile: name the credentials_file that the profile is in")),
    };
    Ok(AwsIdentity { keys, region: aws.region, server_id: aws.server_id })
}

fn place(written: WrittenSecret) -> Result<VaultSecret, String> {
    let WrittenSecret { engine, mount, path, field } = written;
    let kv = mount.clone().unwrap_or_else(|| "secret".to_owned());
    let (path, kind) = match (engine, mount) {
        (WrittenEngine::Dynamic, Some(_)) => {
            return Err("mount: a dynamic secret's path has its mount already, as in database/creds/ROLE".to_owned());
        }
        (WrittenEngine::Dynamic, None) => (path, EntryKind::Leased),
        (WrittenEngine::Kv1, _) => (format!("{kv}/{path}"), EntryKind::Plain),
        (WrittenEngine::Kv2, _) => (format!("{kv}/data/{path}"), EntryKind::Versioned),
    };
    check_path(&path)?;
    Ok(VaultSecret { path, kind, field: field.unwrap_or_else(|| "value".to_owned()) })
}

/// A path that leads where it says.
fn check_path(path: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./{}".contains(c);
    let parts_fine = path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    let braces_fine = !path.replace(TENANT_PLACE, "").contains(['{', '}']);
    if path.chars().all(plain) && parts_fine && braces_fine {
        Ok(())
    } else {
        Err(format!(
            "`{}` is not a path: letters, digits, `_`, `-`, `.`, with `/` between the parts",
            path.escape_debug()
        ))
    }
}

#[cfg(test)]
mod tests;
