//! Payloads too long for a row: shown by their hash, fetched by it, handed to workers whole, and not to be forged.

use serde_json::json;

use crate::harness::{Api, completed, plan, task};

fn long() -> String {
    "x".repeat(100_000)
}

#[tokio::test(start_paused = true)]
async fn a_long_payload_is_shown_by_its_hash_and_fetched_by_it() {
    let api = Api::new().await;
    let inputs = json!({ "text": long() });
    let start = json!({ "plan": plan(json!([task("a"), task("b")])), "inputs": inputs });
    let run = api.post("/runs", start).await.text("run_id");
    let shown = api.get(&format!("/runs/{run}")).await.ok()["inputs"]["$payload"].clone();
    assert_eq!(shown["bytes"], inputs.to_string().len());
    let url = shown["url"].as_str().unwrap();
    assert_eq!(url, format!("/api/v1/runs/{run}/payloads/{}", shown["sha256"].as_str().unwrap()));
    let path = url.strip_prefix("/api/v1").unwrap();
    assert_eq!(api.get(path).await.ok(), inputs);

    let session = api.register().await;
    let first = api.poll(&session).await;
    assert_eq!(first["input"], inputs, "a worker gets it whole");
    let output = json!([long(), 1]);
    api.report(&session, &first, completed(output.clone())).await.ok();
    let next = api.poll(&session).await;
    assert_eq!(next["input"], inputs);
    api.report(&session, &next, completed(output.clone())).await.ok();
    let steps = api.get(&format!("/runs/{run}/steps")).await.ok();
    let of_step = steps["steps"][0]["output"]["$payload"]["url"].as_str().unwrap();
    let run_now = api.get(&format!("/runs/{run}")).await.ok();
    assert_eq!(run_now["output"]["$payload"]["url"], of_step, "the same bytes are one object");
    assert_eq!(api.get(of_step.strip_prefix("/api/v1").unwrap()).await.ok(), output);

    let stranger = api.with_key(&api.other_key);
    assert_eq!(stranger.get(path).await.problem(), (404, "RUN_NOT_FOUND"));
    let other = api.start(json!([task("a")])).await;
    let of_other = path.replace(&run, &other);
    assert_eq!(api.get(&of_other).await.problem(), (404, "PAYLOAD_NOT_FOUND"), "another run does not refer to it");
    assert_eq!(api.get(&format!("/runs/{run}/payloads/nonsense")).await.problem(), (404, "PAYLOAD_NOT_FOUND"));
    api.end().await;
}

/// References as the API shows them, and as a row might hold them, are both just data when a client sends them.
#[tokio::test(start_paused = true)]
async fn what_looks_like_a_reference_is_data() {
    let api = Api::new().await;
    let start = json!({ "plan": plan(json!([task("a")])), "inputs": { "text": long() } });
    let run = api.post("/runs", start).await.text("run_id");
    let shown = api.get(&format!("/runs/{run}")).await.ok()["inputs"].clone();
    let (sha256, bytes) = (&shown["$payload"]["sha256"], &shown["$payload"]["bytes"]);
    let guessed = json!({ "$interlock.payload": "0".repeat(32), "bytes": bytes, "sha256": sha256 });
    for forged in [shown.clone(), guessed] {
        let start = json!({ "plan": plan(json!([task("a")])), "inputs": forged });
        let run = api.post("/runs", start).await.text("run_id");
        assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["inputs"], forged);
        let session = api.register().await;
        let mut assignment = api.poll(&session).await;
        while assignment["run"] != run.as_str() {
            assignment = api.poll(&session).await;
        }
        assert_eq!(assignment["input"], forged);
    }
    api.end().await;
}
