//! The broker of one command. It ends with the command, and all its connections with it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use interlock_outbound::Outbound;
use rustix::fs::{Gid, Uid};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::target::Target;
use crate::launch::Identity;
use crate::limits;

/// Attempts that are remembered for the receipt.
const ATTEMPTS_MAX: usize = 256;

/// What a command asked the broker for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressAttempt {
    /// As asked for; not necessarily a target.
    pub target: String,
    /// Why there was no connection.
    pub refused: Option<String>,
}

type Attempts = Arc<Mutex<Vec<EgressAttempt>>>;

#[derive(Debug)]
pub(crate) struct Broker {
    socket: PathBuf,
    accepting: JoinHandle<()>,
    attempts: Attempts,
}

impl Broker {
    /// Listens on a socket that only the command's identity can connect to.
    pub fn open(socket: &Path, owner: Option<Identity>, targets: Vec<Target>, outbound: Outbound) -> io::Result<Self> {
        let listener = UnixListener::bind(socket)?;
        if let Some(Identity { uid, gid }) = owner {
            rustix::fs::chown(socket, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
        }
        rustix::fs::chmod(socket, rustix::fs::Mode::from_raw_mode(0o600))?;
        let attempts = Attempts::default();
        let gate = Gate { targets: targets.into(), outbound, attempts: Arc::clone(&attempts) };
        let accepting = tokio::spawn(accept(listener, gate));
        Ok(Self { socket: socket.to_owned(), accepting, attempts })
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub fn attempts(&self) -> Vec<EgressAttempt> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.accepting.abort();
        let _ = std::fs::remove_file(&self.socket);
    }
}

#[derive(Clone)]
struct Gate {
    targets: Arc<[Target]>,
    outbound: Outbound,
    attempts: Attempts,
}

async fn accept(listener: UnixListener, gate: Gate) {
    let room = Arc::new(Semaphore::new(limits::EGRESS_CONNECTIONS_MAX));
    // Aborted with this task.
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let gate = gate.clone();
                connections.spawn(async move {
                    gate.serve(stream).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the egress broker stops accepting");
                return;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

impl Gate {
    async fn serve(&self, mut stream: UnixStream) {
        let Ok(Some((asked, early))) = timeout(limits::EGRESS_HEAD_TIMEOUT, head(&mut stream)).await else {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;
            return;
        };
        match self.connect(&asked).await {
            Ok(mut outside) => {
                self.remember(&asked, None);
                let established = stream.write_all(b"HTTP/1.1 200 Connection Established\r\n\r\n").await;
                if established.is_ok() && outside.write_all(&early).await.is_ok() {
                    let _ = copy_bidirectional(&mut stream, &mut outside).await;
                }
            }
            Err(why) => {
                let answer = format!(
                    "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{why}",
                    why.len()
                );
                // First, because the command may end as soon as it has the answer.
                self.remember(&asked, Some(why));
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        }
    }

    async fn connect(&self, asked: &str) -> Result<tokio::net::TcpStream, String> {
        let target: Target = asked.parse().map_err(|error: super::InvalidTarget| error.to_string())?;
        if !self.targets.contains(&target) {
            return Err(format!("{target} is not among the targets of this command"));
        }
        let socket = self.outbound.connect(target.host(), target.port()).await.map_err(|error| error.to_string())?;
        Ok(socket.stream)
    }

    fn remember(&self, asked: &str, refused: Option<String>) {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        if attempts.len() < ATTEMPTS_MAX {
            attempts.push(EgressAttempt { target: asked.chars().take(256).collect(), refused });
        }
    }
}

/// What `CONNECT` asks for, and the bytes that came after the head.
async fn head(stream: &mut UnixStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let early = bytes.split_off(end + 4);
            let text = String::from_utf8(bytes).ok()?;
            let mut words = text.lines().next()?.split(' ');
            let (method, asked, version) = (words.next()?, words.next()?, words.next()?);
            let fine = method == "CONNECT" && version.starts_with("HTTP/1.") && words.next().is_none();
            return fine.then(|| (asked.to_owned(), early));
        }
        if bytes.len() >= limits::EGRESS_HEAD_BYTES_MAX || stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
