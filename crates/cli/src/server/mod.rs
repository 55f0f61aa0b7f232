//! `interlock server`: the engine and its HTTP surface, for workers elsewhere. `interlock up` ([`up`]) is the same with a
//! worker inside ([`embedded`]) and a demo to watch.

pub mod address;
pub mod broker;
pub mod commands;
pub mod connectors;
mod demo;
pub mod embedded;
pub mod oidc;
pub mod open;
pub mod outbound;
pub mod shutdown;
mod timeline;
pub mod tls;
pub mod traces;
pub mod up;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use interlock_core::ids::TenantId;
use interlock_core::limits;
use interlock_core::run::assignment::AssignmentTimes;
use interlock_core::time::Millis;
use interlock_credentials::Tenancy;
use interlock_engine::payloads::{INLINE_BYTES_MAX, Objects, PayloadOptions};
use interlock_engine::{Engine, EngineOptions};
use interlock_outbound::{Outbound, Range};
use interlock_server::identity::first_key;
use interlock_server::private_file;
use interlock_server::tls::Tls;
use interlock_server::{ConnectionOptions, Server, ServerError, ServerOptions, ServerSecret, TrustedProxies};
use interlock_store::Tenant;
use tokio_util::sync::CancellationToken;

use crate::client::Secret;
use crate::client::local::{self, AnnouncedServer, LocalServer};
use crate::config::{ConfigArg, LogArgs, data_folder};
use crate::output::exit::{Exit, ExitError};
use crate::output::{say_aside, say_on};
use crate::server::broker::BrokerArg;
use crate::server::connectors::{ConnectorArgs, CredentialSweeper};
use crate::server::outbound::OutboundArgs;
use crate::server::tls::TlsArgs;
use crate::server::traces::TraceArgs;

/// The tenant of a new store, and of people who sign in without naming one.
const DEFAULT_TENANT: &str = "default";

/// In the data folder: the secret of the server, and the key for the users who may read the folder.
pub const SECRET_FILE: &str = "server.secret";
pub const LOCAL_KEY_FILE: &str = "local.key";
/// In the data folder: payloads too long for a row, unless they go elsewhere.
pub const PAYLOADS_FOLDER: &str = "payloads";
/// Below this a reference is hardly shorter than what it stands for.
const INLINE_BYTES_LEAST: usize = 1 << 10;

#[derive(Args)]
pub struct ServerArgs {
    #[command(flatten)]
    pub config: ConfigArg,
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub http: HttpArgs,
    #[command(flatten)]
    pub connectors: ConnectorArgs,
    #[command(flatten)]
    pub log: LogArgs,
}

#[derive(Args)]
pub struct EngineArgs {
    /// The folder that holds the embedded store; made if it is not there.
    #[arg(long, env = "INTERLOCK_DATA", default_value = "interlock-data")]
    data: PathBuf,
    /// Where the store is: `sqlite:PATH` or `postgres://…`; by default a SQLite file in the data folder.
    #[arg(long, env = "INTERLOCK_STORE")]
    store: Option<String>,
    /// How long a worker session lives without a renewal, in milliseconds; it renews four times in that span.
    #[arg(long, env = "INTERLOCK_SESSION_LEASE_MS", default_value_t = limits::SESSION_LEASE.0)]
    session_lease_ms: u64,
    /// How long an errored worker is given no commands, and a worker that was offline is asked to take a run only after those that
    /// were there, in milliseconds.
    #[arg(long, env = "INTERLOCK_WORKER_PAUSE_MS", value_name = "MS", default_value_t = limits::WORKER_FAULT_PAUSE.0, value_parser = clap::value_parser!(u64).range(0..=86_400_000))]
    worker_pause_ms: u64,
    /// How long a worker may take to answer the offer of a run, in milliseconds.
    #[arg(long, env = "INTERLOCK_ASSIGNMENT_ACK_MS", value_name = "MS", default_value_t = limits::ASSIGNMENT_ACK.0, value_parser = clap::value_parser!(u64).range(100..=600_000))]
    assignment_ack_ms: u64,
    /// How long the first attempt to find a worker for a run lasts, in milliseconds; each is three times as long as the one before.
    #[arg(long, env = "INTERLOCK_ASSIGNMENT_BACKOFF_MS", value_name = "MS", default_value_t = limits::ASSIGNMENT_BACKOFF.0, value_parser = clap::value_parser!(u64).range(100..=3_600_000))]
    assignment_backoff_ms: u64,
    /// How many attempts to find a worker for a run there are, before the run fails.
    #[arg(long, env = "INTERLOCK_ASSIGNMENT_ATTEMPTS", value_name = "COUNT", default_value_t = limits::ASSIGNMENT_ATTEMPTS, value_parser = clap::value_parser!(u32).range(1..=10))]
    assignment_attempts: u32,
    /// Where payloads go that are too long for a row: a folder, or `s3://BUCKET/PREFIX`; by default `payloads` in the data
    /// folder. Several servers on one database need the same place.
    #[arg(long, env = "INTERLOCK_PAYLOADS", value_name = "PLACE")]
    payloads: Option<String>,
    /// The longest payload that stands in its row, in bytes.
    #[arg(long, env = "INTERLOCK_PAYLOAD_INLINE_MAX", value_name = "BYTES", default_value_t = INLINE_BYTES_MAX)]
    payload_inline_max: usize,
    /// How much of what a step writes is kept for each attempt, in bytes; the rest is cut, with a mark.
    #[arg(long, env = "INTERLOCK_OUTPUT_KEPT_MAX", value_name = "BYTES", default_value_t = limits::OUTPUT_KEPT_BYTES, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    output_kept_max: u64,
    /// How long finished runs are kept, in days; 0 keeps them for ever.
    #[arg(long, env = "INTERLOCK_RETENTION_DAYS", default_value_t = 0)]
    retention_days: u64,
    /// Tell runs apart by tenant in `/metrics`: a label `tenant_id` on the numbers about runs, for up to 200 tenants.
    #[arg(long, env = "INTERLOCK_METRICS_BY_TENANT")]
    metrics_by_tenant: bool,
    #[command(flatten)]
    traces: TraceArgs,
}

