//! [`Outbound`]: sends calls, follows redirects itself, and stops where a limit says so.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HeaderMap, LOCATION, PROXY_AUTHORIZATION};
use reqwest::{Certificate, Client, Method, Response, StatusCode, Url};

use crate::call::{Call, Excess, HttpResponse};
use crate::error::OutboundError;
use crate::limits;
use crate::range::Range;
use crate::resolver::{Guarded, Lookup, Resolve, SystemResolver};
use crate::rules::{Forbidden, Rules};
use crate::socket_options::SocketOptions;

/// What the server's operator decides about outbound calls.
#[derive(Clone)]
pub struct OutboundOptions {
    /// Private ranges that may be called.
    pub open: Vec<Range>,
    /// Private ranges that may be called for one tenant only, by the tenant's id.
    pub open_for: BTreeMap<String, Vec<Range>>,
    /// Ranges that may not, whatever they are.
    pub closed: Vec<Range>,
    /// Certificates (PEM) to trust beside the machine's own.
    pub roots_pem: Vec<Vec<u8>>,
    pub resolver: Arc<dyn Resolve>,
}

impl Default for OutboundOptions {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            open_for: BTreeMap::new(),
            closed: Vec::new(),
            roots_pem: Vec::new(),
            resolver: Arc::new(SystemResolver),
        }
    }
}

/// Carries calls in place of the network, where there is none: in a simulation.
pub trait Exchange: Send + Sync + 'static {
    fn send(&self, call: Call) -> Exchanged<'_>;
}

pub type Exchanged<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, OutboundError>> + Send + 'a>>;

/// The client. Cheap to clone; all clones share connections and rules.
#[derive(Clone)]
pub struct Outbound {
    rules: Arc<Rules>,
    wire: Wire,
    /// Those of the tenants that have ranges of their own. They share no connections with others: one that is open was judged
    /// when it was made.
    tenants: Arc<BTreeMap<String, Self>>,
}

#[derive(Clone)]
enum Wire {
    Http(Clients, Arc<SocketOptions>),
    Exchange(Arc<dyn Exchange>),
}

/// One per kind of look-up: a resolver does not learn the port that its answer is for.
#[derive(Clone)]
struct Clients {
    any_port: Client,
    own_port: Client,
}

impl Outbound {
    pub fn new(options: OutboundOptions) -> Result<Self, OutboundError> {
        let OutboundOptions { open, open_for, closed, roots_pem, resolver } = options;
        let mut roots = Vec::new();
        for pem in &roots_pem {
            let certificates = Certificate::from_pem_bundle(pem).map_err(setup)?;
            if certificates.is_empty() {
                let what = "a file of certificates has none in it; it has to be a PEM file, with `BEGIN CERTIFICATE`";
                return Err(OutboundError::Setup(what.to_owned()));
            }
            roots.extend(certificates);
        }
        let sockets = Arc::new(SocketOptions { resolver, roots_pem });
        let all = Rules::new(open, closed);
        let mut tenants = BTreeMap::new();
        for (tenant, open) in open_for {
            tenants.insert(tenant, Self::under(all.opening(&open), &sockets, &roots)?);
        }
        Ok(Self { tenants: Arc::new(tenants), ..Self::under(all, &sockets, &roots)? })
    }

    fn under(rules: Rules, sockets: &Arc<SocketOptions>, roots: &[Certificate]) -> Result<Self, OutboundError> {
        let rules = Arc::new(rules);
        let client = |lookup| {
            let builder = || {
                let resolver = Arc::clone(&sockets.resolver);
                Client::builder()
                    .no_proxy()
                    .redirect(reqwest::redirect::Policy::none())
                    .retry(reqwest::retry::never())
                    .referer(false)
                    .user_agent(concat!("interlock/", env!("CARGO_PKG_VERSION")))
                    .connect_timeout(limits::CONNECT_TIMEOUT)
                    .pool_max_idle_per_host(limits::IDLE_PER_HOST_MAX)
                    .pool_idle_timeout(limits::IDLE_TIMEOUT)
                    .dns_resolver(Guarded { rules: Arc::clone(&rules), resolver, lookup })
            };
            builder().tls_certs_merge(roots.to_vec()).build().or_else(|error| {
                // A machine without any certificates can still call plain HTTP, and hosts whose authority was added.
                tracing::warn!(%error, "this machine's certificates cannot be read; only added ones are trusted");
                builder().tls_certs_only(roots.to_vec()).build().map_err(setup)
            })
        };
        let clients = Clients { any_port: client(Lookup::AnyPort)?, own_port: client(Lookup::OwnPort)? };
        Ok(Self { wire: Wire::Http(clients, Arc::clone(sockets)), rules, tenants: Arc::default() })
    }

    /// The client for what is done for a tenant: what was opened for all, and for that tenant.
    pub fn of_tenant(&self, tenant: &str) -> &Self {
        self.tenants.get(tenant).unwrap_or(self)
    }

    /// A client that hands its calls to `exchange`. Addresses are judged as ever; redirects are answers.
    pub fn over(exchange: Arc<dyn Exchange>) -> Self {
        let rules = Arc::new(Rules::new(Vec::new(), Vec::new()));
        Self { rules, wire: Wire::Exchange(exchange), tenants: Arc::default() }
    }

    /// From now on this address counts as a listener of this server: calls to it are refused.
    pub fn add_listener(&self, at: SocketAddr) {
        self.rules.add_listener(at);
    }

