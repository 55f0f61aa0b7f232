//! Every statement is prepared on both databases, and the hot ones are explained.

use interlock_store::sql::Stmt;
use interlock_store::statements::all_statements;

use crate::harness::{TestDatabase, World};

/// Statements that look at all live claims, sessions, lanes or tenants on purpose: these are few.
const SCANS: &[&str] = &[
    "UNSEALED",
    "AUDIT_BEHIND",
    "EVIDENCE_DUE",
    "SESSIONS",
    "SESSIONS_OF_WORKER",
    "USER_ALIKE",
    "TENANTS",
    // Two rows are enough.
    "TENANTS_ENABLED",
    "TENANTS_ANY",
    "LAST_COMMIT",
    "UNPARKED_LIST",
    "UNPARKED_CLEAR",
    "STATS",
    "LIVE_BY_STATE",
    "LIVE_BY_TENANT",
    "BULK_OPEN",
    "SESSIONS_EXPIRE",
    "SWEEP_SESSIONS",
    "LANE_INSERT",
    "SEAL_READ",
    "SEAL_HEADS",
    "SWEEP_GROUPS",
    "LOST_CLAIMS",
    "LOST_ASSIGNMENTS",
    "ORPHANS_COUNT",
    "TIMED_OUT",
    "CLAIMS_OF",
    "UNMATCHED",
    "SUBJECTS_UNTENDED",
    "READY_FIRST",
    "NEXT_WAKE",
    "NEXT_OUTBOX",
    "SERVER_TIME",
    "SWEEP_FEED",
    "STEPS",
    "OUTBOUNDS_FED",
    "SLACK_ALL",
    "SCHEDULES_NEXT",
    "PAYLOADS_TOTAL",
    "LANES_FIRST_SEEN",
    "LANES_GONE",
    // Of the database's own tables, when a store is opened or restored.
    "TABLES_HERE",
    "SERVICE_HOLDERS",
    "OTHER_CONNECTIONS",
    // Of the list that it is given.
    "READY_RUNS_OTHER",
    // Of the rows that they have read by an index, of which there is a most.
    "RUN_STATS",
    "RUN_STATS_WORKFLOW",
    "LIVE_STATS",
    "APPROVAL_STATS",
    "OPEN_APPROVAL_STATS",
];

/// The index that a statement has to use, on either database: a plan without a scan can still read a whole tenant.
/// PostgreSQL names a primary key after its table; SQLite says PRIMARY KEY or names the automatic index.
const USES: &[(&str, &str)] = &[
    ("LIVE_PUT", "run_live_pkey"),
    ("LIVE_ADVANCE", "run_live_pkey"),
    ("LIVE_DELETE", "run_live_pkey"),
    ("SEAL_READ", "commit_groups_pkey"),
    ("SEAL_HEADS", "commit_groups_pkey"),
    ("RUN_END", "runs_pkey"),
    ("RUN_LOAD", "run_live_pkey"),
    ("RUN_DONE", "journal"),
    ("ATTEMPT_OUTPUT", "journal"),
    ("READY_HEADS", "run_live_ready"),
    ("READY_LOWER", "run_live_ready"),
    ("READY_NEXT", "run_live_ready"),
    ("READY_RUNS", "run_live_ready"),
    ("READY_RUNS_OTHER", "run_live_ready"),
    ("WORKFLOW_CLAIMS", "run_live_claims"),
    ("WORKFLOW_USAGE", "run_live_claims"),
    ("ELIGIBLE_NEXT", "run_live_ready"),
    ("DUE_RUNS", "run_live_timers"),
    ("CLAIMS_COUNT", "run_live_claims"),
    ("CLAIMS_OF", "run_live_claims"),
    ("HOLDS_BEFORE", "effect_holds"),
    ("ASSIGNMENTS_OF", "assignments_live"),
    ("ASSIGNED_TO", "assignments_live"),
    ("LOST_ASSIGNMENTS", "assignments_live"),
    ("LIST_WORKFLOW", "runs_by_workflow"),
    ("LIST_SUBJECT", "runs_by_subject"),
    ("LIST_TRIGGER", "runs_by_trigger"),
    ("LIST_ATTR", "run_attrs_pkey"),
    ("LIST_LIVE", "run_live_pkey"),
    ("RUN_STATS", "runs_pkey"),
    ("RUN_STATS_WORKFLOW", "runs_by_workflow"),
    ("LIVE_STATS", "run_live_pkey"),
    ("APPROVAL_STATS", "approvals_pkey"),
    ("OPEN_APPROVAL_STATS", "approvals_by_state"),
    ("WAITS_LIST", "waits_by_key"),
    ("WAITS_OF_TYPE", "waits_by_key"),
    ("WAITS_OF_KEY", "waits_by_key"),
    ("BULK_OPEN", "bulk_jobs_open"),
    ("BULK_ONE", "bulk_jobs_pkey"),
    ("WAITS_OPEN", "waits_by_key"),
    ("SIGNALS_PENDING", "signals_pending"),
    ("SIGNAL_NAMED", "signals_named"),
    ("SIGNAL_OF_NAME", "signals_named"),
    ("SIGNAL_NAMED_BEFORE", "signals_source"),
    ("OUTBOX_DUE", "outbox_due"),
    ("SLACK_AT", "slack_connections_by_id"),
    ("SLACK_LINK_OF", "slack_links_person"),
    ("SLACK_LINKS", "slack_links_person"),
    ("CARDS_DUE", "approval_cards_due"),
    ("OUTBOX_DEAD", "outbox_dead"),
    ("OUTBOX_DUE_AT", "outbox_waiting"),
    ("OUTBOX_DESTINATIONS", "outbox_waiting"),
    ("OUTBOX_DESTINATION_NEXT", "outbox_waiting"),
    ("SCHEDULES_DUE", "schedules_due"),
    ("SCHEDULES", "schedules_by_name"),
    ("SLOTS_QUEUED", "schedule_slots"),
    ("INBOUND_GET", "inbound_endpoints_by_id"),
    ("DELIVERIES_DUE", "inbound_deliveries_due"),
    ("DELIVERIES", "inbound_deliveries_recent"),
    ("MESSAGES", "outbox_by_destination"),
    ("MESSAGES_BETWEEN", "outbox_by_destination"),
    ("ATTEMPTS", "outbox_by_destination"),
    ("ATTEMPTS", "outbound_attempts_pkey"),
    ("PLANS_OLD", "plans_by_use"),
    ("PLAN_RUN", "runs_by_workflow"),
    ("OUTPUT_AFTER", "output_pkey"),
    ("OUTPUT_OF_ATTEMPT", "output_pkey"),
    ("OUTPUT_HEADS", "output_heads_pkey"),
];

