//! Payloads in a bucket: a small S3 on loopback, reached only where the rules for calls to the outside let it be.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use interlock_core::json::Json;
use interlock_core::plan::StepSpec;
use interlock_core::state::RunState;
use interlock_engine::payloads::{Objects, PayloadOptions};
use interlock_engine::{EngineError, EngineOptions};
use interlock_outbound::{Outbound, OutboundOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{Database, done, ends, engine_with, options, plan, start, stop, tenant, work};

type Bucket = Arc<Mutex<HashMap<String, Vec<u8>>>>;

/// As much of S3 as payloads need: whole objects, and a put that refuses what is there.
async fn small_s3(objects: Bucket) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, Arc::clone(&objects)));
        }
    });
    address
}

async fn serve(mut stream: TcpStream, objects: Bucket) {
    let mut read = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let head = String::from_utf8(read[..end].to_vec()).unwrap().to_ascii_lowercase();
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        assert!(header("authorization:").is_some_and(|value| value.starts_with("aws4-hmac-sha256")), "{head}");
        let length: usize = header("content-length:").map_or(0, |length| length.parse().unwrap());
        while read.len() < end + length {
            assert!(stream.read_buf(&mut read).await.unwrap() > 0);
        }
        let body = read[end..end + length].to_vec();
        let (method, path) = (head.split(' ').next().unwrap(), head.split(' ').nth(1).unwrap().to_owned());
        let answer = answer(method, path, body, header("if-none-match:") == Some("*"), &objects);
        stream.write_all(&answer).await.unwrap();
        read.drain(..end + length);
    }
}

fn answer(method: &str, path: String, body: Vec<u8>, only_new: bool, objects: &Bucket) -> Vec<u8> {
    let mut objects = objects.lock().unwrap();
    let plain = |status: &str| format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\netag: \"e\"\r\n\r\n").into_bytes();
    match (method, objects.get(&path)) {
        ("put", Some(_)) if only_new => plain("412 Precondition Failed"),
        ("put", _) => {
            objects.insert(path, body);
            plain("200 OK")
        }
        ("delete", _) => {
            objects.remove(&path);
            plain("204 No Content")
        }
        (_, None) => plain("404 Not Found"),
        (method, Some(found)) => {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\netag: \"e\"\r\n\
                 last-modified: Sun, 15 Nov 2026 08:00:00 GMT\r\n\r\n",
                found.len()
            );
            let body: &[u8] = if method == "head" { b"" } else { found };
            [head.as_bytes(), body].concat()
        }
    }
}

fn bucket(address: SocketAddr, open: &[&str]) -> EngineOptions {
    let settings = [
        ("AWS_ACCESS_KEY_ID", "key".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
        ("AWS_REGION", "eu-central-1".to_owned()),
        ("AWS_ENDPOINT", format!("http://{address}")),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
    ];
    let open = open.iter().map(|range| range.parse().unwrap()).collect();
    let outbound = Outbound::new(OutboundOptions { open, ..OutboundOptions::default() }).unwrap();
    let settings = settings.map(|(name, value)| (name.to_owned(), value));
    let objects = Objects::bucket("runs/interlock", settings, &outbound).unwrap();
    EngineOptions { payloads: Some(PayloadOptions::new(objects)), ..options() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_payloads_go_to_a_bucket_that_the_operator_has_opened() {
    let objects = Bucket::default();
    let address = small_s3(Arc::clone(&objects)).await;
    let database = Database::sqlite();
    let long = format!("{{\"text\":\"{}\"}}", "x".repeat(100_000));
    let once = plan(vec![StepSpec::task("only", "t")]);

    let closed = engine_with(&database, bucket(address, &[])).await;
    let tenant = tenant(&closed, |_| {}).await;
    let refused = closed.runs().start(start(tenant, &once, &long)).await.unwrap_err();
    assert_eq!(refused.code(), "PAYLOAD_STORE_UNAVAILABLE", "{refused}");
    assert!(matches!(refused, EngineError::Payload(_)) && objects.lock().unwrap().is_empty());
    stop(closed).await;

    let engine = engine_with(&database, bucket(address, &["127.0.0.0/8"])).await;
    let seen: Arc<Mutex<Vec<Json>>> = Arc::default();
    let heard = Arc::clone(&seen);
    let worker = work(&engine, 1, move |assignment| {
        heard.lock().unwrap().push(assignment.input);
        async { done("1") }
    });
    for _ in 0..2 {
        let run = engine.runs().start(start(tenant, &once, &long)).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
    }
    worker.abort();
    let whole = Json::trusted(long);
    assert_eq!(*seen.lock().unwrap(), [whole.clone(), whole]);
    let names: Vec<String> = objects.lock().unwrap().keys().cloned().collect();
    assert_eq!(names.len(), 1, "the same payload is one object");
    assert!(names[0].starts_with("/runs/interlock/"), "{names:?}");
    stop(engine).await;
}

#[test]
fn a_bucket_without_credentials_is_refused_at_the_start() {
    let outbound = Outbound::new(OutboundOptions::default()).unwrap();
    let error = Objects::bucket("runs", [], &outbound).err().unwrap().to_string();
    assert!(error.contains("AWS_ACCESS_KEY_ID"), "{error}");
    assert!(Objects::open("gs://runs", &outbound).is_err());
    assert!(Objects::open("", &outbound).is_err());
}
