//! A commit whose answer is lost on its way: PostgreSQL has committed, and the server does not know. What it does next must
//! neither write it twice nor tell the caller that it was refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use interlock_core::ids::SessionId;
use interlock_store::{Options, Store, StoreUrl};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{StartOptions, TestDatabase, World, fresh, options, tasks};

/// Every so many commits the connection ends before the answer is passed on.
const ONE_IN: u32 = 5;

/// Stands between a store and PostgreSQL; answers with its port.
async fn forgetful_proxy(server: u16, lost: Arc<AtomicU32>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let commits = Arc::new(AtomicU32::new(0));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (commits, lost) = (Arc::clone(&commits), Arc::clone(&lost));
            tokio::spawn(async move {
                let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                pass_on(client, server, &commits, &lost).await;
            });
        }
    });
    port
}

/// Passes everything on in both directions, until the answer to a commit is to be lost.
async fn pass_on(mut client: TcpStream, mut server: TcpStream, commits: &AtomicU32, lost: &AtomicU32) {
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                if server.write_all(&asked[..length]).await.is_err() {
                    return;
                }
                let is_commit = asked[..length].windows(7).any(|bytes| bytes == b"COMMIT\0");
                if is_commit && commits.fetch_add(1, Ordering::Relaxed) % ONE_IN == ONE_IN - 1 {
                    // The answer says that it is done.
                    let Ok(length) = server.read(&mut answered).await else { return };
                    if answered[..length].windows(7).any(|bytes| bytes == b"COMMIT\0") {
                        lost.fetch_add(1, Ordering::Relaxed);
                    }
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                if client.write_all(&answered[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_answered_once() {
    commits_whose_answers_are_lost().await;
}

pub async fn commits_whose_answers_are_lost() {
    let database = TestDatabase::postgres().await;
    let world = database.world().await;
    let StoreUrl::Postgres(url) = &database.url else { panic!("not PostgreSQL") };
    let address = url.split('@').nth(1).and_then(|rest| rest.split('/').next()).unwrap();
    let port: u16 = address.rsplit(':').next().unwrap().parse().unwrap();
    let lost = Arc::new(AtomicU32::new(0));
    let proxy = forgetful_proxy(port, Arc::clone(&lost)).await;
    let through = StoreUrl::Postgres(url.replace(&format!(":{port}/"), &format!(":{proxy}/")));
    let store = Store::open(&through, Options { lanes: 1, ..options() }).await.unwrap();
    let world = World { store, ..world };
    for _ in 0..10 {
        let mut run = world.start(&tasks(3), StartOptions::default()).await;
        world.finish(&mut run, SessionId(fresh())).await;
    }
    assert!(lost.load(Ordering::Relaxed) >= 3, "{lost:?} answers were lost");
    assert_eq!(world.findings().await, []);
    drop(world);
}
