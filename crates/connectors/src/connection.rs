//! Connections: where a system is and who calls it. The worker's operator writes them into one file; workflows name
//! them. So a step cannot send a credential anywhere but to the system that it belongs to, and no file holds a secret.
//!
//! ```toml
//! [connection.servicenow]
//! url = "https://example.service-now.com"
//! user = "interlock"
//! secret = "SERVICENOW_PASSWORD"     # the name of a secret, never its value
//!
//! [price."gpt-5-mini"]               # in dollars for a million tokens
//! input = 0.25
//! output = 2.0
//! ```

use std::collections::BTreeMap;

use interlock_core::secret_name::is_secret_name;
use serde::Deserialize;

use crate::failure::CallFailure;
use crate::limits;
use crate::price::{Price, Prices};

/// Where a system is, and who calls it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    #[serde(skip)]
    pub name: String,
    /// The beginning of every address, without a `/` at its end.
    pub url: String,
    /// With it the secret is a password, without it a token.
    #[serde(default)]
    pub user: Option<String>,
    /// The name of a secret.
    #[serde(default)]
    pub secret: Option<String>,
    /// The sender of mail.
    #[serde(default)]
    pub from: Option<String>,
    /// The shape of a model's API; the connection `anthropic` has its own, all others OpenAI's.
    #[serde(default)]
    pub api: Option<ModelApi>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelApi {
    Openai,
    /// Servers that speak OpenAI's language as it was: `max_tokens`.
    OpenaiCompatible,
    Anthropic,
}

/// How a connection proves who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login<'a> {
    Anonymous,
    Bearer { secret: &'a str },
    Basic { user: &'a str, secret: &'a str },
}

impl Connection {
    pub fn new(name: &str, url: &str) -> Self {
        Self { name: name.to_owned(), url: url.to_owned(), user: None, secret: None, from: None, api: None }
    }

    pub fn with_secret(self, secret: &str) -> Self {
        Self { secret: Some(secret.to_owned()), ..self }
    }

    pub fn with_user(self, user: &str) -> Self {
        Self { user: Some(user.to_owned()), ..self }
    }

    pub fn login(&self) -> Login<'_> {
        match (&self.user, &self.secret) {
            (_, None) => Login::Anonymous,
            (None, Some(secret)) => Login::Bearer { secret },
            (Some(user), Some(secret)) => Login::Basic { user, secret },
        }
    }

    /// The host that it leads to, for effect keys.
    pub fn host(&self) -> &str {
        let rest = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        rest.split(['/', '?', '#']).next().unwrap_or_default()
    }

    /// The name of its secret, which a call cannot do without.
    pub fn secret(&self) -> Result<&str, CallFailure> {
        self.secret.as_deref().ok_or_else(|| {
            let what = format!("the connection `{}` names no `secret`, and this call needs one", self.name);
            CallFailure::refused("CONNECTION_WITHOUT_SECRET", what)
        })
    }

    fn check(&self) -> Result<(), String> {
        let schemes = ["https://", "http://", "smtps://", "smtp://"];
        if !schemes.iter().any(|scheme| self.url.starts_with(scheme)) || self.host().is_empty() {
            return Err(format!("`url` is `{}`; expected https://HOST, or smtps://HOST for mail", self.url));
        }
        if self.host().contains('@') {
            return Err("`url` holds a user; write `user` and `secret`".to_owned());
        }
        if self.url.ends_with('/') || self.url.contains(['?', '#', ' ']) || self.url.len() > limits::URL_BYTES {
            return Err("`url` ends with `/`, or holds a query or a space".to_owned());
        }
        if let Some(secret) = self.secret.as_deref().filter(|name| !is_secret_name(name)) {
            let shown: String = secret.chars().take(4).collect();
            return Err(format!(
                "`secret` (`{shown}…`) is not the name of a secret: letters, digits and `_`, and never the secret itself"
            ));
        }
        if self.user.as_ref().is_some_and(|user| user.contains(':') || user.chars().any(char::is_control)) {
            return Err("`user` holds a colon or a control character".to_owned());
        }
        Ok(())
    }
}

