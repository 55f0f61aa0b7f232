//! What steps write while they run: handed in by workers, read in pages, as text and as a stream that goes on where it was.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::{Request, header};
use futures::StreamExt;
use interlock_core::ids::{ServerId, TenantId};
use interlock_core::limits::OUTPUT_CHUNK_BYTES_MAX;
use interlock_core::tenant::identity::Role;
use interlock_engine::Engine;
use interlock_server::identity::NewKey;
use interlock_store::{Options, Store, Tenant};
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use crate::harness::{Api, attempt, completed, equipped, postgres, task};

const PATIENCE: Duration = Duration::from_mins(1);

/// A run whose step `a` is running, and who has it.
struct Writing {
    run: String,
    session: String,
    assignment: Value,
}

impl Writing {
    async fn begin(api: &Api) -> Self {
        let run = api.start(json!([task("a"), task("b")])).await;
        let session = api.register().await;
        let assignment = api.poll(&session).await;
        Self { run, session, assignment }
    }

    fn batch(&self, from: u64, texts: &[&str]) -> Value {
        let mut batch = attempt(&self.assignment);
        let chunk = |(seq, text): (u64, &&str)| json!({ "seq": seq, "stream": "stdout", "text": text });
        batch["chunks"] = (from..).zip(texts).map(chunk).collect();
        batch
    }

    async fn write(&self, api: &Api, from: u64, texts: &[&str]) -> Value {
        api.post(&format!("/agent/{}/output", self.session), self.batch(from, texts)).await.ok()
    }

    fn path(&self) -> String {
        format!("/runs/{}/steps/a/output", self.run)
    }
}

/// Server-sent events of an answer.
struct Events {
    body: BodyDataStream,
    pending: String,
}

impl Events {
    async fn open(api: &Api, path: &str, last: Option<&str>) -> Self {
        let mut request = Request::get(format!("/api/v1{path}"))
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, format!("Bearer {}", api.key));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = api.raw(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), 200);
        Self { body: response.into_body().into_data_stream(), pending: String::new() }
    }

    /// The next event's id, name and data.
    async fn next(&mut self) -> (String, String, Value) {
        loop {
            while let Some(end) = self.pending.find("\n\n") {
                let block: String = self.pending.drain(..end + 2).collect();
                let field =
                    |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned();
                let name = field("event: ");
                if !name.is_empty() {
                    return (field("id: "), name, serde_json::from_str(&field("data: ")).unwrap());
                }
            }
            let bytes =
                timeout(PATIENCE, self.body.next()).await.expect("something comes").expect("it goes on").unwrap();
            self.pending.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }

    async fn texts(&mut self, count: usize) -> Vec<String> {
        let mut texts = Vec::new();
        while texts.len() < count {
            texts.push(self.next().await.2["text"].as_str().unwrap().to_owned());
        }
        texts
    }
}

#[tokio::test]
async fn output_is_read_in_pages_and_as_text() {
    let api = Api::new().await;
    let writing = Writing::begin(&api).await;
    let empty = api.get(&writing.path()).await.ok();
    assert_eq!((&empty["attempt"], &empty["chunks"], &empty["attempts"]), (&json!(0), &json!([]), &json!([])));

    let taken = writing.write(&api, 1, &["one\n", "two \u{1b}[31m\n", "three\n"]).await;
    assert_eq!(taken, json!({ "next_seq": 4, "cut": false }));
    assert_eq!(writing.write(&api, 1, &["one\n", "two\n", "three\n"]).await["next_seq"], 4, "a repeat adds nothing");

    let page = api.get(&format!("{}?limit=2", writing.path())).await.ok();
    assert_eq!((&page["attempt"], &page["next_after"], &page["more"]), (&json!(1), &json!(2), &json!(true)));
    assert_eq!(page["chunks"][1]["text"], "two \u{1b}[31m\n");
    let rest = api.get(&format!("{}?after=2", writing.path())).await.ok();
    assert_eq!((&rest["chunks"][0]["seq"], &rest["more"]), (&json!(3), &json!(false)));
    assert_eq!(api.get(&format!("{}?tail=1", writing.path())).await.ok()["chunks"], rest["chunks"]);
    assert_eq!(rest["attempts"][0]["bytes"], 20);

    let request = Request::get(format!("/api/v1{}?format=text", writing.path()))
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.key))
        .body(Body::empty());
    let text = api.raw(request.unwrap()).await;
    assert_eq!(text.headers()[header::CONTENT_DISPOSITION], "attachment; filename=\"a-1.log\"");
    let bytes = axum::body::to_bytes(text.into_body(), 1 << 20).await.unwrap();
    assert_eq!(bytes, "one\ntwo \u{1b}[31m\nthree\n");

    let unknown = api.get(&format!("/runs/{}/steps/z/output", writing.run)).await;
    assert_eq!(unknown.problem().0, 404);
    let unread = api.get(&format!("{}?form=text", writing.path())).await;
    assert_eq!(unread.problem(), (400, "REQUEST_INVALID"));
    api.end().await;
}

