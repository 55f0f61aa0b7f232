//! Who is who in Slack: said by people who are signed in, once, for themselves.

use axum::body::Body;
use axum::http::{Request, header};
use interlock_core::time::Millis;
use serde_json::json;

use super::{APPROVE, Slacked};
use crate::approvals::Person;
use crate::harness::{Api, ApiResponse};

async fn page(api: &Api, person: Option<&Person<'_>>, path: &str) -> ApiResponse {
    let mut request = Request::get(path).header(header::HOST, "localhost");
    if let Some(person) = person {
        request = request.header(header::COOKIE, &person.cookie);
    }
    api.ask(request.body(Body::empty()).unwrap()).await
}

async fn agree(api: &Api, person: &Person<'_>, csrf: &str, token: &str) -> ApiResponse {
    let request = Request::post("/slack/link")
        .header(header::HOST, "localhost")
        .header(header::ORIGIN, "http://localhost")
        .header(header::COOKIE, &person.cookie)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    api.ask(request.body(Body::from(format!("csrf={csrf}&token={token}"))).unwrap()).await
}

/// The address in the whisper to a Slack user.
fn token(told: &str) -> String {
    let (_, rest) = told.split_once("/slack/link?token=").unwrap_or_else(|| panic!("{told}"));
    rest.split('|').next().unwrap().to_owned()
}

/// The form's own value, which another site cannot know.
fn csrf(page: &ApiResponse) -> String {
    let page = page.body.as_str().unwrap();
    let (_, rest) = page.split_once("name=\"csrf\" value=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn somebody_links_themselves_and_decides() {
    let at = Slacked::new().await;
    let ada = Person::new(&at.api, "ada", json!(["approver"]), json!([])).await;
    let run = at.gated(1).await;
    let card = at.card().await;
    at.pressed("U0ADA", APPROVE, &card).await;
    let told = at.slack.whisper(0).await;
    assert_eq!(at.slack.held().whispered[0].user.as_deref(), Some("U0ADA"));
    let token = token(&told);
    let path = format!("/slack/link?token={token}");

    let outside = page(&at.api, None, &path).await;
    assert_eq!(outside.status, 303);
    assert!(outside.headers[header::LOCATION].to_str().unwrap().starts_with("/login?next="));
    let asked = page(&at.api, Some(&ada), &path).await;
    assert_eq!(asked.status, 200, "{}", asked.body);
    assert!(
        asked.body.as_str().unwrap().contains("<strong>ada</strong>") && asked.body.as_str().unwrap().contains("U0ADA")
    );
    assert_eq!(agree(&at.api, &ada, "wrong", &token).await.status, 403);
    assert_eq!(at.api.get("/slack/links").await.ok()["links"], json!([]), "looking changes nothing");
    let linked = agree(&at.api, &ada, &csrf(&asked), &token).await;
    assert_eq!(linked.status, 200, "{}", linked.body);
    assert_eq!(agree(&at.api, &ada, &csrf(&asked), &token).await.status, 404, "it works once");

    at.pressed("U0ADA", APPROVE, &card).await;
    at.slack.card_showing("Approved by ada").await;
    assert_eq!(at.run_state(&run).await, "succeeded");
    let links = at.api.get("/slack/links").await.ok();
    assert_eq!((&links["links"][0]["person"], &links["links"][0]["user"]), (&json!("ada"), &json!("U0ADA")));
    assert_eq!(ada.send("DELETE", "/slack/links/ada", json!({})).await.status, 204);
    assert_eq!(ada.send("DELETE", "/slack/links/ada", json!({})).await.problem(), (404, "SLACK_LINK_NOT_FOUND"));
    at.end().await;
}

#[tokio::test]
async fn nobody_unlinks_others_but_an_admin() {
    let at = Slacked::new().await;
    let _ada = at.person("ada", "U0ADA").await;
    let bob = at.person("bob", "U0BOB").await;
    assert_eq!(bob.send("DELETE", "/slack/links/ada", json!({})).await.problem(), (404, "SLACK_LINK_NOT_FOUND"));
    assert_eq!(at.api.get("/slack/links").await.ok()["links"][0]["person"], "ada");
    assert_eq!(bob.send("GET", "/slack/links", json!({})).await.problem(), (403, "PERMISSION_DENIED"));
    assert_eq!(at.api.send("DELETE", "/api/v1/slack/links/ada", json!({})).await.status, 204);
    at.end().await;
}

#[tokio::test]
async fn an_address_is_for_its_own_tenant_and_for_ten_minutes() {
    let at = Slacked::new().await;
    at.gated(1).await;
    let card = at.card().await;
    at.pressed("U0ADA", APPROVE, &card).await;
    let token = token(&at.slack.whisper(0).await);
    let path = format!("/slack/link?token={token}");
    let theirs = at.api.with_key(&at.api.other_key);
    let eve = Person::in_tenant(&theirs, "two", "eve", json!(["approver"])).await;
    assert_eq!(page(&at.api, Some(&eve), &path).await.status, 404);
    let csrf = eve.csrf.clone();
    assert_eq!(agree(&at.api, &eve, &csrf, &token).await.status, 404);
    assert_eq!(theirs.get("/slack/links").await.ok()["links"], json!([]));
    at.end().await;
}

#[tokio::test]
async fn an_account_is_one_slack_user_and_the_other_way_about() {
    let at = Slacked::new().await;
    let _ada = at.person("ada", "U0ADA").await;
    let now = at.api.engine.now();
    super::link(&at.api, at.api.tenant, "ada", "U0OTHER", now - Millis::from_hours(30)).await;
    let links = at.api.get("/slack/links").await.ok();
    assert_eq!(links["links"].as_array().unwrap().len(), 1, "{links}");
    assert_eq!(links["links"][0]["user"], "U0OTHER");
    at.end().await;
}
