//! Which server is meant, and with which credential: flags, then the environment, then the context, then the server
//! that runs on this machine.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use interlock_server::private_file;
use reqwest::Url;

use super::contexts::Contexts;
use super::local;
use super::secret::Secret;
use crate::output::exit::{Exit, ExitError};

pub const DEFAULT_SERVER: &str = "http://127.0.0.1:8420";

#[derive(Debug, Clone, Args)]
pub struct TargetArgs {
    /// The server to talk to; by default the one of the current context, else the one on this machine.
    #[arg(long, global = true, env = "INTERLOCK_SERVER", value_name = "URL", help_heading = "Connection")]
    pub server: Option<String>,
    /// The context to use instead of the current one (`interlock context list`).
    #[arg(long, global = true, env = "INTERLOCK_CONTEXT", value_name = "NAME", help_heading = "Connection")]
    pub context: Option<String>,
    /// A file that holds the API key. INTERLOCK_API_KEY may hold the key itself.
    #[arg(long, global = true, env = "INTERLOCK_API_KEY_FILE", value_name = "FILE", help_heading = "Connection")]
    pub api_key_file: Option<PathBuf>,
    /// The authority (PEM) that has signed the server's certificate: it is trusted, and no other.
    #[arg(
        long,
        global = true,
        env = "INTERLOCK_CA",
        value_name = "FILE",
        help_heading = "Connection",
        hide_short_help = true
    )]
    pub ca: Option<PathBuf>,
}

/// Where requests go, and what they carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Without a slash at its end.
    pub server: String,
    pub credential: Option<Secret>,
    /// The authority by which the server is trusted; the machine's own ones where there is none.
    pub ca: Option<PathBuf>,
    /// How it was found, for `context show` and `doctor`.
    pub from: &'static str,
}

impl TargetArgs {
    pub fn target(&self) -> anyhow::Result<Target> {
        let contexts = Contexts::load()?;
        let mut target = self.server_of(&contexts)?;
        if let Some(given) = self.given_credential()? {
            target.credential = Some(given);
        }
        target.ca = self.ca.clone().or(target.ca);
        Ok(target)
    }

    fn server_of(&self, contexts: &Contexts) -> anyhow::Result<Target> {
        if let Some(name) = &self.context
            && self.server.is_none()
        {
            if contexts.means_local(name) {
                let found = local::find().ok_or_else(|| {
                    ExitError::saying(Exit::Config, "no server runs on this machine; `interlock up` starts one")
                })?;
                let server = address(&found.server)?;
                return Ok(Target { server, credential: found.api_key, ca: found.ca, from: "--context" });
            }
            let context = contexts.named(name)?;
            let server = address(&context.server)?;
            let (credential, ca) = (context.credential.clone(), context.ca.clone());
            return Ok(Target { server, credential, ca, from: "--context" });
        }
        if let Some(server) = &self.server {
            let server = address(server)?;
            // A stored key goes only to the server that it was stored for.
            let local = local::find().filter(|local| local.server == server);
            let (key, local_ca) = local.map_or((None, None), |local| (local.api_key, local.ca));
            let credential = contexts.credential_for(&server).or(key);
            let ca = contexts.ca_for(&server).or(local_ca);
            return Ok(Target { server, credential, ca, from: "--server" });
        }
        if let Some(name) = &contexts.current {
            let context = contexts.named(name)?;
            let server = address(&context.server)?;
            let (credential, ca) = (context.credential.clone(), context.ca.clone());
            return Ok(Target { server, credential, ca, from: "the current context" });
        }
        if let Some(local) = local::find() {
            let server = address(&local.server)?;
            return Ok(Target { server, credential: local.api_key, ca: local.ca, from: "the server on this machine" });
        }
        Ok(Target { server: DEFAULT_SERVER.to_owned(), credential: None, ca: None, from: "the default" })
    }

    /// A credential of this call alone, whatever the context says.
    fn given_credential(&self) -> anyhow::Result<Option<Secret>> {
        let wrong = |what: String| ExitError::saying(Exit::Config, what);
        if let Some(path) = &self.api_key_file {
            let text = private_file::read(path)
                .map_err(|error| wrong(format!("cannot read the API key file {}: {error}", path.display())))?;
            let key = Secret::new(&text)
                .ok_or_else(|| wrong(format!("the API key file {} does not hold a key", path.display())))?;
            return Ok(Some(key));
        }
        match std::env::var("INTERLOCK_API_KEY") {
            Ok(text) if !text.is_empty() => {
                Secret::new(&text).map(Some).ok_or_else(|| wrong("INTERLOCK_API_KEY does not hold a key".into()))
            }
            _ => Ok(None),
        }
    }
}

impl Target {
    pub fn is_loopback(&self) -> bool {
        Url::parse(&self.server).is_ok_and(|url| is_loopback(&url))
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// An address as users write it, made exact: `prod.example:8420` is `https://…`, `localhost` is `http://…`.
pub fn address(text: &str) -> anyhow::Result<String> {
    let wrong = |what: &str| {
        let what = format!("`{text}` is not the address of a server: {what}; write https://HOST or http://HOST:PORT");
        ExitError::saying(Exit::Config, what)
    };
    let with_scheme = if text.contains("://") { text.to_owned() } else { guess_scheme(text) };
    let url = Url::parse(&with_scheme).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong(&format!("it speaks {}", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("a credential does not belong in it (`interlock login` stores one)"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it has a query or a fragment"));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn guess_scheme(text: &str) -> String {
    let plain = format!("http://{text}");
    if Url::parse(&plain).is_ok_and(|url| is_loopback(&url)) { plain } else { format!("https://{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_made_exact() {
        for (text, exact) in [
            ("http://127.0.0.1:8420", "http://127.0.0.1:8420"),
            ("http://127.0.0.1:8420/", "http://127.0.0.1:8420"),
            ("localhost:8420", "http://localhost:8420"),
            ("[::1]:9", "http://[::1]:9"),
            ("prod.example", "https://prod.example"),
            ("https://prod.example/interlock/", "https://prod.example/interlock"),
        ] {
            assert_eq!(address(text).unwrap(), exact, "{text}");
        }
        for text in ["", "ftp://h", "http://me:secret@h", "http://h/?a=b", "http://"] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_loopback_is_loopback() {
        let at = |server: &str| Target { server: server.into(), credential: None, ca: None, from: "" }.is_loopback();
        assert!(at("http://localhost:1") && at("http://127.0.0.2") && at("http://[::1]:4"));
        assert!(!at("http://localhost.example.org") && !at("http://10.0.0.1"));
    }
}
