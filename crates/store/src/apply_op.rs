//! Carries out an [`Op`] inside a lane's transaction. Written once for both databases.

use std::collections::BTreeMap;

use interlock_core::ids::TenantId;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::state::Admission;
use interlock_core::time::Timestamp;

use crate::apply_trigger;
use crate::backup;
use crate::bulk;
use crate::db::Db;
use crate::entries::{self, Entry};
use crate::error::DbError;
use crate::op::{Op, OpAnswer, OutboxRetry, SignalAnnouncement, SubjectSignal};
use crate::rows::{SignalRow, StartAnswer, WorkflowVersionRow};
use crate::sql::{hot, ops, read, side, workflows};
use crate::sweep;
use crate::value::{Value, args};

/// A list, as it stands in a row.
fn list<T: serde::Serialize>(items: &Vec<T>) -> Result<String, DbError> {
    serde_json::to_string(items).map_err(|error| DbError::Other(error.to_string()))
}

pub(crate) async fn apply<D: Db>(db: &D, op: &Op) -> Result<OpAnswer, DbError> {
    match op {
        Op::PutTenant(tenant) => {
            let caps = tenant.caps;
            let settings =
                serde_json::to_string(&tenant.settings).map_err(|error| DbError::Other(error.to_string()))?;
            let values = args![
                tenant.id,
                &tenant.name,
                caps.max_concurrency,
                caps.max_runs_per_min,
                tenant.pending_runs_max,
                tenant.weight,
                tenant.created_at,
                settings,
                tenant.disabled_at
            ];
            db.execute(&ops::TENANT_PUT, values).await?;
            Ok(OpAnswer::Done)
        }
        Op::Identity(op) => crate::apply_identity::apply(db, op).await,
        Op::PutWorkflow { tenant, version } => put_workflow(db, *tenant, version).await,
        Op::SetWorkflowDisabled { tenant, name, disabled, at } => {
            let state = if *disabled { "disabled" } else { "active" };
            let rows = db.execute(&workflows::WORKFLOW_STATE, args![state, *at, *tenant, name]).await?;
            Ok(if rows == 1 { OpAnswer::Done } else { OpAnswer::Gone })
        }
        Op::SettleReceipt { tenant, run, receipt } => {
            let values = args![
                receipt.state.as_str(),
                receipt.response.as_ref(),
                receipt.outcome_at,
                *tenant,
                &receipt.key,
                receipt.id,
                *run
            ];
            let rows = db.execute(&side::RECEIPT_SETTLE, values).await?;
            Ok(if rows == 1 { OpAnswer::Done } else { OpAnswer::Gone })
        }
        Op::RegisterSession(session) => {
            let queues = list(&session.queues)?;
            let values = args![
                session.id,
                session.tenant,
                &session.worker,
                session.build_id.as_ref(),
                queues,
                session.slots,
                session.state.as_str(),
                session.registered_at,
                session.lease_expires_at,
                session.heartbeat_at,
                session.tasks.as_ref().map(list).transpose()?,
                session.capabilities.as_ref().map(list).transpose()?
            ];
            db.execute(&ops::SESSION_PUT, values).await?;
            Ok(OpAnswer::Done)
        }
        Op::RenewSession { session, lease_expires_at, heartbeat_at, unlisted } => {
            let unlisted = if unlisted.is_empty() { None } else { Some(list(unlisted)?) };
            let values = args![*lease_expires_at, *heartbeat_at, unlisted, *session];
            let rows = db.execute(&ops::SESSION_RENEW, values).await?;
            Ok(if rows == 1 { OpAnswer::Renewed } else { OpAnswer::Gone })
        }
        Op::SetSessionState { session, state } => {
            let rows = db.execute(&ops::SESSION_STATE, args![state.as_str(), *session]).await?;
            Ok(if rows == 1 { OpAnswer::Done } else { OpAnswer::Gone })
        }
        Op::CloseSession { session, at } => {
            let rows = db.execute(&ops::SESSION_CLOSE, args![*at, *session]).await?;
            Ok(if rows == 1 { OpAnswer::Done } else { OpAnswer::Gone })
        }
        Op::ExpireSessions { now } => Ok(OpAnswer::Count(db.execute(&ops::SESSIONS_EXPIRE, args![*now]).await?)),
        Op::StoreSignal(signal) => {
            if db.query(&hot::TENANT_EXISTS, args![signal.tenant]).await?.is_empty() {
                return Ok(OpAnswer::UnknownTenant);
            }
            store_signal(db, signal).await
        }
        Op::AnnounceSignal(announcement) => {
            let SignalAnnouncement { signal, delivery, lock_until } = &**announcement;
            if db.query(&hot::TENANT_EXISTS, args![signal.tenant]).await?.is_empty() {
                return Ok(OpAnswer::UnknownTenant);
            }
            let answer = store_signal(db, signal).await?;
            if answer == OpAnswer::Stored {
                apply_trigger::begin_signal(db, delivery, *lock_until).await?;
            }
            Ok(answer)
        }
        Op::SignalSubject(wanted) => signal_subject(db, wanted).await,
        Op::OutboxDelivered { tenant, id, at } => {
            let rows = db.execute(&ops::OUTBOX_DELIVERED, args![*at, *tenant, *id]).await?;
            Ok(if rows == 1 { OpAnswer::Done } else { OpAnswer::Gone })
        }
        Op::OutboxFailed { tenant, id, error, retry } => {
            let (next, dead) = match retry {
                OutboxRetry::At(at) => (Some(*at), None),
                OutboxRetry::Dead(at) => (None, Some(*at)),
            };
            let rows = db.execute(&ops::OUTBOX_FAILED, args![error, next, dead, *tenant, *id]).await?;
            Ok(if rows == 1 { OpAnswer::Done } else { OpAnswer::Gone })
        }
        Op::BeginIdempotency(begin) => {
            let values = args![
                begin.tenant,
                &begin.client,
                &begin.key,
                &begin.source,
                begin.request_hash,
                begin.now,
                begin.expires_at,
                begin.lock_until,
                begin.attempts_max
            ];
            let rows = db.execute(&ops::IDEMPOTENCY_BEGIN, values).await?;
            Ok(if rows == 1 { OpAnswer::Stored } else { OpAnswer::Duplicate })
        }
        Op::Bulk(op) => bulk::apply(db, op).await,
        Op::RenewIdempotency { tenant, client, key, lock_until } => {
            let rows = db.execute(&ops::IDEMPOTENCY_RENEW, args![*lock_until, *tenant, client, key]).await?;
            Ok(if rows == 1 { OpAnswer::Done } else { OpAnswer::Gone })
        }
        Op::FinishIdempotency { tenant, client, key, state, response, error, at, expires_at } => {
            let values =
                args![state.as_str(), response.as_ref(), error.as_ref(), *at, *expires_at, *tenant, client, key];
            let rows = db.execute(&ops::IDEMPOTENCY_FINISH, values).await?;
            Ok(if rows == 1 { OpAnswer::Done } else { OpAnswer::Gone })
        }
        Op::Trigger(op) => apply_trigger::apply(db, op).await,
        Op::Payload(op) => crate::payloads::apply(db, op).await,
        Op::ApprovalNotified { tenant, approval, at } => {
            let rows = db.execute(&ops::APPROVAL_NOTIFIED, args![*at, *tenant, *approval]).await?;
            Ok(if rows == 1 { OpAnswer::Done } else { OpAnswer::Gone })
        }
        Op::Seal { now, limit } => seal(db, *now, *limit).await.map(OpAnswer::Count),
        Op::Sweep(sweep) => sweep::apply(db, sweep).await.map(OpAnswer::Count),
        Op::KeepLanes { server, lanes, now } => sweep::keep_lanes(db, *server, lanes, *now).await,
        Op::EnsurePartitions { now } => {
            if db.is_postgres() {
                crate::postgres::partitions::ensure(db, *now).await?;
            }
            Ok(OpAnswer::Done)
        }
        Op::RaiseEpoch => {
            let mut rows = db.query(&ops::META_LOCK, args!["store_epoch"]).await?;
            let epoch: u64 = match rows.first_mut() {
                Some(row) => row.name("value")?,
                None => 0,
            };
            let epoch = if is_planted(Bug::EpochNotRaised) { epoch - 1 } else { epoch };
            let raised = (epoch + 1).to_string();
            db.execute(&ops::META_PUT, args!["store_epoch", &raised]).await?;
            db.execute(&ops::META_PUT, args![backup::RESTORING, &raised]).await?;
            Ok(OpAnswer::Epoch(epoch + 1))
        }
        Op::FinishRestore { epoch, now } => {
            let mut rows = db.query(&ops::META_LOCK, args!["store_epoch"]).await?;
            let found: Option<u64> = rows.first_mut().map(|row| row.name("value")).transpose()?;
            if found != Some(*epoch) {
                return Ok(OpAnswer::Gone);
            }
            db.execute(&ops::META_PUT, args![backup::RESTORED_AT, now.0.to_string()]).await?;
            db.execute(&ops::META_PUT, args![backup::RESTORING, ""]).await?;
            Ok(OpAnswer::Done)
        }
    }
}

