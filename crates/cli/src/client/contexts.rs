//! The contexts file: the servers that a person works with, by name, with the credential for each. It stands in the
//! user's config folder and is readable by its owner only.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::secret::Secret;
use crate::output::exit::{Exit, ExitError};

/// The server that runs on this machine, unless the user has a context of this name.
pub const LOCAL: &str = "local";
const FILE: &str = "contexts.json";
const CONTEXTS_MAX: usize = 1_000;
const NAME_CHARS_MAX: usize = 64;

/// What the file holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contexts {
    /// The one that is meant where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    #[serde(default)]
    pub contexts: BTreeMap<String, Context>,
}

/// One server, as one person uses it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    pub server: String,
    /// A key, or a person's token.
    #[serde(default, alias = "api_key", skip_serializing_if = "Option::is_none")]
    pub credential: Option<Secret>,
    /// The authority (PEM) by which the server is trusted; the machine's own ones where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
}

/// Where the user's files are: `INTERLOCK_CONFIG_DIR`, else below XDG_CONFIG_HOME, else below ~/.config.
pub fn config_dir() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("INTERLOCK_CONFIG_DIR")
        .or_else(|| set("XDG_CONFIG_HOME").map(|dir| dir.join("interlock")))
        .or_else(|| set("HOME").map(|home| home.join(".config").join("interlock")))
}

pub fn path() -> anyhow::Result<PathBuf> {
    let dir = config_dir().ok_or_else(|| {
        ExitError::saying(Exit::Config, "there is no config folder: set HOME, XDG_CONFIG_HOME or INTERLOCK_CONFIG_DIR")
    })?;
    Ok(dir.join(FILE))
}

impl Contexts {
    /// The user's contexts; none where there is no file yet.
    pub fn load() -> anyhow::Result<Self> {
        match path() {
            Ok(path) => Self::read(&path),
            // A service or a container without a home folder. Flags and the environment still work.
            Err(_) => Ok(Self::default()),
        }
    }

    fn read(path: &Path) -> anyhow::Result<Self> {
        let wrong = |what: String| ExitError::saying(Exit::Config, format!("{}: {what}", path.display()));
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(wrong(format!("cannot be read: {error}"))),
        };
        let mode = fs::metadata(path).map_err(|error| wrong(error.to_string()))?.permissions().mode();
        let contexts: Self = serde_json::from_str(&text).map_err(|error| {
            wrong(format!("is not a contexts file: {error}. Mend it, or remove it and log in again"))
        })?;
        if mode & 0o077 != 0 && contexts.contexts.values().any(|context| context.credential.is_some()) {
            let open = format!("others can read the credentials in it; run: chmod 600 {}", path.display());
            return Err(wrong(open));
        }
        Ok(contexts)
    }

    pub fn save(&self) -> anyhow::Result<()> {
        write_private(&path()?, &serde_json::to_string_pretty(self)?)
    }

    /// The context of this name, or an error that names the others.
    pub fn named(&self, name: &str) -> anyhow::Result<&Context> {
        self.contexts.get(name).ok_or_else(|| {
            let nearest = interlock_core::text::nearest::nearest(name, self.contexts.keys().map(String::as_str));
            let hint = match (nearest, self.contexts.is_empty()) {
                (Some(nearest), _) => format!("did you mean `{nearest}`?"),
                (None, true) => "there are none yet; `interlock context add NAME --server URL` makes one".to_owned(),
                (None, false) => format!("there are: {}", self.names().join(", ")),
            };
            ExitError::saying(Exit::Config, format!("there is no context `{name}`; {hint}"))
        })
    }

    /// Whether the name is not a context of the user, but the server on this machine.
    pub fn means_local(&self, name: &str) -> bool {
        name == LOCAL && !self.contexts.contains_key(LOCAL)
    }

    pub fn names(&self) -> Vec<&str> {
        self.contexts.keys().map(String::as_str).collect()
    }

    /// The credential stored for a server, whatever its context is called.
    pub fn credential_for(&self, server: &str) -> Option<Secret> {
        let current = self.current.as_ref().and_then(|name| self.contexts.get(name));
        let mut candidates = current.into_iter().chain(self.contexts.values());
        candidates.find(|context| context.server == server && context.credential.is_some())?.credential.clone()
    }

    /// The authority stored for a server.
    pub fn ca_for(&self, server: &str) -> Option<PathBuf> {
        let current = self.current.as_ref().and_then(|name| self.contexts.get(name));
        let mut candidates = current.into_iter().chain(self.contexts.values());
        candidates.find(|context| context.server == server && context.ca.is_some())?.ca.clone()
    }

    pub fn put(&mut self, name: &str, context: Context) -> anyhow::Result<()> {
        check_name(name)?;
        anyhow::ensure!(
            self.contexts.len() < CONTEXTS_MAX || self.contexts.contains_key(name),
            "there are {CONTEXTS_MAX} contexts already; remove some with `interlock context remove NAME`"
        );
        self.contexts.insert(name.to_owned(), context);
        Ok(())
    }
}

fn check_name(name: &str) -> anyhow::Result<()> {
    let fits = !name.is_empty()
        && name.len() <= NAME_CHARS_MAX
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    let what = || format!("`{name}` cannot be a context's name; use letters, digits, `-`, `_` and `.`");
    if fits { Ok(()) } else { Err(ExitError::saying(Exit::Config, what())) }
}

/// Writes a file that only its owner can read, whole or not at all.
pub fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    use anyhow::Context as _;
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir).with_context(|| format!("cannot make the folder {}", dir.display()))?;
    let fresh = dir.join(format!(".{}.{}", path.file_name().unwrap_or_default().display(), std::process::id()));
    let written = (|| {
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&fresh, path)
    })();
    if written.is_err() {
        // A half-written file is of no use.
        let _ = fs::remove_file(&fresh);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("interlock-contexts-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn example() -> Contexts {
        let mut contexts = Contexts { current: Some("prod".into()), ..Contexts::default() };
        let credential = Secret::new("il_0123456789");
        contexts.put("prod", Context { server: "https://prod.example".into(), credential, ca: None }).unwrap();
        contexts.put("dev", Context { server: "http://127.0.0.1:1".into(), credential: None, ca: None }).unwrap();
        contexts
    }

    #[test]
    fn what_is_written_is_read_back_and_closed_to_others() {
        let folder = folder("round");
        let path = folder.join(FILE);
        write_private(&path, &serde_json::to_string(&example()).unwrap()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Contexts::read(&path).unwrap(), example());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left behind");

        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = Contexts::read(&path).unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_key_goes_only_to_the_server_it_belongs_to() {
        let contexts = example();
        assert!(contexts.credential_for("https://prod.example").is_some());
        assert!(contexts.credential_for("https://prod.example.evil").is_none());
        assert!(contexts.credential_for("http://127.0.0.1:1").is_none());
    }

    #[test]
    fn an_unknown_context_names_the_nearest() {
        let error = example().named("prd").unwrap_err().to_string();
        assert!(error.contains("did you mean `prod`?"), "{error}");
        assert!(example().put("a b", Context { server: String::new(), credential: None, ca: None }).is_err());
    }
}
