//! Opening: migrations, the lock, and messages that say what to do.

use interlock_store::{
    Changed, DropUnparked, EnsurePartitions, FinishRestore, OpenError, PutTenant, RaiseEpoch, Store, StoreUrl,
    SubmitError, Tenant,
};

use crate::harness::{NOW, StartOptions, TestDatabase, options, tasks, tenant_id};

crate::on_every_store!(a_store_that_was_closed_opens_again_with_all_it_had, a_schema_that_is_not_ours_is_refused);

async fn a_store_that_was_closed_opens_again_with_all_it_had(database: &TestDatabase) {
    let world = database.world().await;
    let run = world.start(&tasks(1), StartOptions::default()).await;
    world.store.close().await;
    let store = database.open().await;
    assert_eq!(store.load_runs(&[(run.tenant, run.id)]).await.unwrap(), [run]);
    assert_eq!(store.last_commit_at().await.unwrap(), NOW);
    assert_eq!(store.epoch().await.unwrap(), 1);
}

/// Changes rows behind the store's back.
pub async fn tamper(database: &TestDatabase, sql: &str) {
    match &database.url {
        StoreUrl::Sqlite(path) => rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap(),
        StoreUrl::Postgres(url) => crate::harness::admin(url, sql).await,
        StoreUrl::SqliteMemory(_) => unreachable!("no other connection can reach it"),
    }
}

async fn a_schema_that_is_not_ours_is_refused(database: &TestDatabase) {
    let empty;
    let database = match &database.url {
        StoreUrl::SqliteMemory(_) => return,
        StoreUrl::Sqlite(_) => database,
        StoreUrl::Postgres(_) => {
            empty = TestDatabase::empty_postgres().await;
            &empty
        }
    };
    let mut unprepared = options();
    unprepared.migrate = false;
    let refused = Store::open(&database.url, unprepared.clone()).await.err().expect("no schema yet");
    assert!(matches!(refused, OpenError::NeedsMigration { .. }), "{refused}");
    database.open().await.close().await;
    Store::open(&database.url, unprepared).await.expect("the schema is there").close().await;

    tamper(database, "INSERT INTO schema_migrations VALUES (99, 'later', 'x', 0)").await;
    let refused = Store::open(&database.url, options()).await.err().expect("newer schema");
    assert!(matches!(refused, OpenError::NewerSchema { found: 99, .. }), "{refused}");
    assert!(refused.to_string().contains("upgrade this binary"), "{refused}");
    // Unless the newer release has noted that this one can work with it.
    for (note, serves) in [("99 since 100", false), ("98 since 1", false), ("99 since 1", true)] {
        tamper(database, &format!("UPDATE meta SET value = '{note}' WHERE key = 'schema_serves'")).await;
        let opened = Store::open(&database.url, options()).await;
        assert_eq!(opened.is_ok(), serves, "{note}");
        if let Ok(store) = opened {
            store.write(PutTenant(Tenant::new(tenant_id(1), "one", NOW))).await.unwrap();
            store.close().await;
        }
    }
    Store::open(&database.url, options()).await.expect("an older binary leaves the note as it is").close().await;

    tamper(database, "DELETE FROM schema_migrations WHERE version = 99; UPDATE schema_migrations SET checksum = 'x'")
        .await;
    let refused = Store::open(&database.url, options()).await.err().expect("changed checksum");
    assert!(matches!(refused, OpenError::ChecksumChanged { version: 1, .. }), "{refused}");
}

#[tokio::test]
async fn a_second_server_on_one_file_is_refused() {
    let database = TestDatabase::file();
    let store = database.open().await;
    let refused = Store::open(&database.url, options()).await.err().expect("it is locked");
    assert!(matches!(refused, OpenError::Locked { pid: Some(pid), .. } if pid == std::process::id()), "{refused}");
    store.close().await;
    database.open().await.close().await;
}

