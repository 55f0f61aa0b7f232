//! Workers' calls over a real Redis: what a broker may do to them, and what it may not.

mod answered;
mod flushed;
mod handshake;
mod hostile;
mod messages;
mod pair;
#[path = "../../../../broker/tests/harness/redis_server.rs"]
mod redis_server;
mod runs;
mod tls;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use interlock_broker::message::{AnswerEntry, AnswerMessage, CallEntry, CallKind, CallMessage};
use interlock_broker::{AnswerStream, BrokerAddress, Connection, SealedAs, Sealer, fresh_name, key_of_text};
use interlock_core::ids::{KeyId, TenantId};
use interlock_core::json::Json;
use interlock_core::plan::{Plan, StepSpec};
use interlock_core::state::{EffectClass, RunState};
use interlock_core::tenant::identity::Role;
use interlock_engine::{EncodedPlan, Engine, StartRun};
use interlock_protocol::broker::BrokerTicket;
use interlock_server::identity::{NewKey, create_key};
use interlock_server::{ServerOptions, ServerSecret};
use interlock_worker::{EffectFailure, HttpTransport, TaskContext, Tasks, Worker, WorkerError, WorkerOptions};
use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::connections::{Listening, listen_on};
use crate::harness::engine_with_long_leases;

const PATIENCE: Duration = Duration::from_mins(4);

/// A server whose workers may use a broker.
struct BrokerServer {
    server: Listening,
    tenant: TenantId,
    secret: ServerSecret,
}

impl BrokerServer {
    async fn by(broker: &str) -> Self {
        Self::by_address(broker.parse().unwrap()).await
    }

    async fn by_address(broker: BrokerAddress) -> Self {
        // Calls over a broker that is flushed, killed or hostile take long, renewals of leases among them.
        let (engine, [tenant, _], database) = engine_with_long_leases().await;
        let options = ServerOptions { broker: Some(broker), ..ServerOptions::new(tenant) };
        Self::of(engine, options, tenant, database).await
    }

