//! The ledger: the outside world. It is a process of its own, which is never killed, and writes down every effect that
//! reaches it over TCP before it answers, so that it can say afterwards what really happened.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

/// Where the process finds its port and its book.
const PORT: &str = "INTERLOCK_KILL_LEDGER_PORT";
const BOOK: &str = "INTERLOCK_KILL_LEDGER_BOOK";

pub struct Ledger {
    pub port: u16,
    book: PathBuf,
    process: Child,
}

impl Ledger {
    /// Starts the process: this very program, with the one test below.
    pub async fn start(folder: &Path) -> Self {
        let (port, book) = (crate::free_port(), folder.join("ledger.txt"));
        let process = Command::new(std::env::current_exe().unwrap())
            .args(["ledger::the_ledgers_process", "--exact", "--ignored"])
            .env(PORT, port.to_string())
            .env(BOOK, &book)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        Self { port, book, process }
    }

    /// How often each effect key was called.
    pub fn calls(&self) -> HashMap<String, u32> {
        let mut calls = HashMap::new();
        for key in std::fs::read_to_string(&self.book).unwrap_or_default().lines() {
            *calls.entry(key.to_owned()).or_default() += 1;
        }
        calls
    }

    /// Whether an effect of this step of this run has reached the ledger.
    pub fn happened(&self, run: &str, step: &str) -> bool {
        self.has(&format!("#{run}/{step}/"))
    }

    /// Whether it has an effect whose key contains the mark.
    pub fn has(&self, mark: &str) -> bool {
        self.calls().keys().any(|key| key.contains(mark))
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
#[ignore = "the ledger's process, which the other tests start; by itself it does nothing"]
fn the_ledgers_process() {
    let (Ok(port), Ok(book)) = (std::env::var(PORT), std::env::var(BOOK)) else { return };
    let listener = TcpListener::bind(("127.0.0.1", port.parse().unwrap())).unwrap();
    let book = std::fs::OpenOptions::new().create(true).append(true).open(book).unwrap();
    let book = Arc::new(Mutex::new(book));
    for stream in listener.incoming() {
        let book = Arc::clone(&book);
        std::thread::spawn(move || write_down(stream.unwrap(), &book));
    }
}

/// One effect: its key is in the book before its caller hears of it.
fn write_down(stream: TcpStream, book: &Mutex<std::fs::File>) {
    let mut key = String::new();
    let mut lines = BufReader::new(stream);
    if lines.read_line(&mut key).is_ok() && key.ends_with('\n') {
        let mut open = book.lock().unwrap();
        open.write_all(key.as_bytes()).unwrap();
        open.sync_data().unwrap();
        drop(open);
        let _ = lines.get_mut().write_all(b"ok\n");
    }
}
