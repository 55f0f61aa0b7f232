//! A proxy that cuts connections: behind each byte of a request or an answer once, one connection after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// How long a connection lives that is not cut before: longer than a busy machine takes for an answer.
const LIFETIME: Duration = Duration::from_secs(3);

/// Where connections are cut: behind so many bytes of what the caller sends, or of what the server answers.
#[derive(Clone, Copy)]
enum Cut {
    Request(usize),
    Answer(usize),
    /// Left alone, so that callers get on.
    Never,
}

pub struct Cutter {
    pub port: u16,
    stride: usize,
    connections: Arc<AtomicUsize>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Cutter {
    /// Passes connections on to the port, and cuts them behind every `stride`-th byte; after `bytes_max` it begins anew.
    pub async fn start(to: u16, bytes_max: usize, stride: usize) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let accepting = tokio::spawn(async move {
            loop {
                let (caller, _) = listener.accept().await.unwrap();
                let number = count.fetch_add(1, Ordering::Relaxed);
                let bytes = number / 3 * stride % (bytes_max + 1);
                let cut = [Cut::Request(bytes), Cut::Answer(bytes), Cut::Never][number % 3];
                tokio::spawn(pass(caller, to, cut, number.is_multiple_of(2)));
            }
        });
        Self { port, stride, connections, accepting }
    }

    /// Behind how many bytes the last connections were cut, had it never begun anew.
    pub fn reached(&self) -> usize {
        self.connections.load(Ordering::Relaxed) / 3 * self.stride
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Passes one connection on until it is cut, politely or with a reset.
async fn pass(caller: TcpStream, to: u16, cut: Cut, reset: bool) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", to)).await else { return };
    for stream in [&caller, &server] {
        stream.set_nodelay(true).unwrap();
        if reset {
            stream.set_zero_linger().unwrap();
        }
    }
    let (from_caller, to_caller) = caller.into_split();
    let (from_server, to_server) = server.into_split();
    let (asked, answered) = match cut {
        Cut::Request(bytes) => (bytes, usize::MAX),
        Cut::Answer(bytes) => (usize::MAX, bytes),
        Cut::Never => (usize::MAX, usize::MAX),
    };
    // Whichever ends first takes both connections with it.
    tokio::select! {
        () = copy(from_caller, to_server, asked) => {}
        () = copy(from_server, to_caller, answered) => {}
        () = tokio::time::sleep(LIFETIME) => {}
    }
}

/// Copies so many bytes, or all.
async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, bytes: usize) {
    let (mut left, mut buffer) = (bytes, [0; 4096]);
    while left > 0 {
        let wanted = buffer.len().min(left);
        let Ok(read @ 1..) = from.read(&mut buffer[..wanted]).await else { return };
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
        left -= read;
    }
}
