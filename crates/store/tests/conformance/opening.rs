//! Opening: migrations, the lock, and messages that say what to do.

use interlock_store::{OpenError, Store, StoreUrl};

use crate::fixture::{NOW, Place, Wanted, options, tasks};

crate::on_every_store!(a_store_that_was_closed_opens_again_with_all_it_had, a_schema_that_is_not_ours_is_refused);

async fn a_store_that_was_closed_opens_again_with_all_it_had(place: &Place) {
    let world = place.world().await;
    let run = world.start(&tasks(1), Wanted::default()).await;
    world.store.close().await;
    let store = place.open().await;
    assert_eq!(store.load_runs(&[(run.tenant, run.id)]).await.unwrap(), [run]);
    assert_eq!(store.last_commit_at().await.unwrap(), NOW);
    assert_eq!(store.epoch().await.unwrap(), 1);
}

/// Changes the record of migrations behind the store's back.
async fn tamper(place: &Place, sql: &str) {
    match &place.url {
        StoreUrl::Sqlite(path) => rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap(),
        StoreUrl::Postgres(url) => crate::fixture::admin(url, sql).await,
        StoreUrl::SqliteMemory(_) => unreachable!("nobody else can reach it"),
    }
}

async fn a_schema_that_is_not_ours_is_refused(place: &Place) {
    if matches!(place.url, StoreUrl::SqliteMemory(_)) {
        return;
    }
    let mut unprepared = options();
    unprepared.migrate = false;
    let refused = Store::open(&place.url, unprepared.clone()).await.err().expect("no schema yet");
    assert!(matches!(refused, OpenError::NeedsMigration { .. }), "{refused}");
    place.open().await.close().await;
    Store::open(&place.url, unprepared).await.expect("the schema is there").close().await;

    tamper(place, "INSERT INTO schema_migrations VALUES (99, 'later', 'x', 0)").await;
    let refused = Store::open(&place.url, options()).await.err().expect("newer schema");
    assert!(matches!(refused, OpenError::NewerSchema { found: 99, .. }), "{refused}");
    assert!(refused.to_string().contains("upgrade this binary"), "{refused}");

    tamper(place, "DELETE FROM schema_migrations WHERE version = 99; UPDATE schema_migrations SET checksum = 'x'")
        .await;
    let refused = Store::open(&place.url, options()).await.err().expect("changed checksum");
    assert!(matches!(refused, OpenError::ChecksumChanged { version: 1, .. }), "{refused}");
}

#[tokio::test]
async fn a_second_server_on_one_file_is_refused() {
    let place = Place::file();
    let store = place.open().await;
    let refused = Store::open(&place.url, options()).await.err().expect("it is locked");
    assert!(matches!(refused, OpenError::Locked { pid: Some(pid), .. } if pid == std::process::id()), "{refused}");
    store.close().await;
    place.open().await.close().await;
}

#[tokio::test]
async fn an_address_that_answers_nothing_says_so() {
    let url = StoreUrl::parse("postgres://nobody:secret@127.0.0.1:1/none").unwrap();
    let refused = Store::open(&url, options()).await.err().expect("nobody listens");
    assert!(refused.to_string().contains("check the address"), "{refused}");
    assert!(!url.to_string().contains("secret"));
    assert!(StoreUrl::parse("mysql://x").is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_made_while_running_is_restored_with_a_higher_epoch() {
    let place = Place::file();
    let world = place.world().await;
    let run = world.start(&tasks(1), Wanted::default()).await;
    let copy = place.path().with_file_name("copy.db");
    let busy = tokio::spawn({
        let world = world.clone();
        async move {
            for _ in 0..200 {
                world.start(&tasks(1), Wanted::default()).await;
            }
        }
    });
    world.store.backup(&copy).await.unwrap();
    assert!(world.store.backup(&copy).await.is_err(), "a backup overwrites nothing");
    busy.await.unwrap();

    let elsewhere = Place::file();
    let epoch = interlock_store::restore(Some(&copy), &elsewhere.url, options()).await.unwrap();
    assert_eq!(epoch, 2);
    let restored = elsewhere.open().await;
    assert_eq!(restored.epoch().await.unwrap(), 2);
    assert_eq!(restored.load_runs(&[(run.tenant, run.id)]).await.unwrap(), [run]);
    assert_eq!(restored.check().await.unwrap(), []);
    let again = interlock_store::restore(Some(&copy), &elsewhere.url, options()).await.unwrap_err();
    assert!(matches!(again, OpenError::Locked { .. }), "{again}");
    restored.close().await;
    let again = interlock_store::restore(Some(&copy), &elsewhere.url, options()).await.unwrap_err();
    assert!(again.to_string().contains("does not overwrite"), "{again}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn weeks_are_made_ahead_and_dropped_when_empty() {
    use interlock_core::time::Millis;
    use interlock_store::Op;
    let place = Place::postgres().await;
    let world = place.world().await;
    let StoreUrl::Postgres(url) = place.url.clone() else { panic!("not PostgreSQL") };
    let weeks = || async {
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let sql = "SELECT count(*) FROM pg_class WHERE relname ~ '^journal_w[0-9]+$'";
        client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0)
    };
    // The tenant's first run comes before its week: it stays in the default partition, and keeps its week out.
    let early = world.start(&tasks(1), Wanted::default()).await;
    world.store.execute(Op::EnsurePartitions { now: NOW }).await.unwrap();
    assert_eq!(weeks().await, 2);
    world.store.execute(Op::EnsurePartitions { now: NOW }).await.unwrap();
    assert_eq!(weeks().await, 2);
    let later = NOW + Millis::from_hours(24 * 7 * 6);
    world.store.execute(Op::EnsurePartitions { now: later }).await.unwrap();
    assert_eq!(weeks().await, 3, "the two of before are empty and gone");
    assert_eq!(world.load(&early).await, early);
    place.remove().await;
}
