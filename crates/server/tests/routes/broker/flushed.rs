//! Everything in the broker is thrown away, again and again.

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
    let mut flushed = 0;
    let flushing = async {
        let mut every = interval(Duration::from_millis(100));
        loop {
            every.tick().await;
            assert_eq!(redis.say("FLUSHALL").await.as_deref(), Some("+OK\r\n"));
            flushed += 1;
        }
    };
    tokio::select! {
        () = all_succeed(&served.server.engine, served.tenant, RUNS) => {}
        () = flushing => {}
    }
    ledger.assert_each_once(RUNS);
    assert!(flushed > 10, "it was flushed {flushed} times");
    assert!(served.counted("handled").await > 20, "the calls went over the broker");
    for working in working {
        working.end().await;
    }
    served.server.end().await;
}
