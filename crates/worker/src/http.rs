//! The worker's calls over HTTP: JSON bodies, one connection pool, long polls.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use interlock_broker::{BrokerAddress, limits as broker_limits};
use interlock_core::ids::SessionId;
use interlock_protocol::agent::{
    self, Complete, Completed, EffectAnswer, EffectIntent, EffectOutcome, Heartbeat, OfferAnswer, OutputBatch,
    OutputTaken, Poll, Polled, Registered, Renewed, Unregister, WorkerHello, path,
};
use interlock_protocol::body::AnswerBody;
use interlock_protocol::broker::{ANSWER_TOO_LONG, BROKER_DISABLED, BrokerTicket};
use interlock_protocol::call::{CallContext, header, key};
use interlock_protocol::channel::limits as channel_limits;
use interlock_protocol::problem::{Problem, is_transient};
use interlock_protocol::transport::{Transport, TransportError};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Certificate, Client, Identity, Method, RequestBuilder, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::broker::{Broker, Unanswered};
use crate::channel::Channel;
use crate::outage::lost;
use crate::{limits, trace};

/// What a frame has besides its body: a number, an address, the call's name and its trace.
const FRAME_MARGIN: usize = 1_024;
/// What a sealed call has besides its body.
const BROKER_MARGIN: usize = 2_048;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Shorter than what proxies and load balancers keep idle connections for.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// How much of an answer that is not from an Interlock server is quoted in an error.
const QUOTED_CHARS_MAX: usize = 200;

/// Why a transport cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum InvalidServer {
    #[error("`{url}` is not the address of a server: {what}; write http://HOST:PORT or https://HOST:PORT")]
    Url { url: String, what: String },
    #[error("a worker shows its certificate in the handshake of HTTPS, and `{url}` has none; write https://HOST:PORT")]
    PlainWithCertificate { url: String },
    #[error("the HTTP client cannot be set up: {0}")]
    Client(#[from] reqwest::Error),
}

/// Where the server is, and how worker and server know each other.
#[derive(Clone)]
pub struct TransportOptions {
    /// `http://HOST:PORT` or `https://HOST:PORT`.
    pub server: String,
    pub credential: WorkerCredential,
    /// The authorities (PEM) by which the server is trusted; the machine's own ones where there are none.
    pub ca_pem: Option<Vec<u8>>,
}

/// How a worker proves who it is.
#[derive(Clone)]
pub enum WorkerCredential {
    None,
    /// An API key, sent with every call.
    Key(String),
    /// A client certificate with its key, in PEM.
    Certificate(Zeroizing<String>),
}

/// Reaches a server. Cloning shares the connections.
#[derive(Clone)]
pub struct HttpTransport {
    /// Replaced as a whole when the certificate is renewed.
    client: Arc<RwLock<Client>>,
    base: Arc<str>,
    authorization: Option<Arc<str>>,
    /// Takes the calls, where the server has one.
    channel: Option<Arc<Channel>>,
    /// Takes them before the channel does, where it can.
    broker: Option<Arc<Broker>>,
}

impl HttpTransport {
    /// Sends `token`, if there is one, with every call.
    pub fn new(server: &str, token: Option<String>) -> Result<Self, InvalidServer> {
        let credential = token.map_or(WorkerCredential::None, WorkerCredential::Key);
        Self::open(&TransportOptions { server: server.to_owned(), credential, ca_pem: None })
    }

    pub fn open(options: &TransportOptions) -> Result<Self, InvalidServer> {
        let server = &options.server;
        let invalid = |what: String| InvalidServer::Url { url: server.clone(), what };
        let url = Url::parse(server).map_err(|error| invalid(error.to_string()))?;
        match url.scheme() {
            "http" if matches!(options.credential, WorkerCredential::Certificate(_)) => {
                return Err(InvalidServer::PlainWithCertificate { url: server.clone() });
            }
            "http" | "https" => {}
            other => return Err(invalid(format!("it speaks {other}"))),
        }
        let client = client(options)?;
        let base = url.as_str().trim_end_matches('/').into();
        let authorization = match &options.credential {
            WorkerCredential::Key(token) => Some(format!("Bearer {token}").into()),
            _ => None,
        };
        Ok(Self { client: Arc::new(RwLock::new(client)), base, authorization, channel: None, broker: None })
    }

    /// Makes the calls of a session over one WebSocket; by requests where the server, or something in between, has none.
    #[must_use]
    pub fn with_channel(self) -> Self {
        Self { channel: Some(Arc::default()), ..self }
    }

    /// Makes the calls of a session over a broker; over a channel, where it has one, or by requests where it cannot.
    #[must_use]
    pub fn with_broker(self, address: BrokerAddress) -> Self {
        Self { broker: Some(Arc::new(Broker::new(address))), ..self }
    }

