//! The command line's way to a server: one typed HTTP client over the protocol's types.
//!
//! A noun flattens [`ClientArgs`] into its arguments and calls [`ClientArgs::open`] for a [`Client`] and a
//! [`Printer`](crate::output::Printer). Which server is meant, and with which credential, is looked up by [`target`];
//! several servers have names in the [`contexts`] file. What can go wrong is a [`ClientError`], which knows what the
//! user should try next and how the process ends.

pub mod context;
pub mod contexts;
mod error;
pub mod live;
pub mod local;
mod secret;
pub mod target;
pub mod trust;
pub mod workspace;

use std::time::Duration;

use clap::Args;
use interlock_core::ids::ChangeId;
use interlock_protocol::changes::CHANGE_HEADER;
use interlock_protocol::problem::Problem;
use reqwest::header::{AUTHORIZATION, HeaderName, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::output::{OutputArgs, Printer, say_aside};
pub use error::{ClientError, UNTRUSTED_SERVER, is_untrusted};
pub use secret::Secret;
use target::Target;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may take, beyond what a request asked the server to wait. A server waits 30 seconds for its database, and
/// then says so: that answer is worth waiting for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(40);
/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// How much of an answer is shown that is not understood.
const SHOWN_CHARS_MAX: usize = 16 << 10;
/// The largest refusal that is read.
const PROBLEM_BYTES_MAX: usize = 64 << 10;
/// How often a request that the server could not take right now is sent again, and how long each pause is at most.
const REPEATS_MAX: u32 = 3;
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The pause before a request whose answer was lost is sent again.
const PAUSE: Duration = Duration::from_secs(1);
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Where the server is and how to print: what every command that talks to a server takes.
#[derive(Debug, Clone, Args)]
pub struct ClientArgs {
    #[command(flatten)]
    pub server: target::TargetArgs,
    /// The change that this carries out, once a second admin has agreed to it (`interlock change`).
    #[arg(
        long = "change",
        id = "carried_change",
        global = true,
        value_name = "CHANGE",
        help_heading = "Connection",
        hide_short_help = true
    )]
    pub change: Option<ChangeId>,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl ClientArgs {
    pub fn open(&self) -> anyhow::Result<(Client, Printer)> {
        let client = Client { change: self.change, ..Client::new(self.server.target()?)? };
        Ok((client, self.output.printer()))
    }
}

/// A server to ask. Cloning shares the connections.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    target: Target,
    /// Named by every request that changes something.
    change: Option<ChangeId>,
}

/// A request to be sent: the path, and what goes with it.
#[derive(Debug)]
pub struct Call<'a> {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    headers: Vec<(HeaderName, String)>,
    body: Option<serde_json::Result<Vec<u8>>>,
    /// How long the server was asked to wait before it answers.
    waits: Duration,
    client: &'a Client,
}

impl Client {
    pub fn new(target: Target) -> Result<Self, ClientError> {
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            // A redirect would send the credential to a server that the user has not named.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("interlock/", env!("CARGO_PKG_VERSION")));
        if target.is_loopback() {
            builder = builder.no_proxy();
        }
        if let Some(path) = &target.ca {
            let roots = trust::certificates(path).map_err(|error| ClientError::Setup(error.to_string()))?;
            builder = builder.tls_certs_only(roots);
        }
        let http = builder.build().map_err(|error| ClientError::Setup(error::in_full(&error)))?;
        Ok(Self { http, target, change: None })
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    pub fn get(&self, path: impl Into<String>) -> Call<'_> {
        self.call(Method::GET, path)
    }

    pub fn post(&self, path: impl Into<String>, body: &(impl Serialize + ?Sized)) -> Call<'_> {
        self.call(Method::POST, path).body(body)
    }

    /// Any other method; a body may follow.
    pub fn call(&self, method: Method, path: impl Into<String>) -> Call<'_> {
        Call {
            method,
            path: path.into(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            waits: Duration::ZERO,
            client: self,
        }
    }

    fn lost(&self, error: &reqwest::Error) -> ClientError {
        let what = error::behind_request(error);
        if error.is_timeout() && !error.is_connect() {
            return ClientError::TimedOut { server: self.target.server.clone() };
        }
        let server = self.target.server.clone();
        if !error.is_connect() {
            return ClientError::Lost { server, what };
        }
        ClientError::Unreachable { server, loopback: self.target.is_loopback(), what }
    }

    /// What a refusal says, if it is one of an Interlock server.
    pub async fn refusal(&self, mut response: Response) -> Option<ClientError> {
        let mut answer = Vec::new();
        while let Ok(Some(chunk)) = response.chunk().await {
            answer.extend_from_slice(&chunk);
            if answer.len() > PROBLEM_BYTES_MAX {
                return None;
            }
        }
        let refused = self.refused(response.status(), &answer);
        matches!(refused, ClientError::Refused { .. }).then_some(refused)
    }

    fn refused(&self, status: StatusCode, answer: &[u8]) -> ClientError {
        let Ok(problem) = serde_json::from_slice::<Problem>(answer) else {
            let text: String = String::from_utf8_lossy(answer).chars().take(200).collect();
            return ClientError::Foreign { server: self.target.server.clone(), status: status.as_u16(), text };
        };
        let had_credential = self.target.credential.is_some();
        ClientError::Refused { server: self.target.server.clone(), had_credential, problem: Box::new(problem) }
    }
}

