//! A tenant's connection to Slack: where its people are asked, and who is told when none of them answers.

use interlock_boxed::boxed;
use interlock_core::ids::{SlackId, TenantId};
use interlock_core::limits;
use interlock_core::rejection::Rejection;
use interlock_core::time::Millis;
use interlock_store::{ChangeSlack, Changed, PutSlack, RemoveSlack, Secrets, SlackRow};
use serde_json::json;
use uuid::Uuid;

use crate::audit::Actor;
use crate::error::EngineError;
use crate::parts::Slack;
use crate::vault::SecretOf;
use crate::webhooks::PREVIOUS_SECRET_KEPT;

/// How long a rung may wait for the next one.
pub const RUNG_MIN: Millis = Millis::from_mins(1);
pub const RUNG_MAX: Millis = Millis::from_hours(24);
pub const ID_BYTES_MAX: usize = 64;
pub const SECRET_BYTES_MIN: usize = 8;
pub const SECRET_BYTES_MAX: usize = 512;

/// What a connection is to be. Secrets that are left out stay as they are.
#[derive(Clone, Default)]
pub struct SlackSettings {
    pub team: String,
    pub enterprise: Option<String>,
    pub channel: String,
    pub escalation_channel: Option<String>,
    pub bot_token: Option<String>,
    pub signing_secret: Option<String>,
    /// An empty one takes it away.
    pub pagerduty_key: Option<String>,
    pub rung_prod: Option<Millis>,
    pub rung_other: Option<Millis>,
}

impl Slack {
    #[boxed]
    pub async fn connection(&self, tenant: TenantId) -> Result<Option<SlackRow>, EngineError> {
        Ok(self.0.0.store.on_behalf_of(tenant).slack(tenant).await?)
    }

    /// Makes a tenant's connection, or changes it.
    #[boxed]
    pub async fn connect(
        &self,
        tenant: TenantId,
        settings: SlackSettings,
        by: &Actor,
    ) -> Result<SlackRow, EngineError> {
        check(&settings)?;
        let before = self.connection(tenant).await?;
        let kind = if before.is_some() { "slack.changed" } else { "slack.connected" };
        let row = self.drafted(tenant, before.clone(), settings, by).await?;
        let what = by.did(kind, row.id, &details(&row));
        let answer = match before {
            Some(read) => self.0.write_noted(tenant, ChangeSlack { read, row: row.clone() }, what).await?,
            None => self.0.write_noted(tenant, PutSlack(row.clone()), what).await?,
        };
        match answer {
            Changed::Done => Ok(row),
            Changed::Gone => Err(EngineError::Overloaded),
        }
    }

    /// Links and messages that are still on their way end with it. Answers whether there was one.
    #[boxed]
    pub async fn disconnect(&self, tenant: TenantId, by: &Actor) -> Result<bool, EngineError> {
        let Some(row) = self.connection(tenant).await? else { return Ok(false) };
        let what = by.did("slack.removed", row.id, &details(&row));
        let remove = RemoveSlack { tenant, at: self.0.now() };
        Ok(self.0.write_noted(tenant, remove, what).await? == Changed::Done)
    }

    async fn drafted(
        &self,
        tenant: TenantId,
        before: Option<SlackRow>,
        settings: SlackSettings,
        by: &Actor,
    ) -> Result<SlackRow, EngineError> {
        let now = self.0.now();
        let id = before.as_ref().map_or_else(|| SlackId(self.0.fresh_id()), |row| row.id);
        let name = by.name().map(str::to_owned);
        let needed = |what: &str| Rejection::InvalidInput { what: format!("a new connection needs {what}") };
        let renewed = before.as_ref().is_none_or(|row| {
            row.team != settings.team || settings.bot_token.is_some() || settings.signing_secret.is_some()
        });
        let bot_token = match (&settings.bot_token, &before) {
            (Some(token), _) => self.seal(tenant, id.0, token)?,
            (None, Some(row)) => row.bot_token.clone(),
            (None, None) => return Err(needed("`bot_token`").into()),
        };
        let secrets = match (&settings.signing_secret, &before) {
            (Some(secret), Some(row)) => {
                let previous = Some((row.secrets.current.clone(), now + PREVIOUS_SECRET_KEPT));
                Secrets { current: self.seal(tenant, id.0, secret)?, previous }
            }
            (Some(secret), None) => Secrets { current: self.seal(tenant, id.0, secret)?, previous: None },
            (None, Some(row)) => row.secrets.clone(),
            (None, None) => return Err(needed("`signing_secret`").into()),
        };
        let pagerduty_key = match settings.pagerduty_key.as_deref() {
            Some("") => None,
            Some(key) => Some(self.seal(tenant, id.0, key)?),
            None => before.as_ref().and_then(|row| row.pagerduty_key.clone()),
        };
        let (prod, other) = (before.as_ref().map(|row| row.rung_prod), before.as_ref().map(|row| row.rung_other));
        let (secret_at, secret_by) = match &before {
            Some(row) if !renewed => (row.secret_at, row.secret_by.clone()),
            _ => (now, name.clone()),
        };
        let fed_to = match &before {
            Some(row) => row.fed_to,
            None => self.0.0.store.last_cursor(tenant).await?,
        };
        Ok(SlackRow {
            tenant,
            id,
            team: settings.team,
            enterprise: settings.enterprise,
            channel: settings.channel,
            escalation_channel: settings.escalation_channel,
            bot_token,
            secrets,
            pagerduty_key,
            rung_prod: settings.rung_prod.or(prod).unwrap_or(limits::APPROVAL_ESCALATE_PROD),
            rung_other: settings.rung_other.or(other).unwrap_or(limits::APPROVAL_ESCALATE_OTHER),
            fed_to,
            fed_at: before.as_ref().map_or(now, |row| row.fed_at),
            created_at: before.as_ref().map_or(now, |row| row.created_at),
            created_by: before.map_or(name, |row| row.created_by),
            secret_at,
            secret_by,
        })
    }

