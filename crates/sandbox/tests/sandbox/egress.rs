//! The broker: the targets of the request, at addresses that the rules leave open, and nothing else.

use crate::harness::{options, probe, told};
use interlock_outbound::{Outbound, OutboundOptions};
use interlock_sandbox::{Profile, Sandbox, SandboxError, SandboxOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers each client with what it said, in capitals.
async fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut said = String::new();
                let _ = stream.read_to_string(&mut said).await;
                let _ = stream.write_all(said.to_uppercase().as_bytes()).await;
            });
        }
    });
    port
}

async fn open(ranges: &[&str]) -> Sandbox {
    let open = ranges.iter().map(|range| range.parse().unwrap()).collect();
    let outbound = Outbound::new(OutboundOptions { open, ..OutboundOptions::default() }).unwrap();
    Sandbox::open(SandboxOptions { outbound: Some(outbound), ..options() }).await.unwrap()
}

#[tokio::test]
async fn a_target_of_the_request_is_reached_and_no_other() {
    let (port, other) = (server().await, server().await);
    let sandbox = open(&["127.0.0.0/8"]).await;
    for profile in Profile::ALL {
        let run = |asked: String| {
            let target = format!("127.0.0.1:{port}").parse().unwrap();
            sandbox.run(probe(*profile, &["through", &asked]).egress(target))
        };
        let reached = told(run(format!("127.0.0.1:{port}")).await.unwrap()).await;
        assert!(reached.stdout.contains("200 Connection Established"), "{profile}: {}", reached.stdout);
        assert!(reached.stdout.contains("HELLO"), "{profile}: {}", reached.stdout);
        assert_eq!(reached.ended.egress.len(), 1);
        assert_eq!(reached.ended.egress[0].refused, None);

        let refused = told(run(format!("127.0.0.1:{other}")).await.unwrap()).await;
        assert!(refused.stdout.contains("403 Forbidden"), "{profile}: {}", refused.stdout);
        assert!(refused.stdout.contains("not among the targets") && !refused.stdout.contains("HELLO"));
        assert!(refused.ended.egress[0].refused.is_some());
    }
}

#[tokio::test]
async fn an_address_that_the_rules_close_is_not_reached_though_it_is_a_target() {
    let port = server().await;
    let sandbox = open(&[]).await;
    for target in [format!("127.0.0.1:{port}"), "169.254.169.254:80".to_owned()] {
        let request = probe(Profile::ProdCritical, &["through", &target]).egress(target.parse().unwrap());
        let told = told(sandbox.run(request).await.unwrap()).await;
        assert!(told.stdout.contains("403 Forbidden") && told.stdout.contains("is closed"), "{}", told.stdout);
    }
}

#[tokio::test]
async fn without_targets_there_is_no_socket_and_without_a_client_no_targets() {
    let sandbox = open(&[]).await;
    let none = told(sandbox.run(probe(Profile::ProdStandard, &["through", "a:1"])).await.unwrap()).await;
    assert!(none.stdout.contains("No such file"), "{}", none.stdout);
    let closed = Sandbox::open(options()).await.unwrap();
    let request = probe(Profile::ProdStandard, &["through", "a:1"]).egress("a:1".parse().unwrap());
    let error = closed.run(request).await.unwrap_err();
    assert!(matches!(&error, SandboxError::Setup(why) if why.contains("no outbound client")), "{error}");
}