    /// Goes on with a renewed certificate. Calls that are under way end as they began.
    pub fn renew(&self, options: &TransportOptions) -> Result<(), InvalidServer> {
        let fresh = client(options)?;
        *self.client.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        if let Some(channel) = &self.channel {
            channel.begin_anew();
        }
        if let Some(broker) = &self.broker {
            broker.begin_anew();
        }
        Ok(())
    }

    fn client(&self) -> Client {
        self.client.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A call that is none of a session: enrolment, and the renewal of a certificate.
    pub async fn ask<A: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<A, TransportError> {
        let body = written(body)?;
        read(path, &self.post(path, body, &trace::fresh_call(), limits::CALL_TIMEOUT).await?)
    }

    async fn call<A: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        context: CallContext,
        span: Duration,
    ) -> Result<A, TransportError> {
        read(path, &self.send(path, body, context, span).await?)
    }

    async fn send(
        &self,
        path: &str,
        body: &impl Serialize,
        context: CallContext,
        span: Duration,
    ) -> Result<Vec<u8>, TransportError> {
        let body = written(body)?;
        // Boxed: every call's future would hold it.
        if let Some(answer) = Box::pin(self.over_broker(path, &body, span)).await {
            return answer;
        }
        let open = match &self.channel {
            Some(channel) if body.len() + FRAME_MARGIN <= channel_limits::FRAME_BYTES_MAX => {
                channel.open(|| self.request(Method::GET, agent::path::CHANNEL)).await?
            }
            _ => None,
        };
        match open {
            Some(line) => {
                let (status, answer) = line.call(path, &body, &context, span).await?;
                if status.is_success() { Ok(answer) } else { Err(refusal(status, &answer)) }
            }
            None => self.post(path, body, &context, span).await,
        }
    }

    /// Makes a call over the broker; `None` where it has to go another way.
    async fn over_broker(&self, path: &str, body: &str, span: Duration) -> Option<Result<Vec<u8>, TransportError>> {
        let broker = self.broker.as_ref().filter(|_| body.len() + BROKER_MARGIN <= broker_limits::CALL_BYTES_MAX)?;
        let line = broker.open(|| self.leave_for_broker()).await?;
        let body: &RawValue = serde_json::from_str(body).ok()?;
        let waits = span.saturating_sub(limits::CALL_TIMEOUT);
        // Shorter than the caller waits, so that a broker that does not answer is noted first.
        let span = span.saturating_sub(limits::BROKER_PATIENCE);
        match line.call(path, body, (waits, span)).await {
            Ok((status, answer)) if status.is_success() => Some(Ok(answer)),
            Ok((status, answer)) => {
                let refused = refusal(status, &answer);
                match &refused {
                    TransportError::Refused { code, .. } if code == ANSWER_TOO_LONG => return None,
                    TransportError::Refused { code, .. } if code == BROKER_DISABLED => {
                        broker.decline(&line, "the tenant has switched it off");
                        return None;
                    }
                    _ => {}
                }
                // What is refused is the credential: the next call shows it to the server itself.
                if status == StatusCode::UNAUTHORIZED {
                    broker.begin_anew();
                }
                Some(Err(refused))
            }
            Err(Unanswered::NotWritten) => {
                broker.decline(&line, "the broker cannot be reached");
                None
            }
            Err(Unanswered::Lost) => {
                broker.decline(&line, "a call over the broker got no answer");
                Some(Err(TransportError::unavailable("no answer came over the broker")))
            }
        }
    }

    async fn leave_for_broker(&self) -> Result<BrokerTicket, TransportError> {
        let answer = self.post(path::BROKER, String::new(), &trace::fresh_call(), limits::CALL_TIMEOUT).await?;
        read(path::BROKER, &answer)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client().request(method, format!("{}{path}", self.base));
        match &self.authorization {
            Some(authorization) => request.header(AUTHORIZATION, &**authorization),
            None => request,
        }
    }

    async fn post(
        &self,
        path: &str,
        body: String,
        context: &CallContext,
        span: Duration,
    ) -> Result<Vec<u8>, TransportError> {
        let request = self
            .request(Method::POST, path)
            .header(CONTENT_TYPE, "application/json")
            .header(header::IDEMPOTENCY_KEY, &context.idempotency_key)
            .header(header::REQUEST_ID, &context.idempotency_key)
            .header(header::TRACEPARENT, &context.traceparent);
        let mut response = request.timeout(span).body(body).send().await.map_err(|error| lost(&error))?;
        let mut answer = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| lost(&error))? {
            if answer.len() + chunk.len() > limits::ANSWER_BYTES_MAX {
                return Err(TransportError::unavailable(format!("the answer from {path} is too large")));
            }
            answer.extend_from_slice(&chunk);
        }
        let status = response.status();
        if status.is_success() { Ok(answer) } else { Err(refusal(status, &answer)) }
    }

    async fn call_of_session<A: DeserializeOwned>(
        &self,
        path: &str,
        session: SessionId,
        body: &impl Serialize,
        key: String,
    ) -> Result<A, TransportError> {
        let path = path.replace("{session}", &session.to_string());
        self.call(&path, body, trace::call(key), limits::CALL_TIMEOUT).await
    }
}

