//! Fresh databases on the PostgreSQL of the tests, for every crate whose tests need one: the first that is asked for is
//! migrated, and the others are copies of it, which takes a quarter of the time.

use interlock_core::ids::ServerId;
use interlock_store::{Options, Store, StoreUrl};
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

/// What the schema is made from: another one has another template, also where the server outlives a build.
const SCHEMA: &str = include_str!("../../migrations/CHECKSUMS");
/// Held while the template is being made.
const TEMPLATE_LOCK: i64 = 0x0054_454d_504c;
/// A server's own rows are not part of the schema: each database gets them when it is opened.
const OWN_ROWS: &str = "DELETE FROM lanes; DELETE FROM meta WHERE key <> 'schema_serves'";

/// Makes a database with the schema of this build on the server that `INTERLOCK_TEST_POSTGRES` names; answers its address.
pub async fn fresh_postgres(name: &str) -> String {
    let server = std::env::var("INTERLOCK_TEST_POSTGRES")
        .expect("INTERLOCK_TEST_POSTGRES is not set: run `make test`, or scripts/with-postgres");
    let of = |name: &str| server.replace("/postgres?", &format!("/{name}?"));
    let client = connect(&server).await;
    let template = format!("template_{:016x}", SCHEMA.bytes().fold(0xcbf2_9ce4_8422_2325, fnv));
    client.batch_execute(&format!("SELECT pg_advisory_lock({TEMPLATE_LOCK})")).await.unwrap();
    let made = client.query("SELECT 1 FROM pg_database WHERE datname = $1", &[&template]).await.unwrap();
    if made.is_empty() {
        let unfinished = format!("{template}_unfinished");
        client.batch_execute(&format!("DROP DATABASE IF EXISTS {unfinished}")).await.unwrap();
        client.batch_execute(&format!("CREATE DATABASE {unfinished}")).await.unwrap();
        let url = of(&unfinished);
        let options = Options::new(ServerId(Uuid::from_u128(1)));
        Store::open(&StoreUrl::Postgres(url.clone()), options).await.unwrap().close().await;
        connect(&url).await.batch_execute(OWN_ROWS).await.unwrap();
        // Waits until nobody is connected to it.
        client.batch_execute(&format!("ALTER DATABASE {unfinished} RENAME TO {template}")).await.unwrap();
    }
    client.batch_execute(&format!("SELECT pg_advisory_unlock({TEMPLATE_LOCK})")).await.unwrap();
    client.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {template}")).await.unwrap();
    of(name)
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn fnv(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}