#[derive(Args)]
pub struct HttpArgs {
    /// Where to listen.
    #[arg(long, env = "INTERLOCK_LISTEN", default_value = "127.0.0.1:8420", value_parser = crate::server::address::listen)]
    listen: SocketAddr,
    /// The file that holds the server's secret, made if it is not there; by default `server.secret` in the data folder.
    /// All servers of one store need the same.
    #[arg(long, env = "INTERLOCK_SECRET_FILE")]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    outbound: OutboundArgs,
    /// On a new store, write the first admin's key to this file.
    #[arg(long, env = "INTERLOCK_BOOTSTRAP_KEY_FILE")]
    bootstrap_key_file: Option<PathBuf>,
    /// How people reach the server, if not by the address it listens on, as in `https://interlock.example.org`.
    #[arg(long, env = "INTERLOCK_PUBLIC_URL", value_name = "URL")]
    public_url: Option<String>,
    /// How many requests one client may make in a minute, unless its key says otherwise; 0 for no limit.
    #[arg(long, env = "INTERLOCK_REQUESTS_PER_MIN", default_value_t = interlock_server::limits::REQUESTS_PER_MIN)]
    requests_per_min: u32,
    /// How long a person stays signed in, in hours.
    #[arg(long, env = "INTERLOCK_VISIT_HOURS", value_name = "HOURS", default_value_t = 12, value_parser = clap::value_parser!(u64).range(1..=8_760))]
    visit_hours: u64,
    /// How long an invitation link works, by which a person sets a password, in hours; 24 at most, as long as it is kept
    /// who let an account in.
    #[arg(long, env = "INTERLOCK_INVITE_HOURS", value_name = "HOURS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=24))]
    invite_hours: u64,
    /// How long requests that are under way may take once the server is told to stop, in seconds.
    #[arg(long, env = "INTERLOCK_DRAIN_SECONDS", value_name = "SECONDS", default_value_t = 10)]
    drain_seconds: u64,
    /// How long the server still takes connections once it is told to stop, in seconds. `/readyz` says so at once, and
    /// a load balancer has this long to look there. `interlock up` does not wait.
    #[arg(long, env = "INTERLOCK_STOP_DELAY_SECONDS", value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=3_600))]
    stop_delay_seconds: u64,
    /// How many connections may be open in all; fewer where the limit on open files allows fewer.
    #[arg(long, env = "INTERLOCK_CONNECTIONS_MAX", value_name = "COUNT", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(1..))]
    connections_max: u32,
    /// How many connections one address may have open. Behind a proxy that is not trusted all clients have the proxy's.
    #[arg(long, env = "INTERLOCK_CONNECTIONS_PER_ADDRESS_MAX", value_name = "COUNT", default_value_t = 4_096, value_parser = clap::value_parser!(u32).range(1..))]
    connections_per_address_max: u32,
    /// Reverse proxies whose `X-Forwarded-For` header is believed, as in `10.1.0.0/16`: sign-in limits then count by the
    /// client's address, and the proxies' connections are not limited by address. None by default.
    #[arg(long, env = "INTERLOCK_TRUSTED_PROXIES", value_name = "RANGE", value_delimiter = ',')]
    trusted_proxies: Vec<Range>,
    /// How many live streams one tenant may have open on this server.
    #[arg(long, env = "INTERLOCK_LIVE_STREAMS_PER_TENANT_MAX", value_name = "COUNT", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..))]
    live_streams_per_tenant_max: u32,
    #[command(flatten)]
    broker: BrokerArg,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    oidc: crate::server::oidc::OidcArgs,
}