impl Call<'_> {
    pub fn body(mut self, body: &(impl Serialize + ?Sized)) -> Self {
        self.body = Some(serde_json::to_vec(body));
        self
    }

    /// Adds a parameter to the query, if there is one.
    pub fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    pub fn header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Makes a repeat of this request the same request.
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        self.header(HeaderName::from_static(IDEMPOTENCY_KEY), key)
    }

    /// The server was asked to wait this long before it answers.
    pub fn waits(mut self, span: Duration) -> Self {
        self.waits = span;
        self
    }

    /// Sends it and reads the answer.
    pub async fn send<A: DeserializeOwned>(self) -> Result<A, ClientError> {
        let server = self.client.target.server.clone();
        let method = self.method.clone();
        let bytes = self.bytes().await?;
        serde_json::from_slice(&bytes).map_err(|error| not_understood(server, &method, &bytes, error.to_string()))
    }

    /// Sends it; the answer has nothing to say, or nothing that is of interest.
    pub async fn done(self) -> Result<(), ClientError> {
        self.bytes().await.map(drop)
    }

    /// Sends it and gives the answer as it is. Under a key it is sent again where its answer was lost: it is the same request
    /// then, and gets the first one's answer.
    pub async fn bytes(self) -> Result<Vec<u8>, ClientError> {
        let has_key = self.headers.iter().any(|(name, _)| name.as_str() == IDEMPOTENCY_KEY);
        let (mut repeats, mut lost) = (0, false);
        loop {
            let (error, come_back) = match self.answer().await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            lost |= has_key && error.is_lost_answer();
            // A server that is away after a lost answer may be starting again.
            let is_open = lost && (error.is_transient() || error.is_under_way());
            match come_back.or(is_open.then_some(PAUSE)).filter(|_| repeats < REPEATS_MAX) {
                Some(pause) => {
                    if lost && repeats == 0 {
                        say_aside(&format!("interlock: {error}; it is asked again under the same key, and done once"));
                    }
                    repeats += 1;
                    tokio::time::sleep(pause).await;
                }
                None if is_open && !error.is_lost_answer() => {
                    return Err(ClientError::AfterLost(Box::new(error)));
                }
                None => return Err(error),
            }
        }
    }

    /// One try: the answer; or why there is none, and when to come back where the server says so.
    async fn answer(&self) -> Result<Vec<u8>, (ClientError, Option<Duration>)> {
        let mut response = self.once(Some(self.waits + ANSWER_TIMEOUT)).await.map_err(|error| (error, None))?;
        let status = response.status();
        // Only what the server has not begun can be sent again without a thought.
        let come_back = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let come_back = come_back.then(|| retry_after(&response).min(PAUSE_MAX));
        let mut answer = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| (self.client.lost(&error), come_back))? {
            if answer.len() + chunk.len() > ANSWER_BYTES_MAX {
                let what = format!("it is larger than {} MiB", ANSWER_BYTES_MAX >> 20);
                return Err((ClientError::Unreadable { server: self.client.target.server.clone(), what }, None));
            }
            answer.extend_from_slice(&chunk);
        }
        if status.is_success() { Ok(answer) } else { Err((self.client.refused(status, &answer), come_back)) }
    }

    /// Sends it for an answer that does not end: a stream, or another protocol.
    pub async fn open(self) -> Result<Response, ClientError> {
        self.once(None).await
    }

    async fn once(&self, limit: Option<Duration>) -> Result<Response, ClientError> {
        let Target { server, credential, .. } = &self.client.target;
        let mut request =
            self.client.http.request(self.method.clone(), format!("{server}{}", self.path)).query(&self.query);
        if let Some(limit) = limit {
            request = request.timeout(limit);
        }
        if let Some(credential) = credential {
            request = request.header(AUTHORIZATION, credential.bearer());
        }
        if let Some(change) = self.client.change.filter(|_| self.method != Method::GET) {
            request = request.header(CHANGE_HEADER, change.to_string());
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        match &self.body {
            Some(Ok(body)) => {
                request = request.header(reqwest::header::CONTENT_TYPE, "application/json").body(body.clone());
            }
            Some(Err(error)) => return Err(ClientError::Setup(format!("the request cannot be written: {error}"))),
            None => {}
        }
        request.send().await.map_err(|error| self.client.lost(&error))
    }
}

