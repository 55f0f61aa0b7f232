//! Row-level security on PostgreSQL: whoever reads as `interlock_reader` sees the tenant that the session is set to.

use interlock_store::StoreUrl;

use crate::fixture::{NOW, Place, World, tenant_id};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_without_the_setting_sees_nothing() {
    let place = Place::postgres().await;
    let World { store, tenant, .. } = place.world().await;
    let other = tenant_id(77);
    let tenants = interlock_store::Tenant::new(other, "other", NOW);
    store.execute(interlock_store::Op::PutTenant(tenants)).await.unwrap();
    let StoreUrl::Postgres(url) = &place.url else { panic!("not PostgreSQL") };
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);

    let bare = "SELECT c.relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
                WHERE a.attname = 'tenant_id' AND c.relkind IN ('r', 'p') AND NOT c.relispartition
                AND c.relnamespace = 'public'::regnamespace AND NOT c.relrowsecurity";
    let bare: Vec<String> = client.query(bare, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert!(bare.is_empty(), "without a policy: {bare:?}");

    let count = async || -> i64 { client.query_one("SELECT count(*) FROM tenants", &[]).await.unwrap().get(0) };
    assert_eq!(count().await, 2, "the owner sees all");
    client.batch_execute("SET ROLE interlock_reader").await.unwrap();
    assert_eq!(count().await, 0, "nobody has said whose");
    for (whose, seen) in [(tenant, 1), (other, 1), (tenant_id(99), 0)] {
        let set = format!("SET interlock.tenant = '{}'", whose.0.simple());
        client.batch_execute(&set).await.unwrap();
        assert_eq!(count().await, seen);
    }
    client.batch_execute("RESET interlock.tenant").await.unwrap();
    assert_eq!(count().await, 0, "a setting that was taken back is none");
    assert!(client.query("SELECT * FROM meta", &[]).await.is_err(), "what belongs to no tenant is not to be read");
    assert!(client.execute("DELETE FROM tenants", &[]).await.is_err(), "and nothing is to be written");

    // The store's own reads, with a statement that names a tenant which the session does not.
    assert!(store.on_behalf_of(tenant).tenant(tenant).await.unwrap().is_some());
    assert!(store.on_behalf_of(other).tenant(tenant).await.unwrap().is_none(), "the wall stands by itself");
    assert!(store.tenant(tenant).await.unwrap().is_some());
    store.close().await;
    place.remove().await;
}
