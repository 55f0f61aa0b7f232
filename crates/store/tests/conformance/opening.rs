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

    tamper(place, "DELETE FROM schema_migrations WHERE version = 99; UPDATE schema_migrations SET checksum = 'x'").await;
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
