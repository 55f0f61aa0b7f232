//! `interlock login`, `logout` and `whoami`: a credential for a server, kept in the contexts file. A key is for programs;
//! people sign in as themselves, with a password or on the server's page ([`browser`]), and get a token.

mod browser;
pub mod whoami;

use std::io::{self, BufRead, IsTerminal, Read};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use interlock_protocol::identity::{self, Login, NewToken, PersonToken};
use interlock_protocol::runs::{Nothing, path};
use interlock_server::private_file;
use reqwest::Url;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::client::context::kept_path;
use crate::client::contexts::{Context, Contexts};
use crate::client::target::{DEFAULT_SERVER, Target, address};
use crate::client::{Client, Secret, local};
use crate::output::exit::{Exit, ExitError};
use crate::output::{ask_aside, say_aside};

/// A key for programs, which may stand in the environment while a person signs in: only the flag is refused beside
/// `--user`, so clap is not told of it.
const KEY_FILE_VARIABLE: &str = "INTERLOCK_API_KEY_FILE";
/// The longest key that is read.
const KEY_BYTES_MAX: u64 = 16 << 10;

#[derive(Args)]
pub struct LoginArgs {
    /// The server's address; that of the context by default.
    #[arg(long, env = "INTERLOCK_SERVER", value_name = "URL")]
    server: Option<String>,
    /// The context to store the credential in; made if it is not there. By default the current one, else the server's
    /// name.
    #[arg(long, env = "INTERLOCK_CONTEXT", value_name = "NAME")]
    context: Option<String>,
    /// Sign in as this person, with a password that is asked for, or read from stdin.
    #[arg(long, value_name = "NAME", conflicts_with = "browser")]
    user: Option<String>,
    /// The person's tenant; the server's default one where omitted.
    #[arg(long, value_name = "NAME", requires = "user")]
    tenant: Option<String>,
    /// Sign in as yourself on the server's page, with a password or by the identity provider.
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "open"
    )]
    browser: Option<browser::BrowserMode>,
    /// A file that holds an API key; not with --user or --browser. By default the file that INTERLOCK_API_KEY_FILE names;
    /// without one, the key is asked for or read from stdin.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["user", "browser"])]
    api_key_file: Option<PathBuf>,
    /// The authority (PEM) that has signed the server's certificate; stored with the context.
    #[arg(long, env = "INTERLOCK_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Store the key without asking the server whether it is good.
    #[arg(long)]
    no_verify: bool,
}

#[derive(Args)]
pub struct LogoutArgs {
    /// The context whose credential is forgotten; the current one by default.
    #[arg(long, env = "INTERLOCK_CONTEXT", value_name = "NAME")]
    context: Option<String>,
}

pub async fn login(args: LoginArgs) -> anyhow::Result<()> {
    let mut contexts = Contexts::load()?;
    let (name, server) = place(&args, &contexts)?;
    let ca = args.ca.as_deref().map(kept_path).transpose()?.or_else(|| contexts.ca_for(&server));
    let ca = ca.or_else(|| local::find().filter(|local| local.server == server).and_then(|local| local.ca));
    let target = Target { server: server.clone(), credential: None, ca: ca.clone(), from: "login" };
    let (credential, who) = credential(&args, target).await?;
    contexts.put(&name, Context { server: server.clone(), credential: Some(credential), ca })?;
    contexts.current = Some(name.clone());
    contexts.save()?;
    say_aside(&format!("Logged in to {server}{who}; commands use the context `{name}` now."));
    Ok(())
}

/// The credential, and as whom it lets in.
async fn credential(args: &LoginArgs, target: Target) -> anyhow::Result<(Secret, String)> {
    let server = &target.server.clone();
    let client = Client::new(target.clone())?;
    let token: PersonToken = if let Some(name) = &args.user {
        let text = ask(&format!("Password of {name} at {server}"))?;
        let password = text.trim_end_matches(['\r', '\n']).to_owned();
        let login = Login { name: name.clone(), password, tenant: args.tenant.clone() };
        client.post(identity::path::TOKEN, &NewToken::Password(login)).send().await?
    } else if let Some(way) = args.browser {
        browser::token(&client, way).await?
    } else {
        return Ok((key(args, target).await?, String::new()));
    };
    let until = crate::output::span::instant(token.expires_at);
    let secret = Secret::new(&token.token)
        .ok_or_else(|| ExitError::saying(Exit::Internal, "the server's token cannot be sent back to it"))?;
    Ok((secret, format!(" as {} until {until}", interlock_core::text::visible::visible(&token.person))))
}