    async fn of(engine: Engine, options: ServerOptions, tenant: TenantId, database: String) -> Self {
        let secret = options.secret.clone();
        let server = listen_on(engine, options, database).await;
        let served = Self { server, tenant, secret };
        served.until_ready("ready").await;
        served
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    async fn key(&self, role: Role) -> (KeyId, String) {
        let new = NewKey::new(self.tenant, "one", [role].into_iter().collect());
        let (row, text) = create_key(&self.server.engine, &self.secret, new).await.unwrap();
        (row.id, text.reveal().to_owned())
    }

    /// Until the server says so of itself.
    async fn until_ready(&self, status: &str) {
        let said = async {
            loop {
                let ready: Value = self.get("/readyz", None).await.json().await.unwrap();
                if ready["status"] == status {
                    return;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, said).await.unwrap_or_else(|_| panic!("the server never was {status}"));
    }

    async fn get(&self, path: &str, key: Option<&str>) -> reqwest::Response {
        let request = reqwest::Client::new().get(format!("{}{path}", self.url()));
        let request = if let Some(key) = key { request.bearer_auth(key) } else { request };
        request.send().await.unwrap()
    }

    /// How many messages of the broker have come to this end.
    async fn counted(&self, result: &str) -> u64 {
        let (_, key) = self.key(Role::Operator).await;
        let text = self.get("/metrics", Some(&key)).await.text().await.unwrap();
        let name = format!("interlock_broker_messages_total{{result=\"{result}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&name));
        line.unwrap_or_else(|| panic!("{name} is missing: {text}")).parse().unwrap()
    }

    /// Has runs done until more messages than these have come to this end, and answers how many runs those were. Where
    /// a busy machine lets a call over the broker take too long, its worker makes requests for the next minute.
    async fn runs_until_counted(&self, result: &str, least: u64) -> usize {
        const AT_A_TIME: usize = 5;
        let mut runs = 0;
        let counting = Box::pin(async {
            while self.counted(result).await <= least {
                all_succeed(&self.server.engine, self.tenant, AT_A_TIME).await;
                runs += AT_A_TIME;
                sleep(Duration::from_millis(500)).await;
            }
        });
        timeout(PATIENCE, counting).await.unwrap_or_else(|_| panic!("too few messages are {result}"));
        runs
    }

    /// How many sessions workers have begun; the engine's own has no tenant.
    async fn sessions(&self) -> usize {
        let rows = self.server.engine.store().sessions().await.unwrap();
        rows.iter().filter(|row| row.tenant.is_some()).count()
    }

    async fn handshake(&self, key: &str) -> reqwest::Response {
        let url = format!("{}/api/v1/agent/broker", self.url());
        reqwest::Client::new().post(url).bearer_auth(key).send().await.unwrap()
    }

    /// A worker that does everything by hand.
    async fn raw(&self, broker: &str, key: &str) -> RawWorker {
        let ticket: BrokerTicket = self.handshake(key).await.json().await.unwrap();
        let connection = Connection::open(&broker.parse().unwrap()).await.unwrap();
        let sealer = Sealer::new(&key_of_text(&ticket.key).unwrap());
        RawWorker { ticket, sealer, connection, begun: Instant::now() }
    }

    /// One that works.
    async fn works(&self, broker: &str, tasks: Tasks) -> Working {
        self.works_over(broker.parse().unwrap(), tasks).await
    }

    async fn works_over(&self, broker: BrokerAddress, tasks: Tasks) -> Working {
        let (_, key) = self.key(Role::Worker).await;
        let transport = HttpTransport::new(&self.url(), Some(key)).unwrap().with_broker(broker);
        let (stop, seed) = (CancellationToken::new(), u64::from(self.server.address.port()));
        let options = WorkerOptions { slots: 8, poll_wait: Duration::from_secs(1), seed, ..WorkerOptions::default() };
        let working = tokio::spawn(Worker::new(transport, tasks, options).run(stop.clone()));
        Working { stop, working }
    }
}

struct Working {
    stop: CancellationToken,
    working: JoinHandle<Result<(), WorkerError>>,
}

impl Working {
    async fn end(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.working).await.unwrap().unwrap().unwrap();
    }
}

/// How often each effect was carried out, by its key; and what tasks were given.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<HashMap<String, u32>>>);

impl Ledger {
    fn add(&self, key: &str) {
        *self.0.lock().unwrap().entry(key.to_owned()).or_default() += 1;
    }

    fn tasks(&self) -> Tasks {
        let (ledger, forged) = (self.clone(), self.clone());
        Tasks::new()
            .task("count", |_, input: Value| async move { Ok(json!({ "seen": input })) })
            .task("forged", move |_, _: Value| {
                forged.add("a forged step");
                async { Ok(()) }
            })
            .task("charge", move |ctx: TaskContext, _: Value| {
                let ledger = ledger.clone();
                async move {
                    let charge = |key: String| {
                        ledger.add(&key);
                        async move { Ok::<_, EffectFailure>(key) }
                    };
                    let key: String =
                        ctx.effect("card:charge", EffectClass::Unsafe, &json!({ "cents": 1 }), charge).await?;
                    Ok(key)
                }
            })
    }

    /// Each of so many effects was carried out once, and nothing else was.
    fn assert_each_once(&self, effects: usize) {
        let counts = self.0.lock().unwrap();
        let twice: Vec<_> = counts.iter().filter(|(_, count)| **count != 1).collect();
        assert!(
            twice.is_empty() && counts.len() == effects,
            "{} of {effects}, more than once: {twice:?}",
            counts.len()
        );
        assert!(!counts.contains_key("a forged step"));
    }
}

/// Starts runs with an unsafe effect in the middle, and waits until all of them have succeeded.
async fn all_succeed(engine: &Engine, tenant: TenantId, runs: usize) {
    let steps = vec![StepSpec::task("a", "count"), StepSpec::task("b", "charge"), StepSpec::task("c", "count")];
    let plan = EncodedPlan::new(Plan::new("w", steps)).unwrap();
    let mut waiting = JoinSet::new();
    for number in 0..runs {
        let request = StartRun::new(tenant, Arc::clone(&plan), Json::trusted(format!("[{number}]")));
        let engine = engine.clone();
        waiting.spawn(async move { engine.runs().start_and_wait(request).await.unwrap().1 });
        // Not all at once: the broker is to be used for a while.
        sleep(Duration::from_millis(20)).await;
    }
    let all = async {
        while let Some(ended) = waiting.join_next().await {
            assert_eq!(ended.unwrap(), RunState::Succeeded);
        }
    };
    timeout(PATIENCE, all).await.expect("all runs end");
}

/// The worker's side of the broker, without a worker.
struct RawWorker {
    ticket: BrokerTicket,
    sealer: Sealer,
    connection: Connection,
    begun: Instant,
}

impl RawWorker {
    fn now_ms(&self) -> i64 {
        self.ticket.now.0 + self.begun.elapsed().as_millis() as i64
    }

    /// A sealed call of this age.
    fn sealed(&self, key: &str, call: &str, body: &Value, age_ms: i64) -> Vec<u8> {
        let body = serde_json::value::to_raw_value(body).unwrap();
        let message = CallMessage {
            idempotency_key: key.into(),
            sent_at_ms: self.now_ms() - age_ms,
            traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into(),
            call: format!("/api/v1/agent/{call}").into(),
            body: &body,
        };
        let what = SealedAs::Call { channel: &self.ticket.channel, kind: CallKind::Call.as_str() };
        self.sealer.seal(what, &serde_json::to_vec(&message).unwrap())
    }

    async fn write(&self, sealed: &[u8]) {
        let entry = CallEntry { kind: CallKind::Call, ticket: self.ticket.ticket.as_bytes(), sealed };
        self.connection.add_call(&self.ticket.calls, &entry).await.unwrap();
    }

    /// Makes a call, and has its answer.
    async fn call(&self, call: &str, body: Value) -> (u16, Value) {
        let key = fresh_name();
        self.write(&self.sealed(&key, call, &body, 0)).await;
        self.answers(&key, 1).await.remove(0)
    }

    /// So many answers to a call, once they are there.
    async fn answers(&self, key: &str, count: usize) -> Vec<(u16, Value)> {
        let coming = async {
            loop {
                let answers = self.answers_now(key).await;
                if answers.len() >= count {
                    return answers;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, coming).await.expect("an answer comes")
    }

    async fn answers_now(&self, key: &str) -> Vec<(u16, Value)> {
        let stream = AnswerStream { name: self.ticket.answers.clone() };
        let entries = stream.read(&self.connection, "0-0").await.unwrap();
        let of_call = entries.iter().filter_map(AnswerEntry::of).filter(|entry| entry.call == key);
        let opened = of_call.map(|entry| {
            let opened = self.sealer.open(entry.sealed_as(&self.ticket.channel), entry.sealed).unwrap();
            let message: AnswerMessage<'_> = serde_json::from_slice(&opened).unwrap();
            assert_eq!(message.idempotency_key, key);
            let body = message.body.map_or(Value::Null, |body| serde_json::from_str(body.get()).unwrap());
            (message.status, body)
        });
        opened.collect()
    }
}

fn hello() -> Value {
    json!({ "worker": "w", "queues": ["default"], "slots": 4 })
}
