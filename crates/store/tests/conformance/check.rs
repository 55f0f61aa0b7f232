//! What `check` finds: rows are broken by hand, one kind after the other, and each must be named.

use interlock_core::decide::Queued;
use interlock_core::ids::SessionId;
use interlock_core::state::WorkerState;
use interlock_core::time::Millis;
use interlock_store::{RegisterSession, Seal, SessionRow, StoreUrl, TABLE_KEY};

use crate::harness::{NOW, StartOptions, TestDatabase, World, admin, fresh, tasks};

/// A statement, and what it makes `check` say.
const BREAKS: &[(&str, &str)] = &[
    ("UPDATE run_live SET state = 'paused' WHERE step_state = 'ready'", "RUN_STATE"),
    ("UPDATE run_live SET session_id = NULL WHERE step_state = 'running'", "CHECK_CLAIM"),
    ("UPDATE run_live SET eligible_at = NULL WHERE step_state = 'ready'", "CHECK_ELIGIBLE"),
    ("UPDATE run_live SET version = version + 1 WHERE step_state = 'running'", "CHECK_VERSION"),
    ("UPDATE journal SET first_seq = first_seq + 1 WHERE first_seq = 3", "CHECK_JOURNAL_DENSE"),
    ("UPDATE journal SET events = '[{\"event\":\"nonsense\"}]' WHERE first_seq = 1", "EVENTS_READABLE"),
    ("DELETE FROM subjects", "CHECK_ACTIVE"),
    ("DELETE FROM subject_queue", "CHECK_QUEUED"),
    (
        "INSERT INTO waits (tenant_id, run_id, position, type, key, accept_from, opened_at)
      SELECT tenant_id, run_id, 0, 'go', 'k', 0, 0 FROM run_live WHERE step_state = 'ready'",
        "CHECK_WAIT",
    ),
    (
        "INSERT INTO votes (tenant_id, approval_id, person, approve, at) SELECT tenant_id, run_id, 'anna', 1, 0 FROM runs",
        "CHECK_VOTE",
    ),
    (
        "INSERT INTO receipts (tenant_id, receipt_id, run_id, position, iteration, attempt, effect_key, effect, state,
      request, intent_at) SELECT tenant_id, run_id, run_id, 0, 0, 1, 'key', 'unsafe', 'intent', '{}', 0 FROM runs
      WHERE state = 'succeeded'",
        "CHECK_INTENT",
    ),
    ("UPDATE receipts SET state = 'in_doubt'", "CHECK_OPEN_EFFECT"),
    ("UPDATE receipts SET outcome_at = 1", "CHECK_OUTCOME"),
    ("UPDATE tenant_feed SET cursor_from = cursor_from + 1 WHERE cursor_from > 1", "FEED"),
    ("UPDATE runs SET finished_at = NULL WHERE state = 'succeeded'", "CHECK_ENDED"),
    (
        "DELETE FROM worker_sessions; UPDATE run_live SET session_id = run_id WHERE step_state = 'running'",
        "CHECK_SESSION",
    ),
    ("DELETE FROM runs WHERE state = 'succeeded'", "CHECK_JOURNAL_RUN"),
    ("DELETE FROM plans", "CHECK_PLAN"),
    ("DELETE FROM tenants", "CHECK_TENANT"),
    ("DELETE FROM runs", "CHECK_LIVE_WITHOUT_RUN"),
];

async fn alter(database: &TestDatabase, sql: &str) {
    match &database.url {
        StoreUrl::Postgres(url) => admin(url, sql).await,
        StoreUrl::Sqlite(path) => rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap(),
        StoreUrl::SqliteMemory(name) => panic!("{name} is out of reach"),
    }
}

/// A run that ended, one that is running, one that is ready and holds a subject, one that queues for it.
async fn populate(world: &World) {
    let session = SessionId(fresh());
    let row = SessionRow {
        id: session,
        tenant: None,
        worker: "w".to_owned(),
        build_id: None,
        queues: vec!["default".to_owned()],
        slots: 1,
        state: WorkerState::Online,
        registered_at: NOW,
        lease_expires_at: NOW + Millis::from_hours(1),
        heartbeat_at: NOW,
        tasks: Some(vec!["work".to_owned()]),
        capabilities: None,
        identity: None,
        terms: None,
        unlisted: Vec::new(),
        fault: None,
        lost: None,
        maintenance: None,
        labels: std::collections::BTreeMap::new(),
    };
    world.store.write(RegisterSession(row)).await.unwrap();
    let mut ended = world.start(&tasks(2), StartOptions::default()).await;
    world.finish(&mut ended, session).await;
    world.store.write(Seal { now: NOW, limit: 100 }).await.unwrap();
    let mut running = world.start(&tasks(2), StartOptions::default()).await;
    world.claim(&mut running, session).await;
    let subject = || Some("ticket".to_owned());
    world.start(&tasks(1), StartOptions { subject: subject(), ..StartOptions::default() }).await;
    let queued = Some(Queued { cancels: false });
    world.start(&tasks(1), StartOptions { subject: subject(), queued, ..StartOptions::default() }).await;
    world.store.write(Seal { now: NOW, limit: 100 }).await.unwrap();
}

async fn broken_rows_are_named(database: &TestDatabase) {
    let world = database.world().await;
    populate(&world).await;
    assert_eq!(world.store.check().await.unwrap(), []);
    for (sql, check) in BREAKS {
        alter(database, sql).await;
        let found = world.store.check().await.unwrap();
        assert!(found.iter().any(|finding| finding.check == *check), "{check} does not see `{sql}`: {found:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_rows_are_named_in_a_file() {
    broken_rows_are_named(&TestDatabase::file()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_rows_are_named_on_postgres() {
    let database = TestDatabase::postgres().await;
    broken_rows_are_named(&database).await;
}

/// As a dump leaves it of which only the tables and their rows were loaded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_without_its_key_is_named() {
    let database = TestDatabase::postgres().await;
    let world = database.world().await;
    populate(&world).await;
    for table in ["receipts", "plans"] {
        alter(&database, &format!("ALTER TABLE {table} DROP CONSTRAINT {table}_pkey")).await;
    }
    let found = world.store.check().await.unwrap();
    let named: Vec<_> = found.iter().map(|finding| (finding.check, finding.row.as_str())).collect();
    assert_eq!(named, [(TABLE_KEY, "plans"), (TABLE_KEY, "receipts")]);
    assert!(found[0].what.contains("was loaded in part"), "{found:?}");
}

/// Ten of a kind or ten thousand: the list is short, and says how much it leaves out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_list_says_how_long_it_is() {
    let database = TestDatabase::file();
    let world = database.world().await;
    for _ in 0..103 {
        world.start(&tasks(1), StartOptions::default()).await;
    }
    alter(&database, "UPDATE run_live SET eligible_at = NULL").await;
    let mut found = world.store.check().await.unwrap();
    found.retain(|finding| finding.check == "CHECK_ELIGIBLE");
    assert_eq!(found.len(), 101, "{found:?}");
    assert_eq!(found[100].row, "and 3 more");
}
