//! Names that resolve differently the second time, addresses in other notations, and the server's own listener.

use interlock_outbound::{Call, Outbound, OutboundError, OutboundOptions, Why};

use crate::server::{Server, client, ok};

fn why(error: &OutboundError) -> Why {
    match error {
        OutboundError::Forbidden(forbidden) => forbidden.why,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_name_that_rebinds_is_refused_and_never_connected_to() {
    let public = Server::answering("127.0.0.2", 0, ok("public")).await;
    let private = Server::answering("127.0.0.1", public.at.port(), ok("private")).await;
    let outbound = client(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let url = format!("http://hooks.example.org:{}/", public.at.port());
    let first = outbound.send(Call::get(&url)).await.unwrap();
    assert_eq!(first.body, b"public");
    let second = outbound.send(Call::get(&url)).await.unwrap_err();
    assert_eq!(why(&second), Why::Private);
    assert_eq!((public.requests().len(), private.requests().len()), (1, 0));
}

#[tokio::test]
async fn of_a_mixed_answer_only_open_addresses_are_tried() {
    let public = Server::answering("127.0.0.2", 0, ok("public")).await;
    let private = Server::answering("127.0.0.1", public.at.port(), ok("private")).await;
    let outbound = client(&[&["127.0.0.1", "::ffff:127.0.0.1", "127.0.0.2"]]);
    let url = format!("http://hooks.example.org:{}/", public.at.port());
    for _ in 0..3 {
        assert_eq!(outbound.send(Call::get(&url)).await.unwrap().body, b"public");
    }
    assert_eq!(private.requests().len(), 0);
}

#[tokio::test]
async fn an_address_in_the_url_is_judged_in_every_spelling() {
    let private = Server::answering("127.0.0.1", 0, ok("private")).await;
    let port = private.at.port();
    let outbound = client(&[&["127.0.0.2"]]);
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0x7f.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
    ] {
        let error = outbound.send(Call::get(format!("http://{host}:{port}/"))).await.unwrap_err();
        assert_eq!(why(&error), Why::Private, "{host}");
    }
    for host in ["169.254.169.254", "0xa9fea9fe", "[::ffff:169.254.169.254]", "[fd00:ec2::254]"] {
        let error = outbound.send(Call::get(format!("http://{host}/latest/meta-data"))).await.unwrap_err();
        assert_eq!(why(&error), Why::Metadata, "{host}");
    }
    assert_eq!(why(&outbound.send(Call::get("http://0/")).await.unwrap_err()), Why::NoHost);
    assert_eq!(private.requests().len(), 0);
}

#[tokio::test]
async fn our_own_listener_is_closed_even_in_an_open_range() {
    let own = Server::answering("127.0.0.2", 0, ok("own")).await;
    let other = Server::answering("127.0.0.2", 0, ok("other")).await;
    let outbound = client(&[&["127.0.0.2"]]);
    outbound.add_listener(own.at);
    for host in ["127.0.0.2", "us.example.org", "[::ffff:127.0.0.2]"] {
        let error = outbound.send(Call::get(format!("http://{host}:{}/", own.at.port()))).await.unwrap_err();
        assert_eq!(why(&error), Why::OwnListener, "{host}");
    }
    let answer = outbound.send(Call::get(format!("http://us.example.org:{}/", other.at.port()))).await.unwrap();
    assert_eq!(answer.body, b"other");
    assert_eq!(own.requests().len(), 0);
}

#[tokio::test]
async fn a_range_that_is_open_to_one_tenant_is_closed_to_the_others() {
    let inside = Server::answering("127.0.0.1", 0, ok("inside")).await;
    let own = Server::answering("127.0.0.1", 0, ok("own")).await;
    let options = OutboundOptions {
        open_for: [("acme".to_owned(), vec!["127.0.0.0/8".parse().unwrap()])].into(),
        closed: vec!["127.0.0.3".parse().unwrap()],
        ..OutboundOptions::default()
    };
    let outbound = Outbound::new(options).unwrap();
    let url = format!("http://{}/", inside.at);
    assert_eq!(outbound.of_tenant("acme").send(Call::get(&url)).await.unwrap().body, b"inside");
    for other in [&outbound, outbound.of_tenant("globex")] {
        assert_eq!(why(&other.send(Call::get(&url)).await.unwrap_err()), Why::Private);
    }
    // What is closed to all, and what this server listens on, is closed to that tenant too.
    outbound.add_listener(own.at);
    let refused = async |url: String| why(&outbound.of_tenant("acme").send(Call::get(url)).await.unwrap_err());
    assert_eq!(refused("http://127.0.0.3/".to_owned()).await, Why::ClosedByOperator);
    assert_eq!(refused(format!("http://{}/", own.at)).await, Why::OwnListener);
    assert_eq!(refused("http://169.254.169.254/".to_owned()).await, Why::Metadata);
    assert_eq!((inside.requests().len(), own.requests().len()), (1, 0));
}

#[tokio::test]
async fn what_is_no_web_address_is_not_called() {
    let outbound = client(&[&["127.0.0.2"]]);
    for url in ["", "hooks", "ftp://example.org/", "file:///etc/passwd", "http://user:secret@example.org/", "unix:/x"] {
        let error = outbound.send(Call::get(url)).await.unwrap_err();
        assert!(matches!(error, OutboundError::InvalidUrl(_)), "{url}: {error}");
        assert!(!error.to_string().contains("secret"));
    }
}
