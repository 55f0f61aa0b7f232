//! Bringing a message about an approval to people. A message says only which approval it is about; what is sent shows the
//! approval as it stands at that moment, so a late message is never an old one.
//!
//! A post is begun in the store before it is sent. Where its answer was lost, Slack is asked for it by the mark that it
//! carries; where Slack cannot be asked, a card is posted once more, because one too many is better than none, and a
//! reminder is not. PagerDuty drops repeats itself.

use interlock_connectors::{CallFailure, Sent};
use interlock_core::ids::ApprovalId;
use interlock_core::run::{Phase, Run};
use interlock_core::state::ApprovalState;
use interlock_core::time::Millis;
use interlock_core::work::notice::Notice;
use interlock_store::{
    ApprovalRow, BeginNotice, Changed, ForgetNotice, NoticePosted, NoticeRow, OutboxMessage, SlackRow, Stored,
    TakeMessage,
};
use serde_json::json;

use super::api::{NewPost, PostTrace, Posted, SlackClient, SlackFailure};
use super::card::{CardFacts, escaped};
use super::{NoticePayload, approval_digest};
use crate::Engine;
use crate::commands::vote::ApprovalExclusions;
use crate::error::EngineError;
use crate::webhooks::deliver::{DeliveryTry, wait_after};

/// How long one sender has a message to itself: longer than a try can take.
const TAKEN_FOR: Millis = Millis::from_secs(90);

/// Why a try did not succeed.
enum TryFailure {
    Later { what: String, away: Option<Millis> },
    Never(String),
}

impl From<SlackFailure> for TryFailure {
    fn from(failure: SlackFailure) -> Self {
        Self::Later { what: failure.what, away: failure.away }
    }
}

impl From<CallFailure> for TryFailure {
    fn from(failure: CallFailure) -> Self {
        let away = failure.after.map(|after| Millis(after.as_millis() as u64));
        Self::Later { what: failure.to_string(), away }
    }
}

/// One try.
pub(crate) async fn deliver(
    engine: &Engine,
    message: &OutboxMessage,
    kind: Notice,
) -> Result<DeliveryTry, EngineError> {
    let now = engine.now();
    let (tenant, attempts) = (message.tenant, message.attempts);
    let take = TakeMessage { tenant, id: message.id, attempts, now, until: now + TAKEN_FOR };
    if engine.0.store.write(take).await? == Changed::Gone {
        return Ok(DeliveryTry::Held);
    }
    let Ok(NoticePayload { approval, .. }) = message.payload.decode() else {
        return Ok(DeliveryTry::Never { error: "the message cannot be read".to_owned() });
    };
    let failed = match NoticeContext::load(engine, message, approval).await? {
        Ok(context) => match context.tell(kind).await? {
            Ok(()) => return Ok(DeliveryTry::Delivered),
            Err(failed) => failed,
        },
        Err(failed) => failed,
    };
    Ok(match failed {
        TryFailure::Never(error) => DeliveryTry::Never { error },
        TryFailure::Later { what: error, away } => match wait_after(message) {
            Some(wait) => DeliveryTry::Later { error, at: now + wait.max(away.unwrap_or(Millis(0))) },
            None => DeliveryTry::Never { error },
        },
    })
}

/// An approval, and the way to those who are told of it.
struct NoticeContext<'a> {
    engine: &'a Engine,
    slack: SlackRow,
    client: SlackClient,
    row: ApprovalRow,
    run: Run,
    digest: String,
    exclusions: ApprovalExclusions,
    notices: Vec<NoticeRow>,
}

impl<'a> NoticeContext<'a> {
    async fn load(
        engine: &'a Engine,
        message: &OutboxMessage,
        approval: ApprovalId,
    ) -> Result<Result<Self, TryFailure>, EngineError> {
        let (store, tenant) = (&engine.0.store, message.tenant);
        let gone = |what: &str| Ok(Err(TryFailure::Never(what.to_owned())));
        let Some(slack) = store.slack(tenant).await? else { return gone("the connection to Slack was removed") };
        let Some(row) = engine.with_present_state(tenant, approval).await? else { return gone("the approval is gone") };
        let Some(run) = store.load_runs(&[(tenant, row.run)]).await?.pop() else { return gone("the run is gone") };
        let digest = approval_digest(tenant, &row).map_err(|error| EngineError::Store(error.to_string()))?;
        let exclusions = match &run.current().phase {
            Phase::WaitingApproval(open) if open.id == approval => {
                engine.runs().approval_exclusions(&run, open).await?
            }
            _ => ApprovalExclusions::default(),
        };
        let notices = store.notices(tenant, approval).await?;
        let client = engine.slack().client(&slack)?;
        Ok(Ok(Self { engine, slack, client, row, run, digest, exclusions, notices }))
    }

