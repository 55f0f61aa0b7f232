//! A store that does not answer, to those who have waited: nobody knows whether their credential still counts, so they are
//! told nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::{Request, header};
use futures::StreamExt as _;
use interlock_engine::payloads::Objects;
use interlock_protocol::live::limits;
use interlock_store::Faults;
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::harness::{Api, engine_under, task};

/// Reads fail while it is set.
#[derive(Default)]
struct Away(AtomicBool);

impl Away {
    fn set(&self, away: bool) {
        self.0.store(away, Ordering::SeqCst);
    }
}

impl Faults for Away {
    fn fails_reads(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

async fn api() -> (Api, Arc<Away>) {
    let away = Arc::new(Away::default());
    let (engine, tenants, database) = engine_under(away.clone(), Objects::memory()).await;
    (Api::of(engine, tenants, database).await, away)
}

#[tokio::test(start_paused = true)]
async fn a_request_that_has_waited_is_answered_only_if_its_credential_can_be_looked_at() {
    let (api, away) = api().await;
    api.start(json!([task("a")])).await;
    // Until nothing comes any more.
    let mut last = "0".to_owned();
    loop {
        let page = api.get(&format!("/events?last_event_id={last}&wait_ms=3000")).await.ok();
        last = page["last_event_id"].as_str().unwrap().to_owned();
        if page["events"].as_array().unwrap().is_empty() {
            break;
        }
    }
    // Who waits looks at the store once a second, and not again before the end.
    let wait = async |goes_away: bool| {
        let path = format!("/events?last_event_id={last}&wait_ms=2500");
        let (answer, ()) = tokio::join!(api.get(&path), async {
            sleep(Duration::from_millis(2_400)).await;
            away.set(goes_away);
        });
        answer
    };
    assert_eq!(wait(false).await.ok()["events"], json!([]));
    assert_eq!(wait(true).await.problem(), (503, "STORE_UNAVAILABLE"));
    // What needs no credential is answered.
    let healthy =
        api.raw(Request::get("/healthz").header(header::HOST, "localhost").body(Body::empty()).unwrap()).await;
    assert_eq!(healthy.status(), 200);
    away.set(false);
    assert_eq!(wait(false).await.ok()["events"], json!([]));
    api.end().await;
}

/// A stream, behind its first words.
async fn opened(api: &Api, path: &str) -> BodyDataStream {
    let request = Request::get(path)
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.key));
    let response = api.raw(request.body(Body::empty()).unwrap()).await;
    assert_eq!(response.status(), 200, "{path}");
    let mut stream = response.into_body().into_data_stream();
    assert!(said(&mut stream).await.starts_with("retry:"), "{path}");
    stream
}

async fn said(stream: &mut BodyDataStream) -> String {
    let chunk = timeout(Duration::from_mins(1), stream.next()).await.expect("something is said").unwrap().unwrap();
    String::from_utf8(chunk.to_vec()).unwrap()
}

const HEARTBEAT: &str = ": heartbeat\n\n";

#[tokio::test(start_paused = true)]
async fn a_stream_tells_nothing_while_its_credential_cannot_be_looked_at() {
    let (api, away) = api().await;
    let run = api.start(json!([task("a")])).await;
    for path in ["/api/v1/events/stream".to_owned(), format!("/api/v1/runs/{run}/events/stream")] {
        let mut stream = opened(&api, &format!("{path}?last_event_id=0")).await;
        // What has happened is read and kept for who watches, and this watcher has not taken it.
        sleep(Duration::from_secs(5)).await;
        away.set(true);
        sleep(limits::HEARTBEAT.as_duration()).await;
        for _ in 0..3 {
            assert_eq!(said(&mut stream).await, HEARTBEAT, "{path}");
        }
        away.set(false);
        let mut told = said(&mut stream).await;
        while told == HEARTBEAT {
            told = said(&mut stream).await;
        }
        assert!(told.contains("id: 1\nevent: session.created\n"), "{path}: it goes on where it was: {told}");
    }
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_output_waits_for_the_store() {
    let (api, away) = api().await;
    let run = api.start(json!([task("a")])).await;
    let mut stream = opened(&api, &format!("/api/v1/runs/{run}/steps/a/output/stream")).await;
    away.set(true);
    sleep(limits::HEARTBEAT.as_duration()).await;
    for _ in 0..3 {
        assert_eq!(said(&mut stream).await, HEARTBEAT);
    }
    away.set(false);
    api.post(&format!("/runs/{run}/cancel"), json!({ "reason": "enough" })).await.ok();
    let mut told = said(&mut stream).await;
    while told == HEARTBEAT {
        told = said(&mut stream).await;
    }
    assert!(told.starts_with("event: stream.end\n"), "{told}");
    api.end().await;
}
