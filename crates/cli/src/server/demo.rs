//! The demo: orders that are checked, paid, packed and shipped, with a card network that times out now and then and a
//! carrier that sends a signal. Kill the process at any point and start it again: every order goes on where it was. Beside
//! them one order that is refused, one that breaks on its way and is given back, and a refund that a person has to
//! approve; and a count of the shelves, by a schedule and by a webhook.

use std::time::Duration;

use anyhow::Context as _;
use interlock_core::ids::TenantId;
use interlock_core::json::Json;
use interlock_core::state::{EffectClass, RunState};
use interlock_core::trigger::Source;
use interlock_core::trigger::webhook::standard;
use interlock_engine::audit::Actor;
use interlock_engine::commands::signal::SignalRequest;
use interlock_engine::webhooks::inbound::NewInbound;
use interlock_engine::webhooks::receive::InboundRequest;
use interlock_engine::{ApplyWorkflow, Engine, EngineError, Expected, IdempotencyKey, StartWorkflow};
use interlock_store::{Page, RunFilter, SourceId, Tenant};
use interlock_worker::{EffectFailure, TaskContext, TaskError, Tasks};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

pub const TENANT: &str = "demo";
/// The queue of the demo's steps: its worker takes no others, and no other worker takes them.
pub const QUEUE: &str = "demo";
/// What the run of the printed line is about.
pub const SUBJECT: &str = "mine";
const ORDER_EVERY: Duration = Duration::from_secs(8);
const PICKED_UP: &str = "carrier.picked_up";

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    order: String,
    cents: u64,
}

