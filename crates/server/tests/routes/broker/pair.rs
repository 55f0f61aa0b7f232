//! Two servers of one installation on one PostgreSQL, which read the same broker: whichever of them has a call, and whatever the
//! broker loses, nothing is lost and nothing is done twice.

use std::cell::Cell;
use std::time::Duration;

use interlock_core::ids::{ServerId, TenantId};
use interlock_core::time::Millis;
use interlock_engine::Engine;
use interlock_server::{ServerOptions, ServerSecret};
use interlock_store::{Options, Store, StoreUrl, Tenant};
use tokio::time::{interval, sleep};

use super::redis_server::RedisServer;
use super::{BrokerServer, Ledger, all_succeed};
use crate::harness::{equipped, postgres};

async fn engine_on(url: &StoreUrl) -> Engine {
    let mut options = equipped();
    // Calls over a broker that is flushed take long, renewals of leases among them. Claims whose answer was lost go back with
    // a heartbeat.
    (options.session_lease, options.session_renewal) = (Millis(120_000), Millis(2_000));
    let store = Store::open(url, Options::new(ServerId(options.ids.fresh()))).await.unwrap();
    Engine::open(store, options).await.unwrap()
}

async fn pair(name: &str, redis: &RedisServer) -> [BrokerServer; 2] {
    let url = postgres(name).await;
    let engine = engine_on(&url).await;
    let tenant = TenantId(engine.fresh_id());
    engine.tenants().put(Tenant::new(tenant, "one", engine.now())).await.unwrap();
    let first = server(engine, tenant, None, redis).await;
    let secret = first.secret.clone();
    let second = server(engine_on(&url).await, tenant, Some(secret), redis).await;
    [first, second]
}

/// A server of the installation that has this secret, or of a new one.
async fn server(engine: Engine, tenant: TenantId, secret: Option<ServerSecret>, redis: &RedisServer) -> BrokerServer {
    let mut options = ServerOptions { broker: Some(redis.url().parse().unwrap()), ..ServerOptions::new(tenant) };
    if let Some(secret) = secret {
        options.secret = secret;
    }
    BrokerServer::of(engine, options, tenant, "on PostgreSQL".to_owned()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushing_under_load_with_two_servers_on_postgres_loses_nothing_and_doubles_nothing() {
    const RUNS: usize = 50;
    let redis = RedisServer::start().await;
    let servers = pair("broker_flushed", &redis).await;
    let ledger = Ledger::default();
    let mut working = Vec::new();
    for server in &servers {
        working.push(server.works(&redis.url(), ledger.tasks()).await);
    }
    let (flushed, mut runs) = (Cell::new(0), 0);
    let flushing = async {
        let mut every = interval(Duration::from_millis(100));
        loop {
            every.tick().await;
            assert_eq!(redis.say("FLUSHALL").await.as_deref(), Some("+OK\r\n"));
            flushed.set(flushed.get() + 1);
        }
    };
    let loading = Box::pin(async {
        for server in &servers {
            all_succeed(&server.server.engine, server.tenant, RUNS).await;
            runs += RUNS;
        }
        assert!(flushed.get() > 10, "the broker was flushed {} times", flushed.get());
        // Calls go over the broker, to either server.
        for server in &servers {
            runs += server.runs_until_counted("handled", 10).await;
        }
    });
    tokio::select! {
        () = loading => {}
        () = flushing => {}
    }
    ledger.assert_each_once(runs);
    for working in working {
        working.end().await;
    }
    for server in servers {
        assert_eq!(server.counted("unreadable").await, 0);
        server.server.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ends_leaves_the_calls_to_the_other() {
    const RUNS: usize = 40;
    let redis = RedisServer::start().await;
    let [stays, goes] = pair("broker_left", &redis).await;
    let ledger = Ledger::default();
    // They ask the server that stays for leave; their calls go to both.
    let working = [stays.works(&redis.url(), ledger.tasks()).await, stays.works(&redis.url(), ledger.tasks()).await];
    let mut runs = stays.runs_until_counted("handled", 10).await;
    let load = all_succeed(&stays.server.engine, stays.tenant, RUNS);
    let leaving = async {
        sleep(Duration::from_millis(300)).await;
        goes.server.end().await;
    };
    tokio::join!(load, leaving);
    runs += RUNS;
    ledger.assert_each_once(runs);
    for working in working {
        working.end().await;
    }
    stays.server.end().await;
}
