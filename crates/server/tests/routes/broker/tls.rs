//! A broker that speaks TLS, with a certificate of a private authority.

use interlock_broker::{BrokerAddress, BrokerError, Connection};

use super::redis_server::RedisServer;
use super::{BrokerServer, Ledger, all_succeed};

fn trusting(redis: &RedisServer, authority: &RedisServer) -> BrokerAddress {
    let pem = std::fs::read(authority.authority()).unwrap();
    redis.url().parse::<BrokerAddress>().unwrap().trusting(&pem).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_go_over_tls_to_a_broker_of_a_private_authority() {
    let redis = RedisServer::start_with_tls().await;
    let served = BrokerServer::by_address(trusting(&redis, &redis)).await;
    let ledger = Ledger::default();
    let working = served.works_over(trusting(&redis, &redis), ledger.tasks()).await;
    all_succeed(&served.server.engine, served.tenant, 10).await;
    let more = served.runs_until_counted("handled", 10).await;
    ledger.assert_each_once(10 + more);
    working.end().await;
    served.server.end().await;
}

#[tokio::test]
async fn a_broker_is_not_spoken_to_unless_its_authority_is_trusted() {
    let (redis, other) = (RedisServer::start_with_tls().await, RedisServer::start_with_tls().await);
    assert!(Connection::open(&trusting(&redis, &redis)).await.is_ok());
    // The machine's own authorities have not signed it, nor has another private one.
    let unnamed: BrokerAddress = redis.url().parse().unwrap();
    for address in [unnamed, trusting(&redis, &other)] {
        let refused = Connection::open(&address).await.err();
        assert!(matches!(&refused, Some(BrokerError::Unreachable(_))), "{refused:?}");
    }
}
