//! Keys are kept in files, so that they appear in no argument list and no environment.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use interlock_server::private_file;

use crate::output::say_aside;
use crate::server::LOCAL_KEY_FILE;

/// A worker that is started together with its server waits this long for the server to make the key.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Whether a server has left its key there.
pub fn is_in(data: &Path) -> bool {
    data.join(LOCAL_KEY_FILE).exists()
}

/// The key in `named`, else the one that a server on this machine has left in its data folder.
pub async fn read(named: Option<&Path>, data: &Path) -> anyhow::Result<String> {
    let path = named.map_or_else(|| data.join(LOCAL_KEY_FILE), Path::to_owned);
    let mut patience = PATIENCE;
    if !path.exists() {
        say_aside(&format!("interlock: waiting for a server to leave its key in {}", path.display()));
    }
    while !path.exists() && !patience.is_zero() {
        tokio::time::sleep(LOOK_EVERY).await;
        patience = patience.saturating_sub(LOOK_EVERY);
    }
    let text = private_file::read(&path).with_context(|| match named {
        Some(_) => format!("cannot read the key file {}", path.display()),
        None if path.exists() => format!("cannot read the key that a server has left in {}", path.display()),
        None => format!(
            "there is no key for the server: name one with --api-key-file, or start this beside a server on this machine (`interlock server`) and name its data folder with --data (looked for {})",
            path.display()
        ),
    })?;
    let key = text.trim();
    anyhow::ensure!(!key.is_empty(), "the key file {} is empty", path.display());
    Ok(key.to_owned())
}