async fn key(args: &LoginArgs, target: Target) -> anyhow::Result<Secret> {
    let server = &target.server;
    let from_variable = || std::env::var_os(KEY_FILE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let key = match args.api_key_file.clone().or_else(from_variable) {
        Some(path) => private_file::read(&path).with_context(|| format!("cannot read {}", path.display()))?,
        None => ask(&format!("API key for {server}"))?,
    };
    let key = Secret::new(&key)
        .ok_or_else(|| ExitError::saying(Exit::Config, "that is not an API key: it is empty or holds white space"))?;
    if !args.no_verify {
        verify(target, &key).await?;
    }
    Ok(key)
}

pub async fn logout(args: LogoutArgs) -> anyhow::Result<()> {
    let mut contexts = Contexts::load()?;
    let Some(name) = args.context.or_else(|| contexts.current.clone()) else {
        say_aside("There is no current context, so there is no credential to forget.");
        return Ok(());
    };
    let (server, ca) = (contexts.named(&name)?.server.clone(), contexts.named(&name)?.ca.clone());
    let forgotten = contexts.contexts.get_mut(&name).and_then(|context| context.credential.take());
    // Without a credential it would stand in the way of the server on this machine.
    if contexts.current.as_deref() == Some(name.as_str()) {
        contexts.current = None;
    }
    contexts.save()?;
    let what = match forgotten {
        Some(secret) if secret.is_persons() => {
            let client = Client::new(Target { server, credential: Some(secret), ca, from: "logout" })?;
            match client.post(identity::path::LOGOUT, &Nothing {}).done().await {
                Ok(()) => "You are signed out on the server, too.".to_owned(),
                // A token that is over already needs no ending.
                Err(error) if error.status() == Some(401) => "You were signed out on the server already.".to_owned(),
                Err(error) => format!("The server could not be told ({error}); the token ends by itself."),
            }
        }
        Some(_) => "The key is forgotten here; revoke it on the server with `interlock key revoke`.".to_owned(),
        None => "It had no credential.".to_owned(),
    };
    say_aside(&format!("Logged out of `{name}`. {what}"));
    Ok(())
}

/// Under which name, and for which server, the key is stored.
fn place(args: &LoginArgs, contexts: &Contexts) -> anyhow::Result<(String, String)> {
    let server = args.server.as_deref().map(address).transpose()?;
    if let Some(name) = &args.context {
        let known = contexts.contexts.get(name).map(|context| context.server.clone());
        let server = server.or(known).unwrap_or_else(nearest_server);
        return Ok((name.clone(), server));
    }
    match server {
        None => {
            let current = contexts.current.as_ref().and_then(|name| contexts.contexts.get_key_value(name));
            let (name, server) =
                current.map_or_else(|| (None, nearest_server()), |(name, c)| (Some(name), c.server.clone()));
            Ok((name.cloned().unwrap_or_else(|| "local".to_owned()), server))
        }
        Some(server) => {
            let known = contexts.contexts.iter().find(|(_, context)| context.server == server);
            let name = known.map_or_else(|| name_of(&server), |(name, _)| name.clone());
            Ok((name, server))
        }
    }
}

/// The server on this machine, as every other command finds it.
fn nearest_server() -> String {
    local::find().map_or_else(|| DEFAULT_SERVER.to_owned(), |local| local.server)
}

/// A name after the server's host, such as `prod.example`.
fn name_of(server: &str) -> String {
    let host = Url::parse(server).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    let name: String =
        host.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '-' }).collect();
    if name.is_empty() { "server".to_owned() } else { name }
}

/// Asks something harmless under the key. A key that may not list runs is a good key all the same.
async fn verify(target: Target, key: &Secret) -> anyhow::Result<()> {
    let client = Client::new(Target { credential: Some(key.clone()), ..target })?;
    match client.get(path::RUNS).query("limit", Some(1)).done().await {
        Err(error) if error.status() == Some(403) => Ok(()),
        answered => Ok(answered?),
    }
}

/// A secret from the terminal without an echo, or from whatever is piped in.
pub fn ask(what: &str) -> anyhow::Result<String> {
    let stdin = io::stdin();
    let mut key = String::new();
    if !stdin.is_terminal() {
        stdin.lock().take(KEY_BYTES_MAX).read_to_string(&mut key).context("cannot read the key from stdin")?;
        return Ok(key);
    }
    ask_aside(&format!("{what}: "))?;
    let before = tcgetattr(&stdin)?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Flush, &quiet)?;
    let read = stdin.lock().take(KEY_BYTES_MAX).read_line(&mut key);
    let restored = tcsetattr(&stdin, OptionalActions::Flush, &before);
    say_aside("");
    read.context("cannot read the key")?;
    restored?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_named_after_its_host() {
        assert_eq!(name_of("https://prod.example:8420/x"), "prod.example");
        assert_eq!(name_of("http://[::1]:1"), "---1-");
        assert_eq!(name_of("nonsense"), "server");
    }
}
