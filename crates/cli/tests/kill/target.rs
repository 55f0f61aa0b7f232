//! The counting target: a system outside that counts what reaches it over HTTP. Calls with an `Idempotency-Key` that it has
//! seen are no second effect; calls without one each are.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

#[derive(Clone)]
pub struct Target {
    pub port: u16,
    calls: Arc<Mutex<Vec<Call>>>,
}

struct Call {
    run: String,
    key: Option<String>,
}

impl Target {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let calls = Arc::default();
        let target = Self { port, calls: Arc::clone(&calls) };
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let calls = Arc::clone(&calls);
                std::thread::spawn(move || serve(stream.unwrap(), &calls));
            }
        });
        target
    }

    /// What has become of a run's calls here.
    pub fn effects(&self, run: &str) -> usize {
        let calls = self.calls.lock().unwrap();
        let of_run = calls.iter().filter(|call| call.run == run);
        let mut keys = HashSet::new();
        of_run.filter(|call| call.key.as_ref().is_none_or(|key| keys.insert(key))).count()
    }
}

/// Counts before it answers. A caller that dies in the middle of its request has not called.
fn serve(stream: TcpStream, calls: &Mutex<Vec<Call>>) {
    let mut lines = BufReader::new(stream);
    let mut call: Option<Call> = None;
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).is_err() || !line.ends_with('\n') {
            return;
        }
        match (&mut call, line.trim_end()) {
            (None, first) => {
                let run = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
                call = Some(Call { run, key: None });
            }
            (Some(_), "") => break,
            (Some(call), header) => {
                if let Some((name, value)) = header.split_once(": ")
                    && name.eq_ignore_ascii_case("idempotency-key")
                {
                    call.key = Some(value.to_owned());
                }
            }
        }
    }
    calls.lock().unwrap().extend(call);
    let answer =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    let _ = lines.get_mut().write_all(answer.as_bytes());
}
