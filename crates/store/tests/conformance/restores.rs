//! Restores: no server is at work meanwhile, no second restore, and nothing is brought into service twice by mistake.

use std::path::{Path, PathBuf};

use interlock_store::{FinishRestore, OpenError, RestoreLock, StagedBackup, Store, StoreUrl};

use crate::harness::{NOW, StartOptions, TestDatabase, admin, options, tasks};

async fn restore(database: &TestDatabase) -> Result<u64, OpenError> {
    interlock_store::restore(None, &database.url, options()).await
}

async fn refused(database: &TestDatabase) -> OpenError {
    restore(database).await.expect_err("it is refused")
}

/// A store on PostgreSQL that no server works on, as its tools have brought it back.
async fn loaded() -> TestDatabase {
    let database = TestDatabase::postgres().await;
    let world = database.world().await;
    world.start(&tasks(1), StartOptions::default()).await;
    world.store.close().await;
    database
}

fn address(database: &TestDatabase) -> &str {
    match &database.url {
        StoreUrl::Postgres(url) => url,
        other => panic!("{other} is not PostgreSQL"),
    }
}

async fn finish(database: &TestDatabase, epoch: u64) {
    let store = database.open().await;
    store.write(FinishRestore { epoch, now: NOW, unparked: Vec::new() }).await.unwrap();
    store.close().await;
}

/// The epoch, and that of a restore which is not finished.
async fn epochs(database: &TestDatabase) -> (u64, Option<u64>) {
    let store = database.open().await;
    let found = (store.epoch().await.unwrap(), store.restoring().await.unwrap());
    store.close().await;
    found
}

