//! Workflows: applied, kept in memory, started by name.

use std::collections::BTreeMap;

use interlock_core::ids::TenantId;
use interlock_core::json::Json;
use interlock_engine::audit::Actor;
use interlock_engine::{ApplyError, ApplyWorkflow, Engine, EngineError, Expected, IdempotencyKey, StartWorkflow};

use crate::harness::{Database, PATIENCE, ends, engine, stop, tenant};

const FILE: &str = "name: restart
inputs:
  incident: { type: string, required: true, searchable: true }
  count: { type: integer, default: 2 }
subject: ticket ${{ inputs.incident }}
labels: { size: '${{ inputs.count }}', team: sre }
timeout: 1h
limits: { writes: 4 }
priority: 7
steps:
  - { id: a, task: work, with: { n: '${{ inputs.count }}' } }
";

fn request(tenant: TenantId, source: &str) -> ApplyWorkflow {
    ApplyWorkflow {
        tenant,
        file: "restart.yaml".into(),
        source: source.into(),
        name: None,
        expected: Expected::Anything,
        person: Some("ada".into()),
        by: Actor::system(),
    }
}

async fn apply(engine: &Engine, tenant: TenantId, source: &str) -> (u32, bool) {
    let applied = engine.workflows().apply(request(tenant, source)).await.unwrap();
    (applied.version.version, applied.created)
}

async fn newest(engine: &Engine, tenant: TenantId) -> Option<u32> {
    engine.workflows().latest(tenant, "restart").await.unwrap().map(|version| version.version)
}

fn inputs(text: &str) -> Json {
    Json::parse(text, 1000).unwrap()
}

async fn an_unchanged_file_is_the_same_version(database: Database) {
    let engine = engine(&database).await;
    let tenant = tenant(&engine, |_| {}).await;
    assert_eq!(newest(&engine, tenant).await, None);
    assert_eq!(apply(&engine, tenant, FILE).await, (1, true));
    assert_eq!(newest(&engine, tenant).await, Some(1), "one reads what one has written");
    assert_eq!(apply(&engine, tenant, FILE).await, (1, false));
    let changed = FILE.replace("1h", "2h");
    assert_eq!(apply(&engine, tenant, &changed).await, (2, true));
    assert_eq!(newest(&engine, tenant).await, Some(2));
    assert_eq!(apply(&engine, tenant, FILE).await, (3, true), "an older text is a new version again");

    let guarded = ApplyWorkflow { expected: Expected::Version(2), ..request(tenant, &changed) };
    assert!(matches!(engine.workflows().apply(guarded).await, Err(ApplyError::Changed { .. })));
    let other = ApplyWorkflow { name: Some("other".into()), ..request(tenant, FILE) };
    assert!(matches!(engine.workflows().apply(other).await, Err(ApplyError::OtherName { .. })));
    let broken = engine.workflows().apply(request(tenant, "name: restart\nsteps: []\n")).await;
    assert!(matches!(broken, Err(ApplyError::Invalid(_))));
    let command = engine.workflows().apply(request(tenant, "name: x\nsteps: [{ id: a, run: [/bin/true] }]\n")).await;
    assert!(command.unwrap_err().to_string().contains("needs a `profile`"));
    let unknown = TenantId(engine.fresh_id());
    assert!(matches!(engine.workflows().apply(request(unknown, FILE)).await, Err(ApplyError::Engine(_))));
    stop(engine).await;
}

