//! A server that answers as a test says, and remembers the requests. And a resolver whose answers change.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use interlock_outbound::{Outbound, OutboundOptions, Resolve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

#[derive(Clone)]
pub struct Server {
    pub at: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers every request with the same text; `{target}` was filled in by the caller.
    pub async fn answering(ip: &str, port: u16, answer: impl Into<Vec<u8>>) -> Self {
        let listener = TcpListener::bind((ip.parse::<IpAddr>().unwrap(), port)).await.unwrap();
        let at = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (answer, seen) = (answer.into(), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                    let mut part = [0; 1024];
                    match stream.read(&mut part).await {
                        Ok(0) | Err(_) => break,
                        Ok(read) => head.extend_from_slice(&part[..read]),
                    }
                }
                seen.lock().unwrap().push(String::from_utf8_lossy(&head).into_owned());
                let _ = stream.write_all(&answer).await;
            }
        });
        Self { at, requests }
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

pub fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

pub fn moved(status: u16, to: &str) -> String {
    format!("HTTP/1.1 {status} Moved\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

/// Answers each look-up with the next list; the last one stays.
pub struct Scripted(pub Mutex<VecDeque<Vec<&'static str>>>);

impl Resolve for Scripted {
    fn resolve(&self, _name: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        let mut script = self.0.lock().unwrap();
        let answer = if script.len() > 1 { script.pop_front().unwrap() } else { script[0].clone() };
        let addresses = answer.iter().map(|text| text.parse().unwrap()).collect();
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

/// A client to which 127.0.0.2 is "the internet" and the rest of loopback is not.
pub fn client(lookups: &[&[&'static str]]) -> Outbound {
    let script = lookups.iter().map(|addresses| addresses.to_vec()).collect();
    let options = OutboundOptions {
        open: vec!["127.0.0.2".parse().unwrap()],
        resolver: Arc::new(Scripted(Mutex::new(script))),
        ..OutboundOptions::default()
    };
    Outbound::new(options).unwrap()
}