#[tokio::test]
async fn an_address_that_answers_nothing_says_so() {
    let url = StoreUrl::parse("postgres://nobody:secret@127.0.0.1:1/none").unwrap();
    let refused = Store::open(&url, options()).await.err().expect("no server listens there");
    assert!(refused.to_string().contains("check the address"), "{refused}");
    assert!(!url.to_string().contains("secret"));
    assert!(StoreUrl::parse("mysql://x").is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_made_while_running_is_restored_with_a_higher_epoch() {
    let database = TestDatabase::file();
    let world = database.world().await;
    let run = world.start(&tasks(1), StartOptions::default()).await;
    let copy = database.path().with_file_name("copy.db");
    let busy = tokio::spawn({
        let world = world.clone();
        async move {
            for _ in 0..200 {
                world.start(&tasks(1), StartOptions::default()).await;
            }
        }
    });
    world.store.backup(&copy).await.unwrap();
    assert!(world.store.backup(&copy).await.is_err(), "a backup overwrites nothing");
    busy.await.unwrap();

    let elsewhere = TestDatabase::file();
    let epoch = interlock_store::restore(Some(&copy), &elsewhere.url, options()).await.unwrap();
    assert_eq!(epoch, 2);
    let restored = elsewhere.open().await;
    assert_eq!(restored.epoch().await.unwrap(), 2);
    assert_eq!(restored.load_runs(&[(run.tenant, run.id)]).await.unwrap(), [run]);
    assert_eq!(restored.check().await.unwrap(), []);
    let again = interlock_store::restore(Some(&copy), &elsewhere.url, options()).await.unwrap_err();
    assert!(matches!(again, OpenError::Locked { .. }), "{again}");
    restored.write(FinishRestore { epoch, now: NOW, unparked: Vec::new() }).await.unwrap();
    restored.close().await;
    let again = interlock_store::restore(Some(&copy), &elsewhere.url, options()).await.unwrap_err();
    assert!(again.to_string().contains("does not overwrite"), "{again}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_that_was_broken_off_goes_on_and_ends_once() {
    let database = TestDatabase::file();
    let world = database.world().await;
    let copy = database.path().with_file_name("copy.db");
    world.store.backup(&copy).await.unwrap();
    let elsewhere = TestDatabase::file();
    let restore = || interlock_store::restore(Some(&copy), &elsewhere.url, options());
    assert_eq!(restore().await.unwrap(), 2);
    let store = elsewhere.open().await;
    assert_eq!((store.epoch().await.unwrap(), store.restoring().await.unwrap()), (2, Some(2)));
    store.close().await;
    assert_eq!(restore().await.unwrap(), 2, "the same restore");
    let store = elsewhere.open().await;
    let unparked = (world.tenant, world.start(&tasks(1), StartOptions::default()).await.id);
    let finish = |epoch| store.write(FinishRestore { epoch, now: NOW, unparked: vec![unparked] });
    assert_eq!(finish(1).await.unwrap(), Changed::Gone, "another restore's mark stays");
    assert_eq!((store.restoring().await.unwrap(), store.restored_at().await.unwrap()), (Some(2), None));
    assert_eq!(finish(2).await.unwrap(), Changed::Done);
    assert_eq!((store.restoring().await.unwrap(), store.restored_at().await.unwrap()), (None, Some(NOW)));
    let (tenant, run) = unparked;
    assert_eq!(
        store.unparked(10).await.unwrap(),
        [unparked],
        "what is not parked yet is known from the same commit on"
    );
    assert!(store.is_unparked(tenant, run).await.unwrap());
    store.write(DropUnparked { tenant, run }).await.unwrap();
    assert_eq!(finish(2).await.unwrap(), Changed::Done, "another process that parked them too comes to its end");
    assert!(store.unparked(10).await.unwrap().is_empty() && !store.is_unparked(tenant, run).await.unwrap());
    store.close().await;
    let again = restore().await.unwrap_err();
    assert!(again.to_string().contains("does not overwrite"), "{again}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_store_is_neither_backed_up_nor_restored() {
    use std::os::unix::fs::PermissionsExt as _;
    let database = TestDatabase::file();
    let (empty, foreign) = (database.path().with_file_name("empty"), database.path().with_file_name("foreign.db"));
    std::fs::write(&empty, []).unwrap();
    rusqlite::Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE notes (text TEXT)").unwrap();
    let junk = database.path().with_file_name("junk.db");
    std::fs::write(&junk, "not a database at all, but long enough to be taken for one".repeat(100)).unwrap();
    for file in [&empty, &foreign, &junk] {
        let refused = interlock_store::restore(Some(file), &database.url, options()).await.unwrap_err();
        assert!(matches!(refused, OpenError::NotAStore { .. }), "{refused}");
        assert!(refused.to_string().starts_with(&*file.display().to_string()), "the backup is to blame: {refused}");
        assert!(!database.path().exists(), "nothing is put in place");
        let mut beside = std::fs::read_dir(database.path().parent().unwrap()).unwrap();
        let is_half = |name: std::ffi::OsString| name.to_string_lossy().contains(".partial");
        assert!(!beside.any(|entry| is_half(entry.unwrap().file_name())), "nothing is left behind");
        let elsewhere = database.path().with_file_name("new").join("interlock.db");
        let refused = interlock_store::restore(Some(file), &StoreUrl::Sqlite(elsewhere.clone()), options()).await;
        assert!(refused.is_err() && !elsewhere.parent().unwrap().exists(), "nor a folder");
        let target = database.path().with_file_name("target");
        let refused = interlock_store::backup_file(file, &target).await.unwrap_err();
        assert!(matches!(refused, OpenError::NotAStore { .. }), "{refused}");
    }
    database.open().await.close().await;
    let copy = database.path().with_file_name("copy.db");
    interlock_store::backup_file(database.path(), &copy).await.unwrap();
    let elsewhere = TestDatabase::file();
    interlock_store::restore(Some(&copy), &elsewhere.url, options()).await.unwrap();
    for file in [copy.as_path(), elsewhere.path()] {
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600, "{}", file.display());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_database_of_postgresql_is_not_taken_for_a_restored_one() {
    let database = TestDatabase::empty_postgres().await;
    let refused = interlock_store::restore(None, &database.url, options()).await.unwrap_err();
    assert!(matches!(refused, OpenError::NotAStore { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_file_is_called_malformed() {
    let database = TestDatabase::file();
    database.open().await.close().await;
    let bytes = std::fs::read(database.path()).unwrap();
    // The first page is whole; what it points to is not.
    let mut damaged = bytes.clone();
    damaged[4096..].fill(0xa5);
    for content in [damaged, vec![b'x'; bytes.len()]] {
        std::fs::write(database.path(), content).unwrap();
        let refused = Store::open_to_read(&database.url, options()).await.err().expect("it cannot be read").to_string();
        assert!(refused.contains("malformed") || refused.contains("not a database"), "{refused}");
        assert!(!refused.contains("migrate"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn weeks_are_made_ahead_and_dropped_when_empty() {
    use interlock_core::time::Millis;
    let database = TestDatabase::postgres().await;
    let world = database.world().await;
    let StoreUrl::Postgres(url) = database.url.clone() else { panic!("not PostgreSQL") };
    let first = NOW.0 / Millis::from_hours(24 * 7).0 as i64;
    let weeks = || async {
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let sql =
            "SELECT to_regclass('journal_w' || week) IS NOT NULL FROM generate_series($1::bigint, $1 + 2) AS week";
        client.query(sql, &[&first]).await.unwrap().iter().map(|row| row.get(0)).collect::<Vec<bool>>()
    };
    // The tenant's first run comes before its week: it stays in the default partition, and keeps its week out.
    let early = world.start(&tasks(1), StartOptions::default()).await;
    world.store.write(EnsurePartitions { now: NOW }).await.unwrap();
    assert_eq!(weeks().await, [false, true, true]);
    world.store.write(EnsurePartitions { now: NOW }).await.unwrap();
    assert_eq!(weeks().await, [false, true, true]);
    let later = NOW + Millis::from_hours(24 * 7 * 6);
    world.store.write(EnsurePartitions { now: later }).await.unwrap();
    assert_eq!(weeks().await, [false, false, false], "the two of before are empty and gone");
    assert_eq!(world.load(&early).await, early);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_can_be_looked_at_while_a_server_has_it() {
    let database = TestDatabase::file();
    let world = database.world().await;
    let run = world.start(&tasks(1), StartOptions::default()).await;
    let beside = Store::open_to_read(&database.url, options()).await.unwrap();
    assert!(beside.check().await.unwrap().is_empty());
    assert_eq!(beside.stats().await.unwrap().live_runs, 1);
    // What the server commits meanwhile is seen, and nothing can be written from here.
    world.start(&tasks(1), StartOptions::default()).await;
    assert_eq!(beside.stats().await.unwrap().live_runs, 2);
    assert_eq!(beside.load_runs(&[(world.tenant, run.id)]).await.unwrap().len(), 1);
    let refused = beside.write(RaiseEpoch).await;
    assert!(matches!(refused, Err(SubmitError::Closed)), "{refused:?}");
    beside.close().await;
    world.start(&tasks(1), StartOptions::default()).await;
}

/// A file that was removed stays open and would take commits, which are gone with the process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_file_that_was_moved_away_takes_no_commits_until_it_is_back() {
    let database = TestDatabase::file();
    let store = database.world().await.store;
    let aside = database.path().with_extension("aside");
    std::fs::rename(database.path(), &aside).unwrap();
    let writing = tokio::spawn({
        let store = store.clone();
        async move { store.write(PutTenant(Tenant::new(tenant_id(77), "other", NOW))).await }
    });
    let refused = loop {
        match store.takes_commits() {
            Err(refused) => break refused,
            Ok(()) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
        }
    };
    assert!(matches!(&refused, SubmitError::FileGone(what) if what.contains("was removed or moved")), "{refused}");
    assert!(!database.path().exists(), "no empty database is made in its place");
    std::fs::rename(&aside, database.path()).unwrap();
    writing.await.unwrap().unwrap();
    assert!(store.takes_commits().is_ok());
    store.close().await;
    assert!(database.open().await.tenant(tenant_id(77)).await.unwrap().is_some(), "it is in the file");
}

/// Neither to look at nor to migrate: its owner would find the store's tables among its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_of_another_program_is_refused_and_stays_as_it_is() {
    for tables in ["CREATE TABLE notes (text TEXT)", "CREATE TABLE schema_migrations (version TEXT)"] {
        let database = TestDatabase::file();
        rusqlite::Connection::open(database.path()).unwrap().execute_batch(tables).unwrap();
        let before = std::fs::read(database.path()).unwrap();
        let looked_at = Store::open_to_read(&database.url, options()).await.err().expect("it is none of ours");
        let opened = Store::open(&database.url, options()).await.err().expect("it is none of ours");
        for refused in [looked_at, opened] {
            assert!(matches!(refused, OpenError::NotAStore { .. }), "{refused}");
            assert!(!refused.to_string().contains("migrate"), "{refused}");
        }
        assert_eq!(std::fs::read(database.path()).unwrap(), before);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn looking_at_an_empty_file_makes_no_schema() {
    let database = TestDatabase::file();
    std::fs::write(database.path(), []).unwrap();
    let refused = Store::open_to_read(&database.url, options()).await.err();
    assert!(matches!(refused, Some(OpenError::NeedsMigration { found: 0, .. })), "{refused:?}");
    assert_eq!(std::fs::metadata(database.path()).unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_encrypted_as_its_address_asks() {
    let database = TestDatabase::postgres().await;
    database.open().await.close().await;
    let StoreUrl::Postgres(plain) = &database.url else { panic!("not PostgreSQL") };
    let authority = std::env::var("INTERLOCK_TEST_POSTGRES_CA").expect("scripts/with-postgres names the authority");
    let asked = |host: &str, tls: &str| {
        let address = plain.replace("127.0.0.1", host).replace("sslmode=disable", tls);
        StoreUrl::Postgres(address.replace("CA", &authority))
    };
    // The certificate names localhost, and is its own authority.
    for (host, tls, encrypted) in [
        ("127.0.0.1", "sslmode=disable", false),
        ("127.0.0.1", "sslmode=prefer", true),
        ("127.0.0.1", "sslmode=require", true),
        ("127.0.0.1", "sslmode=require&sslrootcert=CA", true),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert=CA", true),
        ("localhost", "sslmode=verify-full&sslrootcert=CA", true),
    ] {
        let store = Store::open(&asked(host, tls), options()).await.unwrap_or_else(|error| panic!("{tls}: {error}"));
        assert_eq!(store.encrypted().await.unwrap(), Some(encrypted), "{tls}");
        store.close().await;
    }
    for (host, tls, expected) in [
        ("127.0.0.1", "sslmode=verify-full&sslrootcert=CA", "not valid for name"),
        ("localhost", "sslmode=verify-full", "UnknownIssuer"),
        ("127.0.0.1", "sslmode=verify-ca", "UnknownIssuer"),
    ] {
        let refused = Store::open(&asked(host, tls), options()).await.err().expect(tls).to_string();
        assert!(refused.contains(expected), "{tls}: {refused}");
    }
}
