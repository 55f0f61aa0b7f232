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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_another_program_is_called_that() {
    for (tables, what) in [
        ("CREATE TABLE notes (text TEXT)", "the tables in it are another program's"),
        ("CREATE TABLE schema_migrations (version TEXT)", "`schema_migrations` is another program's"),
    ] {
        let database = TestDatabase::empty_postgres().await;
        admin(address(&database), tables).await;
        let looked_at = Store::open_to_read(&database.url, options()).await.err().expect("it is no store");
        for error in [refused(&database).await, looked_at] {
            assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");
            assert!(error.to_string().contains(what) && error.to_string().contains("/empty_"), "{error}");
        }
    }
    // The store's own table cannot be made where another one has its name: neither does a server start, nor is it changed.
    let database = TestDatabase::empty_postgres().await;
    admin(address(&database), "CREATE TABLE schema_migrations (version TEXT)").await;
    let error = Store::open(&database.url, options()).await.err().expect("it is no store");
    assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");
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
