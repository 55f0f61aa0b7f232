//! `interlock login --browser`: the server's own sign-in page, with a password or with an identity provider. A code
//! comes back to a port on this machine (RFC 8252), or is typed in where the browser runs elsewhere.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use interlock_protocol::identity::{NewToken, PersonToken, path};
use reqwest::Url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::client::Client;
use crate::output::exit::{Exit, ExitError};
use crate::output::say_aside;

const PAGE: &str = "/auth/cli";
/// How long a person may take to sign in.
const PATIENCE: Duration = Duration::from_mins(5);
const REQUEST_BYTES_MAX: usize = 16 << 10;
const SECRET_CHARS: usize = 43;

/// How the person's browser is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BrowserMode {
    /// Start a browser here.
    Open,
    /// Only print the address, to be opened on this machine.
    Print,
    /// The browser runs on another machine: ask for the code that it shows.
    Code,
}

pub async fn token(client: &Client, way: BrowserMode) -> anyhow::Result<PersonToken> {
    let (verifier, state) = (secret(), secret());
    let challenge = interlock_server::identity::oidc::challenge(&verifier);
    let server = &client.target().server;
    let address = format!("{server}{PAGE}?challenge={challenge}&state={state}");
    let code = if way == BrowserMode::Code {
        say_aside(&format!("Sign in at this address, and let the command line in:\n  {address}"));
        super::ask("Code")?.trim().to_owned()
    } else {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen on 127.0.0.1")?;
        let address = format!("{address}&port={}", listener.local_addr()?.port());
        say_aside(&format!("Sign in at this address, and let the command line in:\n  {address}"));
        if way == BrowserMode::Open && !open(&address) {
            say_aside("No browser could be started here; with --browser=code it may run on another machine.");
        }
        tokio::time::timeout(PATIENCE, come_back(listener, &state)).await.map_err(|_| {
            ExitError::saying(
                Exit::TryLater,
                "the sign-in was not finished within five minutes; start `interlock login` again",
            )
        })??
    };
    Ok(client.post(path::TOKEN, &NewToken::Code { code, verifier }).send().await?)
}

/// Random letters and digits, too many to guess.
fn secret() -> String {
    interlock_server::identity::key::random_text(SECRET_CHARS)
}

fn open(address: &str) -> bool {
    let programs = ["xdg-open", "open"];
    programs.iter().any(|program| {
        let started =
            Command::new(program).arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        started.is_ok()
    })
}

/// Waits for the browser to bring the code. Whatever else knocks is told that it is wrong here.
async fn come_back(listener: TcpListener, state: &str) -> anyhow::Result<String> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        let Some(line) = request_line(&mut stream).await else { continue };
        let code = code_in(&line, state);
        let (status, text) = match code {
            Some(_) => ("200 OK", "You are signed in. Go back to the command line; this page can be closed."),
            None => ("400 Bad Request", "This is not the answer that the command line waits for."),
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
            text.len()
        );
        // The code counts, whether or not the browser hears of it.
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
        if let Some(code) = code {
            return Ok(code);
        }
    }
}

async fn request_line(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 2_048];
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") && bytes.len() < REQUEST_BYTES_MAX {
        let read = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut chunk)).await.ok()?.ok()?;
        if read == 0 {
            break;
        }
        bytes.extend_from_slice(&chunk[..read]);
    }
    String::from_utf8_lossy(&bytes).lines().next().map(str::to_owned)
}

/// The code in `GET /?code=…&state=… HTTP/1.1`, if it answers our question.
fn code_in(line: &str, state: &str) -> Option<String> {
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    let url = Url::parse("http://127.0.0.1").ok()?.join(target).ok()?;
    let value = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    (value("state")? == state).then(|| value("code")).flatten().filter(|code| !code.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_to_our_question_counts() {
        assert_eq!(code_in("GET /?code=a.b.c&state=s1 HTTP/1.1", "s1").as_deref(), Some("a.b.c"));
        for line in [
            "GET /?code=a&state=other HTTP/1.1",
            "GET /?code=a HTTP/1.1",
            "GET /?code=&state=s1 HTTP/1.1",
            "POST /?code=a&state=s1 HTTP/1.1",
            "GET /favicon.ico HTTP/1.1",
            "nonsense",
        ] {
            assert_eq!(code_in(line, "s1"), None, "{line}");
        }
    }
}
