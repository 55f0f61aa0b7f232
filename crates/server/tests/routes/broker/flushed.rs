//! Everything in the broker is thrown away, again and again.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::interval;

use super::redis_server::RedisServer;
use super::{BrokerServer, Ledger, all_succeed};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushing_under_load_loses_nothing_and_doubles_nothing() {
    const RUNS: usize = 100;
    let redis = RedisServer::start().await;
    let served = BrokerServer::by(&redis.url()).await;
    let ledger = Ledger::default();
    let working = [served.works(&redis.url(), ledger.tasks()).await, served.works(&redis.url(), ledger.tasks()).await];
    let (flushed, mut runs) = (Cell::new(0), RUNS);
    let flushing = async {
        let mut every = interval(Duration::from_millis(100));
        loop {
            every.tick().await;
            assert_eq!(redis.say("FLUSHALL").await.as_deref(), Some("+OK\r\n"));
            flushed.set(flushed.get() + 1);
        }
    };
    let loading = Box::pin(async {
        all_succeed(&served.server.engine, served.tenant, RUNS).await;
        while flushed.get() <= 10 {
            all_succeed(&served.server.engine, served.tenant, 5).await;
            runs += 5;
        }
        // The calls go over the broker.
        runs += served.runs_until_counted("handled", 20).await;
    });
    tokio::select! {
        () = loading => {}
        () = flushing => {}
    }
    ledger.assert_each_once(runs);
    for working in working {
        working.end().await;
    }
    served.server.end().await;
}
