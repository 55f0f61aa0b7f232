//! Row-level security on PostgreSQL: a session with the role `interlock_reader` sees the tenant that it is set to.

use interlock_core::ids::{InboundId, JobId, OutboundId, OutboxId, RunId, ScheduleId, TenantId};
use interlock_core::json::Hash;
use interlock_store::{OpenError, Store, StoreUrl, webhook_destination};
use uuid::Uuid;

use crate::filled;
use crate::harness::{NOW, TestDatabase, World, admin, fresh, options, tenant_id};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_without_the_setting_sees_nothing() {
    let database = TestDatabase::postgres().await;
    let World { store, tenant, .. } = database.world().await;
    let other = tenant_id(77);
    let tenants = interlock_store::Tenant::new(other, "other", NOW);
    store.write(interlock_store::PutTenant(tenants)).await.unwrap();
    let StoreUrl::Postgres(url) = &database.url else { panic!("not PostgreSQL") };
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
    assert_eq!(count().await, 0, "no tenant is set");
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
    assert!(store.on_behalf_of(other).tenant(tenant).await.unwrap().is_none(), "row security hides it");
    assert!(store.tenant(tenant).await.unwrap().is_some());
    store.close().await;
}

/// Every table that has a tenant has rows of fifty of them here, and shows only one's at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_table_shows_another_tenants_rows() {
    let database = TestDatabase::postgres().await;
    let World { store, .. } = database.world().await;
    let StoreUrl::Postgres(url) = &database.url else { panic!("not PostgreSQL") };
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    for statement in filled::postgres() {
        client.batch_execute(&statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    // A message with an attempt goes to the endpoint of its tenant.
    let id = Uuid::from_u128((NOW.0 as u128) << 80 | 7);
    let endpoint = OutboundId(id);
    let sent = "UPDATE outbox SET destination = $1 WHERE outbox_id = $2";
    let there = webhook_destination(endpoint);
    assert_eq!(client.execute(sent, &[&there, &id.as_bytes().to_vec()]).await.unwrap(), 1);
    let tables = "SELECT c.relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
                  WHERE a.attname = 'tenant_id' AND c.relkind IN ('r', 'p') AND NOT c.relispartition
                  AND c.relnamespace = 'public'::regnamespace ORDER BY 1";
    let tables: Vec<String> = client.query(tables, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    for table in ["runs", "workflows", "schedules", "inbound_endpoints", "outbound_endpoints", "bulk_jobs", "payloads"]
    {
        assert!(tables.iter().any(|found| found == table), "{table} has no tenant");
    }
    client.batch_execute("SET ROLE interlock_reader").await.unwrap();
    let (seven, eight) = (TenantId(Uuid::from_u128(7)), TenantId(Uuid::from_u128(8)));
    for table in &tables {
        let seen = async |tenant: Option<TenantId>| {
            let set = match tenant {
                Some(tenant) => format!("SET interlock.tenant = '{}'", tenant.0.simple()),
                None => "RESET interlock.tenant".to_owned(),
            };
            client.batch_execute(&set).await.unwrap();
            let rows = client.query(&format!("SELECT DISTINCT tenant_id FROM {table}"), &[]).await.unwrap();
            rows.iter().map(|row| row.get(0)).collect::<Vec<Vec<u8>>>()
        };
        assert_eq!(seen(Some(seven)).await, [seven.as_bytes()], "{table}: its rows, and no other tenant's");
        assert_eq!(seen(Some(eight)).await, [eight.as_bytes()], "{table}: its rows, and no other tenant's");
        assert!(seen(None).await.is_empty(), "{table}: no tenant is set");
    }

    // The store's own reads that name a tenant, or none at all, on behalf of another one.
    let mut hash_of_seven = Hash([0; 32]);
    hash_of_seven.0[31] = 7;
    let (own, other) = (store.on_behalf_of(seven), store.on_behalf_of(eight));
    let found = async |reads: &interlock_store::Store| {
        let workflow = reads.workflow(seven, "w7").await.unwrap().is_some();
        let version = reads.workflow_version(seven, "w7", 1).await.unwrap().is_some();
        let schedule = reads.schedule_named(seven, "s7").await.unwrap().is_some();
        let slots = reads.slots(seven, ScheduleId(id), 10).await.unwrap().len() == 1;
        let inbound = reads.inbound_endpoint(InboundId(id)).await.unwrap().is_some();
        let attempts = reads.attempts(seven, endpoint, OutboxId(id)..=OutboxId(id)).await.unwrap().len() == 1;
        let outbound = reads.outbound_endpoints(seven, 10).await.unwrap().len() == 4;
        let failures = reads.bulk_failures(seven, JobId(id), None, 10).await.unwrap().len() == 1;
        let payload = reads.payload_bytes(seven, RunId(id), hash_of_seven).await.unwrap().is_some();
        vec![workflow, version, schedule, slots, inbound, attempts, outbound, failures, payload]
    };
    assert_eq!(found(&own).await, vec![true; 9]);
    assert_eq!(found(&other).await, vec![false; 9], "row security hides it");
    store.close().await;
}

/// A user who owns the tables and may do nothing beside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_row_security_a_store_opens_only_where_that_was_asked_for() {
    let database = TestDatabase::empty_postgres().await;
    let StoreUrl::Postgres(url) = database.url.clone() else { panic!("not PostgreSQL") };
    let user = format!("plain_{}", fresh().simple());
    let made = format!("CREATE USER {user}; GRANT ALL ON SCHEMA public TO {user}; GRANT CREATE ON DATABASE ");
    let name = url.rsplit_once('/').and_then(|(_, rest)| rest.split_once('?')).unwrap().0.to_owned();
    admin(&url, &format!("{made}{name} TO {user}")).await;
    let theirs = url.replace("interlock@", &format!("{user}@"));
    let refused = Store::open(&StoreUrl::Postgres(theirs.clone()), options()).await.err().expect("no row security");
    assert!(matches!(refused, OpenError::RowSecurity { .. }), "{refused}");
    assert!(refused.to_string().contains("row_security=optional"), "{refused}");
    let optional = StoreUrl::Postgres(format!("{theirs}&row_security=optional"));
    let store = Store::open(&optional, options()).await.unwrap();
    assert!(store.on_behalf_of(tenant_id(1)).tenant(tenant_id(1)).await.unwrap().is_none());
    store.close().await;
    let unknown = Store::open(&StoreUrl::Postgres(format!("{theirs}&row_security=maybe")), options()).await;
    assert!(unknown.err().expect("a typing mistake").to_string().contains("use required or optional"));
    admin(&url, &format!("DROP OWNED BY {user} CASCADE; DROP USER {user}")).await;
}