/// All connections of a worker, and what models cost.
#[derive(Debug, Clone, Default)]
pub struct Connections {
    by_name: BTreeMap<String, Connection>,
    pub prices: Prices,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConnectionsFile {
    #[serde(default)]
    connection: BTreeMap<String, Connection>,
    #[serde(default)]
    price: BTreeMap<String, Price>,
}

/// Why a file of connections cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidConnections {
    #[error("{0}")]
    Syntax(String),
    #[error("the connection `{name}`: {what}")]
    Connection { name: String, what: String },
    #[error("the price of `{model}` is not an amount from 0 to 1,000,000 dollars")]
    Price { model: String },
    #[error("there are more than {} connections or prices", limits::CONNECTIONS)]
    TooMany,
}

/// What needs no file: the public systems, each with a secret of its own.
const PRESETS: &[(&str, &str, &str)] = &[
    ("slack", "https://slack.com", "SLACK_TOKEN"),
    ("github", "https://api.github.com", "GITHUB_TOKEN"),
    ("pagerduty", "https://events.pagerduty.com", "PAGERDUTY_ROUTING_KEY"),
    ("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    ("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
];

impl Connections {
    /// The public systems.
    pub fn presets() -> Self {
        let presets = PRESETS.iter().map(|(name, url, secret)| Connection::new(name, url).with_secret(secret));
        presets.fold(Self::default(), Self::with)
    }

    pub fn with(mut self, connection: Connection) -> Self {
        self.by_name.insert(connection.name.clone(), connection);
        self
    }

    /// The public systems, and what a file says beside or instead.
    pub fn from_toml(text: &str) -> Result<Self, InvalidConnections> {
        if text.len() > limits::CONNECTIONS_FILE_BYTES {
            return Err(InvalidConnections::TooMany);
        }
        let file: ConnectionsFile =
            toml::from_str(text).map_err(|error| InvalidConnections::Syntax(error.to_string()))?;
        if file.connection.len() > limits::CONNECTIONS || file.price.len() > limits::CONNECTIONS {
            return Err(InvalidConnections::TooMany);
        }
        let mut all = Self::presets();
        for (name, mut connection) in file.connection {
            connection.check().map_err(|what| InvalidConnections::Connection { name: name.clone(), what })?;
            connection.name.clone_from(&name);
            all.by_name.insert(name, connection);
        }
        if let Some((model, _)) = file.price.iter().find(|(_, price)| !price.is_amount()) {
            return Err(InvalidConnections::Price { model: model.clone() });
        }
        all.prices = Prices::new(file.price);
        Ok(all)
    }

    pub fn get(&self, name: &str) -> Result<&Connection, CallFailure> {
        self.by_name.get(name).ok_or_else(|| {
            let what = format!(
                "this worker has no connection `{name}`; write [connection.{name}] into the file that --connectors names"
            );
            CallFailure::refused("CONNECTION_UNKNOWN", what)
        })
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_adds_to_the_public_systems_and_replaces_them() {
        let text = r#"
            [connection.servicenow]
            url = "https://dev1.service-now.com"
            user = "interlock"
            secret = "SN_PASSWORD"
            [connection.slack]
            url = "https://slack.example.org"
            secret = "OTHER"
            [price.small]
            input = 0.25
            output = 2.0
        "#;
        let all = Connections::from_toml(text).unwrap();
        let servicenow = all.get("servicenow").unwrap();
        assert_eq!(servicenow.host(), "dev1.service-now.com");
        assert_eq!(servicenow.login(), Login::Basic { user: "interlock", secret: "SN_PASSWORD" });
        assert_eq!(all.get("slack").unwrap().login(), Login::Bearer { secret: "OTHER" });
        assert_eq!(all.get("github").unwrap().url, "https://api.github.com");
        let says = all.get("jira").unwrap_err();
        assert!(says.message.contains("[connection.jira]"), "{says}");
    }

    #[test]
    fn a_slip_is_refused_and_a_secret_is_not_repeated() {
        for (text, says) in [
            ("[connection.a]\nurl = \"ftp://x\"", "expected https://HOST"),
            ("[connection.a]\nurl = \"https://x/\"", "ends with `/`"),
            ("[connection.a]\nurl = \"https://u:p@x\"", "holds a user"),
            ("[connection.a]\nurl = \"https://x\"\nsecert = \"A\"", "secert"),
            ("[price.a]\ninput = -1.0\noutput = 1.0", "price of `a`"),
            ("[conection.a]\nurl = \"https://x\"", "conection"),
        ] {
            let error = Connections::from_toml(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        let text = "[connection.a]\nurl = \"https://x\"\nsecret = \"xoxb-1234-abcdef\"";
        let error = Connections::from_toml(text).unwrap_err().to_string();
        assert!(!error.contains("1234"), "{error}");
    }
}
