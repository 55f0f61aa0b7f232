//! What the writers of `run_live` put into which column, column by column: on each database a row is inserted, put and
//! advanced, each time with other values, and every column that `LIVE_COLUMNS` names is read back by its name.

use std::collections::BTreeMap;

use interlock_core::decide::Command;
use interlock_core::ids::{RunId, SessionId};
use interlock_core::run::Notes;
use interlock_core::run::change::{ChangeSet, LiveChange, LiveRow, StepData};
use interlock_core::state::{Control, Detail, Reason, RunState, StepState};
use interlock_core::time::Timestamp;
use interlock_store::StoreUrl;
use interlock_store::sql::live::LIVE_COLUMNS;
use uuid::Uuid;

use crate::harness::{NOW, StartOptions, TestDatabase, command, completion, fresh, start_set, tasks};

/// A row in which no two columns hold the same, and none holds what it holds in another round.
fn distinct(version: u64, round: u32) -> LiveRow {
    let number = |column: u32| round * 100 + column;
    let instant = |column: u32| Some(Timestamp(i64::from(number(column))));
    let round = round as usize - 1;
    LiveRow {
        version,
        control: [Control::Active, Control::Paused, Control::Canceling][round],
        state: [RunState::Running, RunState::WaitingApproval, RunState::WaitingSignal][round],
        detail: Some([Detail::SubjectBusy, Detail::Throttled, Detail::Orphaned][round]),
        reason: Some([Reason::Requested, Reason::Deadline, Reason::StepFailed][round]),
        position: number(1),
        step_state: [StepState::Ready, StepState::InDoubt, StepState::Failed][round],
        attempt: number(2),
        failures: number(3),
        iteration: number(4),
        workspace: format!("workspace {}", number(5)),
        queue: format!("queue {}", number(6)),
        priority: number(7) as i32,
        eligible_at: instant(8),
        session: Some(SessionId(Uuid::from_u128(u128::from(number(9))))),
        claimed_at: instant(10),
        step_timeout_at: instant(11),
        wake_at: instant(12),
        step_data: Some(StepData { ready_at: instant(13), ..StepData::default() }),
        notes: Some(Notes { writes: number(14), ..Notes::default() }),
    }
}

/// What a column of the row should hold, as text.
fn value(column: &str, row: &LiveRow) -> Option<String> {
    let instant = |at: Option<Timestamp>| at.map(|at| at.0.to_string());
    match column {
        "version" => Some(row.version.to_string()),
        "control" => Some(row.control.to_string()),
        "state" => Some(row.state.to_string()),
        "detail" => row.detail.map(|detail| detail.to_string()),
        "reason" => row.reason.map(|reason| reason.to_string()),
        "position" => Some(row.position.to_string()),
        "step_state" => Some(row.step_state.to_string()),
        "attempt" => Some(row.attempt.to_string()),
        "failures" => Some(row.failures.to_string()),
        "iteration" => Some(row.iteration.to_string()),
        "workspace" => Some(row.workspace.clone()),
        "queue" => Some(row.queue.clone()),
        "priority" => Some(row.priority.to_string()),
        "eligible_at" => instant(row.eligible_at),
        "session_id" => row.session.map(|session| session.0.simple().to_string()),
        "claimed_at" => instant(row.claimed_at),
        "step_timeout_at" => instant(row.step_timeout_at),
        "wake_at" => instant(row.wake_at),
        "step_data" => row.step_data.as_ref().map(|data| serde_json::to_string(data).unwrap()),
        "notes" => row.notes.as_ref().map(|notes| serde_json::to_string(notes).unwrap()),
        other => panic!("`{other}` is a new column: say here what it should hold"),
    }
}

/// The row as the database has it, every column by its name.
async fn stored(database: &TestDatabase, run: RunId) -> BTreeMap<String, Option<String>> {
    let (mut columns, mut found) = (Vec::new(), Vec::new());
    for column in LIVE_COLUMNS {
        columns.push(match (&database.url, column.kind) {
            (StoreUrl::Postgres(_), "bytea") => format!("encode({}, 'hex')", column.name),
            (_, "bytea") => format!("lower(hex({}))", column.name),
            _ => format!("CAST({} AS TEXT)", column.name),
        });
    }
    let id = run.0.simple();
    let list = columns.join(", ");
    if let StoreUrl::Postgres(url) = &database.url {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let sql = format!("SELECT {list} FROM run_live WHERE run_id = decode('{id}', 'hex')");
        let row = client.query_one(&sql, &[]).await.unwrap();
        found.extend((0..columns.len()).map(|index| row.get::<_, Option<String>>(index)));
    } else {
        let connection = rusqlite::Connection::open(database.path()).unwrap();
        let sql = format!("SELECT {list} FROM run_live WHERE run_id = x'{id}'");
        let read = |row: &rusqlite::Row<'_>| (0..columns.len()).map(|index| row.get(index)).collect();
        found = connection.query_row(&sql, [], read).unwrap();
    }
    LIVE_COLUMNS.iter().map(|column| column.name.to_owned()).zip(found).collect()
}

async fn every_column_is_written_by_its_name(database: &TestDatabase) {
    let world = database.world().await;
    let (mut run, mut change) = start_set(world.tenant, &tasks(2), StartOptions::default());
    let session = SessionId(fresh());
    let mut held: BTreeMap<String, Option<String>> = BTreeMap::new();
    for (round, how) in [(1, "inserted"), (2, "put"), (3, "advanced")] {
        let row = distinct(change.version(), round);
        let advances = how == "advanced";
        for column in LIVE_COLUMNS.iter().filter(|column| column.advances || !advances) {
            held.insert(column.name.to_owned(), value(column.name, &row));
        }
        // The run goes on as if its row said what it should.
        run.apply(&change);
        change.live = if advances { LiveChange::Advance(Box::new(row)) } else { LiveChange::Put(Box::new(row)) };
        let committed: Box<ChangeSet> = world.store.submit(change).await.unwrap();
        let found = stored(database, run.id).await;
        for (name, wanted) in &held {
            assert_eq!(&found[name], wanted, "`{name}`, {how}");
        }
        assert_eq!(committed.version(), run.version);
        change = match run.current().state() {
            StepState::Ready => command(&run, Command::Claim { session }, NOW),
            _ => completion(&run, NOW),
        };
    }
    world.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_column_is_written_by_its_name_on_sqlite() {
    every_column_is_written_by_its_name(&TestDatabase::file()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_column_is_written_by_its_name_on_postgres() {
    let database = TestDatabase::postgres().await;
    every_column_is_written_by_its_name(&database).await;
}

/// The description is the table, in its order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_description_is_the_table() {
    let database = TestDatabase::file();
    database.open().await.close().await;
    let connection = rusqlite::Connection::open(database.path()).unwrap();
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info('run_live') ORDER BY cid").unwrap();
    let table: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    let described: Vec<&str> =
        ["tenant_id", "run_id", "branch"].into_iter().chain(LIVE_COLUMNS.iter().map(|column| column.name)).collect();
    assert_eq!(table, described);
}
