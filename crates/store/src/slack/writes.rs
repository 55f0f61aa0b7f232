use interlock_core::ids::{ApprovalId, RunId, SlackId, TenantId};
use interlock_core::json::Hash;
use interlock_core::time::Timestamp;
use interlock_core::work::notice::Notice;

use super::{SlackLinkRequestRow, SlackLinkRow, SlackRow, reads, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::outbound::NewMessage;
use crate::secrets::secret_values;
use crate::sql::side;
use crate::value::args;
use crate::write::{Changed, Stored, Write, boxed, changed, of_tenant, stored};

/// Makes a tenant's connection, or changes it. [`Changed::Gone`] where another was made meanwhile.
#[derive(Debug, Clone)]
pub struct PutSlack(pub SlackRow);

impl Write for PutSlack {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let row = &self.0;
        let mut values = args![row.tenant, row.id, &row.team, row.enterprise.as_ref(), &row.channel];
        values.extend(args![row.escalation_channel.as_ref(), &row.bot_token]);
        values.extend(secret_values(&row.secrets));
        values.extend(args![row.pagerduty_key.as_ref(), row.rung_prod, row.rung_other, row.fed_to, row.fed_at]);
        values.extend(args![row.created_at, row.created_by.as_ref(), row.secret_at, row.secret_by.as_ref()]);
        changed(db, &sql::SLACK_PUT, values).await
    }
}

/// Changes a connection that is still as it was read, apart from its place in the feed. [`Changed::Gone`] where another has
/// changed it since, or it is not there: a secret that was replaced meanwhile does not come back.
#[derive(Debug, Clone)]
pub struct ChangeSlack {
    pub read: SlackRow,
    pub row: SlackRow,
}

impl Write for ChangeSlack {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let Self { read, row } = self;
        let held = db.query(&sql::SLACK_HELD, args![row.tenant]).await?.pop();
        let held = held.map(reads::slack).transpose()?;
        let is_as_read = |held: SlackRow| SlackRow { fed_to: read.fed_to, fed_at: read.fed_at, ..held } == *read;
        if !held.is_some_and(is_as_read) {
            return Ok(Changed::Gone);
        }
        PutSlack(row.clone()).apply(db).await
    }
}

/// Links, ladders and messages that are still on their way end with it.
#[derive(Debug, Clone, Copy)]
pub struct RemoveSlack {
    pub tenant: TenantId,
    pub at: Timestamp,
}

impl Write for RemoveSlack {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let answer = changed(db, &sql::SLACK_REMOVE, args![self.tenant]).await?;
        db.execute(&sql::SLACK_LINKS_REMOVE, args![self.tenant]).await?;
        db.execute(&sql::SLACK_REQUESTS_REMOVE, args![self.tenant]).await?;
        db.execute(&sql::SLACK_LADDERS_END, args![self.tenant]).await?;
        for notice in Notice::ALL {
            db.execute(&sql::SLACK_MESSAGES_END, args![self.at, self.tenant, notice.destination()]).await?;
        }
        Ok(answer)
    }
}

/// What the feed tells of an approval, as far as its card is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardChange {
    Asked {
        approval: ApprovalId,
        run: RunId,
    },
    /// The time to decide is over: the ladder begins.
    Overdue {
        approval: ApprovalId,
        at: Timestamp,
    },
    Decided {
        approval: ApprovalId,
    },
}

/// A message about an approval.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedNotice {
    pub kind: Notice,
    pub message: NewMessage,
}

/// Takes the connection on in the feed, if it stands where it was read.
#[derive(Debug, Clone)]
pub struct PublishCards {
    pub tenant: TenantId,
    pub connection: SlackId,
    pub from: u64,
    pub to: u64,
    pub changes: Vec<CardChange>,
    pub notices: Vec<QueuedNotice>,
    pub at: Timestamp,
}

impl Write for PublishCards {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let values = args![self.to, self.at, self.tenant, self.connection, self.from];
        if db.execute(&sql::SLACK_FEED, values).await? == 0 {
            return Ok(Changed::Gone);
        }
        for change in &self.changes {
            match *change {
                CardChange::Asked { approval, run } => {
                    db.execute(&sql::CARD_ADD, args![self.tenant, approval, run, self.at]).await?
                }
                CardChange::Overdue { approval, at } => {
                    db.execute(&sql::CARD_OVERDUE, args![at, self.tenant, approval]).await?
                }
                CardChange::Decided { approval } => {
                    db.execute(&sql::CARD_DECIDED, args![self.tenant, approval]).await?
                }
            };
        }
        queue(db, self.tenant, &self.notices, self.at).await?;
        Ok(Changed::Done)
    }
}

