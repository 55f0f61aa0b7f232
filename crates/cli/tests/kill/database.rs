//! Databases: a fresh one on the server that all tests share, and servers of a test's own that may be killed.

use tokio_postgres::{Client, NoTls};

/// A fresh database on the shared server, which goes away with the server.
pub struct Database {
    pub url: String,
}

impl Database {
    pub async fn create(name: &str) -> Self {
        let server = std::env::var("INTERLOCK_TEST_POSTGRES")
            .expect("INTERLOCK_TEST_POSTGRES is not set: run `make test`, or scripts/with-postgres");
        let name = format!("{name}_{}", std::process::id());
        let (client, connection) = tokio_postgres::connect(&server, NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
        Self { url: server.replace("/postgres?", &format!("/{name}?")) }
    }

    pub async fn connect(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }
}