    fn seal(&self, tenant: TenantId, of: Uuid, secret: &str) -> Result<String, EngineError> {
        let vault = self.0.0.options.vault.as_ref().ok_or(EngineError::SecretsClosed)?;
        Ok(vault.seal(SecretOf { tenant, of }, secret))
    }

    pub(crate) fn open(&self, row: &SlackRow, sealed: &str) -> Result<String, EngineError> {
        let vault = self.0.0.options.vault.as_ref().ok_or(EngineError::SecretsClosed)?;
        let place = SecretOf { tenant: row.tenant, of: row.id.0 };
        vault.open(place, sealed).map_err(|_| EngineError::SecretsClosed)
    }
}

fn check(settings: &SlackSettings) -> Result<(), EngineError> {
    let invalid = |what: String| Err(Rejection::InvalidInput { what }.into());
    let ids = [
        ("team", Some(&settings.team), "T"),
        ("enterprise", settings.enterprise.as_ref(), "E"),
        ("channel", Some(&settings.channel), "CGD"),
        ("escalation_channel", settings.escalation_channel.as_ref(), "CGD"),
    ];
    for (name, id, first) in ids {
        if let Some(id) = id.filter(|id| !is_slack_id(id, first)) {
            let shown: String = id.chars().take(80).collect();
            return invalid(format!(
                "`{name}` is `{shown}`: write Slack's own id, which begins with {} and has capital letters and digits \
                 (not a name)",
                first.chars().map(|c| format!("`{c}`")).collect::<Vec<_>>().join(" or ")
            ));
        }
    }
    let secrets = [
        ("bot_token", &settings.bot_token),
        ("signing_secret", &settings.signing_secret),
        ("pagerduty_routing_key", &settings.pagerduty_key),
    ];
    for (name, secret) in secrets {
        let Some(secret) = secret else { continue };
        let removes = name == "pagerduty_routing_key" && secret.is_empty();
        let plain = secret.bytes().all(|byte| byte.is_ascii_graphic());
        if !removes && (!plain || !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&secret.len())) {
            return invalid(format!(
                "`{name}` has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} letters, digits and signs, without spaces"
            ));
        }
    }
    for (name, rung) in [("rung_prod_s", settings.rung_prod), ("rung_other_s", settings.rung_other)] {
        if rung.is_some_and(|rung| !(RUNG_MIN..=RUNG_MAX).contains(&rung)) {
            return invalid(format!("`{name}` is {} to {} seconds", RUNG_MIN.0 / 1_000, RUNG_MAX.0 / 1_000));
        }
    }
    Ok(())
}

fn is_slack_id(id: &str, first: &str) -> bool {
    let plain = id.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    id.len() > 1 && id.len() <= ID_BYTES_MAX && plain && id.starts_with(|c: char| first.contains(c))
}

/// What the audit log tells of a connection.
fn details(row: &SlackRow) -> serde_json::Value {
    json!({
        "team": row.team, "enterprise": row.enterprise, "channel": row.channel,
        "escalation_channel": row.escalation_channel, "pagerduty": row.pagerduty_key.is_some(),
        "rung_prod_s": row.rung_prod.0 / 1_000, "rung_other_s": row.rung_other.0 / 1_000,
        "secrets_given_at": row.secret_at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_slacks_own_and_secrets_are_not_repeated() {
        let good = SlackSettings { team: "T0ABC".into(), channel: "C0ABC".into(), ..SlackSettings::default() };
        assert!(check(&good).is_ok());
        for bad in [
            SlackSettings { team: "acme".into(), ..good.clone() },
            SlackSettings { channel: "#ops".into(), ..good.clone() },
            SlackSettings { escalation_channel: Some("T0ABC".into()), ..good.clone() },
            SlackSettings { enterprise: Some(String::new()), ..good.clone() },
            SlackSettings { bot_token: Some("xoxb 12345678".into()), ..good.clone() },
            SlackSettings { signing_secret: Some("short".into()), ..good.clone() },
            SlackSettings { rung_prod: Some(Millis(1)), ..good.clone() },
        ] {
            let error = check(&bad).unwrap_err().to_string();
            assert!(!error.contains("12345678") && !error.contains("short"), "{error}");
        }
        assert!(check(&SlackSettings { pagerduty_key: Some(String::new()), ..good }).is_ok());
    }
}
