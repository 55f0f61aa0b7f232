//! A tenant that another server has disabled: this one has just read that it is enabled, and would believe it for a second.

use interlock_core::ids::TenantId;
use interlock_core::json::Json;
use interlock_core::plan::rules::OnConflict;
use interlock_core::plan::{Accept, StepSpec, WaitFor, Work};
use interlock_core::run::change::Context;
use interlock_core::state::{Admission, RunState};
use interlock_core::time::Millis;
use interlock_core::trigger::schedule::{DstPolicy, Overlap};
use interlock_engine::audit::Actor;
use interlock_engine::commands::announce::Origin;
use interlock_engine::commands::signal::SignalRequest;
use interlock_engine::schedules::TriggerSchedule;
use interlock_engine::{ApplyWorkflow, Engine, EngineError, Expected, StartRun, StartWorkflow, Started};
use interlock_store::{Page, PutTenant, RunFilter, ScheduleSpec, Tenant};

use crate::harness::{Database, ends, engine, plan, reaches, start, stop, tenant};
use crate::on_both;

const FILE: &str = "name: quick\non: { signal: { type: disk.full } }\nsteps:\n  - { id: a, transform: seen }\n";

async fn apply(engine: &Engine, tenant: TenantId) {
    let file = ApplyWorkflow {
        tenant,
        file: "quick.yaml".into(),
        source: FILE.into(),
        name: None,
        expected: Expected::Anything,
        person: None,
        by: Actor::system(),
    };
    engine.workflows().apply(file).await.unwrap();
}

async fn add_schedule(engine: &Engine, tenant: TenantId) {
    let spec = ScheduleSpec {
        name: "yearly".into(),
        workflow: "quick".into(),
        origin: interlock_core::trigger::Origin::Api,
        cron: "0 0 1 1 *".into(),
        timezone: "UTC".into(),
        dst: DstPolicy::Once,
        overlap: Overlap::Allow,
        catch_up: Millis::ZERO,
        jitter: Millis::ZERO,
        inputs: Json::trusted("{}"),
        workspace: "default".into(),
        paused: false,
    };
    let row = engine.schedules().draft(tenant, spec, None).await.unwrap();
    engine.schedules().add(row, &Actor::system(), None).await.unwrap();
}

async fn row(engine: &Engine, tenant: TenantId, disabled: bool) -> Tenant {
    let row = engine.store().tenant(tenant).await.unwrap().unwrap();
    Tenant { disabled_at: disabled.then(|| engine.now()), ..row }
}

/// Disabled by another server: this engine has read the tenant just before, and hears nothing of it.
async fn disable_elsewhere(engine: &Engine, tenant: TenantId) {
    engine.tenants().put(row(engine, tenant, false).await).await.unwrap();
    engine.tenants().check_enabled(tenant).await.unwrap();
    engine.store().write(PutTenant(row(engine, tenant, true).await)).await.unwrap();
}

async fn runs(engine: &Engine, tenant: TenantId) -> usize {
    let page = Page { limit: 100, after: None };
    engine.store().list_runs(tenant, &RunFilter::default(), page).await.unwrap().len()
}

fn signal(tenant: TenantId, signal_type: &str, key: &str) -> SignalRequest {
    SignalRequest {
        tenant,
        signal_type: signal_type.into(),
        key: key.into(),
        payload: Json::trusted("{}"),
        source_id: None,
        broadcast: false,
        run: None,
    }
}

fn is_refused(answer: &Result<Started, EngineError>) {
    assert!(matches!(answer, Err(EngineError::TenantDisabled)), "{answer:?}");
}

on_both! {
    async fn nothing_begins_for_a_tenant_that_another_server_has_disabled(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        apply(&engine, tenant).await;
        add_schedule(&engine, tenant).await;
        let named = || StartWorkflow::new(tenant, "quick", Json::trusted("{}"));
        let over = engine.runs().start_workflow(named()).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, over).await, RunState::Succeeded);
        let until = WaitFor::Signal { signal: "go".into(), key: Some("k".into()), accept: Accept::SinceRun };
        let waits = plan(vec![StepSpec::new("wait", Work::Wait { until, timeout: None })]);
        let about = || {
            let subject = Some("INC-1".into());
            StartRun { subject, on_conflict: OnConflict::Queue, ..start(tenant, &waits, "{}") }
        };
        let holder = engine.runs().start(about()).await.unwrap().run;
        reaches(&engine, tenant, holder, RunState::WaitingSignal).await;
        let behind = engine.runs().start(about()).await.unwrap();
        assert_eq!(behind.admission, Admission::Queued);
        let before = runs(&engine, tenant).await;

        disable_elsewhere(&engine, tenant).await;
        is_refused(&engine.runs().start_workflow(named()).await);
        // A refusal is remembered at once.
        let remembered = engine.tenants().check_enabled(tenant).await;
        assert!(matches!(remembered, Err(EngineError::TenantDisabled)), "{remembered:?}");
        disable_elsewhere(&engine, tenant).await;
        is_refused(&engine.runs().start(start(tenant, &waits, "{}")).await);
        disable_elsewhere(&engine, tenant).await;
        is_refused(&engine.runs().resume_as_new(tenant, over, Some("a"), None, Context::SYSTEM).await);
        disable_elsewhere(&engine, tenant).await;
        let (within, idempotency) = (None, None);
        let now = TriggerSchedule { tenant, schedule: "yearly".into(), within, idempotency, by: Context::SYSTEM };
        is_refused(&engine.schedules().trigger(now).await);
        disable_elsewhere(&engine, tenant).await;
        let announced = engine.signals().announce(signal(tenant, "disk.full", "h"), Origin::default()).await.unwrap();
        assert!(announced.runs.is_empty());
        assert_eq!(announced.skipped[0].code, "TENANT_DISABLED");
        assert_eq!(runs(&engine, tenant).await, before);

        // What is running goes on to its end, and the run behind it begins once the tenant is enabled.
        disable_elsewhere(&engine, tenant).await;
        engine.signals().signal(signal(tenant, "go", "k")).await.unwrap();
        assert_eq!(ends(&engine, tenant, holder).await, RunState::Succeeded);
        engine.tenants().put(row(&engine, tenant, false).await).await.unwrap();
        reaches(&engine, tenant, behind.run, RunState::WaitingSignal).await;
        stop(engine).await;
    }
}