fn written(body: &impl Serialize) -> Result<String, TransportError> {
    serde_json::to_string(body).map_err(|error| TransportError::refused("REQUEST_INVALID", error.to_string()))
}

fn read<A: DeserializeOwned>(path: &str, answer: &[u8]) -> Result<A, TransportError> {
    serde_json::from_slice(answer)
        .map_err(|error| TransportError::unavailable(format!("unreadable answer from {path}: {error}")))
}

fn client(options: &TransportOptions) -> Result<Client, InvalidServer> {
    let mut builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_MAX)
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none())
        // The server is named by the operator of this worker; a proxy from the environment is for others.
        .no_proxy();
    if let Some(pem) = &options.ca_pem {
        builder = builder.tls_certs_only(Certificate::from_pem_bundle(pem)?);
    }
    if let WorkerCredential::Certificate(pem) = &options.credential {
        builder = builder.identity(Identity::from_pem(pem.as_bytes())?);
    }
    Ok(builder.build()?)
}

/// A refusal of the server, or of a proxy before it.
fn refusal(status: StatusCode, answer: &[u8]) -> TransportError {
    if let Ok(problem) = serde_json::from_slice::<Problem>(answer) {
        return problem.into();
    }
    let quoted: String = String::from_utf8_lossy(answer).chars().take(QUOTED_CHARS_MAX).collect();
    if is_transient(status.as_u16()) {
        return TransportError::unavailable(format!("{status}: {quoted}"));
    }
    TransportError::refused(&format!("HTTP_{}", status.as_u16()), format!("{status}: {quoted}"))
}

impl Transport for HttpTransport {
    async fn register(&self, hello: WorkerHello) -> Result<Registered, TransportError> {
        self.call(path::REGISTER, &hello, trace::fresh_call(), limits::CALL_TIMEOUT).await
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<Renewed, TransportError> {
        self.call(path::HEARTBEAT, &heartbeat, trace::fresh_call(), limits::CALL_TIMEOUT).await
    }

    async fn poll(&self, mut poll: Poll) -> Result<Polled, TransportError> {
        if self.broker.is_some() {
            poll.wait_ms = poll.wait_ms.min(limits::BROKER_POLL_WAIT.into());
        }
        let span = poll.wait_ms.as_duration() + limits::CALL_TIMEOUT;
        self.call(path::POLL, &poll, trace::fresh_call(), span).await
    }

    async fn complete(&self, complete: Complete) -> Result<Completed, TransportError> {
        let key = key::report(&complete.report);
        self.call_of_session(path::COMPLETE, complete.session, &complete.report, key).await
    }

    async fn intent(&self, session: SessionId, intent: EffectIntent) -> Result<EffectAnswer, TransportError> {
        let key = key::intent(&intent);
        let answer: AnswerBody = self.call_of_session(path::EFFECTS, session, &intent, key).await?;
        Ok(answer.0)
    }

    async fn outcome(&self, session: SessionId, outcome: EffectOutcome) -> Result<(), TransportError> {
        let path = path::OUTCOMES.replace("{session}", &session.to_string());
        let context = trace::call(key::outcome(&outcome));
        self.send(&path, &outcome, context, limits::CALL_TIMEOUT).await.map(|_| ())
    }

    async fn output(&self, session: SessionId, batch: OutputBatch) -> Result<OutputTaken, TransportError> {
        let key = key::output(&batch);
        self.call_of_session(path::OUTPUT, session, &batch, key).await
    }

    async fn answer_offer(&self, session: SessionId, answer: OfferAnswer) -> Result<(), TransportError> {
        let path = path::ASSIGNMENTS.replace("{session}", &session.to_string());
        let context = trace::call(key::offer(&answer));
        self.send(&path, &answer, context, limits::CALL_TIMEOUT).await.map(|_| ())
    }

    async fn unregister(&self, session: SessionId) -> Result<(), TransportError> {
        let context = trace::call(key::unregister(session));
        self.send(path::UNREGISTER, &Unregister { session }, context, limits::CALL_TIMEOUT).await.map(|_| ())
    }
}
