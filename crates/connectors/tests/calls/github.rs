use std::sync::{Arc, Mutex};

use interlock_connectors::{Probed, Sent};
use interlock_core::plan::retry::ErrorClass;
use serde_json::{Value, json};

use crate::harness::{ReceivedRequest, Reply, StandIn, TOKEN, caller, checked, facts, perform, probe, undo};

fn check_headers(seen: &ReceivedRequest) {
    assert_eq!(seen.headers["authorization"], format!("Bearer {TOKEN}"));
    assert_eq!(seen.headers["accept"], "application/vnd.github+json");
    assert_eq!(seen.headers["x-github-api-version"], "2022-11-28");
    assert!(seen.headers["user-agent"].starts_with("interlock/"), "GitHub refuses callers without a name");
}

fn comment() -> Value {
    json!({ "owner": "acme", "repo": "web", "issue": 7, "body": "Fixed by the restart." })
}

async fn issue(loses_answers: bool) -> StandIn {
    let comments: Arc<Mutex<Vec<Value>>> = Arc::default();
    StandIn::start(move |seen: &ReceivedRequest| {
        check_headers(seen);
        let mut comments = comments.lock().unwrap();
        match (seen.method.as_str(), seen.path.as_str()) {
            ("POST", "/repos/acme/web/issues/7/comments") => {
                let comment = json!({ "id": 11, "html_url": "https://github.test/11", "body": seen.body["body"] });
                comments.push(comment.clone());
                if loses_answers { Reply::Lost } else { Reply::Json(201, comment) }
            }
            ("GET", "/repos/acme/web/issues/7/comments") => {
                assert_eq!(seen.query, "per_page=100&since=2023-11-14T22%3A12%3A20Z");
                Reply::Json(200, Value::Array(comments.clone()))
            }
            ("DELETE", "/repos/acme/web/issues/comments/11") => {
                let status = if comments.pop().is_some() { 204 } else { 404 };
                Reply::Json(status, Value::Null)
            }
            other => panic!("no such call: {other:?}"),
        }
    })
    .await
}

#[tokio::test]
async fn a_comment_carries_its_mark_and_is_deleted_by_its_inverse() {
    let server = issue(false).await;
    let caller = caller("github", &server.url);
    let output = perform(&caller, "github.issue.comment", comment()).await.unwrap();
    assert_eq!(output, json!({ "comment_id": 11, "url": "https://github.test/11" }));
    let body = format!("Fixed by the restart.\n\n<!-- interlock {} -->", facts().mark());
    assert_eq!(server.seen()[0].body, json!({ "body": body }));
    let undone = undo(&caller, "github.issue.comment", comment(), &output).await.unwrap();
    assert_eq!(undone, json!({ "deleted": true }));
    let again = undo(&caller, "github.issue.comment", comment(), &output).await.unwrap();
    assert_eq!(again, json!({ "deleted": false }));
}

#[tokio::test]
async fn a_lost_comment_is_found_by_its_mark() {
    let server = issue(true).await;
    let caller = caller("github", &server.url);
    assert_eq!(probe(&caller, "github.issue.comment", comment()).await, Probed::NoTrace);
    assert_eq!(perform(&caller, "github.issue.comment", comment()).await.unwrap_err().sent, Sent::Unknown);
    let probed = probe(&caller, "github.issue.comment", comment()).await;
    assert_eq!(probed, Probed::Happened(json!({ "comment_id": 11, "url": "https://github.test/11" })));
}

/// Labels as GitHub keeps them.
async fn labelled(first: &[&str]) -> (StandIn, Arc<Mutex<Vec<String>>>) {
    let labels = Arc::new(Mutex::new(first.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>()));
    let inside = Arc::clone(&labels);
    let server = StandIn::start(move |seen: &ReceivedRequest| {
        check_headers(seen);
        let mut labels = inside.lock().unwrap();
        let list = |labels: &[String]| labels.iter().map(|name| json!({ "name": name })).collect::<Value>();
        match (seen.method.as_str(), seen.path.as_str()) {
            ("GET", "/repos/acme/web/issues/7/labels") => Reply::Json(200, list(&labels)),
            ("POST", "/repos/acme/web/issues/7/labels") => {
                for label in seen.body["labels"].as_array().unwrap() {
                    let label = label.as_str().unwrap().to_owned();
                    if !labels.contains(&label) {
                        labels.push(label);
                    }
                }
                Reply::Json(200, list(&labels))
            }
            ("DELETE", path) => {
                let label = path.strip_prefix("/repos/acme/web/issues/7/labels/").unwrap().replace("%20", " ");
                let before = labels.len();
                labels.retain(|known| *known != label);
                let gone = Reply::Json(404, json!({ "message": "Label does not exist" }));
                if labels.len() < before { Reply::Json(200, list(&labels)) } else { gone }
            }
            other => panic!("no such call: {other:?}"),
        }
    })
    .await;
    (server, labels)
}