/// Does to the store's notes what loading a dump of it does: the same rows, written by another transaction.
async fn load_again(database: &TestDatabase) {
    let sql = "CREATE TABLE dumped AS SELECT * FROM meta; TRUNCATE meta; INSERT INTO meta SELECT * FROM dumped; DROP TABLE dumped";
    admin(address(database), sql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_restores_of_one_database_do_not_run_at_once() {
    let database = loaded().await;
    let first = RestoreLock::take(&database.url, options()).await.unwrap();
    let other = refused(&database).await;
    assert!(matches!(other, OpenError::BeingRestored { .. }), "{other}");
    let name = format!("interlock db restore, process {}", std::process::id());
    assert!(other.to_string().contains(&name), "{other}");
    assert_eq!((first.begun(), first.begin(None, false).await.unwrap()), (None, 2));
    assert!(matches!(refused(&database).await, OpenError::BeingRestored { .. }), "also once the mark is set");
    first.release().await;
    assert_eq!(epochs(&database).await, (2, Some(2)), "one of them has raised the epoch");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_of_a_database_goes_on_where_it_stopped_and_is_not_done_twice() {
    let database = loaded().await;
    assert_eq!(restore(&database).await.unwrap(), 2);
    let interrupted = RestoreLock::take(&database.url, options()).await.unwrap();
    assert_eq!(interrupted.begun(), Some(2));
    assert_eq!(interrupted.begin(None, false).await.unwrap(), 2, "the same restore");
    interrupted.release().await;
    finish(&database, 2).await;

    // Right after it, and when servers have worked on the store since.
    for _ in 0..2 {
        let done = refused(&database).await;
        assert!(matches!(done, OpenError::AlreadyRestored { epoch: 2 }), "{done}");
        assert!(done.to_string().contains("--again"), "{done}");
        assert_eq!(epochs(&database).await, (2, None), "nothing was raised, and nothing is to be parked");
        let world = database.world().await;
        world.start(&tasks(1), StartOptions::default()).await;
        world.store.close().await;
    }
    let asked_for = RestoreLock::take(&database.url, options()).await.unwrap();
    assert_eq!((asked_for.begun(), asked_for.begin(None, true).await.unwrap()), (None, 3));
    asked_for.release().await;
    assert_eq!(epochs(&database).await, (3, Some(3)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_of_a_restored_store_is_restored_anew() {
    let database = loaded().await;
    assert_eq!(restore(&database).await.unwrap(), 2);
    // The dump was made in the middle of that restore: its mark is not of the one that is to come.
    load_again(&database).await;
    let lock = RestoreLock::take(&database.url, options()).await.unwrap();
    assert_eq!((lock.begun(), lock.begin(None, false).await.unwrap()), (None, 3));
    lock.release().await;
    finish(&database, 3).await;
    // And this one after the restore was finished.
    load_again(&database).await;
    assert_eq!(restore(&database).await.unwrap(), 4);
    assert_eq!(epochs(&database).await, (4, Some(4)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_was_brought_back_to_an_earlier_time_is_restored_anew_and_once() {
    let database = loaded().await;
    assert_eq!(restore(&database).await.unwrap(), 2);
    finish(&database, 2).await;
    // Its rows are the same to the last bit. A recovery begins a new timeline.
    admin(address(&database), "UPDATE meta SET value = '0000004D' WHERE key = 'timeline'").await;
    assert_eq!(restore(&database).await.unwrap(), 3, "opening it marks it, and it is not marked once more");
    assert_eq!(epochs(&database).await, (3, Some(3)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_in_service_is_not_restored_and_no_server_starts_during_a_restore() {
    let database = loaded().await;
    let servers = [database.open().await, database.open().await];
    for server in &servers {
        server.enter_service().await.unwrap();
        server.enter_service().await.unwrap();
    }
    let in_service = refused(&database).await;
    assert!(matches!(in_service, OpenError::InService { .. }), "{in_service}");
    let name = format!("interlock server, process {}", std::process::id());
    assert_eq!(in_service.to_string().matches(&name).count(), 2, "each of them is named: {in_service}");
    for server in servers {
        server.close().await;
    }

    // Who only looks is in nobody's way.
    let looking = database.open().await;
    let lock = RestoreLock::take(&database.url, options()).await.unwrap();
    let kept_out = looking.enter_service().await.unwrap_err();
    assert!(matches!(kept_out, OpenError::BeingRestored { .. }), "{kept_out}");
    lock.release().await;
    looking.enter_service().await.unwrap();
    assert!(matches!(refused(&database).await, OpenError::InService { .. }));
    looking.close().await;
    assert_eq!(epochs(&database).await, (1, None), "nothing was raised");
}

/// The connections that hold the lock, by their process in the database.
async fn holders(client: &tokio_postgres::Client) -> Vec<i32> {
    let sql = "SELECT pid FROM pg_locks WHERE locktype = 'advisory'
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_loses_its_connection_is_in_service_again_by_itself() {
    let database = loaded().await;
    let server = database.open().await;
    server.enter_service().await.unwrap();
    let (client, connection) = tokio_postgres::connect(address(&database), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let before = holders(&client).await;
    assert_eq!(before.len(), 1);
    client.execute("SELECT pg_terminate_backend($1)", &[&before[0]]).await.unwrap();
    let again = async {
        loop {
            let now = holders(&client).await;
            if !now.is_empty() && now != before {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_mins(1), again).await.expect("it takes its share again");
    assert!(matches!(refused(&database).await, OpenError::InService { .. }));
    server.close().await;
    assert_eq!(restore(&database).await.unwrap(), 2);
}

/// A server that is told to end the connection which says that it is at work goes on, and says so again a moment later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_connection_was_ended_is_not_taken_for_one_that_has_stopped() {
    let database = loaded().await;
    let server = database.open().await;
    server.enter_service().await.unwrap();
    let (client, connection) = tokio_postgres::connect(address(&database), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let before = holders(&client).await;
    for holder in &before {
        client.execute("SELECT pg_terminate_backend($1)", &[holder]).await.unwrap();
    }
    while holders(&client).await.iter().any(|holder| before.contains(holder)) {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let in_service = refused(&database).await;
    assert!(matches!(in_service, OpenError::InService { .. }), "{in_service}");
    server.close().await;
    assert_eq!(epochs(&database).await, (1, None), "nothing was raised");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_another_program_is_called_that() {
    for (table, what) in [
        ("notes", "the tables in it are another program's"),
        ("meta", "the tables in it are another program's"),
        ("schema_migrations", "`schema_migrations` is another program's"),
    ] {
        let database = TestDatabase::empty_postgres().await;
        admin(address(&database), &format!("CREATE TABLE {table} (version TEXT)")).await;
        let looked_at = Store::open_to_read(&database.url, options()).await.err().expect("it is no store");
        let served = Store::open(&database.url, options()).await.err().expect("it is no store");
        for error in [refused(&database).await, looked_at, served] {
            assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");
            assert!(error.to_string().contains(what) && error.to_string().contains("/empty_"), "{error}");
            assert!(error.to_string().contains("a database of its own"), "{error}");
        }
        admin(address(&database), &format!("DROP TABLE {table}")).await;
        // Nothing else was made in it.
        database.open().await.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_of_an_extension_is_in_nobodys_way() {
    let database = TestDatabase::empty_postgres().await;
    admin(address(&database), "CREATE TABLE notes (text TEXT); ALTER EXTENSION plpgsql ADD TABLE notes").await;
    database.open().await.close().await;
}

/// As if `pg_restore` had been told to leave out the rows of some tables.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_without_the_rows_of_a_table_is_refused_before_the_epoch_is_raised() {
    let receipt =
        "INSERT INTO receipts (tenant_id, receipt_id, run_id, position, iteration, attempt, effect_key, effect,
                   state, request, intent_at)
                   SELECT tenant_id, run_id, run_id, 0, 0, 1, 'key', 'unsafe', 'intent', '{}', 0 FROM runs;
                   DELETE FROM runs; DELETE FROM run_live; DELETE FROM journal";
    for (done, what) in [
        ("DELETE FROM runs", "`run_live` refers to runs"),
        ("DELETE FROM run_live", "`runs` holds runs that have not ended"),
        ("DELETE FROM tenants", "no tenant, no plan or no events"),
        ("DELETE FROM plans", "no tenant, no plan or no events"),
        ("DELETE FROM journal", "no tenant, no plan or no events"),
        ("DELETE FROM runs; DELETE FROM run_live", "`journal` holds events of runs"),
        (receipt, "`receipts` refers to runs"),
        ("DROP TABLE receipts", "a table of it is missing"),
    ] {
        let database = loaded().await;
        admin(address(&database), done).await;
        let error = refused(&database).await;
        assert!(matches!(error, OpenError::NotAStore { .. }), "{done}: {error}");
        let words = error.to_string();
        assert!(words.contains(what) && words.contains("was loaded in part"), "{done}: {error}");
        let (client, connection) = tokio_postgres::connect(address(&database), tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let epoch = client.query_one("SELECT value FROM meta WHERE key = 'store_epoch'", &[]).await.unwrap();
        assert_eq!(epoch.get::<_, &str>(0), "1", "{done}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_that_was_loaded_in_part_and_a_newer_schema_are_refused_before_anything_is_written() {
    for (done, what) in [
        // A dump brings its keys last.
        ("ALTER TABLE receipts DROP CONSTRAINT receipts_pkey", "was loaded in part"),
        ("DROP TABLE meta", "was loaded in part"),
        ("DELETE FROM meta", "nothing in them"),
        ("DELETE FROM schema_migrations", "no tables of a store"),
    ] {
        let database = loaded().await;
        admin(address(&database), done).await;
        let error = refused(&database).await;
        assert!(matches!(error, OpenError::NotAStore { .. }), "{done}: {error}");
        assert!(error.to_string().contains(what), "{done}: {error}");
    }
    let database = loaded().await;
    admin(address(&database), "INSERT INTO schema_migrations VALUES (99, 'later', 'x', 0)").await;
    let error = refused(&database).await;
    assert!(matches!(error, OpenError::NewerSchema { found: 99, .. }), "{error}");
    admin(address(&database), "DELETE FROM schema_migrations WHERE version = 99").await;
    assert_eq!(epochs(&database).await, (1, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_a_server_has_is_not_restored() {
    let database = TestDatabase::file();
    let server = database.open().await;
    let copy = database.path().with_file_name("copy.db");
    server.backup(&copy).await.unwrap();
    let taken = RestoreLock::take(&database.url, options()).await.err().expect("a server has it");
    assert!(matches!(taken, OpenError::Locked { pid: Some(pid), .. } if pid == std::process::id()), "{taken}");
    server.close().await;
    let lock = RestoreLock::take(&database.url, options()).await.unwrap();
    let there = lock.begin(Some(&copy), false).await.unwrap_err();
    assert!(there.to_string().contains("does not overwrite"), "{there}");
    let nothing_named = lock.begin(None, false).await.unwrap_err();
    assert!(nothing_named.to_string().contains("no restore was begun"), "{nothing_named}");
    lock.release().await;
}

/// Payloads are brought back between the two steps: only what the first one has let pass may cost anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_refuses_the_restore_of_a_file_does_so_before_payloads_are_brought_back() {
    let database = TestDatabase::file();
    let world = database.world().await;
    world.start(&tasks(1), StartOptions::default()).await;
    world.store.close().await;
    let named = |name: &str| database.path().with_file_name(name);
    let whole = named("whole.db");
    interlock_store::backup_file(database.path(), &whole).await.unwrap();

    let newer = named("newer.db");
    std::fs::copy(&whole, &newer).unwrap();
    let altered = rusqlite::Connection::open(&newer).unwrap();
    altered.execute_batch("INSERT INTO schema_migrations VALUES (99, 'later', 'x', 0)").unwrap();
    drop(altered);
    // One table's first page, which nothing but a look at all of it finds.
    let damaged = named("damaged.db");
    let read = rusqlite::Connection::open(&whole).unwrap();
    let number = |sql: &str| read.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() as usize;
    let (size, page) = (number("PRAGMA page_size"), number("SELECT rootpage FROM sqlite_master WHERE name = 'runs'"));
    let mut bytes = std::fs::read(&whole).unwrap();
    bytes[(page - 1) * size..page * size].fill(0xff);
    std::fs::write(&damaged, bytes).unwrap();

    let stage = async |backup: &Path, to: &Path| {
        let lock = RestoreLock::take(&StoreUrl::Sqlite(to.to_owned()), options()).await.unwrap();
        lock.stage(Some(backup), false).await
    };
    let new = named("new").join("interlock.db");
    let refused = stage(&newer, &new).await.err().expect("of a newer release");
    assert!(matches!(refused, OpenError::NewerSchema { found: 99, .. }), "{refused}");
    assert!(!new.parent().unwrap().exists(), "no folder is made");
    let refused = stage(&damaged, &new).await.err().expect("damaged").to_string();
    assert!(refused.contains("damaged.db") && beside(&new, "interlock.db.").len() == 1, "only the lock: {refused}");
    let used = named("used").join("interlock.db");
    std::fs::create_dir(used.parent().unwrap()).unwrap();
    std::fs::write(used.with_file_name("interlock.db-wal"), "old").unwrap();
    let refused = stage(&whole, &used).await.err().expect("the log of another one").to_string();
    assert!(refused.contains("interlock.db-wal") && beside(&used, "").len() == 1, "{refused}");

    let staged = stage(&whole, &new).await.unwrap();
    assert!(!new.exists(), "it has no name yet");
    let other = RestoreLock::take(&StoreUrl::Sqlite(new.clone()), options()).await.err().expect("it is being restored");
    assert!(matches!(other, OpenError::Locked { .. }), "{other}");
    drop(staged);
    assert_eq!(beside(&new, "interlock.db").len(), 1, "only the lock is left");
    assert_eq!(stage(&whole, &new).await.unwrap().place().await.unwrap(), 2);
    assert!(new.is_file());
}

/// The files in the path's folder whose names begin so.
fn beside(path: &Path, begins: &str) -> Vec<PathBuf> {
    let found = std::fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    found.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(begins)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_backup_is_taken_for_none() {
    let database = TestDatabase::file();
    let world = database.world().await;
    world.start(&tasks(3), StartOptions::default()).await;
    world.store.close().await;
    let to = database.path().with_file_name("monday.db");
    let staged = StagedBackup::make(database.path(), &to).await.unwrap();
    assert!(!to.exists() && beside(&to, "monday.db.").len() == 1, "it has another name yet");
    assert_eq!(staged.open_to_read(options()).await.unwrap().stats().await.unwrap().live_runs, 1);
    let half = StoreUrl::Sqlite(staged.path().to_owned());
    let elsewhere = TestDatabase::file();
    for error in [
        Store::open_to_read(&half, options()).await.err().expect("not to look at"),
        Store::open(&half, options()).await.err().expect("not to serve"),
        interlock_store::restore(Some(staged.path()), &elsewhere.url, options()).await.expect_err("not to restore"),
        interlock_store::check_backup(staged.path()).expect_err("no backup"),
    ] {
        assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");
        assert!(error.to_string().contains("half a copy"), "{error}");
    }
    drop(staged);
    assert_eq!(beside(&to, "monday.db"), Vec::<PathBuf>::new(), "nothing is left of it");

    interlock_store::backup_file(database.path(), &to).await.unwrap();
    let whole = std::fs::read(&to).unwrap();
    std::fs::write(&to, &whole[..whole.len() / 2]).unwrap();
    let cut = Store::open_to_read(&StoreUrl::Sqlite(to.clone()), options()).await.err().expect("half of it is gone");
    assert!(cut.to_string().contains("malformed"), "{cut}");
    let cut = interlock_store::restore(Some(&to), &elsewhere.url, options()).await.unwrap_err();
    assert!(cut.to_string().contains("not all of it is there"), "{cut}");
    assert!(beside(elsewhere.path(), "").is_empty(), "nothing is put in place");
}