/// The names of the indexes that a statement has to use.
fn wanted(stmt: &Stmt) -> impl Iterator<Item = &'static str> {
    USES.iter().filter(move |(name, _)| *name == stmt.name).map(|(_, index)| *index)
}

fn is_check(stmt: &Stmt) -> bool {
    stmt.name.starts_with("CHECK_")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_prepares_all_and_scans_nothing() {
    let database = TestDatabase::file();
    let World { store, .. } = database.world().await;
    store.close().await;
    let connection = rusqlite::Connection::open(database.path()).unwrap();
    for stmt in all_statements().filter(|stmt| !stmt.sqlite.is_empty()) {
        let prepared = connection.prepare(stmt.sqlite).unwrap_or_else(|error| panic!("{}: {error}", stmt.name));
        drop(prepared);
        if is_check(stmt) {
            continue;
        }
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", stmt.sqlite)).unwrap();
        let parameters = explain.parameter_count();
        let nulls = vec![rusqlite::types::Value::Null; parameters];
        let plan: Vec<String> = explain
            .query_map(rusqlite::params_from_iter(nulls), |row| row.get(3))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let scans: Vec<_> = plan
            .iter()
            .filter(|line| line.starts_with("SCAN") && !line.contains("CONSTANT ROW") && !line.contains("SCAN p"))
            .collect();
        assert!(scans.is_empty() || SCANS.contains(&stmt.name), "{} scans: {plan:#?}", stmt.name);
        for index in wanted(stmt) {
            let used = match index.strip_suffix("_pkey") {
                Some(table) => {
                    let automatic = format!("sqlite_autoindex_{table}_1");
                    plan.iter().any(|line| line.contains("USING PRIMARY KEY") || line.contains(&automatic))
                }
                None => plan.iter().any(|line| line.contains(index)),
            };
            assert!(used, "{} does not use {index}: {plan:#?}", stmt.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_prepares_all_and_scans_nothing() {
    let database = TestDatabase::postgres().await;
    let World { store, .. } = database.world().await;
    let url = match &database.url {
        interlock_store::StoreUrl::Postgres(url) => url.clone(),
        other => panic!("{other}"),
    };
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    // The committer's settings: with an index to use, nothing else is chosen.
    client
        .batch_execute(
            "SET plan_cache_mode = force_generic_plan; SET enable_hashjoin = off; SET enable_mergejoin = off;
             SET enable_seqscan = off; SET enable_bitmapscan = off",
        )
        .await
        .unwrap();
    for stmt in all_statements().filter(|stmt| !stmt.postgres.is_empty()) {
        let prepared = client.prepare(stmt.postgres).await.unwrap_or_else(|error| panic!("{}: {error:?}", stmt.name));
        if is_check(stmt) {
            continue;
        }
        let name = format!("explained_{}", stmt.name.to_lowercase());
        client.batch_execute(&format!("PREPARE {name} AS {}", stmt.postgres)).await.unwrap();
        let nulls = vec!["NULL"; prepared.params().len()].join(", ");
        let call = if nulls.is_empty() { name.clone() } else { format!("{name}({nulls})") };
        let rows = client.simple_query(&format!("EXPLAIN EXECUTE {call}")).await.unwrap();
        let plan: Vec<String> = rows
            .iter()
            .filter_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            })
            .collect();
        let scans = plan.iter().any(|line| line.contains("Seq Scan"));
        assert!(!scans || SCANS.contains(&stmt.name), "{} scans: {plan:#?}", stmt.name);
        for index in wanted(stmt) {
            assert!(plan.iter().any(|line| line.contains(index)), "{} does not use {index}: {plan:#?}", stmt.name);
        }
        if ["LIVE_PUT", "LIVE_ADVANCE", "LIVE_DELETE", "RUN_END"].contains(&stmt.name) {
            assert!(plan.iter().any(|line| line.contains("Tid Scan")), "{}: {plan:#?}", stmt.name);
        }
    }
    store.close().await;
}

/// Both databases have the same tables with the same columns, whatever each calls its types.
/// SQLite makes a temporary table for an `IN` with more than two values, also for one in a CHECK, at each execution.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writing_makes_no_temporary_tables_on_sqlite() {
    let file = TestDatabase::file();
    file.open().await.close().await;
    let connection = rusqlite::Connection::open(file.path()).unwrap();
    let writes = interlock_store::sql::hot::ALL.iter().chain(interlock_store::sql::side::ALL);
    // A start that queues reads the queue that it writes; it is rare.
    for stmt in writes.filter(|stmt| !stmt.sqlite.is_empty() && stmt.name != "SUBJECT_QUEUE") {
        let mut explained = connection.prepare(&format!("EXPLAIN {}", stmt.sqlite)).unwrap();
        let opcodes: Vec<String> = explained.raw_query().mapped(|row| row.get(1)).collect::<Result<_, _>>().unwrap();
        assert!(!opcodes.iter().any(|opcode| opcode == "OpenEphemeral"), "{} makes a temporary table", stmt.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_schema_is_one() {
    use std::collections::BTreeSet;
    let file = TestDatabase::file();
    file.open().await.close().await;
    let connection = rusqlite::Connection::open(file.path()).unwrap();
    let mut statement = connection
        .prepare(
            "SELECT m.name, c.name, c.type, c.\"notnull\" FROM sqlite_schema m, pragma_table_info(m.name) c
             WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE '%_readable'",
        )
        .unwrap();
    let is_view = |name: &str| name == "steps" || name == "run_overview";
    let sqlite: BTreeSet<(String, String, String)> = statement
        .query_map([], |row| {
            let (table, column, kind): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let kind = match kind.as_str() {
                _ if is_view(&table) => "",
                "INTEGER" | "BIGINT" => "bigint",
                "BLOB" => "bytea",
                _ => "text",
            };
            let needed = if is_view(&table) || row.get::<_, i64>(3)? == 0 { "" } else { " not null" };
            Ok((table, column, format!("{kind}{needed}")))
        })
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();

    let database = TestDatabase::postgres().await;
    database.open().await.close().await;
    let interlock_store::StoreUrl::Postgres(url) = &database.url else { panic!("not PostgreSQL") };
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let rows = client
        .query(
            "SELECT table_name::text, column_name::text, data_type::text, is_nullable::text
             FROM information_schema.columns WHERE table_schema = 'public' AND table_name NOT LIKE '%\\_readable'
             AND table_name NOT LIKE 'journal\\_%'",
            &[],
        )
        .await
        .unwrap();
    let postgres: BTreeSet<(String, String, String)> = rows
        .iter()
        .map(|row| {
            let (table, column, kind): (String, String, String) = (row.get(0), row.get(1), row.get(2));
            let needed = if is_view(&table) || row.get::<_, &str>(3) == "YES" { "" } else { " not null" };
            let kind = if is_view(&table) { String::new() } else { kind };
            (table, column, format!("{kind}{needed}"))
        })
        .collect();
    assert_eq!(sqlite.difference(&postgres).collect::<Vec<_>>(), Vec::<&(String, String, String)>::new());
    assert_eq!(postgres.difference(&sqlite).collect::<Vec<_>>(), Vec::<&(String, String, String)>::new());
}