#[tokio::test]
async fn labels_are_added_and_removed_and_the_inverse_leaves_what_was_there() {
    let (server, labels) = labelled(&["bug", "needs triage"]).await;
    let caller = caller("github", &server.url);
    let fields = json!({
        "owner": "acme", "repo": "web", "issue": 7,
        "add": ["bug", "fixed"], "remove": ["needs triage", "absent"],
    });
    let output = perform(&caller, "github.issue.labels", fields.clone()).await.unwrap();
    assert_eq!(*labels.lock().unwrap(), ["bug", "fixed"]);
    assert_eq!(output["before"]["labels"], json!(["bug", "needs triage"]));
    undo(&caller, "github.issue.labels", fields, &output).await.unwrap();
    let mut now = labels.lock().unwrap().clone();
    now.sort();
    assert_eq!(now, ["bug", "needs triage"], "`bug` was there before, and `absent` was not");
}

#[tokio::test]
async fn a_limit_is_not_a_refusal() {
    for (headers, class) in [
        (vec![("x-ratelimit-remaining", "0".to_owned())], ErrorClass::RateLimited),
        (vec![("retry-after", "30".to_owned())], ErrorClass::RateLimited),
        (vec![], ErrorClass::Invalid),
    ] {
        let answered = headers.clone();
        let limit = json!({ "message": "no" });
        let server = StandIn::start(move |_: &ReceivedRequest| Reply::With(403, answered.clone(), limit.clone())).await;
        let failure = perform(&caller("github", &server.url), "github.issue.comment", comment()).await.unwrap_err();
        assert_eq!((failure.class, failure.sent), (class, Sent::CertainlyNot), "{headers:?}");
    }
}

/// The secondary limit is told in words only; the primary one says when it ends.
#[tokio::test]
async fn a_limit_says_when_to_come_back() {
    let secondary = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
    let spent = |reset: &str| vec![("x-ratelimit-remaining", "0".to_owned()), ("x-ratelimit-reset", reset.to_owned())];
    for (status, headers, says, after) in [
        (403, vec![], secondary, Some(60)),
        (429, vec![], secondary, Some(60)),
        (403, vec![("retry-after", "30".to_owned())], secondary, Some(30)),
        // In the year 2100: no pause is believed for so long.
        (403, spent("4102444800"), "API rate limit exceeded", Some(3_600)),
        (429, spent("4102444800"), "API rate limit exceeded", Some(3_600)),
        (429, spent("1"), "API rate limit exceeded", None),
    ] {
        let (answered, body) = (headers.clone(), json!({ "message": says }));
        let server =
            StandIn::start(move |_: &ReceivedRequest| Reply::With(status, answered.clone(), body.clone())).await;
        let failure = perform(&caller("github", &server.url), "github.issue.comment", comment()).await.unwrap_err();
        assert_eq!(
            (failure.class, failure.sent),
            (ErrorClass::RateLimited, Sent::CertainlyNot),
            "{status} {headers:?}"
        );
        assert_eq!(failure.after.map(|after| after.as_secs()), after, "{status} {headers:?}");
        assert_eq!(failure.code, format!("HTTP_{status}"));
    }
}

#[test]
fn contradictions_between_labels_are_refused() {
    let (labels, _) = checked("github.issue.labels", json!({ "owner": "a", "repo": "b", "issue": 1, "add": ["x"] }));
    for (fields, says) in [
        (json!({ "owner": "a", "repo": "b", "issue": 1 }), "nothing to change"),
        (json!({ "owner": "a", "repo": "b", "issue": 1, "add": ["X"], "remove": ["x"] }), "both added and removed"),
        (json!({ "owner": "a", "repo": "b", "issue": 1, "remove": [".."] }), "not a label"),
    ] {
        let fields = interlock_connectors::Fields::check(labels.declaration(), fields).unwrap();
        let refusal = labels.check(&fields).unwrap_err();
        assert!(refusal.contains(says), "{refusal}");
    }
}