/// An engine, and what it was built from.
pub struct EngineSetup {
    pub engine: Engine,
    secret: ServerSecret,
    outbound: Outbound,
}

/// A server that listens, and the note by which other commands on this machine find it.
pub struct ListeningServer {
    pub server: Server,
    pub announced: Option<AnnouncedServer>,
}

impl EngineArgs {
    pub fn data(&self) -> &Path {
        &self.data
    }

    pub fn url(&self) -> anyhow::Result<String> {
        if let Some(url) = &self.store {
            return Ok(url.clone());
        }
        self.make_folder()?;
        Ok(format!("sqlite:{}", self.data.join("interlock.db").display()))
    }

    /// The data folder is its owner's alone, whatever needs it first.
    fn make_folder(&self) -> anyhow::Result<()> {
        data_folder::make(&self.data)
    }

    fn options(&self) -> anyhow::Result<EngineOptions> {
        anyhow::ensure!(
            (400..=limits::SESSION_LEASE_MAX.0).contains(&self.session_lease_ms),
            "--session-lease-ms is {}, the least is 400 and the most {} (24 hours)",
            self.session_lease_ms,
            limits::SESSION_LEASE_MAX.0
        );
        let mut options = open::engine_options();
        options.session_lease = Millis(self.session_lease_ms);
        options.session_renewal = Millis(self.session_lease_ms / 4);
        options.reap_every = Millis((self.session_lease_ms / 8).clamp(50, 1_000));
        options.fault_pause = Millis(self.worker_pause_ms);
        options.assignment = Arc::new(AssignmentTimes {
            ack: Millis(self.assignment_ack_ms),
            backoff: AssignmentTimes::growing(Millis(self.assignment_backoff_ms), self.assignment_attempts),
            ..AssignmentTimes::default()
        });
        let runs_kept = (self.retention_days > 0).then(|| Millis::from_hours(24 * self.retention_days));
        let since = interlock_core::time::Timestamp(0);
        options.output_kept_bytes = self.output_kept_max;
        options.metrics_by_tenant = self.metrics_by_tenant;
        options.traces = self.traces.options()?;
        options.retention = Some(interlock_store::Sweep { runs_kept, ..interlock_store::Sweep::new(since) });
        Ok(options)
    }

    /// What [`Self::open`] would refuse, as far as that can be told without opening anything.
    pub fn check(&self, http: &HttpArgs) -> anyhow::Result<()> {
        // As a start does, which would else be told to fail on a volume that opens files to a group.
        self.close_own_secrets()?;
        self.options()?;
        self.check_inline_max()?;
        if let Some(url) = &self.store {
            interlock_store::StoreUrl::parse(url)?;
        }
        http.check(&self.data)?;
        // Whose people they would be does not matter to the check.
        http.oidc.provider(TenantId::from_bytes([0; 16]), &http.outbound()?)?;
        Ok(())
    }

    /// The store, the server's secret, which has to be the store's, and an engine on both.
    pub async fn open(&self, http: &HttpArgs) -> anyhow::Result<EngineSetup> {
        self.close_own_secrets()?;
        http.check(&self.data)?;
        let mut options = self.options()?;
        self.make_folder()?;
        let outbound = http.outbound()?;
        options.payloads = Some(self.payloads(&outbound)?);
        let url = self.url()?;
        if let Some(warning) = open::lost_database(&url, &self.data) {
            say_aside(&format!("interlock: {warning}"));
        }
        let store = open::store(&url).await?;
        let secret = ServerSecret::open_for(&store.installation(), &http.secret_path(&self.data)).await?;
        options.vault = Some(secret.vault());
        options.audit_key = Some(secret.audit_key());
        options.outbound = Some(outbound.clone());
        options.notices.public_url = http.reached_at(&self.data)?;
        let engine = Engine::open(store, options).await?;
        Ok(EngineSetup { engine, secret, outbound })
    }