    fn facts(&self) -> CardFacts<'_> {
        let public_url = self.engine.0.options.notices.public_url.as_deref();
        let Self { row, run, digest, exclusions, .. } = self;
        CardFacts { row, run, digest, exclusions, public_url }
    }

    fn is_open(&self) -> bool {
        self.row.state == ApprovalState::Requested
    }

    async fn tell(&self, kind: Notice) -> Result<Result<(), TryFailure>, EngineError> {
        match kind {
            Notice::Card => self.card().await,
            // What was decided meanwhile needs no nudge.
            Notice::Reminder | Notice::Escalation if !self.is_open() => Ok(Ok(())),
            Notice::Reminder => match self.posted(Notice::Card) {
                Some(card) => self.once(kind, self.reminder(&card)).await.map(|done| done.map(drop)),
                None => Ok(Err(TryFailure::Later { what: "the card is not posted yet".to_owned(), away: None })),
            },
            Notice::Escalation => match &self.slack.escalation_channel {
                Some(channel) => self.once(kind, self.escalation(channel)).await.map(|done| done.map(drop)),
                None => Ok(Ok(())),
            },
            Notice::Page => self.page().await,
        }
    }

    /// Posts the card, or shows in its place how things stand.
    async fn card(&self) -> Result<Result<(), TryFailure>, EngineError> {
        let card = self.facts().card();
        let known = self.notices.iter().any(|notice| notice.kind == Notice::Card);
        if !known && !self.is_open() {
            return Ok(Ok(()));
        }
        let at = if let Some(at) = self.posted(Notice::Card) {
            at
        } else {
            let channel = self.slack.channel.clone();
            let post = NewPost { channel, thread_ts: None, text: card.text.clone(), blocks: card.blocks.clone() };
            match self.once(Notice::Card, post).await? {
                Ok(Some(at)) => at,
                // Just posted, as it stands now.
                Ok(None) => return Ok(Ok(())),
                Err(failed) => return Ok(Err(failed)),
            }
        };
        Ok(self.client.update(&at, &card.text, &card.blocks).await.map_err(TryFailure::from))
    }

    fn reminder(&self, card: &Posted) -> NewPost {
        let text = format!(":alarm_clock: Nobody has decided in time: {}.", escaped(&self.facts().subject()));
        NewPost { channel: card.channel.clone(), thread_ts: Some(card.ts.clone()), text, blocks: Vec::new() }
    }

    fn escalation(&self, channel: &str) -> NewPost {
        let facts = self.facts();
        let link = facts.link().map(|link| format!(" <{}|Open it in the console>", escaped(&link))).unwrap_or_default();
        let text = format!(":rotating_light: An approval is overdue: {}.{link}", escaped(&facts.subject()));
        NewPost { channel: channel.to_owned(), thread_ts: None, text, blocks: Vec::new() }
    }

    /// The alert is open as long as the approval is.
    async fn page(&self) -> Result<Result<(), TryFailure>, EngineError> {
        let key = format!("interlock-{}", self.row.id);
        let facts = self.facts();
        let paged = self.notices.iter().any(|notice| notice.kind == Notice::Page);
        if self.slack.pagerduty_key.is_none() || (!self.is_open() && !paged) {
            return Ok(Ok(()));
        }
        let event = if self.is_open() {
            let severity = if self.run.plan.rules.is_prod() { "critical" } else { "warning" };
            let summary: String = format!("Approval overdue: {}", facts.subject()).chars().take(1_000).collect();
            let details = json!({ "approval": self.row.id, "run": self.run.id, "link": facts.link() });
            json!({ "action": "trigger", "dedup_key": key, "summary": summary, "severity": severity, "details": details })
        } else {
            json!({ "action": "resolve", "dedup_key": key })
        };
        self.begin(Notice::Page).await?;
        Ok(self.client.page(event).await.map_err(TryFailure::from))
    }

    fn posted(&self, kind: Notice) -> Option<Posted> {
        let notice = self.notices.iter().find(|notice| notice.kind == kind)?;
        Some(Posted { channel: notice.channel.clone()?, ts: notice.ts.clone()? })
    }

    async fn begin(&self, kind: Notice) -> Result<Stored, EngineError> {
        let begin = BeginNotice { tenant: self.run.tenant, approval: self.row.id, kind, at: self.engine.now() };
        Ok(self.engine.0.store.write(begin).await?)
    }

    /// Posts a message that is posted once. Answers where it is if an earlier try has posted it.
    async fn once(&self, kind: Notice, post: NewPost) -> Result<Result<Option<Posted>, TryFailure>, EngineError> {
        if self.posted(kind).is_some() {
            return Ok(Ok(None));
        }
        let (tenant, approval) = (self.run.tenant, self.row.id);
        let key = format!("notice:{tenant}:{approval}:{kind}");
        if self.begin(kind).await? == Stored::Duplicate {
            let begun_at = self.notices.iter().find(|notice| notice.kind == kind).map(|notice| notice.begun_at);
            match self.client.find_post(&post, &key, begun_at.unwrap_or(self.row.requested_at)).await {
                PostTrace::Posted(at) => {
                    self.note(kind, &at).await?;
                    return Ok(Ok(Some(at)));
                }
                PostTrace::NoTrace => {}
                PostTrace::CannotTell(_) if kind == Notice::Card => {}
                PostTrace::CannotTell(why) => {
                    let what = format!("the answer to an earlier try was lost, and it may have been posted: {why}");
                    return Ok(Err(TryFailure::Never(what)));
                }
            }
        }
        match self.client.post(&post, &key).await {
            Ok(at) => {
                self.note(kind, &at).await?;
                Ok(Ok(None))
            }
            Err(failure) => {
                if failure.sent == Sent::CertainlyNot {
                    self.engine.0.store.write(ForgetNotice { tenant, approval, kind }).await?;
                }
                Ok(Err(failure.into()))
            }
        }
    }

    async fn note(&self, kind: Notice, at: &Posted) -> Result<(), EngineError> {
        let (channel, ts) = (at.channel.clone(), at.ts.clone());
        let posted = NoticePosted { tenant: self.run.tenant, approval: self.row.id, kind, channel, ts };
        self.engine.0.store.write(posted).await?;
        Ok(())
    }
}