/// The demo's workflows, and their files.
const WORKFLOW: &str = "order";
const REFUND: &str = "refund";
type DemoFile = (&'static str, &'static str, &'static str);
const FILES: [DemoFile; 2] = [
    (WORKFLOW, "examples/order/order.yaml", include_str!("../../../../examples/order/order.yaml")),
    (REFUND, "examples/order/refund.yaml", include_str!("../../../../examples/order/refund.yaml")),
];
/// It has a schedule, so it is there only while the demo goes on.
const STOCK: DemoFile = ("stock", "examples/order/stock.yaml", include_str!("../../../../examples/order/stock.yaml"));
/// Where the warehouse tells what has moved.
const WAREHOUSE: &str = "warehouse";
/// How an order is called that breaks on its way.
const FRAGILE: &str = "fragile-";
/// After so many orders the others come again.
const OTHERS_EVERY: i64 = 40;

/// The demo's tenant, made if it is not there. Its people may approve what they started, so that one person can try
/// approvals; what an operator changes about it later stays as it is.
pub async fn tenant(engine: &Engine) -> anyhow::Result<TenantId> {
    if engine.store().tenant_by_name(TENANT).await?.is_none() {
        let mut demo = Tenant::new(TenantId(engine.fresh_id()), TENANT, engine.now());
        demo.settings.self_approval = true;
        demo.settings.task_workspace = true;
        // Another server on the same database may make it in between; whose it is, is found out below.
        let _ = engine.tenants().put(demo).await;
    }
    crate::server::tenant(engine, TENANT).await.context("the demo's tenant")
}

/// Stores the demo's workflows; a file that is there already changes nothing.
pub async fn apply(engine: &Engine, tenant: TenantId) -> anyhow::Result<()> {
    for file in FILES {
        apply_file(engine, tenant, file).await?;
    }
    Ok(())
}

async fn apply_file(engine: &Engine, tenant: TenantId, (name, file, source): DemoFile) -> anyhow::Result<()> {
    let request = ApplyWorkflow {
        tenant,
        file: file.into(),
        source: source.into(),
        name: Some(name.into()),
        expected: Expected::Anything,
        person: None,
        by: Actor::system(),
    };
    engine.workflows().apply(request).await.with_context(|| format!("the demo's workflow `{name}`"))?;
    Ok(())
}

/// The shelves are counted by a schedule, and when the warehouse tells that something has moved. Its address is made if it is
/// not there, with a first delivery. Its secret is shown to no user: to send more, rotate it.
async fn count_the_shelves(engine: &Engine, tenant: TenantId) -> anyhow::Result<()> {
    apply_file(engine, tenant, STOCK).await?;
    let webhooks = engine.webhooks();
    let new = NewInbound {
        name: WAREHOUSE.to_owned(),
        source: Source::Standard,
        header: None,
        secondary: false,
        secret: None,
    };
    match webhooks.inbound(tenant, WAREHOUSE).await {
        Ok(_) => return Ok(()),
        Err(EngineError::UnknownEndpoint { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let (row, secret) = webhooks.draft_inbound(tenant, new, None).await?;
    let endpoint = row.id;
    match webhooks.add_inbound(row, &Actor::system(), None).await {
        Ok(()) => {}
        // Another server on the same database was first, and has sent it.
        Err(EngineError::NameTaken { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let Some(key) = secret.as_deref().and_then(standard::key_of_secret) else { return Ok(()) };
    let body = serde_json::to_vec(&serde_json::json!({ "type": "stock.moved", "warehouse": "south" }))?;
    let (id, at) = (format!("msg_{endpoint}"), engine.now());
    let headers = [
        (standard::ID, id.clone()),
        (standard::TIMESTAMP, (at.0 / 1_000).to_string()),
        (standard::SIGNATURE, standard::sign(&[key], &id, at, &body)),
    ];
    let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    if let Err(error) = webhooks.receive(InboundRequest { endpoint, headers, body }).await {
        tracing::warn!(%error, "the demo's warehouse was not heard");
    }
    Ok(())
}

/// A line that starts a run over HTTP.
pub fn curl(url: &str, data: &std::path::Path) -> String {
    let body = serde_json::json!({ "workflow": WORKFLOW, "inputs": { "order": SUBJECT, "cents": 100 } });
    let key = data.join(crate::server::LOCAL_KEY_FILE);
    let authorization = format!("\"authorization: Bearer $(cat {})\"", key.display());
    let ca = data.join(super::tls::FOLDER).join(super::tls::AUTHORITY);
    let trust =
        if url.starts_with("https") && ca.exists() { format!("--cacert {} ", ca.display()) } else { String::new() };
    format!("curl -s {trust}{url}/api/v1/runs -H {authorization} -H 'content-type: application/json' -d '{body}'")
}

/// The demo's tasks. Each takes a moment, so that there is something to watch.
pub fn tasks() -> Tasks {
    let moment = |millis: u64| tokio::time::sleep(Duration::from_millis(millis));
    Tasks::new()
        .task("demo.check", move |_ctx: TaskContext, order: Order| async move {
            moment(400).await;
            if order.cents == 0 {
                return Err(TaskError::terminal("ORDER_EMPTY", "an order of nothing cannot be paid"));
            }
            Ok(serde_json::json!({ "stock": true }))
        })
        .task("demo.pay", move |ctx: TaskContext, order: Order| async move {
            moment(600).await;
            if ctx.attempt() == 1 && order.cents.is_multiple_of(2) {
                return Err(TaskError::retryable("CARD_NETWORK_TIMEOUT", "the card network did not answer"));
            }
            let charge = format!("card:charge:{}", order.order);
            let receipt: String = ctx
                .effect(&charge, EffectClass::Keyed, &order, |key: String| async move {
                    Ok::<_, EffectFailure>(format!("ch_{:08x}", crc(&key)))
                })
                .await?;
            Ok(serde_json::json!({ "receipt": receipt }))
        })
        .task("demo.refund", move |ctx: TaskContext, asked: serde_json::Value| async move {
            moment(500).await;
            let refund = ctx
                .effect("card:refund", EffectClass::Keyed, &asked, |key: String| async move {
                    Ok::<_, EffectFailure>(format!("re_{:08x}", crc(&key)))
                })
                .await?;
            Ok(serde_json::json!({ "refund": refund }))
        })
        .task("demo.pack", move |_ctx: TaskContext, order: Order| async move {
            moment(900).await;
            if order.order.starts_with(FRAGILE) {
                return Err(TaskError::terminal("PARCEL_BROKEN", "it broke while it was packed"));
            }
            Ok(serde_json::json!({ "boxes": 1 }))
        })
        .task("demo.gift", move |_ctx: TaskContext, _order: Order| async move {
            moment(200).await;
            Ok(())
        })
        .task("demo.count", move |ctx: TaskContext, asked: serde_json::Value| async move {
            moment(700).await;
            let parcels = 100 + crc(&format!("{}{asked}", ctx.run())) % 900;
            Ok(serde_json::json!({ "parcels": parcels }))
        })
        .task("demo.tell", move |_ctx: TaskContext, order: Order| async move {
            moment(300).await;
            Ok(serde_json::json!({ "told": order.order }))
        })
}

/// A short stand-in for the number a card network would give.
fn crc(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Places an order every few seconds, and sends the carrier to those that are packed.
pub async fn drive(engine: Engine, tenant: TenantId, stop: CancellationToken) -> anyhow::Result<()> {
    if let Err(error) = count_the_shelves(&engine, tenant).await
        && !stop.is_cancelled()
    {
        tracing::warn!(%error, "the demo's shelves are not counted");
    }
    let first = engine.now().0 / 1_000 % 100_000;
    for number in 0_i64.. {
        let order = format!("order-{}", first + number);
        let cents = 1_900 + (number as u64 * 1_237) % 6_000;
        if number % OTHERS_EVERY == 0 {
            others(&engine, tenant, first + number).await?;
        }
        start(&engine, tenant, WORKFLOW, &order, serde_json::json!({ "order": order, "cents": cents })).await?;
        if stop.is_cancelled() {
            return Ok(());
        }
        if stop.run_until_cancelled(tokio::time::sleep(ORDER_EVERY)).await.is_none() {
            return Ok(());
        }
        carrier(&engine, tenant, order).await;
    }
    Ok(())
}

async fn start(
    engine: &Engine,
    tenant: TenantId,
    workflow: &str,
    key: &str,
    inputs: serde_json::Value,
) -> anyhow::Result<()> {
    let request = StartWorkflow {
        idempotency: Some(IdempotencyKey { client: "demo".into(), key: format!("{workflow}:{key}") }),
        ..StartWorkflow::new(tenant, workflow, Json::of(&inputs)?)
    };
    match engine.runs().start_workflow(request).await {
        Ok(_) | Err(EngineError::Closed) => {}
        Err(error) => tracing::warn!(%error, workflow, key, "the demo could not start a run"),
    }
    Ok(())
}

/// An order of nothing, which is refused; one that breaks, and whose payment is given back; and a refund that waits until
/// a person approves it, unless one waits already.
async fn others(engine: &Engine, tenant: TenantId, number: i64) -> anyhow::Result<()> {
    let empty = format!("empty-{number}");
    start(engine, tenant, WORKFLOW, &empty, serde_json::json!({ "order": empty, "cents": 0 })).await?;
    let fragile = format!("{FRAGILE}{number}");
    start(engine, tenant, WORKFLOW, &fragile, serde_json::json!({ "order": fragile, "cents": 4_701 })).await?;
    let filter =
        RunFilter { states: vec![RunState::WaitingApproval], workflow: Some(REFUND.into()), ..RunFilter::default() };
    let waiting = engine.store().list_runs(tenant, &filter, Page { limit: 1, after: None }).await?;
    if waiting.is_empty() {
        let order = format!("order-{}", number - 7);
        let inputs = serde_json::json!({ "order": order, "cents": 1_900, "reason": "it never arrived" });
        start(engine, tenant, REFUND, &order, inputs).await?;
    }
    Ok(())
}

/// The carrier comes for an order, and for those that an earlier process left packed.
async fn carrier(engine: &Engine, tenant: TenantId, order: String) {
    let filter = RunFilter { states: vec![RunState::WaitingSignal], ..RunFilter::default() };
    let waiting = engine.store().list_runs(tenant, &filter, Page { limit: 100, after: None }).await;
    let mut keys: Vec<String> = waiting.unwrap_or_default().into_iter().filter_map(|run| run.subject).collect();
    if !keys.contains(&order) {
        keys.push(order);
    }
    for key in keys {
        let request = SignalRequest {
            tenant,
            signal_type: PICKED_UP.into(),
            source_id: Some(SourceId::of_tenant(format!("carrier-{key}"))),
            key,
            payload: Json::trusted(r#"{"carrier":"Pony Express"}"#),
            broadcast: false,
            run: None,
        };
        if let Err(error) = engine.signals().signal(request).await {
            tracing::warn!(%error, "the carrier's signal was not taken");
        }
    }
}
