//! The ledger: the outside world. It runs in the test's own process, which nobody kills, and writes down every effect
//! that reaches it over TCP, so that it can say afterwards what really happened.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

/// How often each effect key was called.
pub type Calls = Arc<Mutex<HashMap<String, u32>>>;

pub struct Ledger {
    pub port: u16,
    pub calls: Calls,
}

impl Ledger {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let calls = Calls::default();
        let book = Arc::clone(&calls);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let book = Arc::clone(&book);
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let mut key = String::new();
                    if stream.read_line(&mut key).await.is_ok() && key.ends_with('\n') {
                        *book.lock().unwrap().entry(key.trim().to_owned()).or_default() += 1;
                        let _ = stream.write_all(b"ok\n").await;
                    }
                });
            }
        });
        Self { port, calls }
    }

    /// Whether an effect of this step of this run has reached the ledger.
    pub fn happened(&self, run: &str, step: &str) -> bool {
        let mark = format!("#{run}/{step}/");
        self.calls.lock().unwrap().keys().any(|key| key.contains(&mark))
    }
}
