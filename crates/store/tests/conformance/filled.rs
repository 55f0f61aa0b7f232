//! Rows for every table, of fifty tenants: for tests that are about tables and planners, not about runs.

use crate::harness::NOW;

/// A table's rows: its name, its columns, what they hold by the row's number `i`, and how many there are. `id(…)` is an
/// id of the harness's instant, `tenant(…)` one of fifty.
pub const ROWS: &[(&str, &str, &str, u32)] = &[
    ("tenants", "tenant_id, name, created_at", "tenant(i), 't' || i, 1", 50),
    ("plans", "tenant_id, plan_hash, workflow, version, body", "tenant(i), id(i), 'w' || (i % 40), 1, '{}'", 400),
    (
        "runs",
        "tenant_id, run_id, workspace, workflow, workflow_version, plan_hash, inputs, subject, trigger_type, priority,
         created_at, state, version, finished_at",
        "tenant(i), id(i), 'main', 'w' || (i % 40), 1, id(i % 400), '{}', CASE WHEN i % 4 = 0 THEN 's' || i END,
         CASE WHEN i % 10 = 0 THEN 'schedule' ELSE 'api' END, 0, i, CASE WHEN i > 10000 THEN 'succeeded' END, 3,
         CASE WHEN i > 10000 THEN i END",
        20_000,
    ),
    (
        "run_live",
        "tenant_id, run_id, version, control, state, position, step_state, attempt, failures, iteration, workspace,
         queue, priority, eligible_at, session_id, claimed_at, step_timeout_at, wake_at",
        "tenant(i), id(i), 3, 'active', 'running', 1, 'ready', 0, 0, 0, 'main', 'default', 0,
         CASE WHEN i % 4 = 0 THEN i END, CASE WHEN i % 100 = 1 THEN id(i % 1000) END, i,
         CASE WHEN i % 100 = 1 THEN i END, CASE WHEN i % 4 = 2 THEN i END",
        10_000,
    ),
    (
        "journal",
        "tenant_id, run_id, seq, first_seq, at, events, initiator, done_position, done_state, done_attempt,
         done_failures, done_iteration",
        "tenant((i + 2) / 3), id((i + 2) / 3), (i + 2) % 3 + 1, (i + 2) % 3 + 1, i, '[]', 'system',
         CASE WHEN i % 3 = 0 THEN 0 END, CASE WHEN i % 3 = 0 THEN 'succeeded' END, 1, 0, 0",
        24_000,
    ),
    ("workflow_rates", "tenant_id, workflow, rate_next_at", "tenant(i), 'w' || i, i", 400),
    (
        "delegations",
        "tenant_id, delegation_id, delegator, delegate, from_at, until_at, reason, created_at, created_by",
        "tenant(i), id(i), 'p' || i, 'q' || i, 1, 2, 'away', 1, 'p' || i",
        400,
    ),
    (
        "changes",
        "tenant_id, change_id, subject, method, path, body, request_hash, state, asked_by, excluded, asked_at, expires_at",
        "tenant(i), id(i), 'access', 'PATCH', '/x', '{}', id(i), 'used', 'p' || i, '[]', i, i + 1000",
        400,
    ),
    (
        "worker_identities",
        "tenant_id, identity_id, name, terms, token_lookup, token_hash, token_expires_at, created_at",
        "tenant(i), id(i), 'w' || i, '{}', 'l' || i, hash(i), i + 1000, i",
        400,
    ),
    ("login_failures", "tenant_id, name, failures, failed_at", "tenant(i), 'p' || i, 1, i", 400),
    ("steps_added", "tenant_id, run_id, position, spec", "tenant(i), id(i), 3, '{}'", 1_000),
    (
        "waits",
        "tenant_id, run_id, position, type, key, accept_from, opened_at",
        "tenant(i), id(i), 1, 'go', 'k' || i, i, i",
        1_000,
    ),
    (
        "signals",
        "tenant_id, signal_id, type, key, received_at, expires_at, payload, source_id, consumed_by",
        "tenant(i), id(i), 'go', 'k' || i, i, i + 1000, '{}', 'source' || i, CASE WHEN i % 10 > 0 THEN id(i) END",
        4_000,
    ),
    ("signals_heard", "tenant_id, run_id, signal_id, position, at", "tenant(i), id(i), id(i), 1, i", 1_000),
    (
        "approvals",
        "tenant_id, approval_id, run_id, position, state, quorum, approvers, on_reject, on_expiry, requested_at,
         expires_at, excluded",
        "tenant(i), id(i), id(i), 1, CASE WHEN i % 10 = 0 THEN 'requested' ELSE 'approved' END, 1, '[]', 'fail',
         'fail', i, i + 1000, '[]'",
        2_000,
    ),
    ("votes", "tenant_id, approval_id, person, approve, at", "tenant(i), id(i), 'ada', 1, i", 2_000),
    (
        "receipts",
        "tenant_id, receipt_id, run_id, position, iteration, attempt, effect_key, effect, state, request, intent_at",
        "tenant(i), id(i), id(i), 1, 0, 1, 'e' || i, 'keyed', 'succeeded', '{}', i",
        2_000,
    ),
    (
        "outbox",
        "tenant_id, outbox_id, run_id, destination, payload, created_at, next_at, delivered_at",
        "tenant(i), id(i), id(i), 'hook', '{}', i, i, CASE WHEN i % 20 > 0 THEN i END",
        4_000,
    ),
    (
        "idempotency",
        "tenant_id, client, key, source, request_hash, state, run_id, created_at, updated_at, expires_at",
        "tenant(i), 'c', 'k' || i, 'api', id(i), 'completed', id(i), i, i, i + 1000",
        4_000,
    ),
    ("subjects", "tenant_id, subject, run_id", "tenant(i), 's' || i, id(i)", 1_000),
    (
        "subject_queue",
        "tenant_id, subject, run_id, cancels, queued_at",
        "tenant(i), 's' || (i % 100), id(i), 0, i",
        1_000,
    ),
    (
        "worker_sessions",
        "session_id, tenant_id, worker, queues, slots, state, registered_at, lease_expires_at, heartbeat_at",
        "id(i), tenant(i), 'w' || i, '[]', 8, 'online', i, i + 1000, i",
        100,
    ),
    ("lanes", "lane_id, server_id, opened_at", "i + 100, id(i), i", 8),
    ("feed_positions", "lane_id, group_no", "i + 100, 400", 8),
    ("commit_groups", "lane_id, group_no, at, entries", "i % 8 + 101, i, i, id(i)", 4_000),
    (
        "tenant_feed",
        "tenant_id, cursor_to, cursor_from, sealed_at, entries",
        "tenant(i), i * 10, i * 10 - 9, i, id(i)",
        4_000,
    ),
    ("successors", "tenant_id, run_id, continued_by", "tenant(i), id(i), id(i + 1)", 4_000),
    ("run_attrs", "tenant_id, name, value, run_id", "tenant(i), 'repo', 'r' || (i % 100), id(i)", 4_000),
    ("payloads", "tenant_id, owner, sha256, bytes, kept_at, sweeping", "tenant(i), id(i), hash(i), 70000, i, 0", 2_000),
    (
        "api_keys",
        "tenant_id, key_id, lookup, hash, name, client, roles, created_at",
        "tenant(i), id(i), 'l' || i, id(i), 'k' || i, 'c', '[]', i",
        2_000,
    ),
    (
        "users",
        "tenant_id, user_id, name, roles, groups, created_at",
        "tenant(i), id(i), 'u' || i, '[]', '[]', i",
        1_000,
    ),
    (
        "user_sessions",
        "tenant_id, token_hash, user_id, created_at, expires_at, last_used_at",
        "tenant(i), id(i), id(i), i, i + 1000, i",
        1_000,
    ),
    ("invites", "tenant_id, token_hash, created_at, expires_at", "tenant(i), id(i), i, i + 1000", 200),
    (
        "workflows",
        "tenant_id, name, revision, latest_version, created_at, updated_at",
        "tenant(i), 'w' || i, 1, 1, i, i",
        200,
    ),
    (
        "workflow_versions",
        "tenant_id, name, version, source, source_hash, definition, plan_hash, created_at",
        "tenant(i), 'w' || i, 1, '', hash(i), '{}', hash(i), i",
        200,
    ),
    (
        "slack_connections",
        "tenant_id, connection_id, team_id, channel, bot_token, secret, rung_prod_ms, rung_other_ms, fed_to, fed_at,
         created_at, secret_at",
        "tenant(i), id(i), 'T' || i, 'C' || i, 'b', 's', 1, 2, 0, i, i, i",
        50,
    ),
    (
        "slack_links",
        "tenant_id, enterprise_id, team_id, slack_user_id, person, linked_at, linked_by",
        "tenant(i), '', 'T', 'U' || i, 'p' || i, i, 'p' || i",
        2_000,
    ),
    (
        "slack_link_requests",
        "tenant_id, token_hash, enterprise_id, team_id, slack_user_id, slack_name, created_at, expires_at",
        "tenant(i), hash(i), '', 'T', 'U' || i, 'n', i, i + 1000",
        1_000,
    ),
    (
        "approval_cards",
        "tenant_id, approval_id, run_id, rung, rung_at, created_at",
        "tenant(i), id(i), id(i), 0, CASE WHEN i % 20 = 0 THEN i END, i",
        2_000,
    ),
    ("approval_notices", "tenant_id, approval_id, kind, begun_at", "tenant(i), id(i), 'card', i", 2_000),
    ("policies", "tenant_id, revision, latest_version, updated_at", "tenant(i), 1, 1, i", 50),
    ("policy_bundles", "tenant_id, version, hash, files, created_at", "tenant(i), i, hash(i), '{}', i", 200),
    (
        "decisions",
        "tenant_id, decision_id, run_id, position, iteration, attempt, operation, verdict, tier, action, bundle, evaluator,
         input, at",
        "tenant(i), id(i), id(i), 0, 0, 0, 'o', 'allow', 'low', hash(i), hash(i), 'e', '{}', i",
        2_000,
    ),
    (
        "audit_logs",
        "tenant_id, number, origin, epoch, key_id, opened_at, size, last_hash, peaks, checkpoint, feed_cursor, sealed_at",
        "tenant(i), 1, 'o', 1, hash(i), 1, 40, hash(i), hash(i), 'c', 100, i",
        50,
    ),
    (
        "audit_blocks",
        "tenant_id, number, last_entry, first_entry, prev_hash, bodies, salts, leaves, at_from, at_to, checkpoint",
        "tenant(i), 1, i, i, hash(i), '{}', hash(i), hash(i), i, i, 'c'",
        2_000,
    ),
    ("audit_tiles", "tenant_id, number, level, tile, hashes", "tenant(i), 1, 0, i, hash(i)", 400),
    ("audit_details", "tenant_id, number, entry, actor, details", "tenant(i), 1, i, 'ada', '{}'", 2_000),
    (
        "audit_notes",
        "tenant_id, note_id, at, initiator, actor, kind, subject, details",
        "tenant(i), id(i), i, 'user', 'ada', 'key.created', 'k', '{}'",
        400,
    ),
    ("evidence_due", "tenant_id, run_id, noted_at", "tenant(i), id(i), i", 400),
    (
        "evidence_bundles",
        "tenant_id, run_id, number, sha256, bytes, entries, made_at, body",
        "tenant(i), id(i), 0, hash(i), 100, 3, i, '{}'",
        400,
    ),
    (
        "bulk_jobs",
        "tenant_id, job_id, action, filter, reason, rollback, runs, total, created_at",
        "tenant(i), id(i), 'cancel', '{}', 'no', 0, id(i), 1, i",
        200,
    ),
    (
        "bulk_failures",
        "tenant_id, job_id, position, run_id, code, message",
        "tenant(i), id(i), 0, id(i), 'C', 'm'",
        200,
    ),
    (
        "schedules",
        "tenant_id, schedule_id, name, workflow, origin, cron, timezone, dst, overlap, catch_up_ms, jitter_ms, inputs,
         workspace, paused, done_at, next_at, revision, created_at, updated_at",
        "tenant(i), id(i), 's' || i, 'w', 'api', '* * * * *', 'UTC', 'skip', 'allow', 0, 0, '{}', 'main', 0, i, i, 1,
         i, i",
        200,
    ),
    ("schedule_slots", "tenant_id, schedule_id, slot_at, state, at", "tenant(i), id(i), i, 'started', i", 1_000),
    (
        "inbound_endpoints",
        "tenant_id, endpoint_id, name, source, secondary, paused, secret, created_at",
        "tenant(i), id(i), 'e' || i, 'generic', 0, 0, 'sealed', i",
        200,
    ),
    (
        "inbound_deliveries",
        "tenant_id, endpoint_id, key, event, payload, received_at",
        "tenant(i), id(i), 'k' || i, 'push', '{}', i",
        1_000,
    ),
    (
        "inbound_fingerprints",
        "tenant_id, endpoint_id, fingerprint, key, at",
        "tenant(i), id(i), id(i), 'k' || i, i",
        1_000,
    ),
    (
        "outbound_endpoints",
        "tenant_id, endpoint_id, url, secret, state, fed_to, fed_at, created_at",
        "tenant(i), id(i), 'https://example.org', 'sealed', 'enabled', 0, 0, i",
        200,
    ),
    ("outbound_attempts", "tenant_id, outbox_id, attempt, at, duration_ms", "tenant(i), id(i), 1, i, 5", 1_000),
    (
        "effect_holds",
        "tenant_id, identity, number, run_id, receipt_id, held_at",
        "tenant(i), id(i), 1, id(i), id(i), i",
        200,
    ),
    (
        "assignments",
        "tenant_id, run_id, session_id, attempt, worker, state, offered_at",
        "tenant(i), id(i), id(i), 1, 'w', 'acked', i",
        200,
    ),
    (
        "output",
        "tenant_id, run_id, position, attempt, stream_seq, chunk_type, data, at",
        "tenant(i), id(i), 0, 1, 1, 'stdout', id(i), i",
        200,
    ),
    (
        "output_heads",
        "tenant_id, run_id, position, attempt, next_seq, bytes, status_bytes, cut, began_at, last_at",
        "tenant(i), id(i), 0, 1, 2, 16, 0, 0, i, i",
        200,
    ),
];