/// An answer that does not fit. One in JSON is from a server that knows more: the user gets to read what it says. The answer
/// to a change may hold a secret, and is not repeated where it could end in a log.
fn not_understood(server: String, asked: &Method, answer: &[u8], what: String) -> ClientError {
    match serde_json::from_slice::<serde_json::Value>(answer) {
        Ok(told) if *asked == Method::GET => {
            let told: String = format!("{told:#}").chars().take(SHOWN_CHARS_MAX).collect();
            ClientError::Unknown { server, what, answer: format!("it says:\n{told}") }
        }
        Ok(_) => ClientError::Unknown { server, what, answer: "what was asked for has been done".to_owned() },
        Err(_) => ClientError::Unreadable { server, what },
    }
}

fn retry_after(response: &Response) -> Duration {
    let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1))
}

/// A path of the protocol with its places filled: `fill("/api/v1/runs/{run}", &[("run", id)])`.
pub fn fill(path: &str, places: &[(&str, &(dyn std::fmt::Display + Sync))]) -> String {
    let mut filled = path.to_owned();
    for (name, value) in places {
        filled = filled.replace(&format!("{{{name}}}"), &percent_encoded(&value.to_string()));
    }
    filled
}

/// Everything but unreserved characters (RFC 3986) as `%XX`.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            use std::fmt::Write;
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    const DONE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    const CUT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{";
    const GATEWAY: &str = "HTTP/1.1 504 x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    const FULL: &str = "HTTP/1.1 503 x\r\nretry-after: 0\r\nconnection: close\r\n\r\n\
        {\"type\":\"urn:x\",\"title\":\"Full\",\"status\":503,\"detail\":\"full\",\"code\":\"STORE_FULL\"}";

    /// What a request gets from a server that gives these answers, the last one again and again; and how often it was sent.
    async fn sent(answers: &'static [&'static str], key: Option<&str>) -> (Result<Vec<u8>, ClientError>, usize) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let serving = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut [0; 4096]).await;
                let number = counted.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
                let _ = stream.write_all(answers[number].as_bytes()).await;
            }
        });
        let client = Client::new(Target { server, credential: None, ca: None, from: "test" }).unwrap();
        let call = client.call(Method::POST, "/x");
        let answer = match key {
            Some(key) => call.idempotency_key(key).bytes().await,
            None => call.bytes().await,
        };
        serving.abort();
        (answer, count.load(Ordering::SeqCst))
    }

    #[tokio::test]
    async fn a_lost_answer_is_asked_for_again_under_the_key() {
        let (closed, cut, gateway, refused, keyless) = tokio::join!(
            sent(&["", DONE], Some("k")),
            sent(&[CUT, DONE], Some("k")),
            sent(&[GATEWAY, DONE], Some("k")),
            sent(&["", FULL], Some("k")),
            sent(&[""], None),
        );
        for (answer, tries) in [closed, cut, gateway] {
            assert_eq!((answer.unwrap(), tries), (b"{}".to_vec(), 2));
        }
        // What was on its way once may have been carried out, whatever its repeats are told.
        let (error, tries) = (refused.0.unwrap_err(), refused.1);
        assert!(error.is_lost_answer() && tries == 4, "{tries}: {error}");
        assert_eq!((error.status(), error.to_string().as_str()), (Some(503), "full (STORE_FULL)"));
        let error = keyless.0.unwrap_err();
        assert!(error.is_lost_answer() && keyless.1 == 1, "{}: {error}", keyless.1);
        // What was refused from the first time on was not carried out.
        assert!(!sent(&[FULL], Some("k")).await.0.unwrap_err().is_lost_answer());
    }

    #[test]
    fn the_answer_of_a_newer_server_is_shown_as_it_came() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Colour {
            Red,
        }
        let read = |method: Method, answer: &str| {
            let error = serde_json::from_str::<Vec<Colour>>(answer).unwrap_err().to_string();
            let error = not_understood("http://h".into(), &method, answer.as_bytes(), error);
            assert_eq!(error.exit(), crate::output::exit::Exit::Internal);
            assert!(error.hint().unwrap().contains("--version"));
            error.to_string()
        };
        let told = read(Method::GET, r#"["red", "teal \u001b[2J"]"#);
        assert!(told.contains("unknown variant `teal") && told.contains("it says:\n  [\n    \"red\",\n"), "{told}");
        assert!(!told.contains('\u{1b}'), "{told}");
        let told = read(Method::POST, r#"["a secret"]"#);
        assert!(told.ends_with("; what was asked for has been done"), "{told}");
        assert!(read(Method::GET, "[\"red\",").starts_with("the answer of http://h cannot be read"));
        assert!(matches!(serde_json::from_str("\"red\""), Ok(Colour::Red)));
    }

    #[test]
    fn what_fills_a_path_cannot_leave_its_place() {
        let path = fill("/api/v1/runs/{run}/steps/{step}/resolve", &[("run", &"run_1"), ("step", &"../a b?c#d")]);
        assert_eq!(path, "/api/v1/runs/run_1/steps/..%2Fa%20b%3Fc%23d/resolve");
    }
}
