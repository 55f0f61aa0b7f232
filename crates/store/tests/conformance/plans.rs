//! How the hot statements are executed, as snapshots: a plan that changes is seen in review, not in production.
//!
//! The tables are filled and analysed, so that the planners have a choice. SQLite is never analysed by the server, so
//! its plan without statistics is the one that counts; where statistics would change it, both are shown. PostgreSQL is
//! explained under the settings of the connection that executes the statement (committer or reader) as a generic plan.
//! Of its plans only the nodes and what is looked up in an index are kept: the rest is worded differently by its
//! releases, and the names of weeks change with the calendar. The snapshots are PostgreSQL 15's, which `scripts/need`
//! installs.

use std::collections::HashMap;
use std::fmt::Write as _;

use interlock_store::sql::{self, Stmt};
use interlock_store::statements::all_statements;
use interlock_store::{EnsurePartitions, StoreUrl};
use rusqlite::Connection;

use crate::filled;
use crate::harness::{NOW, TestDatabase, World};

/// What is asked at every claim, completion, timer, seal and look at one run, beside what `sql::hot` and `sql::side`
/// write.
const HOT_READS: &[&str] = &[
    "RUN_LOAD",
    "RUNS_LOAD",
    "RUN_DONE",
    "RUN_ADDED",
    "PLAN_GET",
    "READY_HEADS",
    "READY_FIRST",
    "READY_LOWER",
    "READY_NEXT",
    "READY_RUNS",
    "ELIGIBLE_NEXT",
    "DUE_RUNS",
    "NEXT_WAKE",
    "LOST_CLAIMS",
    "TIMED_OUT",
    "CLAIMS_OF",
    "TENANT_GET",
    "IDEMPOTENCY_GET",
    "SUBJECT_GET",
    "SUBJECT_QUEUED",
    "WAITS_OPEN",
    "SIGNALS_PENDING",
    "EVENTS",
    "FEED_READ",
    "FEED_LAST",
    "FEED_EVENTS",
    "RUN_ONE",
    "OUTBOX_DUE",
    "NEXT_OUTBOX",
    "APPROVAL_ONE",
    "RECEIPT_KEYED",
    "PAYLOAD_BYTES",
    "KEY_FIND",
];

/// What belongs to no run and is still written all the time.
const HOT_OPS: &[&str] = &[
    "SESSION_RENEW",
    "SIGNAL_INSERT",
    "SUBJECT_LOCK",
    "OUTBOX_DELIVERED",
    "IDEMPOTENCY_BEGIN",
    "IDEMPOTENCY_FINISH",
    "SEAL_READ",
    "SEAL_POSITION",
    "SEAL_CURSOR",
    "FEED_INSERT",
    "PAYLOAD_SWEEPING",
    "PAYLOAD_KEEP",
];

/// Tables with a row for each tenant, session or lane: to read one of them whole is no scan of runs.
const SMALL: &[&str] = &["tenants", "worker_sessions", "lanes", "feed_positions", "meta"];

/// The same on SQLite, which shows their aliases.
const SMALL_ALIASES: &[(&str, &str)] = &[("SEAL_READ", "SCAN l"), ("CLAIMS_OF", "SCAN t")];

/// Indexes that hold only what is live or due: one may be read from its beginning.
const LIVE_ONLY: &[&str] = &["run_live_ready", "run_live_claims", "run_live_timers", "outbox_due"];

fn hot_statements() -> impl Iterator<Item = &'static Stmt> {
    let named = |stmt: &&'static Stmt| HOT_READS.contains(&stmt.name) || HOT_OPS.contains(&stmt.name);
    sql::hot::ALL.iter().chain(sql::side::ALL).copied().chain(all_statements().filter(named))
}

fn section(report: &mut String, title: &str, plan: &[String]) {
    writeln!(report, "{title}").unwrap();
    for line in plan {
        writeln!(report, "  {line}").unwrap();
    }
    if plan.is_empty() {
        writeln!(report, "  writes, and looks for nothing").unwrap();
    }
    writeln!(report).unwrap();
}

fn sqlite_plan(connection: &Connection, stmt: &Stmt) -> Vec<String> {
    let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", stmt.sqlite)).unwrap();
    let nulls = vec![rusqlite::types::Value::Null; explain.parameter_count()];
    let mut depths: HashMap<i64, usize> = HashMap::new();
    let lines = explain.query_map(rusqlite::params_from_iter(nulls), |row| {
        let (id, parent, detail): (i64, i64, String) = (row.get(0)?, row.get(1)?, row.get(3)?);
        let depth = depths.get(&parent).map_or(0, |depth| depth + 1);
        depths.insert(id, depth);
        Ok(format!("{}{detail}", "  ".repeat(depth)))
    });
    lines.unwrap().collect::<Result<_, _>>().unwrap()
}

