//! The server that runs on this machine: `interlock up` leaves a note where it listens, so that every other command
//! finds it without flags. The note is for its owner only, and goes when the server goes.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::contexts::{config_dir, write_private};
use super::secret::Secret;
use crate::output::say_aside;

const FILE: &str = "local.json";
const LISTENS_WITHIN: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LocalServer {
    pub server: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Secret>,
    /// The authority by which an HTTPS server is trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    pub pid: u32,
}

/// The note's author; dropping it takes the note away.
#[derive(Debug)]
pub struct AnnouncedServer(Option<PathBuf>);

impl Drop for AnnouncedServer {
    fn drop(&mut self) {
        if let Some(path) = &self.0
            && read(path).is_some_and(|local| local.pid == std::process::id())
        {
            // A file that stays does no harm: its readers notice that it is stale.
            let _ = fs::remove_file(path);
        }
    }
}

impl AnnouncedServer {
    /// Whether commands find this server without flags.
    pub fn is_found(&self) -> bool {
        self.0.is_some()
    }
}

/// The flags by which a command finds a server that left no note.
pub fn flags(server: &str, key_file: &Path) -> String {
    format!("--server {server} --api-key-file {}", key_file.display())
}

/// Leaves the note. A machine without a home goes without: flags still work.
pub fn announce(local: LocalServer, key_file: &Path) -> AnnouncedServer {
    let Some(path) = config_dir().map(|dir| dir.join(FILE)) else { return AnnouncedServer(None) };
    if let Some(first) = find().filter(|first| first.pid != local.pid && first.server != local.server)
        && answers(&first)
    {
        say_aside(&format!(
            "interlock: commands go on to find the server at {}; for this one, give {}",
            first.server,
            flags(&local.server, key_file)
        ));
        return AnnouncedServer(None);
    }
    let written = serde_json::to_string(&local).map_err(Into::into).and_then(|text| write_private(&path, &text));
    match written {
        Ok(()) => AnnouncedServer(Some(path)),
        Err(error) => {
            tracing::warn!(%error, "other commands will need --server to find this one");
            AnnouncedServer(None)
        }
    }
}

/// Whether a server listens there: the process id alone may have gone to another program.
fn answers(local: &LocalServer) -> bool {
    let address = local.server.split_once("://").map(|(_, address)| address);
    let address = address.and_then(|address| address.parse::<SocketAddr>().ok());
    address.is_some_and(|address| TcpStream::connect_timeout(&address, LISTENS_WITHIN).is_ok())
}

/// The server that said it is here, if its process still is.
pub fn find() -> Option<LocalServer> {
    read(&config_dir()?.join(FILE)).filter(is_there)
}

/// The server that said it is here and has gone without taking its word back: it was killed, or it crashed.
pub fn died() -> Option<LocalServer> {
    read(&config_dir()?.join(FILE)).filter(|local| !is_there(local))
}

fn is_there(local: &LocalServer) -> bool {
    let pid = i32::try_from(local.pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

fn read(path: &PathBuf) -> Option<LocalServer> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}