    /// Those that Interlock has written into the data folder.
    fn close_own_secrets(&self) -> anyhow::Result<()> {
        let folder = self.data.join(tls::FOLDER);
        for own in [self.data.join(SECRET_FILE), folder.join(tls::KEY), folder.join(tls::AUTHORITY_KEY)] {
            private_file::close_to_group(&own).with_context(|| format!("cannot use {}", own.display()))?;
        }
        Ok(())
    }

    fn check_inline_max(&self) -> anyhow::Result<()> {
        let max = limits::PAYLOAD_BYTES_MAX;
        anyhow::ensure!(
            (INLINE_BYTES_LEAST..=max).contains(&self.payload_inline_max),
            "--payload-inline-max is {}; give {INLINE_BYTES_LEAST} to {max}, beyond which no payload is taken",
            self.payload_inline_max
        );
        Ok(())
    }

    fn payloads(&self, outbound: &Outbound) -> anyhow::Result<PayloadOptions> {
        self.check_inline_max()?;
        let objects = match &self.payloads {
            Some(place) => Objects::open(place, outbound)?,
            None => Objects::folder(&self.data.join(PAYLOADS_FOLDER))?,
        };
        Ok(PayloadOptions { inline_max: self.payload_inline_max, ..PayloadOptions::new(objects) })
    }
}

impl HttpArgs {
    fn outbound(&self) -> anyhow::Result<Outbound> {
        self.outbound.client()
    }

    /// What would be refused before anything is opened.
    fn check(&self, data: &Path) -> anyhow::Result<()> {
        self.public_url.as_deref().map(public_url).transpose()?;
        self.broker.address()?;
        self.tls.check(self.listen, data, self.trusted_proxies.len())?;
        let files = self.tls.files(data)?;
        let read = files.map(|files| Tls::open(files, crate::output::span::now())).transpose();
        read.map(drop).map_err(|error| ExitError::saying(Exit::Config, error.to_string()))
    }

    /// Where people find what they are told of.
    fn reached_at(&self, data: &Path) -> anyhow::Result<Option<String>> {
        let scheme = if self.tls.files(data)?.is_some() { "https" } else { "http" };
        let own = (self.listen.port() != 0).then(|| format!("{scheme}://{}", self.listen));
        Ok(self.public_url.as_deref().map(public_url).transpose()?.or(own))
    }

    fn secret_path(&self, data: &Path) -> PathBuf {
        self.secret_file.clone().unwrap_or_else(|| data.join(SECRET_FILE))
    }

    /// Listens, after making the keys for the first access: the first admin's key where one is asked for, and on
    /// loopback a key in the data folder, which the command line and workers of this machine use by themselves.
    pub async fn bind(&self, opened: EngineSetup, tenant: TenantId, data: &Path) -> anyhow::Result<ListeningServer> {
        let EngineSetup { engine, secret, outbound } = &opened;
        if let Some(path) = &self.bootstrap_key_file
            && first_key::bootstrap(engine, secret, tenant, path).await?
        {
            say_on(&format!("The first admin's key is in {}.", path.display()));
        }
        let local_key = if self.listen.ip().is_loopback() {
            let key = first_key::local(engine, secret, tenant, &data.join(LOCAL_KEY_FILE)).await?;
            Secret::new(key.reveal())
        } else {
            None
        };
        let options = ServerOptions {
            listen: self.listen,
            secret: secret.clone(),
            public_url: self.public_url.as_deref().map(public_url).transpose()?,
            requests_per_min: Some(self.requests_per_min).filter(|limit| *limit > 0),
            oidc: self.oidc.provider(tenant, outbound)?,
            session: Millis::from_hours(self.visit_hours),
            invite: Millis::from_hours(self.invite_hours),
            drain: Duration::from_secs(self.drain_seconds),
            linger: Duration::from_secs(self.stop_delay_seconds),
            connections: ConnectionOptions {
                connections_max: self.connections_max as usize,
                per_address_max: self.connections_per_address_max as usize,
                ..ConnectionOptions::default()
            },
            trusted_proxies: TrustedProxies::new(self.trusted_proxies.clone()),
            live_streams_per_tenant_max: self.live_streams_per_tenant_max as usize,
            tls: self.tls.files(data)?,
            broker: self.broker.address()?,
            ..ServerOptions::new(tenant)
        };
        let server = Server::bind(engine.clone(), options).await.map_err(unbound)?;
        let announced = local_key.map(|key| {
            let url = server.url().unwrap_or_else(|_| format!("http://{}", self.listen));
            let ca = url.starts_with("https").then(|| self.tls.local_authority(data)).flatten();
            local::announce(
                LocalServer { server: url, api_key: Some(key), ca, pid: std::process::id() },
                &data.join(LOCAL_KEY_FILE),
            )
        });
        Ok(ListeningServer { server, announced })
    }
}

