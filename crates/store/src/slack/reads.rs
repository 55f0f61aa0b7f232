use interlock_core::ids::{ApprovalId, SlackId, TenantId};
use interlock_core::json::Hash;
use interlock_core::time::{Millis, Timestamp};

use super::{ApprovalCardRow, NoticeRow, SlackLinkRequestRow, SlackLinkRow, SlackRow, SlackUser, sql};
use crate::error::{CorruptRow, ReadError};
use crate::secrets::secrets;
use crate::store::Store;
use crate::value::{Row, args};

impl Store {
    pub async fn slack(&self, tenant: TenantId) -> Result<Option<SlackRow>, ReadError> {
        self.found(&sql::SLACK_GET, args![tenant], slack).await
    }

    /// The connection whose address this is, whosever it is.
    pub async fn slack_at(&self, id: SlackId) -> Result<Option<SlackRow>, ReadError> {
        self.found(&sql::SLACK_AT, args![id], slack).await
    }

    /// Every tenant's connection.
    pub async fn all_slack(&self) -> Result<Vec<SlackRow>, ReadError> {
        self.readable(&sql::SLACK_ALL, 0, |_| vec![], slack).await
    }

    pub async fn slack_link(&self, tenant: TenantId, who: &SlackUser) -> Result<Option<SlackLinkRow>, ReadError> {
        let values = args![tenant, &who.enterprise, &who.team, &who.user];
        self.found(&sql::SLACK_LINK_GET, values, link).await
    }

    pub async fn slack_link_of(&self, tenant: TenantId, person: &str) -> Result<Option<SlackLinkRow>, ReadError> {
        self.found(&sql::SLACK_LINK_OF, args![tenant, person], link).await
    }

    /// By the names of the people.
    pub async fn slack_links(
        &self,
        tenant: TenantId,
        after: &str,
        limit: usize,
    ) -> Result<Vec<SlackLinkRow>, ReadError> {
        self.every(&sql::SLACK_LINKS, args![tenant, after, limit], link).await
    }

    pub async fn slack_link_request(
        &self,
        tenant: TenantId,
        token_hash: Hash,
    ) -> Result<Option<SlackLinkRequestRow>, ReadError> {
        self.found(&sql::SLACK_REQUEST_GET, args![tenant, token_hash], link_request).await
    }

    pub async fn approval_card(
        &self,
        tenant: TenantId,
        approval: ApprovalId,
    ) -> Result<Option<ApprovalCardRow>, ReadError> {
        self.found(&sql::CARD_GET, args![tenant, approval], card).await
    }

    /// Approvals whose next rung is due, of all tenants.
    pub async fn due_cards(&self, now: Timestamp, limit: usize) -> Result<Vec<ApprovalCardRow>, ReadError> {
        self.readable(&sql::CARDS_DUE, limit, |limit| args![now, limit], card).await
    }

    /// What was posted about an approval.
    pub async fn notices(&self, tenant: TenantId, approval: ApprovalId) -> Result<Vec<NoticeRow>, ReadError> {
        self.every(&sql::NOTICES, args![tenant, approval], notice).await
    }
}

pub(super) fn slack(mut row: Row) -> Result<SlackRow, CorruptRow> {
    Ok(SlackRow {
        tenant: row.id("tenant_id")?,
        id: row.id("connection_id")?,
        team: row.text("team_id")?,
        enterprise: row.opt_text("enterprise_id")?,
        channel: row.text("channel")?,
        escalation_channel: row.opt_text("escalation_channel")?,
        bot_token: row.text("bot_token")?,
        secrets: secrets(&mut row)?,
        pagerduty_key: row.opt_text("pagerduty_key")?,
        rung_prod: Millis(row.num("rung_prod_ms")?),
        rung_other: Millis(row.num("rung_other_ms")?),
        fed_to: row.num("fed_to")?,
        fed_at: row.time("fed_at")?,
        created_at: row.time("created_at")?,
        created_by: row.opt_text("created_by")?,
        secret_at: row.time("secret_at")?,
        secret_by: row.opt_text("secret_by")?,
    })
}

fn slack_user(row: &mut Row) -> Result<SlackUser, CorruptRow> {
    Ok(SlackUser {
        enterprise: row.text("enterprise_id")?,
        team: row.text("team_id")?,
        user: row.text("slack_user_id")?,
    })
}

fn link(mut row: Row) -> Result<SlackLinkRow, CorruptRow> {
    Ok(SlackLinkRow {
        tenant: row.id("tenant_id")?,
        who: slack_user(&mut row)?,
        person: row.text("person")?,
        linked_at: row.time("linked_at")?,
        linked_by: row.text("linked_by")?,
    })
}

fn link_request(mut row: Row) -> Result<SlackLinkRequestRow, CorruptRow> {
    Ok(SlackLinkRequestRow {
        tenant: row.id("tenant_id")?,
        token_hash: row.hash("token_hash")?,
        who: slack_user(&mut row)?,
        slack_name: row.text("slack_name")?,
        created_at: row.time("created_at")?,
        expires_at: row.time("expires_at")?,
    })
}

fn card(mut row: Row) -> Result<ApprovalCardRow, CorruptRow> {
    Ok(ApprovalCardRow {
        tenant: row.id("tenant_id")?,
        approval: row.id("approval_id")?,
        run: row.id("run_id")?,
        rung: row.num("rung")?,
        rung_at: row.opt_time("rung_at")?,
    })
}

fn notice(mut row: Row) -> Result<NoticeRow, CorruptRow> {
    Ok(NoticeRow {
        kind: row.name("kind")?,
        begun_at: row.time("begun_at")?,
        channel: row.opt_text("channel")?,
        ts: row.opt_text("ts")?,
    })
}
