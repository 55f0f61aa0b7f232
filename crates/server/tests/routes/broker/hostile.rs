//! A broker that does as it likes: the workers talk to one Redis, the server to another, and what goes from one to the other is
//! dropped, repeated, reordered, changed and forged on the way.

use std::collections::HashMap;
use std::time::Duration;

use interlock_broker::{SealedAs, Sealer, fresh_key};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Value, cmd};
use serde_json::json;
use tokio::time::sleep;

use super::redis_server::RedisServer;
use super::{BrokerServer, Ledger, PATIENCE, all_succeed};

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// Carries entries from one side to the other.
struct Hostile {
    rng: fastrand::Rng,
    from: MultiplexedConnection,
    to: MultiplexedConnection,
    /// How far each stream was read.
    read: HashMap<String, String>,
    /// What has gone by, to be used again.
    seen: Vec<(String, Fields)>,
}

/// The client's own limit is half a second for an answer.
pub async fn connected(redis: &RedisServer) -> MultiplexedConnection {
    let config =
        AsyncConnectionConfig::new().set_connection_timeout(Some(PATIENCE)).set_response_timeout(Some(PATIENCE));
    let client = redis::Client::open(redis.url()).unwrap();
    client.get_multiplexed_async_connection_with_config(&config).await.unwrap()
}

fn bytes(value: Value) -> Vec<u8> {
    let Value::BulkString(bytes) = value else { panic!("{value:?}") };
    bytes
}

fn array(value: Value) -> Vec<Value> {
    let Value::Array(values) = value else { panic!("{value:?}") };
    values
}

impl Hostile {
    async fn between(from: &RedisServer, to: &RedisServer, seed: u64) -> Self {
        Self {
            rng: fastrand::Rng::with_seed(seed),
            from: connected(from).await,
            to: connected(to).await,
            read: HashMap::new(),
            seen: Vec::new(),
        }
    }

    async fn carry(mut self, pattern: String) {
        loop {
            let streams: Vec<String> = cmd("KEYS").arg(&pattern).query_async(&mut self.from).await.unwrap();
            for stream in streams {
                let mut entries = self.read(&stream).await;
                self.rng.shuffle(&mut entries);
                for fields in entries {
                    self.pass_on(&stream, fields).await;
                }
            }
            sleep(Duration::from_millis(2)).await;
        }
    }

    async fn read(&mut self, stream: &str) -> Vec<Fields> {
        let last = self.read.entry(stream.to_owned()).or_insert_with(|| "-".to_owned());
        let read: Value = cmd("XRANGE").arg(stream).arg(&*last).arg("+").query_async(&mut self.from).await.unwrap();
        let mut entries = Vec::new();
        for entry in array(read) {
            let [id, fields] = <[Value; 2]>::try_from(array(entry)).unwrap();
            *last = format!("({}", String::from_utf8(bytes(id)).unwrap());
            let mut values = array(fields).into_iter().map(bytes);
            let mut fields = Fields::new();
            while let (Some(name), Some(value)) = (values.next(), values.next()) {
                fields.push((name, value));
            }
            entries.push(fields);
        }
        entries
    }

    async fn pass_on(&mut self, stream: &str, fields: Fields) {
        let is_dropped = self.rng.u8(..3) == 0;
        if !is_dropped {
            for _ in 0..3 {
                self.add(stream, &fields).await;
            }
        }
        let others = [self.changed(fields.clone()), self.forged(fields.clone())];
        for other in &others {
            self.add(stream, other).await;
        }
        if !self.seen.is_empty() {
            let (before, old) = self.seen[self.rng.usize(..self.seen.len())].clone();
            // Where it was, and where it never was.
            self.add(&before, &old).await;
            self.add(stream, &old).await;
            self.add(stream, &mixed(&fields, &old)).await;
        }
        if self.seen.len() < 500 {
            self.seen.push((stream.to_owned(), fields));
        }
    }

    /// A bit of it is another.
    fn changed(&mut self, mut fields: Fields) -> Fields {
        let at = self.rng.usize(..fields.len());
        let (_, value) = &mut fields[at];
        if !value.is_empty() {
            let bit = self.rng.usize(..value.len() * 8);
            value[bit / 8] ^= 1 << (bit % 8);
        }
        fields
    }

    /// A step, as good as one can be made without the key.
    fn forged(&mut self, fields: Fields) -> Fields {
        let call = fields.iter().find(|(name, _)| name == b"call").map(|(_, call)| call.clone()).unwrap_or_default();
        let call = String::from_utf8(call).unwrap();
        let step = json!({ "idempotency_key": call, "traceparent": "", "status": 200, "body": { "assignments": [{
            "tenant": "ten_00000000000000000000000000000001", "run": "run_00000000000000000000000000000001",
            "position": 0, "attempt": 1, "epoch": 1, "task": "forged", "input": null }] } });
        let what = SealedAs::Answer { channel: "", kind: "session.command", call: &call };
        let plain = serde_json::to_vec(&step).unwrap();
        let is_sealed = self.rng.bool();
        let sealed = if is_sealed { Sealer::new(&fresh_key()).seal(what, &plain) } else { plain };
        let kept = fields.into_iter().filter(|(name, _)| name != b"sealed" && name != b"type");
        let forged = [(b"type".to_vec(), b"session.command".to_vec()), (b"sealed".to_vec(), sealed)];
        kept.chain(forged).collect()
    }

    async fn add(&mut self, stream: &str, fields: &Fields) {
        let mut add = cmd("XADD");
        add.arg(stream).arg("*");
        for (name, value) in fields {
            add.arg(&**name).arg(&**value);
        }
        let _: Value = add.query_async(&mut self.to).await.unwrap();
    }
}

/// The fields of one with the seal of another.
fn mixed(one: &Fields, other: &Fields) -> Fields {
    let sealed = other.iter().find(|(name, _)| name == b"sealed");
    let seal =
        |field: &(Vec<u8>, Vec<u8>)| if field.0 == b"sealed" { sealed.unwrap_or(field).clone() } else { field.clone() };
    one.iter().map(seal).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_broker_gets_nothing_executed_and_nothing_believed() {
    const RUNS: usize = 60;
    let (of_workers, of_servers) = (RedisServer::start().await, RedisServer::start().await);
    let served = BrokerServer::by(&of_servers.url()).await;
    let ledger = Ledger::default();
    let calls = Hostile::between(&of_workers, &of_servers, 1).await.carry("interlock:*:calls".to_owned());
    let answers = Hostile::between(&of_servers, &of_workers, 2).await.carry("interlock:*:answers:*".to_owned());
    let carrying = [tokio::spawn(calls), tokio::spawn(answers)];
    let mut working = Vec::new();
    for _ in 0..3 {
        working.push(served.works(&of_workers.url(), ledger.tasks()).await);
    }
    all_succeed(&served.server.engine, served.tenant, RUNS).await;
    let mut runs = RUNS;
    for result in ["handled", "duplicate", "unreadable"] {
        runs += served.runs_until_counted(result, 20).await;
    }
    ledger.assert_each_once(runs);
    for working in working {
        working.end().await;
    }
    for carrying in carrying {
        assert!(!carrying.is_finished(), "the broker went on to the end");
        carrying.abort();
    }
    served.server.end().await;
}
