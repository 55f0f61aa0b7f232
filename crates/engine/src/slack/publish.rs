//! From a tenant's feed to messages about its approvals. The connection's place in the feed moves in the commit that queues
//! them, so nothing is lost or queued twice, whichever server does it. A message says only which approval it is about:
//! what is shown is read when it is sent.

use std::collections::BTreeSet;

use interlock_core::ids::{ApprovalId, RunId};
use interlock_core::json::Json;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::work::notice::{LADDER, Notice};
use interlock_store::{
    ApprovalCardRow, CardChange, Changed, ClimbRung, NewMessage, PublishCards, QueuedNotice, SlackRow, TenantEvent,
};
use serde::Deserialize;

use super::NoticePayload;
use crate::Engine;
use crate::error::EngineError;
use crate::webhooks::publish::message_id;

/// Events that are read at a time.
const EVENTS_MAX: usize = 256;

#[derive(Deserialize)]
struct ApprovalEvent {
    event: String,
    approval: Option<ApprovalId>,
}

/// Queues what a connection has not been told yet. Answers whether there may be more.
pub(crate) async fn publish(engine: &Engine, slack: &SlackRow) -> Result<bool, EngineError> {
    let store = &engine.0.store;
    let page = store.tenant_events(slack.tenant, slack.fed_to, EVENTS_MAX).await?;
    let to = page.cursor;
    if to == slack.fed_to {
        return Ok(false);
    }
    let at = engine.now().max(slack.fed_at + Millis(1));
    let mut batch = Batch { at, changes: Vec::new(), told: BTreeSet::new(), notices: Vec::new() };
    for event in &page.events {
        batch.take(engine, slack, event).await?;
    }
    let queued = !batch.notices.is_empty();
    let (tenant, connection, from) = (slack.tenant, slack.id, slack.fed_to);
    let Batch { changes, notices, .. } = batch;
    let publish = PublishCards { tenant, connection, from, to, changes, notices, at };
    if store.write(publish).await? == Changed::Done && queued {
        engine.0.relay.notify_one();
    }
    Ok(true)
}

struct Batch {
    at: Timestamp,
    changes: Vec<CardChange>,
    /// Approvals whose card a message of this batch brings up to date.
    told: BTreeSet<ApprovalId>,
    notices: Vec<QueuedNotice>,
}

impl Batch {
    async fn take(&mut self, engine: &Engine, slack: &SlackRow, event: &TenantEvent) -> Result<(), EngineError> {
        let Ok(ApprovalEvent { event: name, approval: Some(approval) }) = event.event.decode() else { return Ok(()) };
        let run = event.run;
        match name.as_str() {
            "approval.requested" => self.changes.push(CardChange::Asked { approval, run }),
            "approval.expired" => self.changes.push(CardChange::Overdue { approval, at: event.at }),
            "approval.voted" => {}
            "approval.resolved" => {
                self.changes.push(CardChange::Decided { approval });
                let card = engine.0.store.approval_card(slack.tenant, approval).await?;
                if card.is_some_and(|card| card.rung as usize == LADDER.len()) {
                    self.queue(Notice::Page, approval, run)?;
                }
            }
            _ => return Ok(()),
        }
        if self.told.insert(approval) {
            self.queue(Notice::Card, approval, run)?;
        }
        Ok(())
    }

    fn queue(&mut self, kind: Notice, approval: ApprovalId, run: RunId) -> Result<(), EngineError> {
        let about = NoticePayload { approval, kind };
        self.notices.push(queued(self.at, self.notices.len(), about, run)?);
        Ok(())
    }
}

fn queued(at: Timestamp, index: usize, about: NoticePayload, run: RunId) -> Result<QueuedNotice, EngineError> {
    let payload = Json::of(&about).map_err(|error| EngineError::Store(error.to_string()))?;
    let message = NewMessage { id: message_id(at, index, &payload), run, payload, place: 0 };
    Ok(QueuedNotice { kind: about.kind, message })
}

/// Takes an approval up its ladder. A rung that the tenant has nothing for is passed over at once; the ladder ends where the
/// approval was decided.
pub(crate) async fn climb(engine: &Engine, card: &ApprovalCardRow) -> Result<(), EngineError> {
    let store = &engine.0.store;
    let now = engine.now();
    let (tenant, approval, from) = (card.tenant, card.approval, card.rung);
    let end = |to| ClimbRung { tenant, approval, from, to, next_at: None, notice: None, at: now };
    let slack = store.slack(tenant).await?;
    let row = store.approval(tenant, approval).await?;
    let open = row.is_some_and(|row| row.state == interlock_core::state::ApprovalState::Requested);
    let (Some(slack), true) = (slack, open) else {
        store.write(end(from)).await?;
        return Ok(());
    };
    let has = |notice: &Notice| match notice {
        Notice::Card | Notice::Reminder => true,
        Notice::Escalation => slack.escalation_channel.is_some(),
        Notice::Page => slack.pagerduty_key.is_some(),
    };
    let rest = LADDER.iter().enumerate().skip(from as usize).filter(|(_, notice)| has(notice));
    let mut rest = rest.map(|(index, notice)| (index as u32 + 1, *notice));
    let Some((to, kind)) = rest.next() else {
        store.write(end(from)).await?;
        return Ok(());
    };
    let run = store.load_runs(&[(tenant, card.run)]).await?.pop();
    let prod = run.is_none_or(|run| run.plan.rules.is_prod());
    let wait = if prod { slack.rung_prod } else { slack.rung_other };
    let next_at = rest.next().map(|_| card.rung_at.unwrap_or(now).max(now) + wait);
    let notice = Some(queued(now, from as usize, NoticePayload { approval, kind }, card.run)?);
    let climb = ClimbRung { tenant, approval, from, to, next_at, notice, at: now };
    if store.write(climb).await? == Changed::Done {
        engine.0.relay.notify_one();
    }
    Ok(())
}