/// Whether a line of a plan reads a whole table that is not small, or a whole index that holds more than what is live.
fn sqlite_scans(stmt: &Stmt, plan: &[String], line: &str) -> bool {
    let line = line.trim_start();
    let Some(scanned) = line.strip_prefix("SCAN ") else { return false };
    let is_subquery =
        |above: &String| ["CO-ROUTINE", "MATERIALIZE"].iter().any(|word| above.trim() == format!("{word} {scanned}"));
    let made_here =
        plan.iter().any(is_subquery) || ["CONSTANT ROW", "(subquery"].iter().any(|word| scanned.contains(word));
    let live_only = LIVE_ONLY.iter().any(|index| scanned.ends_with(&format!("INDEX {index}")));
    !made_here && !live_only && !SMALL_ALIASES.contains(&(stmt.name, line))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_plans_are_those_on_record() {
    let database = TestDatabase::file();
    database.world().await.store.close().await;
    let connection = Connection::open(database.path()).unwrap();
    // As the server sets it: a plan does not depend on the values that are bound.
    connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).unwrap();
    connection.execute_batch("DELETE FROM tenants; DELETE FROM lanes; BEGIN").unwrap();
    for statement in filled::sqlite() {
        connection.execute_batch(&statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    connection.execute_batch("COMMIT").unwrap();
    let statements: Vec<_> = hot_statements().filter(|stmt| !stmt.sqlite.is_empty()).collect();
    let plain: Vec<_> = statements.iter().map(|stmt| sqlite_plan(&connection, stmt)).collect();
    // A connection reads the statistics when it opens the file.
    connection.execute_batch("ANALYZE").unwrap();
    drop(connection);
    let connection = Connection::open(database.path()).unwrap();
    let mut report = String::new();
    for (stmt, plain) in statements.iter().zip(plain) {
        let analysed = sqlite_plan(&connection, stmt);
        section(&mut report, stmt.name, &plain);
        if analysed != plain {
            section(&mut report, &format!("{}, with statistics", stmt.name), &analysed);
        }
        for plan in [&plain, &analysed] {
            assert!(!plan.iter().any(|line| sqlite_scans(stmt, plan, line)), "{} scans: {plan:#?}", stmt.name);
        }
    }
    insta::assert_snapshot!("sqlite", report);
}

fn postgres_scans(line: &str) -> bool {
    let table = line.split_once("Seq Scan on ").and_then(|(_, rest)| rest.split_whitespace().next());
    table.is_some_and(|table| !SMALL.contains(&table))
}

/// The nodes of a plan, and what they look up.
fn postgres_shape(plan: impl Iterator<Item = String>) -> Vec<String> {
    let is_node = |line: &str| ["->", "SubPlan", "InitPlan", "CTE "].iter().any(|start| line.starts_with(start));
    let kept = plan.enumerate().filter(|(index, line)| {
        let line = line.trim_start();
        *index == 0 || is_node(line) || line.starts_with("Index Cond:") || line.starts_with("TID Cond:")
    });
    kept.map(|(_, line)| {
        // Until release 16 it says where the result goes: `InitPlan 1 (returns $0)`.
        let line = line.split(" (returns ").next().unwrap_or_default();
        let mut parts = line.split("journal_w");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| text + "journal_w…" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
    })
    .collect()
}

async fn postgres_plan(client: &tokio_postgres::Client, stmt: &Stmt) -> Vec<String> {
    let prepared = client.prepare(stmt.postgres).await.unwrap();
    let name = format!("explained_{}", stmt.name.to_lowercase());
    client.batch_execute(&format!("PREPARE {name} AS {}", stmt.postgres)).await.unwrap();
    // Values, because the partitions that a value rules out are left out of the plan.
    let values = prepared.params().iter().map(|kind| match kind.name() {
        "bytea" => format!("'\\x{:012x}{:020x}'", NOW.0, 7),
        "int8" => "1".to_owned(),
        "text" => "'x'".to_owned(),
        _ => "NULL".to_owned(),
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let call = if values.is_empty() { name } else { format!("{name}({values})") };
    let rows = client.simple_query(&format!("EXPLAIN (COSTS OFF) EXECUTE {call}")).await.unwrap();
    postgres_shape(rows.iter().filter_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_plans_are_those_on_record() {
    let database = TestDatabase::postgres().await;
    let World { store, .. } = database.world().await;
    store.write(EnsurePartitions { now: NOW }).await.unwrap();
    store.close().await;
    let StoreUrl::Postgres(url) = &database.url else { panic!("not PostgreSQL") };
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("DELETE FROM tenants; DELETE FROM lanes").await.unwrap();
    for statement in filled::postgres() {
        client.batch_execute(&statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    client.batch_execute("VACUUM ANALYZE").await.unwrap();
    let mut report = String::new();
    for stmt in hot_statements().filter(|stmt| !stmt.postgres.is_empty()) {
        let reads = HOT_READS.contains(&stmt.name);
        let settings = if reads { sql::READER_SETTINGS } else { sql::COMMITTER_SETTINGS };
        client.batch_execute("RESET ALL").await.unwrap();
        client.batch_execute(settings).await.unwrap();
        // A custom plan holds the values of one call.
        client.batch_execute("SET plan_cache_mode = force_generic_plan").await.unwrap();
        let plan = postgres_plan(&client, stmt).await;
        section(&mut report, stmt.name, &plan);
        assert!(!plan.iter().any(|line| postgres_scans(line)), "{} scans: {plan:#?}", stmt.name);
    }
    insta::assert_snapshot!("postgres", report);
}
