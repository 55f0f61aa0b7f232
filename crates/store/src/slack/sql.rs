use crate::sql::statements;

statements! {
    /// The feed's position is set once; from then on only [`SLACK_FEED`] moves it.
    SLACK_PUT on slack_connections {
        both: "INSERT INTO slack_connections (tenant_id, connection_id, team_id, enterprise_id, channel,
               escalation_channel, bot_token, secret, previous_secret, previous_until, pagerduty_key, rung_prod_ms,
               rung_other_ms, fed_to, fed_at, created_at, created_by, secret_at, secret_by)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
               ON CONFLICT (tenant_id) DO UPDATE SET team_id = excluded.team_id, enterprise_id = excluded.enterprise_id,
               channel = excluded.channel, escalation_channel = excluded.escalation_channel,
               bot_token = excluded.bot_token, secret = excluded.secret, previous_secret = excluded.previous_secret,
               previous_until = excluded.previous_until, pagerduty_key = excluded.pagerduty_key,
               rung_prod_ms = excluded.rung_prod_ms, rung_other_ms = excluded.rung_other_ms,
               secret_at = excluded.secret_at, secret_by = excluded.secret_by
               WHERE slack_connections.connection_id = excluded.connection_id"
    }

    SLACK_REMOVE on slack_connections {
        both: "DELETE FROM slack_connections WHERE tenant_id = $1"
    }

    SLACK_LINKS_REMOVE on slack_links {
        both: "DELETE FROM slack_links WHERE tenant_id = $1"
    }

    SLACK_REQUESTS_REMOVE on slack_link_requests {
        both: "DELETE FROM slack_link_requests WHERE tenant_id = $1"
    }

    /// Escalations end with the connection that they would be sent over.
    SLACK_LADDERS_END on approval_cards {
        both: "UPDATE approval_cards SET rung_at = NULL WHERE tenant_id = $1 AND rung_at IS NOT NULL"
    }

    /// Messages that are not sent yet become dead letters.
    SLACK_MESSAGES_END on outbox {
        both: "UPDATE outbox SET dead_at = $1, last_error = 'the connection to Slack was removed'
               WHERE tenant_id = $2 AND destination = $3 AND delivered_at IS NULL AND dead_at IS NULL"
    }

    SLACK_GET on slack_connections {
        both: "SELECT tenant_id, connection_id, team_id, enterprise_id, channel, escalation_channel, bot_token, secret,
               previous_secret, previous_until, pagerduty_key, rung_prod_ms, rung_other_ms, fed_to, fed_at, created_at,
               created_by, secret_at, secret_by FROM slack_connections WHERE tenant_id = $1"
    }

    /// The connection before it is written whole: PostgreSQL keeps others from it until then. SQLite has one writer anyway.
    SLACK_HELD on slack_connections {
        sqlite: "SELECT tenant_id, connection_id, team_id, enterprise_id, channel, escalation_channel, bot_token, secret,
                 previous_secret, previous_until, pagerduty_key, rung_prod_ms, rung_other_ms, fed_to, fed_at, created_at,
                 created_by, secret_at, secret_by FROM slack_connections WHERE tenant_id = ?1",
        postgres: "SELECT tenant_id, connection_id, team_id, enterprise_id, channel, escalation_channel, bot_token, secret,
                   previous_secret, previous_until, pagerduty_key, rung_prod_ms, rung_other_ms, fed_to, fed_at, created_at,
                   created_by, secret_at, secret_by FROM slack_connections WHERE tenant_id = $1 FOR UPDATE"
    }

    /// slack_connections_by_id: Slack names no tenant.
    SLACK_AT on slack_connections {
        both: "SELECT tenant_id, connection_id, team_id, enterprise_id, channel, escalation_channel, bot_token, secret,
               previous_secret, previous_until, pagerduty_key, rung_prod_ms, rung_other_ms, fed_to, fed_at, created_at,
               created_by, secret_at, secret_by FROM slack_connections WHERE connection_id = $1"
    }

    /// All of them on purpose: the publisher serves every tenant, and each has one at most.
    SLACK_ALL on slack_connections {
        both: "SELECT tenant_id, connection_id, team_id, enterprise_id, channel, escalation_channel, bot_token, secret,
               previous_secret, previous_until, pagerduty_key, rung_prod_ms, rung_other_ms, fed_to, fed_at, created_at,
               created_by, secret_at, secret_by FROM slack_connections"
    }

    /// Guard: no other server has published from here.
    SLACK_FEED on slack_connections {
        both: "UPDATE slack_connections SET fed_to = $1, fed_at = $2
               WHERE tenant_id = $3 AND connection_id = $4 AND fed_to = $5"
    }

    SLACK_LINK_PUT on slack_links {
        both: "INSERT INTO slack_links (tenant_id, enterprise_id, team_id, slack_user_id, person, linked_at, linked_by)
               VALUES ($1, $2, $3, $4, $5, $6, $7)
               ON CONFLICT (tenant_id, enterprise_id, team_id, slack_user_id) DO UPDATE SET person = excluded.person,
               linked_at = excluded.linked_at, linked_by = excluded.linked_by"
    }

    /// A person is one Slack user at most: slack_links_person.
    SLACK_LINK_OF_REMOVE on slack_links {
        both: "DELETE FROM slack_links WHERE tenant_id = $1 AND person = $2"
    }

    SLACK_LINK_GET on slack_links {
        both: "SELECT tenant_id, enterprise_id, team_id, slack_user_id, person, linked_at, linked_by FROM slack_links
               WHERE tenant_id = $1 AND enterprise_id = $2 AND team_id = $3 AND slack_user_id = $4"
    }

    /// slack_links_person.
    SLACK_LINK_OF on slack_links {
        both: "SELECT tenant_id, enterprise_id, team_id, slack_user_id, person, linked_at, linked_by FROM slack_links
               WHERE tenant_id = $1 AND person = $2"
    }

    /// slack_links_person.
    SLACK_LINKS on slack_links {
        both: "SELECT tenant_id, enterprise_id, team_id, slack_user_id, person, linked_at, linked_by FROM slack_links
               WHERE tenant_id = $1 AND person > $2 ORDER BY person LIMIT $3"
    }

    SLACK_REQUEST_ADD on slack_link_requests {
        both: "INSERT INTO slack_link_requests (tenant_id, token_hash, enterprise_id, team_id, slack_user_id, slack_name,
               created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING"
    }

    /// Guard: it was not used, and its time is not over.
    SLACK_REQUEST_USE on slack_link_requests {
        both: "DELETE FROM slack_link_requests WHERE tenant_id = $1 AND token_hash = $2 AND expires_at > $3"
    }

    SLACK_REQUEST_GET on slack_link_requests {
        both: "SELECT tenant_id, token_hash, enterprise_id, team_id, slack_user_id, slack_name, created_at, expires_at
               FROM slack_link_requests WHERE tenant_id = $1 AND token_hash = $2"
    }

    /// slack_link_requests_expiry.
    SWEEP_SLACK_REQUESTS on slack_link_requests {
        both: "DELETE FROM slack_link_requests WHERE (tenant_id, token_hash) IN
               (SELECT tenant_id, token_hash FROM slack_link_requests WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)"
    }

    CARD_ADD on approval_cards {
        both: "INSERT INTO approval_cards (tenant_id, approval_id, run_id, rung, created_at) VALUES ($1, $2, $3, 0, $4)
               ON CONFLICT (tenant_id, approval_id) DO NOTHING"
    }

    /// Guard: the ladder was not begun.
    CARD_OVERDUE on approval_cards {
        both: "UPDATE approval_cards SET rung_at = $1
               WHERE tenant_id = $2 AND approval_id = $3 AND rung = 0 AND rung_at IS NULL"
    }

    CARD_DECIDED on approval_cards {
        both: "UPDATE approval_cards SET rung_at = NULL WHERE tenant_id = $1 AND approval_id = $2"
    }

    /// Guard: it stands on this rung, and is due to leave it.
    CARD_CLIMB on approval_cards {
        both: "UPDATE approval_cards SET rung = $1, rung_at = $2
               WHERE tenant_id = $3 AND approval_id = $4 AND rung = $5 AND rung_at IS NOT NULL"
    }

    CARD_GET on approval_cards {
        both: "SELECT tenant_id, approval_id, run_id, rung, rung_at FROM approval_cards
               WHERE tenant_id = $1 AND approval_id = $2"
    }

    /// approval_cards_due.
    CARDS_DUE on approval_cards {
        both: "SELECT tenant_id, approval_id, run_id, rung, rung_at FROM approval_cards
               WHERE rung_at IS NOT NULL AND rung_at <= $1 ORDER BY rung_at LIMIT $2"
    }

    /// Guard: no server has begun it.
    NOTICE_BEGIN on approval_notices {
        both: "INSERT INTO approval_notices (tenant_id, approval_id, kind, begun_at) VALUES ($1, $2, $3, $4)
               ON CONFLICT (tenant_id, approval_id, kind) DO NOTHING"
    }

    NOTICE_POSTED on approval_notices {
        both: "UPDATE approval_notices SET channel = $1, ts = $2
               WHERE tenant_id = $3 AND approval_id = $4 AND kind = $5 AND ts IS NULL"
    }

    /// It was certainly not posted.
    NOTICE_FORGET on approval_notices {
        both: "DELETE FROM approval_notices WHERE tenant_id = $1 AND approval_id = $2 AND kind = $3 AND ts IS NULL"
    }

    NOTICES on approval_notices {
        both: "SELECT kind, begun_at, channel, ts FROM approval_notices WHERE tenant_id = $1 AND approval_id = $2"
    }

    /// approval_cards_by_run.
    SWEEP_NOTICES on approval_notices {
        both: "DELETE FROM approval_notices WHERE tenant_id = $1 AND approval_id IN
               (SELECT approval_id FROM approval_cards WHERE tenant_id = $1 AND run_id = $2)"
    }

    SWEEP_CARDS on approval_cards { both: "DELETE FROM approval_cards WHERE tenant_id = $1 AND run_id = $2" }
}