/// The next rung of an approval's ladder, with the message that tells of it. [`Changed::Gone`] where another server was
/// faster.
#[derive(Debug, Clone)]
pub struct ClimbRung {
    pub tenant: TenantId,
    pub approval: ApprovalId,
    pub from: u32,
    pub to: u32,
    /// When the one behind it is.
    pub next_at: Option<Timestamp>,
    pub notice: Option<QueuedNotice>,
    pub at: Timestamp,
}

impl Write for ClimbRung {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let values = args![self.to, self.next_at, self.tenant, self.approval, self.from];
        let answer = changed(db, &sql::CARD_CLIMB, values).await?;
        if answer == Changed::Done {
            queue(db, self.tenant, self.notice.as_slice(), self.at).await?;
        }
        Ok(answer)
    }
}

/// Notes that a message is about to be posted. [`Stored::Duplicate`] where it was begun before.
#[derive(Debug, Clone, Copy)]
pub struct BeginNotice {
    pub tenant: TenantId,
    pub approval: ApprovalId,
    pub kind: Notice,
    pub at: Timestamp,
}

impl Write for BeginNotice {
    type Answer = Stored;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Stored, DbError> {
        let values = args![self.tenant, self.approval, self.kind.as_str(), self.at];
        stored(db, &sql::NOTICE_BEGIN, values).await
    }
}

/// Notes where a message was posted.
#[derive(Debug, Clone)]
pub struct NoticePosted {
    pub tenant: TenantId,
    pub approval: ApprovalId,
    pub kind: Notice,
    pub channel: String,
    pub ts: String,
}

impl Write for NoticePosted {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let values = args![&self.channel, &self.ts, self.tenant, self.approval, self.kind.as_str()];
        changed(db, &sql::NOTICE_POSTED, values).await
    }
}

/// A message was certainly not posted: the next try is the first.
#[derive(Debug, Clone, Copy)]
pub struct ForgetNotice {
    pub tenant: TenantId,
    pub approval: ApprovalId,
    pub kind: Notice,
}

impl Write for ForgetNotice {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::NOTICE_FORGET, args![self.tenant, self.approval, self.kind.as_str()]).await
    }
}

#[derive(Debug, Clone)]
pub struct AddSlackLinkRequest(pub SlackLinkRequestRow);

impl Write for AddSlackLinkRequest {
    type Answer = Stored;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Stored, DbError> {
        let row = &self.0;
        let mut values = args![row.tenant, row.token_hash, &row.who.enterprise, &row.who.team, &row.who.user];
        values.extend(args![&row.slack_name, row.created_at, row.expires_at]);
        stored(db, &sql::SLACK_REQUEST_ADD, values).await
    }
}

/// Uses a request up: its Slack user is this person from now on, and the person's earlier link is removed.
/// [`Changed::Gone`] where the request was used, or its time is over.
#[derive(Debug, Clone)]
pub struct LinkSlackUser {
    pub token_hash: Hash,
    pub link: SlackLinkRow,
}

impl Write for LinkSlackUser {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let SlackLinkRow { tenant, who, person, linked_at, linked_by } = &self.link;
        let used = changed(db, &sql::SLACK_REQUEST_USE, args![*tenant, self.token_hash, *linked_at]).await?;
        if used == Changed::Gone {
            return Ok(Changed::Gone);
        }
        db.execute(&sql::SLACK_LINK_OF_REMOVE, args![*tenant, person]).await?;
        let values = args![*tenant, &who.enterprise, &who.team, &who.user, person, *linked_at, linked_by];
        changed(db, &sql::SLACK_LINK_PUT, values).await
    }
}

#[derive(Debug, Clone)]
pub struct UnlinkSlackUser {
    pub tenant: TenantId,
    pub person: String,
}

impl Write for UnlinkSlackUser {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::SLACK_LINK_OF_REMOVE, args![self.tenant, &self.person]).await
    }
}

of_tenant! {
    AddSlackLinkRequest.0.tenant;
    LinkSlackUser.link.tenant;
    UnlinkSlackUser.tenant;
}

async fn queue<D: Db>(db: &D, tenant: TenantId, notices: &[QueuedNotice], at: Timestamp) -> Result<(), DbError> {
    for QueuedNotice { kind, message } in notices {
        let destination = kind.destination();
        let values = args![tenant, message.id, message.run, destination, &message.payload, at, message.place];
        db.execute(&side::OUTBOX_INSERT, values).await?;
    }
    Ok(())
}
