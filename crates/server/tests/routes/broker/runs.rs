//! Runs whose workers' calls go over the broker.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::redis_server::RedisServer;
use super::{BrokerServer, Ledger, PATIENCE, all_succeed};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_over_the_broker_runs_runs_and_leaves_in_good_order() {
    let redis = RedisServer::start().await;
    let served = BrokerServer::by(&redis.url()).await;
    let ledger = Ledger::default();
    let working = served.works(&redis.url(), ledger.tasks()).await;
    all_succeed(&served.server.engine, served.tenant, 20).await;
    // The calls go over the broker.
    let more = served.runs_until_counted("handled", 60).await;
    ledger.assert_each_once(20 + more);
    working.end().await;
    assert_eq!(served.counted("unreadable").await, 0);
    // What was answered is gone from the stream; the last poll waits a moment longer than its worker.
    let length = format!("XLEN interlock:{}:calls", served.secret.installation());
    let emptied = async {
        while redis.say(&length).await.as_deref() != Some(":0\r\n") {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, emptied).await.expect("the stream is emptied");
    served.server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_dies_and_comes_back_costs_no_run() {
    let mut redis = RedisServer::start().await;
    let served = BrokerServer::by(&redis.url()).await;
    let ledger = Ledger::default();
    let working = served.works(&redis.url(), ledger.tasks()).await;
    let runs = all_succeed(&served.server.engine, served.tenant, 60);
    let dying = async {
        sleep(Duration::from_millis(400)).await;
        redis.kill().await;
        sleep(Duration::from_millis(400)).await;
        redis.restart().await;
    };
    tokio::join!(runs, dying);
    ledger.assert_each_once(60);
    served.until_ready("ready").await;
    working.end().await;
    served.server.end().await;
}
