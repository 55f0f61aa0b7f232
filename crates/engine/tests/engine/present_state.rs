//! An approver sees the target's present state beside what would be: read by the server, shown, and no part of what is
//! signed.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::governance::action::Action;
use interlock_core::governance::judge::{Decision, Judge, Ruling};
use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::plan::{Gate, StepSpec, Work};
use interlock_core::run::Run;
use interlock_core::run::card::{FieldChange, PresentState};
use interlock_core::state::RunState;
use interlock_engine::commands::vote::ApprovalExclusions;
use interlock_engine::slack::approval_digest;
use interlock_engine::slack::card::CardFacts;
use interlock_engine::{Engine, EngineOptions, JudgedBy};
use interlock_store::ApprovalRow;
use serde_json::{Value, json};

use crate::harness::{Database, PATIENCE, engine_with, options, plan, reaches, start, stop, tenant};
use crate::on_both;
use crate::target::Target;

/// Asks people about everything.
#[derive(Debug)]
struct Asks;

impl Judge for Asks {
    fn judge(&self, _: &Action, _: &Run) -> Ruling {
        let gate: Gate = serde_json::from_str("{}").unwrap();
        Decision::NeedsApproval { reasons: vec!["always".to_owned()], terms: Box::new(gate.into()) }.into()
    }
}

async fn asking(database: &Database) -> Engine {
    Box::pin(engine_with(database, EngineOptions { judge: JudgedBy::Judge(Arc::new(Asks)), ..options() })).await
}

/// A run that asks before it calls.
async fn asked(engine: &Engine, operation: &str, with: &Value) -> (TenantId, RunId) {
    let tenant = tenant(engine, |_| {}).await;
    let work = Work::Connector { operation: operation.into(), with: None };
    let plan = plan(vec![StepSpec::new("call", work)]);
    let run = engine.runs().start(start(tenant, &plan, &with.to_string())).await.unwrap().run;
    reaches(engine, tenant, run, RunState::WaitingApproval).await;
    (tenant, run)
}

/// The run's approval, once the present state stands beside it.
async fn shown(engine: &Engine, tenant: TenantId, run: RunId) -> (ApprovalRow, Vec<PresentState>) {
    let looking = async {
        loop {
            let row = engine.store().approvals_of(tenant, run).await.unwrap().remove(0);
            if let Some(state) = &row.present_state {
                let states = state.decode().unwrap();
                return (row, states);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("the present state is read")
}

on_both! {
    async fn an_update_is_shown_beside_what_is_there(database: &Database) {
        let engine = asking(database).await;
        let target = Target::new(|_| {
            let incident = json!({ "state": "1", "assigned_to": "bob", "number": "INC1", "sys_mod_count": "4" });
            Some((200, json!({ "result": incident })))
        });
        engine.reach_targets(target.caller());
        let fields = json!({ "state": "6", "work_notes": "restarted" });
        let with = json!({ "sys_id": "abc", "fields": fields, "connection": "servicenow" });
        let (tenant, run) = asked(&engine, "servicenow.incident.update", &with).await;
        let (row, states) = shown(&engine, tenant, run).await;
        assert_eq!(target.asked(), ["GET /api/now/table/incident/abc"], "read once, and nothing else");
        let state = &states[0];
        assert_eq!((state.step.as_str(), &state.failed), ("call", &None));
        let changes: Vec<_> =
            state.changes.iter().map(|each| (each.field.as_str(), each.before.as_str(), each.after.as_str())).collect();
        assert_eq!(changes, [("state", r#""1""#, r#""6""#), ("work_notes", "null", r#""restarted""#)]);
        let unread = ApprovalRow { present_state: None, ..row.clone() };
        assert_eq!(approval_digest(tenant, &row).unwrap(), approval_digest(tenant, &unread).unwrap(), "it is not signed");

        // The card in Slack shows it, or says that it does not fit and is decided all the same.
        let run = engine.store().load_runs(&[(tenant, run)]).await.unwrap().pop().unwrap();
        let exclusions = ApprovalExclusions::default();
        let card = |row: &ApprovalRow| {
            let facts = CardFacts { row, run: &run, digest: "d", exclusions: &exclusions, public_url: None };
            serde_json::to_string(&facts.card().blocks).unwrap()
        };
        assert!(card(&row).contains(r#"state: \"1\" → \"6\""#), "{}", card(&row));
        let after = Json::of(&"x".repeat(13_000)).unwrap();
        let change = FieldChange { field: "text".into(), before: Json::null(), after };
        let long = Json::of(&[PresentState { changes: vec![change], ..state.clone() }]).unwrap();
        let cut = card(&ApprovalRow { present_state: Some(long), ..row.clone() });
        assert!(cut.contains("too long for Slack") && cut.contains("interlock_decide"), "{cut}");
        stop(engine).await;
    }

    async fn labels_are_shown_as_they_are_and_as_they_would_be(database: &Database) {
        let engine = asking(database).await;
        let target = Target::new(|_| Some((200, json!([{ "name": "Bug" }, { "name": "old" }]))));
        engine.reach_targets(target.caller());
        let with = json!({
            "owner": "o", "repo": "r", "issue": 7, "add": ["bug", "triaged"], "remove": ["old"], "connection": "github",
        });
        let (tenant, run) = asked(&engine, "github.issue.labels", &with).await;
        let (_, states) = shown(&engine, tenant, run).await;
        let change = &states[0].changes[0];
        assert_eq!((change.before.as_str(), change.after.as_str()), (r#"["Bug","old"]"#, r#"["Bug","triaged"]"#));
        stop(engine).await;
    }

    async fn what_cannot_be_read_is_said_and_changes_nothing(database: &Database) {
        let with = json!({ "sys_id": "abc", "fields": { "state": "6" }, "connection": "servicenow" });
        for (target, expected) in [
            (Some(Target::new(|_| None)), "the connection broke"),
            (Some(Target::new(|_| Some((404, json!({}))))), "404"),
            (None, "this server has no connections"),
        ] {
            let engine = asking(database).await;
            if let Some(target) = &target {
                engine.reach_targets(target.caller());
            }
            let (tenant, run) = asked(&engine, "servicenow.incident.update", &with).await;
            let (_, states) = shown(&engine, tenant, run).await;
            let why = states[0].failed.as_deref().unwrap();
            assert!(why.contains(expected) && states[0].changes.is_empty(), "{why}");
            assert!(!why.contains("tok-0123456789"));
            reaches(&engine, tenant, run, RunState::WaitingApproval).await;
            stop(engine).await;
        }
    }
}

/// Nothing is asked about what cannot be read.
#[tokio::test]
async fn actions_that_read_nothing_ask_no_target() {
    let database = Database::sqlite();
    let engine = asking(&database).await;
    let target = Target::new(|_| Some((200, json!({ "ok": true }))));
    engine.reach_targets(target.caller());
    let with = json!({ "channel": "C1", "text": "hi", "connection": "slack" });
    let (tenant, run) = asked(&engine, "slack.post", &with).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let row = engine.store().approvals_of(tenant, run).await.unwrap().remove(0);
    assert!(row.present_state.is_none() && target.asked().is_empty());
    assert!(row.action.as_ref().is_some_and(|action: &Json| action.as_str().contains("slack.post")));
    stop(engine).await;
}