#[tokio::test]
async fn output_of_an_attempt_that_is_over_is_refused_and_counted() {
    let api = Api::new().await;
    let writing = Writing::begin(&api).await;
    writing.write(&api, 1, &["in time\n"]).await;
    api.report(&writing.session, &writing.assignment, completed(json!(1))).await.ok();
    let late = api.post(&format!("/agent/{}/output", writing.session), writing.batch(2, &["late\n"])).await;
    assert_eq!(late.problem(), (409, "STEP_STALE_ATTEMPT"));
    assert_eq!(api.engine.health().counters().outputs_refused(), 1);
    let page = api.get(&writing.path()).await.ok();
    assert_eq!(page["chunks"].as_array().unwrap().len(), 1);
    api.end().await;
}

#[tokio::test]
async fn a_batch_that_cannot_be_is_refused() {
    let api = Api::new().await;
    let writing = Writing::begin(&api).await;
    let path = format!("/agent/{}/output", writing.session);
    let long = "x".repeat(OUTPUT_CHUNK_BYTES_MAX + 1);
    let full = "x".repeat(OUTPUT_CHUNK_BYTES_MAX);
    for texts in [vec![], vec![long.as_str()], vec![full.as_str(); 17], vec!["x"; 257]] {
        assert_eq!(api.post(&path, writing.batch(1, &texts)).await.problem(), (422, "INPUT_INVALID"));
    }
    assert_eq!(api.post(&path, writing.batch(0, &["x"])).await.problem(), (422, "INPUT_INVALID"));
    assert_eq!(api.post(&path, writing.batch(2, &["x"])).await.problem(), (422, "INPUT_INVALID"), "1 is missing");
    let mut skipping = writing.batch(1, &["x", "y"]);
    skipping["chunks"][1]["seq"] = json!(3);
    assert_eq!(api.post(&path, skipping).await.problem(), (422, "INPUT_INVALID"));
    let mut earlier = writing.batch(1, &["x"]);
    earlier["epoch"] = json!(99);
    assert_eq!(api.post(&path, earlier).await.problem(), (409, "STORE_EPOCH_STALE"));
    assert_eq!(api.get(&writing.path()).await.ok()["chunks"], json!([]));
    api.end().await;
}

#[tokio::test]
async fn a_stream_goes_on_where_it_was_and_ends_with_the_step() {
    let api = Api::new().await;
    let writing = Writing::begin(&api).await;
    writing.write(&api, 1, &["1", "2"]).await;
    let stream = format!("{}/stream", writing.path());
    let mut events = Events::open(&api, &stream, None).await;
    assert_eq!(events.texts(2).await, ["1", "2"]);
    writing.write(&api, 3, &["3"]).await;
    let (id, name, data) = events.next().await;
    assert_eq!((id.as_str(), name.as_str(), data["text"].as_str()), ("1.3", "output", Some("3")));

    // The connection is lost, and more is written meanwhile.
    drop(events);
    writing.write(&api, 4, &["4", "5"]).await;
    let mut events = Events::open(&api, &stream, Some(&id)).await;
    assert_eq!(events.texts(2).await, ["4", "5"], "no gap, nothing twice");
    writing.write(&api, 6, &["6"]).await;
    assert_eq!(events.texts(1).await, ["6"]);

    api.report(&writing.session, &writing.assignment, completed(json!(1))).await.ok();
    let (_, name, data) = events.next().await;
    assert_eq!((name.as_str(), &data["last_event_id"]), ("stream.end", &json!("1.6")));
    assert!(timeout(PATIENCE, events.body.next()).await.unwrap().is_none(), "the stream is over");

    let mut again = Events::open(&api, &stream, Some("1.6")).await;
    assert_eq!(again.next().await.1, "stream.end");
    let nonsense = api.get(&format!("{stream}?last_event_id=x")).await;
    assert_eq!(nonsense.problem(), (400, "REQUEST_INVALID"));
    api.end().await;
}