/// A port that is taken is the mistake to expect: say what to do about it.
fn unbound(error: ServerError) -> anyhow::Error {
    match &error {
        ServerError::Listen { at, source } if source.kind() == std::io::ErrorKind::AddrInUse => {
            let what = format!(
                "cannot listen on {at}: another program does already; stop it, or give another address with --listen \
                 (with port 0 any free one is taken)"
            );
            ExitError::saying(Exit::Unavailable, what)
        }
        _ => error.into(),
    }
}

/// An address that others can be sent to: with its scheme, and nothing behind the host.
fn public_url(text: &str) -> anyhow::Result<String> {
    let url = text.trim_end_matches('/');
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
    let plain = !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ']);
    anyhow::ensure!(plain, "--public-url is `{text}`; write it as https://HOST or http://HOST:PORT, without a path");
    Ok(url.to_owned())
}

/// Prints how to become the first admin, while there is none.
pub async fn print_first_admin_link(server: &Server) -> anyhow::Result<()> {
    if let Some(link) = server.first_admin_link().await? {
        say_on(&format!("Nobody can sign in yet. Become the first admin here, once, within the hour:\n  {link}"));
    }
    Ok(())
}

impl ServerArgs {
    pub fn check(&self) -> anyhow::Result<()> {
        self.engine.check(&self.http)?;
        self.connectors.check(Tenancy::Several)
    }
}

pub async fn run(args: ServerArgs) -> anyhow::Result<()> {
    let opened = args.engine.open(&args.http).await?;
    // This server changes nothing in other systems; it reads from them what approvals are about.
    let calls = args.connectors.open(opened.outbound.clone(), Tenancy::Several, args.engine.data())?;
    let engine = opened.engine.clone();
    let mut sweeping = None;
    if let Some(calls) = calls {
        engine.reach_targets(calls.connectors.caller().clone());
        sweeping = Some(CredentialSweeper::start(calls.credentials).await);
    }
    let tenant = tenant(&engine, DEFAULT_TENANT).await?;
    let ListeningServer { server, announced: _announced } = args.http.bind(opened, tenant, args.engine.data()).await?;
    say_on(&format!("interlock listens on {}", server.url()?));
    if let Some(warning) = address::warning(server.address()?, server.is_encrypted()) {
        say_on(&warning);
    }
    print_first_admin_link(&server).await?;
    let stop = CancellationToken::new();
    let (stopping, watching) = (stop.clone(), engine.clone());
    let why = tokio::spawn(async move {
        let why = crate::server::shutdown::why(&watching).await;
        stopping.cancel();
        why
    });
    server.run(stop).await?;
    let why = if why.is_finished() { why.await.unwrap_or(None) } else { None };
    if let Some(sweeping) = sweeping {
        sweeping.end().await;
    }
    shutdown::end(&engine).await;
    // Whatever runs it starts it again.
    why.map_or(Ok(()), |why| Err(ExitError::saying(Exit::Unsuccessful, why.to_string())))
}

/// The tenant of this name, made if it is not there.
pub async fn tenant(engine: &Engine, name: &str) -> anyhow::Result<TenantId> {
    if let Some(tenant) = engine.store().tenant_by_name(name).await? {
        return Ok(tenant.id);
    }
    let id = TenantId(engine.fresh_id());
    match engine.tenants().put(Tenant::new(id, name, engine.now())).await {
        Ok(()) => Ok(id),
        // Another server on the same database made it in between.
        Err(error) => match engine.store().tenant_by_name(name).await? {
            Some(tenant) => Ok(tenant.id),
            None => Err(error.into()),
        },
    }
}