async fn a_start_by_name_takes_all_that_the_definition_says(database: Database) {
    let engine = engine(&database).await;
    let tenant = tenant(&engine, |_| {}).await;
    apply(&engine, tenant, FILE).await;
    let key = IdempotencyKey { client: "c".into(), key: "k".into() };
    let start = StartWorkflow {
        idempotency: Some(key),
        labels: BTreeMap::from([("team".into(), "db".into())]),
        ..StartWorkflow::new(tenant, "restart", inputs(r#"{"incident":"INC1"}"#))
    };
    let started = engine.runs().start_workflow(start.clone()).await.unwrap();
    let run = engine.store().run_overview(tenant, started.run).await.unwrap().unwrap();
    assert_eq!((run.workflow.as_str(), run.workflow_version), ("restart", 1));
    assert_eq!(run.subject.as_deref(), Some("ticket INC1"));
    assert_eq!(run.inputs.as_str(), r#"{"count":2,"incident":"INC1"}"#);
    let labels: Vec<_> = run.labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(labels, [("input.incident", "INC1"), ("size", "2"), ("team", "db")]);
    assert_eq!(run.deadline_at.unwrap().since(run.created_at).0, 3_600_000);
    assert_eq!(run.priority, 7);

    // A later version does not make the repeat another request, and the run keeps its own.
    apply(&engine, tenant, &FILE.replace("1h", "2h")).await;
    let again = engine.runs().start_workflow(start).await.unwrap();
    assert!(again.replayed && again.run == started.run);
    let loaded = engine.store().load_runs(&[(tenant, started.run)]).await.unwrap();
    assert_eq!((loaded[0].plan.version, loaded[0].plan.writes_max), (1, Some(4)));

    let busy = StartWorkflow::new(tenant, "restart", inputs(r#"{"incident":"INC1"}"#));
    assert!(matches!(engine.runs().start_workflow(busy).await, Err(EngineError::SubjectBusy { .. })));
    let old =
        StartWorkflow { version: Some(1), ..StartWorkflow::new(tenant, "restart", inputs(r#"{"incident":"INC2"}"#)) };
    let old = engine.runs().start_workflow(old).await.unwrap();
    let old = engine.store().run_overview(tenant, old.run).await.unwrap().unwrap();
    assert_eq!(old.workflow_version, 1);
    let missing = StartWorkflow::new(tenant, "restart", inputs("{}"));
    let error = engine.runs().start_workflow(missing).await.unwrap_err().to_string();
    assert!(error.contains("`inputs.incident` is missing"), "{error}");
    let unknown = StartWorkflow::new(tenant, "nope", inputs("{}"));
    assert!(matches!(engine.runs().start_workflow(unknown).await, Err(EngineError::UnknownWorkflow { .. })));
    let version = StartWorkflow { version: Some(9), ..StartWorkflow::new(tenant, "restart", inputs("{}")) };
    assert!(matches!(engine.runs().start_workflow(version).await, Err(EngineError::UnknownWorkflow { .. })));
    engine.workflows().set_disabled(tenant, "restart", true, &Actor::system()).await.unwrap();
    let disabled = StartWorkflow::new(tenant, "restart", inputs(r#"{"incident":"INC3"}"#));
    assert!(matches!(engine.runs().start_workflow(disabled).await, Err(EngineError::WorkflowDisabled { .. })));
    stop(engine).await;
}

async fn a_newer_run_takes_the_place_of_the_older(database: Database) {
    let engine = engine(&database).await;
    let tenant = tenant(&engine, |_| {}).await;
    let file = FILE.replace(
        "subject: ticket ${{ inputs.incident }}",
        "subject: { key: '${{ inputs.incident }}', on_conflict: cancel_previous }",
    );
    apply(&engine, tenant, &file).await;
    let start = || StartWorkflow::new(tenant, "restart", inputs(r#"{"incident":"INC1"}"#));
    let first = engine.runs().start_workflow(start()).await.unwrap();
    let second = engine.runs().start_workflow(start()).await.unwrap();
    assert_ne!(first.run, second.run);
    assert_eq!(ends(&engine, tenant, first.run).await, interlock_core::state::RunState::Canceled);
    apply(&engine, tenant, &file.replace("cancel_previous", "queue")).await;
    let third = engine.runs().start_workflow(start()).await.unwrap();
    assert_eq!(third.admission, interlock_core::state::Admission::Queued);
    stop(engine).await;
}

/// Two servers on one PostgreSQL: what one applies, the other sees as soon as the wake-up has come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_server_learns_of_a_new_version() {
    let database = Database::postgres().await;
    let (one, two) = (engine(&database).await, engine(&database).await);
    let tenant = tenant(&one, |_| {}).await;
    for round in 0..5 {
        apply(&one, tenant, &FILE.replace("1h", &format!("{}h", round + 1))).await;
        let mut wakes = two.store().remote_wakes();
        let seen = async {
            while newest(&two, tenant).await != Some(round + 1) {
                wakes.changed().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, seen).await.expect("it never saw the new version");
    }
    stop(one).await;
    stop(two).await;
}

macro_rules! on_both {
    ($($name:ident),+) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::harness::Database::sqlite()).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::harness::Database::postgres().await).await;
            })+
        }
    };
}

on_both!(
    an_unchanged_file_is_the_same_version,
    a_start_by_name_takes_all_that_the_definition_says,
    a_newer_run_takes_the_place_of_the_older
);
