//! Redirects: judged like the first call, counted, and without secrets for strangers.

use interlock_outbound::header::{AUTHORIZATION, HeaderValue};
use interlock_outbound::{Call, OutboundError, Why};

use crate::server::{Server, client, moved, ok};

#[tokio::test]
async fn a_redirect_to_a_closed_address_is_refused() {
    let private = Server::answering("127.0.0.1", 0, ok("private")).await;
    let by_name = format!("http://inside.example.org:{}/", private.at.port());
    for (target, second_lookup) in [
        (format!("http://127.0.0.1:{}/", private.at.port()), "127.0.0.2"),
        (format!("http://[::ffff:127.0.0.1]:{}/", private.at.port()), "127.0.0.2"),
        (format!("//2130706433:{}/", private.at.port()), "127.0.0.2"),
        (by_name, "127.0.0.1"),
    ] {
        let public = Server::answering("127.0.0.2", 0, moved(302, &target)).await;
        let outbound = client(&[&["127.0.0.2"], &[second_lookup]]);
        let url = format!("http://hooks.example.org:{}/", public.at.port());
        let error = outbound.send(Call::get(url)).await.unwrap_err();
        assert!(matches!(error, OutboundError::Forbidden(forbidden) if forbidden.why == Why::Private), "{target}");
    }
    assert_eq!(private.requests().len(), 0);
}

#[tokio::test]
async fn a_redirect_to_another_scheme_is_refused() {
    let public = Server::answering("127.0.0.2", 0, moved(302, "file:///etc/passwd")).await;
    let error = client(&[&["127.0.0.2"]]).send(Call::get(format!("http://{}/", public.at))).await.unwrap_err();
    assert!(matches!(error, OutboundError::InvalidUrl(_)), "{error}");
}

#[tokio::test]
async fn a_chain_of_redirects_ends_at_the_limit() {
    let looping = Server::answering("127.0.0.2", 0, moved(307, "/again")).await;
    let outbound = client(&[&["127.0.0.2"]]);
    let error = outbound.send(Call::get(format!("http://{}/", looping.at))).await.unwrap_err();
    assert_eq!(error, OutboundError::TooManyRedirects { max: 5 });
    assert_eq!(looping.requests().len(), 6);
    let call = Call { redirects_max: 0, ..Call::get(format!("http://{}/", looping.at)) };
    assert_eq!(outbound.send(call).await.unwrap().status, 307);
}

#[tokio::test]
async fn secrets_stay_with_the_origin_they_were_meant_for() {
    let target = Server::answering("127.0.0.2", 0, ok("there")).await;
    let first = Server::answering("127.0.0.2", 0, moved(302, &format!("http://{}/", target.at))).await;
    let mut call = Call::post(format!("http://{}/", first.at), "body");
    call.headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer token"));
    let mut signature = HeaderValue::from_static("signed");
    signature.set_sensitive(true);
    call.headers.insert("webhook-signature", signature);
    call.headers.insert("x-plain", HeaderValue::from_static("plain"));
    assert_eq!(client(&[&["127.0.0.2"]]).send(call).await.unwrap().body, b"there");
    let (first, second) = (&first.requests()[0], &target.requests()[0]);
    assert!(first.starts_with("POST / ") && first.contains("Bearer token") && first.contains("signed"), "{first}");
    assert!(second.starts_with("GET / ") && second.contains("x-plain"), "{second}");
    assert!(!second.contains("token") && !second.contains("signed"), "{second}");
}