async fn put_workflow<D: Db>(db: &D, tenant: TenantId, new: &WorkflowVersionRow) -> Result<OpAnswer, DbError> {
    // The upsert would make a new name with any version.
    if new.version > 1 && db.query(&workflows::WORKFLOW_HEAD, args![tenant, &new.name]).await?.is_empty() {
        return Ok(OpAnswer::Gone);
    }
    let values = args![tenant, &new.name, new.version, new.created_at];
    if db.execute(&workflows::WORKFLOW_ADVANCE, values).await? != 1 {
        return Ok(OpAnswer::Gone);
    }
    let values = args![
        tenant,
        &new.name,
        new.version,
        &new.source,
        new.source_hash,
        &new.definition,
        new.plan_hash,
        new.created_at,
        new.created_by.as_ref()
    ];
    db.execute(&workflows::WORKFLOW_VERSION_INSERT, values).await?;
    Ok(OpAnswer::Stored)
}

async fn store_signal<D: Db>(db: &D, signal: &SignalRow) -> Result<OpAnswer, DbError> {
    let values = args![
        signal.tenant,
        signal.id,
        &signal.signal_type,
        &signal.key,
        signal.received_at,
        signal.expires_at,
        &signal.payload,
        signal.source_id.as_ref(),
        signal.broadcast
    ];
    let rows = db.execute(&ops::SIGNAL_INSERT, values).await?;
    Ok(if rows == 1 { OpAnswer::Stored } else { OpAnswer::Duplicate })
}

