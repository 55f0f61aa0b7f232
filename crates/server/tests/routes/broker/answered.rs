//! A connection to the broker that breaks right behind an answer: the answer has arrived, and the server cannot know.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use interlock_broker::fresh_name;
use interlock_core::json::Json;
use interlock_core::plan::{Plan, StepSpec};
use interlock_core::tenant::identity::Role;
use interlock_engine::{EncodedPlan, StartRun};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use super::redis_server::RedisServer;
use super::{BrokerServer, hello};
use crate::harness::{attempt, completed};

/// How an answer that hands out steps is marked on its way.
const HANDS_OUT: &[u8] = b"session.command";

/// Stands between the server and Redis. The first answer that hands out steps goes through, and its connection is closed
/// before Redis has said so.
async fn cutting(redis: &RedisServer) -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("redis://{}", listener.local_addr().unwrap());
    let (to, is_cut) = (redis.url().trim_start_matches("redis://").to_owned(), Arc::new(AtomicBool::new(false)));
    let cut = Arc::clone(&is_cut);
    tokio::spawn(async move {
        while let Ok((server, _)) = listener.accept().await {
            let (redis, cut) = (TcpStream::connect(&to).await.unwrap(), Arc::clone(&cut));
            tokio::spawn(carried(server, redis, cut));
        }
    });
    (address, is_cut)
}

async fn carried(mut server: TcpStream, mut redis: TcpStream, is_cut: Arc<AtomicBool>) {
    let (mut up, mut down) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        tokio::select! {
            read = server.read(&mut up) => match read {
                Ok(count) if count > 0 => {
                    if redis.write_all(&up[..count]).await.is_err() {
                        return;
                    }
                    let hands_out = up[..count].windows(HANDS_OUT.len()).any(|bytes| bytes == HANDS_OUT);
                    if hands_out && !is_cut.swap(true, Ordering::SeqCst) {
                        // Redis carries it out, and what it says goes nowhere.
                        let _ = redis.read(&mut down).await;
                        return;
                    }
                }
                _ => return,
            },
            read = redis.read(&mut down) => match read {
                Ok(count) if count > 0 => {
                    if server.write_all(&down[..count]).await.is_err() {
                        return;
                    }
                }
                _ => return,
            },
        }
    }
}

#[tokio::test]
async fn steps_of_an_answer_that_may_have_arrived_are_not_given_back() {
    let redis = RedisServer::start().await;
    let (address, is_cut) = cutting(&redis).await;
    let served = BrokerServer::by(&address).await;
    let (_, key) = served.key(Role::Worker).await;
    let raw = served.raw(&redis.url(), &key).await;
    let session = raw.call("register", hello()).await.1["session"].clone();
    let plan = EncodedPlan::new(Plan::new("w", vec![StepSpec::task("a", "count")])).unwrap();
    let start = StartRun::new(served.tenant, plan, Json::null());
    served.server.engine.runs().start(start).await.unwrap();

    let name = fresh_name();
    raw.write(&raw.sealed(&name, "poll", &json!({ "session": session, "max": 1, "wait_ms": 1_000 }), 0)).await;
    let (status, polled) = raw.answers(&name, 1).await.remove(0);
    assert_eq!((status, is_cut.load(Ordering::SeqCst)), (200, true), "{polled}");
    let at = &polled["assignments"][0];
    // The server has met the broken connection, and comes back.
    sleep(Duration::from_millis(500)).await;
    served.until_ready("ready").await;
    let other = raw.call("register", hello()).await.1["session"].clone();
    let (_, polled) = raw.call("poll", json!({ "session": other, "max": 1, "wait_ms": 300 })).await;
    assert_eq!(polled["assignments"], json!([]), "one worker has the step");
    let mut report = attempt(at);
    report["outcome"] = completed(json!(1));
    let call = format!("{}/complete-step", session.as_str().unwrap());
    let (status, recorded) = raw.call(&call, report).await;
    assert_eq!(status, 200, "{recorded}");
    served.server.end().await;
}
