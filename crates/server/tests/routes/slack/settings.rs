//! A tenant's connection: what is asked of it, and that nothing shows its secrets.

use serde_json::json;

use super::{SECRET, TEAM, TOKEN, settings};
use crate::harness::Api;

#[tokio::test]
async fn a_connection_is_made_changed_and_removed() {
    let api = Api::new().await;
    assert_eq!(api.get("/slack").await.problem(), (404, "SLACK_NOT_CONNECTED"));
    let put = async |body| api.send("PUT", "/api/v1/slack", body).await;
    let body = json!({ "team": TEAM, "channel": "C0OPS" });
    assert_eq!(put(body.clone()).await.problem(), (422, "INPUT_INVALID"), "a new one needs its secrets");
    let mut whole = body.clone();
    (whole["bot_token"], whole["signing_secret"]) = (json!(TOKEN), json!(SECRET));
    let made = put(whole).await.ok();
    assert_eq!((&made["rung_prod_s"], &made["rung_other_s"]), (&json!(600), &json!(1_800)));
    assert_eq!(made["pagerduty"], false);
    let address = made["interactions_url"].as_str().unwrap();
    assert!(address.ends_with(&format!("/api/v1/slack/interactions/{}", made["connection"].as_str().unwrap())));
    let mut more = body;
    (more["escalation_channel"], more["pagerduty_routing_key"]) = (json!("C0ESCALATION"), json!("R0UTINGKEY"));
    more["rung_prod_s"] = json!(120);
    let changed = put(more.clone()).await.ok();
    assert_eq!(changed["connection"], made["connection"]);
    assert_eq!((&changed["pagerduty"], &changed["rung_prod_s"]), (&json!(true), &json!(120)));
    assert_eq!(changed["secrets_given_at"], made["secrets_given_at"]);
    more["pagerduty_routing_key"] = json!("");
    assert_eq!(put(more.clone()).await.ok()["pagerduty"], false);
    let shown = api.get("/slack").await.ok();
    assert!(!shown.to_string().contains(TOKEN) && !shown.to_string().contains(SECRET));
    let row = format!("{:?}", api.engine.store().slack(api.tenant).await.unwrap().unwrap());
    assert!(!row.contains(TOKEN) && !row.contains(SECRET) && !row.contains("R0UTINGKEY"), "{row}");
    for (field, value) in [("team", json!("acme")), ("channel", json!("#ops")), ("rung_prod_s", json!(1))] {
        let mut wrong = more.clone();
        wrong[field] = value;
        assert_eq!(put(wrong).await.problem(), (422, "INPUT_INVALID"), "{field}");
    }
    assert_eq!(api.with_key(&api.other_key).get("/slack").await.problem(), (404, "SLACK_NOT_CONNECTED"));
    assert_eq!(api.send("DELETE", "/api/v1/slack", json!({})).await.status, 204);
    assert_eq!(api.send("DELETE", "/api/v1/slack", json!({})).await.problem(), (404, "SLACK_NOT_CONNECTED"));
    api.end().await;
}

/// The secret before counts for a day, the one before that no more.
#[tokio::test]
async fn a_replaced_secret_counts_for_a_day() {
    let api = Api::new().await;
    let slack = api.engine.slack();
    let by = interlock_engine::audit::Actor::user("root");
    let first = slack.connect(api.tenant, settings(), &by).await.unwrap();
    let second = interlock_engine::slack::settings::SlackSettings {
        signing_secret: Some("another-secret-of-theirs".into()),
        bot_token: None,
        ..settings()
    };
    let second = slack.connect(api.tenant, second, &by).await.unwrap();
    let (previous, until) = second.secrets.previous.unwrap();
    assert_eq!(previous, first.secrets.current);
    assert!(until > api.engine.now());
    assert_eq!(second.secret_by.as_deref(), Some("root"));
    api.end().await;
}