async fn signal_subject<D: Db>(db: &D, wanted: &SubjectSignal) -> Result<OpAnswer, DbError> {
    let SubjectSignal { signal, run, request } = wanted;
    // The holder's end waits for this lock: a signal is never stored for a run that has just gone.
    let held = db.query(&ops::SUBJECT_LOCK, args![signal.tenant, &signal.key]).await?;
    if held.is_empty() && db.query(&read::SUBJECT_QUEUED, args![signal.tenant, &signal.key, 1i64]).await?.is_empty() {
        return Ok(OpAnswer::Gone);
    }
    if let Some(row) = request {
        let answer = StartAnswer { admission: Admission::Signaled };
        let values = args![
            signal.tenant,
            &row.client,
            &row.key,
            &row.source,
            row.request_hash,
            *run,
            signal.received_at,
            row.expires_at,
            serde_json::to_string(&answer).map_err(|error| DbError::Other(error.to_string()))?
        ];
        if db.execute(&side::IDEMPOTENCY_INSERT, values).await? == 0 {
            return Ok(OpAnswer::Duplicate);
        }
    }
    store_signal(db, signal).await
}

/// Reads the groups that no sealer has read yet and appends their events to the tenants' feeds.
async fn seal<D: Db>(db: &D, now: Timestamp, limit: usize) -> Result<u64, DbError> {
    db.query(&ops::META_LOCK, args!["seal"]).await?;
    let rows = db.query(&ops::SEAL_READ, args![limit.max(1)]).await?;
    let mut positions = BTreeMap::new();
    let mut by_tenant: BTreeMap<TenantId, Vec<Entry>> = BTreeMap::new();
    for mut row in rows {
        let (lane, group, bytes) = (row.int("lane_id")?, row.int("group_no")?, row.blob("entries")?);
        positions.insert(lane, group);
        let Some(list) = entries::decode(&bytes) else {
            // All tenants' feeds would stand still behind it for ever. The events themselves are in the journal.
            tracing::error!(
                lane,
                group,
                "a commit group cannot be read: its events are missing from the tenants' feeds; run `interlock db check`"
            );
            continue;
        };
        for entry in list {
            by_tenant.entry(entry.tenant).or_default().push(entry);
        }
    }
    let (lanes, mut sealed) = (positions.len(), 0);
    for (tenant, mut list) in by_tenant {
        if lanes > 1 {
            entries::order_runs(&mut list);
        }
        if is_planted(Bug::FeedSkips) && list.len() > 3 {
            list.pop();
        }
        let mut last = db.query(&ops::SEAL_CURSOR, args![tenant]).await?;
        let from = last.first_mut().map(|row| row.num::<u64>("cursor_to")).transpose()?.unwrap_or(0) + 1;
        let mut to = from - 1;
        let mut bytes = Vec::with_capacity(list.len() * 35);
        for entry in &list {
            to += entry.events();
            entry.encode(&mut bytes);
        }
        db.execute(&ops::FEED_INSERT, args![tenant, to, from, now, bytes]).await?;
        sealed += to + 1 - from;
    }
    for (lane, mut group) in positions {
        group += i64::from(is_planted(Bug::FeedPastUncommitted));
        db.execute(&ops::SEAL_POSITION, args![lane, group]).await?;
    }
    Ok(sealed)
}

/// The smallest UUIDv7 that an instant can begin.
pub(crate) fn first_id_at(at: Timestamp) -> Value {
    let mut bytes = [0u8; 16];
    let millis = u64::try_from(at.0).unwrap_or(0);
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    Value::Id(bytes)
}