pub fn sqlite() -> impl Iterator<Item = String> {
    fill(|number, digits| format!("printf('%0{digits}x', {number})"), |hex| format!("unhex({hex})"))
}

pub fn postgres() -> impl Iterator<Item = String> {
    fill(|number, digits| format!("lpad(to_hex({number}), {digits}, '0')"), |hex| format!("decode({hex}, 'hex')"))
}

/// The statements that fill the tables. `hex` writes a number as so many hexadecimal digits, `bytes` reads them.
fn fill(hex: fn(&str, u32) -> String, bytes: fn(&str) -> String) -> impl Iterator<Item = String> {
    let id = move |number: &str| bytes(&format!("'{:012x}' || {}", NOW.0, hex(number, 20)));
    let hash = move |number: &str| bytes(&hex(number, 64));
    let tenant = move |number: &str| bytes(&hex(&format!("({number}) % 50"), 32));
    ROWS.iter().map(move |(table, columns, values, count)| {
        let values = calls(&calls(&calls(values, "id", id), "tenant", tenant), "hash", hash);
        format!(
            "INSERT INTO {table} ({columns})
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT {values} FROM n"
        )
    })
}

/// Replaces every `name(…)` of a text by what is made of its argument.
fn calls(text: &str, name: &str, make: impl Fn(&str) -> String) -> String {
    let mut made = String::new();
    let mut rest = text;
    let call = format!("{name}(");
    while let Some(at) = rest.find(&call) {
        made.push_str(&rest[..at]);
        let inside = &rest[at + call.len()..];
        let mut depth = 1;
        let end = inside
            .find(|c: char| {
                depth += i32::from(c == '(') - i32::from(c == ')');
                depth == 0
            })
            .unwrap_or_else(|| panic!("{text} has no end"));
        made.push_str(&make(&inside[..end]));
        rest = &inside[end + 1..];
    }
    made + rest
}