    /// Whether a URL could be called, as far as its text tells. What its name resolves to is judged at the call.
    pub fn check_url(&self, url: &str) -> Result<Url, OutboundError> {
        if url.len() > limits::URL_BYTES_MAX {
            let what = format!("it is longer than {} bytes", limits::URL_BYTES_MAX);
            return Err(OutboundError::InvalidUrl(what));
        }
        let url = Url::parse(url).map_err(|error| OutboundError::InvalidUrl(error.to_string()))?;
        self.check_parsed(&url)?;
        Ok(url)
    }

    fn check_parsed(&self, url: &Url) -> Result<(), OutboundError> {
        let invalid = |what: &str| Err(OutboundError::InvalidUrl(what.to_owned()));
        if !matches!(url.scheme(), "http" | "https") {
            return invalid("only http and https can be called");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return invalid("it holds a user name or password; send them in a header");
        }
        let Some(host) = url.host_str().filter(|host| !host.is_empty()) else {
            return invalid("it names no host");
        };
        // The URL parser has read every spelling of an IPv4 address (octal, hexadecimal, one number) as what it is.
        if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            self.check_address(address, url.port_or_known_default())?;
        }
        Ok(())
    }

    pub(crate) fn check_address(&self, address: IpAddr, port: Option<u16>) -> Result<(), Forbidden> {
        match port {
            Some(port) if self.rules.is_own_port(port) => self.rules.check_own_port(address),
            _ => self.rules.check(address),
        }
    }

    /// What connections for other protocols are made with; none in a simulation.
    pub(crate) fn socket_options(&self) -> Option<&SocketOptions> {
        match &self.wire {
            Wire::Http(_, sockets) => Some(sockets),
            Wire::Exchange(_) => None,
        }
    }

    pub async fn send(&self, call: Call) -> Result<HttpResponse, OutboundError> {
        let timeout = call.timeout;
        let answer = async {
            match &self.wire {
                Wire::Http(clients, _) => self.follow(clients, call).await,
                Wire::Exchange(exchange) => {
                    self.check_url(&call.url)?;
                    exchange.send(call).await
                }
            }
        };
        tokio::time::timeout(timeout, answer).await.map_err(|_| OutboundError::Timeout(timeout))?
    }

    async fn follow(&self, clients: &Clients, mut call: Call) -> Result<HttpResponse, OutboundError> {
        let mut url = self.check_url(&call.url)?;
        let mut redirects = 0;
        loop {
            let response = self.hop(clients, &call, &url).await?;
            let target = if call.redirects_max == 0 { None } else { redirect(&response, &url)? };
            let Some(target) = target else { return read(response, url, &call).await };
            redirects += 1;
            if redirects > call.redirects_max {
                return Err(OutboundError::TooManyRedirects { max: call.redirects_max });
            }
            self.check_parsed(&target)?;
            if changes_to_get(response.status(), &call.method) {
                call.method = Method::GET;
                call.body.clear();
                call.headers.remove(CONTENT_TYPE);
                call.headers.remove(CONTENT_LENGTH);
            }
            if target.origin() != url.origin() {
                drop_secrets(&mut call.headers);
            }
            url = target;
        }
    }

    /// One request to one place. The answer is dropped unread where it came from a closed address.
    async fn hop(&self, clients: &Clients, call: &Call, url: &Url) -> Result<Response, OutboundError> {
        let port = url.port_or_known_default();
        let client =
            if port.is_some_and(|port| self.rules.is_own_port(port)) { &clients.own_port } else { &clients.any_port };
        let mut request = client.request(call.method.clone(), url.clone()).headers(call.headers.clone());
        if !call.body.is_empty() || call.method == Method::POST {
            request = request.body(call.body.clone());
        }
        let response = request.send().await.map_err(|error| OutboundError::of(&error, call.timeout))?;
        if let Some(peer) = response.remote_addr() {
            self.check_address(peer.ip(), port)?;
        }
        Ok(response)
    }
}

fn setup(error: reqwest::Error) -> OutboundError {
    OutboundError::Setup(error.to_string())
}

/// Where an answer redirects to, if it does.
fn redirect(response: &Response, from: &Url) -> Result<Option<Url>, OutboundError> {
    let status = response.status();
    let moved = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(location) = response.headers().get(LOCATION).filter(|_| moved) else { return Ok(None) };
    let location = location.to_str().unwrap_or_default();
    if location.len() > limits::URL_BYTES_MAX {
        return Err(OutboundError::InvalidUrl("the redirect's target is too long".into()));
    }
    let target = from.join(location);
    target.map(Some).map_err(|error| OutboundError::InvalidUrl(format!("the redirect's target: {error}")))
}

/// As browsers do: 303 always, 301 and 302 for what is not GET or HEAD already.
fn changes_to_get(status: StatusCode, method: &Method) -> bool {
    let safe = *method == Method::GET || *method == Method::HEAD;
    match status {
        StatusCode::SEE_OTHER => *method != Method::HEAD,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => !safe,
        _ => false,
    }
}

fn drop_secrets(headers: &mut HeaderMap) {
    for name in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION] {
        headers.remove(name);
    }
    let sensitive: Vec<_> =
        headers.iter().filter(|(_, value)| value.is_sensitive()).map(|(name, _)| name.clone()).collect();
    for name in sensitive {
        headers.remove(name);
    }
}

async fn read(mut response: Response, url: Url, call: &Call) -> Result<HttpResponse, OutboundError> {
    let (status, headers) = (response.status(), response.headers().clone());
    let max = call.answer_bytes_max;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| OutboundError::of(&error, call.timeout))? {
        let room = max - body.len();
        if chunk.len() > room {
            if call.excess == Excess::Refuse {
                return Err(OutboundError::AnswerTooLarge { max });
            }
            body.extend_from_slice(&chunk[..room]);
            break;
        }
        body.extend_from_slice(&chunk);
    }
    Ok(HttpResponse { status, headers, body, url })
}