#[tokio::test]
async fn all_attempts_follow_one_another_in_one_stream() {
    let api = Api::new().await;
    let writing = Writing::begin(&api).await;
    writing.write(&api, 1, &["first"]).await;
    api.report(&writing.session, &writing.assignment, json!({ "status": "released" })).await.ok();
    let again = Writing { assignment: api.poll(&writing.session).await, ..writing };
    assert_eq!(again.assignment["attempt"], 2);
    let mut events = Events::open(&api, &format!("{}/stream", again.path()), None).await;
    assert_eq!(events.texts(1).await, ["first"]);
    again.write(&api, 1, &["second"]).await;
    let (id, _, data) = events.next().await;
    assert_eq!((id.as_str(), data["text"].as_str()), ("2.1", Some("second")));

    let mut first_only = Events::open(&api, &format!("{}/stream?attempt=1", again.path()), None).await;
    assert_eq!(first_only.texts(1).await, ["first"]);
    assert_eq!(first_only.next().await.1, "stream.end", "that attempt is over");
    let page = api.get(&again.path()).await.ok();
    assert_eq!((&page["attempt"], page["attempts"].as_array().unwrap().len()), (&json!(2), 2));
    let first = api.get(&format!("{}?attempt=1", again.path())).await.ok();
    assert_eq!(first["chunks"][0]["text"], "first");
    api.end().await;
}

#[tokio::test]
async fn output_of_other_tenants_and_workspaces_is_not_there() {
    let api = Api::new().await;
    let writing = Writing::begin(&api).await;
    writing.write(&api, 1, &["mine\n"]).await;
    let elsewhere = api.new_key(NewKey {
        workspace: Some("other".into()),
        ..NewKey::new(api.tenant, "confined", [Role::Viewer].into_iter().collect())
    });
    let confined = api.with_key(&elsewhere.await);
    let foreign = api.new_key(NewKey::new(api.other_tenant, "foreign", [Role::Viewer].into_iter().collect())).await;
    let foreign = api.with_key(&foreign);
    for stranger in [&confined, &foreign] {
        for path in [writing.path(), format!("{}/stream", writing.path())] {
            assert_eq!(stranger.get(&path).await.problem(), (404, "RUN_NOT_FOUND"), "{path}");
        }
    }
    api.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_at_one_server_sees_what_a_worker_brings_to_another() {
    let url = postgres("output").await;
    let open = async || {
        let options = equipped();
        let store = Store::open(&url, Options::new(ServerId(options.ids.fresh()))).await.unwrap();
        Engine::open(store, options).await.unwrap()
    };
    let (first, second) = (open().await, open().await);
    let tenants = [1, 2].map(|number| TenantId(Uuid::from_u128(number)));
    for tenant in tenants {
        first.tenants().put(Tenant::new(tenant, tenant.to_string(), first.now())).await.unwrap();
    }
    let one = Api::of(first, tenants, "output".to_owned()).await;
    let two = one.on(second);
    let writing = Writing::begin(&one).await;
    let mut events = Events::open(&two, &format!("{}/stream", writing.path()), None).await;
    for number in 1..=20 {
        let text = number.to_string();
        // A load balancer may bring each batch to another server.
        let server = if number % 3 == 0 { &two } else { &one };
        assert_eq!(writing.write(server, number, &[&text]).await["next_seq"], number + 1);
        assert_eq!(events.texts(1).await, [text]);
    }
    one.report(&writing.session, &writing.assignment, completed(json!(1))).await.ok();
    assert_eq!(events.next().await.1, "stream.end");
    two.engine.stop().await;
    one.engine.stop().await;
}
